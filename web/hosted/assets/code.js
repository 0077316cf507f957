// Takes the code from the fragment of a mail's link, which no browser sends and
// no server logs, into the form, and sends it. It leaves the address bar first.

const form = document.querySelector("form.code");

function take() {
	const token = new URLSearchParams(location.hash.slice(1)).get("token");
	if (!token) return;
	// The page that answers a code has no form for another one: load that page again.
	if (!form) return location.replace(`${location.pathname}?next${location.hash}`);
	history.replaceState(null, "", location.pathname + location.search);
	form.elements.token.value = token;
	form.closest(".card").classList.add("sending");
	form.requestSubmit();
}

take();
// A second link opened in the same tab changes the fragment only.
addEventListener("hashchange", take);
