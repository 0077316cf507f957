// Passkeys, which need a script: the browser's WebAuthn is called here, and the answer is
// sent in a form like any other. Elements with the class "passkey" stay hidden where the
// browser has none, and then the page says what to do instead.

const form = document.querySelector("form.passkey");
const known = window.PublicKeyCredential?.parseRequestOptionsFromJSON && window.PublicKeyCredential.parseCreationOptionsFromJSON;

/** Aborts the pending call of WebAuthn: a page may have one at a time. */
let pending;

if (form && known) {
	for (const one of document.querySelectorAll(".passkey[hidden]")) one.hidden = false;
	for (const one of document.querySelectorAll(".no-passkey")) one.hidden = true;
	form.addEventListener("submit", (event) => {
		if (form.elements.credential.value) return; // the answer is there
		event.preventDefault();
		event.stopImmediatePropagation();
		answer();
	}, { capture: true });
	if (form.dataset.autofill !== undefined) offer();
}

/** options returns those in the page, or asks the server for a challenge. */
async function options() {
	if (form.dataset.options) return JSON.parse(form.dataset.options);
	const response = await fetch(form.dataset.begin, { method: "POST" });
	if (!response.ok) throw new Error(`begin: ${response.status}`);
	const begun = await response.json();
	form.elements.challenge.value = begun.challenge;
	return begun.publicKey;
}

/** ask calls WebAuthn once; a call that waits for the autofill ends before. */
async function ask(more) {
	pending?.abort();
	pending = new AbortController();
	const given = await options();
	const call = { signal: pending.signal, ...more };
	if (form.dataset.create !== undefined) {
		return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(given), ...call });
	}
	return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(given), ...call });
}

function send(credential) {
	const text = JSON.stringify(credential.toJSON(), (name, value) => value ?? undefined);
	form.elements.credential.value = text;
	form.requestSubmit();
}

/** answer handles the button, and shows what went wrong. */
async function answer() {
	say("");
	try {
		send(await ask({}));
	} catch (error) {
		if (error.name === "AbortError") return;
		say(error.name === "InvalidStateError" ? form.dataset.known : form.dataset.failed);
		if (form.dataset.autofill !== undefined) offer();
	}
}

/** offer lets the browser suggest passkeys in the address field. */
async function offer() {
	try {
		if (!await PublicKeyCredential.isConditionalMediationAvailable?.()) return;
		send(await ask({ mediation: "conditional" }));
	} catch {
		// Nobody has asked for it: the button is there.
	}
}

/** say shows the text as an alert; without text it removes the alert. */
function say(text) {
	const place = form.querySelector(".said");
	place.textContent = text;
	place.hidden = !text;
	if (text) place.setAttribute("role", "alert");
	else place.removeAttribute("role");
}
