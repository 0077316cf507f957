import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { createElement as h } from "react";
import { renderToString } from "react-dom/server";
import { Client } from "@doorward/client";
import { currentSession } from "@doorward/client/check";
import { createStore, DoorwardProvider, RequirePermission, SignedIn, SignedOut, SignInLink, TenantSwitcher, UserButton, useSession } from "../react/index.js";
import { password, start } from "./server.mjs";

let server;
before(async () => { server = await start(); });
after(() => server.stop());

/** browser is a fetch with a cookie jar, as a browser on Doorward's origin has it. */
function browser() {
	let cookie = "";
	return async (path, options = {}) => {
		const response = await fetch(server.url + path, { ...options, headers: { ...options.headers, cookie } });
		for (const line of response.headers.getSetCookie()) if (line.startsWith("JSESSIONID=")) cookie = line.split(";")[0];
		return response;
	};
}

async function signedIn(role) {
	const send = browser();
	await send("/api/v2/auth/login", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ email: `${role}@acme.example`, password }) });
	return send;
}

const page = (store, props = { store }) => renderToString(h(DoorwardProvider, props,
	h(SignedIn, { fallback: h("i", null, "in?") }, h(Name)), h(SignedOut, null, "out"),
	h(RequirePermission, { action: "user.invite", fallback: h("i", null, "no invitations") }, "invite")));
const Name = () => useSession().user.email;

test("what is shown follows the session", async () => {
	const store = createStore({ fetch: await signedIn("owner") });
	assert.equal(page(store), "<i>in?</i><i>no invitations</i>");
	assert.equal((await store.refresh()).status, "signed-in");
	assert.equal(page(store).replace("<!-- -->", ""), "owner@acme.exampleinvite");
	await store.signOut();
	assert.equal(page(store), "<i>in?</i>out<i>no invitations</i>");
	assert.equal((await store.refresh()).status, "signed-out");
});

test("RequirePermission hides what the role doesn't grant", async () => {
	const store = createStore({ fetch: await signedIn("viewer") });
	await store.refresh();
	assert.equal(page(store), "viewer@acme.example<i>no invitations</i>");
});

// The server of a page knows who is signed in, so what it renders isn't "loading".
test("a page is rendered on the server with the session of its request", async () => {
	const doorward = new Client({ baseUrl: server.url });
	const { token } = await doorward.login({ email: "owner@acme.example", password });
	const request = (cookie) => ({ headers: new Headers(cookie && { cookie }) });
	const initialSession = await currentSession(doorward, request(`a=b; JSESSIONID=${token}`));
	assert.equal(initialSession.user.role, "OWNER");
	assert.equal(page(undefined, { initialSession }).replace("<!-- -->", ""), "owner@acme.exampleinvite");
	for (const nobody of [undefined, "JSESSIONID=short", `JSESSIONID=${"A".repeat(43)}`, `JSESSIONID=${token}; JSESSIONID=${"A".repeat(43)}`]) {
		assert.equal(await currentSession(doorward, request(nobody)), null, nobody);
	}
	assert.equal(await currentSession(doorward, { headers: { cookie: `JSESSIONID=${token}` } }).then((current) => current.user.role), "OWNER");
	assert.equal(page(undefined, { initialSession: null }), "<i>in?</i>out<i>no invitations</i>");

	const faults = [];
	const down = new Client({ baseUrl: "http://127.0.0.1:1", logger: (message, details) => faults.push(details.address) });
	assert.equal(await currentSession(down, request(`JSESSIONID=${token}`)), undefined);
	assert.deepEqual(faults, [down.baseUrl]);

	// While parts of the page are still compared with what the server rendered, the state may change.
	const store = createStore({ initialSession, fetch: async () => new Response('{"code":"unauthenticated"}', { status: 401 }) });
	store.subscribe(() => {});
	assert.equal((await store.refresh()).status, "signed-out");
	assert.equal(page(store).replace("<!-- -->", ""), "owner@acme.exampleinvite");
	assert.equal(store.getState().status, "signed-out");
});

test("baseUrl is put before the paths of Doorward's API only", async () => {
	const asked = [];
	const store = createStore({ baseUrl: "/platform/", fetch: async (address) => asked.push(address) && new Response("{}") });
	for (const path of ["/api/v2/users", "/board/messages", "/api/v1/orders", "https://shop.example/api/v2/x"]) await store.request(path);
	await store.refresh();
	assert.deepEqual(asked, ["/platform/api/v2/users", "/board/messages", "/api/v1/orders", "https://shop.example/api/v2/x", "/platform/api/v2/auth/session"]);
});

test("components", () => {
	const user = { id: "usr_1", email: "ann@acme.example", name: "Ann", tenantId: "tnt_1", tenantName: "Acme", permissions: [] };
	const signedIn = { user, session: {} };
	const render = (component, props, initialSession) => renderToString(h(DoorwardProvider, { baseUrl: "/platform", initialSession }, h(component, props)));
	assert.equal(render(SignInLink, {}, signedIn), '<a href="/platform/login" class="doorward-sign-in">Sign in</a>');
	assert.equal(render(SignInLink, { to: "/a?b=c", className: "x" }, null), '<a href="/platform/login" class="x">Sign in</a>');
	const menu = render(UserButton, { labels: { signOut: "Abmelden" }, children: h("li", null, "Help") }, signedIn);
	for (const text of ["<summary>Ann</summary>", "ann@acme.example", "Acme", 'href="/platform/account"', 'href="/platform/account/security"', "<li>Help</li>", ">Abmelden</button>"]) {
		assert.ok(menu.includes(text), `${text} in ${menu}`);
	}
	for (const component of [UserButton, TenantSwitcher]) {
		for (const initialSession of [null, undefined]) assert.equal(render(component, {}, initialSession), "");
	}
});

// A restart of Doorward signs nobody out.
test("a fault leaves the state as it was", async () => {
	const send = await signedIn("owner");
	let answer = send;
	const store = createStore({ fetch: (...args) => answer(...args) });
	await store.refresh();
	for (const fault of [
		async () => { throw new TypeError("fetch failed"); },
		async () => new Response('{"code":"unavailable","status":503}', { status: 503 }),
		async () => new Response("<h1>401</h1>", { status: 401 }),
		async () => new Response('{"code":"not_found"}', { status: 404 }),
		async () => new Response("{}", { status: 200 }),
	]) {
		answer = fault;
		assert.equal((await store.refresh()).status, "signed-in");
		assert.equal((await createStore({ fetch: fault }).refresh()).status, "unavailable");
	}
	await assert.rejects(store.signOut());
	assert.equal(store.getState().status, "signed-in");
});

// The browser's fetch rejects in the same way when nothing answers: then the store asks again.
test("an origin that isn't allowed is said, and not asked for ever", async () => {
	globalThis.location = { origin: "https://app.example.com" };
	const error = console.error;
	const said = [];
	console.error = (text) => said.push(text);
	const withheld = async (_, { mode }) => {
		if (mode !== "no-cors") throw new TypeError("Failed to fetch");
		return new Response();
	};
	const store = createStore({ baseUrl: "https://auth.example.com", fetch: withheld });
	store.subscribe(() => {});
	const hint = "Doorward is on another origin: set --allowed-origins https://app.example.com there";
	assert.deepEqual(await store.refresh(), { status: "unavailable", error: hint });
	await store.refresh();
	assert.deepEqual(said, [hint]);

	const down = async () => { throw new TypeError("Failed to fetch"); };
	for (const baseUrl of ["https://auth.example.com", "https://app.example.com", "/platform", ""]) {
		assert.deepEqual(await createStore({ baseUrl, fetch: down }).refresh(), { status: "unavailable" });
	}
	console.error = error;
	delete globalThis.location;
});

test("an answer that asks for a step-up leads to its page and back", async () => {
	let opened;
	globalThis.location = { href: "https://app.example/keys?page=2", assign: (to) => { opened = to; } };
	const store = createStore({ baseUrl: "/platform", fetch: async () => new Response('{"code":"step_up_required"}', { status: 403 }) });
	assert.equal((await store.request("/api/v2/api-keys", { method: "POST" })).status, 403);
	assert.equal(opened, "/platform/step-up?return=https%3A%2F%2Fapp.example%2Fkeys%3Fpage%3D2");
	store.signIn({ type: "click" });
	assert.equal(opened, "/platform/login?return=https%3A%2F%2Fapp.example%2Fkeys%3Fpage%3D2");
	store.signIn("/keys"); // of the application, not below Doorward's address
	assert.equal(opened, "/platform/login?return=https%3A%2F%2Fapp.example%2Fkeys");
	store.signIn("https://shop.example/");
	assert.equal(opened, "/platform/login?return=https%3A%2F%2Fshop.example%2F");
	opened = undefined;
	await createStore({ fetch: async () => new Response('{"code":"forbidden"}', { status: 403 }) }).request("/x");
	assert.equal(opened, undefined);
	delete globalThis.location;
});

test("the package has at most 5 KB compressed, reads no token, and is for browsers", async () => {
	const texts = await Promise.all(["index.js", "components.js"].map((name) => readFile(new URL(`../react/${name}`, import.meta.url))));
	const size = gzipSync(Buffer.concat(texts)).length;
	assert.ok(size <= 5120, `${size} bytes`);
	for (const text of texts.map(String)) {
		assert.doesNotMatch(text, /document\.cookie|localStorage|sessionStorage|authorization/i);
		assert.ok(text.startsWith('"use client";\n')); // else a server component can't import it
	}
});
