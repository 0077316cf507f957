// Refreshes the page while its checkbox is on. Without this script the page shows the state
// at the time it was loaded.

const live = document.getElementById("live");
const interval = 30_000; // milliseconds; each failure doubles the pause
const maxPause = 8 * 60_000;
// Each refresh counts as a use of the session. Without input for this long nothing is
// refreshed: otherwise the session would never end by idling.
const maxIdle = 5 * 60_000;
// While a person is using the page nothing moves: no refresh this soon after input.
const minIdle = 3_000;

let lastInput = 0;
let pause = interval;
let timer;
for (const kind of ["pointerdown", "pointermove", "keydown", "scroll"]) {
	addEventListener(kind, () => { lastInput = Date.now(); }, { passive: true });
}
lastInput = Date.now();

const box = element("input", { type: "checkbox", id: "keep", "aria-describedby": "keep-hint" });
const label = element("label", { for: "keep" }, live.dataset.label);
const hint = element("span", { id: "keep-hint", class: "small" }, live.dataset.hint);
const status = element("p", { class: "small", role: "status" });
const line = element("p", { class: "keep" });
line.append(box, label, hint);
live.closest("main").append(line, status);

box.checked = sessionStorage.getItem("keep") === "yes";
box.addEventListener("change", () => {
	sessionStorage.setItem("keep", box.checked ? "yes" : "no");
	status.textContent = "";
	pause = interval;
	schedule();
});
document.addEventListener("visibilitychange", schedule);
schedule();

function element(name, attributes, text = "") {
	const made = document.createElement(name);
	for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
	made.textContent = text;
	return made;
}

function schedule() {
	clearTimeout(timer);
	if (box.checked && !document.hidden) timer = setTimeout(refreshIfIdle, pause);
}

async function refreshIfIdle() {
	const idle = Date.now() - lastInput;
	if (idle < minIdle) pause = minIdle;
	else if (idle > maxIdle || hasSelection() || live.querySelector("input:checked")) pause = interval;
	else pause = await refresh() ? interval : Math.min(maxPause, 2 * Math.max(pause, interval));
	schedule();
}

function hasSelection() {
	const selection = getSelection();
	return !selection.isCollapsed && live.contains(selection.anchorNode);
}

/** refresh shows the page as it is now, and reports whether the server answered. */
async function refresh() {
	try {
		const answer = await fetch(location.pathname + location.search, {
			headers: { Accept: "text/html" }, redirect: "manual", signal: AbortSignal.timeout(10_000),
		});
		if (answer.type === "opaqueredirect" || [401, 403, 404].includes(answer.status)) return end();
		if (!answer.ok) return showStale();
		const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
		if (fresh) dispatchEvent(new CustomEvent("refresh", { detail: fresh })); // see console.js
		if (fresh && !losesFocus(fresh)) updateChildren(live, fresh);
		setFresh();
		return true;
	} catch {
		return showStale(); // the page stays as it is until the next time
	}
}

let asOf = new Date();

/** setFresh notes that the page is as of now. */
function setFresh() {
	asOf = new Date();
	status.textContent = "";
}

/** showStale says when the page was last refreshed. */
function showStale() {
	const at = asOf.toLocaleTimeString(document.documentElement.lang, { hour: "2-digit", minute: "2-digit" });
	status.textContent = `${live.dataset.stale} ${at}`;
	return false;
}

/** end stops refreshing: the session is over, or what the page shows is gone. */
function end() {
	box.checked = false;
	status.textContent = live.dataset.over;
	return true;
}

/** losesFocus reports whether the row with the focus is gone. The page then stays as it is
 * until the focus leaves the row. */
function losesFocus(fresh) {
	const row = live.contains(document.activeElement) && document.activeElement.closest("#live [id]");
	return row && !fresh.querySelector(`#${CSS.escape(row.id)}`);
}

/** update makes a node equal to a fresh one. It keeps the node itself where it can, so
 * that the focus and open details stay. */
function update(old, fresh) {
	if (old.isEqualNode(fresh)) return;
	if (old.nodeType !== Node.ELEMENT_NODE || old.nodeName !== fresh.nodeName) {
		old.replaceWith(fresh);
		return;
	}
	for (const { name } of [...old.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
	for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
	updateChildren(old, fresh);
}

/** updateChildren updates the children. Those with an id are matched by it, so that a
 * row stays the same node when it moves. */
function updateChildren(old, fresh) {
	let at = old.firstChild;
	for (const child of [...fresh.childNodes]) {
		const same = child.id ? old.querySelector(`:scope > #${CSS.escape(child.id)}`) : at;
		if (!same || !child.id && (same.id || same.nodeName !== child.nodeName)) {
			old.insertBefore(child, at);
			continue;
		}
		if (same === at) at = at.nextSibling;
		else old.insertBefore(same, at);
		update(same, child);
	}
	while (at) {
		const gone = at;
		at = at.nextSibling;
		gone.remove();
	}
}
