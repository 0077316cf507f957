// The settings: the picker and the field of the colour say the same, and a logo
// that is too large is told before it is sent. Without it the server says so.

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
