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
	} else if (menu.contains(event.target) && !event.target.matches("input") && ["ArrowDown", "ArrowUp"].includes(event.key)) {
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

// Times of day are in UTC; the local time is put before them, and UTC in brackets.
prepare(document);
addEventListener("refresh", (event) => prepare(event.detail)); // see live.js

// One checkbox chooses all rows of the page. It is hidden without this script.
addEventListener("change", ({ target }) => {
	const { id, name, checked } = target;
	if (id === "all") for (const row of rowsToChoose()) row.checked = checked;
	if (id === "all" || name === "id") countChosen();
});
countChosen(); // browsers keep what was chosen when a page is loaded again

function rowsToChoose() {
	return [...document.querySelectorAll(".list tbody input[name=id]")];
}

/** countChosen shows how many rows are chosen, and whether all are. */
function countChosen() {
	const rows = rowsToChoose();
	const chosen = rows.filter((row) => row.checked).length;
	const count = document.querySelector(".how-many");
	if (!count) return;
	document.getElementById("all").checked = chosen > 0 && chosen === rows.length;
	count.textContent = chosen ? count.dataset.text.replace("{n}", chosen) : "";
}

// A name that ends in an ellipsis is shown whole while the pointer is on it.
addEventListener("pointerover", ({ target }) => {
	const cut = target.closest?.(".line > :is(a, bdi), .sub, .hit bdi, .reason");
	if (cut && (cut.scrollWidth > cut.clientWidth || cut.scrollHeight > cut.clientHeight)) cut.title = cut.textContent;
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
for (const picker of document.querySelectorAll(".picker, .up-menu")) {
	const find = picker.querySelector(".find");
	const options = [...picker.querySelectorAll(".option")];
	find.addEventListener("input", () => {
		const wanted = fold(find.value).split(/\s+/);
		for (const one of options) one.hidden = !wanted.every((word) => fold(one.textContent).includes(word));
		picker.querySelector("[role=status]").hidden = options.some((one) => !one.hidden);
	});
	find.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
	picker.addEventListener("change", ({ target }) => {
		const shown = picker.querySelector(".chosen-one");
		if (shown && target.type === "radio") shown.innerHTML = target.nextElementSibling.innerHTML;
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

addEventListener("keydown", (event) => {
	const closing = event.key === "Escape" && document.querySelector("#event .closes");
	if (closing && !document.querySelector(`:is(${menus})[open], dialog[open]`)) openEvent(closing);
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

/** menuOf makes the menu of a row: of the page's template what is for rows of its kinds, about its object. It
 * replaces the link to the object's page, which is there without this script. */
function menuOf(link) {
	const menu = document.getElementById("row-menu").content.firstElementChild.cloneNode(true);
	menu.firstElementChild.ariaLabel = link.ariaLabel;
	const { id } = link.closest("tr");
	const kinds = (link.dataset.kind ?? "").split(" ");
	for (const one of menu.querySelectorAll("[data-for]")) if (!one.dataset.for.split(" ").some((kind) => kinds.includes(kind))) one.remove();
	for (const name of ["href", "action", "value"]) {
		for (const one of menu.querySelectorAll(`[${name}]`)) one.setAttribute(name, one.getAttribute(name).replace("row-id", id));
	}
	return menu;
}

/** prepare shows the checkbox for all rows, their menus, the searches of long choices, and local times. */
function prepare(within) {
	for (const link of within.querySelectorAll(".row-menu > a")) link.replaceWith(menuOf(link));
	for (const find of within.querySelectorAll(".choices-box > .find")) find.hidden = find.parentElement.querySelectorAll(".option").length < 7;
	if (within.querySelector(".list input[name=id]")) within.querySelector(".all")?.removeAttribute("hidden");
	for (const time of within.querySelectorAll("time[datetime*=T][title]")) addLocalTime(time);
}

/** addLocalTime puts the local time into the title of a time of day, and before one that is shown: to the
 * second if that is. What is shown of UTC is then its date only where that is another day. */
function addLocalTime(time) {
	const at = new Date(time.dateTime);
	if (at.getTimezoneOffset() === 0) return;
	const written = (options, timeZone) => new Intl.DateTimeFormat(region(), { ...options, timeZone }).format(at);
	time.title = `${written({ dateStyle: "long", timeStyle: "medium" })} (${time.title})`;
	if (!("clock" in time.dataset)) return;
	const timeStyle = time.dataset.clock === "seconds" ? "medium" : "short";
	const before = document.createElement("bdi");
	before.className = "local";
	before.textContent = written({ dateStyle: "long", timeStyle });
	const isSameDay = written({ dateStyle: "short" }) === written({ dateStyle: "short" }, "UTC");
	if (isSameDay) time.firstElementChild.textContent = `${written({ timeStyle }, "UTC")} UTC`;
	time.before(before, " (");
	time.after(")");
}

// Ctrl K, or ⌘ K, opens the search: its page, or the palette where this page can send requests.
const finder = document.querySelector(".finder");
if (finder) {
	const key = finder.querySelector("kbd");
	if (/Mac|iP/.test(navigator.platform)) key.textContent = "⌘ K";
	key.hidden = false;
	finder.setAttribute("aria-keyshortcuts", "Control+K Meta+K");
	addEventListener("keydown", (event) => {
		if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
		event.preventDefault();
		finder.click();
	});
}

// The palette is a dialog with the results of the page of the search, so both find the same.
if (finder?.dataset.label) new class {
	constructor() {
		finder.setAttribute("aria-haspopup", "dialog");
		finder.addEventListener("click", (event) => {
			if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a new tab or window
			event.preventDefault();
			this.open();
		});
	}

	open() {
		this.dialog ??= this.make();
		if (this.dialog.open || document.querySelector("dialog[open]")) return;
		this.before = document.activeElement;
		this.field.value = "";
		this.entered = false;
		this.show([]);
		this.dialog.showModal();
		this.search();
	}

	make() {
		const dialog = document.createElement("dialog");
		dialog.className = "palette";
		dialog.innerHTML = `<input type="text" role="combobox" maxlength="200" autocomplete="off" autocapitalize="none" spellcheck="false" aria-autocomplete="list" aria-expanded="true" aria-controls="palette-found">
<div class="found" id="palette-found" role="listbox"></div><p class="unseen" role="status"></p>`;
		[this.field, this.list, this.status] = dialog.children;
		dialog.ariaLabel = this.list.ariaLabel = finder.textContent.replace(finder.lastElementChild.textContent, "").trim();
		this.field.placeholder = this.field.ariaLabel = finder.dataset.label;
		this.field.addEventListener("input", () => {
			clearTimeout(this.timer);
			[this.stale, this.entered] = [true, false];
			this.timer = setTimeout(() => this.search(), 250);
		});
		this.field.addEventListener("keydown", (event) => this.press(event));
		this.list.addEventListener("pointermove", ({ target }) => this.choose(target.closest("a")));
		dialog.addEventListener("click", ({ target }) => { if (target === dialog) dialog.close(); });
		dialog.addEventListener("close", () => this.end());
		document.body.append(dialog);
		return dialog;
	}

	/** end drops the request, and gives the focus back; the menu of a phone has closed. Its event comes a moment
	    after the dialog has closed, when the keys may have opened it again. */
	end() {
		if (this.dialog.open) return;
		clearTimeout(this.timer);
		this.request?.abort();
		const visible = this.before?.checkVisibility?.();
		(visible ? this.before : document.querySelector(".opener"))?.focus();
	}

	/** search shows what the page of the search finds; the request of an older text is dropped. */
	async search() {
		this.request?.abort();
		const request = this.request = new AbortController();
		const address = `${finder.getAttribute("href")}?q=${encodeURIComponent(this.field.value.trim())}`;
		try {
			const answer = await fetch(address, { headers: { Accept: "text/html" }, redirect: "manual", signal: request.signal });
			if (answer.type === "opaqueredirect" || answer.status === 401) return location.assign(address); // which leads to the sign-in
			const page = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("found");
			if (request.signal.aborted) return;
			if (!page) return this.fail();
			this.stale = false;
			this.show([...page.children]);
			if (this.entered) this.chosen?.click();
		} catch {
			if (!request.signal.aborted) this.fail();
		}
	}

	fail() {
		const text = document.createElement("p");
		text.className = "empty";
		text.textContent = finder.dataset.failed;
		this.show([text]);
	}

	/** show shows the groups of results, whose last element says how many there are. */
	show(groups) {
		const status = groups.at(-1);
		this.list.replaceChildren(...groups.filter((one) => one !== status || !one.matches(".unseen")));
		this.list.setAttribute("role", groups.length > 1 ? "listbox" : "group");
		this.status.textContent = status?.textContent ?? "";
		for (const group of this.list.querySelectorAll("section")) {
			group.setAttribute("role", "group");
			group.querySelector("h2").id = `palette-${group.getAttribute("aria-labelledby")}`;
			group.setAttribute("aria-labelledby", group.querySelector("h2").id);
		}
		for (const one of this.list.querySelectorAll("h2, ul, li, p")) one.setAttribute("role", "presentation");
		this.options = [...this.list.querySelectorAll("a")];
		for (const [i, one] of this.options.entries()) {
			one.id = `palette-${i}`;
			one.tabIndex = -1;
			one.setAttribute("role", "option");
		}
		this.choose(this.options[0]);
	}

	/** choose marks the result that Enter opens. */
	choose(option) {
		if (option === null) return; // between two results
		for (const one of this.options) one.setAttribute("aria-selected", one === option);
		this.field.setAttribute("aria-activedescendant", option?.id ?? "");
		this.chosen = option;
	}

	press(event) {
		if (event.isComposing) return;
		const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
		if (step && this.options.length > 0) {
			event.preventDefault();
			const n = this.options.length;
			this.choose(this.options[(this.options.indexOf(this.chosen) + step + n) % n]);
			this.chosen.scrollIntoView({ block: "nearest" });
		} else if (event.key === "Enter") {
			event.preventDefault();
			this.entered = this.stale; // then the results are of an older text
			if (!this.stale) return this.chosen?.click();
			clearTimeout(this.timer);
			this.search();
		}
	}
}();

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

// What is typed into a form is kept in the storage of this tab until the form was accepted, so that it
// survives the end of the session. It is put back when the form is shown after signing in again (see
// ui.js), and at any time in a form that changes nothing that exists. Passwords and codes are not kept.
const { caller } = document.body.dataset;
for (const key of Object.keys(sessionStorage)) {
	if (/^draft(-interrupted)?:/.test(key) && key.split(":")[1] !== caller) sessionStorage.removeItem(key);
}
const sentDraft = sessionStorage.getItem("draft-sent");
sessionStorage.removeItem("draft-sent");
if (sentDraft && !document.querySelector("main [role=alert]")) {
	const shownAgain = [...document.querySelectorAll("main form[method=post]")].some((form) => draftKey(form) === sentDraft);
	if (!shownAgain || document.querySelector("main .notice[role=status]")) sessionStorage.removeItem(sentDraft);
}
for (const form of document.querySelectorAll("main form[method=post]:not(.chosen)")) keepDraft(form);

/** draftKey returns the key of what is typed into a form. Rows of people belong to the form before them. */
function draftKey(form) {
	const action = new URL(form.getAttribute("action") ?? "", location);
	const { pathname } = form.querySelector(".drafts") ? new URL("../new", action) : action;
	return `draft:${caller}:${pathname}`;
}

/** keepDraft keeps what is typed into the form, after it has put back what was kept. */
function keepDraft(form) {
	const key = draftKey(form);
	const interrupted = key.replace("draft:", "draft-interrupted:");
	const kept = sessionStorage.getItem(interrupted) ?? (form.elements.version ? null : sessionStorage.getItem(key));
	sessionStorage.removeItem(interrupted);
	form.addEventListener("submit", () => sessionStorage.setItem("draft-sent", key));
	const rows = form.querySelector(".drafts");
	if (rows) {
		const keepRows = () => sessionStorage.setItem(key, JSON.stringify({ "people.0": peopleOf(rows) }));
		keepRows();
		form.addEventListener("input", keepRows);
		return;
	}
	const draft = JSON.parse(kept ?? "{}");
	form.addEventListener("input", ({ target }) => {
		if (!isKept(target)) return;
		draft[nameInForm(form, target)] = isChoice(target) ? target.checked : target.value;
		sessionStorage.setItem(key, JSON.stringify(draft));
	});
	if (document.querySelector("main [role=alert]")) return; // the refused form has what was typed
	for (const field of form.elements) {
		const value = isKept(field) ? draft[nameInForm(form, field)] : undefined;
		if (value === undefined) continue;
		if (isChoice(field)) field.checked = value;
		else field.value = value;
		field.dispatchEvent(new Event("input", { bubbles: true }));
	}
}

function isChoice(field) {
	return field.type === "checkbox" || field.type === "radio";
}

/** isKept reports whether people type into the field, and nothing that must stay secret or be typed again. */
function isKept(field) {
	const kinds = ["text", "email", "url", "number", "date", "datetime-local", "color", "checkbox", "radio", "select-one", "textarea"];
	return field.name && kinds.includes(field.type) && !/password|one-time-code/.test(field.autocomplete) && !["code", "confirm", "token"].includes(field.name);
}

/** nameInForm returns the name of a field, with its value if it is a choice, else with its number among those of
 * the same name. */
function nameInForm(form, field) {
	if (isChoice(field)) return `${field.name}=${field.value}`;
	return `${field.name}.${[...form.elements].filter(({ name }) => name === field.name).indexOf(field)}`;
}

/** peopleOf returns the rows as text that the form for people reads as the same rows. */
function peopleOf(rows) {
	const cells = (row) => [...row.querySelectorAll("input, select")].map((cell) => cell.value.replace(/[\s"]+/g, " ")).join("\t");
	return `E-Mail\tName\tRole\n${[...rows.children].map(cells).join("\n")}`;
}

// A list that is being sent goes on by itself, unless something hinders it: see import.go.
document.querySelector("form[data-go-on]")?.requestSubmit();
