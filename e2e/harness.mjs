// Starts a real "doorward dev" and a real Chromium, and looks at pages: axe,
// the console, the width, a screenshot.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const run = promisify(execFile);
const program = process.env.DOORWARD ?? path.resolve(import.meta.dirname, "../bin/doorward");
const shots = path.resolve(import.meta.dirname, "../artifacts/screenshots");
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const password = "open sesame 9042"; // of the four people of dev
export const chosen = "four quiet green llamas";

/** The screens for every journey. 320 px is the narrowest that WCAG 2.2, 1.4.10, asks for. */
export const screens = {
	"phone-light-en": { viewport: { width: 320, height: 640 }, colorScheme: "light", locale: "en-GB", isMobile: true, hasTouch: true },
	"desktop-light-de": { viewport: { width: 1280, height: 800 }, colorScheme: "light", locale: "de-DE" },
	"phone-dark-de": { viewport: { width: 375, height: 812 }, colorScheme: "dark", locale: "de-DE", isMobile: true, hasTouch: true },
	"desktop-dark-en": { viewport: { width: 1280, height: 800 }, colorScheme: "dark", locale: "en-GB" },
};
export const everyScreen = Object.keys(screens);

const quick = Boolean(process.env.E2E_QUICK);

/** once leaves the first of several screens when it is to be quick. */
export const once = (screens) => (quick ? screens.slice(0, 1) : screens);

/** looked are the pages that were looked at, when it is to be quick: once is enough. */
const looked = new Set();

/** inTurn leaves the journeys that are made on one of the screens: when it is to be quick, each
 * journey is made on one screen, the next on the next, and look does the rest. */
function inTurn(journeys, screen, among) {
	return journeys.filter((_, i) => !quick || i % among.length === among.indexOf(screen));
}

/** Where axe looks at each page from right to left, too: the narrow ones. */
const mirrored = new Set(["phone-light-en", "phone-dark-de"]);

/** The other size and the other colours, when it is to be quick. */
const opposite = {
	"phone-light-en": "desktop-dark-en", "desktop-dark-en": "phone-light-en",
	"phone-dark-de": "desktop-light-de", "desktop-light-de": "phone-dark-de",
};

/** What axe asks about a page, and what it asks again in other colours and at another size,
 * where elements appear that the first had hidden. */
const everyRule = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const rulesOfScreens = ["color-contrast", "target-size", "link-in-text-block", "scrollable-region-focusable", "label", "button-name", "link-name"];

/** The browser of all tests in a file. */
let browser;
before(async () => {
	browser = await chromium.launch({
		executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
		// Each page loads axe again and is left soon, so optimizing its code costs more than it saves.
		args: ["--js-flags=--no-opt,--no-maglev", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])],
	});
});
after(() => browser.close());

/** onScreens declares the same tests for each screen, with a server for each. Two screens run
 * at a time, since a machine that runs this has two cores. People from create leave when
 * their test ends. */
export function onScreens(name, screens, declare) {
	describe(name, { concurrency: 2 }, () => {
		for (const screen of screens) {
			describe(screen, { concurrency: 1 }, () => {
				const server = new Server();
				const people = [];
				const create = async (options) => {
					people.push(await Person.create(server.url, screen, options));
					return people.at(-1);
				};
				const journeys = [];
				declare({ server, create, journey: (name, make) => journeys.push([name, make]) });
				const here = inTurn(journeys, screen, screens);
				if (here.length === 0) return;
				before(() => server.begin());
				afterEach(async () => {
					for (const one of people.splice(0)) await one.context.close();
				});
				after(() => server.stop());
				for (const [name, make] of here) test(name, make);
			});
		}
	});
}

/** Server is one "doorward dev" in its own folder. */
export class Server {
	static start(...flags) { return new Server().begin(...flags); }

	async begin(...flags) {
		this.folder = await mkdtemp(path.join(tmpdir(), "doorward-e2e-"));
		const cheapHashes = ["--password-memory-kib", "1024", "--password-time", "1"];
		this.process = spawn(program, ["dev", "--listen", "localhost:0", "--log-format", "json", ...cheapHashes, ...flags], { cwd: this.folder });
		this.log = "";
		this.process.stderr.on("data", (text) => { this.log += text; });
		this.url = await new Promise((resolve, reject) => {
			let said = "";
			this.process.stdout.on("data", (text) => {
				said += text;
				const found = said.match(/is ready at (\S+)/);
				if (found) resolve(found[1]);
			});
			this.process.on("exit", (code) => reject(new Error(`doorward dev ended with ${code}: ${this.log}`)));
		});
		return this;
	}

	/** operate runs a command on the server's database and returns what it prints. */
	async operate(...args) {
		const { stdout } = await run(program, [...args, "--database", "sqlite:doorward-dev/doorward.db", "--base-url", this.url], { cwd: this.folder });
		return stdout;
	}

	/** code is the code in the newest mail to the address, which is sent within 2 s. */
	async code(to) {
		for (let tries = 0; tries < 50; tries++) {
			const page = await (await fetch(`${this.url}/dev/mail?to=${encodeURIComponent(to)}`)).text();
			const found = page.match(/^[A-Za-z0-9_-]{43}$/m);
			if (found) return found[0];
			await new Promise((done) => setTimeout(done, 100));
		}
		throw new Error(`no mail to ${to}`);
	}

	/** api sends JSON like a program. */
	async api(method, where, body, session) {
		const headers = { "Content-Type": "application/json", ...(session && { Cookie: `JSESSIONID=${session}` }) };
		const response = await fetch(this.url + where, { method, headers, body: body && JSON.stringify(body) });
		assert.ok(response.ok, `${method} ${where}: ${response.status}`);
		return response.status === 204 ? null : response.json();
	}

	/** breakDatabase makes the files of the database unreadable, and returns what
	 * brings them back. SQLite reads no page from memory once its index of the
	 * log, the -shm file, makes no sense. */
	async breakDatabase() {
		const file = path.join(this.folder, "doorward-dev", "doorward.db");
		const kept = new Map();
		for (const name of [file, `${file}-wal`, `${file}-shm`]) kept.set(name, await readFile(name));
		const nonsense = (bytes) => Buffer.alloc(bytes.length, "nonsense");
		const write = async (change) => {
			for (const [name, bytes] of kept) await writeFile(name, change(bytes, name), { flag: "r+" });
		};
		await write(nonsense);
		return () => write((bytes, name) => name.endsWith("-shm") ? nonsense(bytes) : bytes);
	}

	async stop() {
		const ended = new Promise((done) => { this.process.removeAllListeners("exit").on("exit", done); });
		this.process.kill("SIGTERM");
		await ended;
		await rm(this.folder, { recursive: true });
	}
}

/** Person is one person's browser. */
export class Person {
	static async create(url, screen, options = {}) {
		const p = new Person();
		p.screen = screen;
		p.url = url;
		p.context = await browser.newContext({ baseURL: url, reducedMotion: "reduce", ...screens[screen], ...options });
		p.context.setDefaultTimeout(10_000);
		p.page = await p.context.newPage();
		p.complaints = [];
		p.page.on("console", (message) => {
			// An error page itself has an error status, which the console reports.
			const own = /status of (4|5)\d\d/.test(message.text()) && message.location().url.split("#")[0] === p.page.url().split("#")[0];
			if (["error", "warning"].includes(message.type()) && !own) p.complaints.push(message.text());
		});
		p.page.on("pageerror", (error) => p.complaints.push(String(error)));
		return p;
	}

	/** look checks what every page must have, and keeps a picture of it. When it is to be quick,
	 * there is no picture, and the page is shown on the opposite screen, too. */
	async look(name) {
		const { page, screen } = this;
		if (quick && looked.has(name)) return this.quiet(name);
		looked.add(name);
		await page.evaluate(axe);
		await this.obeys(name, everyRule);
		await this.fitsAt(screen, name);
		if (quick) {
			const other = opposite[screen];
			await this.turnTo(other);
			await this.fitsAt(other, `${name} as on ${other}`);
			await this.obeys(`${name} as on ${other} from right to left`, rulesOfScreens, "rtl");
			await this.turnTo(screen);
		} else {
			await mkdir(path.join(shots, screen), { recursive: true });
			await page.screenshot({ path: path.join(shots, screen, `${name}.png`), fullPage: true });
			if (mirrored.has(screen)) await this.obeys(`${name} from right to left`, everyRule, "rtl");
		}
		return this.quiet(name);
	}

	/** onBoth makes a check and, when it is to be quick, makes it on the opposite screen, too. */
	async onBoth(check) {
		await check();
		if (!quick) return;
		await this.turnTo(opposite[this.screen]);
		await check();
		await this.turnTo(this.screen);
	}

	/** turnTo gives the page the size and the colours of a screen, and leaves the language. */
	async turnTo(screen) {
		const { viewport, colorScheme } = screens[screen];
		await Promise.all([this.page.setViewportSize(viewport), this.page.emulateMedia({ colorScheme })]);
	}

	/** obeys runs axe, which is on the page already. It asks for no more than the faults: the
	 * rest takes as long to send as the rules take. */
	async obeys(name, runOnly, direction = "ltr") {
		const faults = await this.page.evaluate(async ([rules, dir]) => {
			document.documentElement.dir = dir;
			const { violations } = await window.axe.run(document, { resultTypes: ["violations"], selectors: false, preload: false, runOnly: rules });
			document.documentElement.dir = "ltr";
			return violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`);
		}, [runOnly, direction]);
		assert.deepEqual(faults, [], `axe on ${name}`);
	}

	/** fits checks the width, in both directions in one turn: nothing is painted between. */
	async fits(name) {
		const over = await this.page.evaluate(() => {
			const root = document.documentElement;
			const beyond = (direction) => {
				root.dir = direction;
				const wide = root.clientWidth;
				return [...document.querySelectorAll("body *:not(.unseen)")].filter((e) => {
					const box = e.getBoundingClientRect();
					return e.checkVisibility() && box.width > 0 && (box.right > wide + 1 || box.left < -1) && !e.closest("pre, .scroll, .unseen, .skip");
				}).map((e) => `${direction}: ${e.outerHTML.slice(0, 120)}`);
			};
			const mirrored = beyond("rtl");
			return [...beyond("ltr"), ...mirrored];
		});
		assert.deepEqual(over, [], `${name} is wider than the screen`);
	}

	/** fitsAt wants the page to fit the screen that it is on, and a phone with twice the text, too. */
	async fitsAt(screen, name) {
		await this.fits(name);
		await this.fitsWithTwiceTheText(screen, name);
	}

	/** fitsWithTwiceTheText is WCAG 2.2, 1.4.4, with the size of text that people set in the
	 * browser, on phones, which have the least room for it. The narrowest screen stands for a
	 * page that is magnified, so a common phone takes its place. People with a virtual
	 * authenticator are left out, which would end with this session of DevTools. */
	async fitsWithTwiceTheText(screen, name) {
		const { viewport } = screens[screen];
		if (this.hasAuthenticator || viewport.width > 480) return;
		this.devTools ??= await this.context.newCDPSession(this.page);
		const show = (width, standard) => Promise.all([
			this.page.setViewportSize({ ...viewport, width }),
			this.devTools.send("Page.setFontSizes", { fontSizes: { standard, fixed: standard } }),
		]);
		await show(Math.max(viewport.width, 375), 32);
		await this.fits(`${name} with twice the text`);
		await show(viewport.width, 16);
	}

	quiet(name) {
		assert.deepEqual(this.complaints, [], `the console on ${name}`);
	}

	async go(where) { await this.page.goto(where); }

	/** open goes where the console's header leads; on a phone it opens first. */
	async open(where) {
		if (await this.page.locator(".opener").isVisible()) await this.page.locator(".opener").click();
		await this.page.locator(`.drawer a[href$="${where}"]`).click();
		await this.at(where);
	}

	/** send fills the fields and submits the form. */
	async send(action, fields = {}) {
		const form = this.page.locator(`form[action$="${action}"]`).first();
		for (const [name, value] of Object.entries(fields)) await form.locator(`[name="${name}"]`).fill(value);
		await form.locator("[type=submit]").first().click();
		await this.page.waitForLoadState();
	}

	async signIn(email, secret) {
		await this.go("/login");
		await this.send("/login", { email, password: secret });
	}

	/** at waits until the browser is at the path. */
	async at(where) {
		await this.page.waitForURL((url) => url.pathname === where);
	}

	async says(selector, pattern) {
		assert.match(await this.page.locator(selector).first().innerText(), pattern);
	}
}
