// What all pages of the console share. They all work without this script.

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
		const items = [...menu.querySelectorAll("summary, a, button")];
		const step = event.key === "ArrowDown" ? 1 : -1;
		items[(items.indexOf(document.activeElement) + step + items.length) % items.length].focus();
	}
});

/** close closes all menus except one. */
function close(except) {
	for (const menu of document.querySelectorAll(`:is(${menus})[open]`)) if (menu !== except) menu.open = false;
}

// Times of day are in UTC; the local time is put before them.
prepare(document);
addEventListener("refresh", (event) => prepare(event.detail)); // see live.js

// One checkbox chooses all rows of the page. It is hidden without this script.
addEventListener("change", ({ target }) => {
	const rows = [...document.querySelectorAll(".list tbody input[name=id]")];
	const all = document.getElementById("all");
	if (target === all) for (const row of rows) row.checked = all.checked;
	else if (all && rows.includes(target)) all.checked = rows.every((row) => row.checked);
	else return;
	const chosen = rows.filter((row) => row.checked).length;
	document.querySelector(".how-many").textContent = chosen ? ` (${chosen})` : "";
});

/** region returns the browser's variety of the page's language, such as en-GB. */
function region() {
	const { lang } = document.documentElement;
	return navigator.languages.find((one) => one.split("-")[0] === lang.split("-")[0]) ?? lang;
}

/** prepare shows the checkbox for all rows, and local times. */
function prepare(within) {
	within.querySelector(".all")?.removeAttribute("hidden");
	const format = new Intl.DateTimeFormat(region(), { dateStyle: "medium", timeStyle: "medium" });
	for (const time of within.querySelectorAll("time[title$=UTC]")) {
		const at = new Date(time.dateTime);
		if (at.getTimezoneOffset() === 0) continue;
		const local = format.format(at);
		time.title = `${local} (${time.title})`;
		if (!("clock" in time.dataset)) continue;
		const before = document.createElement("bdi");
		before.className = "local";
		before.textContent = local;
		time.before(before, " ");
	}
}

// Fields for a person suggest people while one types.
const suggested = document.getElementById("suggested");
for (const field of document.querySelectorAll("[data-suggest]")) {
	let timer;
	field.addEventListener("input", () => {
		clearTimeout(timer);
		timer = setTimeout(() => suggest(field), 200);
	});
}

async function suggest(field) {
	const query = field.value.trim();
	if (query.length < 2) return;
	const answer = await fetch(`${field.dataset.suggest}?limit=8&q=${encodeURIComponent(query)}`).catch(() => null);
	if (!answer?.ok || field.value.trim() !== query) return;
	suggested.replaceChildren(...(await answer.json()).items.map(({ name, email }) => new Option(name, email)));
}
