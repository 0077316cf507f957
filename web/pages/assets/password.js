// Helps with choosing a password: shows it on demand and counts what is
// missing. Which passwords are good is for the API to say.

// Screen readers hear the count when typing pauses, not at every key.
const pause = 800;

/** reveal makes the form's button switch its passwords to text and back. */
export function reveal(form) {
	const button = form.querySelector(".reveal");
	const inputs = [...form.querySelectorAll("[type=password]")];
	const turn = (shown) => {
		for (const input of inputs) input.type = shown ? "text" : "password";
		button.querySelector(".face").textContent = shown ? "Hide" : "Show";
	};
	button.addEventListener("click", () => turn(inputs[0].type === "password"));
	// Sent as passwords, so that no browser keeps them as words to suggest.
	form.addEventListener("submit", () => turn(false));
	form.addEventListener("reset", () => turn(false));
}

/** count says below the input how many characters are missing or too many. */
export function count(input) {
	const field = input.closest(".field");
	const seen = field.querySelector(".count");
	const heard = field.querySelector("[role=status]");
	const min = Number(input.dataset.min);
	const max = Number(input.dataset.max);
	let timer;

	const update = () => {
		const length = lengthOf(input.value);
		seen.classList.toggle("enough", length >= min && length <= max);
		seen.textContent = verdict(length, min, max);
		clearTimeout(timer);
		timer = setTimeout(() => { heard.textContent = seen.textContent; }, pause);
	};
	input.addEventListener("input", update);
	input.form.addEventListener("reset", () => setTimeout(update)); // after the values
}

/** lengthOf counts as the API does: code points after normalisation to NFC. */
export function lengthOf(password) {
	return [...password.normalize("NFC")].length;
}

function verdict(length, min, max) {
	if (length === 0) return "";
	if (length < min) return `${characters(min - length)} more`;
	if (length > max) return `${characters(length - max)} too many`;
	return "Long enough";
}

function characters(n) {
	return n === 1 ? "1 character" : `${n} characters`;
}
