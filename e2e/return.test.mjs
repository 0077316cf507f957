// An application on another origin: people come from it to sign in, and are redirected
// back to it, but not to other sites.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { Person, Server, first, password } from "./harness.mjs";

/** OtherSite is a site for every name below localhost that records its requests. Each page links to the login and back to itself. */
class OtherSite {
	static async start() {
		const e = new OtherSite();
		e.asked = [];
		e.server = createServer((request, response) => {
			e.asked.push(request);
			response.setHeader("Content-Type", "text/html");
			const here = `http://${request.headers.host}${request.url}#d`;
			response.end(`<!doctype html><link rel=icon href="data:,"><a href="${e.login}${encodeURIComponent(here)}">Sign in</a>`);
		});
		await new Promise((done) => { e.server.listen(0, "127.0.0.1", done); });
		e.port = e.server.address().port;
		return e;
	}

	at(host, where = "/") { return `http://${host}:${this.port}${where}`; }

	stop() { return new Promise((done) => { this.server.close(done); this.server.closeAllConnections(); }); }
}

let otherSite, home, server;
before(async () => {
	otherSite = await OtherSite.start();
	home = otherSite.at("app.localhost", "/inbox/home");
	server = await Server.start("--return-to", otherSite.at("app.localhost", "/inbox/"), "--home", home);
	otherSite.login = `${server.url}/login?return=`;
});
after(() => Promise.all([server.stop(), otherSite.stop()]));

const newPassword = "three old paper boats";

const loginFor = (to) => `/login?return=${encodeURIComponent(to)}`;

describe("returning to an application on another origin", { concurrency: 2 }, () => {
	for (const screen of first(["phone-light-en", "desktop-dark-en"])) {
		test(`on ${screen}`, async () => {
			const p = await Person.create(server.url, screen);
			const target = otherSite.at("app.localhost", `/inbox/${screen}?a=b&c#d`);
			await p.go(target);
			await p.page.locator("a").click();
			await p.at("/login");
			await p.send("/login", { email: "owner@acme.example", password: "wrong" });
			await p.page.waitForSelector("[role=alert]");
			await p.send("/login", { email: "owner@acme.example", password });
			await p.page.waitForURL(target);
			// A signed-in person is redirected back at once.
			const redirect = p.page.waitForResponse((response) => response.url().includes("/login?return="));
			await p.page.locator("a").click();
			assert.equal((await (await redirect).allHeaders()).location, target);
			await p.page.waitForURL(target);

			const [session] = (await p.context.cookies(server.url)).filter((cookie) => cookie.name === "JSESSIONID");
			assert.ok(session, "there is no session cookie");
			for (const { url, headers } of otherSite.asked) {
				assert.ok(!url.includes(session.value) && !(headers.cookie ?? "").includes(session.value), `${url} has received the session`);
			}
			p.quiet("returning");
			await p.context.close();
		});
	}

	test("a choice of the tenant on the way", async () => {
		const printed = await server.operate("tenant", "create", "--name", "Globex", "--owner-email", "viewer@acme.example");
		const p = await Person.create(server.url, "desktop-light-de");
		const target = otherSite.at("app.localhost", "/inbox/choice?a=b");
		await p.go(`/accept?return=${encodeURIComponent(target)}#token=${printed.match(/#token=(\S+)/)[1]}`);
		await p.page.waitForSelector("form[action$='/accept/join']");
		await p.send("/accept/join", { password });
		await p.at("/login");
		await p.send("/login", { email: "viewer@acme.example", password });
		await p.at("/login/tenant");
		await p.page.locator("button.choice").nth(1).click();
		await p.page.waitForURL(target);
		p.quiet("the choice");
		await p.context.close();
	});

	test("a forgotten password on the way", async () => {
		const p = await Person.create(server.url, "desktop-light-en");
		const target = otherSite.at("app.localhost", "/inbox/forgotten?a=b&c#d");
		await p.go(loginFor(target));
		await p.page.locator("a[href*='/forgot']").click();
		await p.at("/forgot");
		await p.send("/forgot", { email: "admin@acme.example" });
		await p.at("/forgot/sent");
		await server.code("admin@acme.example");
		// The mail is opened in another browser.
		const q = await Person.create(server.url, "desktop-dark-en");
		await q.go("/dev/mail?to=admin@acme.example");
		await q.page.locator("a[href*='/reset?return=']").first().click();
		await q.page.waitForSelector("form[action$='/reset/password']");
		await q.send("/reset/password", { password: newPassword, confirmPassword: newPassword });
		await q.at("/login");
		await q.send("/login", { password: newPassword });
		await q.page.waitForURL(target);
		await q.go("/account");
		await q.look("account-home");
		await q.page.locator(".back a").click();
		await q.page.waitForURL(home);
		for (const person of [p, q]) {
			person.quiet("a forgotten password");
			await person.context.close();
		}
	});

	test("not to an address that --return-to doesn't allow", async () => {
		const p = await Person.create(server.url, "desktop-light-de");
		const app = `app.localhost:${otherSite.port}`;
		const before = otherSite.asked.length;
		// First with a sign-in, and then already signed in.
		for (const to of [otherSite.at("other.localhost", "/inbox/"), otherSite.at("app.localhost", "/inboxes")]) {
			await p.context.clearCookies();
			await p.go(loginFor(to));
			await p.send("/login", { email: "user@acme.example", password });
			await p.page.waitForURL(home);
		}
		for (const to of [
			`//${app}/inbox/`, `/\\${app}/inbox/`, `http:/\\${app}/inbox/`, `http:${app}/inbox/`, `\thttp://${app}/inbox/`, `http://${app}\\@other.localhost/`,
			`http://${app}@other.localhost:${otherSite.port}/inbox/`, `http://${app}/inbox/../admin`, `http://${app}/inbox/%2E./admin`, `http://${app}/inbox/..\\admin`,
			`http://${app}./inbox/`, `http://app.localhost.other.localhost:${otherSite.port}/inbox/`, `https://${app}/inbox/`, "http://app.localhost/inbox/", "javascript:alert(1)",
		]) {
			await p.go(loginFor(to));
			assert.equal(p.page.url(), home, to);
		}
		assert.equal(otherSite.asked.slice(before).filter(({ headers }) => !headers.host.startsWith("app.localhost")).length, 0);
		p.quiet("addresses that aren't allowed");
		await p.context.close();
	});
});
