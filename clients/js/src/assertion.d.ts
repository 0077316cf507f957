import type { Client } from "./index.js";

export interface Assertion {
	/** usr_… or key_… */
	subject: string;
	tenantId: string;
	role: string;
	/** Empty for an API key. */
	sessionId: string;
	/** Empty for a person. */
	keyId: string;
	aal: number;
	authTime?: Date;
	expiresAt: Date;
}

/** Verifies assertions for one audience, one of --assertion-audience, by the keys that Doorward
 * publishes. Make it once for a service. */
export declare class Verifier {
	constructor(client: Client, audience: string, options?: { now?: () => number });
	/** Rejects with Unauthenticated when the assertion isn't valid, and with Unavailable when the
	 * keys can't be read. */
	verify(assertion: string | undefined): Promise<Assertion>;
}
