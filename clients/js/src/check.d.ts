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

export interface CheckOptions {
	/** "introspection" asks with the key of the client. */
	via?: "check" | "introspection";
	/** How old the proof of the session may be, in seconds; only with "check". */
	maxAge?: number;
	aal?: 1 | 2;
}
