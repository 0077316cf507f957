// The pages that mails link to. The token comes in the fragment of the link,
// which no browser sends and no server logs; it leaves the address bar at once
// and lives on in a field of the form.

import { clear, serve } from "./form.js";
import { count, reveal } from "./password.js";

const parts = [...document.querySelectorAll("main > section")];
const forms = [...document.forms];

/** show makes one part of the page the only one. */
function show(id) {
	for (const part of parts) part.hidden = part.id !== id;
	const heading = document.querySelector(`#${id} h1`);
	document.title = `${heading.textContent} · Doorward`;
	heading.focus();
}

/** hold puts the token into the forms; the field for it shows without one only. */
function hold(token) {
	for (const form of forms) {
		form.elements.token.value = token;
		form.elements.token.closest(".field").hidden = token !== "";
	}
	for (const told of document.querySelectorAll(".untold")) {
		told.hidden = token !== "";
		told.previousElementSibling.hidden = token === "";
	}
}

/** tokenIn finds the token in what people paste: the code, broken over lines perhaps, or the link. */
function tokenIn(text) {
	return text.replaceAll(/\s/g, "").replace(/^.*token=/, "");
}

function fromAddressBar() {
	const token = new URLSearchParams(location.hash.slice(1)).get("token");
	if (token !== null) history.replaceState(null, "", location.pathname + location.search);
	return token;
}

for (const form of forms) {
	const outcomes = JSON.parse(form.dataset.outcomes);
	reveal(form);
	for (const input of form.querySelectorAll("[data-min]")) count(input);
	serve(form, {
		prepare(members) {
			members.token = tokenIn(members.token);
		},
		succeeded({ user = {} }) {
			for (const blank of document.querySelectorAll("[data-user]")) blank.textContent = user[blank.dataset.user] ?? "";
			show(form.dataset.done);
		},
		refused({ code }) {
			const { part, ...fault } = outcomes[code] ?? {};
			if (!part) return fault.pointer ? fault : null;
			hold(tokenIn(form.elements.token.value));
			form.reset();
			show(part);
			return true;
		},
	});
}

hold(fromAddressBar() ?? "");

// A second link opened in the same tab changes the fragment only.
addEventListener("hashchange", () => {
	const token = fromAddressBar();
	if (token === null) return;
	for (const form of forms) {
		form.reset();
		clear(form);
	}
	hold(token);
	show(parts[0].id);
});
