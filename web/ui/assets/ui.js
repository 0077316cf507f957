// Makes forms kinder. Without it they all work: the server is the only judge.

for (const form of document.forms) {
	once(form);
	for (const input of form.querySelectorAll("input[type=password]")) reveal(input);
	for (const input of form.querySelectorAll("input[data-new]")) advise(input);
	for (const input of form.querySelectorAll("[aria-invalid=true]")) forgive(input);
}
(document.querySelector("[aria-invalid=true]") ?? document.querySelector("[autofocus]"))?.focus();

// What was done has been said: neither a bookmark nor a reload repeats it.
const here = new URL(location.href);
if (here.searchParams.has("done")) {
	if (here.searchParams.get("done") === "invited") sessionStorage.removeItem("draft:people"); // see draft.js
	for (const name of ["done", "count", "sessions", "invitations", "keys", "taken"]) here.searchParams.delete(name);
	history.replaceState(history.state, "", here);
}

// Who signs in next in this tab sees no draft of the one before.
document.querySelector("form[action$='/logout']")?.addEventListener("submit", () => sessionStorage.removeItem("draft:people"));

// "/" puts the cursor into the search, as long as nothing else takes the key.
addEventListener("keydown", (event) => {
	const search = document.querySelector("input[type=search]");
	const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
	if (event.key !== "/" || !search || typing || event.ctrlKey || event.metaKey || event.altKey) return;
	event.preventDefault();
	search.focus();
	search.select();
});

/** once keeps a second click from sending the form again. */
function once(form) {
	let sent = false;
	form.addEventListener("submit", (event) => {
		if (sent) event.preventDefault();
		sent = true;
		form.querySelector("[type=submit]")?.setAttribute("aria-busy", "true");
	});
	// The page may come back from the browser's memory.
	addEventListener("pageshow", () => {
		sent = false;
		form.querySelector("[type=submit]")?.removeAttribute("aria-busy");
	});
}

/** reveal gives a password a button that switches it to text and back. */
function reveal(input) {
	const button = document.createElement("button");
	button.type = "button";
	button.className = "reveal";
	button.setAttribute("aria-controls", input.id);
	const turn = (shown) => {
		input.type = shown ? "text" : "password";
		button.textContent = shown ? input.dataset.hide : input.dataset.show;
		button.setAttribute("aria-label", `${button.textContent}: ${input.labels[0].textContent}`);
	};
	turn(false);
	button.addEventListener("click", () => turn(input.type === "password"));
	// Sent as a password, so that no browser keeps it as a word to suggest.
	input.form.addEventListener("submit", () => turn(false));
	input.after(button);
}

/** forgive takes the mark away once the person has changed the value. */
function forgive(input) {
	input.addEventListener("input", () => {
		input.removeAttribute("aria-invalid");
		document.getElementById(`${input.id}-fault`)?.replaceChildren();
	}, { once: true });
}

// Screen readers hear what is missing when typing pauses, not at every key.
const pause = 800;

// What can be seen: a password of spaces and their like alone is refused.
const mark = /[^\p{Z}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** advise says live which rules a new password keeps. The server has the last word. */
function advise(input) {
	const field = input.closest(".field");
	const rules = [...field.querySelectorAll("[data-rule]")];
	const heard = field.querySelector("[role=status]");
	const again = input.form.querySelector("[name=confirmPassword]");
	const kept = {
		length: () => {
			const length = lengthOf(input.value);
			return length >= Number(input.dataset.new) && length <= Number(input.dataset.longest) && mark.test(input.value);
		},
		words: () => input.value !== "" && !contains(input.value, input.dataset.words.split("\n")),
		same: () => input.value !== "" && input.value.normalize("NFC") === again.value.normalize("NFC"),
	};
	let timer;
	const update = () => {
		const missing = rules.filter((rule) => {
			const good = kept[rule.dataset.rule]();
			rule.classList.toggle("kept", good);
			return !good;
		});
		clearTimeout(timer);
		timer = setTimeout(() => {
			const list = missing.map((rule) => rule.textContent).join("; ");
			heard.textContent = missing.length ? `${heard.dataset.missing} ${list}` : heard.dataset.complete;
		}, pause);
	};
	input.addEventListener("input", update);
	again.addEventListener("input", update);
}

/** lengthOf counts as the server does: code points after normalisation to NFC. */
function lengthOf(password) {
	return [...password.normalize("NFC")].length;
}

/** contains looks for words of four characters or more, letter case aside. */
function contains(password, words) {
	const fold = (text) => text.normalize("NFC").trim().toLowerCase();
	return words.map(fold).some((word) => [...word].length >= 4 && fold(password).includes(word));
}
