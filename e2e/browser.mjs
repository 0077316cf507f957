// A real Chromium, and what every page must fulfil: the rules of axe, the width, and a quiet
// console. Without DOORWARD_TEST_FULL this is checked on the pages that the Go tests render
// (pages.test.mjs); with it on the pages that the journeys see, too.

import assert from "node:assert/strict";
import { mkdir, readFile, readdir } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { after, before } from "node:test";
import { chromium } from "playwright-core";

export const full = process.env.DOORWARD_TEST_FULL === "1";
/** timeout is the deadline of everything that a test waits for, in milliseconds. It is long, so
 * that no test measures the machine. */
export const timeout = 60_000;

/** The folder that the Go tests have rendered pages to. */
export const renderedFolder = path.resolve(import.meta.dirname, "../artifacts/pages");

/** rendered has the languages of each rendered page, by name, such as "hosted/login". */
export const rendered = new Map();
for (const protocol of (await readdir(renderedFolder)).sort()) {
	for (const file of (await readdir(path.join(renderedFolder, protocol))).sort()) {
		const [, language, name] = file.match(/^([a-z]{2})-(.*)\.html$/) ?? [];
		if (name) rendered.set(`${protocol}/${name}`, [...(rendered.get(`${protocol}/${name}`) ?? []), language]);
	}
}

const shots = path.resolve(import.meta.dirname, "../artifacts/screenshots");
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The screens. 320 px is the narrowest that WCAG 2.2, 1.4.10, asks for. */
export const screens = {
	"phone-light-en": { viewport: { width: 320, height: 640 }, colorScheme: "light", locale: "en-GB", isMobile: true, hasTouch: true },
	"desktop-light-de": { viewport: { width: 1280, height: 800 }, colorScheme: "light", locale: "de-DE" },
	"phone-dark-de": { viewport: { width: 375, height: 812 }, colorScheme: "dark", locale: "de-DE", isMobile: true, hasTouch: true },
	"desktop-dark-en": { viewport: { width: 1280, height: 800 }, colorScheme: "dark", locale: "en-GB" },
};
export const everyScreen = Object.keys(screens);

/** The screen of the other size and colours. */
const opposite = {
	"phone-light-en": "desktop-dark-en", "desktop-dark-en": "phone-light-en",
	"phone-dark-de": "desktop-light-de", "desktop-light-de": "phone-dark-de",
};

const isPhone = (screen) => screens[screen].viewport.width <= 480;

/** The rules of axe for a page, and those that are checked again in other colours and at another
 * size, where elements may appear that were hidden. */
const everyRule = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const rulesOfScreens = ["color-contrast", "link-in-text-block", "target-size", "scrollable-region-focusable", "label", "button-name", "link-name"];

/** tooWide, in pages, returns the elements beyond the screen with text in a direction, and those whose text is clipped at
 * the foot. */
function tooWide(direction) {
	const root = document.documentElement;
	root.dir = direction;
	const wide = root.clientWidth;
	// Text that ends in an ellipsis has the box of the whole text.
	const isCut = (e) => {
		for (let at = e.parentElement; at; at = at.parentElement) {
			if (getComputedStyle(at).textOverflow === "ellipsis") return at.getBoundingClientRect().right <= wide + 1;
		}
		return false;
	};
	const isClipped = (e) => {
		if (e.clientHeight < 4 || e.scrollHeight <= e.clientHeight + 2 || !e.innerText) return false; // 1 px: only for screen readers
		const { overflowY, textOverflow } = getComputedStyle(e);
		return overflowY === "hidden" && textOverflow !== "ellipsis" && !e.matches(".hit"); // whose second part is left out
	};
	return [...document.querySelectorAll("body *:not(.unseen)")].filter((e) => {
		const box = e.getBoundingClientRect();
		return box.width > 0 && (isClipped(e) || box.right > wide + 1 || box.left < -1) && e.checkVisibility() && !e.closest("pre, .scroll, .tabs, .unseen, .skip") && !isCut(e);
	}).map((e) => `${direction}: ${e.outerHTML.slice(0, 120)}`);
}

const checks = `${axe}\nwindow.tooWide = ${tooWide}; 0`;

/** The browser of all tests in a process. */
export let browser;
before(async () => {
	browser = await chromium.launch({
		executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
		// axe is loaded again on each page and runs briefly, so optimizing it costs more than it saves.
		args: ["--disable-gpu", "--disable-software-rasterizer", "--js-flags=--no-opt,--no-maglev", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])],
	});
});
after(() => browser.close());

/** Viewer is a page in the browser, on a screen. */
export class Viewer {
	static async create(url, screen, options = {}) {
		const v = new this();
		v.screen = screen;
		v.url = url;
		v.runsScripts = options.javaScriptEnabled !== false;
		v.context = await browser.newContext({ baseURL: url, reducedMotion: "reduce", ...screens[screen], ...options });
		v.context.setDefaultTimeout(timeout);
		v.page = await v.context.newPage();
		v.complaints = [];
		v.page.on("console", (message) => {
			// An error page itself has an error status, which the console reports.
			const own = /status of (4|5)\d\d/.test(message.text()) && message.location().url.split("#")[0] === v.page.url().split("#")[0];
			if (["error", "warning"].includes(message.type()) && !own) v.complaints.push(message.text());
		});
		v.page.on("pageerror", (error) => v.complaints.push(String(error)));
		return v;
	}

	async go(where) { await this.page.goto(where); }

	/** quiet checks that the browser's console has neither errors nor warnings. */
	quiet(name) {
		assert.deepEqual(this.complaints, [], `the console on ${name}`);
	}

	/** loadChecks loads axe into the page, if possible without Playwright's evaluate: Chromium then
	 * compiles it only once. */
	async loadChecks() {
		if (this.hasAuthenticator) return this.page.evaluate(checks);
		await this.openDevTools();
		const { exceptionDetails } = await this.devTools.send("Runtime.evaluate", { expression: checks });
		assert.equal(exceptionDetails, undefined, "axe can't be loaded");
	}

	async openDevTools() { this.devTools ??= await this.context.newCDPSession(this.page); }

	/** passesFully checks the page on the viewer's screen, and keeps a picture. */
	async passesFully(name) {
		const { page, screen } = this;
		await this.loadChecks();
		await this.passes(name, everyRule);
		if (isPhone(screen) && await this.fitsWithTwiceTheText(screen, name)) await this.turnTo(screen);
		await mkdir(path.join(shots, screen), { recursive: true });
		await page.screenshot({ path: path.join(shots, screen, `${name.replaceAll("/", "-")}.png`), fullPage: true });
		if (isPhone(screen)) await this.passes(`${name} from right to left`, everyRule, ["rtl"]);
	}

	/** passesOnBoth checks the page on the viewer's screen with all rules, and then on the opposite
	 * one with those of screens. It turns as rarely as possible: each time all is laid out and painted
	 * again. */
	async passesOnBoth(name) {
		const { screen } = this;
		const other = opposite[screen];
		await this.loadChecks();
		await this.passes(name, everyRule);
		await this.fitsWithTwiceTheText(isPhone(screen) ? screen : other, name);
		await this.turnTo(other);
		await this.passes(`${name} as on ${other}`, rulesOfScreens, ["ltr", "rtl"]);
		await this.turnTo(screen);
	}

	/** fitsOnBoth checks the width on the viewer's screen and on the opposite one, and with twice the
	 * text. */
	async fitsOnBoth(name) {
		await this.onBoth(() => this.fits(name));
		await this.fitsWithTwiceTheText(isPhone(this.screen) ? this.screen : opposite[this.screen], name);
		await this.turnTo(this.screen);
	}

	/** fitsOnPhone checks the width on the viewer's screen or the opposite one. */
	async fitsOnPhone(name) {
		const { screen } = this;
		if (isPhone(screen)) return this.fits(name);
		await this.turnTo(opposite[screen]);
		await this.fits(name);
		return this.turnTo(screen);
	}

	/** onBoth makes a check on the viewer's screen and on the opposite one. */
	async onBoth(check) {
		await check();
		await this.turnTo(opposite[this.screen]);
		await check();
		await this.turnTo(this.screen);
	}

	/** turnTo gives the page the size and the colours of a screen. The language stays. */
	async turnTo(screen) {
		const { viewport, colorScheme } = screens[screen];
		const steps = [this.page.setViewportSize(viewport), this.page.emulateMedia({ colorScheme })];
		if (this.enlarged) steps.push(this.setTextSize(16));
		this.enlarged = false;
		await Promise.all(steps);
	}

	setTextSize(standard) { return this.devTools.send("Page.setFontSizes", { fontSizes: { standard, fixed: standard } }); }

	/** passes checks the width in both directions of text, and runs axe in the last one. It does
	 * so in one call, so that nothing is painted in between. It asks axe for violations only:
	 * sending the other results would take as long as the rules. */
	async passes(name, rules, directions = ["rtl", "ltr"]) {
		const { over, faults } = await this.page.evaluate(async ([rules, directions]) => {
			const over = directions.flatMap((direction) => window.tooWide(direction));
			const { violations } = await window.axe.run(document, { resultTypes: ["violations"], elementRef: true, iframes: false, selectors: false, preload: false, runOnly: rules });
			document.documentElement.dir = "ltr";
			// WCAG 2.2, 2.5.8, "Equivalent": the list below the bars has the same links.
			const isFault = (rule, node) => !(rule === "target-size" && node.element.closest(".bars"));
			const faults = violations.map((v) => [v.id, v.nodes.filter((n) => isFault(v.id, n))]).filter(([, nodes]) => nodes.length > 0);
			return { over, faults: faults.map(([rule, nodes]) => `${rule}: ${nodes.map((n) => n.html).join(" ")}`) };
		}, [rules, directions]);
		assert.deepEqual(over, [], `${name} is wider than the screen, or text is clipped`);
		assert.deepEqual(faults, [], `axe on ${name}, ${directions.at(-1)}`);
	}

	/** fits checks the width in both directions of text. */
	async fits(name) {
		const look = () => this.page.evaluate(`["rtl", "ltr"].flatMap(${tooWide})`);
		let over = await look();
		if (over.length > 0 && this.runsScripts) { // a new size may not have been laid out yet
			await this.page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
			over = await look();
		}
		assert.deepEqual(over, [], `${name} is wider than the screen, or text is clipped`);
	}

	/** fitsWithTwiceTheText checks WCAG 2.2, 1.4.4, with the size of text that people set in the
	 * browser, on phones, which have the least room for it. The screen of 320 px represents a
	 * magnified page (1.4.10), so it is widened to a common phone's 375 px. It does nothing for
	 * people with a virtual authenticator, which a second session of DevTools would end. turnTo
	 * restores the size. */
	async fitsWithTwiceTheText(screen, name) {
		if (this.hasAuthenticator) return false;
		const { viewport } = screens[screen];
		await this.openDevTools();
		this.enlarged = true;
		await Promise.all([this.page.setViewportSize({ ...viewport, width: Math.max(viewport.width, 375) }), this.setTextSize(32)]);
		await this.fits(`${name} with twice the text`);
		return true;
	}
}
