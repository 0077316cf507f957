// Starts a real "doorward dev" and a real Chromium, and checks pages: by axe, the browser's
// console, the width, and with a screenshot. With E2E_QUICK it checks less; see scripts/e2e.sh.

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

const quick = !process.env.DOORWARD_TEST_FULL;

/** once returns the screens, but in a quick run only the first one. */
export const once = (screens) => (quick ? screens.slice(0, 1) : screens);

/** looked are the names of the pages that look has checked. In a quick run each is checked once. */
const looked = new Set();

/** inTurn returns the journeys to run on a screen. In a quick run each journey runs on one screen
 * only, with the screens in turn; look then also shows the pages on the opposite screen. */
function inTurn(journeys, screen, among) {
	return journeys.filter((_, i) => !quick || i % among.length === among.indexOf(screen));
}

/** The screens on which axe also checks each page from right to left: the narrow ones. */
const mirrored = new Set(["phone-light-en", "phone-dark-de"]);

/** The screen of the other size and colours, for quick runs. */
const opposite = {
	"phone-light-en": "desktop-dark-en", "desktop-dark-en": "phone-light-en",
	"phone-dark-de": "desktop-light-de", "desktop-light-de": "phone-dark-de",
};

const isPhone = (screen) => screens[screen].viewport.width <= 480;

/** The rules of axe for a page, and those that are checked again in other colours and at another
 * size, where elements may appear that were hidden. */
const everyRule = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const rulesOfColours = ["color-contrast", "link-in-text-block"];
const rulesOfScreens = [...rulesOfColours, "target-size", "scrollable-region-focusable", "label", "button-name", "link-name"];

/** kindsChecked are the kinds of elements that axe has checked on all pages so far, for quick runs;
 * see unlessChecked. */
const kindsChecked = new Set();

/** unlessChecked, in pages, limits rules of axe to elements of kinds that weren't checked yet, and
 * returns these kinds. An element's kind is what the rules' results depend on: its colours, its
 * text's size, all backgrounds behind it, and for a control its attributes, whether it is small
 * and has a name. What other elements cover, it doesn't tell apart; the long form does. */
function unlessChecked(rules, checked) {
	const seen = new Set(checked.split(" "));
	const valued = /^(class|type|role|style|dir|open|aria-(?!label|describedby|controls|owns).*)$/;
	const controls = "a, button, input, select, textarea, summary, [role], [tabindex]";
	const plain = "rgba(0, 0, 0, 0),none,1,static";
	const behind = new Map();
	const added = new Set();
	const fresh = new WeakSet();
	const hash = (text) => {
		let [a, b] = [0x811c9dc5, 0x1000193];
		for (let i = 0; i < text.length; i++) {
			a = Math.imul(a ^ text.charCodeAt(i), 0x9e3779b1);
			b = Math.imul(b ^ text.charCodeAt(i), 0x85ebca6b);
			a ^= b >>> 15;
		}
		return (a >>> 0).toString(36) + (b >>> 0).toString(36);
	};
	for (const e of document.querySelectorAll("body, body *:not(svg *)")) {
		if (!e.checkVisibility()) continue;
		const s = getComputedStyle(e);
		const back = [s.backgroundColor, s.backgroundImage, s.opacity, s.position].join();
		behind.set(e, (behind.get(e.parentElement) ?? "") + (back === plain ? "" : `|${back}`));
		const kind = [behind.get(e), e.tagName, s.color, s.fontSize, s.fontWeight, s.textDecorationLine, s.textShadow, s.overflow];
		kind.push([...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));
		if (e.matches(controls) || s.overflow !== "visible") {
			const { width, height } = e.getBoundingClientRect();
			kind.push(width < 24 || height < 24, e.textContent.trim() !== "", e.labels?.length > 0, e.parentElement && getComputedStyle(e.parentElement).color);
			kind.push(...[...e.attributes].map(({ name, value }) => (valued.test(name) || value === "" ? `${name}=${value}` : name)));
		}
		const sum = hash(kind.join());
		if (seen.has(sum)) continue;
		fresh.add(e);
		added.add(sum);
	}
	for (const rule of window.axe._audit.rules.filter(({ id }) => rules.includes(id))) {
		rule.matchesAll ??= rule.matches;
		rule.matches = function (node, ...more) { return fresh.has(node) && rule.matchesAll.call(this, node, ...more); };
	}
	return [...added];
}

/** tooWide, in pages, returns the elements beyond the screen with text in a direction. */
function tooWide(direction) {
	const root = document.documentElement;
	root.dir = direction;
	const wide = root.clientWidth;
	return [...document.querySelectorAll("body *:not(.unseen)")].filter((e) => {
		const box = e.getBoundingClientRect();
		return box.width > 0 && (box.right > wide + 1 || box.left < -1) && e.checkVisibility() && !e.closest("pre, .scroll, .unseen, .skip");
	}).map((e) => `${direction}: ${e.outerHTML.slice(0, 120)}`);
}

const checks = `${axe}\nObject.assign(window, { unlessChecked: ${unlessChecked}, tooWide: ${tooWide} }); 0`;

/** The browser of all tests in a file. */
let browser;
before(async () => {
	browser = await chromium.launch({
		executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
		// axe is loaded again on each page and runs briefly, so optimizing it costs more than it saves.
		args: ["--js-flags=--no-opt,--no-maglev", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])],
	});
});
after(() => browser.close());

/** onScreens declares the same tests for each screen, with a server for each. Two screens run at
 * a time, for machines with two cores. The browsers from create are closed when their test ends. */
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
			let output = "";
			this.process.stdout.on("data", (text) => {
				output += text;
				const found = output.match(/is ready at (\S+)/);
				if (found) resolve(found[1]);
			});
			this.process.on("exit", (code) => reject(new Error(`doorward dev ended with ${code}: ${this.log}`)));
			this.process.on("error", (err) => reject(new Error(`${err.message}: run make build, or set DOORWARD to the program`)));
		});
		return this;
	}

	/** operate runs a command on the server's database and returns what it prints. */
	async operate(...args) {
		const { stdout } = await run(program, [...args, "--database", "sqlite:doorward-dev/doorward.db", "--base-url", this.url], { cwd: this.folder });
		return stdout;
	}

	/** code returns the code in the newest mail to the address, once there is one. */
	async code(to) {
		for (let tries = 0; tries < 1_000; tries++) {
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

	/** breakDatabase makes the files of the database unreadable, and returns a function that
	 * restores them. An invalid -shm file, the index of the write-ahead log, makes SQLite read
	 * pages from the files instead of its memory. */
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
		if (this.process.pid === undefined) return; // it never started
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
		p.context.setDefaultTimeout(60_000);
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

	/** look checks what every page must fulfil, and keeps a screenshot. In a quick run it checks
	 * the page on the opposite screen, too, and keeps none. */
	async look(name) {
		if (quick && looked.has(name)) return this.quiet(name);
		looked.add(name);
		await this.loadChecks();
		await (quick ? this.passesQuickly(name) : this.passesFully(name));
		return this.quiet(name);
	}

	/** loadChecks loads axe into the page, if possible without Playwright's evaluate: Chromium then
	 * compiles it only once. */
	async loadChecks() {
		if (this.hasAuthenticator) return this.page.evaluate(checks);
		this.devTools ??= await this.context.newCDPSession(this.page);
		const { exceptionDetails } = await this.devTools.send("Runtime.evaluate", { expression: checks });
		assert.equal(exceptionDetails, undefined, "axe can't be loaded");
	}

	async passesFully(name) {
		const { page, screen } = this;
		await this.passes(name, everyRule);
		if (isPhone(screen) && await this.fitsWithTwiceTheText(screen, name)) await this.turnTo(screen);
		await mkdir(path.join(shots, screen), { recursive: true });
		await page.screenshot({ path: path.join(shots, screen, `${name}.png`), fullPage: true });
		if (mirrored.has(screen)) await this.passes(`${name} from right to left`, everyRule, { directions: ["rtl"] });
	}

	/** passesQuickly changes the screen and the direction as rarely as possible: each time all is
	 * laid out and painted again. */
	async passesQuickly(name) {
		const { screen } = this;
		const other = opposite[screen];
		await this.passes(name, everyRule, { limited: rulesOfColours });
		await this.fitsWithTwiceTheText(isPhone(screen) ? screen : other, name);
		await this.turnTo(other);
		await this.passes(`${name} as on ${other}`, rulesOfScreens, { directions: ["ltr", "rtl"], limited: rulesOfScreens });
		await this.turnTo(screen);
	}

	/** onBoth makes a check and, in a quick run, repeats it on the opposite screen. */
	async onBoth(check) {
		await check();
		if (!quick) return;
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
	 * sending the other results would take as long as the rules. The limited rules check only
	 * elements of kinds that axe hasn't checked yet. */
	async passes(name, rules, { directions = ["rtl", "ltr"], limited = [] } = {}) {
		const { over, faults, kinds } = await this.page.evaluate(async ([rules, directions, limited, checked]) => {
			const over = directions.flatMap((direction) => window.tooWide(direction));
			const kinds = limited.length > 0 ? window.unlessChecked(limited, checked) : [];
			const nothing = kinds.length === 0 && rules.length === limited.length;
			const { violations } = nothing ? { violations: [] }
				: await window.axe.run(document, { resultTypes: ["violations"], selectors: false, preload: false, runOnly: rules });
			document.documentElement.dir = "ltr";
			return { over, faults: violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`), kinds: kinds.join(" ") };
		}, [rules, directions, limited, [...kindsChecked].join(" ")]);
		assert.deepEqual(over, [], `${name} is wider than the screen`);
		assert.deepEqual(faults, [], `axe on ${name}, ${directions.at(-1)}`);
		for (const kind of kinds.split(" ")) kindsChecked.add(kind);
	}

	/** fits checks the width in both directions of text. */
	async fits(name) {
		const over = await this.page.evaluate(`["rtl", "ltr"].flatMap(${tooWide})`);
		assert.deepEqual(over, [], `${name} is wider than the screen`);
	}

	/** fitsWithTwiceTheText checks WCAG 2.2, 1.4.4, with the size of text that people set in the
	 * browser, on phones, which have the least room for it. The screen of 320 px represents a
	 * magnified page (1.4.10), so it is widened to a common phone's 375 px. It does nothing for
	 * people with a virtual authenticator, which a second session of DevTools would end. turnTo
	 * restores the size. */
	async fitsWithTwiceTheText(screen, name) {
		if (this.hasAuthenticator) return false;
		const { viewport } = screens[screen];
		this.enlarged = true;
		await Promise.all([this.page.setViewportSize({ ...viewport, width: Math.max(viewport.width, 375) }), this.setTextSize(32)]);
		await this.fits(`${name} with twice the text`);
		return true;
	}

	/** quiet checks that the browser's console has neither errors nor warnings. */
	quiet(name) {
		assert.deepEqual(this.complaints, [], `the console on ${name}`);
	}

	async go(where) { await this.page.goto(where); }

	/** open follows a link of the console's menu, which it opens first on a phone. */
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

	/** openSession signs in by the API, where the login's pages aren't what is tested. */
	async openSession(email) {
		const response = await this.context.request.post("/api/v2/auth/login", { data: { email, password } });
		assert.equal(response.status(), 200, `signing in ${email}`);
	}

	/** at waits until the browser is at the path. */
	async at(where) {
		await this.page.waitForURL((url) => url.pathname === where);
	}

	/** says checks the text of an element. */
	async says(selector, pattern) {
		assert.match(await this.page.locator(selector).first().innerText(), pattern);
	}
}
