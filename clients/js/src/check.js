// Who is calling a service, and may the caller do it: what the middleware for Express and
// Fastify shares.

import { randomUUID } from "node:crypto";
import { Forbidden, Unauthenticated, Unavailable } from "./errors.js";

const checkTimeout = 3_000; // Doorward answers a check within 2 s
const tries = 3;

/** check resolves to the identity of the request's caller, or rejects with Unauthenticated,
 * Forbidden, RateLimited or Unavailable. request has method and headers, with names in
 * lower case. options.via is "check", the default, or "introspection", which needs a client
 * with a key of a service. */
export async function check(client, request, action, options = {}) {
	return options.via === "introspection" ? introspected(client, request, action, options) : checked(client, request, action, options);
}

async function checked(client, request, action, { maxAge, aal } = {}) {
	const headers = forwarded(client, request);
	const answer = await again((timeout) => client.as(undefined).send("GET", "/api/v2/access/check", {
		query: { action: action || undefined, maxAge, aal }, headers, timeout,
	}));
	const identity = identityOf(answer.headers);
	if (!identity) throw foreign("The answer to the check names nobody.");
	return identity;
}

/** forwarded are the headers that Doorward needs of a request, and no others: no
 * cookie but the session's. */
function forwarded(client, { method, headers }) {
	const id = headers["x-request-id"];
	const sent = { "x-forwarded-method": method, "x-request-id": /^[A-Za-z0-9._-]{1,128}$/.test(id) ? id : `req_${randomUUID()}` };
	const sessions = cookies(headers.cookie, client.cookieName);
	if (sessions.length) sent.cookie = sessions.slice(0, 2).map((s) => `${client.cookieName}=${s}`).join("; ");
	if (/^bearer\b/i.test(headers.authorization ?? "")) sent.authorization = headers.authorization.slice(0, 512);
	for (const name of ["origin", "sec-fetch-site"]) {
		if (headers[name]) sent[name] = String(headers[name]).slice(0, 512);
	}
	// The handshake of a WebSocket is a GET that acts: pages of other origins are refused.
	if (headers.upgrade || headers["sec-websocket-key"]) sent["x-forwarded-method"] = "POST";
	return sent;
}

/** cookies returns the different values that may be sessions: a program beside may use the
 * same name for values of another form. */
function cookies(header = "", name) {
	const values = String(header).split(";").map((pair) => pair.trim()).filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
	return [...new Set(values.filter((value) => /^[A-Za-z0-9_-]{43}$/.test(value)))];
}

function identityOf(headers) {
	const at = (name) => headers.get(`x-auth-${name}`) ?? "";
	const identity = {
		userId: at("user"), tenantId: at("tenant"), role: at("role"), email: at("email"),
		sessionId: at("session"), keyId: at("key"), aal: Number(at("aal") || 0),
	};
	const person = identity.userId && identity.email && identity.sessionId && !identity.keyId;
	const server = identity.keyId && !identity.userId && !identity.email && !identity.sessionId;
	return identity.tenantId && identity.role && (person || server) ? identity : undefined;
}

/** introspected asks with a key of this service, which sees the credential of the request
 * and judges the origin itself. */
async function introspected(client, request, action, { ip }) {
	const { headers } = request;
	const [scheme, bearer] = (headers.authorization ?? "").split(" ", 2);
	const sessions = cookies(headers.cookie, client.cookieName);
	const credentials = [...sessions, ...(/^bearer$/i.test(scheme) ? [bearer] : [])];
	if (credentials.length !== 1) throw new Unauthenticated({ status: 401, code: "unauthenticated", detail: "The request has no credential, or several." });
	if (sessions.length && acts(request) && fromElsewhere(client, headers)) {
		throw new Forbidden({ status: 403, code: "cross_origin", detail: "A page of another origin sent this request." });
	}
	const answer = await introspect(client, { credential: credentials[0], ...(action && { action }), ...(ip && { ip }) });
	if (!answer.active) throw new Unauthenticated({ status: 401, code: "unauthenticated", detail: "The credential isn't valid." });
	if (action && answer.allowed !== true) throw new Forbidden({ status: 403, code: "forbidden", detail: `${action} is not allowed.` });
	const { user, session, apiKey } = answer;
	if (apiKey) return { userId: "", tenantId: apiKey.tenantId, role: apiKey.effectiveRole, email: "", sessionId: "", keyId: apiKey.id, aal: 0 };
	if (!user || !session) throw foreign("The answer to the introspection is incomplete.");
	return { userId: user.id, tenantId: user.tenantId, role: user.role, email: user.email, sessionId: session.id, keyId: "", aal: session.aal };
}

/** introspect asks about a credential. A refusal of the service's own key is Unavailable:
 * passed on, it would look like one of the caller's credential. */
export async function introspect(client, question) {
	try {
		return await again((timeout) => client.asService().post("/api/v2/access/introspect", question, { timeout }));
	} catch (error) {
		if (!(error instanceof Unauthenticated || error instanceof Forbidden)) throw error;
		throw new Unavailable({ code: "service_key_refused", detail: "Doorward refuses the key of this service." }, { cause: error });
	}
}

function acts({ method, headers }) {
	return !["GET", "HEAD", "OPTIONS"].includes(method) || Boolean(headers.upgrade || headers["sec-websocket-key"]);
}

function fromElsewhere(client, headers) {
	const site = headers["sec-fetch-site"];
	if (site) return site !== "same-origin" && site !== "none";
	return headers.origin !== undefined && headers.origin !== new URL(client.baseUrl).origin;
}

/** again repeats a call that is Unavailable while there is time. */
async function again(call) {
	const end = Date.now() + checkTimeout;
	for (let n = 1; ; n++) {
		try {
			return await call(Math.max(1, end - Date.now()));
		} catch (error) {
			const wait = 1_000 * (error.retryAfter ?? 0.05 * 2 ** (n - 1)) * (1 + Math.random() / 2);
			if (!(error instanceof Unavailable) || n === tries || Date.now() + wait >= end) throw error;
			await new Promise((done) => setTimeout(done, wait));
		}
	}
}

const foreign = (detail) => new Unavailable({ detail });

/** withoutIdentity removes the headers by which a gateway says who is calling: a client
 * could have sent them. */
export function withoutIdentity(headers) {
	for (const name of Object.keys(headers)) {
		if (/^x[-_]auth[-_]/i.test(name)) delete headers[name];
	}
}

/** refusal is what a refused request is answered with. Every fault is 503: no restart of
 * Doorward signs anybody out. */
export function refusal(error) {
	const status = [401, 403, 429].includes(error.status) ? error.status : 503;
	const headers = { "content-type": "application/problem+json", "cache-control": "no-store" };
	if (status === 401) headers["www-authenticate"] = 'Bearer realm="doorward"';
	if (status === 429 || status === 503) headers["retry-after"] = String(error.retryAfter ?? 1);
	const title = { 401: "Not signed in", 403: "Not allowed", 429: "Too many requests", 503: "Temporarily unavailable" }[status];
	const { problem = {} } = error;
	const body = status === 503
		? { type: "about:blank", title, status, detail: "Doorward can't say now who is calling. Try again.", code: "unavailable", requestId: problem.requestId }
		: { type: "about:blank", title, ...problem, status };
	return { status, headers, body: JSON.stringify(body) };
}
