// The client of Doorward's API, for Node 20 and later, and for browsers on Doorward's
// origin. It has no dependency. See README.md.

import { errorOf, Unavailable } from "./errors.js";

export * from "./errors.js";

const json = "application/json";

/** Client calls one Doorward with one credential, or with none. */
export class Client {
	#options;

	constructor({ baseUrl, credential, key, cookieName = "JSESSIONID", timeout = 5_000, fetch: send = globalThis.fetch }) {
		const url = new URL(baseUrl);
		if (!/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
			throw new TypeError("baseUrl must be http or https, without user, query and fragment");
		}
		this.#options = { baseUrl: url.href.replace(/\/$/, ""), credential, key, cookieName, timeout, fetch: send };
	}

	get baseUrl() { return this.#options.baseUrl; }
	get cookieName() { return this.#options.cookieName; }

	/** as returns a client with the token of a session, an API key, or a service key. */
	as(credential) { return new Client({ ...this.#options, credential }); }

	/** asService returns a client with the key that key has been set to. */
	asService() { return this.as(this.#options.key); }

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
	async send(method, path, { params, query, body, headers, idempotencyKey, ifMatch, tenant, signal, timeout = this.#options.timeout } = {}) {
		const { baseUrl, credential, fetch: send } = this.#options;
		const given = { accept: json, ...headers };
		if (credential) given.authorization = `Bearer ${credential}`;
		if (body !== undefined) given["content-type"] = json;
		if (idempotencyKey) given["idempotency-key"] = idempotencyKey;
		if (ifMatch) given["if-match"] = ifMatch;
		if (tenant) given["doorward-tenant"] = tenant;
		const address = baseUrl + fill(path, params) + queryOf(query);
		const late = AbortSignal.timeout(timeout);
		let response, text;
		try {
			response = await send(address, {
				method, headers: given, body: body === undefined ? undefined : JSON.stringify(body),
				redirect: "manual", signal: signal ? AbortSignal.any([signal, late]) : late,
			});
			text = await response.text();
		} catch (cause) {
			if (signal?.aborted) throw cause;
			throw new Unavailable({ detail: "Doorward doesn't answer." }, { cause });
		}
		const parsed = parse(text);
		if (!response.ok) throw errorOf(response, parsed);
		if (text !== "" && parsed === undefined && /json/.test(response.headers.get("content-type") ?? "")) {
			throw new Unavailable({ detail: "The answer is no JSON." });
		}
		return { status: response.status, headers: response.headers, body: parsed ?? (text === "" ? undefined : text) };
	}

	/** list iterates over the items of all pages of a list. */
	async *list(path, { query, ...options } = {}) {
		let cursor;
		do {
			const page = await this.get(path, { ...options, query: { ...query, ...(cursor && { cursor }) } });
			yield* page.items;
			cursor = page.nextCursor;
		} while (cursor);
	}

	/** login resolves to {token, user, …}; as(token) is the client of that session. */
	login(input) { return this.as(undefined).post("/api/v2/auth/login", input); }

	session() { return this.get("/api/v2/auth/session"); }
	logout() { return this.post("/api/v2/auth/logout"); }

	/** invite makes one invitation, also when the request is repeated with the same key. */
	invite(input, { idempotencyKey = crypto.randomUUID(), ...options } = {}) {
		return this.post("/api/v2/auth/invite", input, { ...options, idempotencyKey });
	}
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
	const given = Object.entries(query).filter(([, value]) => value !== undefined);
	return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
}
