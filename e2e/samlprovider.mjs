// A provider of SAML 2.0, npm samlp, for journeys of sign-on.

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";

/** SAMLProvider signs in one person, without a page of its own; person has their id, address and name. Its address is another
 * site than Doorward's. Its certificate is its own authority, in the file authority. */
export class SAMLProvider {
	person = {};

	static async start() {
		const { default: samlp } = await import("samlp");
		const p = new this();
		p.samlp = samlp;
		p.folder = mkdtempSync(path.join(tmpdir(), "doorward-provider-"));
		p.authority = p.certificate("server", ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"], "-addext", "subjectAltName=IP:127.0.0.1");
		p.certificate("signing", ["rsa:2048"]);
		p.server = createServer(p.pair("server"), (request, answer) => p.serve(request, answer)).listen(0, "127.0.0.1");
		await once(p.server, "listening");
		p.base = `https://127.0.0.1:${p.server.address().port}`;
		p.metadataUrl = `${p.base}/metadata`;
		p.entityId = `${p.base}/entity`;
		return p;
	}

	/** certificate makes a key and its certificate (openssl), and returns the file of the latter. */
	certificate(name, kind, ...flags) {
		const file = (part) => path.join(this.folder, `${name}-${part}.pem`);
		execFileSync("openssl", ["req", "-x509", "-newkey", ...kind, "-nodes", "-days", "2", "-subj", "/CN=provider", ...flags, "-keyout", file("key"), "-out", file("cert")], { stdio: "ignore" });
		return file("cert");
	}

	/** pair returns what certificate has made. */
	pair(name) {
		const [key, cert] = ["key", "cert"].map((part) => readFileSync(path.join(this.folder, `${name}-${part}.pem`), "utf8"));
		return { key, cert };
	}

	/** register tells the provider the addresses of a connection: acsUrl, spEntityId. */
	register(connection) { this.connection = connection; }

	/** The address /sso answers requests, and /tile sends a response that nobody has asked for, as a portal does. */
	serve(request, answer) {
		const address = new URL(request.url, this.base);
		const shown = { set: (name, value) => answer.setHeader(name, value), send: (page) => answer.end(String(page)) };
		if (address.pathname === "/metadata") {
			const endpoints = { redirectEndpointPath: "/sso", postEndpointPath: "/sso" };
			return this.samlp.metadata({ issuer: this.entityId, cert: this.pair("signing").cert, ...endpoints })(Object.assign(request, { protocol: "https" }), shown);
		}
		const { acsUrl, spEntityId } = this.connection;
		const { id, email, name } = this.person;
		const auth = this.samlp.auth({
			...this.pair("signing"), issuer: this.entityId, recipient: acsUrl, destination: acsUrl, getPostURL: (audience, parsed, _, next) => next(null, acsUrl),
			...(address.pathname === "/tile" && { audience: spEntityId }), nameIdentifierFormat: "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
			getUserFromRequest: () => ({ id, displayName: name, name: {}, emails: [{ value: email }] }),
		});
		return auth(Object.assign(request, { query: Object.fromEntries(address.searchParams) }), shown, (failure) => answer.destroy(failure));
	}

	async stop() {
		this.server.close();
		this.server.closeAllConnections();
		rmSync(this.folder, { recursive: true });
	}
}
