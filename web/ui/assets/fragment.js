// Takes the code of a mail, in the fragment of the address, along through the pages of a sign-in. A
// browser doesn't send the fragment, and keeps it when the answer to a form redirects.

if (location.hash.startsWith("#token=")) {
	for (const form of document.forms) {
		form.setAttribute("action", form.getAttribute("action") + location.hash);
	}
}
