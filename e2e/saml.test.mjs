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
			const connection = await call("POST", "/api/v2/sso/connections", { type: "saml", name: "Acme SAML", metadataUrl: provider.metadataUrl, jit: "domains" });
			provider.register(connection);
			provider.person = { id: `nia-${screen}`, email: `nia@${domain}`, name: "Nia New" };
			const { id, record } = await call("POST", "/api/v2/domains", { domain });
			names.records.set(record.name, record.value);
			await call("POST", `/api/v2/domains/${id}/verify`);
			await call("PATCH", `/api/v2/domains/${id}`, { connectionId: connection.id });

			const { url, testId } = await call("POST", `/api/v2/sso/connections/${connection.id}/test`);
			await owner.go(url);
			await owner.at(`/sso/${connection.id}/test/${testId}`);
			await owner.look("ssotest-passed");
			assert.equal((await call("GET", `/api/v2/sso/connections/${connection.id}/tests/${testId}`)).status, "passed");
			await call("PATCH", `/api/v2/sso/connections/${connection.id}`, { status: "active" });
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
