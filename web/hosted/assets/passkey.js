// Passkeys, which need a script: it calls the browser's WebAuthn, and sends the answer in a
// form like any other. Elements with the class "passkey" stay hidden if the browser doesn't
// support passkeys; then the page says what to do instead.

const form = document.querySelector("form.passkey");
const supported = window.PublicKeyCredential?.parseRequestOptionsFromJSON && window.PublicKeyCredential.parseCreationOptionsFromJSON;

/** Aborts the pending call of WebAuthn: a page may have one at a time. */
let pending;

if (form && supported) {
	for (const one of document.querySelectorAll(".passkey[hidden]")) one.hidden = false;
	for (const one of document.querySelectorAll(".no-passkey")) one.hidden = true;
	form.addEventListener("submit", (event) => {
		if (form.elements.credential.value) return; // sent by send
		event.preventDefault();
		event.stopImmediatePropagation();
		usePasskey();
	}, { capture: true });
	if (form.dataset.autofill !== undefined) offerAutofill();
}

/** options returns the options in the page, or requests a challenge from the server. */
async function options() {
	if (form.dataset.options) return JSON.parse(form.dataset.options);
	const response = await fetch(form.dataset.begin, { method: "POST" });
	if (!response.ok) throw new Error(`begin: ${response.status}`);
	const begun = await response.json();
	form.elements.challenge.value = begun.challenge;
	return begun.publicKey;
}

/** callWebAuthn calls WebAuthn, after aborting a call that waits for the autofill. */
async function callWebAuthn(more) {
	pending?.abort();
	pending = new AbortController();
	const publicKey = await options();
	const call = { signal: pending.signal, ...more };
	if (form.dataset.create !== undefined) {
		return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(publicKey), ...call });
	}
	return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(publicKey), ...call });
}

function send(credential) {
	const text = JSON.stringify(credential.toJSON(), (name, value) => value ?? undefined);
	form.elements.credential.value = text;
	// A box that the page's other form has, too, is shown there alone.
	for (const copy of form.querySelectorAll("[data-like]")) copy.value = document.getElementById(copy.dataset.like).checked ? "1" : "";
	form.requestSubmit();
}

/** usePasskey handles the button, and shows what went wrong. */
async function usePasskey() {
	showAlert("");
	try {
		send(await callWebAuthn({}));
	} catch (error) {
		if (error.name === "AbortError") return;
		showAlert(error.name === "InvalidStateError" ? form.dataset.known : form.dataset.failed);
		if (form.dataset.autofill !== undefined) offerAutofill();
	}
}

/** offerAutofill lets the browser suggest passkeys in the address field. */
async function offerAutofill() {
	try {
		if (!await PublicKeyCredential.isConditionalMediationAvailable?.()) return;
		send(await callWebAuthn({ mediation: "conditional" }));
	} catch {
		// No alert: the person did not ask for this, and can still use the button.
	}
}

/** showAlert shows the text as an alert; without text it removes the alert. */
function showAlert(text) {
	const element = form.querySelector(".alert");
	element.textContent = text;
	element.hidden = !text;
	if (text) element.setAttribute("role", "alert");
	else element.removeAttribute("role");
}
