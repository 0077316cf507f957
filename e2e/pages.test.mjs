// Every page and state of a page that the Go tests render (TestPagesRender, with -render), in a
// real Chromium: axe, contrast, widths, and the console. With DOORWARD_TEST_FULL on every screen.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { Viewer, everyScreen, full, rendered, renderedFolder, screens, timeout } from "./browser.mjs";

const types = { html: "text/html; charset=utf-8", css: "text/css", js: "text/javascript", svg: "image/svg+xml", png: "image/png" };

/** site serves the files: from disk browsers load no scripts. */
const site = createServer(async ({ method, url }, response) => {
	if (method === "POST") return response.end("{}"); // no challenge for a passkey
	const { pathname } = new URL(url, "http://site");
	const file = path.join(renderedFolder, pathname === "/console/find" ? "/console/en-find.html" : pathname);
	const body = await readFile(file).catch(() => null);
	response.writeHead(body ? 200 : 404, { "Content-Type": types[file.split(".").pop()] ?? "", "Content-Security-Policy": "default-src 'self'; base-uri 'none'" });
	return response.end(body);
});
before(() => new Promise((done) => { site.listen(0, "localhost", done); }));
after(() => { site.close(); site.closeAllConnections(); });

/** The page with the console's menu open, which only phones have. */
const menu = "console/overview-brand";

/** What is done on pages before they are checked: typing, and opening of menus. */
const actions = {
	"hosted/accept-new-typed": (page) => page.locator("[name=password]").fill("four quiet green llamas"),
	"hosted/login-passkey": showPasskeys, "hosted/login-accounts": showPasskeys, "hosted/login-chosen": showPasskeys, "hosted/passkey": showPasskeys, "hosted/second-passkey": showPasskeys, "hosted/second-both": showPasskeys, "hosted/step-up-passkey": showPasskeys,
	"console/people": async (page) => {
		await page.locator("#all").check();
		await page.locator(".row-menu summary").last().click();
	},
	"console/palette": async (page) => {
		if (await page.locator(".opener").isVisible()) await page.locator(".opener").click();
		await page.locator(".finder").click();
		await page.locator(".palette a").first().waitFor();
	},
	[menu]: async (page) => { if (await page.locator(".opener").isVisible()) await page.locator(".opener").click(); },
	"console/overview-switcher": (page) => page.locator(".switcher summary").click(),
};

/** showPasskeys waits until the page offers a passkey. */
function showPasskeys(page) { return page.locator("form.passkey").waitFor(); }

/** unfold opens what can be unfolded on a page, except menus, which would cover the rest. */
function unfold() {
	for (const fold of document.querySelectorAll("details:not(.row-menu details, .switcher, .up-menu)")) fold.open = true;
}

/** markup is a page without its text, on which no rule of axe depends. */
async function markup(name) {
	const html = await readFile(path.join(renderedFolder, `${name.replace("/", "/en-")}.html`), "utf8");
	return html.replace(/>[^<]*[^\s<][^<]*</g, ">text<");
}

/** The pages whose markup is that of no earlier page. */
const distinct = new Set([...new Map((await Promise.all([...rendered.keys()].reverse().map(async (name) => [await markup(name), name])))).values()]);

describe("rendered pages", { concurrency: 2, timeout: 30 * timeout }, () => {
	for (const [turn, screen] of everyScreen.entries()) {
		describe(screen, { concurrency: 1 }, () => {
			let viewer;
			before(async () => {
				viewer = await Viewer.create(`http://localhost:${site.address().port}`, screen, { timezoneId: "Asia/Tokyo" });
			});
			after(() => viewer.context.close());
			const show = async (name, language) => {
				await viewer.go(`/${name.replace("/", `/${language}-`)}.html`);
				await viewer.page.evaluate(unfold);
				await actions[name]?.(viewer.page);
			};
			const own = screens[screen].locale.slice(0, 2);
			for (const [name, languages] of [...rendered].filter(([name], i) => full || turn === (name === menu ? 0 : i % everyScreen.length))) {
				test(name, async () => {
					viewer.complaints = [];
					const language = languages.includes(own) ? own : "en";
					await show(name, language);
					if (full) await viewer.passesFully(`rendered/${name}`);
					else if (distinct.has(name)) await viewer.passesOnBoth(name);
					else await viewer.fitsOnBoth(name);
					for (const other of languages.filter((one) => !full && one !== language)) {
						await show(name, other);
						await viewer.fitsOnPhone(`${name} in ${other}`);
					}
					viewer.quiet(name);
				});
			}
		});
	}
});

/** What a phone shows of a page with tabs, or of the trail: whether the row of tabs is too long, what of the
    current tab and of the first one that is in view is cut off, whether a sign says that more follow, and
    where the first event ends. The sign at the beginning of a row that has scrolled covers 12 pixels. */
async function onPhone() {
	for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame); // the sign depends on a scroll timeline
	const row = document.querySelector(".tabs");
	const box = row?.getBoundingClientRect();
	const tabs = [...document.querySelectorAll(".tabs a")].map((e) => ({ current: e.ariaCurrent, rect: e.getBoundingClientRect() }));
	const begin = box?.left + (row?.scrollLeft ? 12 : 0);
	const first = tabs.find(({ rect }) => rect.right > begin);
	const { rect } = tabs.find(({ current }) => current) ?? {};
	return {
		tabs: tabs.length, isLong: row?.scrollWidth > row?.clientWidth,
		cut: row && Math.round(Math.max(0, begin - first.rect.left, begin - rect.left, rect.right - box.right)),
		isSigned: !row || row.scrollLeft + row.clientWidth >= row.scrollWidth - 16 || /›.*1$/.test(["content", "opacity"].map((name) => getComputedStyle(row, "::after")[name]).join(" ")),
		event: document.querySelector(".page-audit .events tbody tr:not(.day)")?.getBoundingClientRect().bottom,
	};
}

describe("pages on a phone", { timeout: 30 * timeout }, () => {
	let viewer;
	before(async () => {
		viewer = await Viewer.create(`http://localhost:${site.address().port}`, "desktop-light-de");
		await viewer.page.setViewportSize({ width: 390, height: 844 });
	});
	after(() => viewer.context.close());
	for (const name of ["hosted/account", "hosted/security", "console/webhook", "console/connection", "console/person-activity", "console/key-settings", "console/roleedit", "console/webhook-signing", "console/webhook-settings",
		"console/settings-factors", "console/settings-danger", "hosted/account-organisations", "hosted/account-data", "console/audit", "console/audit-period"]) {
		test(name, async () => {
			for (const language of rendered.get(name)) {
				await viewer.go(`/${name.replace("/", `/${language}-`)}.html`);
				const { tabs, isLong, cut, isSigned, event } = await viewer.page.evaluate(onPhone);
				if (tabs) assert.equal(cut, 0, `${language}: a tab is cut off`);
				assert.ok(isSigned, `${language}: no sign says that more tabs follow`);
				if (/person/.test(name)) assert.ok(!isLong, `${language}: short tabs don't fit`);
				if (event) assert.ok(event <= 844, `${language}: the first event ends at ${event}`);
			}
		});
	}
});

/** besideDetails measures the trail with an open event: where the table and the details begin and end, and
    the width of the narrowest actor or target, in rem. */
function besideDetails() {
	const [table, aside] = [".events", "#event"].map((one) => document.querySelector(one).getBoundingClientRect());
	const cells = [...document.querySelectorAll(".events tbody tr:not(.day) > td:not(.col-time, .col-place)")].map((e) => e.getBoundingClientRect().width / 16);
	return { overlap: Math.round(table.right - aside.left), below: document.querySelector(".filter").getBoundingClientRect().bottom <= aside.top, least: Math.min(...cells) };
}

describe("the details of an event", { timeout: 30 * timeout }, () => {
	let viewer;
	before(async () => { viewer = await Viewer.create(`http://localhost:${site.address().port}`, "desktop-light-de"); });
	after(() => viewer.context.close());
	for (const width of [1280, 1376, 1480]) {
		test(`beside the list, ${width} pixels`, async () => {
			await viewer.page.setViewportSize({ width, height: 900 });
			for (const language of rendered.get("console/audit-open")) {
				await viewer.go(`/console/${language}-audit-open.html`);
				const { overlap, below, least } = await viewer.page.evaluate(besideDetails);
				assert.ok(overlap <= 0, `${language}: they cover ${overlap} pixels of the table`);
				assert.ok(below, `${language}: they cover the filters`);
				assert.ok(least >= 7, `${language}: an actor or a target has ${least}rem`);
			}
		});
	}
});

/** tight returns the names of rows with less than 5rem, and what reaches beyond its cell. */
function tight() {
	const cells = [...document.querySelectorAll(":is(.list, .sessions) tbody :is(th, td)")].filter((e) => e.checkVisibility());
	return cells.flatMap((cell) => {
		const box = cell.getBoundingClientRect();
		const isCut = (e) => e !== cell && (getComputedStyle(e).overflowX !== "visible" || isCut(e.parentElement));
		const beyond = getComputedStyle(cell).overflowX === "visible" && [...cell.querySelectorAll("*")].find((e) => !e.matches(".unseen") && e.getBoundingClientRect().right > box.right + 1 && !isCut(e.parentElement));
		if (cell.tagName === "TH" && box.width < 80) return [`${cell.textContent.trim()} has ${box.width} pixels`];
		return beyond ? [`${beyond.outerHTML} leaves its cell`] : [];
	});
}

describe("lists on a tablet", { timeout: 30 * timeout }, () => {
	let viewer;
	before(async () => {
		viewer = await Viewer.create(`http://localhost:${site.address().port}`, "desktop-light-de");
		await viewer.page.setViewportSize({ width: 768, height: 1024 });
	});
	after(() => viewer.context.close());
	for (const name of ["people", "invitations", "keys", "webhooks", "webhook", "roles", "role-members", "connections", "connection-identities", "connection-protocol", "domains", "runs", "run", "policyversions", "person-sessions",
		"operator", "operatordeliveries", "operatormails", "operatornodes"]) {
		test(name, async () => {
			for (const language of rendered.get(`console/${name}`)) {
				await viewer.go(`/console/${language}-${name}.html`);
				assert.deepEqual(await viewer.page.evaluate(tight), [], language);
			}
		});
	}
});

describe("what a script adds", { timeout: 30 * timeout }, () => {
	let viewer;
	before(async () => { viewer = await Viewer.create(`http://localhost:${site.address().port}`, "desktop-dark-en", { timezoneId: "Asia/Tokyo" }); });
	after(() => viewer.context.close());

	test("the local time, with UTC in brackets", async () => {
		const texts = async (name) => { await viewer.go(`/console/en-${name}.html`); return (await viewer.page.locator(":has(> time[data-clock])").allInnerTexts()).join(" | "); };
		assert.match(await texts("domain"), /21 October 2026 at 21:00 \(12:00 UTC\)/);
		assert.match(await texts("webhookdelivery"), /21 November 2026 at 20:55:00 \(11:55:00 UTC\)/);
		const late = await viewer.page.evaluate(() => {
			const time = document.createElement("time");
			Object.assign(time, { dateTime: "2026-11-20T22:00:00Z", title: "20 November 2026, 22:00:00 UTC", innerHTML: "<bdi>20 November 2026, 22:00 UTC</bdi>" });
			time.dataset.clock = "";
			const main = document.querySelector("main");
			main.replaceChildren(time);
			dispatchEvent(new CustomEvent("refresh", { detail: main }));
			return main.innerText;
		});
		assert.equal(late, "21 November 2026 at 07:00 (20 November 2026, 22:00 UTC)");
	});

	test("a name that is cut has a title", async () => {
		await viewer.go("/console/en-connections.html");
		const [short, long] = ["Acme Okta", "A provider with a long name"].map((name) => viewer.page.locator("th .line a", { hasText: name }).first());
		for (const name of [short, long]) await name.hover();
		assert.equal(await short.getAttribute("title"), null);
		assert.match(await long.getAttribute("title"), /^A provider with a long name .* name/);
	});
});

/** What a page about one object may be high on a desktop, in pixels. Lists and the trail are longer. */
const longest = 1240;

/** The pages with a head and tabs, and without a list. */
const objects = (await Promise.all([...rendered.keys()].map(async (name) => [name, await readFile(path.join(renderedFolder, `${name.replace("/", "/en-")}.html`), "utf8")])))
	.filter(([name, html]) => !name.endsWith("-refused") && html.includes('<header class="top">') && html.includes('<nav class="tabs"') && !/class="list|class="events/.test(html)).map(([name]) => name);

/** shape measures a page with tabs: its height, where the titles and the content of its parts begin, how
    much of the current tab is cut off, which inputs are wider than their fields, which descriptions of
    roles are cut off in their first line, which labels
    beside another have more than one line, how much of its row the last button of the head leaves free,
    and which rows have their only button below their text. */
function shape() {
	const at = (all) => [...new Set([...document.querySelectorAll(all)].map((e) => Math.round(e.getBoundingClientRect().left)))];
	const [tab, row] = [".tabs [aria-current]", ".tabs"].map((one) => document.querySelector(one).getBoundingClientRect());
	return {
		height: document.querySelector("main").getBoundingClientRect().height,
		titles: at(".part > header"), contents: at(".part > :not(header)"), loose: document.querySelectorAll(".tabs ~ .form").length,
		cut: Math.max(0, row.left - tab.left, tab.right - row.right),
		outside: [...document.querySelectorAll(".field > .input > *")].filter((e) => e.getBoundingClientRect().right > e.closest(".field").getBoundingClientRect().right + 1).map((e) => e.id),
		scrolls: [...document.querySelectorAll(".picker[open] .options")].filter((e) => (e.scrollHeight > e.clientHeight) !== (e.querySelectorAll(".option").length > 5)).length,
		ellipses: [...document.querySelectorAll(":is(.picker, .facts, .fixed-role) .sub")].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent),
		ragged: [...document.querySelectorAll(".pair label")].filter((e) => e.getBoundingClientRect().height > 1.9 * parseFloat(getComputedStyle(e).lineHeight)).map((e) => e.textContent),
		free: Math.max(0, ...[...document.querySelectorAll(".top > .acts > :last-child")].map((e) => e.parentElement.getBoundingClientRect().right - e.getBoundingClientRect().right)),
		below: [...document.querySelectorAll(".rows > li > div + :is(form, .acts:has(> :only-child))")].filter((e) => e.getBoundingClientRect().top >= e.previousElementSibling.getBoundingClientRect().bottom).map((e) => e.parentElement.textContent),
	};
}

describe("pages about one object", { timeout: 30 * timeout }, () => {
	let viewer;
	before(async () => { viewer = await Viewer.create(`http://localhost:${site.address().port}`, "desktop-light-de"); });
	after(() => viewer.context.close());
	for (const name of objects) {
		test(name, async () => {
			await viewer.page.setViewportSize({ width: 1440, height: 900 });
			await viewer.go(`/${name.replace("/", "/en-")}.html`);
			const wide = await viewer.page.evaluate(shape);
			assert.ok(wide.height <= longest, `${wide.height} px high`);
			assert.ok(wide.titles.length <= 1 && wide.contents.length <= 1 && wide.loose === 0, `not in two columns: ${JSON.stringify(wide)}`);
			assert.deepEqual([...wide.outside, ...wide.ellipses, ...wide.ragged, ...wide.below], []);
			assert.equal(wide.scrolls, 0, "a picker scrolls with at most five roles, or doesn't with more");
			await viewer.page.setViewportSize({ width: 390, height: 844 });
			await viewer.go(`/${name.replace("/", "/de-")}.html`);
			const narrow = await viewer.page.evaluate(shape);
			assert.equal(Math.round(narrow.cut), 0, "the current tab is cut off");
			assert.equal(Math.round(narrow.free), 0, "a button of the head has a hole beside it");
			assert.deepEqual([...narrow.ellipses, ...narrow.below], []);
		});
	}

	test("a picker shows the chosen role", async () => {
		for (const name of ["invite", "keynew"]) {
			await viewer.go(`/console/en-${name}.html`);
			const [picker, line] = [viewer.page.locator(".picker"), viewer.page.locator(".picker .chosen-one strong")];
			if (await picker.getAttribute("open") === null) await picker.locator("summary").click();
			const before = await line.textContent();
			await picker.locator("[name=role]:not(:checked)").first().check();
			await picker.locator("summary").click();
			assert.notEqual(await line.textContent(), before, name);
		}
	});

	test("the overview and the forms for new objects are no longer", async () => {
		await viewer.page.setViewportSize({ width: 1440, height: 900 });
		for (const name of ["overview", "keynew", "rolenew", "webhooknew", "connectionnew", "invite", "invite-file"]) {
			await viewer.go(`/console/en-${name}.html`);
			const { height } = await viewer.page.locator("main").boundingBox();
			assert.ok(height <= longest, `${name} is ${height} px high`);
		}
	});

	test("names of permissions and events break at dots only", async () => {
		await viewer.page.setViewportSize({ width: 390, height: 844 });
		for (const name of ["key-settings", "roleedit", "role-builtin", "webhook", "webhook-settings"]) {
			await viewer.go(`/console/de-${name}.html`);
			await viewer.page.evaluate(() => document.querySelectorAll("details").forEach((e) => { e.open = true; }));
			const cut = await viewer.page.locator(".dotted").evaluateAll((all) => all.filter((e) => e.getClientRects()[0].height > 1.5 * parseFloat(getComputedStyle(e).lineHeight)).map((e) => e.textContent));
			assert.deepEqual(cut, [], name);
		}
	});
});
