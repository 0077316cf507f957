// Verifies a signed assertion of Doorward (the header X-Auth-Assertion) in Node, without
// dependencies.
//
//	import { KeysUnavailable, verifier } from "./verify.mjs";
//	const verify = verifier("https://auth.example.com", "https://messages.example.com");
//	const who = await verify(request.headers["x-auth-assertion"]);
//
// It throws KeysUnavailable when Doorward's keys can't be read, which says nothing about the
// assertion: answer 503. Any other error says that it isn't valid: answer 401.
//
// With a JWT library instead, set no clock tolerance: iat and nbf lie 5 s back already.
import { createPublicKey, verify as verifySignature } from "node:crypto";

export class KeysUnavailable extends Error {}

export function verifier(issuer, audience) {
	let keys = new Map(), readAt = -Infinity, triedAt = -Infinity, reading;
	const json = (part) => JSON.parse(Buffer.from(part, "base64url"));

	async function read() {
		triedAt = performance.now();
		const response = await fetch(issuer + "/.well-known/jwks.json", { cache: "no-store", signal: AbortSignal.timeout(3_000) });
		const found = (await response.json()).keys;
		keys = new Map(found.map((key) => [key.kid, createPublicKey({ key, format: "jwk" })]));
		readAt = triedAt;
	}

	// The keys are kept for 300 s, and read again for an unknown one, at most every 5 s. While
	// they can't be read, the known ones stay in use.
	async function keyOf(id) {
		const age = performance.now() - readAt;
		if (age > (keys.has(id) ? 300_000 : 5_000) && performance.now() - triedAt > 5_000) {
			reading = read().catch((cause) => cause);
		}
		const cause = await reading;
		if (cause && !keys.has(id)) throw new KeysUnavailable("Doorward's keys can't be read", { cause });
		if (!keys.has(id)) throw new Error("the key isn't published");
		return keys.get(id);
	}

	return async function verify(assertion) {
		const [header, body, signature] = String(assertion).split(".");
		const { alg, typ, kid } = json(header);
		if (alg !== "ES256" || typ !== "doorward+jwt") throw new Error("not an assertion");
		const key = { key: await keyOf(kid), dsaEncoding: "ieee-p1363" };
		const signed = Buffer.from(header + "." + body);
		if (!verifySignature("sha256", signed, key, Buffer.from(signature, "base64url"))) throw new Error("wrong signature");
		const claims = json(body);
		if (claims.iss !== issuer || claims.aud !== audience) throw new Error("for another audience");
		if (!(Date.now() / 1000 < claims.exp)) throw new Error("expired");
		return claims;
	};
}
