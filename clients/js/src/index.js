// The client of Doorward's API, for Node 20.3 and later, and for browsers on Doorward's
// origin. It has no dependency. See README.md.

import { errorOf, Forbidden, Unauthenticated, Unavailable } from "./errors.js";

export * from "./errors.js";

const json = "application/json";

/** Client calls one Doorward with one credential, or with none. */
export class Client {
	#options;

	constructor({ baseUrl, publicUrl = baseUrl, credential, key, cookieName = "JSESSIONID", timeout = 5_000, logger = warn, fetch: send = globalThis.fetch } = {}) {
		this.#options = { baseUrl: urlOf("baseUrl", baseUrl), publicUrl: urlOf("publicUrl", publicUrl), credential, key, cookieName, timeout, logger, fetch: send };
	}

	get baseUrl() { return this.#options.baseUrl; }
	get publicUrl() { return this.#options.publicUrl; }
	get cookieName() { return this.#options.cookieName; }
	get logger() { return this.#options.logger; }

	/** as returns a client with the token of a session, an API key, or a service key. */
	as(credential) { return new Client({ ...this.#options, credential }); }

	/** asService returns a client with the service key of the option key, or throws TypeError
	 * without one: its calls would be those of nobody. */
	asService() {
		const { key } = this.#options;
		if (!key) throw new TypeError("the client needs the option key, a service key (dws_…)");
		return this.as(key);
	}

	get(path, options) { return this.request("GET", path, options); }
	post(path, body, options) { return this.request("POST", path, { ...options, body }); }
	put(path, body, options) { return this.request("PUT", path, { ...options, body }); }
	patch(path, body, options) { return this.request("PATCH", path, { ...options, body }); }
	delete(path, options) { return this.request("DELETE", path, options); }

	/** request resolves to the body of a successful answer, and rejects with a DoorwardError. */
	async request(method, path, options = {}) {
		return (await this.send(method, path, options)).body;
	}

	/** send is request, and resolves to the status and the headers as well. */
	async send(method, path, options = {}) {
		const { baseUrl, timeout: defaultTimeout } = this.#options;
		const { params, query, body, signal, timeout = defaultTimeout } = options;
		if (!path.startsWith("/")) throw new TypeError("the path must begin with a slash");
		const address = baseUrl + fill(path, params) + queryOf(query);
		const timedOut = AbortSignal.timeout(timeout);
		const { response, text } = await this.#exchange(address, {
			method, headers: this.#headers(options), body: body === undefined ? undefined : JSON.stringify(body),
			redirect: "manual", cache: "no-store", signal: signal ? AbortSignal.any([signal, timedOut]) : timedOut,
		}, signal);
		return { status: response.status, headers: response.headers, body: bodyOf(response, text) };
	}

	#headers({ headers, body, idempotencyKey, ifMatch, tenant }) {
		const { credential } = this.#options;
		const merged = new Headers({ accept: json, ...headers });
		const own = {
			authorization: credential && bearer(credential), "content-type": body !== undefined && json,
			"idempotency-key": idempotencyKey, "if-match": ifMatch, "doorward-tenant": tenant,
		};
		for (const [name, value] of Object.entries(own)) if (value) merged.set(name, value);
		return merged;
	}

	/** #exchange sends once. signal is the caller's: a request that it aborts is no fault of Doorward. */
	async #exchange(address, request, signal) {
		const send = this.#options.fetch;
		try {
			const response = await send(address, request);
			return { response, text: await response.text() };
		} catch (cause) {
			if (signal?.aborted) throw cause;
			throw new Unavailable({ detail: "Doorward doesn't answer." }, { cause });
		}
	}

	/** list iterates over the items of all pages of a list. */
	async *list(path, { query, ...options } = {}) {
		let cursor;
		do {
			const page = await this.get(path, { ...options, query: { ...query, ...(cursor && { cursor }) } });
			if (!Array.isArray(page?.items)) throw new Unavailable({ detail: "The answer is not a list." });
			yield* page.items;
			cursor = page.nextCursor;
		} while (cursor);
	}

	/** login resolves to {token, user, …}; as(token) is the client of that session. */
	login(input) { return this.as(undefined).post("/api/v2/auth/login", input); }

	session() { return this.get("/api/v2/auth/session"); }
	logout() { return this.post("/api/v2/auth/logout"); }

	/** introspect resolves to whether a credential is valid, whose it is, and whether it may do the
	 * action, asked with the key of the client. It rejects with Unavailable when Doorward refuses
	 * that key, since a 401 or 403 would seem to be about the credential. */
	introspect(question, options) { return this.#ask("/api/v2/access/introspect", question, options); }

	/** can resolves to a Decision: whether the subject may do the action on the resource or, without
	 * one, on its tenant. The subject is an identity, or the token of a session. */
	async can(subject, action, resource, { ip, time, ...options } = {}) {
		const question = {
			subject: subjectOf(subject), action: { name: action }, resource: resource ?? { type: "tenant", id: subject.tenantId },
			context: { ...(ip && { ip }), ...(time && { time: time.toISOString() }) },
		};
		const answer = await this.#ask("/access/v1/evaluation", question, options);
		if (typeof answer?.decision !== "boolean") throw new Unavailable({ detail: "The answer is no decision." });
		return { allowed: answer.decision, ...answer.context };
	}

	async #ask(path, question, options) {
		const service = this.asService();
		try {
			return await service.post(path, question, options);
		} catch (error) {
			if (!(error instanceof Unauthenticated || error instanceof Forbidden)) throw error;
			throw new Unavailable({ code: "service_key_refused", detail: "Doorward refuses the key of this service.", requestId: error.requestId }, { cause: error });
		}
	}

	/** invite invites a person. Repeated with the same idempotencyKey, it makes one invitation only. */
	invite(input, { idempotencyKey = crypto.randomUUID(), ...options } = {}) {
		return this.post("/api/v2/auth/invite", input, { ...options, idempotencyKey });
	}
}

const warn = (...args) => console.warn(...args);

/** subjectOf returns what AuthZEN calls the subject. */
function subjectOf(subject) {
	if (typeof subject === "string") return { type: "session", id: subject };
	const { userId, keyId, tenantId } = subject;
	if (!userId && !keyId) throw new TypeError("an identity without userId and keyId is nobody");
	return keyId ? { type: "key", id: keyId } : { type: "user", id: userId, ...(tenantId && { properties: { tenantId } }) };
}

function urlOf(name, value) {
	const url = URL.canParse(value) ? new URL(value) : undefined;
	if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
		throw new TypeError(`${name} must be http or https with a host, without user, query and fragment`);
	}
	return url.href.replace(/\/$/, "");
}

/** bearer returns the value of Authorization, without the line break of a key read from a file.
 * What can't be a credential is refused here as Doorward would, without repeating it. */
function bearer(credential) {
	const text = String(credential).trim();
	if (!/^[!-~]+$/.test(text)) throw new Unauthenticated({ status: 401, code: "unauthenticated", detail: "The credential has characters that no credential has." });
	return `Bearer ${text}`;
}

/** bodyOf returns the body of a success: parsed JSON, text such as CSV, or undefined if empty.
 * An HTML page comes from another program. */
function bodyOf(response, text) {
	const parsed = parse(text);
	if (!response.ok) throw errorOf(response, parsed);
	if (text === "") return undefined;
	const type = response.headers.get("content-type") ?? "";
	if (/html/.test(type) || (parsed === undefined && /json/.test(type))) throw new Unavailable({ detail: "The answer is not from Doorward." });
	return parsed ?? text;
}

function parse(text) {
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}

function fill(path, params = {}) {
	return path.replace(/\{(\w+)\}/g, (_, name) => {
		// The dots of "." and ".." would be removed from the path, percent-encoded too.
		const value = String(params[name] ?? "");
		if (value === "" || value === "." || value === "..") throw new TypeError(`the parameter ${name} of the path is missing`);
		return encodeURIComponent(value);
	});
}

function queryOf(query = {}) {
	const entries = Object.entries(query).filter(([, value]) => value !== undefined);
	return entries.length ? `?${new URLSearchParams(entries.map(([name, value]) => [name, String(value)]))}` : "";
}
