// Keeps the text of an invitation in this tab until it is sent, so that it survives the end
// of the session. Another tab, or another day, doesn't have it.

const field = document.getElementById("people");
const name = "draft:people";
if (field.value === "") field.value = sessionStorage.getItem(name) ?? "";
field.addEventListener("input", () => sessionStorage.setItem(name, field.value));
