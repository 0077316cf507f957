import type { Client, DoorwardError, Resource, Schemas } from "./index.js";

/** Identity is who is calling. For a server with an API key only tenantId, role and keyId
 * are set, for a person all but keyId; the others are empty. */
export interface Identity {
	userId: string;
	/** The tenant whose data the caller may see, and no other. */
	tenantId: string;
	role: string;
	email: string;
	/** For logs; no credential. */
	sessionId: string;
	keyId: string;
	/** 2 after a second factor or a passkey, else 1; 0 for a server. */
	aal: number;
}

export interface GuardOptions {
	/** "introspection" asks with the key of the client. */
	via?: "check" | "introspection";
	/** How old the proof of the session may be, in seconds; only with "check". */
	maxAge?: number;
	aal?: 1 | 2;
	/** Leaves policies that depend on the resource to the handler, which asks again with check. */
	resource?: "deferred";
	/** With false the check is no use of the session, which goes on idling: for what nobody does, such as
	 * a page that asks by itself, or an open WebSocket. Only with "check", and without a resource. */
	touch?: boolean;
}

export interface CheckOptions extends Omit<GuardOptions, "resource"> {
	/** What the action acts on. It needs a client with a key that may access.evaluate. */
	resource?: "deferred" | Resource;
	/** The address of the peer; the caller's with "introspection" or a resource. */
	ip?: string | undefined;
}

/** Resolves to who sent the request, if they may do the action or, without an action, are signed in.
 * The request is one of Node or of fetch, and isn't changed: don't believe its X-Auth- headers.
 * Rejects with Unauthenticated, Forbidden, RateLimited or Unavailable, and with TypeError if the
 * client lacks a key that the options need. */
export declare function check(client: Client, request: {
	method?: string | undefined;
	headers: Headers | Record<string, string | string[] | undefined>;
}, action?: string, options?: CheckOptions): Promise<Identity>;

/** The answer for a request that check has refused: a problem, with its headers. A fault is 503 and not
 * 401, and so is an error that is no decision about the caller. */
export declare function refusal(error: DoorwardError): { status: number; headers: Record<string, string>; body: string };

/** Resolves to the session of a request for a page, for initialSession of @doorward/react: null if
 * nobody is signed in, undefined if that is unknown now, which is logged. */
export declare function currentSession(client: Client, request: { headers: Headers | Record<string, string | string[] | undefined> }): Promise<Schemas["Current"] | null | undefined>;
