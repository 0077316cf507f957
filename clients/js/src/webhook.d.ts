import type { IncomingMessage, ServerResponse } from "node:http";
import type { Schemas } from "./index.js";

export interface WebhookMessage {
	/** The same when the message comes again. */
	id: string;
	/** Such as "user.role". */
	type: string;
	timestamp: Date;
	data: Schemas["Event"];
}

/** Why a request is no webhook of the sender who has the secret. */
export declare class InvalidWebhook extends Error {}

/** Returns the message of a request, or throws InvalidWebhook. Each secret is one (whsec_…) or the
 * public key of a webhook (whpk_…): give both secrets during the grace period of a new one. The
 * body has the bytes as they came. Throws TypeError for another kind of secret. */
export declare function verifyWebhook(secrets: string | string[], headers: Headers | Record<string, string | string[] | undefined>, body: Uint8Array | string, options?: { now?: () => number }): WebhookMessage;

/** A handler for Express, before any parser of bodies, and for anything else with (req, res, next).
 * It calls handle with each message, and answers 204 when that has finished, or 401 for what
 * isn't signed by one of the secrets. If handle fails, the message comes again. */
export declare function receive(secrets: string | string[], handle: (message: WebhookMessage) => unknown): (req: IncomingMessage, res: ServerResponse, next?: (error?: unknown) => void) => Promise<void>;
