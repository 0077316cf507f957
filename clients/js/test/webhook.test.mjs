// Verifies the webhooks of a real server with npm's standardwebhooks, as Node services do: v1,
// also during the grace period of a new secret. The library has no v1a, which is verified with
// Node's own Ed25519 here.

import assert from "node:assert/strict";
import { createPublicKey, verify } from "node:crypto";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Webhook } from "standardwebhooks";
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

/** isSignedByKey verifies the signature v1a of a message with the webhook's public key. */
function isSignedByKey({ headers, body }, publicKey) {
	const raw = Buffer.from(publicKey.replace(/^whpk_/, ""), "base64");
	const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: raw.toString("base64url") }, format: "jwk" });
	const content = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`), body]);
	const signature = headers["webhook-signature"].split(" ").find((s) => s.startsWith("v1a,")).slice("v1a,".length);
	return verify(null, content, key, Buffer.from(signature, "base64"));
}

test("standardwebhooks verifies the webhooks, with both secrets during the grace period", async () => {
	const { webhook, secret } = await post("/api/v2/webhooks", { url: `http://localhost:${endpoint.address().port}/`, events: ["user.*"] });
	const send = async () => {
		assert.equal((await post(`/api/v2/webhooks/${webhook.id}/test`)).status, 204);
		return received.at(-1);
	};
	const first = await send();
	assert.equal(new Webhook(secret).verify(first.body, first.headers).type, "webhook.test");
	assert.ok(isSignedByKey(first, webhook.publicKey), "v1a");

	const changed = { ...first, body: Buffer.from(first.body.toString().replace("webhook.test", "webhook.past")) };
	assert.throws(() => new Webhook(secret).verify(changed.body, changed.headers), /No matching signature/);
	assert.ok(!isSignedByKey(changed, webhook.publicKey), "v1a of another body");

	const next = (await post(`/api/v2/webhooks/${webhook.id}/rotate-secret`, { graceHours: 1 })).secret;
	const second = await send();
	for (const valid of [secret, next]) new Webhook(valid).verify(second.body, second.headers);
	assert.ok(isSignedByKey(second, webhook.publicKey), "v1a after the rotation");
	const last = (await post(`/api/v2/webhooks/${webhook.id}/rotate-secret`, { graceHours: 0 })).secret;
	const third = await send();
	new Webhook(last).verify(third.body, third.headers);
	assert.throws(() => new Webhook(next).verify(third.body, third.headers), /No matching signature/);
});
