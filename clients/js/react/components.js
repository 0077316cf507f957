"use client";

// Components that most pages need. They have classes and no style of their own: style.css is one.

import { createElement as h, useEffect, useState } from "react";
import { useSession, useStore } from "./index.js";

/** PageLink leads to a page of Doorward and back to the address "to", by default this page. */
function PageLink({ page, to, ...props }) {
	const { baseUrl, lead, pageAt } = useStore();
	// The server doesn't know the address of the page, and a new tab needs none.
	const [href, setHref] = useState(baseUrl + page);
	useEffect(() => setHref(to ? pageAt(page, to) : baseUrl + page), [baseUrl, page, to, pageAt]);
	const onClick = (event) => {
		if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
		event.preventDefault();
		lead(page, to);
	};
	return h("a", { href, onClick, ...props });
}

/** SignInLink leads to the login page and back to the address "to", by default this page. */
export const SignInLink = ({ to, children = "Sign in", className = "doorward-sign-in" }) => h(PageLink, { page: "/login", to, className }, children);

const userLabels = { account: "Account", security: "Security", signOut: "Sign out", failed: "You are still signed in. Try again." };

/** UserButton shows who is signed in, and opens a menu with the account, its security, further
 * children, and signing out. It shows nothing while nobody is known to be signed in. */
export function UserButton({ labels, children, className = "doorward-user" }) {
	const { status, user, signOut } = useSession();
	const [failed, setFailed] = useState(false);
	if (status !== "signed-in") return null;
	const texts = { ...userLabels, ...labels };
	const onSignOut = () => {
		setFailed(false);
		signOut().catch(() => setFailed(true));
	};
	const item = (key, content) => h("li", { key }, content);
	// A click on the text of the menu gives it the focus, so that the focus stays inside.
	return h("details", { className, onBlur: closeOnLeave, onKeyDown: closeOnEscape },
		h("summary", null, user.name || user.email),
		h("div", { className: "doorward-menu", tabIndex: -1 },
			h("p", null, user.email, h("br"), user.tenantName),
			h("ul", null,
				item("account", h(PageLink, { page: "/account" }, texts.account)),
				item("security", h(PageLink, { page: "/account/security" }, texts.security)),
				children,
				item("sign-out", h("button", { type: "button", onClick: onSignOut }, texts.signOut))),
			failed && h("p", { role: "alert" }, texts.failed)));
}

function closeOnLeave({ currentTarget: menu, relatedTarget }) {
	if (!menu.contains(relatedTarget)) menu.open = false;
}

function closeOnEscape({ key, currentTarget: menu }) {
	if (key !== "Escape" || !menu.open) return;
	menu.open = false;
	menu.querySelector("summary").focus();
}

/** TenantSwitcher lets people choose among their tenants, and then loads the page again, since all
 * that it shows is of the tenant before; onSwitch replaces that. Where the other tenant asks for
 * more, it leads to Doorward's page. It shows nothing to people with one tenant. */
export function TenantSwitcher({ label = "Organization", failed = "That didn't work. Try again.", onSwitch = () => location.reload(), className = "doorward-tenant" }) {
	const { request, lead } = useStore();
	const { status, user, refresh } = useSession();
	const [tenants, setTenants] = useState([]);
	const [hasFailed, setHasFailed] = useState(false);
	useEffect(() => {
		let current = true;
		if (status === "signed-in") void membershipsOf(request).then((all) => { if (current) setTenants(all); });
		return () => { current = false; };
	}, [status, user?.id, request]);
	if (status !== "signed-in" || tenants.length < 2) return null;

	const onChange = async ({ target }) => {
		setHasFailed(false);
		const response = await post(request, "/api/v2/auth/switch-tenant", { tenantId: target.value });
		if (response?.ok) return void onSwitch(await refresh());
		const { code } = await response?.json().catch(() => ({})) ?? {};
		if (code === "mfa_required" || code === "mfa_enrolment_required") return lead("/login/tenant");
		setHasFailed(code !== "step_up_required"); // request has led to that page
	};
	const options = tenants.map(({ tenantId, tenantName }) => h("option", { key: tenantId, value: tenantId }, tenantName));
	return h("label", { className }, h("span", null, label), h("select", { value: user.tenantId, onChange }, options),
		hasFailed && h("span", { role: "alert" }, failed));
}

/** membershipsOf resolves to the tenants that the person can switch to, and to none after a fault. */
async function membershipsOf(request) {
	const body = await request("/api/v2/auth/memberships").then((response) => response.ok && response.json()).catch(() => undefined);
	return (body?.items ?? []).filter((membership) => membership.status === "active");
}

const post = (request, path, body) => request(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }).catch(() => undefined);
