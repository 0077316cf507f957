import type { IncomingMessage, ServerResponse } from "node:http";
import type { Client, DoorwardError } from "./index.js";
import type { GuardOptions, Identity } from "./check.js";

export type { Identity } from "./check.js";

declare module "node:http" {
	interface IncomingMessage {
		/** Who is calling, behind protect. */
		doorward?: Identity;
	}
}

type Next = (error?: unknown) => void;

/** Lets a request pass if its caller may do the action or, without an action, is signed in. Other
 * requests are answered 401, 403, 429 or 503. Throws TypeError for maxAge or aal with via
 * "introspection". */
export declare function protect(client: Client, action?: string, options?: GuardOptions & {
	/** Answers a refused request in place of a problem; it must answer or call next. */
	onRefused?: (error: DoorwardError, req: IncomingMessage, res: ServerResponse, next: Next) => void;
}): (req: IncomingMessage, res: ServerResponse, next: Next) => Promise<void>;
