// Every journey through the pages, on a phone and a desktop, light and dark, in
// English and German. npm ci && node --test; scripts/e2e.sh does both.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Person, Server, chosen, everyScreen, first, onScreens, password, until } from "./harness.mjs";

onScreens("journeys", everyScreen, ({ server, create, journey }) => {
	journey("from the first page to the first login of an invited person", async () => {
		const owner = await create();
		await owner.go("/");
		await owner.look("start");
		await owner.page.locator("button[value='owner@acme.example']").click();
		await owner.send("/dev/invite", { email: "ann@acme.example" });
		await until("the mail", async () => await owner.page.locator("a[href*='/accept#token=']").count() > 0 || !await owner.page.reload());
		await owner.look("start-invited");
		await owner.page.locator("a[href*='/accept#token=']").first().click();
		await owner.page.waitForSelector("form[action$='/accept/register']");
		assert.ok(!owner.page.url().includes("token"), "the code stays in the address bar");
		await owner.look("accept-new");

		const field = owner.page.locator("[name=password]");
		await field.fill("ann ann");
		assert.equal(await owner.page.locator("[data-rule].kept").count(), 1, "too short, not repeated, without the address");
		await field.fill("ann@acme.example!");
		assert.equal(await owner.page.locator("[data-rule=words].kept").count(), 0);
		// Counted like the server: a combining accent counts 0, and a llama 1.
		const longest = "e\u0301".repeat(64) + "🦙".repeat(64);
		await field.fill(longest);
		assert.equal(await owner.page.locator("[data-rule=length].kept").count(), 1, "128 characters");
		await field.fill(`${longest}!`);
		assert.equal(await owner.page.locator("[data-rule=length].kept").count(), 0, "129 characters");
		assert.equal(await owner.page.locator("[data-rule=words].kept").count(), 1);
		await owner.look("accept-new-too-long");
		await field.fill(" \u200b\u3164\ufe0f".repeat(3));
		assert.equal(await owner.page.locator("[data-rule=length].kept").count(), 0, "nothing to be seen");
		await field.fill(chosen);
		assert.equal(await owner.page.locator("[data-rule].kept").count(), 2);
		await owner.look("accept-new-hints");
		await owner.send("/accept/register", { password: "short", confirmPassword: "other" });
		await owner.look("accept-new-refused");
		assert.equal(await owner.page.locator("[aria-invalid=true]").count(), 2);
		await owner.send("/accept/register", { password: chosen, confirmPassword: chosen });
		await owner.at("/account"); // signed in at once
		await owner.says(".top", /ann@acme\.example/);
		assert.equal(await owner.page.evaluate(() => document.cookie.includes("JSESSIONID")), false, "a script sees the session");
		await owner.look("account-new");
	});

	journey("a login that fails doesn't reveal whether there is an account", async () => {
		const p = await create();
		await p.go("/account");
		await p.at("/login");
		await p.look("login");
		const messages = [];
		for (const [email, secret] of [["owner@acme.example", "wrong"], ["nobody@acme.example", "wrong"], ["no address", "wrong"]]) {
			await p.page.locator("form[action$='/login']").evaluate((form) => { form.noValidate = true; });
			await p.send("/login", { email, password: secret });
			messages.push(await p.page.locator("[role=alert]").innerText());
		}
		assert.equal(new Set(messages).size, 1, messages.join("\n"));
		await p.look("login-refused");
		for (let mails = 0; mails < 4; mails++) {
			await p.go("/forgot");
			await p.send("/forgot", { email: "nobody@acme.example" });
		}
		await p.says("[role=alert]", /60 (minutes|Minuten)/);
		await p.look("forgot-later");
		await p.go("/login");
		await p.send("/login", { email: "user@acme.example", password });
		await p.at("/account");
	});

	journey("the account: name, password, sessions", async () => {
		const p = await create();
		const second = await create();
		const third = await create();
		for (const one of [p, second, third]) await one.signIn("viewer@acme.example", password);
		await p.go("/account");
		await p.send("/account/name", { name: "Vera الله" });
		assert.equal(await p.page.locator("[name=name]").inputValue(), "Vera الله");
		await p.look("account");
		await p.go("/account?tab=sessions");
		await p.look("account-sessions");
		await p.page.locator("form[action*='/sessions/end?'] button.plain").nth(1).click();
		await p.page.waitForSelector("[role=status]");
		assert.equal(await p.page.locator("#sessions tbody tr").count(), 2);
		await p.go("/account/security");
		await p.page.locator("#password summary").click();
		await p.send("/account/password", { currentPassword: "wrong", password: chosen, confirmPassword: chosen });
		await p.look("account-password-refused");
		await p.send("/account/password", { currentPassword: password, password: chosen, confirmPassword: chosen });
		await p.page.waitForSelector(".notice.good");
		await p.look("account-password-changed");
		for (const other of [second, third]) {
			await other.go("/account");
			await other.at("/login");
		}
		await second.send("/login", { email: "viewer@acme.example", password: chosen });
		await second.at("/account");
		await p.go("/account?tab=sessions");
		await p.send("/account/sessions/end-others");
		await p.page.waitForSelector(".notice.good");
		await p.send("/logout");
		await p.at("/login");
		await p.look("login-signed-out");
	});

	journey("a forgotten password", async () => {
		const p = await create();
		await p.go("/forgot");
		await p.look("forgot");
		await p.send("/forgot", { email: "admin@acme.example" });
		await p.look("forgot-sent");
		const code = await server.code("admin@acme.example");
		await p.go("/reset");
		await p.look("reset-code");
		await p.send("/reset", { token: "nonsense" });
		await p.look("reset-code-unknown");
		await p.go(`/reset#token=${code}`);
		await p.page.waitForSelector("form[action$='/reset/password']");
		await p.look("reset");
		await p.send("/reset/password", { password: "password1234", confirmPassword: "password1234" });
		await p.look("reset-common");
		await p.send("/reset/password", { password: chosen, confirmPassword: chosen });
		await p.at("/login");
		await p.look("login-reset");
		await p.send("/login", { password: chosen });
		await p.at("/account");
		await p.context.clearCookies();
		await p.go(`/reset#token=${code}`);
		await p.page.waitForSelector(".ending");
		await p.look("reset-used");
		assert.ok(!requests(server).includes(code), "the code is in the log of requests");
	});

	journey("somebody with an account joins, chooses, leaves; a tenant closes and comes back", async () => {
		const p = await create();
		await p.signIn("owner@acme.example", password);
		const printed = await server.operate("tenant", "create", "--name", "Globex", "--owner-email", "owner@acme.example");
		const code = printed.match(/#token=(\S+)/)[1];
		const stranger = await create();
		await stranger.go(`/accept#token=${code}`);
		await stranger.page.waitForSelector("form[action$='/accept/join']");
		await stranger.send("/accept/join", { password: "wrong" });
		await stranger.look("accept-member-refused");
		await p.go(`/accept#token=${code}`);
		await p.page.waitForSelector("form[action$='/accept/join']");
		await p.look("accept-self");
		await p.send("/accept/join");
		await p.at("/account");
		await p.look("account-joined");
		await p.go("/console");
		await p.page.locator(".switcher summary").press("Enter");
		await p.look("console-switcher");
		await p.page.keyboard.press("Escape");
		assert.equal(await p.page.locator(".switcher[open]").count(), 0);
		await p.go("/account");
		await p.send("/logout");
		await p.signIn("owner@acme.example", password);
		await p.at("/login/tenant");
		await p.look("tenants");
		await p.page.locator("button.choice").nth(1).click();
		await p.at("/account");
		await p.go("/account?tab=organisations");
		await p.says(".tag", /./);
		const session = (await p.context.cookies()).find((c) => c.name === "JSESSIONID").value;
		await server.api("DELETE", "/api/v2/tenant", { confirm: "Globex" }, session);
		await p.signIn("owner@acme.example", password);
		await p.page.waitForURL(/closing|tenant/);
		if (p.page.url().includes("tenant")) await p.page.locator("button.choice").nth(1).click();
		await p.at("/closing");
		await p.look("closing");
		await p.send("/closing/restore");
		await p.at("/account");
		await p.look("account-restored");
		await p.go("/account?tab=organisations");
		await p.page.locator("a[href*='/account/leave/']").first().click();
		await p.look("leave");
		await p.page.locator("form[action*='/account/leave/'] button").click();
		await p.page.waitForSelector("[role=alert]");
		await p.look("leave-last-owner");
		await p.go(`/accept#token=${code}`);
		await p.page.waitForSelector(".ending");
		await p.look("accept-used");
	});

	journey("a missing page, and a frozen tenant", async () => {
		const p = await create();
		await p.go("/nowhere");
		await p.look("not-found");
		const { tenantId } = (await server.api("POST", "/api/v2/auth/login", { email: "user@acme.example", password })).user;
		await server.operate("tenant", "freeze", tenantId);
		await p.signIn("user@acme.example", password);
		await p.look("login-frozen");
		await server.operate("tenant", "thaw", tenantId);
	});
});

/** requests returns the log lines about requests, without those about mails, which contain codes. */
function requests(server) {
	return server.log.split("\n").filter((line) => line.includes('"msg":"request"')).join("\n");
}

describe("without JavaScript, without a mouse, with an illegible colour", () => {
	let server;
	before(async () => { server = await Server.start("--brand-name", "Initech", "--brand-accent", "#ffd400"); });
	after(() => server.stop());

	test("without JavaScript", async () => {
		const p = await Person.create(server.url, "desktop-light-de", { javaScriptEnabled: false });
		await p.go("/");
		await p.page.locator("button[value='owner@acme.example']").click();
		await p.send("/dev/invite", { email: "ann@acme.example" });
		await p.go("/accept");
		await p.send("/accept", { token: `  ${server.url}/accept#token=${await server.code("ann@acme.example")}\n` });
		await p.send("/accept/register", { password: "short", confirmPassword: "short" });
		await p.page.locator("button[name=lang][value=en]").click();
		await p.page.locator("html[lang=en]").waitFor();
		await p.send("/accept/register", { password: chosen, confirmPassword: chosen });
		await p.at("/account");
		await p.send("/account/name", { name: "Ann" });
		assert.equal(await p.page.locator("[name=name]").inputValue(), "Ann");
		await p.send("/logout");
		await p.at("/login");
	});

	test("with a keyboard alone", async () => {
		const p = await Person.create(server.url, "desktop-light-de");
		const { keyboard } = p.page;
		await p.go("/.well-known/change-password");
		await p.at("/login");
		await keyboard.type("viewer@acme.example");
		await keyboard.press("Tab");
		await keyboard.type(password);
		await keyboard.press("Enter");
		await p.at("/account/security");
		assert.equal(new URL(p.page.url()).hash, "#password");
		for (let tabs = 0; tabs < 40; tabs++) {
			await keyboard.press("Tab");
			if (await p.page.evaluate(() => document.activeElement.name === "currentPassword")) break;
		}
		await keyboard.type(password);
		// The buttons that show a password are in the tab order, too.
		for (const text of [chosen, chosen]) {
			await keyboard.press("Tab");
			await keyboard.press("Tab");
			await keyboard.type(text);
		}
		await keyboard.press("Enter");
		await p.page.waitForSelector(".notice.good");
		await keyboard.press("Tab");
		const outline = await p.page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
		assert.notEqual(outline, "none", "the focus can't be seen");
	});

	test("a brand with a colour that nobody could read", async () => {
		for (const screen of first(["phone-light-en", "desktop-dark-en"])) {
			const p = await Person.create(server.url, screen);
			await p.go("/login");
			assert.match(await p.page.title(), /Initech/);
			await p.look("brand");
		}
	});
});
