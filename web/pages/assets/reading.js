// Shows all examples of a page in the language that was chosen last, on any page. The key
// "/" puts the cursor into the search.

const key = "doorward-docs-language";
const choices = [...document.querySelectorAll(".tabs input[type=radio]")];

function choose(language) {
	for (const choice of choices) {
		if (choice.value === language) choice.checked = true;
	}
}

// Storage may be forbidden; then a choice is valid on its page only.
function remembered() {
	try {
		return localStorage.getItem(key);
	} catch {
		return null;
	}
}

for (const choice of choices) {
	choice.addEventListener("change", () => {
		const before = choice.getBoundingClientRect().top;
		choose(choice.value);
		// The examples above may have changed their height: keep this one where it was.
		window.scrollBy(0, choice.getBoundingClientRect().top - before);
		try {
			localStorage.setItem(key, choice.value);
		} catch { /* see remembered */ }
	});
}
if (remembered()) choose(remembered());

document.addEventListener("keydown", (event) => {
	if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea")) return;
	event.preventDefault();
	document.querySelector(".search input").focus();
});
