// The settings page: keeps the colour picker and the colour's text field in step, and
// reports a logo that is too large before it is sent. Without this script the server
// reports it.

const text = document.getElementById("accent");
const picker = document.getElementById("picked");
picker?.addEventListener("input", () => { text.value = picker.value; show(picker.value); });
text?.addEventListener("input", () => {
	const digits = text.value.trim().replace(/^#/, "");
	if (!/^[0-9a-f]{6}$/i.test(digits)) return;
	picker.value = `#${digits.toLowerCase()}`;
	show(picker.value);
});

// While a colour is chosen, the page and its samples show it. They load the style sheet that the
// saved colour would have.
let sheet;
let timer;
function show(colour) {
	for (const monogram of document.querySelectorAll(".monogram")) monogram.classList.add("own");
	clearTimeout(timer);
	timer = setTimeout(() => {
		const next = document.createElement("link");
		next.rel = "stylesheet";
		next.href = `${picker.dataset.sheets}/${colour.slice(1)}.css`;
		const last = sheet;
		next.addEventListener("load", () => last?.remove());
		document.head.append(next);
		sheet = next;
	}, 100);
}

// The unit of a duration is named as its number requires.
for (const units of document.querySelectorAll("select[data-of]")) {
	document.getElementById(units.dataset.of).addEventListener("input", ({ target }) => {
		for (const one of units.options) one.textContent = target.valueAsNumber === 1 ? one.dataset.single : one.dataset.plural;
	});
}

const logo = document.getElementById("logo");
logo?.addEventListener("change", () => {
	const [file] = logo.files;
	logo.setCustomValidity(file && file.size > Number(logo.dataset.maxBytes) ? logo.dataset.tooLarge : "");
	logo.reportValidity();
});

// Leaving the page with unsaved changes asks first.
let changed = false;
for (const form of document.querySelectorAll("main form[method=post]")) {
	form.addEventListener("input", () => { changed = true; });
	form.addEventListener("submit", () => { changed = false; });
}
addEventListener("beforeunload", (event) => { if (changed) event.preventDefault(); });
