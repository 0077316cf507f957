// Checks who is calling a service and whether they may do the action: for the middleware of
// Express and Fastify, and for handlers.

import { DoorwardError, Forbidden, Invalid, RateLimited, StepUpRequired, Unauthenticated, Unavailable } from "./errors.js";
import { addressOf, bearerOf, forwarded, isCrossOrigin, sessionsOf } from "./incoming.js";

export { refusal } from "./refusal.js";

const checkTimeout = 3_000; // Doorward answers a check within 2 s
const maxAttempts = 3;

/** optionsOf returns the options of check for a middleware of the client. It throws TypeError as
 * check does, for introspection without a key, and for a resource: the middleware doesn't know it. */
export function optionsOf(client, options) {
	validate(options);
	if (options.via === "introspection") client.asService();
	if (isResource(options.resource)) throw new TypeError('the resource can only be "deferred" here: call check with it in the handler');
	return options;
}

/** validate throws TypeError for an unknown via, resource or touch, which would leave something
 * unchecked, for a proof with introspection, which can't demand one, and for touch where a session is
 * used in any case. */
function validate({ via = "check", maxAge, aal, resource, touch = true }) {
	if (via !== "check" && via !== "introspection") throw new TypeError('via must be "check" or "introspection"');
	if (via === "introspection" && (maxAge !== undefined || aal !== undefined)) {
		throw new TypeError('maxAge and aal need via "check": introspection demands no proof');
	}
	if (typeof touch !== "boolean") throw new TypeError("touch must be true or false");
	if (!touch && (via === "introspection" || isResource(resource))) throw new TypeError("an introspection, and a check with a resource, is a use of the session: leave touch out");
	if (resource !== undefined && resource !== "deferred" && !isResource(resource)) throw new TypeError('resource must be "deferred", or have a type and an id');
}

/** check resolves to the identity of the request's caller, or rejects with Unauthenticated,
 * Forbidden, RateLimited or Unavailable. request is one of Node or of fetch, with the names of its
 * headers in lower case. It isn't changed. options.via is "check", the default, or "introspection",
 * which needs a client with a service key. options.ip is the address of the peer, or for an
 * introspection or with a resource the caller's. options.resource is what the action acts on, which
 * needs a service key, too, or "deferred" where the handler asks again with it. With options.touch
 * false the check is no use of the session, which goes on idling. */
export async function check(client, { method, headers }, action, options = {}) {
	validate(options);
	if (isResource(options.resource) && !action) throw new TypeError("a resource needs an action");
	// Those of a Request of fetch are a Headers.
	const request = { method, headers: typeof headers.get === "function" ? Object.fromEntries(headers) : headers };
	try {
		const identity = await (options.via === "introspection" ? introspectCaller : checkCaller)(client, request, action, options);
		if (isResource(options.resource)) await decide(client, request, identity, action, options);
		return identity;
	} catch (error) {
		throw logged(client, action, toDecision(error, action));
	}
}

const isResource = (resource) => typeof resource?.type === "string" && typeof resource.id === "string";

/** logged logs a fault, which says nothing about the caller, or an unknown action, and returns it. */
function logged(client, action, error) {
	if (error instanceof Unavailable || error.code === "unknown_action") {
		const { code, requestId, cause = error } = error;
		client.logger(`Doorward: the access check failed: ${error.message}`, { address: client.baseUrl, action, code, requestId, cause });
	}
	return error;
}

/** currentSession resolves to the session of a request for a page, {user, session}; to null if nobody
 * is signed in, and to undefined if that is unknown now. */
export async function currentSession(client, { headers }) {
	const cookie = typeof headers.get === "function" ? headers.get("cookie") ?? undefined : headers.cookie;
	const [token, ...more] = sessionsOf({ cookie }, client.cookieName);
	if (!token || more.length) return null;
	try {
		return await client.as(token).session();
	} catch (error) {
		if (error instanceof Unauthenticated) return null;
		if (!(error instanceof DoorwardError)) throw error;
		return void logged(client, undefined, toDecision(error));
	}
}

/** decide asks with the resource, for the session or the key of the request. */
async function decide(client, request, identity, action, { resource, ip }) {
	const subject = identity.keyId ? identity : credentialOf(client, request);
	const decision = await withRetries((timeout) => client.can(subject, action, resource, { ip: addressOf(ip), timeout }));
	if (!decision.allowed) throw refusalOf(decision);
}

/** refusalOf returns the error that a check would have answered. */
function refusalOf({ reason: detail, policyId, stepUp }) {
	if (stepUp) return new StepUpRequired({ status: 403, code: "step_up_required", detail, ...stepUp });
	return new Forbidden({ status: 403, code: policyId ? "denied_by_policy" : "forbidden", detail, ...(policyId && { policyId }) });
}

/** toDecision returns the error for the caller. What says nothing about the caller, such as a
 * 404 of another program, becomes Unavailable. */
function toDecision(error, action) {
	if (!(error instanceof DoorwardError)) return error;
	if ([Unauthenticated, Forbidden, RateLimited, Unavailable].some((kind) => error instanceof kind)) return error;
	if (error instanceof Invalid && error.errors.some(({ pointer }) => pointer === "/action")) {
		return new Forbidden({ status: 403, code: "unknown_action", detail: `There is no action ${action}.` }, { cause: error });
	}
	return new Unavailable({ detail: `Doorward doesn't judge the request: ${error.status} ${error.code}.`, requestId: error.requestId }, { cause: error });
}

async function checkCaller(client, request, action, { maxAge, aal, ip, resource, touch }) {
	const headers = forwarded(request, client.cookieName, ip);
	const answer = await withRetries((timeout) => client.as(undefined).send("GET", "/api/v2/access/check", {
		query: { action: action || undefined, maxAge, aal, resource: resource && "deferred", touch: touch === false ? false : undefined }, headers, timeout,
	}));
	const identity = identityOf(answer.headers);
	if (!identity) throw unusable("The answer to the check names nobody.");
	return identity;
}

function identityOf(headers) {
	const value = (name) => headers.get(`x-auth-${name}`) ?? "";
	const identity = {
		userId: value("user"), tenantId: value("tenant"), role: value("role"), email: value("email"),
		sessionId: value("session"), keyId: value("key"), aal: Number(value("aal") || 0),
	};
	const isPerson = identity.userId && identity.email && identity.sessionId && !identity.keyId;
	const isServer = identity.keyId && !identity.userId && !identity.email && !identity.sessionId;
	return identity.tenantId && identity.role && (isPerson || isServer) ? identity : undefined;
}

/** introspectCaller asks with a key of this service. The credential and the origin of the
 * request are checked here, since Doorward doesn't see the request. */
async function introspectCaller(client, request, action, { ip, resource }) {
	const credential = credentialOf(client, request);
	if (credential !== bearerOf(request.headers) && isCrossOrigin(request, new URL(client.publicUrl).origin)) {
		throw new Forbidden({ status: 403, code: "cross_origin", detail: "A page of another origin sent this request." });
	}
	const question = { credential, action: action || undefined, ip: addressOf(ip), resource: resource && "deferred" };
	const answer = await withRetries((timeout) => client.introspect(question, { timeout }));
	if (!answer.active) throw unauthenticated("The credential isn't valid.");
	if (action && answer.allowed !== true) throw new Forbidden({ status: 403, code: "forbidden", detail: `${action} is not allowed.` });
	const { user, session, apiKey } = answer;
	if (apiKey) return { userId: "", tenantId: apiKey.tenantId, role: apiKey.effectiveRole, email: "", sessionId: "", keyId: apiKey.id, aal: 0 };
	if (!user || !session) throw unusable("The answer to the introspection is incomplete.");
	return { userId: user.id, tenantId: user.tenantId, role: user.role, email: user.email, sessionId: session.id, keyId: "", aal: session.aal };
}

/** credentialOf returns the only credential of a request. */
function credentialOf(client, request) {
	const sessions = sessionsOf(request.headers, client.cookieName);
	const bearer = bearerOf(request.headers);
	const [credential, ...more] = bearer === undefined ? sessions : [...sessions, bearer];
	if (more.length || !/^[!-~]{1,512}$/.test(credential ?? "")) throw unauthenticated("The request has no credential, or several.");
	return credential;
}

/** withRetries makes a call, and repeats it up to twice while it is Unavailable and there is time. */
async function withRetries(call) {
	const end = Date.now() + checkTimeout;
	for (let attempt = 1; ; attempt++) {
		try {
			return await call(Math.max(1, end - Date.now()));
		} catch (error) {
			const wait = 1_000 * (error.retryAfter ?? 0.05 * 2 ** (attempt - 1)) * (1 + Math.random() / 2);
			if (!(error instanceof Unavailable) || attempt === maxAttempts || Date.now() + wait >= end) throw error;
			await new Promise((done) => setTimeout(done, wait));
		}
	}
}

const unusable = (detail) => new Unavailable({ detail });
const unauthenticated = (detail) => new Unauthenticated({ status: 401, code: "unauthenticated", detail });
