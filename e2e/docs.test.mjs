// The documentation and the reference: read on a phone and on a desktop, with
// scripts and without.

import assert from "node:assert/strict";
import { onScreens } from "./harness.mjs";

/** checkWidth checks that a long page fits the screen's width. */
const checkWidth = (reader) => reader.onBoth(async () => {
	const { scrollWidth, clientWidth } = await reader.page.evaluate(() => ({ scrollWidth: document.documentElement.scrollWidth, clientWidth: document.documentElement.clientWidth }));
	assert.ok(scrollWidth <= clientWidth, `${reader.page.url()} is ${scrollWidth} px wide on ${clientWidth}`);
});

/** toHeading follows a link in the list of headings, which is folded on a phone. */
const toHeading = async ({ page }) => {
	const fold = page.locator(".fold");
	if (await fold.isVisible()) await fold.locator("summary").click();
	await page.locator("a[href='#7-behind-nginx']:visible").first().click();
	const top = await page.locator("#\\37 -behind-nginx").evaluate((h) => h.getBoundingClientRect().top);
	const bar = await page.locator(".top").evaluate((e) => (getComputedStyle(e).position === "sticky" ? e.getBoundingClientRect().bottom : 0));
	assert.ok(top >= bar && top < 400, `the heading is at ${top}, below a bar of ${bar}`);
};

onScreens("the documentation", ["phone-light-en", "desktop-dark-en"], ({ create, journey }) => {
	journey("from its first page to a heading", async () => {
		const reader = await create();
		await reader.go("/docs");
		await reader.look("docs");
		await reader.page.locator("article a[href$='/docs/rotate']").click();
		await reader.at("/docs/rotate");
		await reader.look("docs-rotate");
		await reader.go("/docs/tutorial");
		await checkWidth(reader);
		await reader.onBoth(() => toHeading(reader));
		assert.ok(await reader.page.locator("figure .copy").count() > 10, "examples can't be copied");
	});

	journey("without scripts, to a page that isn't there, to the API", async () => {
		const reader = await create({ javaScriptEnabled: false });
		await reader.go("/docs/lease");
		await reader.says("h1", /lease/);
		await reader.page.locator(".turn .next").click();
		await reader.at("/docs/threat-model");
		const other = await create();
		await other.go("/docs/nowhere");
		await other.says("h1", /No such page/);
		await checkWidth(other);
		await other.page.locator("a[href$='/docs/api']").first().click();
		await other.at("/docs/api");
		await checkWidth(other);
	});

	journey("without scripts: a search, and an example in another language", async () => {
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
		await checkWidth(reader);
	});

	journey("the language of examples is remembered", async () => {
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
