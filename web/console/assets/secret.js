// Adds a button that copies a secret. Without access to the clipboard (plain http from
// another machine) there is none, and a click on the secret selects all of it.

const secret = document.getElementById("secret");
if (navigator.clipboard) {
	const button = document.createElement("button");
	button.type = "button";
	button.className = "button";
	button.textContent = secret.dataset.copy;
	button.setAttribute("aria-live", "polite");
	button.addEventListener("click", async () => {
		const copied = await navigator.clipboard.writeText(secret.textContent).then(() => true, () => false);
		button.textContent = copied ? secret.dataset.copied : secret.dataset.refused;
		setTimeout(() => { button.textContent = secret.dataset.copy; }, 3000);
	});
	secret.after(button);
}
