// What all pages of the console share. They all work without this script.

// Menus are <details>: one is open at a time; a click elsewhere and Escape close it, and the
// arrow keys move through it.
const menus = ".row-menu details, .switcher, .up-menu";
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
	const count = document.querySelector(".how-many");
	count.textContent = chosen ? count.dataset.text.replace("{n}", chosen) : "";
});

// A filter that is chosen with a pointer applies at once. With the keyboard, each arrow key would be
// a choice: there the button applies it.
let isPointed = false;
addEventListener("pointerdown", () => { isPointed = true; }, true);
addEventListener("keydown", () => { isPointed = false; }, true);
addEventListener("change", ({ target }) => {
	if (isPointed && target.matches(".filter select")) target.form.requestSubmit();
});

// A picker finds a role among many, and shows the chosen one.
for (const picker of document.querySelectorAll(".picker")) {
	const find = picker.querySelector(".find");
	const options = [...picker.querySelectorAll(".option")];
	find.hidden = options.length < 7;
	find.addEventListener("input", () => {
		const wanted = fold(find.value).split(/\s+/);
		for (const one of options) one.hidden = !wanted.every((word) => fold(one.textContent).includes(word));
		picker.querySelector("[role=status]").hidden = options.some((one) => !one.hidden);
	});
	find.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
	picker.addEventListener("change", ({ target }) => {
		if (target.type === "radio") picker.querySelector(".chosen-one").innerHTML = target.nextElementSibling.innerHTML;
	});
}

/** fold returns text without accents and capitals. */
function fold(text) {
	return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

// The details of an event open beside the table, without loading the page again.
addEventListener("click", (event) => {
	const link = event.target.closest?.("a.opens, a.closes");
	if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
	event.preventDefault();
	openEvent(link);
});

async function openEvent(link) {
	const answer = link.matches(".closes") ? null : await fetch(link.href, { redirect: "error" }).catch(() => null);
	const fresh = answer?.ok && new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("event");
	if (!fresh && !link.matches(".closes")) return location.assign(link.href);
	const side = document.querySelector(".with-side");
	side.querySelector("aside")?.remove();
	for (const row of side.querySelectorAll("tr.open")) row.classList.remove("open");
	history.replaceState(null, "", link.href.split("#")[0]);
	if (!fresh) return document.getElementById(link.hash.slice(1))?.querySelector("a.opens").focus();
	prepare(fresh);
	side.append(fresh);
	link.closest("tr").classList.add("open");
	fresh.focus({ preventScroll: matchMedia("(min-width: 80rem)").matches });
}

/** region returns the browser's variety of the page's language, such as en-GB. */
function region() {
	const { lang } = document.documentElement;
	return navigator.languages.find((one) => one.split("-")[0] === lang.split("-")[0]) ?? lang;
}

/** prepare shows the checkbox for all rows, and local times. */
function prepare(within) {
	if (within.querySelector(".list input[name=id]")) within.querySelector(".all")?.removeAttribute("hidden");
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
