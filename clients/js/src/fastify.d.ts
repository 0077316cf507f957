import type { IncomingMessage } from "node:http";
import type { Client, DoorwardError } from "./index.js";
import type { CheckOptions, Identity } from "./check.js";

export type { Identity } from "./check.js";

interface Request { raw: IncomingMessage; ip: string; doorward?: Identity }
interface Reply { code(status: number): Reply; headers(all: Record<string, string>): Reply; send(body?: unknown): Reply }

export declare function protect(client: Client, action?: string, options?: CheckOptions & {
	/** Answers a refused request in place of a problem. */
	onRefused?: (error: DoorwardError, request: Request, reply: Reply) => unknown;
}): (request: Request, reply: Reply) => Promise<unknown>;
