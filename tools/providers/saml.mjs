// What tests of providers of SAML share: a server with a session and keys of its own, and sign-ins by each way that a
// connection has.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";
import { inflateRawSync } from "node:zlib";
import { Browser, until } from "./setup.mjs";

export const people = {
	1: { id: "8f0d2c1e", email: "new@acme.example", name: "Nia New" },
	2: { id: "1b7a90d4", email: "admin@acme.example", name: "Ada Admin" },
};

/** newKey makes a key that signs, with its certificate (openssl). */
function newKey() {
	const folder = mkdtempSync(path.join(tmpdir(), "doorward-saml-"));
	try {
		const [key, cert] = ["key.pem", "cert.pem"].map((name) => path.join(folder, name));
		execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=provider", "-keyout", key, "-out", cert], { stdio: "ignore" });
		return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
	} finally {
		rmSync(folder, { recursive: true });
	}
}

/** fingerprint is that of a certificate, as Doorward shows it. */
export const fingerprint = ({ cert }) => createHash("sha256").update(new X509Certificate(cert).raw).digest("hex");

/** Provider is a server that signs in one person at a time without a page, and remembers that in a cookie. A maker's class
 * has metadata() and respond(). */
export class Provider {
	person = "1";
	asked = []; // requests for which somebody had to sign in, as texts
	ignoresForce = false; // it answers from its session also where it should ask
	first = newKey();
	second = newKey();
	published = [this.first]; // the keys whose certificates are in the metadata
	signing = this.first;
	sessions = new Map(); // when somebody signed in, ms, by cookie

	async start(files) {
		this.server = createServer({ key: readFileSync(files.key), cert: readFileSync(files.cert) }, (request, answer) => {
			this.serve(request, answer).catch((failure) => {
				console.error(failure);
				answer.destroy(failure);
			});
		}).listen(0, "127.0.0.1");
		await once(this.server, "listening");
		this.base = `https://localhost:${this.server.address().port}`;
		this.entityId = `${this.base}/entity`;
		this.metadataUrl = `${this.base}/metadata`;
		return this;
	}

	async serve(request, answer) {
		const address = new URL(request.url, this.base);
		if (address.pathname === "/metadata") {
			answer.setHeader("Content-Type", "application/samlmetadata+xml");
			return answer.end(await this.metadata(request));
		}
		assert.equal(address.pathname, "/sso");
		const query = Object.fromEntries(address.searchParams);
		const text = this.requestIn(query);
		const cookie = request.headers.cookie?.match(/\bidp=([^;]+)/)?.[1];
		if (!this.sessions.has(cookie) || /ForceAuthn="true"/.test(text) && !this.ignoresForce) {
			this.asked.push(text);
			const session = String(this.sessions.size);
			this.sessions.set(session, Date.now());
			answer.setHeader("Set-Cookie", `idp=${session}; Path=/`);
			return this.respond({ request, answer, address, query, at: Date.now() });
		}
		return this.respond({ request, answer, address, query, at: this.sessions.get(cookie) });
	}

	/** requestIn returns the text of the request; of none an empty one. */
	requestIn({ SAMLRequest }) { return SAMLRequest ? inflateRawSync(Buffer.from(SAMLRequest, "base64")).toString() : ""; }

	/** asks returns what the function does, and the requests for which somebody had to sign in meanwhile. */
	async asks(fn) {
		this.asked = [];
		const result = await fn();
		return { result, requests: this.asked };
	}

	stop() {
		this.server.closeAllConnections();
		this.server.close();
	}
}

/** connect makes a connection to the provider, tests it, and lets it sign in the people of acme.example. */
export async function connect({ owner, provider }, draft) {
	const connection = await owner.connect({ type: "saml", metadataUrl: provider.metadataUrl, jit: "domains", ...draft });
	assert.equal(connection.entityId, provider.entityId);
	assert.deepEqual(connection.certificates.map((c) => c.fingerprint), [fingerprint(provider.first)]);
	assert.equal(connection.spMetadataUrl, connection.spEntityId);
	const ours = await owner.send("GET", connection.spMetadataUrl);
	assert.equal(ours.status, 200, ours.text);
	await provider.register({ metadata: ours.text, connection });
	const { claims } = await owner.enable(connection, "acme.example");
	assert.ok(JSON.stringify(claims).includes(people[provider.person].email), JSON.stringify(claims));
	return connection;
}

/** signsIn makes an account, and signs it in once more, by the provider's session. */
export async function signsIn({ provider, doorward }, connection) {
	const browser = new Browser(doorward);
	const first = await provider.asks(() => browser.signIn(connection));
	assert.equal(first.requests.length, 1);
	assert.equal(first.result.user.email, people[1].email);
	assert.equal(first.result.user.role, "USER");
	assert.equal(first.result.session.connectionId, connection.id);
	assert.deepEqual(first.result.session.amr, ["fed"]);
	const second = await provider.asks(() => browser.signIn(connection));
	assert.deepEqual(second.requests, []);
	assert.equal(second.result.user.id, first.result.user.id);
	console.log("ok a new person, and the same once more");
	return browser;
}

/** joins joins an account that exists, by the domain. */
export async function joins({ provider, doorward }, connection) {
	provider.person = "2";
	const { user } = await new Browser(doorward).signIn(connection);
	assert.equal(user.email, people[2].email);
	assert.equal(user.role, "ADMIN");
	provider.person = "1";
	console.log("ok somebody who had an account");
}

/** end is where Doorward has answered for good. */
const end = (doorward) => (to) => to.startsWith(doorward.base) && !to.includes("/callback") && !to.includes("/start");

/** provesAgain proves a session again by ForceAuthn, which a sign-in of earlier doesn't, nor somebody else's. */
export async function provesAgain({ provider, doorward, owner }, connection, browser) {
	const session = async () => (await browser.call("GET", "/api/v2/auth/session")).session;
	const stepUp = async () => {
		const { startUrl } = await browser.call("POST", "/api/v2/auth/step-up/begin");
		await browser.open(startUrl, end(doorward));
		return owner.lastAttempt(connection);
	};
	const forget = () => browser.cookies.delete(new URL(provider.base).host);
	const before = await session();
	const { result, requests } = await provider.asks(stepUp);
	assert.deepEqual([result.kind, result.outcome, requests.length], ["step_up", "done", 1], JSON.stringify(result));
	assert.match(requests[0], /ForceAuthn="true"/);
	const after = await session();
	assert.ok(Date.parse(after.authAt) > Date.parse(before.authAt) && after.id === before.id, JSON.stringify({ before, after }));

	provider.person = "2";
	forget();
	assert.equal((await stepUp()).check, "sub");
	provider.person = "1";
	forget();
	if (provider.tellsWhen) {
		await stepUp();
		for (const id of provider.sessions.keys()) provider.sessions.set(id, Date.now() - 600_000);
		provider.ignoresForce = true;
		const { authAt } = await session();
		assert.equal((await stepUp()).check, "auth_time");
		assert.equal((await session()).authAt, authAt);
		provider.ignoresForce = false;
		forget();
	}
	console.log("ok a session is proved again, by ForceAuthn");
}

/** refused signs in, which has to be refused by the check. */
export async function refused({ doorward, owner }, connection, check) {
	const browser = new Browser(doorward);
	const answer = await browser.open(connection.startUrl, end(doorward));
	assert.equal(answer.status, 403, `${answer.status} ${answer.location ?? answer.text}`);
	const last = await owner.lastAttempt(connection);
	assert.equal(last.check, check, JSON.stringify(last));
	assert.equal((await browser.send("GET", "/api/v2/auth/session")).status, 401);
}

/** stolen: a response is good once, in the browser that has begun alone. */
export async function stolen({ doorward, owner }, connection) {
	const [victim, thief] = [new Browser(doorward), new Browser(doorward)];
	await victim.signIn(connection);
	for (const browser of [victim, thief]) {
		const again = await browser.post(victim.posted);
		assert.equal(again.status, 303, again.text);
		const answer = await browser.open(again.location, end(doorward));
		assert.ok(answer.status >= 400 && answer.status < 500, `${answer.status} ${answer.location}`);
	}
	const early = await victim.open(connection.startUrl, (to) => to.includes("/callback")); // posted, and not yet used
	await thief.open(connection.startUrl, (to) => to.startsWith("https:"));
	const answer = await thief.open(early.location, end(doorward));
	assert.ok(answer.status >= 400 && answer.status < 500, `${answer.status} ${answer.location}`);
	assert.equal((await thief.send("GET", "/api/v2/auth/session")).status, 401);
	console.log("ok a response once, in its own browser");
}

/** certificatesOf returns the fingerprints of the connection's certificates. */
export async function certificatesOf(owner, { id }) {
	return (await owner.call("GET", `/api/v2/sso/connections/${id}`)).certificates.map((c) => c.fingerprint);
}

/** swaps: the provider signs by a new key, which alone its metadata have; nobody here does anything. */
export async function swaps(world, connection) {
	const { provider, owner, doorward } = world;
	provider.published = [provider.second];
	provider.signing = provider.second;
	await until("the new certificate is read", () => new Browser(doorward).signIn(connection));
	assert.deepEqual(await certificatesOf(owner, connection), [fingerprint(provider.second)]);
	provider.signing = provider.first;
	await refused(world, connection, "certificate");
	provider.signing = provider.second;
	await new Browser(doorward).signIn(connection);
	console.log("ok a new certificate, and the old one is over");
}

/** overlaps: the provider publishes the next certificate before it signs by it; and one that was stolen is taken away,
 * though the metadata still have it. */
export async function overlaps(world, connection) {
	const { provider, owner, doorward } = world;
	const refresh = () => owner.call("POST", `/api/v2/sso/connections/${connection.id}/refresh`);
	provider.published = [provider.first, provider.second];
	await refresh();
	assert.deepEqual(new Set(await certificatesOf(owner, connection)), new Set(provider.published.map(fingerprint)));
	for (const key of provider.published) {
		provider.signing = key;
		await new Browser(doorward).signIn(connection);
	}
	await owner.call("PATCH", `/api/v2/sso/connections/${connection.id}`, { certificates: [fingerprint(provider.second)] });
	await refresh();
	assert.deepEqual(await certificatesOf(owner, connection), [fingerprint(provider.second)]);
	provider.signing = provider.first;
	await refused(world, connection, "certificate");
	provider.signing = provider.second;
	await new Browser(doorward).signIn(connection);
	console.log("ok two certificates, and one that is taken away");
}

/** unasked: a response that nobody has asked for opens nothing; the page leads to a sign-in that begins here. */
export async function unasked({ provider, doorward }, connection) {
	const browser = new Browser(doorward);
	const posted = await browser.post(await provider.unsolicited(browser));
	assert.equal(posted.status, 303, posted.text);
	const page = await browser.send("GET", posted.location, undefined, { accept: "text/html" });
	assert.equal(page.status, 200, page.text);
	assert.ok(page.text.includes(`/api/v2/auth/sso/${connection.id}/start`), page.text);
	assert.equal((await browser.send("GET", "/api/v2/auth/session")).status, 401);
	await browser.signIn(connection);
	console.log("ok a response that nobody has asked for");
}
