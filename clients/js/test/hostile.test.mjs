// What callers may send, and what may answer in Doorward's place.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { inspect } from "node:util";
import express from "express";
import { Client, Unauthenticated, Unavailable } from "@doorward/client";
import { Verifier } from "@doorward/client/assertion";
import { check } from "@doorward/client/check";
import { protect } from "@doorward/client/express";
import { protect as protectFastify } from "@doorward/client/fastify";

const token = "A".repeat(43);
const identity = { "x-auth-user": "usr_1", "x-auth-tenant": "tnt_1", "x-auth-role": "USER", "x-auth-email": "ann@acme.example", "x-auth-session": "ses_1", "x-auth-aal": "1" };

async function listen(t, handler) {
	const server = createServer(handler);
	await new Promise((done) => server.listen(0, "127.0.0.1", done));
	t.after(() => { server.close(); server.closeAllConnections(); });
	return `http://127.0.0.1:${server.address().port}`;
}

/** startStub starts a server in Doorward's place that records its requests. */
async function startStub(t, answer) {
	const asked = [];
	const url = await listen(t, (req, res) => {
		asked.push({ ...req.headers, url: req.url });
		answer(res, asked.length);
	});
	return { asked, url, doorward: new Client({ baseUrl: url, key: "dws_x", logger() {} }) };
}

/** ask sends raw bytes, since fetch refuses such headers, and resolves to status and body. */
function ask(url, lines) {
	return new Promise((resolve, reject) => {
		let text = "";
		const socket = connect(new URL(url).port, "127.0.0.1", () => { socket.write(Buffer.from(["GET / HTTP/1.1", "Host: a", "Connection: close", ...lines, "", ""].join("\r\n"), "latin1")); });
		socket.on("data", (chunk) => { text += chunk.toString("latin1"); }).on("error", reject);
		socket.on("end", () => resolve({ status: Number(text.slice(9, 12)), body: text }));
	});
}

test("Doorward is sent what it needs of a request, and nothing else", async (t) => {
	const { asked, doorward } = await startStub(t, (res) => res.writeHead(200, identity).end());
	const app = express();
	app.use(protect(doorward), (req, res) => { res.json([req.headers["x-auth-user"] ?? "none", req.rawHeaders.join()]); });
	const service = await listen(t, app);
	const forwardedOf = async (...lines) => {
		assert.equal((await ask(service, lines)).status, 200, lines.join());
		return asked.at(-1);
	};

	const plain = await forwardedOf();
	assert.match(plain["x-request-id"], /^req_/);
	assert.deepEqual([plain["x-forwarded-method"], plain["x-forwarded-for"], plain.cookie], ["GET", "127.0.0.1", undefined]);
	assert.equal((await forwardedOf("X-Request-Id: mine-1"))["x-request-id"], "mine-1");
	assert.match((await forwardedOf("X-Request-Id: a b"))["x-request-id"], /^req_/);

	assert.equal((await forwardedOf(`Cookie: a=b; JSESSIONID=tomcat; JSESSIONID=${token}`))["cookie"], `JSESSIONID=${token}`);
	// A neighbouring host can set a cookie of such a name, even where ours is named __Host-….
	for (const name of ["\xa0JSESSIONID", "\x85JSESSIONID", "JSESSIONID ", "jsessionid"]) assert.equal((await forwardedOf(`Cookie: ${name}=${token}`)).cookie, undefined, name);
	// Only four bits of the last character count; Doorward ignores other spellings.
	assert.equal((await forwardedOf(`Cookie: JSESSIONID=${"A".repeat(42)}B; JSESSIONID=${token}`)).cookie, `JSESSIONID=${token}`);

	assert.equal((await forwardedOf("Authorization: Basic YTpi")).authorization, undefined);
	assert.equal((await forwardedOf(`Authorization: bEARER ${"x".repeat(9_000)}`)).authorization.length, 512);
	assert.equal((await forwardedOf("X-Forwarded-For: 192.0.2.7", "X-Forwarded-For: 198.51.100.1"))["x-forwarded-for"], "192.0.2.7, 198.51.100.1, 127.0.0.1");
	app.set("trust proxy", true); // then Express takes the first address for the caller's
	assert.equal((await forwardedOf("X-Forwarded-For: 192.0.2.7"))["x-forwarded-for"], "192.0.2.7, 127.0.0.1");
	assert.match((await forwardedOf(`X-Forwarded-For: ${"192.0.2.7,".repeat(800)}`))["x-forwarded-for"], /^(192\.0\.2\.7, ){7}127\.0\.0\.1$/);
	const addressless = await listen(t, (req, res) => protect(doorward, undefined, { ip: "unix" })(req, res, () => res.end()));
	assert.equal((await ask(addressless, ["X-Forwarded-For: 192.0.2.7"])).status, 200);
	assert.equal(asked.at(-1)["x-forwarded-for"], undefined);
	assert.equal((await forwardedOf("Sec-WebSocket-Key: x", "Origin: https://evil.example"))["x-forwarded-method"], "POST");

	const claimed = await ask(service, ["X-Auth-User: usr_forged", "X_Auth_Role: OWNER"]);
	assert.doesNotMatch(claimed.body, /forged|OWNER/);
	assert.equal(asked.at(-1)["x-auth-user"], undefined);
});

test("introspection asks only about a single, well-formed credential", async (t) => {
	const { asked, doorward } = await startStub(t, (res) => res.writeHead(200, { "content-type": "application/json" }).end('{"active":false}'));
	const service = await listen(t, protect(doorward, undefined, { via: "introspection" }));
	for (const lines of [
		["Authorization: Bearer"], ["Authorization: Bearer a b"], ["Authorization: Bearer a\tb"], ["Authorization: Bearer \xe9"], [`Authorization: Bearer ${"x".repeat(9_000)}`],
		[`Cookie: JSESSIONID=${token}`, "Authorization: Bearer"], [`Cookie: JSESSIONID=${token}; JSESSIONID=${"E".repeat(43)}`], [`Cookie: \xa0JSESSIONID=${token}`],
	]) {
		assert.equal((await ask(service, lines)).status, 401, lines.join());
		assert.equal(asked.length, 0, lines.join());
	}
	assert.equal((await ask(service, ["Authorization: Bearer   a"])).status, 401);
	assert.equal(asked.length, 1);
});

// What isn't a decision about the caller is 503, also with onRefused.
test("other refusals of a check are faults", async (t) => {
	for (const [status, code] of [[400, "invalid_query"], [404, "not_found"], [409, "conflict"], [410, "gone"], [413, "body_too_large"], [422, "validation_failed"], [500, "internal"]]) {
		const { doorward } = await startStub(t, (res) => res.writeHead(status, { "content-type": "application/problem+json" }).end(JSON.stringify({ status, code })));
		for (const via of ["check", "introspection"]) {
			const service = await listen(t, protect(doorward, undefined, { via, onRefused: (error, req, res) => res.writeHead(error.status).end(error.constructor.name) }));
			const response = await fetch(service, { headers: { cookie: `JSESSIONID=${token}` } });
			assert.deepEqual([response.status, await response.text()], [503, "Unavailable"], `${via} ${status}`);
		}
	}
});

test("a check is tried again after Retry-After, and not before", async (t) => {
	const { doorward } = await startStub(t, (res, n) => (n === 1 ? res.writeHead(503, { "retry-after": "1" }).end() : res.writeHead(200, identity).end()));
	const service = await listen(t, express().use(protect(doorward), (req, res) => { res.end(); }));
	const began = performance.now();
	assert.equal((await fetch(service)).status, 200);
	assert.ok(performance.now() - began >= 1_000);

	const { doorward: dated } = await startStub(t, (res) => res.writeHead(503, { "retry-after": new Date(Date.now() + 3_600_000).toUTCString() }).end());
	await assert.rejects(dated.session(), ({ retryAfter }) => retryAfter > 3_400 && retryAfter <= 3_601);
	for (const retryAfter of ["60", "9".repeat(400), "-1", "soon"]) {
		const { doorward } = await startStub(t, (res) => res.writeHead(503, { "retry-after": retryAfter }).end());
		const service = await listen(t, protect(doorward));
		const response = await fetch(service);
		assert.deepEqual([response.status, response.headers.get("retry-after")], [503, retryAfter === "60" ? "60" : "1"], retryAfter);
	}
});

test("an error of onRefused goes to next", async (t) => {
	const { doorward } = await startStub(t, (res) => res.writeHead(503).end());
	const broken = protect(doorward, undefined, { onRefused: async () => { throw new Error("broken"); } });
	const service = await listen(t, (req, res) => broken(req, res, (fault) => res.writeHead(500).end(fault.message)));
	assert.equal(await (await fetch(service)).text(), "broken");
});

test("a page of another program is no answer", async (t) => {
	for (const [type, body] of [["text/html", "<h1>Welcome</h1>"], ["application/json", "{"], ["application/json", "[]"]]) {
		const { doorward } = await startStub(t, (res) => res.writeHead(200, { "content-type": type }).end(body));
		await assert.rejects(doorward.list("/api/v2/users").next(), Unavailable, body);
	}
});

test("what can't be a credential is not sent", async (t) => {
	const { asked, doorward } = await startStub(t, (res) => res.writeHead(204).end());
	for (const bad of ["a b", "a\nX-Auth-User: b", "é"]) {
		await assert.rejects(doorward.as(bad).session(), (error) => error instanceof Unauthenticated && !error.message.includes(bad));
	}
	await assert.rejects(new Client({ baseUrl: doorward.baseUrl, key: "dws a" }).introspect({ credential: token }), Unavailable);
	assert.equal(asked.length, 0);
	await doorward.as("from-a-file\n").logout();
	assert.equal(asked[0].authorization, "Bearer from-a-file");
	await assert.rejects(doorward.get(".evil.example/"), TypeError);
});

/** unsigned returns an assertion with the header, without claims and with a false signature. */
const unsigned = (header) => [header, {}].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".") + `.${"A".repeat(86)}`;

test("unreadable keys are Unavailable, a missing key is Unauthenticated", async (t) => {
	const assertion = unsigned({ alg: "ES256", typ: "doorward+jwt", kid: "k" });
	for (const [body, kind] of [["{}", Unavailable], ['{"keys":{}}', Unavailable], ["<html>", Unavailable], ['{"keys":[null,{"kty":"EC","crv":"P-256","kid":"k","x":"!","y":"!"}]}', Unauthenticated]]) {
		const { doorward, asked } = await startStub(t, (res) => res.writeHead(200, { "content-type": "application/json" }).end(body));
		const verifier = new Verifier(doorward, "https://reports.example");
		await assert.rejects(verifier.verify(assertion), kind, body);
		for (const alg of ["none", "HS256", "RS256", "es256"]) await assert.rejects(verifier.verify(unsigned({ alg, typ: "doorward+jwt", kid: "k" })), Unauthenticated);
		assert.equal(asked.length, 1, body);
	}
});

test("keys are read once for many unknown ones, and again after five seconds", async (t) => {
	const { doorward, asked } = await startStub(t, (res) => res.writeHead(200, { "content-type": "application/json" }).end('{"keys":[]}'));
	let now = 1_000_000;
	const verifier = new Verifier(doorward, "https://reports.example", { now: () => now });
	const verifyUnknown = () => Promise.all(Array.from({ length: 20 }, (_, i) => (
		assert.rejects(verifier.verify(unsigned({ alg: "ES256", typ: "doorward+jwt", kid: `k${i}` })), Unauthenticated))));
	await verifyUnknown();
	assert.equal(asked.length, 1);
	now += 4_999;
	await verifyUnknown();
	assert.equal(asked.length, 1);
	now += 1;
	await verifyUnknown();
	assert.equal(asked.length, 2);
});

test("a wrong address of Doorward is named when the client is made", () => {
	for (const baseUrl of [undefined, null, "", "auth.example", "ftp://auth.example", "https://u:p@auth.example", "https://auth.example/?x"]) {
		assert.throws(() => new Client({ baseUrl }), { name: "TypeError", message: /^baseUrl must be http or https/ });
	}
	assert.throws(() => new Client(), { message: /^baseUrl must be/ });
	assert.throws(() => new Client({ baseUrl: "https://auth.example", publicUrl: "x" }), { message: /^publicUrl must be/ });
});

// Next.js keeps answers of fetch otherwise.
test("no answer comes from a cache", async () => {
	const modes = [];
	const send = async (address, { cache }) => {
		modes.push(cache);
		return new Response('{"keys":[]}', { status: 200, headers: { "content-type": "application/json" } });
	};
	const doorward = new Client({ baseUrl: "https://auth.example", key: "dws_x", fetch: send });
	await doorward.session();
	await doorward.introspect({ credential: token });
	await assert.rejects(new Verifier(doorward, "https://reports.example").verify(unsigned({ alg: "ES256", typ: "doorward+jwt", kid: "k" })), Unauthenticated);
	assert.deepEqual(modes, ["no-store", "no-store", "no-store"]);
});

test("faults are logged with address, action and cause, refusals are not", async (t) => {
	const logged = [];
	const logger = (message, details) => logged.push([message, details]);
	const down = new Client({ baseUrl: "http://127.0.0.1:1", key: "dws_x", logger });
	const request = { method: "GET", headers: { cookie: `JSESSIONID=${token}` } };
	for (const via of ["check", "introspection"]) await assert.rejects(check(down, request, "message.send", { via }), Unavailable);
	const answers = [[404, "not_found"], [422, "validation_failed", [{ pointer: "/action" }]], [403, "forbidden"], [401, "unauthenticated"]];
	const { doorward } = await startStub(t, (res) => {
		const [status, code, errors] = answers.shift();
		res.writeHead(status, { "content-type": "application/problem+json" }).end(JSON.stringify({ status, code, errors }));
	});
	const stub = new Client({ baseUrl: doorward.baseUrl, logger });
	for (let left = 4; left > 0; left--) await assert.rejects(check(stub, request, "message.send"));
	assert.deepEqual(logged.map(([, { address, action, code }]) => [address, action, code]), [
		[down.baseUrl, "message.send", "unavailable"], [down.baseUrl, "message.send", "unavailable"], [stub.baseUrl, "message.send", "unavailable"], [stub.baseUrl, "message.send", "unknown_action"],
	]);
	assert.ok(logged[0][1].cause.cause instanceof Error, "why fetch failed");
	assert.ok(logged.every(([message, { cause }]) => /^Doorward: the access check failed: /.test(message) && cause instanceof Error));
	assert.doesNotMatch(inspect(logged, { depth: 9 }), new RegExp(token));

	t.mock.method(console, "warn", () => {}); // the default
	await assert.rejects(check(new Client({ baseUrl: down.baseUrl }), request), Unavailable);
	assert.equal(console.warn.mock.callCount(), 1);
});

test("without a key nothing is asked as a service", async () => {
	const keyless = new Client({ baseUrl: "https://auth.example" });
	assert.throws(() => keyless.asService(), { name: "TypeError", message: /key/ });
	for (const guard of [protect, protectFastify]) assert.throws(() => guard(keyless, "message.send", { via: "introspection" }), TypeError);
	await assert.rejects(keyless.introspect({ credential: token }), TypeError);
	await assert.rejects(keyless.can(token, "message.send", { type: "tenant", id: "tnt_1" }), TypeError);
});
