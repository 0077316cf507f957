import type { Client } from "./index.js";

export interface Assertion {
	/** usr_… or key_… */
	subject: string;
	tenantId: string;
	role: string;
	/** Empty of an API key. */
	sessionId: string;
	/** Empty of a person. */
	keyId: string;
	aal: number;
	authTime?: Date;
	expiresAt: Date;
}

export declare class Verifier {
	constructor(client: Client, audience: string, options?: { now?: () => number });
	verify(assertion: string | undefined): Promise<Assertion>;
}
