// Tests a connection of a real "doorward dev" with another maker's OpenID provider:
//
//	node test.mjs DOORWARD FOLDER    FOLDER has the installed packages, node_modules
//
// The provider is on loopback with https, by a certificate that is made here (openssl).

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { request } from "node:https";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [doorward, packages] = process.argv.slice(2);
const { OAuth2Server } = await import(pathToFileURL(path.join(packages, "node_modules/oauth2-mock-server/dist/index.mjs")));
const folder = await mkdtemp(path.join(tmpdir(), "doorward-providers-"));
const [key, cert] = ["key.pem", "cert.pem"].map((name) => path.join(folder, name));

/** freePort returns a port of loopback that nothing listens on. */
async function freePort() {
	const server = createServer().listen(0, "127.0.0.1");
	await once(server, "listening");
	const { port } = server.address();
	await new Promise((done) => server.close(done));
	return port;
}

/** leadsTo returns where the provider sends a browser that opens the address. */
function leadsTo(address) {
	return new Promise((done, failed) => {
		request(address, { ca: readFileSync(cert) }, (answer) => {
			answer.resume();
			done(answer.headers.location);
		}).on("error", failed).end();
	});
}

execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert], { stdio: "ignore" });
const provider = new OAuth2Server(key, cert);
await provider.issuer.keys.generate("RS256");
await provider.start(0, "127.0.0.1");
provider.issuer.url = `https://localhost:${provider.address().port}`;
provider.service.on("beforeTokenSigning", (token) => Object.assign(token.payload, { sub: "1", email: "ann@acme.example" }));

const port = await freePort();
const server = spawn(doorward, ["dev", "--listen", `127.0.0.1:${port}`, "--log-level", "error", "--password-memory-kib", "1024", "--password-time", "1", "--sso-allow", "127.0.0.0/8", "--sso-allow", "::1/128"], {
	cwd: folder, env: { ...process.env, HOME: folder, SSL_CERT_FILE: cert }, stdio: ["ignore", "pipe", "inherit"],
});
try {
	let base;
	for await (const line of createInterface(server.stdout)) {
		base = line.match(/is ready at (http\S+)/)?.[1];
		if (base) break;
	}
	assert.ok(base, "the server has not started");
	server.stdout.resume();
	const cookies = new Map();
	const call = async (method, where, body) => {
		const answer = await fetch(new URL(where, base), {
			method, redirect: "manual", body: body && JSON.stringify(body),
			headers: { "content-type": "application/json", cookie: [...cookies].map((pair) => pair.join("=")).join("; ") },
		});
		for (const set of answer.headers.getSetCookie()) {
			const [, name, value] = set.match(/^([^=]+)=([^;]*)/);
			cookies.set(name, value);
		}
		const text = await answer.text();
		assert.ok(answer.status < 400, `${method} ${where}: ${answer.status} ${text}`);
		return { location: answer.headers.get("location"), ...(text.startsWith("{") && JSON.parse(text)) };
	};
	await call("POST", "/api/v2/auth/login", { email: "owner@acme.example", password: "open sesame 9042" });
	for (const clientAuth of ["secret_basic", "secret_post", "private_key_jwt"]) {
		const made = await call("POST", "/api/v2/sso/connections", { type: "oidc", name: clientAuth, issuer: provider.issuer.url, clientId: "doorward", clientAuth });
		const where = `/api/v2/sso/connections/${made.id}`;
		if (clientAuth !== "private_key_jwt") await call("POST", `${where}/secrets`, { clientSecret: "a secret of the provider" });
		const begun = await call("POST", `${where}/test`);
		const { location } = await call("GET", begun.url);
		await call("GET", await leadsTo(location));
		const test = await call("GET", `${where}/tests/${begun.testId}`);
		assert.equal(test.status, "passed", JSON.stringify(test));
		assert.equal(test.claims.email, "ann@acme.example");
		console.log(`ok ${clientAuth}`);
	}
} finally {
	server.kill();
	await once(server, "exit");
	await provider.stop();
	await rm(folder, { recursive: true });
}
