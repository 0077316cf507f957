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

// Times of day are in UTC; the local one goes before them.
arrange(document);
addEventListener("refresh", (event) => arrange(event.detail)); // see live.js

// One box chooses all rows of the page. It comes with this script.
addEventListener("change", ({ target }) => {
	const rows = [...document.querySelectorAll(".list tbody input[name=id]")];
	const all = document.getElementById("all");
	if (target === all) for (const row of rows) row.checked = all.checked;
	else if (all && rows.includes(target)) all.checked = rows.every((row) => row.checked);
	else return;
	const chosen = rows.filter((row) => row.checked).length;
	document.querySelector(".how-many").textContent = chosen ? ` (${chosen})` : "";
});

function showAll(within) {
	within.querySelector(".all")?.removeAttribute("hidden");
}

/** region is the browser's variety of the page's language, as en-GB. */
function region() {
	const { lang } = document.documentElement;
	return navigator.languages.find((one) => one.split("-")[0] === lang.split("-")[0]) ?? lang;
}

function arrange(within) {
	showAll(within);
	const written = new Intl.DateTimeFormat(region(), { dateStyle: "medium", timeStyle: "medium" });
	for (const time of within.querySelectorAll("time[title$=UTC]")) {
		const at = new Date(time.dateTime);
		if (at.getTimezoneOffset() === 0) continue;
		const local = written.format(at);
		time.title = `${local} (${time.title})`;
		if (!("clock" in time.dataset)) continue;
		const before = document.createElement("bdi");
		before.className = "local";
		before.textContent = local;
		time.before(before, " ");
	}
}

// Fields for a person suggest people as one types.
const suggested = document.getElementById("suggested");
for (const field of document.querySelectorAll("[data-suggest]")) {
	let timer;
	field.addEventListener("input", () => {
		clearTimeout(timer);
		timer = setTimeout(() => suggest(field), 200);
	});
}

async function suggest(field) {
	const asked = field.value.trim();
	if (asked.length < 2) return;
	const answer = await fetch(`${field.dataset.suggest}?limit=8&q=${encodeURIComponent(asked)}`).catch(() => null);
	if (!answer?.ok || field.value.trim() !== asked) return;
	suggested.replaceChildren(...(await answer.json()).items.map(({ name, email }) => new Option(name, email)));
}
