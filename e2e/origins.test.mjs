// Pages of another origin that may use the API, and browsers whose requests don't say where they
// come from (Sec-Fetch-Site).

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { after, before, test } from "node:test";
import { Person, Server, password } from "./harness.mjs";

const programs = [];

/** serve answers requests on a free port of localhost until the tests end, and returns its origin. */
async function serve(answer) {
	const server = createServer(answer).listen(0, "localhost");
	programs.push(server);
	await once(server, "listening");
	return `http://localhost:${server.address().port}`;
}

after(async () => {
	for (const program of programs.reverse()) await new Promise((done) => { program.close(done); program.closeAllConnections?.(); });
});

let app;
before(async () => {
	app = await serve((_, response) => response.setHeader("Content-Type", "text/html").end("<!doctype html><link rel=icon href=\"data:,\"><p>app"));
});

/** call sends a request to the API from the page, as an application does, and returns its answer. */
const call = (page, server, where, options = {}) => page.evaluate(async ([address, options]) => {
	const response = await fetch(address, { credentials: "include", headers: { "content-type": "application/json" }, ...options });
	return { status: response.status, id: response.headers.get("x-request-id"), body: response.status === 204 ? null : await response.json() };
}, [server.url + where, options]);

test("a page of an allowed origin signs in and out", async () => {
	const server = await Server.start("--allowed-origins", app);
	try {
		const p = await Person.create(server.url, "desktop-light-en");
		await p.page.goto(app);
		const login = { method: "POST", body: JSON.stringify({ email: "owner@acme.example", password }) };
		assert.equal((await call(p.page, server, "/api/v2/auth/login", login)).status, 200);
		const session = await call(p.page, server, "/api/v2/auth/session");
		assert.equal(session.body.user.email, "owner@acme.example");
		assert.match(session.id, /^req_/);
		assert.equal((await call(p.page, server, "/api/v2/auth/logout", { method: "POST" })).status, 204);
		assert.equal((await call(p.page, server, "/api/v2/auth/session").catch(() => ({}))).status, 401);
		await p.context.close();
	} finally {
		await server.stop();
	}
});

test("a page of another origin reads nothing", async () => {
	const server = await Server.start();
	try {
		const p = await Person.create(server.url, "desktop-light-en");
		await p.page.goto(app);
		await assert.rejects(call(p.page, server, "/api/v2/auth/session"), /Failed to fetch/);
		await p.context.close();
	} finally {
		await server.stop();
	}
});

// As Safari before 16.4, and proxies that drop what they don't know.
test("forms are taken without fetch metadata", async () => {
	let port;
	const proxy = await serve((incoming, answer) => {
		const headers = Object.fromEntries(Object.entries(incoming.headers).filter(([name]) => !name.startsWith("sec-")));
		incoming.pipe(request({ host: "localhost", port, method: incoming.method, path: incoming.url, headers }, (from) => {
			answer.writeHead(from.statusCode, from.headers);
			from.pipe(answer);
		}));
	});
	const held = createServer().listen(0, "localhost");
	await once(held, "listening");
	port = held.address().port;
	await new Promise((done) => { held.close(done); });
	const server = new Server();
	await server.begin("--listen", `localhost:${port}`, "--base-url", proxy);
	try {
		const p = await Person.create(proxy, "desktop-light-en");
		await p.signIn("owner@acme.example", password);
		await p.at("/account");
		await p.send("/logout");
		await p.at("/login");
		await p.context.close();
	} finally {
		await server.stop();
	}
});
