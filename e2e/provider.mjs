// A provider of OpenID Connect, npm oidc-provider, and the name servers of domains, for journeys of sign-on.

import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";

/** directory is the first part of the issuer's path, as Entra's issuers have it, and the claim tid. */
const directory = "8f0d2c1e-6a57-4f0e-9a33-2f5a1c9d7e10";

/** Provider signs in one person, without a page of its own; person has their claims. Its certificate is its own
 * authority, in the file authority. */
export class Provider {
	clients = new Map(); // by client_id
	person = {};

	static async start() {
		const { Provider: OpenID } = await import("oidc-provider");
		const p = new this();
		p.OpenID = OpenID;
		p.folder = mkdtempSync(path.join(tmpdir(), "doorward-provider-"));
		const key = path.join(p.folder, "key.pem");
		p.authority = path.join(p.folder, "cert.pem");
		execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", p.authority], { stdio: "ignore" });
		p.server = createServer({ key: readFileSync(key), cert: readFileSync(p.authority) }, (request, answer) => {
			p.serve(request, answer).catch((failure) => answer.destroy(failure));
		}).listen(0, "localhost");
		await once(p.server, "listening");
		p.issuer = `https://localhost:${p.server.address().port}/${directory}/v2.0`;
		p.signingKey = { ...generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ format: "jwk" }), use: "sig", alg: "ES256" };
		p.register();
		return p;
	}

	/** register adds a client, or replaces the one with its client_id, and starts the provider with all of them. */
	register(client) {
		if (client) this.clients.set(client.client_id, { response_types: ["code"], grant_types: ["authorization_code"], id_token_signed_response_alg: "ES256", ...client });
		this.provider = new this.OpenID(this.issuer, {
			clients: [...this.clients.values()],
			jwks: { keys: [this.signingKey] },
			cookies: { keys: ["a key of the provider's cookies"] },
			ttl: { AccessToken: 600, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 }, // s
			pkce: { required: () => true },
			claims: { openid: ["sub", "tid", "hd"], email: ["email"], profile: ["name"] },
			conformIdTokenClaims: false, // else the address is at userinfo alone
			features: { devInteractions: { enabled: false } },
			interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
			findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, tid: directory, ...this.person }) }),
			loadExistingGrant: async ({ oidc }) => {
				const grant = new this.provider.Grant({ accountId: oidc.session.accountId, clientId: oidc.client.clientId });
				grant.addOIDCScope("openid email profile");
				await grant.save();
				return grant;
			},
			fetch: (address, { dispatcher, ...options }) => fetch(address, options), // the keys of Doorward are on loopback
		});
		this.callback = this.provider.callback();
	}

	async serve(request, answer) {
		if (!request.url.startsWith("/interaction/")) {
			request.originalUrl = request.url; // by which the provider knows where it is mounted
			request.url = request.url.replace(new URL(this.issuer).pathname, "");
			return this.callback(request, answer);
		}
		await this.provider.interactionDetails(request, answer);
		return this.provider.interactionFinished(request, answer, { login: { accountId: "1" } });
	}

	async stop() {
		this.server.close();
		this.server.closeAllConnections();
		rmSync(this.folder, { recursive: true });
	}
}

const TXT = 16;
const NXDOMAIN = 3; // of a name without a record here (RFC 1035, section 4.1.1)

/** NameServer answers for TXT records (RFC 1035), over UDP. */
export class NameServer {
	records = new Map(); // the texts by their names

	static async start() {
		const s = new this();
		s.socket = createSocket("udp4").on("message", (question, from) => s.socket.send(s.answer(question), from.port, from.address));
		s.socket.bind(0, "127.0.0.1");
		await once(s.socket, "listening");
		s.address = `127.0.0.1:${s.socket.address().port}`;
		return s;
	}

	/** answer has the header and the question of the message, and the record for its name. */
	answer(message) {
		const labels = [];
		let end = 12;
		for (let length = message[end]; length > 0; length = message[end]) {
			labels.push(message.toString("ascii", end + 1, end + 1 + length));
			end += 1 + length;
		}
		end += 5; // the last label, type and class
		const text = message.readUInt16BE(end - 4) === TXT ? this.records.get(labels.join(".").toLowerCase()) : undefined;
		const head = Buffer.from(message.subarray(0, end));
		head.writeUInt16BE(0x8580 | (text === undefined ? NXDOMAIN : 0), 2); // an authoritative answer
		head.writeUInt16BE(text === undefined ? 0 : 1, 6);
		head.writeUInt32BE(0, 8);
		if (text === undefined) return head;
		const record = Buffer.alloc(13);
		record.writeUInt16BE(0xc00c, 0); // the name of the question
		record.writeUInt16BE(TXT, 2);
		record.writeUInt16BE(1, 4); // IN
		record.writeUInt32BE(60, 6); // s
		record.writeUInt16BE(text.length + 1, 10);
		record.writeUInt8(text.length, 12);
		return Buffer.concat([head, record, Buffer.from(text)]);
	}

	stop() { this.socket.close(); }
}
