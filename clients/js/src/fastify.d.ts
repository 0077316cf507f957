import type { FastifyReply, FastifyRequest } from "fastify";
import type { Client, DoorwardError } from "./index.js";
import type { GuardOptions, Identity } from "./check.js";

export type { Identity } from "./check.js";

declare module "fastify" {
	interface FastifyRequest {
		/** Who is calling, behind protect. */
		doorward?: Identity;
	}
}

/** An onRequest hook that lets a request pass if its caller may do the action or, without an
 * action, is signed in. Other requests are answered 401, 403, 429 or 503. Throws TypeError for
 * maxAge or aal with via "introspection". */
export declare function protect(client: Client, action?: string, options?: GuardOptions & {
	/** Answers a refused request in place of a problem. */
	onRefused?: (error: DoorwardError, request: FastifyRequest, reply: FastifyReply) => unknown;
}): (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;
