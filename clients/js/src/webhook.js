// Receives Doorward's webhooks, which are signed by the rules of Standard Webhooks 1.0.0
// (https://www.standardwebhooks.com).

import { createHmac, createPublicKey, timingSafeEqual, verify as verifyEd25519 } from "node:crypto";

const maxAge = 300; // seconds between the signature and now, either way
const maxBody = 1 << 20; // bytes

/** InvalidWebhook is why a request is no webhook of the sender who has the secret. */
export class InvalidWebhook extends Error {
	constructor(message) {
		super(message);
		this.name = "InvalidWebhook";
	}
}

/** verifyWebhook returns the message {id, type, timestamp, data} of a request, or throws
 * InvalidWebhook. secrets is one or an array, each a secret (whsec_…) or a public key (whpk_…).
 * headers are those of Node or of fetch; body has the bytes as they came. */
export function verifyWebhook(secrets, headers, body, { now = Date.now } = {}) {
	const header = (name) => (typeof headers.get === "function" ? headers.get(name) : headers[name]) ?? "";
	const [id, at, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(header);
	if (!id || !/^[0-9]{1,12}$/.test(at) || !signatures) throw new InvalidWebhook("the headers of a webhook are missing");
	const content = Buffer.concat([Buffer.from(`${id}.${at}.`), Buffer.from(body)]);
	const isSigned = [secrets].flat().map(verifierOf).some((isBy) => signatures.split(" ").some((signature) => isBy(signature, content)));
	if (!isSigned) throw new InvalidWebhook("the signature is wrong");
	if (Math.abs(now() / 1000 - at) > maxAge) throw new InvalidWebhook("it was signed too long ago, or the clocks differ");
	const { type, timestamp, data } = JSON.parse(content.subarray(`${id}.${at}.`.length));
	return { id, type, timestamp: new Date(timestamp), data };
}

/** verifierOf returns the function that says whether a signature, "v1,…" or "v1a,…", is by the
 * secret or the public key. It throws TypeError for other text, without repeating it. */
function verifierOf(secret) {
	const [, kind, encoded] = /^(whsec|whpk)_([A-Za-z0-9+/]+=*)$/.exec(String(secret ?? "").trim()) ?? [];
	if (!kind) throw new TypeError("the secret of a webhook begins with whsec_, its public key with whpk_");
	const bytes = Buffer.from(encoded, "base64");
	if (kind === "whsec") {
		return (signature, content) => signature.startsWith("v1,") && isEqual(decode(signature, "v1,"), createHmac("sha256", bytes).update(content).digest());
	}
	const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: bytes.toString("base64url") }, format: "jwk" });
	return (signature, content) => signature.startsWith("v1a,") && verifyEd25519(null, content, key, decode(signature, "v1a,"));
}

const decode = (signature, version) => Buffer.from(signature.slice(version.length), "base64");
const isEqual = (a, b) => a.length === b.length && timingSafeEqual(a, b);

/** receive returns a handler for Express, before any parser of bodies, and for anything else with
 * (req, res, next). It calls handle with each message, and answers 204 when that has finished; 401
 * for what isn't signed by one of the secrets; 413 for a body over 1 MiB. If handle fails, the
 * error goes to next, or without next the answer is 500: then the message comes again. */
export function receive(secrets, handle) {
	[secrets].flat().forEach(verifierOf);
	return async (req, res, next) => {
		try {
			const body = await bodyOf(req);
			if (body === undefined) return void res.writeHead(413).end();
			await handle(verifyWebhook(secrets, req.headers, body));
			res.writeHead(204).end();
		} catch (error) {
			if (error instanceof InvalidWebhook) return void res.writeHead(401, { "content-type": "text/plain" }).end(`${error.message}\n`);
			if (next) return next(error);
			console.warn("Doorward: a webhook could not be handled", error);
			res.writeHead(500).end();
		}
	};
}

/** bodyOf returns the bytes of the body, or undefined if they are too many. */
async function bodyOf(req) {
	if (req.body instanceof Uint8Array || typeof req.body === "string") return req.body; // of express.raw or express.text
	if (req.readableEnded) throw new TypeError("the body was parsed before receive got it: its signature can't be verified");
	const chunks = [];
	let size = 0;
	for await (const chunk of req) {
		size += chunk.length;
		if (size > maxBody) return undefined;
		chunks.push(chunk);
	}
	return Buffer.concat(chunks);
}
