// Gives each example a button that copies it, unless the browser denies access to
// the clipboard (plain http from another machine).

if (navigator.clipboard) {
	for (const figure of document.querySelectorAll("figure")) {
		const example = figure.querySelector("pre");
		const visible = () => [...figure.querySelectorAll("pre")].find((pre) => pre.checkVisibility()) ?? example;
		const button = document.createElement("button");
		button.type = "button";
		button.className = "copy";
		button.textContent = "Copy";
		button.setAttribute("aria-live", "polite");
		button.setAttribute("aria-describedby", example.getAttribute("aria-labelledby"));
		button.addEventListener("click", async () => {
			const copied = await navigator.clipboard.writeText(visible().textContent).then(() => true, () => false);
			button.textContent = copied ? "Copied" : "Not allowed";
			setTimeout(() => { button.textContent = "Copy"; }, 2000);
		});
		figure.insertBefore(button, example);
	}
}
