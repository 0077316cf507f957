// A page of the message board: who is signed in, and what that person may do. The browser
// sends the session's cookie; no script sees it.

import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { DoorwardProvider, RequirePermission, SignedIn, SignedOut, SignInLink, TenantSwitcher, UserButton, useSession } from "@doorward/react";
import "@doorward/react/style.css";

function App() {
	const { status } = useSession();
	return (
		<main>
			<header><TenantSwitcher label="Tenant" /> <UserButton /></header>
			<h1>Board</h1>
			{status === "loading" && <p>One moment …</p>}
			{status === "unavailable" && <p role="alert">The server can't say now who is signed in. This page tries again.</p>}
			<SignedOut>
				<p>Sign in to read what your colleagues write.</p>
				<SignInLink />
			</SignedOut>
			<SignedIn>
				<Board />
			</SignedIn>
		</main>
	);
}

function Board() {
	const { user, request } = useSession();
	const [messages, setMessages] = useState([]);
	const [notice, setNotice] = useState("");

	async function read() {
		const response = await request("/board/messages");
		if (response.ok) setMessages(await response.json());
		else setNotice(await explain(response));
	}
	useEffect(() => { void read(); }, []);

	async function change(options) {
		const response = await request("/board/messages", options);
		setNotice(response.ok ? "" : await explain(response));
		if (response.ok) await read();
	}

	return (
		<>
			<p>Signed in as <strong>{user.email}</strong>, {user.role} of {user.tenantName}.</p>
			{notice && <p role="alert">{notice}</p>}
			<ul>{messages.map((message, i) => <li key={i}>{message}</li>)}</ul>
			<RequirePermission action="message.send" fallback={<p>Your role may read, and not write.</p>}>
				<form action={(form) => change({ method: "POST", headers: { "Content-Type": "text/plain" }, body: form.get("text") })}>
					<label htmlFor="text">Message</label> <input id="text" name="text" required maxLength="200" /> <button>Send</button>
				</form>
			</RequirePermission>
			<RequirePermission action="settings.manage">
				<button type="button" onClick={() => change({ method: "DELETE" })}>Clear the board</button>
			</RequirePermission>
		</>
	);
}

/** explain returns the text about a refusal. request itself has opened the step-up page. */
async function explain(response) {
	const { code, detail } = await response.json().catch(() => ({}));
	return code === "step_up_required" ? "Please confirm that it's you." : detail ?? "That didn't work. Try again.";
}

createRoot(document.getElementById("root")).render(<DoorwardProvider><App /></DoorwardProvider>);
