// The search of the console: its page without scripts, and the palette with them.

import assert from "node:assert/strict";
import { everyScreen, onScreens, until } from "./harness.mjs";

onScreens("the search of the console", everyScreen, ({ server, create, journey }) => {
	const signIn = async (options = {}) => {
		const owner = await create(options);
		await owner.openSession("owner@acme.example");
		return owner;
	};
	/** palette opens the palette by its keys and waits for the pages. */
	const palette = async (page) => {
		await page.keyboard.press("Control+k");
		await page.waitForSelector(".palette[open] [role=option]");
	};
	const chosen = (page) => page.evaluate(() => document.getElementById(document.querySelector(".palette input").getAttribute("aria-activedescendant"))?.getAttribute("href"));

	journey("without scripts a page finds people and pages", async () => {
		const owner = await signIn({ javaScriptEnabled: false });
		await owner.go("/console/find");
		await owner.page.locator("#q").fill("VIEWER@");
		await owner.page.locator("main form [type=submit]").click();
		await owner.page.locator("#found a[href*='/console/people/usr_']").click();
		await owner.page.locator("h1", { hasText: "viewer@acme.example" }).waitFor();
	});

	journey("the keys open the palette; arrows choose, Enter opens, Escape gives the focus back", async () => {
		const owner = await signIn();
		const { page } = owner;
		await owner.go("/console/settings");
		await page.locator("[name=name]").focus();
		await palette(page);
		assert.equal(await page.locator(".palette [role=option]").count(), await page.locator(".nav a").count());
		assert.match(await page.locator(".palette [role=status]").innerText(), /^\d+ /);
		const first = await chosen(page);
		await page.keyboard.press("ArrowUp");
		const last = await chosen(page);
		assert.notEqual(first, last);
		await page.keyboard.press("ArrowDown");
		assert.equal(await chosen(page), first);
		assert.equal(await page.locator(".palette [aria-selected=true]").count(), 1);
		await owner.look("console-palette");
		await page.keyboard.press("Escape");
		await page.waitForSelector(".palette:not([open])", { state: "attached" });
		assert.equal(await page.evaluate(() => document.activeElement.name), "name");
		await palette(page);
		assert.equal(await page.locator(".palette input").inputValue(), "");
		await page.keyboard.type("absent");
		await page.waitForSelector(".palette .empty");
		await owner.look("console-palette-none");
		await page.locator(".palette input").fill("viewer@");
		await page.keyboard.press("Enter"); // at once: it opens what this text finds
		await page.locator("h1", { hasText: "viewer@acme.example" }).waitFor();
	});

	journey("the button opens it, also in the menu of a phone", async () => {
		const owner = await signIn();
		const { page } = owner;
		await owner.go("/console");
		const menu = page.locator(".opener");
		if (await menu.isVisible()) await menu.click();
		await page.locator(".finder").click();
		await page.waitForSelector(".palette[open] [role=option]");
		await page.locator(".palette a[href$='/console/keys']").click();
		await owner.at("/console/keys");
	});

	journey("an answer to an older text is dropped; one that fails is announced; a session that ended leads to the sign-in", async () => {
		const owner = await signIn();
		const { page } = owner;
		await owner.go("/console");
		const held = new Promise((resolve) => page.route(/find\?q=us$/, resolve));
		await palette(page);
		await page.keyboard.type("us");
		const old = await held;
		await page.keyboard.insertText("er@acme"); // at once: a slow machine would search for a part of it, too
		await page.locator(".palette [role=option]", { hasText: "user@acme.example" }).waitFor();
		await old.continue().catch(() => {}); // it was dropped
		assert.equal(await page.locator(".palette [role=option]").count(), 1);

		await page.route(/find\?q=fault$/, (route) => route.abort());
		await page.locator(".palette input").fill("fault");
		const failed = await page.locator(".finder").getAttribute("data-failed");
		await until("the fault", async () => await page.locator(".palette [role=status]").textContent() === failed);
		await page.unrouteAll({ behavior: "ignoreErrors" });

		await page.context().clearCookies();
		await page.locator(".palette input").fill("user@acme");
		await owner.at("/login");
		await owner.send("/login", { email: "owner@acme.example", password: "open sesame 9042" });
		await owner.at("/console/find");
		assert.equal(await page.locator("#q").inputValue(), "user@acme");
	});

	journey("the answer to a form leads to the page of the search", async () => {
		const owner = await signIn();
		const { page } = owner;
		await owner.go("/console/invitations/new");
		await owner.send("/console/invitations/new", { people: "no address" });
		await page.waitForSelector("[role=alert]");
		await page.keyboard.press("Control+k");
		await owner.at("/console/find");
	});
});
