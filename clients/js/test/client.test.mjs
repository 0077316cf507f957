import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Client, Conflict, DoorwardError, Forbidden, Invalid, NotFound, Unauthenticated, Unavailable } from "@doorward/client";
import { Verifier } from "@doorward/client/assertion";
import { startDoorward } from "@doorward/client/test";
import { audience, password, start } from "./server.mjs";

let server, doorward;
before(async () => {
	server = await start();
	doorward = new Client({ baseUrl: server.url });
});
after(() => server.stop());

const signedIn = async (role) => doorward.as((await doorward.login({ email: `${role}@acme.example`, password })).token);

test("a session from login to logout", async () => {
	const { token, user } = await doorward.login({ email: "owner@acme.example", password });
	const owner = doorward.as(token);
	assert.equal((await owner.session()).user.id, user.id);
	assert.equal(await owner.logout(), undefined);
	await assert.rejects(owner.session(), Unauthenticated);
});

test("each kind of refusal is a class", async () => {
	await assert.rejects(doorward.login({ email: "owner@acme.example", password: "not the password" }), (error) => {
		assert.ok(error instanceof Unauthenticated && error instanceof DoorwardError);
		assert.equal(error.code, "invalid_credentials");
		assert.match(error.requestId, /./);
		return true;
	});
	const [owner, viewer] = [await signedIn("owner"), await signedIn("viewer")];
	await assert.rejects(viewer.invite({ email: "x@acme.example", role: "USER" }), Forbidden);
	await assert.rejects(owner.get("/api/v2/users/{id}", { params: { id: "usr_none" } }), NotFound);
	await owner.invite({ email: "twice@acme.example", role: "USER" });
	await assert.rejects(owner.invite({ email: "twice@acme.example", role: "USER" }), (error) => error instanceof Conflict && error.code === "invitation_pending");
	await assert.rejects(owner.invite({ email: "no address", role: "USER" }), (error) => error instanceof Invalid && error.errors[0].pointer === "/email");
});

// Uncaught, an error is all that a log has.
test("the text of an error names what is wrong in which member", async () => {
	const owner = await signedIn("owner");
	await assert.rejects(owner.invite({ email: "no address", role: "USER" }), (error) => error.message.startsWith(error.problem.detail) && error.message.includes(`\n/email: ${error.errors[0].message}`));
	await assert.rejects(owner.get("/api/v2/users", { query: { limit: 1000 } }), /\nlimit: ./);
});

test("a repeated invitation is made once", async () => {
	const owner = await signedIn("owner");
	const invite = () => owner.invite({ email: "again@acme.example", role: "VIEWER" }, { idempotencyKey: "one-key" });
	assert.equal((await invite()).id, (await invite()).id);
});

test("all pages of a list", async () => {
	const owner = await signedIn("owner");
	for (let i = 0; i < 5; i++) await owner.invite({ email: `page${i}@acme.example`, role: "USER" });
	const seen = [];
	for await (const invitation of owner.list("/api/v2/invitations", { query: { limit: 2 } })) seen.push(invitation.id);
	assert.ok(seen.length >= 5 && new Set(seen).size === seen.length, seen);
});

test("a value of the path stays one segment", async () => {
	const owner = await signedIn("owner");
	await assert.rejects(owner.get("/api/v2/users/{id}", { params: { id: "../tenant" } }), NotFound);
	await assert.rejects(owner.get("/api/v2/users/{id}", { params: { id: ".." } }), TypeError);
});

// Whatever answers in place of Doorward says nothing about the credential.
test("only a problem from Doorward is a refusal", async () => {
	for (const [status, type, body] of [
		[401, "text/html", "<h1>Who are you?</h1>"], [401, "application/problem+json", "{}"], [403, "application/json", '{"code":"forbidden"}'],
		[404, "text/plain", "no"], [302, "text/html", ""], [502, "text/html", ""], [200, "application/json", "{"],
		[401, "application/problem+json", '{"status":200,"code":"unauthenticated"}'],
	]) {
		const other = createServer((_, res) => res.writeHead(status, { "content-type": type, location: "/elsewhere" }).end(body));
		await new Promise((done) => other.listen(0, "127.0.0.1", done));
		await assert.rejects(new Client({ baseUrl: `http://127.0.0.1:${other.address().port}` }).session(), Unavailable, `${status} ${type}`);
		other.close();
	}
	await assert.rejects(new Client({ baseUrl: "http://127.0.0.1:1" }).session(), (error) => error instanceof Unavailable && error.status === 503);
});

test("a base URL with a password is refused", () => {
	for (const baseUrl of ["ftp://x.example", "http://a:b@x.example", "http://x.example/?a", "http://x.example/#a"]) {
		assert.throws(() => new Client({ baseUrl }), TypeError);
	}
});

test("assertions verify offline", async () => {
	const owner = await signedIn("owner");
	const { assertion } = await owner.post("/api/v2/auth/token", { audience });
	const verifier = new Verifier(doorward, audience);
	const verified = await verifier.verify(assertion);
	const { user, session } = await owner.session();
	assert.deepEqual([verified.subject, verified.tenantId, verified.role, verified.sessionId], [user.id, user.tenantId, "OWNER", session.id]);
	assert.ok(verified.authTime instanceof Date && verified.expiresAt > new Date());

	const internal = server.url.replace("localhost", "127.0.0.1");
	await assert.rejects(new Verifier(new Client({ baseUrl: internal }), audience).verify(assertion), /another issuer/);
	await new Verifier(new Client({ baseUrl: internal, publicUrl: `${server.url}/` }), audience).verify(assertion);

	const [header, claims, signature] = assertion.split(".");
	const withClaims = (change) => Buffer.from(JSON.stringify({ ...JSON.parse(Buffer.from(claims, "base64url")), ...change })).toString("base64url");
	const none = Buffer.from('{"alg":"none","typ":"doorward+jwt"}').toString("base64url");
	for (const bad of [
		undefined, "", "a.b.c", `${header}.${claims}`, `${header}.${claims}.`, `${none}.${claims}.`, `${header}.${withClaims({ role: "OWNER ", exp: 9e9 })}.${signature}`,
		`${header}.${claims}.${Buffer.alloc(64).toString("base64url")}`, `${assertion}.x`, `${assertion}=`, header.replace(/^./, "!") + assertion.slice(header.length),
	]) {
		await assert.rejects(verifier.verify(bad), Unauthenticated, String(bad));
	}
	await assert.rejects(new Verifier(doorward, "https://other.example").verify(assertion), /another audience/);
	await assert.rejects(new Verifier(doorward, audience, { now: () => Date.now() + 31_000 }).verify(assertion), /expired/);
	await assert.rejects(new Verifier(new Client({ baseUrl: "http://127.0.0.1:1" }), audience).verify(assertion), Unavailable);
});

test("the kit for tests names a missing program, and one that ends", async (t) => {
	const { DOORWARD_BIN, PATH } = process.env;
	t.after(() => Object.assign(process.env, { DOORWARD_BIN, PATH }));
	await assert.rejects(startDoorward({ flags: ["--session-idle", "0s"] }), /dev ended with 3/);
	process.env.DOORWARD_BASE_URL = "https://auth.example"; // not meant for the server of a test
	t.after(() => { delete process.env.DOORWARD_BASE_URL; });
	const own = await startDoorward();
	assert.equal((await (await own.signIn("viewer")).session()).user.role, "VIEWER");
	await own.stop();
	Object.assign(process.env, { DOORWARD_BIN: "", PATH: "/nowhere" });
	await assert.rejects(startDoorward(), /set DOORWARD_BIN/);
});
