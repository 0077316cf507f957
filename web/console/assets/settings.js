// The settings page: keeps the colour picker and the colour's text field in step, and
// reports a logo that is too large before it is sent. Without this script the server
// reports it.

const text = document.getElementById("accent");
const picker = document.getElementById("picked");
picker?.addEventListener("input", () => { text.value = picker.value; });
text?.addEventListener("input", () => {
	const digits = text.value.trim().replace(/^#/, "");
	if (/^[0-9a-f]{6}$/i.test(digits)) picker.value = `#${digits.toLowerCase()}`;
});

const logo = document.getElementById("logo");
logo?.addEventListener("change", () => {
	const [file] = logo.files;
	logo.setCustomValidity(file && file.size > Number(logo.dataset.most) ? logo.dataset.tooLarge : "");
	logo.reportValidity();
});

// Leaving with changes that aren't saved asks first.
let changed = false;
for (const form of document.querySelectorAll("main form[method=post]")) {
	form.addEventListener("input", () => { changed = true; });
	form.addEventListener("submit", () => { changed = false; });
}
addEventListener("beforeunload", (event) => { if (changed) event.preventDefault(); });
