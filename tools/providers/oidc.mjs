// oidc-provider is certified by the OpenID Foundation, and strict: PKCE, one use of each code, registered
// redirects, client assertions by keys that it reads at jwksUrl.

import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { Browser, until } from "./setup.mjs";

const people = {
	1: { email: "new@acme.example", name: "Nia New" },
	2: { email: "admin@acme.example", name: "Ada Admin" },
};

/** signingKey makes a private key as a JSON Web Key. */
function signingKey(kid) {
	const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
	return { ...privateKey.export({ format: "jwk" }), kid, use: "sig", alg: "ES256" };
}

/** Lab is the provider's server. Whoever is asked signs in as person. */
class Lab {
	person = "1";
	asked = []; // sign-ins that were asked for: reasons of the prompt
	paths = []; // of all requests
	clients = [];
	keys = new Map(); // by kid

	static async start(Provider, files) {
		const lab = new Lab();
		lab.Provider = Provider;
		lab.server = createServer({ key: readFileSync(files.key), cert: readFileSync(files.cert) }, (request, answer) => {
			lab.serve(request, answer).catch((failure) => answer.destroy(failure));
		}).listen(0, "127.0.0.1");
		await once(lab.server, "listening");
		lab.issuer = `https://localhost:${lab.server.address().port}`;
		return lab;
	}

	/** configure starts the provider with its clients and the key, as if it were restarted. */
	configure(kid, changes) {
		if (!this.keys.has(kid)) this.keys.set(kid, signingKey(kid));
		this.provider = new this.Provider(this.issuer, {
			clients: this.clients.map((client) => ({ response_types: ["code"], grant_types: ["authorization_code"], id_token_signed_response_alg: "ES256", ...client })),
			jwks: { keys: [this.keys.get(kid)] },
			cookies: { keys: ["a key of the provider's cookies"] },
			ttl: { AccessToken: 600, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 }, // s
			pkce: { required: () => true },
			claims: { openid: ["sub", "amr"], email: ["email", "email_verified"], profile: ["name"] },
			conformIdTokenClaims: false, // else the address is at userinfo alone
			features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
			interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
			findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email_verified: true, ...people[id] }) }),
			loadExistingGrant: async ({ oidc }) => {
				const grant = new this.provider.Grant({ accountId: oidc.session.accountId, clientId: oidc.client.clientId });
				grant.addOIDCScope("openid email profile");
				await grant.save();
				return grant;
			},
			fetch: (address, { dispatcher, ...options }) => fetch(address, options), // Doorward is on loopback
			...changes,
		});
		this.callback = this.provider.callback();
	}

	async serve(request, answer) {
		this.paths.push(new URL(request.url, this.issuer).pathname);
		if (!request.url.startsWith("/interaction/")) return this.callback(request, answer);
		const { prompt } = await this.provider.interactionDetails(request, answer);
		this.asked.push(prompt);
		assert.equal(prompt.name, "login");
		return this.provider.interactionFinished(request, answer, { login: { accountId: this.person, amr: ["pwd", "otp"] } });
	}

	/** asks returns the reasons of the sign-ins that were asked for while the function ran. */
	async asks(fn) {
		this.asked = [];
		const result = await fn();
		return { result, reasons: this.asked.map((prompt) => prompt.reasons.join()) };
	}
}

/** test signs people in by connections of each kind, with one provider. */
export async function test({ doorward, owner, files, load }) {
	const { Provider } = await load("oidc-provider/lib/index.js");
	const lab = await Lab.start(Provider, files);
	try {
		lab.configure("first");
		const connections = {};
		for (const clientAuth of ["secret_basic", "secret_post", "private_key_jwt"]) {
			const secret = clientAuth === "private_key_jwt" ? undefined : "a secret: of + the / provider";
			const made = await owner.connect({ issuer: lab.issuer, clientId: clientAuth, clientAuth, jit: "domains", trustProviderFactor: true }, secret);
			lab.clients.push({
				client_id: clientAuth, client_secret: secret, redirect_uris: [made.callbackUrl],
				backchannel_logout_uri: made.backchannelLogoutUrl, backchannel_logout_session_required: true,
				token_endpoint_auth_method: clientAuth.replace("secret", "client_secret"), ...(!secret && { jwks_uri: made.jwksUrl, token_endpoint_auth_signing_alg: "ES256" }),
			});
			connections[clientAuth] = made;
		}
		lab.configure("first");
		for (const [clientAuth, connection] of Object.entries(connections)) {
			const { claims } = await owner.enable(connection, clientAuth === "private_key_jwt" && "acme.example");
			assert.equal(claims.email, people[1].email);
			console.log(`ok ${clientAuth}`);
		}
		const connection = connections.private_key_jwt;
		await withoutAddress(lab, owner, connection);
		lab.configure("first");
		const browser = new Browser(doorward);
		await signsIn(lab, browser, connection);
		await joins(lab, doorward, connection);
		await needsIss(lab, doorward, owner, connection);
		await provesAgain(lab, browser, owner, connection);
		await logsOut(lab, doorward, owner, connection);
		assert.ok(!lab.paths.some((asked) => asked.startsWith("/me")), "userinfo was asked");
		console.log("ok userinfo was not asked");
		await providerRotates(lab, browser, owner, connection);
		await doorwardRotates(doorward, lab, browser, connection);
	} finally {
		lab.server.closeAllConnections();
		lab.server.close();
	}
}

/** signsIn makes an account, and signs it in once more, by the provider's session. */
async function signsIn(lab, browser, connection) {
	const first = await lab.asks(() => browser.signIn(connection));
	assert.deepEqual(first.reasons, ["no_session"]);
	assert.equal(first.result.user.email, people[1].email);
	assert.equal(first.result.user.role, "USER");
	assert.equal(first.result.session.connectionId, connection.id);
	assert.deepEqual(first.result.session.amr, ["fed", "mfa"]);
	const second = await lab.asks(() => browser.signIn(connection));
	assert.deepEqual(second.reasons, []);
	assert.equal(second.result.user.id, first.result.user.id);
	console.log("ok a new person, with PKCE and private_key_jwt");
}

/** joins joins an account that exists, by the domain. */
async function joins(lab, doorward, connection) {
	lab.person = "2";
	const { user } = await new Browser(doorward).signIn(connection);
	assert.equal(user.email, people[2].email);
	assert.equal(user.role, "ADMIN");
	console.log("ok somebody who had an account");
}

/** needsIss: the provider names itself at the callback (RFC 9207), and an answer without that is refused. */
async function needsIss(lab, doorward, owner, connection) {
	const browser = new Browser(doorward);
	const back = await browser.open(connection.startUrl, (to) => to.includes("/callback?"));
	const address = new URL(back.location);
	assert.equal(address.searchParams.get("iss"), lab.issuer);
	address.searchParams.delete("iss");
	const refused = await browser.send("GET", address, undefined, { accept: "application/json" });
	assert.equal(refused.status, 403, refused.text);
	assert.equal((await owner.lastAttempt(connection)).check, "iss_parameter");
	console.log("ok iss is demanded");
}

/** provesAgain proves a session again, at a provider that would sign in without asking. Somebody else's sign-in
 * changes nothing. */
async function provesAgain(lab, browser, owner, connection) {
	const session = async () => (await browser.call("GET", "/api/v2/auth/session")).session;
	const stepUp = async () => {
		const { startUrl } = await browser.call("POST", "/api/v2/auth/step-up/begin");
		await browser.open(startUrl, (to) => to.startsWith(browser.doorward.base) && !to.includes("/callback?"));
		return owner.lastAttempt(connection);
	};
	lab.person = "1";
	const before = await session();
	const { result, reasons } = await lab.asks(stepUp);
	assert.deepEqual([result.kind, result.outcome, reasons.length], ["step_up", "done", 1]);
	assert.match(reasons[0], /login_prompt/);
	const asked = browser.seen.findLast((to) => to.pathname === "/auth").searchParams;
	assert.deepEqual([asked.get("prompt"), asked.get("max_age")], ["login", "0"]);
	const after = await session();
	assert.ok(Date.parse(after.authAt) > Date.parse(before.authAt) && after.id === before.id, JSON.stringify(after));

	lab.person = "2";
	browser.cookies.delete(new URL(lab.issuer).host);
	assert.equal((await stepUp()).check, "sub");
	assert.equal((await session()).authAt, after.authAt);
	lab.person = "1";
	browser.cookies.delete(new URL(lab.issuer).host);
	console.log("ok a session is proved again, by prompt=login and max_age=0");
}

/** logsOut: a logout at the provider ends the session by every way in, and no other one. */
async function logsOut(lab, doorward, owner, connection) {
	lab.person = "1";
	const [browser, other] = [new Browser(doorward), new Browser(doorward)];
	await browser.signIn(connection);
	await other.signIn(connection); // in another browser, by another session of the provider
	const page = await browser.send("GET", `${lab.issuer}/session/end`);
	const xsrf = page.text.match(/name="xsrf" value="([^"]+)"/)?.[1];
	assert.ok(xsrf, page.text);
	await browser.send("POST", `${lab.issuer}/session/end/confirm`, new URLSearchParams({ xsrf, logout: "yes" }));
	await until("the logout reaches Doorward", async () => {
		const last = await owner.lastAttempt(connection);
		assert.deepEqual([last.kind, last.outcome, last.check], ["revoke", "done", undefined]);
	});
	for (const [method, where, body] of [
		["GET", "/api/v2/auth/session"], ["GET", "/api/v2/access/check?action=message.read"], ["POST", "/api/v2/auth/token", { audience: "x" }], ["GET", "/api/v2/auth/memberships"],
	]) {
		const refused = await browser.send(method, where, body);
		assert.equal(refused.status, 401, `${method} ${where}: ${refused.status} ${refused.text}`);
	}
	const account = await browser.send("GET", "/account", undefined, { accept: "text/html", "sec-fetch-mode": "navigate" });
	assert.match(account.location ?? "", /\/login/);
	await other.call("GET", "/api/v2/auth/session");
	await browser.signIn(connection);
	console.log("ok a logout at the provider ends its session here");
}

/** providerRotates: the provider signs by another key, without a notice. Doorward reads its keys again, at most
 * once a minute. */
async function providerRotates(lab, browser, owner, connection) {
	lab.configure("second");
	await until("the provider's next key", async () => {
		try {
			await browser.signIn(connection);
		} catch (failure) {
			assert.equal((await owner.lastAttempt(connection)).check, "kid");
			throw failure;
		}
	});
	console.log("ok the provider's next key");
}

/** doorwardRotates: the next key of the connection is published a day before it signs, and the last one a day
 * longer. The day is taken from the rows. */
async function doorwardRotates(doorward, lab, browser, connection) {
	const day = 24 * 60 * 60 * 1_000_000;
	const published = async () => (await browser.call("GET", connection.jwksUrl)).keys.map((key) => key.kid);
	const signIn = async () => {
		lab.configure("another"); // as a day later: what the provider has read is forgotten
		await browser.signIn(connection);
	};
	const [first] = await published();
	await doorward.restart(`UPDATE connection_keys SET signs_from = signs_from - ${90 * day}, created_at = created_at - ${90 * day}`);
	const both = await until("the next key is published", async () => {
		const kids = await published();
		assert.equal(kids.length, 2);
		return kids;
	});
	assert.ok(both.includes(first));
	await signIn();
	await doorward.restart(`UPDATE connection_keys SET signs_from = signs_from - ${day} WHERE id <> '${first}'`);
	await signIn();
	await doorward.restart(`UPDATE connection_keys SET ends_at = ends_at - ${3 * day} WHERE id = '${first}'`);
	assert.deepEqual(await published(), both.filter((kid) => kid !== first));
	await signIn();
	console.log("ok the connection's next key");
}

/** withoutAddress: a provider that names the address at userinfo alone is told apart at the test. */
async function withoutAddress(lab, owner, connection) {
	lab.configure("first", { conformIdTokenClaims: true });
	const test = await owner.test(connection);
	assert.equal(test.status, "failed");
	assert.equal(test.checks.at(-1).advice, "email_claim");
	console.log("ok an address at userinfo alone is not asked for");
}
