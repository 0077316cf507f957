// Starts a real "doorward dev", and lets people use its pages in a real Chromium: see
// CONTRIBUTING.md for what is checked with DOORWARD_TEST_FULL and without.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { Viewer, everyScreen, full, rendered, timeout } from "./browser.mjs";
import { covered } from "./covered.mjs";

export { everyScreen, timeout };

const run = promisify(execFile);
const program = process.env.DOORWARD ?? path.resolve(import.meta.dirname, "../bin/doorward");

export const password = "open sesame 9042"; // of the four people of dev
export const chosen = "four quiet green llamas";

/** first returns the screens, but in the short form only the first one. */
export const first = (screens) => (full ? screens : screens.slice(0, 1));

/** onScreens declares the same journeys for each screen, with a server for each screen. Two
 * screens run at a time, for machines with two cores. In the short form each journey runs once:
 * all on one server, on one screen after the other. */
export function onScreens(name, screens, declare) {
	describe(name, { concurrency: full ? 2 : 1 }, () => {
		if (!full) onServer(screens, declare);
		else for (const screen of screens) describe(screen, { concurrency: 1 }, () => onServer([screen], declare));
	});
}

/** onServer declares the journeys on a server of their own, on the screens in turn. The browsers
 * from create are closed when their test ends. */
function onServer(screens, declare) {
	const server = new Server();
	const people = [];
	let turn = 0;
	const create = async (options) => {
		people.push(await Person.create(server.url, screens[turn % screens.length], options));
		return people.at(-1);
	};
	before(() => server.begin());
	afterEach(async () => {
		turn++;
		for (const one of people.splice(0)) await one.context.close();
	});
	after(() => server.stop());
	declare({ server, create, journey: test });
}

/** until repeats what returns whether it has happened, up to the deadline. */
export async function until(what, happened) {
	for (const end = Date.now() + timeout; !await happened();) assert.ok(Date.now() < end, `${what} doesn't happen`);
}

/** Server is one "doorward dev" in its own folder. */
export class Server {
	env = {}; // of the program, beside that of the tests

	static start(...flags) { return new Server().begin(...flags); }

	async begin(...flags) {
		this.folder = await mkdtemp(path.join(tmpdir(), "doorward-e2e-"));
		this.log = "";
		const cheapHashes = ["--password-memory-kib", "1024", "--password-time", "1"];
		return this.launch("--listen", "localhost:0", "--log-format", "json", ...cheapHashes, ...flags);
	}

	/** restart starts the program again on its database, with more flags. Without a fixed port in
	 * --listen its address changes. */
	async restart(...flags) {
		await this.end();
		return this.launch(...this.flags, ...flags);
	}

	async launch(...flags) {
		this.flags = flags;
		this.process = spawn(program, ["dev", ...flags], { cwd: this.folder, env: { ...process.env, ...this.env } });
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

	/** code returns the code in the newest mail to the address, other than an earlier one. It waits
	 * for the mail, which the server logs. */
	async code(to, earlier) {
		const signal = AbortSignal.timeout(timeout);
		for (;;) {
			const code = this.mails().filter((mail) => mail.to === to).map((mail) => mail.text.match(/^[A-Za-z0-9_-]{43}$/m)?.[0]).findLast(Boolean);
			if (code && code !== earlier) return code;
			await once(this.process.stderr, "data", { signal }).catch(() => { throw new Error(`no mail to ${to}`); });
		}
	}

	/** mails returns the mails in the log. */
	mails() {
		return this.log.split("\n").slice(0, -1).filter((line) => line.includes('"msg":"mail"')).map((line) => JSON.parse(line));
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

	async end() {
		const ended = new Promise((done) => { this.process.removeAllListeners("exit").on("exit", done); });
		this.process.kill("SIGTERM");
		await ended;
	}

	async stop() {
		if (this.process.pid === undefined) return; // it never started
		await this.end();
		await rm(this.folder, { recursive: true });
	}
}

/** Person is one person's browser. */
export class Person extends Viewer {
	/** look checks a page that a journey sees. In the short form, and without scripts, with which axe runs, this
	 * is the browser's console alone; the rest is checked on the rendered page with the same elements, which must exist. */
	async look(name) {
		if (full && this.runsScripts) await this.passesFully(name);
		const page = covered[name] ?? (name.startsWith("console-") ? name.replace("-", "/") : `hosted/${name}`);
		assert.ok(rendered.has(page), `no rendered page has what is on ${name}: add a sample ${page}, or name another one in covered.mjs`);
		this.quiet(name);
	}

	/** open follows a link of the console's menu, which it opens first on a phone. */
	async open(where) {
		if (await this.page.locator(".opener").isVisible()) await this.page.locator(".opener").click();
		await this.page.locator(`.drawer a[href$="${where}"]`).click();
		await this.at(where);
	}

	/** send fills the fields and submits the form, whose action may have a query, too. */
	async send(action, fields = {}) {
		const form = this.page.locator(`form:is([action$="${action}"], [action*="${action}?"])`).first();
		for (const [name, value] of Object.entries(fields)) await form.locator(`[name="${name}"]`).fill(value);
		await form.locator("[type=submit]:not([aria-hidden], [formnovalidate])").first().click();
		await this.page.waitForLoadState();
	}

	/** tab opens a tab of the page. */
	async tab(name) {
		const link = this.page.locator(name === await this.firstTab() ? ".tabs a >> nth=0" : `.tabs a[href*="tab=${name}"]`);
		await link.click();
		await this.page.waitForLoadState();
	}

	/** firstTab is the name of the tab without a name in its address. */
	async firstTab() {
		return { people: "profile", keys: "profile", webhooks: "deliveries", roles: "permissions", settings: "general" }[new URL(this.page.url()).pathname.split("/")[2]];
	}

	/** pickRole chooses a role among those that the picker hides. */
	async pickRole(role) {
		const picker = this.page.locator(".picker");
		if (await picker.getAttribute("open") === null) await picker.locator("summary").click();
		await picker.locator(`[name=role][value=${role}]`).check();
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
