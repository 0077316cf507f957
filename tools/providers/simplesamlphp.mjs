// SimpleSAMLphp, as Debian packages it, by the web server that PHP has for development, behind TLS of this process. Without
// a page it signs in whom its configuration names.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { request as http } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect, joins, overlaps, people, provesAgain, Provider, signsIn, stolen } from "./saml.mjs";
import { freePort, until } from "./setup.mjs";

const sessionLife = 8 * 3600_000; // ms, of SessionNotOnOrAfter by default
const slack = 60_000; // ms
const persistent = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent";
const service = "/simplesaml/saml2/idp/SSOService.php";

/** php writes a value as PHP. */
const php = (value) => {
	if (Array.isArray(value)) return `[${value.map(php).join(", ")}]`;
	if (value && typeof value === "object") return `[${Object.entries(value).map(([key, one]) => `${/^\d+$/.test(key) ? key : php(key)} => ${php(one)}`).join(", ")}]`;
	return typeof value === "string" ? `'${value.replace(/[\\']/g, "\\$&")}'` : String(value);
};

class SimpleSAMLphp extends Provider {
	async start(files, packaged) {
		await super.start(files);
		Object.assign(this, { packaged, folder: mkdtempSync(path.join(tmpdir(), "doorward-simplesamlphp-")), port: await freePort() });
		for (const name of ["root", "config/metadata", "cert", "log", "data", "temp"]) mkdirSync(path.join(this.folder, name), { recursive: true });
		symlinkSync(path.join(packaged, "www"), path.join(this.folder, "root/simplesaml"));
		this.entityId = `${this.base}/entity`;
		this.metadataUrl = `${this.base}/simplesaml/saml2/idp/metadata.php`;
		const at = (name) => path.join(this.folder, name) + path.sep;
		this.write("config.php", "$config", {
			baseurlpath: `${this.base}/simplesaml/`, certdir: at("cert"), loggingdir: at("log"), datadir: at("data"), tempdir: at("temp"), metadatadir: at("config/metadata"),
			secretsalt: "of this test", timezone: "UTC", "enable.saml20-idp": true, "logging.handler": "file", "logging.level": 4, "store.type": "phpsession",
			"session.phpsession.savepath": at("temp"), "session.cookie.secure": true, "session.cookie.samesite": "None", "module.enable": { exampleauth: true, core: true, saml: true },
			"metadata.sources": { 0: { type: "flatfile" } },
		});
		this.configure();
		this.process = spawn("php", ["-S", `127.0.0.1:${this.port}`, "-t", path.join(this.folder, "root")], {
			env: { ...process.env, SIMPLESAMLPHP_CONFIG_DIR: path.join(this.folder, "config") }, stdio: "ignore",
		});
		await until("PHP listens", () => fetch(`http://127.0.0.1:${this.port}/`));
		return this;
	}

	write(name, variable, value, rest = "") {
		writeFileSync(path.join(this.folder, "config", name), `<?php\n${variable} = ${php(value)};\n${rest}`);
	}

	/** configure writes the files that PHP reads at each request: who signs in, and by which key; a second one is published. */
	configure() {
		const { id, email } = people[this.person];
		this.write("authsources.php", "$config", { fixed: { 0: "exampleauth:StaticSource", uid: [id], mail: [email] } });
		const keys = [this.signing, ...this.published.filter((key) => key !== this.signing)].slice(0, 2);
		for (const [i, key] of keys.entries()) {
			writeFileSync(path.join(this.folder, `cert/${i}.key`), key.key);
			writeFileSync(path.join(this.folder, `cert/${i}.crt`), key.cert);
		}
		this.write("metadata/saml20-idp-hosted.php", "$metadata", {
			[this.entityId]: {
				host: "__DEFAULT__", auth: "fixed", privatekey: "0.key", certificate: "0.crt", ...(keys.length > 1 && { new_privatekey: "1.key", new_certificate: "1.crt" }),
				authproc: { 10: { class: "saml:PersistentNameID", attribute: "uid" } }, ...this.options,
			},
		});
		execFileSync("php", ["-l", path.join(this.folder, "config/metadata/saml20-idp-hosted.php")], { stdio: "ignore" });
	}

	/** register has SimpleSAMLphp read our metadata, as its page for administrators does. */
	register({ metadata }) {
		const script = "require $argv[1] . '/lib/_autoload.php'; foreach (SimpleSAML\\Metadata\\SAMLParser::parseDescriptorsString(stream_get_contents(STDIN)) as $id => $one) {" +
			" $found = $one->getMetadata20SP(); unset($found['entityDescriptor']); $found['NameIDFormat'] = $argv[2]; echo '$metadata[', var_export($id, true), '] = ', var_export($found, true), \";\\n\"; }";
		const converted = execFileSync("php", ["-r", script, this.packaged, persistent], {
			input: metadata, encoding: "utf8", env: { ...process.env, SIMPLESAMLPHP_CONFIG_DIR: path.join(this.folder, "config") },
		});
		this.write("metadata/saml20-sp-remote.php", "$metadata", {}, converted);
	}

	/** serve passes a request on to PHP. */
	async serve(request, answer) {
		this.configure();
		const address = new URL(request.url, this.base);
		if (address.pathname === service) this.ask(request, address);
		const passed = http({ host: "127.0.0.1", port: this.port, method: request.method, path: request.url, headers: { ...request.headers, host: new URL(this.base).host } });
		request.pipe(passed);
		const [got] = await once(passed, "response");
		answer.writeHead(got.statusCode, got.headers);
		got.pipe(answer);
	}

	/** ask notes a request to which no session of the provider answers. */
	ask(request, address) {
		const text = this.requestIn(Object.fromEntries(address.searchParams));
		if (/ForceAuthn="true"/.test(text) || !/\bSimpleSAMLAuthToken=/.test(request.headers.cookie ?? "")) this.asked.push(text);
	}

	log() { return readFileSync(path.join(this.folder, "log/simplesamlphp.log"), "utf8"); }

	stop() {
		super.stop();
		this.process?.kill();
		rmSync(this.folder, { recursive: true });
	}
}

export async function test({ doorward, owner, files, simplesamlphp }) {
	const provider = new SimpleSAMLphp();
	try {
		await provider.start(files, simplesamlphp);
		const world = { doorward, owner, provider };
		const connection = await connect(world, { signRequests: true, encrypt: true });
		const browser = await signsIn(world, connection);
		const { session } = await browser.call("GET", "/api/v2/auth/session");
		const life = Date.parse(session.expiresAt) - Date.parse(session.createdAt);
		assert.ok(life > sessionLife - slack && life <= sessionLife + slack, `the session is for ${life} ms, and SessionNotOnOrAfter for ${sessionLife}`);
		await joins(world, connection);
		await provesAgain(world, connection, browser);
		await stolen(world, connection);
		provider.options = { "assertion.encryption": true }; // by AES-CBC, in a signed response
		await new browser.constructor(doorward).signIn(connection);
		console.log("ok an encrypted assertion");
		provider.options = {};
		await overlaps(world, connection);
	} finally {
		provider.stop();
	}
}
