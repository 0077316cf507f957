// The documentation and the reference: read on a phone and on a desktop, with
// scripts and without.

import assert from "node:assert/strict";
import { test } from "node:test";
import { onScreens } from "./harness.mjs";

/** narrow checks that a long page fits the screen's width. */
const narrow = async ({ page }) => {
	const { scrollWidth, clientWidth } = await page.evaluate(() => ({ scrollWidth: document.documentElement.scrollWidth, clientWidth: document.documentElement.clientWidth }));
	assert.ok(scrollWidth <= clientWidth, `${page.url()} is ${scrollWidth} px wide on ${clientWidth}`);
};

onScreens("the documentation", ["phone-light-en", "desktop-dark-en"], ({ create }) => {
	test("from its first page to a heading", async () => {
		const reader = await create();
		await reader.go("/docs");
		await reader.look("docs");
		await reader.page.locator("article a[href$='/docs/rotate']").click();
		await reader.at("/docs/rotate");
		await reader.look("docs-rotate");
		await reader.go("/docs/tutorial");
		await narrow(reader);
		const fold = reader.page.locator(".fold");
		if (await fold.isVisible()) await fold.locator("summary").click();
		await reader.page.locator("a[href='#7-behind-nginx']:visible").first().click();
		const top = await reader.page.locator("#\\37 -behind-nginx").evaluate((h) => h.getBoundingClientRect().top);
		const bar = await reader.page.locator(".top").evaluate((e) => (getComputedStyle(e).position === "sticky" ? e.getBoundingClientRect().bottom : 0));
		assert.ok(top >= bar && top < 400, `the heading is at ${top}, below a bar of ${bar}`);
		assert.ok(await reader.page.locator("figure .copy").count() > 10, "examples can't be copied");
	});

	test("without scripts, to a page that isn't there, to the API", async () => {
		const reader = await create({ javaScriptEnabled: false });
		await reader.go("/docs/lease");
		await reader.says("h1", /lease/);
		await reader.page.locator(".turn .next").click();
		await reader.at("/docs/threat-model");
		const other = await create();
		await other.go("/docs/nowhere");
		await other.says("h1", /No such page/);
		await narrow(other);
		await other.page.locator("a[href$='/docs/api']").first().click();
		await other.at("/docs/api");
		await narrow(other);
	});

	test("without scripts: a search, and an example in another language", async () => {
		const reader = await create({ javaScriptEnabled: false });
		await reader.go("/docs");
		await reader.page.getByRole("searchbox").fill("invite person");
		await reader.page.keyboard.press("Enter");
		await reader.at("/docs/search");
		await reader.page.locator(".found a[href$='/docs/api/invitations#invite']").click();
		await reader.at("/docs/api/invitations");
		const request = reader.page.locator("#invite .tabs");
		assert.match(await request.locator("pre:visible").innerText(), /^curl /);
		await request.getByText("Python").click();
		assert.match(await request.locator("pre:visible").innerText(), /import doorward/);
		await narrow(reader);
	});

	test("the language of examples is remembered", async () => {
		const reader = await create();
		await reader.go("/docs/api/invitations");
		await reader.page.locator("#invite .tabs").getByText("Go", { exact: true }).click();
		assert.match(await reader.page.locator("#listInvitations .tabs pre:visible").innerText(), /http\.NewRequest/);
		await reader.look("docs-api-group");
		await reader.go("/docs/api/people");
		assert.match(await reader.page.locator(".tabs pre:visible").first().innerText(), /http\.NewRequest/);
		await reader.page.keyboard.press("/");
		await reader.page.keyboard.type("webhook");
		await reader.page.keyboard.press("Enter");
		await reader.at("/docs/search");
		await reader.look("docs-search");
	});
});
