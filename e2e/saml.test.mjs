// An administrator connects a provider of SAML, and people sign in by it: from here, and by a tile of its portal. Once, and
// with DOORWARD_TEST_FULL on each screen.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { full } from "./browser.mjs";
import { Person, Server, everyScreen } from "./harness.mjs";
import { NameServer } from "./provider.mjs";
import { SAMLProvider } from "./samlprovider.mjs";

describe("sign-on by SAML", { concurrency: 1 }, () => {
	const server = new Server();
	const people = [];
	let provider, names;

	before(async () => {
		provider = await SAMLProvider.start();
		names = await NameServer.start();
		server.env = { SSL_CERT_FILE: provider.authority };
		await server.begin("--sso-allow", "127.0.0.0/8", "--dns-server", names.address);
	});
	afterEach(async () => {
		for (const one of people.splice(0)) await one.context.close();
	});
	after(async () => {
		await server.stop();
		await provider.stop();
		names.stop();
	});

	for (const screen of full ? everyScreen : ["phone-dark-de"]) {
		test(screen, async () => {
			const create = async () => {
				people.push(await Person.create(server.url, screen, { ignoreHTTPSErrors: true }));
				return people.at(-1);
			};
			const owner = await create();
			await owner.openSession("owner@acme.example");
			const call = async (method, where, data, headers) => {
				const answer = await owner.context.request.fetch(where, { method, data, headers });
				assert.ok(answer.ok(), `${method} ${where}: ${answer.status()} ${await answer.text()}`);
				return { etag: answer.headers().etag, ...(answer.status() !== 204 && await answer.json()) };
			};
			const domain = `${screen}.acme.example`;
			await owner.go("/console/sso/new");
			await owner.page.locator("[name=type][value=saml]").check();
			await owner.page.locator("[name=product][value=other]").check();
			await owner.send("/console/sso/new", { name: "Acme SAML" });
			await owner.page.locator("h1", { hasText: "Acme SAML" }).waitFor();
			const at = `/api/v2/sso/connections/${new URL(owner.page.url()).pathname.split("/").at(-1)}`;
			const shown = await owner.page.locator(".copy code").allInnerTexts();
			await owner.send("/saml", { metadataUrl: provider.metadataUrl });
			await owner.page.locator(".notice.good, .notice.bad, .fault:not(:empty)").first().waitFor();
			const { connection } = await call("PATCH", at, { jit: "domains" });
			assert.equal(connection.entityId, provider.entityId);
			for (const name of ["acsUrl", "spEntityId"]) assert.ok(shown.includes(connection[name]), `${name} isn't among ${shown}`);
			provider.register(connection);
			provider.person = { id: `nia-${screen}`, email: `nia@${domain}`, name: "Nia New" };
			const { id, record } = await call("POST", "/api/v2/domains", { domain });
			names.records.set(record.name, record.value);
			await call("POST", `/api/v2/domains/${id}/verify`);
			await call("PATCH", `/api/v2/domains/${id}`, { connectionId: connection.id });

			await owner.go(`/console/sso/connections/${connection.id}?tab=test`);
			await owner.send("/test");
			const begins = await owner.page.locator("a[href*='/start?test=']").getAttribute("href");
			await owner.go(begins);
			await owner.page.waitForURL((to) => to.pathname.startsWith(`/sso/${connection.id}/test/`));
			await owner.look("ssotest-passed");
			await owner.go(`/console/sso/connections/${connection.id}?tab=test`);
			await owner.page.locator(".notice.good").waitFor();
			await call("PATCH", at, { status: "active" });
			const { etag, mode } = await call("GET", "/api/v2/sso/policy");
			if (mode === "off") await call("PUT", "/api/v2/sso/policy", { mode: "optional", guests: "allowed" }, { "If-Match": etag });

			const nia = await create();
			await nia.go(`/sso/${connection.id}?return=/account`);
			await nia.look("sso");
			await nia.page.locator(".card a.button").click();
			await nia.at("/account");
			await nia.says("main", new RegExp(`nia@${domain}`));

			const by = await create(); // by a tile, without a session here
			const arrived = by.page.waitForResponse((answer) => answer.url().includes(`/${connection.id}/callback`));
			await by.go(`${provider.base}/tile`);
			assert.equal((await arrived).status(), 200);
			await by.look("sso-unsolicited");
			assert.equal((await by.context.request.get("/api/v2/auth/session")).status(), 401);
			await by.page.locator(".card a.button").click();
			await by.page.waitForURL((to) => to.origin === new URL(server.url).origin && !to.pathname.includes("/sso/"));
			assert.equal((await (await by.context.request.get("/api/v2/auth/session")).json()).user.email, `nia@${domain}`);
		});
	}
});
