// The middleware of Express and Fastify, before a real Doorward and without one.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import express from "express";
import fastify from "fastify";
import { Client } from "@doorward/client";
import { protect as protectExpress } from "@doorward/client/express";
import { protect as protectFastify } from "@doorward/client/fastify";
import { password, start } from "./server.mjs";

let server, doorward, tokens;
before(async () => {
	server = await start();
	const key = await server.createServiceKey("access.introspect");
	doorward = new Client({ baseUrl: server.url, key, logger() {} });
	tokens = {};
	for (const role of ["owner", "viewer"]) tokens[role] = (await doorward.login({ email: `${role}@acme.example`, password })).token;
});
after(() => server.stop());

const identityWithClaim = (identity, headers) => ({ ...identity, claimed: headers["x-auth-user"] });

const services = {
	async express(client, options) {
		const app = express();
		app.all("/messages", protectExpress(client, "message.send", options), (req, res) => { res.json(identityWithClaim(req.doorward, req.headers)); });
		app.all("/me", protectExpress(client, undefined, options), (req, res) => { res.json(identityWithClaim(req.doorward, req.headers)); });
		app.all("/misspelt", protectExpress(client, "mesage.send", options));
		const listening = await new Promise((done) => { const s = createServer(app).listen(0, "127.0.0.1", () => done(s)); });
		return { url: `http://127.0.0.1:${listening.address().port}`, close: () => { listening.close(); } };
	},
	async fastify(client, options) {
		const app = fastify();
		app.all("/messages", { onRequest: protectFastify(client, "message.send", options) }, async (request) => identityWithClaim(request.doorward, request.headers));
		app.all("/me", { onRequest: protectFastify(client, undefined, options) }, async (request) => identityWithClaim(request.doorward, request.headers));
		app.all("/misspelt", { onRequest: protectFastify(client, "mesage.send", options) }, async () => "");
		return { url: await app.listen({ port: 0, host: "127.0.0.1" }), close: () => app.close() };
	},
};

for (const [framework, serve] of Object.entries(services)) {
	for (const via of ["check", "introspection"]) {
		test(`${framework}, by ${via}`, async (t) => {
			const service = await serve(doorward, { via });
			t.after(service.close);
			const call = async (path, headers, method = "GET") => {
				const response = await fetch(service.url + path, { method, headers });
				return { status: response.status, headers: response.headers, body: await response.json() };
			};
			const cookie = (token) => ({ cookie: `JSESSIONID=${token}` });
			const owner = await call("/messages", { ...cookie(tokens.owner), "x-auth-user": "usr_forged" }, "POST");
			assert.equal(owner.status, 200, JSON.stringify(owner.body));
			assert.deepEqual([owner.body.email, owner.body.role, owner.body.aal], ["owner@acme.example", "OWNER", 1]);
			assert.equal(owner.body.claimed, undefined);
			assert.match(owner.body.sessionId, /^ses_/);

			assert.equal((await call("/me", { authorization: `Bearer ${tokens.viewer}` })).body.role, "VIEWER");
			assert.equal((await call("/me", { cookie: `JSESSIONID=tomcat; JSESSIONID=${tokens.viewer}; a=b` })).body.role, "VIEWER");

			const viewer = await call("/messages", cookie(tokens.viewer));
			assert.deepEqual([viewer.status, viewer.body.code, viewer.body.instance], [403, "forbidden", undefined]);
			const misspelt = await call("/misspelt", cookie(tokens.owner));
			assert.deepEqual([misspelt.status, misspelt.body.code], [403, "unknown_action"]);

			for (const headers of [{}, { cookie: "JSESSIONID=short" }, { authorization: "Basic YTpi" }, { authorization: "Bearer" }, { authorization: "Bearer a b" }, { authorization: `Bearer ${"a".repeat(5_000)}` }, { ...cookie(tokens.owner), authorization: "Bearer" }, cookie("A".repeat(43)), { ...cookie(tokens.owner), authorization: `Bearer ${tokens.owner}` }]) {
				const refused = await call("/me", headers);
				assert.deepEqual([refused.status, refused.body.code, refused.headers.get("www-authenticate")], [401, "unauthenticated", 'Bearer realm="doorward"'], JSON.stringify(headers));
			}

			for (const [headers, method] of [[{ "sec-fetch-site": "cross-site" }, "POST"], [{ origin: "https://evil.example" }, "POST"], [{ origin: "https://evil.example", "sec-websocket-key": "x" }, "GET"]]) {
				const refused = await call("/me", { ...cookie(tokens.owner), ...headers }, method);
				assert.deepEqual([refused.status, refused.body.code], [403, "cross_origin"], JSON.stringify(headers));
			}
		});
	}

	test(`${framework} asks for a proof`, async (t) => {
		const service = await serve(doorward, { aal: 2, maxAge: 60 });
		t.after(service.close);
		const response = await fetch(`${service.url}/me`, { headers: { cookie: `JSESSIONID=${tokens.owner}` } });
		await assert.rejects(serve(doorward, { aal: 2, via: "introspection" }), TypeError);
		assert.deepEqual([response.status, (await response.json()).code], [403, "step_up_required"]);
		assert.equal(response.headers.get("www-authenticate"), 'Bearer realm="doorward", error="insufficient_user_authentication", acr_values="aal2", max_age="60"');
	});

	test(`${framework} answers 503 for every fault, and never 401`, async (t) => {
		const other = createServer((_, res) => res.writeHead(401, { "content-type": "text/html" }).end("who?"));
		await new Promise((done) => other.listen(0, "127.0.0.1", done));
		t.after(() => other.close());
		const clients = [new Client({ baseUrl: "http://127.0.0.1:1", key: "dws_x", logger() {} }), new Client({ baseUrl: `http://127.0.0.1:${other.address().port}`, key: "dws_x", logger() {} })];
		for (const client of [...clients, new Client({ baseUrl: server.url, key: `dws_${"a".repeat(49)}`, logger() {} })]) {
			for (const via of client.baseUrl === server.url ? ["introspection"] : ["check", "introspection"]) {
				const service = await serve(client, { via });
				t.after(service.close);
				const response = await fetch(`${service.url}/me`, { headers: { cookie: `JSESSIONID=${tokens.owner}` } });
				assert.deepEqual([response.status, (await response.json()).code], [503, "unavailable"], `${via} at ${client.baseUrl}`);
				assert.match(response.headers.get("retry-after"), /^[0-9]+$/);
			}
		}
	});
}

test("a caller with an API key has no user", async (t) => {
	const owner = doorward.as(tokens.owner);
	const { key, apiKey } = await owner.post("/api/v2/api-keys", { name: "backup", permissions: ["message.read"] });
	const service = await services.express(doorward, {});
	t.after(service.close);
	const body = await (await fetch(`${service.url}/me`, { headers: { authorization: `Bearer ${key}` } })).json();
	assert.deepEqual([body.keyId, body.userId, body.aal], [apiKey.id, "", 0]);
});

test("onRefused answers in place of a problem", async (t) => {
	const service = await services.express(doorward, { onRefused: (error, req, res) => res.writeHead(302, { location: `${doorward.baseUrl}/login` }).end() });
	t.after(service.close);
	const response = await fetch(`${service.url}/me`, { redirect: "manual" });
	assert.equal(response.status, 302);
});
