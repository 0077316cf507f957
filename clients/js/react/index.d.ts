import type { ReactNode } from "react";

export interface User {
	id: string; email: string; name: string; role: string; status: string;
	tenantId: string; tenantName: string; permissions: string[];
}
export interface Session {
	id: string; expiresAt: string; idleExpiresAt: string; aal: number; amr: string[]; authAt: string;
}
export type State =
	| { status: "loading" | "signed-out"; user?: undefined; session?: undefined; error?: undefined }
	/** error: what the operator has to set, if Doorward answers and doesn't let this page read it. */
	| { status: "unavailable"; user?: undefined; session?: undefined; error?: string }
	| { status: "signed-in"; user: User; session: Session; error?: undefined };

interface Actions {
	/** Asks Doorward again. After a fault "signed-in" stays; otherwise the status is "unavailable". */
	refresh(): Promise<State>;
	/** Leads to the login page and back to the address, by default this page. */
	signIn(to?: string): void;
	/** Ends the session; rejects when Doorward doesn't confirm that. */
	signOut(): Promise<void>;
	/** Leads to the page on which the person proves their identity again, and back. */
	stepUp(to?: string): void;
	/** fetch of baseUrl + path. Leads to the step-up when the answer asks for one, and calls refresh
	 * after a 401. */
	request(path: string, options?: RequestInit): Promise<Response>;
}
export interface Store extends Actions {
	getState(): State;
	subscribe(listener: () => void): () => void;
}

export declare function createStore(options?: { baseUrl?: string; fetch?: typeof globalThis.fetch }): Store;
export declare function DoorwardProvider(props: { baseUrl?: string; store?: Store; children?: ReactNode }): ReactNode;
export declare function useSession(): State & Actions & { can(action: string): boolean };
export declare function SignedIn(props: { children?: ReactNode; fallback?: ReactNode }): ReactNode;
export declare function SignedOut(props: { children?: ReactNode }): ReactNode;
export declare function RequirePermission(props: { action: string; children?: ReactNode; fallback?: ReactNode }): ReactNode;
