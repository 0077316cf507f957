// Somebody of a customer's IT sets a connection up by the link alone, at a real provider. One product, and with
// DOORWARD_TEST_FULL each of them, on the screens in turn.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { full } from "./browser.mjs";
import { Person, Server, everyScreen, password } from "./harness.mjs";
import { NameServer, Provider } from "./provider.mjs";

const products = ["okta", "entra", "google", "keycloak", "ping", "onelogin", "jumpcloud", "other"];
const byKey = ["okta", "keycloak", "ping"]; // others authenticate by a client secret

/** sentence returns a text of the pages by its key, in the language of the screen. */
function sentence(screen, ...keys) {
	const file = path.resolve(import.meta.dirname, `../web/ui/text/${screen.slice(-2)}.txt`);
	const texts = new Map(readFileSync(file, "utf8").split("\n").map((line) => line.split(" = ")));
	return texts.get(keys.find((key) => texts.has(key)));
}

describe("a set-up by the link alone", { concurrency: 1 }, () => {
	const server = new Server();
	const people = [];
	let provider, names, session, screen;
	let turn = everyScreen.indexOf("phone-dark-de"); // which the only product has

	before(async () => {
		provider = await Provider.start();
		names = await NameServer.start();
		server.env = { SSL_CERT_FILE: provider.authority };
		await server.begin("--sso-allow", "127.0.0.0/8", "--sso-allow", "::1/128", "--dns-server", names.address);
		session = (await server.api("POST", "/api/v2/auth/login", { email: "owner@acme.example", password })).token;
	});
	afterEach(async () => {
		for (const one of people.splice(0)) await one.context.close();
	});
	after(async () => {
		await server.stop();
		await provider.stop();
		names.stop();
	});

	const create = async (options) => {
		people.push(await Person.create(server.url, screen, { ignoreHTTPSErrors: true, ...options }));
		return people.at(-1);
	};

	/** linkFromConsole makes a link on the connection's page, as an OWNER does. */
	const linkFromConsole = async (connection) => {
		const owner = await create();
		await owner.openSession("owner@acme.example");
		await owner.go(`/console/sso/connections/${connection}`);
		await owner.page.locator("a[href$='/setup-link']").click();
		await owner.look("console-setuplink");
		await owner.send("/setup-link");
		await owner.look("console-setuplinkmade");
		return owner.page.locator("#secret").innerText();
	};

	for (const product of full ? products : ["other"]) {
		test(`${product}: begin, a mistake, domains, a test that passes`, async () => {
			screen = everyScreen[turn++ % everyScreen.length];
			const domain = `${product}.acme.example`;
			const { id } = await server.api("POST", "/api/v2/sso/connections", { type: "oidc", name: `Acme ${product}`, product }, session);
			const made = await server.api("POST", "/api/v2/domains", { domain }, session);
			provider.person = { email: `new@${domain}`, name: "Nia New", hd: domain }; // which is Google's claim
			await server.api("PATCH", `/api/v2/domains/${made.id}`, { connectionId: id }, session);
			const link = await linkFromConsole(id);

			const it = await create();
			const { page } = it;
			await it.go(link);
			await page.locator("form[action$='/setup/begin']").waitFor();
			await it.look("setup");
			await it.send("/setup/begin");
			await it.at("/setup/provider");
			await it.look(`setupprovider-${product}`);

			const other = await create();
			await other.go(link);
			await other.page.locator(".ending").waitFor();
			await other.look("ended-setup_link_taken");

			const [callback, , keys] = await page.locator(".copy code").allInnerTexts();
			const usesKey = byKey.includes(product);
			const client = { client_id: `client-${product}`, redirect_uris: [callback], token_endpoint_auth_method: usesKey ? "private_key_jwt" : "client_secret_basic" };
			const secret = "the right secret: of + the / provider";
			const mistake = usesKey ? { jwks: { keys: [] }, token_endpoint_auth_signing_alg: "ES256" } : { client_secret: secret };
			if (product === "onelogin") client.token_endpoint_auth_method = "client_secret_post";
			provider.register({ ...client, ...mistake });
			if (product === "onelogin") await page.locator("[name=clientAuth]").selectOption("secret_post");
			await it.send("/setup/provider", { issuer: provider.issuer, clientId: client.client_id, ...(!usesKey && { clientSecret: "a wrong secret of the provider" }) });
			await it.at("/setup/domains");

			const [, name, value] = await page.locator(".copy code").allInnerTexts();
			assert.equal(name, `_doorward.${domain}`);
			await it.send("/verify");
			await page.locator(".notice.warn").waitFor();
			await it.look("setupdomains-unproved");
			names.records.set(name, value);
			await it.send("/verify");
			await page.locator(".notice.good").waitFor();
			await it.at("/setup/domains");

			const tries = async (outcome) => {
				await page.locator(".tabs a[href$='/setup/test']").click();
				await it.send("/setup/test");
				await it.at("/setup/test");
				await page.locator(`.part .notice.${outcome}`).waitFor();
			};
			await tries("bad");
			const advice = usesKey ? "sso.advice.client_key" : "sso.advice.client_secret";
			const text = await page.locator(".checks").innerText();
			assert.ok(text.includes(sentence(screen, `${advice}.${product}`, advice)), `${product}: ${text}`);
			await it.look("setuptest-failed");

			await page.locator(".tabs a[href$='/setup/provider']").click();
			if (usesKey) provider.register({ ...client, jwks_uri: keys, token_endpoint_auth_signing_alg: "ES256" });
			else await it.send("/setup/provider", { clientSecret: secret });
			await tries("good");
			await it.look("setuptest-passed");

			await page.locator(".tabs a[href$='/setup/protocol']").click();
			await page.locator(".tried li").nth(1).waitFor();
			assert.equal(await page.locator(".tried li").count(), 2);
			assert.equal(await page.locator(".tried li .tag.alarm").count(), 1);
			await it.look("setupprotocol");
			await server.api("PATCH", `/api/v2/sso/connections/${id}`, { status: "active" }, session);
		});
	}
});
