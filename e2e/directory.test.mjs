// A customer's directory, as its OWNER sees it: a secret is made, people come as Okta sends them, a rule that is wrong
// switches them off, and the run is undone. On the screens in turn.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { full } from "./browser.mjs";
import { Person, Server, everyScreen, password } from "./harness.mjs";
import { NameServer } from "./provider.mjs";

const domain = "staff.acme.example";

describe("a directory that does the wrong thing", { concurrency: 1 }, () => {
	const server = new Server();
	let names, session, owner;

	before(async () => {
		names = await NameServer.start();
		await server.begin("--dns-server", names.address);
		session = (await server.api("POST", "/api/v2/auth/login", { email: "owner@acme.example", password })).token;
		const { id, record } = await server.api("POST", "/api/v2/domains", { domain }, session);
		names.records.set(record.name, record.value);
		await server.api("POST", `/api/v2/domains/${id}/verify`, {}, session);
	});
	afterEach(async () => { await owner?.context.close(); });
	after(async () => {
		await server.stop();
		names.stop();
	});

	/** scim sends a request as the directory does, and returns the answer. */
	const scim = async (secret, method, where, body, status) => {
		const response = await fetch(`${server.url}/scim/v2${where}`, {
			method, headers: { "Authorization": `Bearer ${secret}`, "Content-Type": "application/scim+json; charset=utf-8", "User-Agent": "Okta SCIM Client 1.0.0" }, body: body && JSON.stringify(body),
		});
		assert.equal(response.status, status, `${method} ${where}`);
		return response.status === 204 ? null : response.json();
	};

	for (const screen of full ? everyScreen : ["phone-dark-de"]) {
		test(`a secret, people, a faulty run, its undo on ${screen}`, async () => {
			owner = await Person.create(server.url, screen, {});
			await owner.openSession("owner@acme.example");
			const { page } = owner;
			await owner.go("/console/sso/new");
			await page.locator("[name=type][value=scim]").check();
			await page.locator("[name=product][value=okta]").check();
			await owner.look("console-connectionnew");
			await owner.send("/console/sso/new", { name: `Acme ${screen}` });
			await page.locator(".notice.good").waitFor();
			await owner.look("console-directory-draft");
			const at = new URL(page.url()).pathname;
			await owner.send("/scim-secrets");
			await owner.look("console-scimsecretmade");
			const secret = await page.locator("#secret").innerText();
			assert.match(secret, /^dwc_/);

			await scim(secret, "GET", `/Users?filter=${encodeURIComponent(`userName eq "new@${domain}"`)}&startIndex=1&count=100`, null, 200);
			await scim(secret, "POST", "/Users", { userName: `early@${domain}` }, 403);
			await owner.go(at);
			await page.locator(".last-asked .tag.alarm").waitFor();
			await owner.look("console-directory-okta");
			await page.locator(`a[href$="${at}/enable"]`).click();
			await owner.look("console-connectionact-enable");
			await owner.send("/enable");

			const ids = [];
			for (const who of ["ann", "bob", "cat"]) {
				const address = `${who}.${screen}@${domain}`;
				const made = await scim(secret, "POST", "/Users", {
					schemas: ["urn:ietf:params:scim:schemas:core:2.0:User"], userName: address, name: { givenName: who, familyName: "Lee" }, emails: [{ primary: true, value: address, type: "work" }],
					displayName: `${who} Lee`, locale: "en-US", externalId: `${who}-${screen}`, groups: [], password: "aN0nymous!", active: true,
				}, 201);
				ids.push(made.id);
			}
			await scim(secret, "POST", "/Users", { userName: `ann.${screen}@${domain}` }, 409);
			for (const id of ids) await scim(secret, "PUT", `/Users/${id}`, { ...await scim(secret, "GET", `/Users/${id}`, null, 200), active: false }, 200);

			await owner.go(`${at}?tab=protocol`);
			await page.locator(".protocol .tag.alarm").first().waitFor();
			await owner.look("console-connection-protocol");
			await owner.go(`/console/people/${ids[0]}?tab=directory`);
			await owner.look("console-person-directory");
			await owner.go(at);
			await page.locator("a[href$='/runs']").click();
			await owner.look("console-runs");
			await page.locator(".runs th a").first().click();
			assert.equal(await page.locator(".effects tbody tr").count(), 6); // three were made, and switched off
			await owner.look("console-run");
			await page.locator("a[href$='/undo']").click();
			await page.locator("details.after li").first().waitFor();
			await owner.look("console-runundo");
			await owner.send("/undo");
			await page.locator(".notice.good").waitFor();
			const undone = page.locator(".facts .tag:not(.warm, .quiet)");
			for (let tries = 0; tries < 100 && await undone.count() === 0; tries++) await page.reload();
			await undone.waitFor();
			await owner.look("console-run-undone");
			await owner.go(`/console/people/${ids[1]}`);
			await owner.look("console-person-gone"); // whom the run has made goes again
		});
	}
});
