// Verifies signed assertions offline, by the keys that Doorward publishes, with Node's
// crypto alone.

import { createPublicKey, verify } from "node:crypto";
import { DoorwardError, Unauthenticated, Unavailable } from "./errors.js";

const keysMaxAge = 300_000; // as their Cache-Control says
const minReadInterval = 5_000; // between two attempts to read the keys, once they have been read

/** Verifier verifies assertions for one audience, one of --assertion-audience. A valid one was
 * true when it was made, at most 30 s ago. It doesn't say that an action is allowed. */
export class Verifier {
	#client; #audience; #now;
	#keys = new Map();
	#readAt = -Infinity;
	#triedAt = -Infinity;
	#reading;

	constructor(client, audience, { now = Date.now } = {}) {
		if (!audience) throw new TypeError("the audience is missing");
		this.#client = client.as(undefined);
		this.#audience = audience;
		this.#now = now;
	}

	/** verify resolves to what the assertion states. It rejects with Unauthenticated when it
	 * isn't valid, and with Unavailable when the keys can't be read. */
	async verify(assertion) {
		const parts = String(assertion ?? "").split(".");
		const [header, claims] = parts.slice(0, 2).map(decode);
		if (parts.length !== 3 || header?.alg !== "ES256" || header.typ !== "doorward+jwt" || !claims) throw invalid("it is no assertion");
		const key = await this.#key(header.kid);
		const signature = bytes(parts[2]);
		const signed = Buffer.from(`${parts[0]}.${parts[1]}`);
		if (signature?.length !== 64 || !verify("sha256", signed, { key, dsaEncoding: "ieee-p1363" }, signature)) throw invalid("its signature is wrong");
		if (claims.iss !== this.#client.publicUrl || !claims.sub) throw invalid("it is of another issuer");
		if (claims.aud !== this.#audience) throw invalid("it is for another audience");
		if (!(this.#now() / 1000 < claims.exp)) throw invalid("it has expired");
		const { sub, tenant, role, sid = "", key: keyId = "", aal = 0, authTime, exp } = claims;
		return {
			subject: sub, tenantId: tenant, role, sessionId: sid, keyId, aal, expiresAt: new Date(exp * 1000),
			...(authTime && { authTime: new Date(authTime * 1000) }),
		};
	}

	/** #key returns the key with the id. Keys that are too old are read again. If that fails, the
	 * old ones still verify, since a key is published for a day after its last use. */
	async #key(id) {
		const age = this.#now() - this.#readAt;
		if (this.#keys.has(id) && age < keysMaxAge) return this.#keys.get(id);
		if (this.#readAt === -Infinity || (age >= minReadInterval && this.#now() - this.#triedAt >= minReadInterval)) {
			this.#triedAt = this.#now();
			this.#reading ??= this.#read().finally(() => { this.#reading = undefined; });
		}
		try {
			await this.#reading;
		} catch (error) {
			if (!this.#keys.has(id)) throw error;
		}
		if (!this.#keys.has(id)) throw invalid("its key isn't published");
		return this.#keys.get(id);
	}

	async #read() {
		let set;
		try {
			set = await this.#client.get("/.well-known/jwks.json");
		} catch (cause) {
			throw cause instanceof Unavailable || !(cause instanceof DoorwardError) ? cause : unreadable({ cause });
		}
		if (!Array.isArray(set?.keys)) throw unreadable();
		this.#keys = new Map(set.keys.flatMap(keyOf));
		this.#readAt = this.#now();
	}
}

/** keyOf returns a list of one pair, the id and the key, or an empty list if the key isn't for
 * ES256. */
function keyOf(jwk) {
	const { kty, crv, x, y, kid } = jwk ?? {};
	if (kty !== "EC" || crv !== "P-256" || !kid) return [];
	try {
		return [[kid, createPublicKey({ key: { kty, crv, x, y }, format: "jwk" })]];
	} catch {
		return [];
	}
}

const unreadable = (options) => new Unavailable({ detail: "The keys of Doorward can't be read." }, options);
const invalid = (why) => new Unauthenticated({ status: 401, code: "unauthenticated", detail: `The assertion isn't valid: ${why}.` });

/** bytes decodes base64url strictly: one text for one value. */
function bytes(part) {
	const decoded = Buffer.from(part, "base64url");
	return decoded.toString("base64url") === part ? decoded : undefined;
}

function decode(part = "") {
	try {
		return JSON.parse(bytes(part));
	} catch {
		return undefined;
	}
}
