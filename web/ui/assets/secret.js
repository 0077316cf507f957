// Adds a button that copies a secret, or a public key. Without access to the clipboard (plain http from
// another machine) there is none, and a click on the secret selects all of it.

for (const secret of navigator.clipboard ? document.querySelectorAll("[data-copy]") : []) {
	const button = document.createElement("button");
	button.type = "button";
	button.className = secret.id ? "button" : "button plain";
	button.textContent = secret.dataset.copy;
	button.setAttribute("aria-live", "polite");
	button.addEventListener("click", async () => {
		const copied = await navigator.clipboard.writeText(secret.textContent).then(() => true, () => false);
		button.textContent = copied ? secret.dataset.copied : secret.dataset.refused;
		setTimeout(() => { button.textContent = secret.dataset.copy; }, 3000);
	});
	secret.after(button);
}
