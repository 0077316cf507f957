// Keeps the people to invite, as text or as rows of the preview, in the storage of this tab,
// so that they survive the end of the session. They are gone when the tab is closed.

const storageKey = "draft:people";
const field = document.getElementById("people");
const rows = document.querySelector(".drafts");
if (field) {
	if (field.value === "") field.value = sessionStorage.getItem(storageKey) ?? "";
	field.addEventListener("input", () => sessionStorage.setItem(storageKey, field.value));
}
if (rows) {
	const keep = () => sessionStorage.setItem(storageKey, `E-Mail\tName\tRole\n${[...rows.children].map(line).join("\n")}`);
	keep();
	rows.addEventListener("input", keep);
}

/** line returns the row as a line that the form reads as the same row. */
function line(row) {
	return [...row.querySelectorAll("input, select")].map((cell) => cell.value.replace(/[\s"]+/g, " ")).join("\t");
}
