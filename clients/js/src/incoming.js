// What a request to a service says about its caller. The rules are Doorward's own, so that
// a check and an introspection judge the same credential.

import { randomUUID } from "node:crypto";
import { isIP } from "node:net";

const maxForwarded = 512; // characters; valid values are shorter, so Doorward refuses a truncated one, too
const maxHops = 8; // of X-Forwarded-For, the last ones: others can be forged

/** forwarded returns the headers that Doorward needs of a request, and no others: no cookie
 * but the session's. ip is the address of the service's peer. */
export function forwarded({ method, headers }, cookieName, ip) {
	const id = headers["x-request-id"] ?? "";
	const sent = {
		// The handshake of a WebSocket is a GET, but as unsafe as a POST: pages of other origins are refused.
		// Without a method it counts as unsafe, too.
		"x-forwarded-method": isUpgrade(headers) || !method ? "POST" : method,
		"x-request-id": /^[A-Za-z0-9._-]{1,128}$/.test(id) ? id : `req_${randomUUID()}`,
	};
	const sessions = sessionsOf(headers, cookieName);
	if (sessions.length) sent.cookie = sessions.slice(0, 2).map((s) => `${cookieName}=${s}`).join("; ");
	if (bearerOf(headers) !== undefined) sent.authorization = headers.authorization.slice(0, maxForwarded);
	for (const name of ["origin", "sec-fetch-site"]) {
		if (headers[name] !== undefined) sent[name] = String(headers[name]).slice(0, maxForwarded);
	}
	const hops = hopsOf(headers, ip);
	if (hops) sent["x-forwarded-for"] = hops;
	return sent;
}

/** hopsOf is X-Forwarded-For as a proxy would send it; undefined without the peer's address,
 * since then all of it could be forged. Doorward believes it from --trusted-proxies alone. */
function hopsOf(headers, ip) {
	if (addressOf(ip) === undefined) return undefined;
	const before = String(headers["x-forwarded-for"] ?? "").split(",").map((hop) => hop.trim().slice(0, 64));
	return [...before, ip].filter((hop) => hop !== "").slice(-maxHops).join(", ");
}

/** addressFor returns the address for check. For a check it is the peer's: Doorward finds the
 * caller's by its own --trusted-proxies. For an introspection it is the one that the framework
 * takes for the caller's; with "trust proxy" set to true anybody can forge that. */
export function addressFor({ via }, caller, { socket }) {
	return (via === "introspection" && caller) || socket?.remoteAddress;
}

/** addressOf returns ip if it is an IP address; a Unix socket has none. */
export const addressOf = (ip) => (isIP(ip ?? "") ? ip : undefined);

/** sessionsOf returns the distinct values of cookies that may be sessions. A program on the same
 * host may use the same name for values of another form. Only spaces and tabs are trimmed: if
 * other characters were, a cookie of another name would pass for this one. */
export function sessionsOf({ cookie = "" }, name) {
	const pairs = String(cookie).split(";").map((pair) => pair.replace(/^[ \t]+|[ \t]+$/g, ""));
	const values = pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
	return [...new Set(values.filter((value) => /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/.test(value)))];
}

/** bearerOf returns what follows the scheme Bearer, perhaps nothing; undefined for another scheme. */
export function bearerOf({ authorization = "" }) {
	return /^[ \t]*bearer(?![^ \t]) *(.*?)[ \t]*$/i.exec(authorization)?.[1];
}

const isUpgrade = (headers) => ["upgrade", "sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol"].some((name) => headers[name] !== undefined);

/** isCrossOrigin reports whether a page of another origin than Doorward's sent an unsafe request.
 * origin is Doorward's. */
export function isCrossOrigin({ method, headers }, origin) {
	if (["GET", "HEAD", "OPTIONS", "TRACE"].includes(method) && !isUpgrade(headers)) return false;
	const site = headers["sec-fetch-site"];
	if (site) return site !== "same-origin" && site !== "none";
	return headers.origin !== undefined && originOf(headers.origin) !== origin;
}

function originOf(text) {
	return URL.canParse(text) && new URL(text).href === `${new URL(text).origin}/` ? new URL(text).origin : undefined;
}

/** removeIdentity removes the headers by which a gateway says who is calling: a client could
 * have sent them. */
export function removeIdentity({ headers, rawHeaders = [] }) {
	for (const name of Object.keys(headers)) {
		if (isIdentity(name)) delete headers[name];
	}
	for (let i = rawHeaders.length - 2; i >= 0; i -= 2) {
		if (isIdentity(rawHeaders[i])) rawHeaders.splice(i, 2);
	}
}

const isIdentity = (name) => /^x[-_]auth[-_]/i.test(name);
