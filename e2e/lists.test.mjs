// Lists, bulk actions, previews and conflicts in the console, with the keyboard and with a
// server that stops.

import assert from "node:assert/strict";
import { everyScreen, onScreens } from "./harness.mjs";

onScreens("lists of the console", everyScreen, ({ server, create, journey }) => {
	let owner;
	const signIn = async (options = {}) => {
		owner = await create(options);
		await owner.openSession("owner@acme.example");
		return owner.page;
	};

	journey("the keyboard finds a row, opens its menu and suspends; Undo resumes", async () => {
		const page = await signIn();
		await owner.go("/console/people");
		await page.waitForSelector(".all:not([hidden])");
		await page.keyboard.press("/");
		await page.keyboard.type("viewer");
		await page.keyboard.press("Enter");
		await page.waitForURL(/q=viewer/);
		const menu = page.locator(".row-menu summary");
		await menu.focus();
		await page.keyboard.press("Enter");
		await owner.look("console-row-menu");
		await page.keyboard.press("Escape");
		assert.equal(await page.locator(".row-menu details[open]").count(), 0);
		assert.ok(await menu.evaluate((e) => e === document.activeElement));
		await page.keyboard.press("Enter");
		for (let i = 0; i < 10 && !await page.evaluate(() => document.activeElement.href?.includes("/suspend")); i++) await page.keyboard.press("ArrowDown");
		await page.keyboard.press("Enter");
		await page.waitForSelector("form[action$='/suspend']");
		await owner.send("/suspend");
		await page.waitForSelector(".notice.good");
		await page.locator("form[action$='/resume'] button").click();
		await page.waitForSelector(".notice.good");
		assert.equal(await page.locator(".tag.alarm").count(), 0);
	});

	journey("several are chosen with one box, and each outcome is shown", async () => {
		const page = await signIn();
		await owner.go("/console/people?q=acme");
		const folded = page.locator(".filter > .fold:not([open]) > summary");
		if (await folded.isVisible()) assert.ok((await folded.boundingBox()).height < 48, "the link to more filters is broken over lines");
		await page.locator("#all").check();
		assert.equal(await page.locator("tbody input:checked").count(), 4);
		assert.match(await page.locator(".how-many").innerText(), /4/);
		await page.locator(".chosen [value=suspend]").click();
		await page.waitForSelector(".button.grave");
		await owner.look("console-chosen");
		await owner.send("/console/people/chosen/do");
		await page.waitForSelector("form[action$='/chosen/do'] input[value=resume]", { state: "attached" });
		assert.equal(await page.locator(".rows .bad").count(), 1, "the last owner stays");
		await owner.look("console-outcomes");
		await owner.send("/console/people/chosen/do");
		assert.equal(await page.locator(".rows .bad").count(), 0);
		await owner.go("/console/audit");
		await page.locator(".events tr", { has: page.locator(".tag.quiet") }).first().locator("a.opens").click();
		await page.locator("#event h3").waitFor();
		await owner.look("console-trail-group");
	});

	journey("the list is sorted by a heading, on a phone by a field; a role is found for several people", async () => {
		const page = await signIn();
		for (const name of ["ALPHA", "BETA", "GAMMA"]) {
			await owner.go("/console/roles/new");
			await page.locator("#roleName").fill(name);
			await page.locator("[name=permissions]").first().check();
			await owner.send("/console/roles/new");
			await page.waitForSelector(".notice.good");
		}
		await owner.go("/console/people?q=acme");
		const names = () => page.locator("tbody th .line a").allInnerTexts();
		const usual = await names();
		if (await page.locator(".fold > summary").isVisible()) {
			await page.locator(".fold > summary").click();
			await page.locator("#sort").selectOption("name");
			await owner.send("/console/people");
		} else {
			await page.locator("th .sort").first().click();
		}
		await page.waitForURL(/q=acme.*sort=name|sort=name.*q=acme/);
		assert.deepEqual((await names()).sort(), usual.sort());
		assert.equal(await page.locator("th[aria-sort=ascending] .sort").count(), 1);
		await page.locator("tbody input[aria-label*=viewer]").check();
		await page.locator(".up-menu summary").click();
		await page.locator(".up-menu .find").fill("beta");
		assert.equal(await page.locator(".up-menu .option:visible").count(), 1);
		await owner.look("console-people-role");
		await page.locator(".up-menu .option:visible input").check();
		await page.locator(".up-menu .choices-box > .button").click();
		await page.waitForSelector("form[action$='/chosen/do'] input[name=role][value=BETA]", { state: "attached" });
		await owner.send("/console/people/chosen/do");
		await page.waitForSelector(".notice.good");
	});

	journey("a file is previewed, corrected and sent", async () => {
		const page = await signIn();
		await owner.go("/console/invitations/new?tab=file");
		const text = "\ufeffName;E-Mail;Rolle\r\n\"Müller; Jürgen\";j@x.example;viewer\r\nBob;nobody;\r\n";
		await page.locator("#file").setInputFiles({ name: "people.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
		await owner.send("/preview/file");
		await page.waitForSelector("[name=email][aria-invalid]");
		assert.equal(await page.locator("[name=name]").first().inputValue(), "Müller; Jürgen");
		await owner.look("console-preview");
		const unfilled = await page.locator(".drafts [name=rowRole]").evaluateAll((all) => all.map((e) => Math.round(e.parentElement.getBoundingClientRect().right - e.getBoundingClientRect().right)));
		assert.deepEqual(unfilled, [0, 0], "the fields don't fill the rows");
		await page.locator("[name=email][aria-invalid]").fill("bob@x.example");
		await owner.send("/preview/send");
		await owner.at("/console/invitations");
		await page.locator("#all").check();
		await page.locator(".chosen [value=revoke]").click();
		await page.waitForSelector(".button.grave");
		await owner.send("/console/invitations/chosen/do");
		await owner.look("console-revoked");
		await owner.send("/console/invitations/chosen/do"); // Undo: invite again
		assert.equal(await page.locator(".rows .bad").count(), await page.locator(".rows > li").count() - 2);
	});

	journey("a long list is shown, sent once and counted", async () => {
		const page = await signIn();
		await owner.go("/console/invitations/new?tab=file");
		const people = Array.from({ length: 130 }, (_, n) => `viewer;list${n}@x.example;"Person; ${n}"`);
		const text = `Rolle;E-Mail;Name\r\n${people.join("\r\n")}\r\nuser;nobody;Bob\r\n\r\n`;
		await page.locator("#file").setInputFiles({ name: "people.csv", mimeType: "text/csv", buffer: Buffer.from(`\ufeff${text}`, "utf16le") });
		await owner.send("/preview/file");
		await page.waitForSelector("form[action$='/invitations/import']");
		assert.match(await page.locator(".rows").first().innerText(), /132.*nobody/);
		await owner.look("console-import");
		await owner.send("/invitations/import");
		await page.waitForSelector(".page-imported h1");
		await page.locator("a[href*='status=PENDING']").waitFor(); // the list may take several requests
		assert.match(await page.locator(".consequences").innerText(), /130/);
		await owner.look("console-imported");
		await page.locator("a[href*='status=PENDING']").click();
		await owner.at("/console/invitations");
		await owner.go("/console/invitations?q=list129");
		assert.equal(await page.locator(".invitations tbody tr").count(), 1);
	});

	journey("settings that two people change show both values; leaving unsaved ones asks", async () => {
		const page = await signIn();
		await owner.go("/console/settings");
		const other = await owner.context.newPage();
		await other.goto("/console/settings");
		await other.locator("#name").fill("Acme of the other");
		await other.locator("form[action*='/console/settings?'] .save button").click();
		await other.waitForSelector(".notice.good");
		await other.close();
		await page.locator("#name").fill("Acme of mine");
		const asked = page.waitForEvent("dialog"); // leaving asks
		await page.evaluate(() => { setTimeout(() => location.assign("/console"), 0); });
		await (await asked).dismiss();
		await owner.send("/console/settings");
		await page.waitForSelector("#conflicts");
		assert.match(await page.locator("#conflicts").innerText(), /Acme of mine[^]*Acme of the other/);
		assert.equal(await page.locator("#name").inputValue(), "Acme of mine");
		await owner.look("console-conflict");
		await page.locator("#name").fill("Acme");
		await owner.send("/console/settings");
		await page.waitForSelector(".notice.good");
		await owner.tab("appearance");
		await page.locator("#accent").fill("#ffd400");
		await page.waitForFunction(() => getComputedStyle(document.querySelector(".sample .button")).backgroundColor === "rgb(255, 212, 0)");
		assert.equal(await page.locator(".sample .button").first().evaluate((e) => getComputedStyle(e).color), "rgb(0, 0, 0)");
		await owner.look("console-colour");
	});

	journey("a theme is chosen without scripts; the trail has local times with them", async () => {
		let page = await signIn({ javaScriptEnabled: false });
		await owner.go("/console/audit");
		const dark = await page.locator("meta[name=color-scheme]").getAttribute("content");
		assert.equal(dark, "light dark");
		await page.locator(".themes a[href*='theme=dark']").click();
		assert.equal(await page.locator("meta[name=color-scheme]").getAttribute("content"), "dark");
		assert.equal(await page.locator(".local").count(), 0);
		await owner.context.close();
		page = await signIn({ timezoneId: "Asia/Tokyo" });
		await owner.go("/console/audit");
		await page.locator(".events a.opens").first().click();
		await page.waitForSelector("#event .local");
		await page.keyboard.press("Escape");
		await page.locator(".fold summary").click();
		await page.locator("#actor").pressSequentially("own");
		await page.waitForSelector("#suggested option", { state: "attached" });
		await owner.look("console-trail-local");
	});

	journey("when the server is down, the page shows when it was last up to date", async () => {
		const page = await signIn();
		await page.clock.install();
		await owner.go("/console/people");
		await page.locator("#keep").check();
		await server.stop();
		await page.clock.runFor(40_000);
		await page.waitForFunction(() => /\d\d:\d\d/.test(document.querySelector(".keep + [role=status]").textContent));
		assert.equal(await page.locator(".people tbody tr").count(), 4);
		owner.complaints = [];
		await server.begin();
	});
});
