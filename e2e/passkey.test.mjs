// Passkeys in Chromium, with its virtual authenticator.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { Person, Server, first, password } from "./harness.mjs";

let server;
before(async () => { server = await Server.start(); });
after(() => server.stop());

/** Key is the virtual authenticator of a person's browser. */
class Key {
	static async of(person) {
		person.hasAuthenticator = true;
		const k = new Key();
		k.cdp = await person.context.newCDPSession(person.page);
		await k.cdp.send("WebAuthn.enable");
		const options = { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true };
		({ authenticatorId: k.id } = await k.cdp.send("WebAuthn.addVirtualAuthenticator", { options }));
		return k;
	}

	/** touches sets whether the person confirms each request at once, or never. */
	touches(enabled) { return this.cdp.send("WebAuthn.setAutomaticPresenceSimulation", { authenticatorId: this.id, enabled }); }

	async credentials() { return (await this.cdp.send("WebAuthn.getCredentials", { authenticatorId: this.id })).credentials; }

	/** rewind sets the signature counter back, as on a copied authenticator. */
	async rewind() {
		const [one] = await this.credentials();
		await this.cdp.send("WebAuthn.removeCredential", { authenticatorId: this.id, credentialId: one.credentialId });
		await this.cdp.send("WebAuthn.addCredential", { authenticatorId: this.id, credential: { ...one, signCount: 1 } });
	}

	async sync() {
		const [one] = await this.credentials();
		await this.cdp.send("WebAuthn.setCredentialProperties", { authenticatorId: this.id, credentialId: one.credentialId, backupEligibility: true, backupState: true });
	}
}

/** answer begins a login with a passkey, and returns what the person's browser answers on the
 * page that is open. */
async function answer(p) {
	const { challenge, publicKey } = await server.api("POST", "/api/v2/auth/passkey/begin", {});
	const credential = await p.page.evaluate(async (json) => {
		const options = PublicKeyCredential.parseRequestOptionsFromJSON(json);
		return (await navigator.credentials.get({ publicKey: options })).toJSON();
	}, publicKey);
	return { challenge, credential };
}

/** finish sends an answer, and returns the status or the code of the refusal. */
async function finish(body) {
	const response = await fetch(`${server.url}/api/v2/auth/passkey/finish`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
	return (await response.json()).code ?? response.status;
}

/** startOtherSite starts a site on the same host and another port: the browser answers there, too,
 * because the RP ID is the same. */
async function startOtherSite() {
	const site = createServer((_, response) => response.end("<!doctype html><title>Other</title>"));
	await new Promise((done) => { site.listen(0, "localhost", done); });
	site.unref(); // a failure before it is closed ends the run, which would wait for it
	return { url: `http://localhost:${site.address().port}/`, close: () => new Promise((done) => { site.close(done); site.closeAllConnections(); }) };
}

const passkeyForm = "form.passkey:not([hidden])";

async function signOut(p) {
	await p.context.clearCookies({ name: "JSESSIONID" });
}

/** setUp makes a passkey on the security page, up to sending the browser's answer. */
async function setUp(p, name) {
	await p.go("/account/security");
	await p.send("/account/security/passkey");
	await p.page.waitForSelector(passkeyForm);
	await p.look("passkey");
	await p.page.locator(`${passkeyForm} [name=name]`).fill(name);
	await p.page.locator(`${passkeyForm} [type=submit]`).click();
}

const people = { "phone-dark-de": "admin@acme.example", "desktop-light-de": "user@acme.example" };

describe("passkeys", { concurrency: 2 }, () => {
	for (const [screen, email] of first(Object.entries(people))) {
		test(`on ${screen}`, async () => {
			const p = await Person.create(server.url, screen);
			const key = await Key.of(p);
			await p.signIn(email, password);
			await p.at("/account");

			await setUp(p, "Laptop");
			await p.page.waitForSelector("ol.codes");
			const recovery = await p.page.locator("ol.codes code").allInnerTexts();
			assert.equal(recovery.length, 10);
			await p.go("/account/security");
			await p.says("#factors", /Laptop/);
			await p.look("security-passkey");

			// The same authenticator makes no second passkey.
			await setUp(p, "Again");
			await p.page.waitForSelector(`${passkeyForm} [role=alert]:not([hidden])`);
			assert.equal((await key.credentials()).length, 1);

			// By autofill: the authenticator answers as soon as the page offers it.
			await signOut(p);
			await p.go("/login");
			await p.at("/account");

			// By the button.
			await signOut(p);
			await key.touches(false);
			await p.go("/login");
			await p.page.waitForSelector(passkeyForm);
			await p.look("login-passkey");
			await key.touches(true);
			await p.page.locator(`${passkeyForm} [type=submit]`).click();
			await p.at("/account");

			// An account that the browser remembers, and that signed in by its passkey, is offered it first.
			await signOut(p);
			await key.touches(false);
			await p.go("/login");
			assert.equal(await p.page.locator(".accounts .choice").count(), 0, "an address is remembered that nobody has asked to");
			await p.page.locator("[name=keep]").check();
			await p.send("/login", { email, password });
			await p.at("/login/second");
			await key.touches(true);
			await p.page.locator(`${passkeyForm} [type=submit]`).click();
			await p.at("/account");
			await signOut(p);
			await key.touches(false);
			await p.go("/login");
			await p.page.waitForSelector(".accounts .choice");
			await p.look("login-accounts");
			await key.touches(true);
			await p.page.locator(`${passkeyForm} [type=submit]`).click();
			await p.at("/account");
			await signOut(p);
			await key.touches(false);
			await p.go("/login");
			await p.page.locator(".accounts .choice").click();
			await p.page.waitForSelector(`${passkeyForm} + form[action$='/login']`);
			assert.equal(await p.page.locator("#email").inputValue(), email);
			await p.look("login-chosen");
			await key.touches(true);
			await p.page.locator(`${passkeyForm} [type=submit]`).click();
			await p.at("/account");

			// Sent twice, and made for another origin.
			const sent = await answer(p);
			assert.equal(await finish(sent), 200);
			assert.equal(await finish(sent), "challenge_over");
			const site = await startOtherSite();
			await p.go(site.url);
			assert.equal(await finish(await answer(p)), "invalid_code");
			await site.close();

			// As the second step after the password.
			await signOut(p);
			await key.touches(false);
			await p.signIn(email, password);
			await p.at("/login/second");
			await p.look("second-passkey");
			await key.touches(true);
			await p.page.locator(`${passkeyForm} [type=submit]`).click();
			await p.at("/account");

			// A step-up.
			await p.go("/step-up?return=/account/security");
			await p.look("step-up-passkey");
			await p.page.locator(`${passkeyForm} [type=submit]`).click();
			await p.at("/account/security");

			// The passkey becomes synced, and still works.
			await key.sync();
			await signOut(p);
			await p.go("/login");
			await p.at("/account");
			await p.go("/account/security");
			assert.equal(await p.page.locator("#factors .tag").count(), 2);

			// A copy is refused, and the passkey disabled.
			await key.rewind();
			await signOut(p);
			await p.go("/login");
			await p.page.waitForSelector("#alert");
			await key.touches(false);
			await p.signIn(email, password);
			await p.at("/login/second");
			assert.equal(await p.page.locator(passkeyForm).count(), 0);
			await p.send("/login/second", { recoveryCode: recovery[0] });
			await p.at("/account");
			await p.go("/account/security");
			assert.equal(await p.page.locator("#factors .tag").count(), 3);
			await p.look("security-copied");

			// After its removal the password alone signs in again.
			await p.page.locator("#factors a[href*='/account/security/remove/']").click();
			await p.page.locator("form[action*='/account/security/remove/'] [type=submit]").click();
			await p.page.waitForSelector("[role=status]");
			await key.touches(true);
			await signOut(p);
			await p.go("/login");
			await p.page.waitForSelector("#alert"); // the passkey is unknown
			await key.touches(false);
			await p.signIn(email, password);
			await p.at("/account");
			await p.context.close();
		});
	}

	test("as the first factor, where one is demanded", async () => {
		const owner = await server.api("POST", "/api/v2/auth/login", { email: "owner@acme.example", password });
		await server.api("PATCH", "/api/v2/tenant", { settings: { mfa: "required", mfaRoles: ["VIEWER"] } }, owner.token);
		const p = await Person.create(server.url, "phone-light-en");
		await Key.of(p);
		await p.signIn("viewer@acme.example", password);
		await p.at("/login/enrol");
		await p.look("enrol-passkey");
		await p.send("/login/enrol/passkey");
		await p.page.waitForSelector(passkeyForm);
		await p.page.locator(`${passkeyForm} [type=submit]`).click();
		await p.page.waitForSelector("ol.codes");
		await p.go("/account/security");
		assert.equal(await p.page.locator("#factors li").count(), 1);
		await p.context.close();
	});

	test("without scripts", async () => {
		const p = await Person.create(server.url, "desktop-dark-en", { javaScriptEnabled: false });
		await p.signIn("owner@acme.example", password);
		await p.at("/account");
		await p.go("/account/security");
		await p.send("/account/security/passkey");
		await p.says(".no-passkey", /need scripts/);
		assert.equal(await p.page.locator("form.passkey").isVisible(), false);
		await p.context.close();
	});
});
