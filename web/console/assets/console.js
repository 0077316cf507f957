// Keeps the overview up to date, for whoever asks for it. Without it the page
// shows what was when it was loaded.

const live = document.getElementById("live");
const every = 30_000; // milliseconds
// Each refresh counts as a use of the session. A page that nobody looks at must
// not keep one from ending, so refreshing stops when nobody has touched the page
// for this long.
const patience = 5 * 60_000;
let touched = Date.now();
for (const kind of ["pointerdown", "keydown", "scroll"]) {
	addEventListener(kind, () => { touched = Date.now(); }, { passive: true });
}

const box = document.createElement("input");
box.type = "checkbox";
box.id = "keep";
box.setAttribute("aria-describedby", "keep-hint");
const label = document.createElement("label");
label.htmlFor = box.id;
label.textContent = live.dataset.label;
const hint = document.createElement("span");
hint.id = "keep-hint";
hint.className = "small";
hint.textContent = live.dataset.hint;
const line = document.createElement("p");
line.className = "keep";
line.append(box, label, hint);
live.after(line);

box.checked = sessionStorage.getItem("keep") === "yes";
box.addEventListener("change", () => sessionStorage.setItem("keep", box.checked ? "yes" : "no"));
setInterval(refresh, every);

/** refresh replaces the figures, unless somebody is among them with the keyboard. */
async function refresh() {
	const idle = Date.now() - touched > patience;
	if (!box.checked || document.hidden || idle || live.contains(document.activeElement)) return;
	try {
		const answer = await fetch(location.pathname, { headers: { Accept: "text/html" }, redirect: "error" });
		if (!answer.ok) return;
		const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
		if (!fresh) return;
		// What was opened stays open.
		fresh.querySelectorAll("details").forEach((d, i) => { d.open = live.querySelectorAll("details")[i]?.open ?? false; });
		live.replaceChildren(...fresh.childNodes);
	} catch {
		// The figures stay as they are until the next time.
	}
}
