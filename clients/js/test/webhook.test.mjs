// Verifies the webhooks of a real server with npm's standardwebhooks, and receives them with this
// package: v1, also during the grace period of a new secret, and v1a, which that library lacks.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import express from "express";
import { Webhook } from "standardwebhooks";
import { InvalidWebhook, receive, verifyWebhook } from "@doorward/client/webhook";
import { password, start } from "./server.mjs";

let server, endpoint, session;
const received = [];

before(async () => {
	server = await start();
	endpoint = createServer(async (request, response) => {
		const body = Buffer.concat(await request.toArray());
		received.push({ headers: request.headers, body });
		response.writeHead(204).end();
	});
	await new Promise((done) => { endpoint.listen(0, "localhost", done); });
	session = (await post("/api/v2/auth/login", { email: "owner@acme.example", password })).token;
});
after(async () => {
	endpoint.close();
	await server.stop();
});

async function post(path, body) {
	const headers = { "Content-Type": "application/json", ...(session && { Authorization: `Bearer ${session}` }) };
	const response = await fetch(server.url + path, { method: "POST", headers, body: body && JSON.stringify(body) });
	assert.ok(response.ok, `${path}: ${response.status}`);
	return response.json();
}

test("standardwebhooks verifies the webhooks, with both secrets during the grace period", async () => {
	const { webhook, secret } = await post("/api/v2/webhooks", { url: `http://localhost:${endpoint.address().port}/`, events: ["user.*"] });
	const send = async () => {
		assert.equal((await post(`/api/v2/webhooks/${webhook.id}/test`)).status, 204);
		return received.at(-1);
	};
	const first = await send();
	assert.equal(new Webhook(secret).verify(first.body, first.headers).type, "webhook.test");
	for (const key of [secret, webhook.publicKey]) assert.equal(verifyWebhook(key, first.headers, first.body).type, "webhook.test");

	const changed = { ...first, body: Buffer.from(first.body.toString().replace("webhook.test", "webhook.past")) };
	assert.throws(() => new Webhook(secret).verify(changed.body, changed.headers), /No matching signature/);
	for (const key of [secret, webhook.publicKey]) assert.throws(() => verifyWebhook(key, changed.headers, changed.body), InvalidWebhook);

	const next = (await post(`/api/v2/webhooks/${webhook.id}/rotate-secret`, { graceHours: 1 })).secret;
	const second = await send();
	for (const valid of [secret, next]) new Webhook(valid).verify(second.body, second.headers);
	for (const valid of [secret, next, webhook.publicKey, [`whsec_${"A".repeat(32)}`, next]]) verifyWebhook(valid, second.headers, second.body);
	const last = (await post(`/api/v2/webhooks/${webhook.id}/rotate-secret`, { graceHours: 0 })).secret;
	const third = await send();
	new Webhook(last).verify(third.body, third.headers);
	assert.throws(() => new Webhook(next).verify(third.body, third.headers), /No matching signature/);
});

/** The messages of other senders, and those that came long ago, are refused. */
test("verifyWebhook refuses what isn't from Doorward now", async () => {
	const secret = `whsec_${Buffer.from("a secret of 24 characters").toString("base64")}`;
	const body = JSON.stringify({ type: "user.role", timestamp: "2031-03-10T09:31:12Z", data: { id: "evt_1" } });
	const at = new Date("2031-03-10T09:31:12Z");
	const headers = { "webhook-id": "evt_1", "webhook-timestamp": String(at / 1000), "webhook-signature": new Webhook(secret).sign("evt_1", at, body) };
	const verify = (changed = {}, seconds = 0) => verifyWebhook(secret, { ...headers, ...changed }, body, { now: () => Number(at) + 1000 * seconds });
	const { id, type, timestamp, data } = verify();
	assert.deepEqual([id, type, timestamp, data.id], ["evt_1", "user.role", at, "evt_1"]);
	assert.equal(verifyWebhook([secret], new Headers(headers), Buffer.from(body), { now: () => Number(at) }).id, "evt_1");
	assert.equal(verify({ "webhook-signature": `v1,AAAA v2,x ${headers["webhook-signature"]}` }).id, "evt_1");
	for (const seconds of [300, -300]) verify({}, seconds);
	for (const [changed, seconds] of [
		[{}, 301], [{}, -301], [{ "webhook-id": "evt_2" }], [{ "webhook-id": undefined }], [{ "webhook-timestamp": `${at / 1000}x` }], [{ "webhook-signature": "" }],
		[{ "webhook-signature": "v1," }], [{ "webhook-signature": headers["webhook-signature"].replace("v1,", "v1a,") }], [{ "webhook-timestamp": "" }],
	]) assert.throws(() => verify(changed, seconds), InvalidWebhook, JSON.stringify([changed, seconds]));
	for (const other of [undefined, "", "secret", "whsec_", "whsec_ä", [secret, "x"]]) assert.throws(() => verifyWebhook(other, headers, body), TypeError);
});

test("receive answers 204 when the message has been handled", async (t) => {
	const messages = [];
	let refusal;
	const app = express();
	let secret;
	app.post("/events", (req, res, next) => receive(secret, (message) => {
		if (refusal) throw refusal;
		messages.push(message);
	})(req, res, next));
	app.post("/raw", express.raw({ type: "*/*" }), (req, res, next) => receive(secret, (message) => messages.push(message))(req, res, next));
	app.post("/parsed", express.json(), (req, res, next) => receive(secret, () => {})(req, res, next));
	app.use((error, req, res, next) => { res.status(500).send(error.message); });
	const listening = app.listen(0, "localhost");
	await new Promise((done) => { listening.once("listening", done); });
	t.after(() => listening.close());
	const url = `http://localhost:${listening.address().port}`;
	const made = await post("/api/v2/webhooks", { url: `${url}/events`, events: ["user.*"] });
	secret = made.secret;
	const send = () => post(`/api/v2/webhooks/${made.webhook.id}/test`);
	assert.equal((await send()).status, 204);
	assert.deepEqual([messages.length, messages[0].type], [1, "webhook.test"]);
	refusal = new Error("the database is gone");
	assert.equal((await send()).status, 500);
	refusal = undefined;
	secret = `whsec_${"A".repeat(32)}`;
	assert.equal((await send()).status, 401);

	secret = made.secret;
	const body = '{"type":"user.role","timestamp":"2031-03-10T09:31:12Z","data":{}}';
	const now = new Date();
	const headers = { "content-type": "application/json", "webhook-id": "evt_1", "webhook-timestamp": String(Math.floor(now / 1000)), "webhook-signature": new Webhook(secret).sign("evt_1", now, body) };
	const sendTo = async (path, sent = body) => {
		const response = await fetch(url + path, { method: "POST", headers, body: sent });
		return [response.status, await response.text()];
	};
	assert.deepEqual(await sendTo("/raw"), [204, ""]);
	assert.equal((await sendTo("/events", "x".repeat((1 << 20) + 1)))[0], 413);
	assert.deepEqual(await sendTo("/parsed"), [500, "the body was parsed before receive got it: its signature can't be verified"]);
	assert.throws(() => receive(undefined, () => {}), TypeError);
});
