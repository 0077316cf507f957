// Makes forms easier to use. They all work without it: the server checks everything.

for (const form of document.forms) {
	sendOnce(form);
	for (const input of form.querySelectorAll("input[type=password]")) addReveal(input);
	for (const input of form.querySelectorAll("input[data-new]")) checkRules(input);
	for (const input of form.querySelectorAll("[aria-invalid=true]")) clearFaultOnInput(input);
}
(document.querySelector("[aria-invalid=true]") ?? document.querySelector("[autofocus]"))?.focus();

const tab = document.querySelector(".tabs [aria-current]");
if (tab) showTab(tab);

// The page shows what was done. Bookmarks and reloads must not repeat it.
const here = new URL(location.href);
if (here.searchParams.has("done")) {
	for (const name of ["done", "count", "sessions", "invitations", "keys", "taken"]) here.searchParams.delete(name);
	history.replaceState(history.state, "", here);
}

// Forms of the console put back what was typed before the session ended, see console.js.
if (!document.body.dataset.caller) {
	sessionStorage.removeItem("draft-sent");
	for (const key of Object.keys(sessionStorage).filter((name) => name.startsWith("draft:"))) {
		sessionStorage.setItem(key.replace("draft:", "draft-interrupted:"), sessionStorage.getItem(key));
		sessionStorage.removeItem(key);
	}
}

// The next person who signs in in this tab must not find what this one has typed, see console.js.
document.querySelector("form[action$='/logout']")?.addEventListener("submit", () => {
	for (const key of Object.keys(sessionStorage)) if (key.startsWith("draft")) sessionStorage.removeItem(key);
});

// "/" puts the cursor into the search, unless it is typed into a field.
addEventListener("keydown", (event) => {
	const search = document.querySelector("input[type=search]");
	const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
	if (event.key !== "/" || !search || typing || event.ctrlKey || event.metaKey || event.altKey) return;
	event.preventDefault();
	search.focus();
	search.select();
});

/** showTab scrolls a row of tabs that is too long until the tab is in view, so that it begins with a whole
 * tab. Room behind the last one makes that possible at the end, too. */
function showTab(tab) {
	const row = tab.closest(".tabs");
	const list = row.firstElementChild;
	const most = row.scrollWidth - row.clientWidth;
	if (most <= 0) return;
	const { direction, scrollPaddingInlineStart } = getComputedStyle(row);
	const [sign, edge] = direction === "rtl" ? [-1, "right"] : [1, "left"];
	const begin = list.getBoundingClientRect()[edge];
	const distance = (one) => sign * (one.getBoundingClientRect()[edge] - begin);
	const starts = [...list.children].map((one) => Math.max(0, distance(one) - parseFloat(scrollPaddingInlineStart)));
	const last = starts.find((start) => start >= most) ?? most;
	list.style.paddingInlineEnd = `${last - most}px`;
	const needed = distance(tab) + tab.offsetWidth + 28 - row.clientWidth; // with the part that fades
	row.scrollLeft = sign * (starts.find((start) => start >= Math.min(needed, last)) ?? most);
}

/** sendOnce keeps a second click from sending the form again. */
function sendOnce(form) {
	let sent = false;
	form.addEventListener("submit", (event) => {
		if (sent) event.preventDefault();
		sent = true;
		form.querySelector("[type=submit]")?.setAttribute("aria-busy", "true");
	});
	// The browser may restore the page from its back/forward cache.
	addEventListener("pageshow", () => {
		sent = false;
		form.querySelector("[type=submit]")?.removeAttribute("aria-busy");
	});
}

/** addReveal gives a password a button that switches it to text and back. */
function addReveal(input) {
	const button = document.createElement("button");
	button.type = "button";
	button.className = "reveal";
	button.setAttribute("aria-controls", input.id);
	const show = (shown) => {
		input.type = shown ? "text" : "password";
		button.textContent = shown ? input.dataset.hide : input.dataset.show;
		button.setAttribute("aria-label", `${button.textContent}: ${input.labels[0].textContent}`);
	};
	show(false);
	button.addEventListener("click", () => show(input.type === "password"));
	// Browsers remember text fields for autocompletion, but no passwords.
	input.form.addEventListener("submit", () => show(false));
	input.after(button);
}

/** clearFaultOnInput removes the fault once the person has changed the value. */
function clearFaultOnInput(input) {
	input.addEventListener("input", () => {
		input.removeAttribute("aria-invalid");
		document.getElementById(`${input.id}-fault`)?.replaceChildren();
	}, { once: true });
}

// Screen readers announce what is missing after this many milliseconds without a key.
const pause = 800;

// A visible character: a password of spaces and invisible characters alone is refused.
const visible = /[^\p{Z}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** checkRules shows, while typing, which rules a new password meets. The server decides. */
function checkRules(input) {
	const field = input.closest(".field");
	const rules = [...field.querySelectorAll("[data-rule]")];
	const announcement = field.querySelector("[role=status]");
	const confirmation = input.form.querySelector("[name=confirmPassword]");
	const isMet = {
		length: () => {
			const length = lengthOf(input.value);
			return length >= Number(input.dataset.new) && length <= Number(input.dataset.longest) && visible.test(input.value);
		},
		words: () => input.value !== "" && !contains(input.value, input.dataset.words.split("\n")),
		same: () => input.value !== "" && input.value.normalize("NFC") === confirmation.value.normalize("NFC"),
	};
	let timer;
	const update = () => {
		const missing = rules.filter((rule) => {
			const met = isMet[rule.dataset.rule]();
			rule.classList.toggle("kept", met);
			return !met;
		});
		clearTimeout(timer);
		timer = setTimeout(() => {
			const list = missing.map((rule) => rule.textContent).join("; ");
			announcement.textContent = missing.length ? `${announcement.dataset.missing} ${list}` : announcement.dataset.complete;
		}, pause);
	};
	input.addEventListener("input", update);
	confirmation.addEventListener("input", update);
}

/** lengthOf counts as the server does: code points after normalisation to NFC. */
function lengthOf(password) {
	return [...password.normalize("NFC")].length;
}

/** contains reports whether the password has one of the words of four characters or more, ignoring case. */
function contains(password, words) {
	const fold = (text) => text.normalize("NFC").trim().toLowerCase();
	return words.map(fold).some((word) => [...word].length >= 4 && fold(password).includes(word));
}
