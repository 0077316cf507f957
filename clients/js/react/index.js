"use client";

// Who is signed in, for React. The page is served from Doorward's origin, so the browser
// sends the session cookie, which is HttpOnly: no script sees a token. It may also be on another
// origin of the same site, which --allowed-origins lists.

import { createContext, createElement, useCallback, useContext, useEffect, useMemo, useSyncExternalStore } from "react";

export { SignInLink, TenantSwitcher, UserButton } from "./components.js";

/** createStore keeps the answer to "who am I". A state is {status, user, session}; status is
 * "loading", "signed-in", "signed-out" or, while that is unknown, "unavailable". initialSession is
 * the answer that the server of the page got, or null if nobody was signed in. */
export function createStore({ baseUrl: address = "", initialSession, fetch: send = (...args) => globalThis.fetch(...args) } = {}) {
	const baseUrl = address.replace(/\/+$/, "");
	let state = stateOf(initialSession);
	let rendered; // the state with which the server has rendered the page
	let questions = 0;
	let timer;
	const listeners = new Set();
	const set = (next) => {
		state = next;
		listeners.forEach((listener) => listener());
	};
	const call = (path, options) => send(baseUrl + path, { credentials: "include", cache: "no-store", ...options });

	/** withheld resolves to why the browser keeps the answers from this page: they are of an origin
	 * that doesn't allow it. If nothing answers, it is undefined. */
	async function withheld() {
		const own = globalThis.location?.origin;
		if (!own || new URL(baseUrl || own, own).origin === own) return undefined;
		const answers = await call("/api/v2/auth/session", { mode: "no-cors" }).then(() => true, () => false);
		return answers ? `Doorward is on another origin: set --allowed-origins ${own} there` : undefined;
	}

	async function refresh() {
		const number = ++questions;
		clearTimeout(timer);
		let response, body, error;
		try {
			response = await call("/api/v2/auth/session");
			body = await response.json();
		} catch { // no answer, or none that this page may read
			if (!response) error = await withheld();
		}
		if (number !== questions) return state; // a later question has been asked
		if (response?.ok && body?.user) {
			set({ status: "signed-in", user: body.user, session: body.session });
		} else if (response?.status === 401 && body?.code === "unauthenticated") {
			set({ status: "signed-out" });
		} else if (error && !state.user) {
			if (error !== state.error) console.error(error);
			set({ status: "unavailable", error });
		} else {
			// A fault says nothing about the session: keep what is shown, and ask again.
			if (!state.user) set({ status: "unavailable" });
			const seconds = Math.min(Number(response?.headers.get("retry-after")) || 2, 300);
			if (listeners.size) timer = setTimeout(refresh, 1000 * seconds * (1 + Math.random() / 2));
		}
		return state;
	}

	async function signOut() {
		const response = await call("/api/v2/auth/logout", { method: "POST" });
		if (response.status !== 204) throw new Error(`signing out: ${response.status}`);
		questions++; // an answer to an earlier question no longer counts
		set({ status: "signed-out" });
	}

	/** request is fetch that leads to the page of a step-up when the answer asks for one. Paths of
	 * Doorward's API are below baseUrl; others are those of the application, and stay as they are. */
	async function request(path, options) {
		const response = await (path.startsWith("/api/v2/") ? call(path, options) : send(path, { cache: "no-store", ...options }));
		if (response.status === 403 && (await response.clone().json().catch(() => ({}))).code === "step_up_required") stepUp();
		if (response.status === 401) void refresh();
		return response;
	}

	/** pageAt returns the address of a page of Doorward that leads back to "to". Doorward would take a
	 * path for one below its own address, so it gets the full address. */
	const pageAt = (page, to) => `${baseUrl}${page}?return=${encodeURIComponent(new URL(to, location.href).href)}`;
	// to is an event, not an address, if signIn or stepUp is a click handler
	const lead = (page, to) => location.assign(pageAt(page, typeof to === "string" ? to : location.href));
	const signIn = (to) => lead("/login", to);
	const stepUp = (to) => lead("/step-up", to);

	return {
		baseUrl,
		getState: () => state,
		getInitialState: () => rendered ?? state,
		subscribe(listener) {
			rendered ??= state;
			listeners.add(listener);
			return () => {
				listeners.delete(listener);
				if (!listeners.size) clearTimeout(timer);
			};
		},
		refresh, signOut, signIn, stepUp, request, lead, pageAt,
	};
}

function stateOf(initialSession) {
	if (initialSession === undefined) return { status: "loading" };
	return initialSession ? { status: "signed-in", user: initialSession.user, session: initialSession.session } : { status: "signed-out" };
}

const Context = createContext(undefined);

/** DoorwardProvider asks once, and again when the page is shown after a while. Only the first
 * initialSession counts: later ones are no newer than what the store has asked for itself. */
export function DoorwardProvider({ baseUrl, initialSession, store, children }) {
	const current = useMemo(() => store ?? createStore({ baseUrl, initialSession }), [store, baseUrl]);
	useEffect(() => {
		const onVisible = () => { if (document.visibilityState === "visible") void current.refresh(); };
		const onPageShow = (event) => { if (event.persisted) onVisible(); }; // from the back/forward cache
		onVisible();
		document.addEventListener("visibilitychange", onVisible);
		window.addEventListener("pageshow", onPageShow);
		return () => {
			document.removeEventListener("visibilitychange", onVisible);
			window.removeEventListener("pageshow", onPageShow);
		};
	}, [current]);
	return createElement(Context.Provider, { value: current }, children);
}

/** useStore returns the store of the provider: for components.js. */
export function useStore() {
	const store = useContext(Context);
	if (!store) throw new Error("useSession needs a DoorwardProvider above it");
	return store;
}

/** useSession returns {status, user, session, can, refresh, signIn, signOut, stepUp, request}. */
export function useSession() {
	const store = useStore();
	// React compares the page with what the server rendered, so it has to begin with the same state.
	const state = useSyncExternalStore(store.subscribe, store.getState, store.getInitialState);
	const can = useCallback((action) => Boolean(state.user?.permissions.includes(action)), [state]);
	return useMemo(() => {
		const { refresh, signIn, signOut, stepUp, request } = store;
		return { ...state, can, refresh, signIn, signOut, stepUp, request };
	}, [store, state, can]);
}

/** SignedIn shows its children while somebody is signed in, else the fallback. */
export const SignedIn = ({ children, fallback = null }) => (useSession().status === "signed-in" ? children : fallback);

/** SignedOut shows its children when it is certain that nobody is signed in. */
export const SignedOut = ({ children }) => (useSession().status === "signed-out" ? children : null);

/** RequirePermission shows its children to people with the permission. It only hides them:
 * the service behind must check each request. */
export const RequirePermission = ({ action, children, fallback = null }) => (useSession().can(action) ? children : fallback);
