// The console's pages of sign-on: a connection and a domain, with and without scripts.

import assert from "node:assert/strict";
import { everyScreen, onScreens, until } from "./harness.mjs";

onScreens("sign-on in the console", everyScreen, ({ create, journey }) => {
	const signIn = async (options = {}) => {
		const owner = await create(options);
		await owner.openSession("owner@acme.example");
		return owner;
	};
	/** add adds a connection of the product, and leads to its page. */
	const add = async (owner, product, name) => {
		await owner.go("/console/sso/new");
		await owner.page.locator(`[name=product][value=${product}]`).check();
		await owner.send("/console/sso/new", { name });
		await owner.page.locator("h1", { hasText: name }).waitFor();
	};

	journey("an owner adds a connection, copies what to enter at the provider, and sees what is missing", async () => {
		const owner = await signIn();
		const { page } = owner;
		await owner.go("/console");
		await owner.open("/console/sso");
		await page.locator("a[href$='/console/sso/new']:visible").click();
		await page.locator("[name=product][value=other]").check();
		await owner.send("/console/sso/new", { name: "Acme ID" });
		await page.locator("h1", { hasText: "Acme ID" }).waitFor();
		await owner.look("console-connection-draft");
		const copy = page.locator(".copy .button").first();
		const label = await copy.innerText();
		await copy.click();
		await until("the button says what it did", async () => await copy.innerText() !== label);
		assert.match(await page.locator(".copy code").first().innerText(), /\/api\/v2\/auth\/sso\/con_[a-z0-9]+\/callback$/);
		await owner.tab("test");
		await owner.look("console-connection-test-missing");
		assert.equal(await page.locator("form[action*='/test']").count(), 0);
		await owner.go("/console/find?q=acme%20id");
		await page.locator("#found a[href*='/console/sso/connections/con_']").click();
		await page.locator("h1", { hasText: "Acme ID" }).waitFor();
		await page.locator(".acts a[href$='/delete']").click();
		await page.locator("form[action$='/delete'] [type=submit]").click();
		await page.locator(".notice.good").waitFor();
		await owner.at("/console/sso");
	});

	journey("without scripts: who becomes a member, roles by groups, a domain", async () => {
		const owner = await signIn({ javaScriptEnabled: false });
		const { page } = owner;
		await add(owner, "okta", "Acme Okta");
		await owner.tab("access");
		await page.locator("[name=jit][value=domains]").check();
		await page.locator("[name=groupRole0]").selectOption("ADMIN");
		await owner.send("/access", { groupsFrom: "groups", group0: "it-admins" });
		assert.equal(await page.locator("[name=group0]").inputValue(), "it-admins");
		assert.equal(await page.locator("[name=group1]").inputValue(), "");
		assert.ok(await page.locator("[name=jit][value=domains]").isChecked());
		const name = `acme-${Date.now()}.example`;
		await owner.go("/console/sso/domains");
		await owner.send("/console/sso/domains", { domain: name });
		await page.locator(".copy code", { hasText: `_doorward.${name}` }).waitFor();
		await page.locator("[name=connectionId]").selectOption({ label: "Acme Okta" });
		await owner.send("/connection");
		await page.locator(".tags", { hasText: "Acme Okta" }).waitFor();
		await owner.look("console-domain");
		await owner.go("/console/sso/policy");
		await page.locator("[name=mode][value=required]").check();
		await owner.send("/console/sso/policy");
		await owner.look("console-ssopolicyact");
	});
});
