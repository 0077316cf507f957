import type { ReactNode } from "react";

export interface User {
	id: string; email: string; name: string; role: string; status: string;
	tenantId: string; tenantName: string; permissions: string[];
}
export interface Session {
	id: string; expiresAt: string; idleExpiresAt: string; aal: number; amr: string[]; authAt: string;
}
/** What GET /api/v2/auth/session answers. */
export interface CurrentSession { user: User; session: Session }
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
	/** fetch, with baseUrl before the paths of Doorward's API (/api/v2/…) and no others. Leads to the step-up when the answer asks for one, and calls refresh
	 * after a 401. */
	request(path: string, options?: RequestInit): Promise<Response>;
}
export interface Store extends Actions {
	readonly baseUrl: string;
	getState(): State;
	/** The state with which the server renders the page. */
	getInitialState(): State;
	subscribe(listener: () => void): () => void;
	/** Leads to a page of Doorward and back to the address, by default this page. */
	lead(page: string, to?: string): void;
	/** The address to which lead leads; only in a browser. */
	pageAt(page: string, to: string): string;
}

interface Place {
	/** Where Doorward is, such as "/platform"; by default at the root of this origin. */
	baseUrl?: string;
	/** The answer that the server of the page got, for the first rendering: null if nobody was signed
	 * in. Without it the page begins with the status "loading". */
	initialSession?: CurrentSession | null | undefined;
}
export declare function createStore(options?: Place & { fetch?: typeof globalThis.fetch }): Store;
export declare function DoorwardProvider(props: Place & { store?: Store; children?: ReactNode }): ReactNode;
export declare function useSession(): State & Actions & { can(action: string): boolean };
export declare function SignedIn(props: { children?: ReactNode; fallback?: ReactNode }): ReactNode;
export declare function SignedOut(props: { children?: ReactNode }): ReactNode;
export declare function RequirePermission(props: { action: string; children?: ReactNode; fallback?: ReactNode }): ReactNode;

/** A link to the login page, and back to the address "to", by default this page. */
export declare function SignInLink(props: { to?: string; children?: ReactNode; className?: string }): ReactNode;
/** Who is signed in, with a menu: the account, its security, further children (<li>), signing out. */
export declare function UserButton(props: {
	labels?: { account?: string; security?: string; signOut?: string; failed?: string };
	children?: ReactNode;
	className?: string;
}): ReactNode;
/** The person's tenants to choose from; nothing for people with one. After a switch it loads the page
 * again, or calls onSwitch. */
export declare function TenantSwitcher(props: {
	label?: string; failed?: string; onSwitch?: (state: State) => void; className?: string;
}): ReactNode;
