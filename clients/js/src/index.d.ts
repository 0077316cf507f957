import type { components, paths } from "./api.js";

export type Schemas = components["schemas"];
export type User = Schemas["User"];
export type Session = Schemas["Session"];
export type Invitation = Schemas["Invitation"];
export type Tenant = Schemas["Tenant"];
export type Problem = Partial<Schemas["Problem"]> & { status: number; code: string };
export type FieldError = Schemas["FieldError"];

type Operation<P extends keyof paths, M extends keyof paths[P]> = NonNullable<paths[P][M]>;
type PathsWith<M extends string> = { [P in keyof paths]: M extends keyof paths[P] ? (paths[P][M] extends undefined ? never : P) : never }[keyof paths];
type At<P extends keyof paths, M extends string> = M extends keyof paths[P] ? Operation<P, M> : never;

type Body<O> = O extends { requestBody: { content: { "application/json": infer B } } } ? B
	: O extends { requestBody?: { content: { "application/json": infer B } } } ? B | undefined : undefined;
type Success<R> = { [S in keyof R]: S extends 200 | 201 | 202 | 204 ? (R[S] extends { content: { "application/json": infer A } } ? A : undefined) : never }[keyof R];
export type Answer<O> = O extends { responses: infer R } ? Success<R> : never;
type Query<O> = O extends { parameters: { query?: infer Q } } ? Q : never;
type Params<O> = O extends { parameters: { path: infer P } } ? { params: P } : { params?: never };
type Item<A> = A extends { items: (infer I)[]; } ? I : never;

export interface Common {
	headers?: Record<string, string>;
	/** Repeats the request safely: for 24 hours the same key gets the first answer. */
	idempotencyKey?: string;
	/** The ETag of the version to change. */
	ifMatch?: string;
	/** The tenant in which a service acts with its key. */
	tenant?: string;
	signal?: AbortSignal;
	/** Milliseconds; by default that of the client. */
	timeout?: number;
}
export type Options<O> = Common & Params<O> & { query?: Query<O> };
type Rest<O> = O extends { parameters: { path: object } } ? [options: Options<O>] : [options?: Options<O>];
type DeleteRest<O> = Rest<O> extends [options: infer T] ? [options: T & { body?: Body<O> }] : [options?: Options<O> & { body?: Body<O> }];

export interface ClientOptions {
	/** Such as "https://auth.example" or "http://localhost:8080/platform". */
	baseUrl: string;
	/** Doorward's address as people open it (--base-url), if that isn't baseUrl. */
	publicUrl?: string;
	/** The token of a session, or a key. */
	credential?: string | undefined;
	/** The key of this service (dws_…) or an operator key, for introspection. */
	key?: string | undefined;
	/** As Doorward has it in --cookie-name; by default JSESSIONID. */
	cookieName?: string;
	/** Milliseconds for one request; by default 5000. */
	timeout?: number;
	/** Gets each fault of a check; by default console.warn. */
	logger?: (message: string, details: { address: string; action: string | undefined; code: string; requestId: string | undefined; cause: unknown }) => void;
	fetch?: typeof globalThis.fetch;
}

/** What an action acts on, with the attributes that policies read. */
export interface Resource {
	type: string;
	id: string;
	properties?: Record<string, unknown>;
}
/** Such as the identity that a check returns. */
export interface Subject {
	userId?: string;
	keyId?: string;
	/** Needed for a user of several tenants, and where the resource is the tenant. */
	tenantId?: string;
}
/** About the request that the service serves: the caller's address, and the time if it isn't now. */
export interface Circumstances {
	ip?: string | undefined;
	time?: Date | undefined;
}
export interface Decision {
	allowed: boolean;
	/** Why it is refused, as a sentence. */
	reason?: string;
	/** The policy that refuses. */
	policyId?: string;
	/** The proof of identity after which the person may do it. */
	stepUp?: Schemas["Proof"];
}

/** Client calls one Doorward with one credential, or with none. Calls reject with a
 * DoorwardError. It has a subclass for each kind of refusal, and Unavailable for no answer.
 * Calls are not retried, except by protect. */
export declare class Client {
	/** Throws TypeError for an address that is not http or https, or has a user or a query. */
	constructor(options: ClientOptions);
	readonly baseUrl: string;
	readonly publicUrl: string;
	readonly cookieName: string;
	readonly logger: NonNullable<ClientOptions["logger"]>;
	/** A client with the token of a session, an API key, or a service key; undefined: with none. */
	as(credential: string | undefined): Client;
	/** A client whose credential is the option key. Throws TypeError without that option. */
	asService(): Client;
	get<P extends PathsWith<"get">>(path: P, ...rest: Rest<At<P, "get">>): Promise<Answer<At<P, "get">>>;
	post<P extends PathsWith<"post">>(path: P, body?: Body<At<P, "post">>, ...rest: Rest<At<P, "post">>): Promise<Answer<At<P, "post">>>;
	put<P extends PathsWith<"put">>(path: P, body?: Body<At<P, "put">>, ...rest: Rest<At<P, "put">>): Promise<Answer<At<P, "put">>>;
	patch<P extends PathsWith<"patch">>(path: P, body?: Body<At<P, "patch">>, ...rest: Rest<At<P, "patch">>): Promise<Answer<At<P, "patch">>>;
	delete<P extends PathsWith<"delete">>(path: P, ...rest: DeleteRest<At<P, "delete">>): Promise<Answer<At<P, "delete">>>;
	/** For paths that these types don't know yet. */
	request(method: string, path: string, options?: Common & { params?: Record<string, string>; query?: Record<string, unknown>; body?: unknown }): Promise<unknown>;
	/** As request, with the status and the headers. */
	send(method: string, path: string, options?: Common & { params?: Record<string, string>; query?: Record<string, unknown>; body?: unknown }): Promise<{ status: number; headers: Headers; body: unknown }>;
	/** The items of all pages of a list. Each page is fetched when it is needed. */
	list<P extends PathsWith<"get">>(path: P, ...rest: Rest<At<P, "get">>): AsyncGenerator<Item<Answer<At<P, "get">>>, void, void>;
	/** Rejects with Unauthenticated for a wrong password, and with SecondFactorRequired, whose
	 * problem has the challenge. */
	login(input: Schemas["LoginInput"]): Promise<Schemas["SignedIn"]>;
	/** The person and the session of the credential; rejects with Unauthenticated when it has ended. */
	session(): Promise<Schemas["Current"]>;
	/** Ends the session on every node. It is no error if the session has already ended. */
	logout(): Promise<undefined>;
	/** Whether a credential is valid, whose it is, and whether it may do the action, asked with the
	 * key of the options. If that key is refused, it rejects with Unavailable. */
	introspect(question: Schemas["IntrospectInput"], options?: Common): Promise<Schemas["Answers"]>;
	/** Whether the subject, an identity or the token of a session, may do the action on the resource or,
	 * without one, on its tenant. Asked with the key of the options, which needs access.evaluate.
	 * If that key is refused, it rejects with Unavailable. A refusal is a Decision. */
	can(subject: Subject, action: string, resource?: Resource, about?: Circumstances & Common): Promise<Decision>;
	can(token: string, action: string, resource: Resource, about?: Circumstances & Common): Promise<Decision>;
	/** Repeated with the same idempotencyKey, it makes one invitation only. Rejects with Conflict for
	 * somebody who is invited already. */
	invite(input: Schemas["InviteInput"], options?: Common): Promise<Invitation>;
}

/** A problem (RFC 9457). code is stable; treat one that you don't know by its class. */
export declare class DoorwardError extends Error {
	constructor(problem: Problem, options?: ErrorOptions & { retryAfter?: number });
	readonly problem: Problem;
	readonly status: number;
	readonly code: string;
	readonly requestId: string | undefined;
	readonly errors: FieldError[];
	/** Seconds. */
	readonly retryAfter: number | undefined;
}
/** 400, 405, 413, 415, 428: a defect of the program that calls. */
export declare class Malformed extends DoorwardError {}
/** 401: there is no valid credential. */
export declare class Unauthenticated extends DoorwardError {}
/** 403: the caller is known, and may not do it. */
export declare class Forbidden extends DoorwardError {}
/** 403 step_up_required: the person must prove their identity again. */
export declare class StepUpRequired extends Forbidden {}
/** 403 mfa_required, mfa_enrolment_required: problem has the challenge. */
export declare class SecondFactorRequired extends Forbidden {}
/** 404: absent, or in another tenant. */
export declare class NotFound extends DoorwardError {}
/** 409, 412: the state doesn't allow it. */
export declare class Conflict extends DoorwardError {}
/** 410: it was valid once. */
export declare class Gone extends DoorwardError {}
/** 422: errors says which members. */
export declare class Invalid extends DoorwardError {}
/** 429: retryAfter says after how many seconds to try again. */
export declare class RateLimited extends DoorwardError {}
/** Doorward is down, slow or can't answer now, or something else answers at its address. It says
 * nothing about the credential, so its status is always 503. */
export declare class Unavailable extends DoorwardError {
	constructor(problem: Partial<Problem>, options?: ErrorOptions & { retryAfter?: number });
}
