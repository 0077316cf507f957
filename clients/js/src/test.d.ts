import type { Client } from "./index.js";

/** The password of all four people. */
export declare const password: string;

export interface TestServer {
	/** Its address, without a slash at the end. */
	readonly url: string;
	/** A client without a credential. */
	readonly client: Client;
	/** A client with a new session of that person of the tenant Acme, such as owner@acme.example. */
	signIn(role: "owner" | "admin" | "user" | "viewer"): Promise<Client>;
	/** Runs a command of doorward on the server's database, and resolves to what it prints. */
	operate(...args: string[]): Promise<string>;
	/** A new service key that may do these things, such as "access.introspect". */
	createServiceKey(...may: string[]): Promise<string>;
	/** Ends the server, and removes its data. */
	stop(): Promise<void>;
}

/** Starts a real Doorward on a free port, with data of its own: DOORWARD_BIN, or doorward on the
 * PATH. It downloads nothing, and rejects if the program is missing, or ends. */
export declare function startDoorward(options?: {
	/** Flags of "doorward dev", such as "--assertion-audience". */
	flags?: string[];
	/** The text of a model of the platform's own actions. */
	model?: string;
}): Promise<TestServer>;
