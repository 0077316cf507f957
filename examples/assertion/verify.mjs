// Verifies a signed assertion of Doorward (the header X-Auth-Assertion) in Node, without
// dependencies.
//
//	import { verifier } from "./verify.mjs";
//	const verify = verifier("https://auth.example.com", "https://messages.example.com");
//	const who = await verify(request.headers["x-auth-assertion"]); // throws if it isn't valid
import { createPublicKey, verify as verifySignature } from "node:crypto";

export function verifier(issuer, audience) {
	let keys = new Map(), readAt = -Infinity;
	const json = (part) => JSON.parse(Buffer.from(part, "base64url"));

	// The keys are kept for 300 s, and read again for an unknown one, at most every 5 s.
	async function keyOf(id) {
		const age = performance.now() - readAt;
		if (age > 300_000 || (!keys.has(id) && age > 5_000)) {
			const response = await fetch(issuer + "/.well-known/jwks.json");
			if (!response.ok) throw new Error("the keys can't be read: " + response.status);
			const found = (await response.json()).keys;
			keys = new Map(found.map((key) => [key.kid, createPublicKey({ key, format: "jwk" })]));
			readAt = performance.now();
		}
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
		if (Date.now() / 1000 >= claims.exp) throw new Error("expired");
		return claims;
	};
}
