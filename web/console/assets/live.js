// Refreshes the page while its switch is on. Without it the page shows the state at
// the time it was loaded.

const live = document.getElementById("live");
const every = 30_000; // milliseconds; each failure doubles it
const rarest = 8 * 60_000;
// Each refresh counts as a use of the session. A page that nobody looks at must
// not keep one from ending, so refreshing stops when nobody has touched the page
// for this long.
const patience = 5 * 60_000;
// Nothing moves while a person is using the page.
const calm = 3_000;

let touched = 0;
let pause = every;
let timer;
for (const kind of ["pointerdown", "pointermove", "keydown", "scroll"]) {
	addEventListener(kind, () => { touched = Date.now(); }, { passive: true });
}
touched = Date.now();

const box = element("input", { type: "checkbox", id: "keep", "aria-describedby": "keep-hint" });
const label = element("label", { for: "keep" }, live.dataset.label);
const hint = element("span", { id: "keep-hint", class: "small" }, live.dataset.hint);
const told = element("p", { class: "small", role: "status" });
const line = element("p", { class: "keep" });
line.append(box, label, hint);
live.after(line, told);

box.checked = sessionStorage.getItem("keep") === "yes";
box.addEventListener("change", () => {
	sessionStorage.setItem("keep", box.checked ? "yes" : "no");
	told.textContent = "";
	pause = every;
	wait();
});
document.addEventListener("visibilitychange", wait);
wait();

function element(name, attributes, text = "") {
	const made = document.createElement(name);
	for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
	made.textContent = text;
	return made;
}

function wait() {
	clearTimeout(timer);
	if (box.checked && !document.hidden) timer = setTimeout(turn, pause);
}

async function turn() {
	const idle = Date.now() - touched;
	if (idle < calm) pause = calm;
	else if (idle > patience || selects() || live.querySelector("input:checked")) pause = every;
	else pause = await refresh() ? every : Math.min(rarest, 2 * Math.max(pause, every));
	wait();
}

function selects() {
	const picked = getSelection();
	return !picked.isCollapsed && live.contains(picked.anchorNode);
}

/** refresh reports whether it could ask; what came is shown. */
async function refresh() {
	try {
		const answer = await fetch(location.pathname + location.search, {
			headers: { Accept: "text/html" }, redirect: "manual", signal: AbortSignal.timeout(10_000),
		});
		if (answer.type === "opaqueredirect" || [401, 403, 404].includes(answer.status)) return end();
		if (!answer.ok) return stale();
		const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
		if (fresh) dispatchEvent(new CustomEvent("refresh", { detail: fresh })); // see console.js
		if (fresh && !loses(fresh)) likenAll(live, fresh);
		fresher();
		return true;
	} catch {
		return stale(); // the page stays as it is until the next time
	}
}

let asOf = new Date();

/** fresher: the page is as of now. */
function fresher() {
	asOf = new Date();
	told.textContent = "";
}

/** stale says as of when the page is. */
function stale() {
	const at = asOf.toLocaleTimeString(document.documentElement.lang, { hour: "2-digit", minute: "2-digit" });
	told.textContent = `${live.dataset.stale} ${at}`;
	return false;
}

/** end: the session is over, or what the page shows is gone. */
function end() {
	box.checked = false;
	told.textContent = live.dataset.over;
	return true;
}

/** loses reports whether the row with the focus is gone. It may be gone later. */
function loses(fresh) {
	const row = live.contains(document.activeElement) && document.activeElement.closest("#live [id]");
	return row && !fresh.querySelector(`#${CSS.escape(row.id)}`);
}

/** liken makes a node what another one is. It stays the same node where it can, so
 * that it keeps the focus, and what is open stays open. */
function liken(old, fresh) {
	if (old.isEqualNode(fresh)) return;
	if (old.nodeType !== Node.ELEMENT_NODE || old.nodeName !== fresh.nodeName) {
		old.replaceWith(fresh);
		return;
	}
	for (const { name } of [...old.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
	for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
	likenAll(old, fresh);
}

/** likenAll does so with the children: those with an id are told by it, so that a
 * row stays itself wherever it stands. */
function likenAll(old, fresh) {
	let at = old.firstChild;
	for (const child of [...fresh.childNodes]) {
		const same = child.id ? old.querySelector(`:scope > #${CSS.escape(child.id)}`) : at;
		if (!same || !child.id && (same.id || same.nodeName !== child.nodeName)) {
			old.insertBefore(child, at);
			continue;
		}
		if (same === at) at = at.nextSibling;
		else old.insertBefore(same, at);
		liken(same, child);
	}
	while (at) {
		const gone = at;
		at = at.nextSibling;
		gone.remove();
	}
}
