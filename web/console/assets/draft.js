// Keeps whom one is about to invite in this tab until it is sent, so that it survives the end
// of the session: the text, or the rows of the preview. Another tab, or another day, doesn't
// have it.

const kept = "draft:people";
const field = document.getElementById("people");
const rows = document.querySelector(".drafts");
if (field) {
	if (field.value === "") field.value = sessionStorage.getItem(kept) ?? "";
	field.addEventListener("input", () => sessionStorage.setItem(kept, field.value));
}
if (rows) {
	const keep = () => sessionStorage.setItem(kept, `E-Mail\tName\tRole\n${[...rows.children].map(line).join("\n")}`);
	keep();
	rows.addEventListener("input", keep);
}

/** line is what the form reads as this row again. */
function line(row) {
	return [...row.querySelectorAll("input, select")].map((cell) => cell.value.replace(/[\s"]+/g, " ")).join("\t");
}
