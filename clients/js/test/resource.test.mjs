// A tenant's policy that reads the resource: guards leave it to the handler, which asks with the
// resource.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import express from "express";
import fastify from "fastify";
import { Client, Forbidden, StepUpRequired, Unauthenticated, Unavailable } from "@doorward/client";
import { check } from "@doorward/client/check";
import { protect as protectExpress } from "@doorward/client/express";
import { protect as protectFastify } from "@doorward/client/fastify";
import { password, startDoorward } from "@doorward/client/test";
import { model, policy } from "./server.mjs";

const invoice = (amount) => ({ type: "invoice", id: "17", properties: { amount } });

let server, doorward, admin, tokens, apiKey;
before(async () => {
	server = await startDoorward({ model });
	doorward = new Client({ baseUrl: server.url, key: await server.createServiceKey("access.introspect", "access.evaluate") });
	const owner = await server.signIn("owner");
	await owner.put("/api/v2/policy", { text: policy }, { headers: { "if-match": "*" } });
	apiKey = (await owner.post("/api/v2/api-keys", { name: "payments", permissions: ["invoice.pay"], role: "ADMIN" })).key;
	admin = await server.signIn("admin");
	tokens = {};
	for (const role of ["owner", "admin", "viewer"]) tokens[role] = (await doorward.login({ email: `${role}@acme.example`, password })).token;
});
after(() => server.stop());

const request = (token) => ({ method: "POST", headers: { authorization: `Bearer ${token}` } });

const guards = {
	async express(options) {
		const app = express().use(protectExpress(doorward, "invoice.pay", options), (req, res) => { res.end(req.doorward.role); });
		const listening = app.listen(0, "127.0.0.1");
		await new Promise((done) => { listening.once("listening", done); });
		return { url: `http://127.0.0.1:${listening.address().port}`, close: () => listening.close() };
	},
	async fastify(options) {
		const app = fastify();
		app.get("/", { onRequest: protectFastify(doorward, "invoice.pay", options) }, async (req) => req.doorward.role);
		return { url: await app.listen({ port: 0, host: "127.0.0.1" }), close: () => app.close() };
	},
};

for (const [name, guard] of Object.entries(guards)) {
	test(`${name} leaves the policy to the handler`, async (t) => {
		for (const via of ["check", "introspection"]) {
			const ask = async (options) => {
				const { url, close } = await guard({ via, ...options });
				t.after(close);
				const response = await fetch(url, { headers: { authorization: `Bearer ${tokens.admin}` } });
				return [response.status, await response.text()];
			};
			assert.equal((await ask({}))[0], 403, via);
			assert.deepEqual(await ask({ resource: "deferred" }), [200, "ADMIN"], via);
			await assert.rejects(guard({ via, resource: invoice(1) }), TypeError);
		}
	});
}

test("check asks with the resource, for sessions and API keys", async () => {
	for (const via of ["check", "introspection"]) {
		const pay = (token, resource, ip) => check(doorward, request(token), "invoice.pay", { via, resource, ip });
		assert.equal((await pay(tokens.admin, invoice(1000))).role, "ADMIN");
		await assert.rejects(pay(tokens.admin, invoice(1001)), (error) => error instanceof Forbidden && error.code === "denied_by_policy"
			&& error.problem.policyId === "large" && error.message === "Large invoices are paid by the OWNER.");
		assert.equal((await pay(tokens.owner, invoice(1001))).role, "OWNER");
		assert.match((await pay(apiKey, invoice(1000))).keyId, /^key_/);
		await assert.rejects(pay(apiKey, invoice(1001)), Forbidden);
		await assert.rejects(pay(tokens.viewer, invoice(1)), (error) => error instanceof Forbidden && error.code === "forbidden");
		await assert.rejects(pay("A".repeat(43), invoice(1)), Unauthenticated);
		assert.equal((await pay(tokens.admin, invoice(9), "192.0.2.7")).role, "ADMIN");
		for (const ip of ["198.51.100.7", undefined]) await assert.rejects(pay(tokens.admin, invoice(9), ip), Forbidden);
		await assert.rejects(pay(tokens.admin), Forbidden, "without a resource");
	}
	await assert.rejects(check(doorward, request(tokens.admin), undefined, { resource: invoice(1) }), TypeError);
	// What is misspelt would leave something unchecked.
	for (const options of [{ resource: "Deferred" }, { resource: true }, { resource: { type: "invoice" } }, { resource: null }, { via: "introspect" }, { via: "introspection", maxAge: 60 }, { via: "introspection", aal: 2 }, { via: "introspection", touch: false }, { touch: "false" }, { touch: null }]) {
		await assert.rejects(check(doorward, request(tokens.admin), "invoice.pay", options), TypeError, JSON.stringify(options));
		for (const guard of [protectExpress, protectFastify]) assert.throws(() => guard(doorward, "invoice.pay", options), TypeError);
	}
	await assert.rejects(check(doorward, request(tokens.admin), "invoice.pay", { resource: invoice(1), touch: false }), TypeError);
	await assert.rejects(check(new Client({ baseUrl: server.url }), request(tokens.admin), "invoice.pay", { resource: invoice(1) }), TypeError);
	const fetched = new Request("https://shop.example/pay", { method: "POST", headers: { cookie: `a=b; JSESSIONID=${tokens.admin}` } });
	assert.equal((await check(doorward, fetched, "invoice.pay", { resource: invoice(1000) })).email, "admin@acme.example");
});

test("a check with touch false says that it is no use of the session", async () => {
	const asked = [];
	const client = new Client({ baseUrl: server.url, fetch: (address, options) => asked.push(new URL(address).search) && fetch(address, options) });
	for (const touch of [undefined, true, false]) await check(client, request(tokens.admin), "invoice.pay", { resource: "deferred", touch });
	const use = "?action=invoice.pay&resource=deferred";
	assert.deepEqual(asked, [use, use, `${use}&touch=false`]);
});

// Doorward has judged the origin of the request, and knows --allowed-origins.
test("a page of an allowed origin is asked about a resource", async (t) => {
	const app = "http://localhost:5173";
	const own = await startDoorward({ model, flags: ["--allowed-origins", app] });
	t.after(() => own.stop());
	const client = new Client({ baseUrl: own.url, key: await own.createServiceKey("access.evaluate", "access.introspect") });
	const { token } = await client.login({ email: "admin@acme.example", password });
	const pay = (origin, via) => check(client, { method: "POST", headers: { cookie: `JSESSIONID=${token}`, origin, "sec-fetch-site": "same-site" } }, "invoice.pay", { resource: invoice(1), via });
	assert.equal((await pay(app)).role, "ADMIN");
	const isCrossOrigin = (error) => error instanceof Forbidden && error.code === "cross_origin";
	await assert.rejects(pay("http://localhost:3000"), isCrossOrigin);
	await assert.rejects(pay(app, "introspection"), isCrossOrigin); // of which Doorward sees no origin
});

test("can asks by ids alone", async () => {
	const { user } = await admin.session();
	const identity = { userId: user.id, tenantId: user.tenantId };
	assert.deepEqual(await doorward.can(identity, "invoice.pay", invoice(10)), { allowed: true });
	assert.deepEqual(await doorward.can(identity, "invoice.pay", invoice(1001)), { allowed: false, policyId: "large", reason: "Large invoices are paid by the OWNER." });
	assert.equal((await doorward.can(identity, "invoice.pay", invoice(9), { ip: "192.0.2.1", time: new Date() })).allowed, true);
	assert.equal((await doorward.can(identity, "user.invite")).allowed, true);
	assert.equal((await doorward.can(tokens.owner, "invoice.pay", invoice(1001))).allowed, true);
	await assert.rejects(doorward.can({ tenantId: user.tenantId }, "message.send"), TypeError);
	await assert.rejects(new Client({ baseUrl: server.url, key: "dws_x" }).can(identity, "message.send"), (error) => error instanceof Unavailable && error.code === "service_key_refused");
});

test("a decision that needs a step-up says so", async () => {
	const other = createServer((req, res) => {
		const isCheck = req.url.startsWith("/api/v2/access/check");
		const identity = { "x-auth-user": "usr_1", "x-auth-tenant": "tnt_1", "x-auth-role": "USER", "x-auth-email": "a@b.example", "x-auth-session": "ses_1" };
		res.writeHead(200, isCheck ? identity : { "content-type": "application/json" })
			.end(isCheck ? "" : JSON.stringify({ decision: false, context: { reason: "x", stepUp: { acr: "aal2", maxAge: 600, methods: ["totp"] } } }));
	}).listen(0, "127.0.0.1");
	await new Promise((done) => { other.once("listening", done); });
	const client = new Client({ baseUrl: `http://127.0.0.1:${other.address().port}`, key: "dws_x" });
	await assert.rejects(check(client, request(tokens.owner), "invoice.pay", { resource: invoice(1) }), (error) => error instanceof StepUpRequired && error.problem.maxAge === 600);
	other.close();
});
