// A message board: an Express application that shares one host with Doorward, behind nginx.

import express from "express";
import { Client, DoorwardError, Unauthenticated } from "@doorward/client";
import { refusal } from "@doorward/client/check";
import { protect } from "@doorward/client/express";

const { DOORWARD = "http://127.0.0.1:8080", PORT = "9000" } = process.env;
const doorward = new Client({ baseUrl: DOORWARD });
const boards = new Map(); // messages by tenant

const app = express();
app.set("trust proxy", "loopback");

// A browser that isn't signed in is sent to the login page, and back. All other refusals stay
// problems, also 503: a restart of Doorward signs nobody out.
const page = protect(doorward, "message.read", {
	onRefused(error, req, res, next) {
		if (error instanceof Unauthenticated) return res.redirect(303, `/login?return=${encodeURIComponent("/board")}`);
		next(error);
	},
});

app.get("/board", page, (req, res) => {
	const { tenantId, email } = req.doorward;
	res.type("text").send([`Signed in as ${email}`, ...(boards.get(tenantId) ?? [])].join("\n"));
});

app.get("/board/messages", protect(doorward, "message.read"), (req, res) => {
	res.json(boards.get(req.doorward.tenantId) ?? []);
});

app.post("/board/messages", protect(doorward, "message.send"), express.text({ limit: "1kb" }), (req, res) => {
	const { tenantId, email } = req.doorward;
	boards.set(tenantId, [...(boards.get(tenantId) ?? []), `${email}: ${req.body}`]);
	res.sendStatus(201);
});

// Clearing the board can't be undone, so it needs a proof of identity that is at most 300
// seconds old: without it the answer is 403 step_up_required.
app.delete("/board/messages", protect(doorward, "settings.manage", { maxAge: 300 }), (req, res) => {
	boards.delete(req.doorward.tenantId);
	res.sendStatus(204);
});

app.use((error, req, res, next) => {
	if (res.headersSent || !(error instanceof DoorwardError)) return next(error);
	const { status, headers, body } = refusal(error);
	res.writeHead(status, headers).end(body);
});

const server = app.listen(Number(PORT), "127.0.0.1", () => {
	console.log(`The board is at http://127.0.0.1:${server.address().port}/board`);
});
