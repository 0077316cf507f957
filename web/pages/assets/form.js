// Sends a form to the API as one JSON object and shows, accessibly, what the
// API finds wrong with it. The API is the only judge; nothing is checked here.

// The API answers within 3 s; a network may take longer.
const patience = 15_000;

const noAnswer = {
	detail: "There is no answer from the server. Check your connection, then try again.",
};

/**
 * serve takes over the form.
 * prepare may change the members before they are sent.
 * succeeded gets the body of a success, refused the problem of a failure;
 * refused returns a fault {pointer, message} to show at a field, true when it
 * has dealt with the problem itself, or nothing.
 */
export function serve(form, { prepare, succeeded, refused }) {
	const button = form.querySelector("[type=submit]");
	let busy = false;

	form.querySelector("fieldset").disabled = false;
	form.addEventListener("input", (event) => mark(event.target, ""));
	form.addEventListener("submit", async (event) => {
		event.preventDefault();
		if (busy) return; // a second click, or Enter while the first is on its way
		busy = true;
		clear(form);
		const label = say(button, "One moment…");
		const answer = await send(form, prepare);
		if (answer.ok) {
			form.reset();
			succeeded(answer.body);
		} else {
			show(form, answer, refused(answer.body));
			await wait(form, button, answer.after);
		}
		say(button, label);
		busy = false;
	});
}

async function send(form, prepare) {
	const members = Object.fromEntries(new FormData(form));
	prepare?.(members);
	try {
		const response = await fetch(form.action, {
			method: "POST",
			headers: { "Content-Type": "application/json" },
			body: JSON.stringify(members),
			redirect: "error",
			signal: AbortSignal.timeout(patience),
		});
		return {
			ok: response.ok,
			body: await response.json().catch(() => ({})), // 204 has none
			after: Number(response.headers.get("Retry-After")) || 0,
		};
	} catch {
		return { ok: false, body: noAnswer, after: 0 };
	}
}

/** show puts each fault at its field, and what has none into the summary. */
function show(form, { body, after }, decided) {
	if (decided === true) return;
	const faults = decided ? [decided] : (body.errors ?? []);
	const homeless = faults.filter((fault) => !mark(fieldOf(form, fault.pointer), fault.message));
	const first = form.querySelector("[aria-invalid=true]");
	const lines = homeless.map((fault) => fault.message);
	if (first) {
		lines.unshift("Please check what is marked below.");
	} else if (after > 0) {
		lines.unshift(`${body.title ?? "That did not work"}. Try again in ${duration(after)}.`);
	} else if (lines.length === 0) {
		lines.push(body.detail ?? body.title ?? "That did not work. Try again later.");
	}
	if (body.code === "internal_error") lines.push(`Request id: ${body.requestId}`);
	summarise(form, lines);
	if (first) first.focus();
}

/** fieldOf finds the input of a JSON Pointer such as "/password". */
function fieldOf(form, pointer) {
	return form.elements.namedItem((pointer ?? "").slice(1));
}

/** mark shows the message at the input, or takes it away; false without an input. */
function mark(input, message) {
	const place = input && document.getElementById(`${input.id}-fault`);
	if (!place) return false;
	input.setAttribute("aria-invalid", String(message !== ""));
	place.textContent = message;
	if (message) input.closest(".field").hidden = false;
	return true;
}

export function clear(form) {
	for (const input of form.querySelectorAll("input")) mark(input, "");
	summarise(form, []);
}

/** summarise fills the element that screen readers announce at once. */
function summarise(form, lines) {
	const place = form.querySelector("[role=alert]");
	place.replaceChildren(...lines.map((line) => {
		const paragraph = document.createElement("p");
		paragraph.textContent = line;
		return paragraph;
	}));
	if (lines.length > 0) place.scrollIntoView({ block: "nearest" });
}

/** wait keeps the form from being sent for some seconds and counts them down. */
async function wait(form, button, seconds) {
	if (seconds === 0) return;
	const end = Date.now() + seconds * 1000;
	for (let left = seconds; left > 0; left = Math.ceil((end - Date.now()) / 1000)) {
		say(button, `Wait ${duration(left)}`);
		await new Promise((done) => setTimeout(done, 250));
	}
	summarise(form, ["You can try again now."]);
}

/** say labels a button and returns its first label; any other makes it idle. */
function say(button, label) {
	const own = (button.dataset.label ??= button.textContent);
	button.textContent = label;
	// Not "disabled": that would take the focus away from people.
	button.setAttribute("aria-disabled", String(label !== own));
	return own;
}

function duration(seconds) {
	const [n, unit] = seconds < 100 ? [seconds, "second"] : [Math.ceil(seconds / 60), "minute"];
	return `${n} ${unit}${n === 1 ? "" : "s"}`;
}
