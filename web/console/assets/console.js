// What all pages of the console share. Without it they all work.

// Menus are <details>: one is open at a time; a click elsewhere and Escape close it, and the
// arrow keys move through it.
const menus = ".row-menu details, .switcher";
addEventListener("pointerdown", (event) => close(event.target.closest?.(menus)));
addEventListener("focusin", (event) => close(event.target.closest?.(menus)));
addEventListener("keydown", (event) => {
	const menu = document.querySelector(`:is(${menus})[open]`);
	if (!menu) return;
	if (event.key === "Escape") {
		close();
		menu.querySelector("summary").focus();
	} else if (menu.contains(event.target) && ["ArrowDown", "ArrowUp"].includes(event.key)) {
		event.preventDefault();
		const stops = [...menu.querySelectorAll("summary, a, button")];
		const by = event.key === "ArrowDown" ? 1 : -1;
		stops[(stops.indexOf(document.activeElement) + by + stops.length) % stops.length].focus();
	}
});

/** close closes every menu but one. */
function close(but) {
	for (const menu of document.querySelectorAll(`:is(${menus})[open]`)) if (menu !== but) menu.open = false;
}

// One box chooses all rows of the page. It comes with the script.
showAll(document);
addEventListener("refresh", (event) => showAll(event.detail));
addEventListener("change", ({ target }) => {
	const rows = [...document.querySelectorAll(".list tbody input[name=id]")];
	const all = document.getElementById("all");
	if (target === all) for (const row of rows) row.checked = all.checked;
	else if (all && rows.includes(target)) all.checked = rows.every((row) => row.checked);
});

function showAll(within) {
	within.querySelector("#all")?.removeAttribute("hidden");
}
