// What the tests of providers need: a certificate for loopback, a name server, a real "doorward dev", and a
// browser that keeps cookies and follows redirects.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { request as http } from "node:http";
import { request as https } from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";

export const password = "open sesame 9042"; // of the four people of dev
const redirectsMax = 10;
const patience = 150_000; // ms: what may take a minute, on a busy machine

/** certificate makes a certificate of loopback in the folder (openssl), and returns the paths of both files. */
export function certificate(folder) {
	const [key, cert] = ["key.pem", "cert.pem"].map((name) => path.join(folder, name));
	execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert], { stdio: "ignore" });
	return { key, cert };
}

/** freePort returns a port of loopback that nothing listens on. */
export async function freePort() {
	const server = createServer().listen(0, "127.0.0.1");
	await once(server, "listening");
	const { port } = server.address();
	await new Promise((done) => server.close(done));
	return port;
}

/** Names is a name server that knows TXT records alone (RFC 1035, section 4.1). */
class Names {
	records = new Map(); // text by name

	async listen() {
		this.socket = createSocket("udp4", (question, from) => this.socket.send(this.answer(question), from.port, from.address));
		this.socket.bind(0, "127.0.0.1");
		await once(this.socket, "listening");
		return `127.0.0.1:${this.socket.address().port}`;
	}

	answer(question) {
		const labels = [];
		let at = 12; // after the header
		for (; question[at]; at += question[at] + 1) labels.push(question.toString("latin1", at + 1, at + 1 + question[at]));
		const asked = question.subarray(12, at + 5); // with type and class
		const text = this.records.get(labels.join(".").toLowerCase());
		const found = text && asked.readUInt16BE(asked.length - 4) === 16;
		const header = Buffer.from([question[0], question[1], 0x84 | (question[2] & 1), text ? 0 : 3, 0, 1, 0, found ? 1 : 0, 0, 0, 0, 0]);
		const record = Buffer.from([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 0, 0, (text?.length ?? 0) + 1, text?.length ?? 0]);
		return Buffer.concat(found ? [header, asked, record, Buffer.from(text, "latin1")] : [header, asked]);
	}
}

/** Doorward is one "doorward dev" in its own folder, which keeps its address when it starts again. */
export class Doorward {
	static async start(program, cert) {
		const d = new Doorward();
		Object.assign(d, { program, cert, folder: await mkdtemp(path.join(tmpdir(), "doorward-providers-")), names: new Names() });
		d.base = `http://127.0.0.1:${await freePort()}`;
		d.dns = await d.names.listen();
		await d.launch();
		return d;
	}

	async launch() {
		this.process = spawn(this.program, ["dev", "--listen", new URL(this.base).host, "--log-level", "error", "--password-memory-kib", "1024", "--password-time", "1", "--dns-server", this.dns, "--sso-allow", "127.0.0.0/8", "--sso-allow", "::1/128"], {
			cwd: this.folder, env: { ...process.env, HOME: this.folder, SSL_CERT_FILE: this.cert }, stdio: ["ignore", "pipe", "inherit"],
		});
		for await (const line of createInterface(this.process.stdout)) {
			if (line.includes(" is ready at ")) {
				this.process.stdout.resume();
				return;
			}
		}
		assert.fail("the server has not started");
	}

	async end() {
		if (this.process.exitCode !== null) return;
		this.process.kill();
		await once(this.process, "exit");
	}

	/** restart ends the server, runs an SQL statement in its database, and starts it again. */
	async restart(sql) {
		await this.end();
		execFileSync("python3", ["-c", "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()", path.join(this.folder, "doorward-dev/doorward.db"), sql]);
		await this.launch();
	}

	async stop() {
		await this.end();
		this.names.socket.close();
		await rm(this.folder, { recursive: true });
	}
}

/** until repeats what may be refused for a minute, while one side keeps the other's earlier keys. */
export async function until(what, fn) {
	for (const end = Date.now() + patience; ;) {
		try {
			return await fn();
		} catch (failure) {
			if (Date.now() > end) throw new Error(`${what}: not within ${patience / 1000} s`, { cause: failure });
		}
		await new Promise((done) => setTimeout(done, 3000));
	}
}

/** responseIn returns the form of a page with a response of SAML: where it goes, and its fields. */
export function responseIn(page) {
	const attribute = (tag, name) => tag.match(new RegExp(`\\b${name}="([^"]*)"`))?.[1].replaceAll("&quot;", '"').replace(/&#(x[0-9a-f]+|\d+);/gi, (_, code) => String.fromCodePoint(Number(code.replace(/^x/i, "0x")))).replaceAll("&amp;", "&");
	const fields = (page.match(/<input\b[^>]*>/g) ?? []).map((tag) => [attribute(tag, "name"), attribute(tag, "value") ?? ""]).filter(([name]) => name);
	if (!fields.some(([name]) => name === "SAMLResponse")) return undefined;
	return { action: attribute(page.match(/<form\b[^>]*>/)[0], "action"), fields };
}

/** Browser keeps the cookies of each host, and follows redirects. */
export class Browser {
	cookies = new Map(); // by host, and there by name
	seen = []; // every address that was opened

	constructor(doorward) { this.doorward = doorward; }

	/** send sends one request. A body is JSON, or a form if it is one (URLSearchParams). */
	async send(method, where, body, headers = {}) {
		const to = new URL(where, this.doorward.base);
		const jar = this.cookies.get(to.host) ?? new Map();
		this.cookies.set(to.host, jar);
		this.seen.push(to);
		const answer = await new Promise((done, failed) => {
			const sent = (to.protocol === "https:" ? https : http)(to, {
				method, ca: readFileSync(this.doorward.cert), headers: {
					...(body && { "content-type": body instanceof URLSearchParams ? "application/x-www-form-urlencoded" : "application/json" }), cookie: [...jar].map((pair) => pair.join("=")).join("; "), ...headers,
				},
			}, async (got) => {
				const parts = [];
				for await (const part of got) parts.push(part);
				done({ status: got.statusCode, headers: got.headers, text: Buffer.concat(parts).toString() });
			});
			sent.on("error", failed).end(body instanceof URLSearchParams ? body.toString() : body && JSON.stringify(body));
		});
		for (const set of answer.headers["set-cookie"] ?? []) {
			const [, name, value] = set.match(/^([^=]+)=([^;]*)/);
			if (value === "" || /max-age=0|expires=Thu, 01 Jan 1970/i.test(set)) jar.delete(name);
			else jar.set(name, value);
		}
		answer.location = answer.headers.location && new URL(answer.headers.location, to).href;
		return answer;
	}

	/** call calls the API, which must not refuse. */
	async call(method, where, body, headers) {
		const answer = await this.send(method, where, body, headers);
		assert.ok(answer.status < 400, `${method} ${where}: ${answer.status} ${answer.text}`);
		return { etag: answer.headers.etag, ...(answer.text.startsWith("{") && JSON.parse(answer.text)) };
	}

	/** open follows redirects to a page, or to the address that the function stops at, and returns the answer. A page
	 * with the response of a provider of SAML sends it. */
	async open(where, stops = () => false) {
		for (let i = 0; i < redirectsMax; i++) {
			let answer = await this.send("GET", where, undefined, { accept: "application/json" });
			const response = responseIn(answer.text);
			if (response) answer = await this.post(response);
			if (!answer.location || stops(answer.location)) return answer;
			where = answer.location;
		}
		throw new Error(`redirects without end, at last to ${where}`);
	}

	/** post sends the form of another site, so without cookies: all of Doorward's are SameSite=Lax. */
	async post({ action, fields }) {
		this.posted = { action, fields };
		return this.send("POST", action, new URLSearchParams(fields), { cookie: "", origin: "null", "sec-fetch-site": "cross-site" });
	}

	/** signIn signs in by the connection, and returns the session. */
	async signIn(connection, query = "") {
		const end = await this.open(connection.startUrl + query, (to) => to.startsWith(this.doorward.base) && !to.includes("/callback"));
		assert.equal(end.status, 303, `the sign-in ends with ${end.status} ${end.text}`);
		return this.call("GET", "/api/v2/auth/session");
	}
}

/** Owner is the browser of the OWNER of dev's tenant. */
export class Owner extends Browser {
	async begin() {
		await this.call("POST", "/api/v2/auth/login", { email: "owner@acme.example", password });
		return this;
	}

	/** connect makes a connection, and a secret of it, unless it proves itself by its keys. */
	async connect(draft, clientSecret) {
		const made = await this.call("POST", "/api/v2/sso/connections", { type: "oidc", name: "Provider", ...draft });
		if (clientSecret) await this.call("POST", `/api/v2/sso/connections/${made.id}/secrets`, { clientSecret });
		return made;
	}

	/** test signs in for a test of the connection, and returns the result. */
	async test({ id }) {
		const begun = await this.call("POST", `/api/v2/sso/connections/${id}/test`);
		await this.open(begun.url, (to) => to.includes(`/test/${begun.testId}`));
		return this.call("GET", `/api/v2/sso/connections/${id}/tests/${begun.testId}`);
	}

	/** enable tests the connection, and lets it sign people in, for the domain, if that is given. */
	async enable({ id }, domain) {
		const test = await this.test({ id });
		assert.equal(test.status, "passed", JSON.stringify(test));
		if (domain) {
			const made = await this.call("POST", "/api/v2/domains", { domain });
			this.doorward.names.records.set(made.record.name, made.record.value);
			await this.call("POST", `/api/v2/domains/${made.id}/verify`);
			await this.call("PATCH", `/api/v2/domains/${made.id}`, { connectionId: id });
		}
		await this.call("PATCH", `/api/v2/sso/connections/${id}`, { status: "active" });
		const { etag, mode } = await this.call("GET", "/api/v2/sso/policy");
		if (mode === "off") await this.call("PUT", "/api/v2/sso/policy", { mode: "optional", guests: "allowed" }, { "if-match": etag });
		return test;
	}

	/** lastAttempt returns the newest entry of the connection's protocol. */
	async lastAttempt({ id }) {
		return (await this.call("GET", `/api/v2/sso/connections/${id}/attempts?limit=1`)).items[0];
	}
}
