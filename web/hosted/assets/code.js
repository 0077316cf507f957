// Copies the code from the fragment of a mail's link, which no browser sends and no
// server logs, into the form, removes it from the address bar, and sends the form.

const form = document.querySelector("form.code");

function takeCode() {
	const token = new URLSearchParams(location.hash.slice(1)).get("token");
	if (!token) return;
	// The page that answers a code has no form for another one: load that page again.
	if (!form) return location.replace(`${location.pathname}?next${location.hash}`);
	history.replaceState(null, "", location.pathname + location.search);
	form.elements.token.value = token;
	form.closest(".card").classList.add("sending");
	form.requestSubmit();
}

takeCode();
// A second link opened in the same tab changes the fragment only.
addEventListener("hashchange", takeCode);
