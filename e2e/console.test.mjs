// Every journey through the console, on the same screens as the other pages. Each test signs
// in again and leaves the four people as they were. The first journey is on a phone also in a
// quick run, and opens the menu.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { Person, Server, chosen, everyScreen, onScreens, password, until } from "./harness.mjs";

onScreens("the console", everyScreen, ({ server, create, journey }) => {
	const as = async (role) => {
		const p = await create();
		await p.openSession(`${role}@acme.example`);
		return p;
	};

	/** The newest sign-in of the person's days leads to it in the trail, and back. */
	const leadsToTheDay = async (owner) => {
		const person = owner.page.url();
		await owner.page.locator("#days-title-table > summary").click();
		await owner.page.locator("#days-title-table tbody tr:last-child td a").first().click();
		await owner.page.waitForURL(/\/console\/audit\?.*action=session.open/);
		assert.notEqual(await owner.page.locator(".events tbody tr[id]").count(), 0);
		await owner.page.goto(person);
		await owner.page.waitForSelector("#days-title");
	};

	journey("an owner finds somebody, changes the role, suspends, resumes, signs out", async () => {
		const owner = await as("owner");
		const viewer = await as("viewer");
		await owner.go("/account");
		await owner.page.locator("a[href$='/console']").first().click();
		await owner.at("/console");
		await owner.page.waitForSelector("#keep");
		await owner.look("console-overview");
		if (await owner.page.locator(".opener").isVisible()) {
			await owner.page.locator(".opener").click();
			await owner.look("console-menu");
			await owner.page.keyboard.press("Escape");
			assert.equal(await owner.page.locator(".nav").isVisible(), false);
		}
		await owner.open("/console/people");
		await owner.page.waitForSelector(".people");
		assert.equal(await owner.page.locator(".people tbody tr").count(), 4);
		await owner.look("console-people");
		await owner.send("/console/people", { q: "viewer" });
		assert.equal(await owner.page.locator(".people tbody tr").count(), 1);
		await owner.look("console-people-found");
		await owner.page.locator(".people tbody th a").click();
		await owner.page.waitForSelector(".tabs");
		await owner.look("console-person");
		for (const [tab, shown] of [["sessions", "#live"], ["security", "#factors-title"], ["activity", "#recent-title"], ["profile", "#about-title"]]) {
			await owner.tab(tab);
			await owner.page.waitForSelector(shown, { state: "attached" });
			if (tab !== "profile") await owner.look(`console-person-${tab}`);
			if (tab === "sessions") assert.equal(await owner.page.locator(".sessions .shape[role=img]").count(), await owner.page.locator(".sessions tbody tr").count());
			if (tab === "activity") await leadsToTheDay(owner);
		}

		await owner.page.locator("main a[href*='/role']").click();
		await owner.page.waitForSelector("[name=role][value=ADMIN]");
		assert.equal(await owner.page.locator("[name=role][value=VIEWER]").count(), 0, "not the present one");
		await owner.look("console-role");
		await owner.page.locator("[name=role][value=ADMIN]").check();
		await owner.send("/role");
		await owner.page.waitForSelector(".notice.good");
		await viewer.go("/console/invitations");
		assert.equal(await viewer.page.locator(".nav a").count(), 10, "the new role counts at once");
		await owner.page.locator("main a[href*='/role']").click();
		await owner.page.locator("[name=role][value=VIEWER]").check();
		await owner.send("/role");
		await owner.page.waitForSelector(".notice.good");

		await owner.page.locator("a[href*='/suspend']").click();
		await owner.page.waitForSelector("form[action$='/suspend']");
		await owner.look("console-suspend");
		await owner.send("/suspend");
		await owner.says(".notice.good", /1/);
		await owner.look("console-person-suspended");
		await viewer.go("/console");
		await viewer.at("/login");
		await owner.page.locator("a[href*='/resume']").click();
		await owner.page.waitForSelector("form[action$='/resume']");
		await owner.look("console-resume");
		await owner.send("/resume");
		await owner.page.waitForSelector(".notice.good");

		await viewer.send("/login", { email: "viewer@acme.example", password });
		await viewer.at("/console");
		await owner.tab("sessions");
		await owner.page.locator("a[href*='/sign-out']").click();
		await owner.page.waitForSelector("form[action$='/sign-out']");
		await owner.look("console-sign-out");
		await owner.send("/sign-out");
		await owner.says(".notice.good", /1/);
		await viewer.go("/console");
		await viewer.at("/login");
		await owner.page.locator("a[href*='/remove']").click();
		await owner.page.waitForSelector("form[action$='/remove']");
		await owner.look("console-remove");
		await owner.open("/account");
		await owner.at("/account");
	});

	journey("an owner writes policies, confirms them, and restores earlier ones", async () => {
		const owner = await as("owner");
		await owner.go("/console");
		await owner.open("/console/policy");
		await owner.look("console-policy-none");
		await owner.page.locator("[name=example][value=hours]").click();
		await owner.page.waitForURL(/example/);
		assert.match(await owner.page.locator("#text").inputValue(), /@id\("office-hours"\)/);
		const text = `${await owner.page.locator("#text").inputValue()}\n@id("far")\nforbid(principal, action == Action::"settings.manage", resource)\nwhen { context.ip.isInRange(ip("198.51.100.0/24")) };\n`;
		await owner.send("/console/policy", { text: `${text}permit(principal, action, resource);` });
		await owner.page.waitForSelector("#text-faults");
		await owner.look("console-policy-faults");
		await owner.page.locator("#text-faults a").first().click();
		assert.equal(await owner.page.locator(".wrong:target").count(), 1);
		await owner.page.locator("#text").fill(text);
		await owner.page.locator("button[formaction*='/plan']").click();
		await owner.page.waitForSelector("#plan"); // a table, on a phone lists by role
		await owner.page.locator("#plan a[href^='#why-']").filter({ visible: true }).first().click(); // of the table, or of the list by role
		assert.equal(await owner.page.locator(".reasons > li:target").count(), 1);
		assert.match(await owner.page.locator(".reasons").innerText(), /office-hours[\s\S]*far|far[\s\S]*office-hours/);
		await owner.look("console-policy-plan");
		assert.equal(await owner.page.locator("#text").inputValue(), text);
		assert.equal(await owner.page.locator("#plan button[form=draft]").isVisible(), true);
		await owner.page.locator("#plan a[href='#text']").click();
		await owner.send("/console/policy", { text, confirmMinutes: "10" });
		await owner.page.waitForSelector("#unconfirmed");
		await owner.page.waitForSelector("#effect .reasons a[href*='/console/policy/versions/']");
		await owner.look("console-policy-unconfirmed");
		await owner.send("/console/policy/confirm");
		await owner.page.waitForSelector(".notice.good");
		assert.equal(await owner.page.locator("#unconfirmed").count(), 0);
		await owner.page.locator("[name=mode][value=observe]").check();
		await owner.send("/console/policy", { text: text.replace("198.51.100", "203.0.113"), confirmMinutes: "" });
		await owner.page.waitForSelector(".notice.good");
		await owner.look("console-policy-observes");
		await owner.page.locator("header a[href$='/console/policy/versions']").click();
		await owner.page.waitForSelector(".list");
		await owner.look("console-policy-versions");
		await owner.page.locator(".list tbody th a").last().click();
		await owner.page.waitForSelector("#made-title");
		await owner.look("console-policy-version");
		await owner.page.locator("a[href$='/restore']").click();
		await owner.page.waitForSelector("form[action$='/restore']");
		await owner.look("console-policy-restore");
		await owner.send("/restore");
		await owner.page.waitForSelector(".notice.good");

		await owner.go("/console/people?q=admin@");
		await owner.page.locator(".people tbody th a").click();
		await owner.tab("security");
		await owner.page.locator("#why-action").selectOption("settings.manage");
		await owner.send("/console/explain");
		await owner.page.waitForSelector("#answer.bad"); // the address isn't known
		await owner.page.locator("#ip").fill("203.0.113.7");
		await owner.send("/console/explain");
		await owner.page.waitForSelector("#answer.good");
		await owner.look("console-explain");
		await owner.page.locator("#ip").fill("198.51.100.7");
		await owner.send("/console/explain");
		await owner.page.waitForSelector("#answer.bad");
		await owner.look("console-explain-refused");
		await owner.page.locator("#answer a[href*='#L']").click();
		await owner.page.waitForSelector(".code li:target");
		await owner.send("/console/policy", { text: "", confirmMinutes: "" });
		await owner.page.waitForSelector(".notice.good");
	});

	journey("an owner removes somebody, whose session ends at once", async () => {
		const owner = await as("owner");
		const session = (await owner.context.cookies()).find((c) => c.name === "JSESSIONID").value;
		await server.api("POST", "/api/v2/auth/invite", { email: "ann@acme.example", role: "ADMIN" }, session);
		const code = await server.code("ann@acme.example");
		await server.api("POST", "/api/v2/auth/complete-registration", { token: code, password: chosen, confirmPassword: chosen });
		const ann = await create();
		await ann.signIn("ann@acme.example", chosen);
		await ann.at("/account");
		const hers = (await ann.context.cookies()).find((c) => c.name === "JSESSIONID").value;
		await server.api("POST", "/api/v2/auth/invite", { email: "by-ann@acme.example", role: "USER" }, hers);

		await owner.go("/console/people?q=ann@");
		await owner.page.locator(".people tbody th a").click();
		const before = owner.page.url();
		await owner.page.locator("a[href*='/remove']").click();
		await owner.page.waitForSelector("form[action$='/remove']");
		const text = await owner.page.locator(".consequences").innerText();
		assert.match(text, /1 session ends|1 Sitzung endet/);
		assert.match(text, /1 invitation|1 Einladung/);
		await owner.look("console-remove-asked");
		await owner.page.locator("form[action$='/remove'] a.plain").click();
		await owner.page.waitForURL(before);
		assert.equal((await ann.page.request.get("/api/v2/auth/session")).status(), 200, "the session has ended before the confirmation");

		await owner.page.locator("a[href*='/remove']").click();
		await owner.send("/remove");
		await owner.at("/console/people");
		await owner.says(".notice.good", /1 session has ended. 1 invitation was revoked|1 Sitzung wurde beendet. 1 Einladung wurde zurückgezogen/);
		await owner.look("console-removed");
		assert.equal((await ann.page.request.get("/api/v2/auth/session")).status(), 401, "the session goes on");
		assert.equal(await owner.page.locator(".people tbody th a", { hasText: "ann@" }).count(), 0);
		await ann.go("/console");
		await ann.at("/login");
		await ann.send("/login", { email: "ann@acme.example", password: chosen });
		await ann.page.waitForSelector("[role=alert]");
		await owner.go("/console/people/" + new URL(before).pathname.split("/").pop());
		await owner.look("console-person-gone");
		const again = await owner.page.request.get("/console/invitations?status=REVOKED");
		assert.match(await again.text(), /by-ann@acme\.example/);
	});

	journey("an admin invites several, sends again, revokes", async () => {
		const admin = await as("admin");
		await admin.go("/console");
		await admin.page.locator("a[href$='/console/invitations/new']:visible").click();
		await admin.page.waitForSelector("#people");
		assert.equal(await admin.page.locator("[name=role][value=OWNER]").count(), 0, "an admin makes no owners");
		await admin.look("console-invite");
		await admin.send("/console/invitations/new", { people: "Bea Lee <bea@acme.example>, \ncem@acme.example\nnobody\nviewer@acme.example" });
		await admin.page.waitForSelector(".drafts");
		assert.equal(await admin.page.locator(".drafts [aria-invalid]").count(), 1);
		await admin.look("console-invite-wrong");
		await admin.page.locator(".drafts [aria-invalid]").fill("dee@acme.example");
		await admin.send("/preview/send");
		await admin.page.waitForSelector(".notice[role=status]");
		assert.equal(await admin.page.locator(".drafts [name=email]").inputValue(), "viewer@acme.example", "a member stays in the form");
		await admin.look("console-invite-left");
		await admin.go("/console/invitations/new");
		assert.match(await admin.page.locator("#people").inputValue(), /^viewer@acme\.example\t\tUSER$/m);
		await admin.go("/console/invitations?status=PENDING");
		assert.equal(await admin.page.locator(".invitations tbody tr").count(), 3);
		await admin.look("console-invitations");

		await admin.page.locator(".invitations tbody th a", { hasText: "bea@" }).click();
		await admin.page.waitForSelector("form[action$='/resend']");
		await admin.look("console-invitation");
		await admin.send("/resend");
		await admin.page.waitForSelector("[role=alert]");
		await admin.look("console-invitation-too-soon");
		await admin.send("/revoke");
		await admin.page.waitForSelector(".notice.good");
		assert.equal(await admin.page.locator("form[action$='/revoke']").count(), 0);
		await admin.look("console-invitation-revoked");
	});

	journey("what is typed survives the end of the session, passwords and codes do not, another person never finds it", async () => {
		const admin = await as("admin");
		await admin.go("/console/keys/new");
		await admin.page.locator("[name=name]").fill("Shop <1>");
		await admin.page.locator("[name=permissions]").nth(1).check();
		await admin.context.clearCookies();
		await admin.send("/console/keys/new");
		await admin.send("/login", { email: "admin@acme.example", password });
		await admin.at("/console/keys/new");
		await admin.page.waitForFunction(() => document.getElementById("name").value === "Shop <1>");
		assert.equal(await admin.page.locator("[name=permissions]").nth(1).isChecked(), true);
		await admin.go("/console/settings");
		await admin.page.locator("[name=name]").fill("Acme & Co");
		await admin.go("/console/settings");
		assert.notEqual(await admin.page.locator("[name=name]").inputValue(), "Acme & Co", "a form that changes something has an old draft");
		await admin.page.locator("[name=name]").fill("Acme & Co");
		await admin.context.clearCookies();
		await admin.go("/console/settings");
		await admin.send("/login", { email: "admin@acme.example", password });
		await admin.at("/console/settings");
		await admin.page.waitForFunction(() => document.getElementById("name").value === "Acme & Co");
		const kept = () => admin.page.evaluate(() => JSON.stringify(sessionStorage));
		assert.doesNotMatch(await kept(), new RegExp(password));
		await admin.page.locator("form[action$='/logout'] button").first().evaluate((button) => button.form.requestSubmit());
		await admin.page.waitForURL(/login/);
		assert.doesNotMatch(await kept(), /Shop|Acme/);
	});

	journey("an admin creates a key, tries it, rotates it, disables it, revokes it", async () => {
		const admin = await as("admin");
		await admin.go("/console");
		await admin.open("/console/keys");
		await admin.look("console-keys-none");
		await admin.page.locator("a[href$='/console/keys/new']:visible").click();
		await admin.page.waitForSelector("[name=permissions]");
		await admin.page.locator("[name=name]").fill("Shop");
		await admin.pickRole("ADMIN");
		await admin.page.locator(".picker [type=submit]").click();
		await admin.page.waitForSelector("[name=permissions][value='user.invite']");
		assert.equal(await admin.page.locator("#name").inputValue(), "Shop", "another role empties the form");
		await admin.pickRole("USER");
		await admin.page.locator(".picker [type=submit]").click();
		await admin.page.waitForSelector("[name=permissions][value='user.invite']", { state: "detached" });
		assert.equal(await admin.page.locator("[name=permissions][value='user.invite']").count(), 0, "more than the role grants");
		await admin.look("console-key-new");
		await admin.page.locator("[name=permissions][value='message.send']").check();
		await admin.send("/console/keys/new", { name: "Shop", allowedIps: "nowhere" });
		await admin.page.waitForSelector("[aria-invalid=true]");
		assert.equal(await admin.page.locator("[name=permissions]:checked").count(), 1);
		await admin.look("console-key-refused");
		await admin.send("/console/keys/new", { allowedIps: "192.0.2.0/24\n2001:db8::/32" });
		await admin.page.waitForSelector("#secret");
		const first = await admin.page.locator("#secret").innerText();
		assert.match(first, /^dwk_[0-9A-Za-z]{49}$/);
		await admin.look("console-key-secret");
		await admin.context.grantPermissions(["clipboard-read", "clipboard-write"]);
		await admin.page.locator("#secret + button").click();
		assert.equal(await admin.page.evaluate(() => navigator.clipboard.readText()), first);
		assert.equal(await admin.page.locator(".languages").count(), 0, "in another language the secret would be lost");

		await admin.page.locator("main a[href*='/console/keys/key_']").click();
		await admin.page.waitForSelector("#try");
		const page = admin.page.url();
		await admin.page.locator("#ip").fill("203.0.113.7");
		await admin.page.locator("#try form button").click();
		await admin.page.locator("#try .notice.bad").waitFor();
		await admin.page.locator("#action").selectOption("message.send");
		await admin.page.locator("#ip").fill("192.0.2.7");
		await admin.page.locator("#try form button").click();
		await admin.page.locator("#try .notice.good").waitFor();
		await admin.look("console-key");
		await admin.tab("settings");
		await admin.look("console-key-settings");
		await admin.tab("rotation");
		await admin.send("/rotate");
		await admin.page.waitForSelector("#secret");
		assert.notEqual(await admin.page.locator("#secret").innerText(), first);
		await admin.look("console-key-rotated");
		await admin.go(page);
		await admin.tab("rotation");
		await admin.page.locator("#rotate .notice").waitFor();
		await admin.look("console-key-grace");
		await admin.send("/previous");
		await admin.page.locator(".notice.good").waitFor();
		await admin.page.locator("a[href*='/disable']").click();
		await admin.page.waitForSelector("form[action$='/disable']");
		await admin.look("console-key-disable");
		await admin.send("/disable");
		await admin.page.locator(".tags .tag.quiet").nth(1).waitFor(); // the state, before the role
		await admin.page.locator("a[href*='/revoke']").click();
		await admin.page.waitForSelector("form[action$='/revoke']");
		await admin.look("console-key-revoke");
		await admin.send("/revoke");
		await admin.page.locator(".notice.good").waitFor();
		assert.equal(await admin.page.locator("#try, .tabs [href*=rotation], .tabs [href*=settings]").count(), 0);
		await admin.look("console-key-revoked");
		await admin.go("/console/keys");
		assert.equal(await admin.page.locator(".keys tbody tr").count(), 1);
		await admin.look("console-keys");
		await admin.send("/console/keys", { q: "none" });
		await admin.page.locator(".empty").waitFor();
	});

	journey("an admin makes a webhook, sees its attempts, sends one again, deletes it", async () => {
		const admin = await as("admin");
		let status = 500;
		const endpoint = createServer((request, response) => { request.resume(); response.writeHead(status).end("<no>"); });
		await new Promise((done) => { endpoint.listen(0, "localhost", done); });
		endpoint.unref(); // a failure below ends the run, which would wait for it
		await admin.go("/console");
		await admin.open("/console/webhooks");
		await admin.look("console-webhooks-none");
		await admin.page.locator("a[href$='/console/webhooks/new']:visible").click();
		await admin.page.waitForSelector("[name=events]");
		await admin.send("/console/webhooks/new", { url: "https://10.0.0.1/" });
		await admin.page.waitForSelector("[aria-invalid=true]");
		await admin.page.locator("#group-session").click();
		await admin.page.locator("[value='session.*']").check();
		await admin.look("console-webhook-refused");
		await admin.send("/console/webhooks/new", { url: `http://localhost:${endpoint.address().port}/` });
		await admin.page.waitForSelector("#secret");
		assert.match(await admin.page.locator("#secret").innerText(), /^whsec_/);
		await admin.look("console-webhook-secret");
		await admin.page.locator("main a[href*='/console/webhooks/whk_']").click();
		await admin.page.waitForSelector("#deliveries");
		const page = admin.page.url();
		await admin.look("console-webhook-new");
		await admin.send("/test");
		await admin.page.locator(".notice.bad pre").waitFor();
		await as("viewer"); // signs in: an event
		await admin.go(page);
		await until("a refused delivery", async () => (await admin.page.reload()) && await admin.page.locator(".bars .refused").count() > 0);
		await admin.look("console-webhook-failing");
		await admin.page.locator(".skip-bars[href=\"#deliveries\"]").focus();
		await admin.page.keyboard.press("Tab");
		assert.match(await admin.page.evaluate(() => document.activeElement.getAttribute("aria-label")), /500/);
		await admin.page.keyboard.press("Enter");
		await admin.page.waitForSelector("#attempt-1");
		await admin.page.locator("#attempt-1 summary").click();
		await admin.look("console-delivery");
		status = 204;
		await admin.send("/retry");
		await admin.page.locator(".notice.good").waitFor();
		await admin.go(page);
		for (const tab of ["replay", "settings", "activity", "signing"]) {
			await admin.tab(tab);
			await admin.look(`console-webhook-${tab}`);
		}
		await admin.send("/rotate");
		await admin.page.waitForSelector("#secret");
		await admin.go(page);
		await admin.page.locator("a[href$='/delete']").click();
		await admin.page.waitForSelector("form[action$='/delete']");
		await admin.look("console-webhook-delete");
		await admin.send("/delete");
		await admin.page.locator(".notice.good").waitFor();
		endpoint.close();
	});

	journey("an owner makes a role, gives it, changes it, deletes it", async () => {
		const owner = await as("owner");
		await owner.go("/console");
		await owner.open("/console/roles");
		await owner.page.waitForSelector("a[href$='/console/roles/new']");
		await owner.look("console-roles");
		await owner.page.locator("a[href$='/rol_admin']").click();
		await owner.page.waitForSelector("#may-title");
		await owner.look("console-role-builtin");
		await owner.tab("members");
		await owner.look("console-role-members");
		await owner.go("/console/roles/new");
		await owner.look("console-role-new");
		await owner.send("/console/roles/new", { roleName: "desk" });
		await owner.page.waitForSelector("[aria-invalid=true]");
		await owner.look("console-role-refused");
		for (const may of ["user.read", "message.read"]) await owner.page.locator(`[value='${may}']`).check();
		await owner.send("/console/roles/new", { roleName: "DESK", about: "Looks after messages" });
		await owner.page.waitForSelector(".notice.good");
		await owner.look("console-role-made");
		const role = owner.page.url().split("?")[0];
		await owner.go("/console/people?q=viewer");
		await owner.page.locator(".people tbody th a").click();
		await owner.page.locator("main a[href*='/role']").click();
		await owner.page.locator("[name=role][value=DESK]").check();
		await owner.send("/role");
		await owner.page.waitForSelector(".notice.good");
		await owner.go(`${role}?tab=members`);
		assert.equal(await owner.page.locator(".people tbody tr").count(), 1);
		await owner.page.locator(".acts a[href$='/edit']").click();
		await owner.page.waitForSelector("[value='message.read']:checked");
		await owner.page.locator("[value='message.send']").check();
		await owner.page.locator("[value='message.read']").uncheck();
		await owner.send("/edit", { roleName: "FRONT_DESK" });
		await owner.page.waitForSelector("form[action$='/save']");
		assert.equal(await owner.page.locator(".consequences .gain, .consequences .loss").count(), 2);
		await owner.look("console-role-change");
		await owner.send("/save");
		await owner.says("h1", /FRONT_DESK/);
		await owner.page.locator("a[href$='/delete']").click();
		await owner.page.locator("[name=replaceBy][value=VIEWER]").check();
		await owner.look("console-role-delete");
		await owner.send("/delete");
		await owner.page.waitForSelector(".notice.good");
		assert.equal(await owner.page.locator("main a[href*='/roles/rol_']").count(), 4);
	});

	journey("the trail is filtered, followed by a request's link, and downloaded", async () => {
		const owner = await as("owner");
		await owner.go("/console/audit");
		await owner.look("console-audit");
		await owner.page.locator("#action").selectOption("session.open");
		await owner.send("/console/audit");
		assert.ok(await owner.page.locator(".events a.opens").count() > 1);
		const loaded = await owner.page.evaluate(() => { window.loadedOnce = true; });
		assert.equal(loaded, undefined);
		for (const row of [1, 0]) {
			await owner.page.locator(".events a.opens").nth(row).click();
			const id = await owner.page.locator(".events tbody tr:not(.day)").nth(row).getAttribute("id");
			await owner.page.locator("#event code", { hasText: id }).waitFor();
			assert.match(owner.page.url(), new RegExp(`event=${id}`));
			if (row > 0) await owner.page.keyboard.press("Escape"); // on a narrow screen they are over the page
		}
		assert.equal(await owner.page.evaluate(() => window.loadedOnce), true, "the details load the page again");
		await owner.look("console-audit-open");
		await owner.page.locator("#event .closes").click();
		assert.equal(await owner.page.locator("#event").count(), 0);
		assert.equal(await owner.page.evaluate(() => document.activeElement.className), "opens", "the focus is lost");
		await owner.page.locator(".events a.opens").first().click();
		await owner.page.locator("#event").waitFor();
		const file = await owner.page.request.get(await owner.page.locator("a[href*='format=spreadsheet']").getAttribute("href"));
		assert.match(file.headers()["content-type"], /^text\/csv/);
		assert.ok((await file.text()).trim().split("\n").length > 1);
		await owner.page.locator("#event a[href*='request=']").click();
		await owner.page.waitForURL(/request=/);
		assert.match(await owner.page.locator(".used li").innerText(), /req_|[0-9a-f]{8}/, "the filter in use is shown");
		await owner.look("console-audit-request");
		await owner.go("/console/audit");
		await owner.page.locator(".histogram .bars a").last().click();
		await owner.page.waitForURL(/from=\d{4}-\d\d-\d\d&/);
		assert.ok(await owner.page.locator(".events a.opens").count() > 1);
		await owner.go("/console/audit?request=req_none");
		await owner.look("console-audit-none");
	});

	journey("the operator's page is opened by a link, freezes and thaws, and is closed", async () => {
		const operator = await create();
		await operator.go("/operator");
		await operator.look("operator-link");
		await operator.send("/operator/open", { token: "nonsense" });
		await operator.page.waitForSelector("[role=alert]");
		await operator.look("operator-link-unknown");
		const reading = (await server.operate("audit", "link")).match(/http\S+/)[0];
		const link = (await server.operate("audit", "link", "--act", "freeze,thaw", "--reason", "ticket 4711")).match(/http\S+/)[0];
		for (const one of [reading, link]) { // the second where a page is open already
			await operator.go(one);
			await operator.page.waitForURL((at) => !at.hash && !at.search); // the code doesn't stay in the address bar
			await operator.page.waitForSelector(".list.tenants");
		}
		await operator.look("operator");
		await operator.go("/operator?q=nothing+like+it");
		await operator.look("operator-none");
		const made = await server.operate("tenant", "create", "--name", "Frost & Söhne", "--owner-email", "owner@frost.example");
		const id = made.match(/tnt_\w+/)[0];
		await operator.go("/operator?q=sohne");
		await operator.page.locator(`#${id} a`).first().click();
		await operator.page.waitForURL(/tenants\/tnt_/);
		await operator.look("operator-tenant");
		assert.equal(await operator.page.locator(`a[href*='${id}/close']`).count(), 0, "an act that the link lacks");
		await operator.page.locator(`a[href*='${id}/freeze']`).click();
		await operator.page.locator("#confirm").waitFor();
		await operator.look("operator-freeze");
		await operator.send(`/operator/tenants/${id}/freeze`, { confirm: "Frost" });
		await operator.page.waitForSelector("[aria-invalid=true]");
		await operator.look("operator-freeze-refused");
		await operator.send(`/operator/tenants/${id}/freeze`, { confirm: "Frost & Söhne" });
		await operator.page.waitForSelector(".notice.good");
		await operator.look("operator-frozen");
		await operator.page.locator(`a[href*='${id}/thaw']`).click();
		await operator.page.locator("#confirm").waitFor();
		await operator.look("operator-thaw");
		await operator.send(`/operator/tenants/${id}/thaw`, { confirm: "Frost & Söhne" });
		await operator.page.waitForSelector(`a[href*='${id}/freeze']`);
		for (const path of ["nodes", "mails", "deliveries"]) {
			await operator.go(`/operator/${path}`);
			await operator.page.waitForSelector(".nav [aria-current=page]", { state: "attached" });
			await operator.look(`operator-${path}`);
		}
		await operator.go("/operator/trail");
		await operator.page.locator(".events a.opens").first().click();
		await operator.page.locator("#event").waitFor();
		await operator.look("operator-trail");
		await operator.page.locator("#event a[href*='target=']").first().click();
		await operator.page.waitForURL(/target=/);
		assert.equal(await operator.page.locator(".used li").count(), 1, "the filter in use is shown");
		await operator.look("operator-filtered");
		await operator.go("/operator/trail?actor=usr_none");
		await operator.look("operator-trail-none");
		const menu = operator.page.locator(".opener"); // on a phone the button is in the menu
		if (await menu.isVisible()) await menu.click();
		await operator.send("/operator/leave");
		await operator.page.waitForSelector("form[action$='/operator/open']");
		await operator.look("operator-left");
		await operator.go(link);
		await operator.page.waitForSelector("[role=alert]"); // a link works only once
	});

	journey("settings are changed, the tenant is closed and comes back", async () => {
		const owner = await as("owner");
		await owner.go("/console/settings");
		await owner.look("console-settings");
		await owner.send("/console/settings", { allowedEmailDomains: "no domain" });
		await owner.look("console-settings-refused");
		assert.equal(await owner.page.locator("[aria-invalid=true]").count(), 1);
		await owner.send("/console/settings", { allowedEmailDomains: "acme.example", invitationDays: "9" });
		await owner.page.waitForSelector(".notice.good");
		assert.equal(await owner.page.locator("#invitationDays").inputValue(), "9");
		await owner.look("console-settings-saved");
		for (const tab of ["sessions", "factors", "appearance", "danger"]) {
			await owner.tab(tab);
			await owner.look(`console-settings-${tab}`);
		}

		await owner.page.locator("a[href$='/console/close']").click();
		await owner.page.waitForSelector("#confirm");
		const name = await owner.page.locator("form[action$='/console/close'] bdi, form[action$='/console/close'] strong").first().innerText();
		await owner.look("console-close");
		await owner.send("/console/close", { confirm: "acme?" });
		await owner.page.waitForSelector("#confirm[aria-invalid=true]");
		await owner.look("console-close-refused");
		await owner.send("/console/close", { confirm: name });
		await owner.page.waitForSelector(".ending");
		await owner.look("console-closed");
		await owner.signIn("owner@acme.example", password);
		await owner.at("/closing");
		await owner.send("/closing/restore");
		await owner.at("/account");
		await owner.go("/console");
		await owner.page.waitForSelector(".tiles");
	});

	journey("a viewer sees people and settings, and can change nothing", async () => {
		const viewer = await as("viewer");
		const forms = () => viewer.page.locator("main form[method=post]").count();
		await viewer.go("/console");
		assert.equal(await viewer.page.locator(".nav a").count(), 3);
		assert.equal(await forms(), 0);
		await viewer.look("console-overview-viewer");
		await viewer.open("/console/people");
		await viewer.page.locator(".people tbody th a", { hasText: "owner" }).click();
		await viewer.page.waitForSelector("#about-title");
		assert.equal(await forms(), 0);
		assert.equal(await viewer.page.locator("#role-title, #name-title, .tabs").count(), 0);
		await viewer.look("console-person-viewer");
		await viewer.open("/console/settings");
		await viewer.page.waitForSelector(".facts");
		assert.equal(await forms(), 0);
		await viewer.look("console-settings-viewer");
		for (const closed of ["audit", "invitations", "invitations/new", "keys", "close"]) {
			const answer = await viewer.page.goto(`/console/${closed}`);
			assert.equal(answer.status(), 403, closed);
		}
		await viewer.look("console-forbidden");
	});
});

test("a page keeps itself up to date, and no row moves under the focus", async () => {
	const server = await Server.start();
	try {
		const p = await Person.create(server.url, "desktop-light-de");
		await p.page.clock.install();
		await p.signIn("owner@acme.example", password);
		await p.go("/console/people");
		await p.page.locator("#keep").check();
		const row = p.page.locator(".people tbody tr", { hasText: "viewer@" });
		await row.locator("th a").focus();
		const id = await row.getAttribute("id");
		const session = (await p.context.cookies()).find((c) => c.name === "JSESSIONID").value;
		await server.api("PATCH", `/api/v2/users/${id}`, { name: "Vera" }, session);
		await p.page.clock.fastForward(31_000);
		await row.locator("th a", { hasText: "Vera" }).waitFor();
		assert.equal(await p.page.evaluate(() => document.activeElement.closest("tr")?.id), id, "the focus is lost");
		await p.look("console-people-live");

		// A fault doesn't stop the updates; the end of the session does.
		await p.context.setOffline(true);
		await p.page.clock.fastForward(31_000);
		await p.page.waitForFunction(() => /\d\d:\d\d/.test(document.querySelector(".keep + [role=status]").textContent));
		await p.context.setOffline(false);
		await server.api("DELETE", `/api/v2/users/${id}`, undefined, session);
		await p.page.locator("h1").click(); // the focus leaves the row, so it may go
		await p.page.clock.fastForward(61_000);
		await row.waitFor({ state: "detached" });
		assert.equal(await row.count(), 0);
		await server.api("POST", "/api/v2/auth/logout", undefined, session);
		await p.page.locator("h1").click();
		await p.page.clock.fastForward(61_000);
		await p.page.locator("[role=status]", { hasText: /abgemeldet/ }).waitFor();
		assert.equal(await p.page.locator("#keep").isChecked(), false);
	} finally {
		await server.stop();
	}
});

test("an invitation is sent again once the wait is over", async () => {
	const server = await Server.start("--invite-resend-wait", "1s");
	try {
		const p = await Person.create(server.url, "phone-light-en");
		await p.signIn("admin@acme.example", password);
		await p.go("/console/invitations/new");
		await p.send("/console/invitations/new", { people: "bea@acme.example" });
		const first = await server.code("bea@acme.example");
		await p.page.locator(".invitations tbody th a").first().click();
		await p.page.waitForSelector("form[action$='/resend']");
		await until("a second mail", async () => {
			await p.send("/resend");
			await p.page.locator(".notice").first().waitFor();
			return await p.page.locator(".notice.good").count() > 0;
		});
		await p.look("console-invitation-resent");
		const second = await server.code("bea@acme.example", first);
		const invited = await Person.create(server.url, "phone-light-en");
		await invited.go(`/accept#token=${first}`);
		await invited.page.waitForSelector(".ending");
		await invited.go(`/accept#token=${second}`);
		await invited.page.waitForSelector("form[action$='/accept/register']");
	} finally {
		await server.stop();
	}
});

test("two session cookies lead to one login, not from page to page", async () => {
	const server = await Server.start();
	try {
		const p = await Person.create(server.url, "desktop-dark-en");
		await p.signIn("owner@acme.example", password);
		await p.at("/account");
		await p.context.addCookies([{ name: "JSESSIONID", value: "A".repeat(43), domain: "localhost", path: "/console", httpOnly: true }]);
		await p.go("/console/people");
		await p.at("/login");
		await p.look("login-several");
		assert.deepEqual((await p.context.cookies()).filter((c) => c.name === "JSESSIONID"), []);
		await p.send("/login", { email: "owner@acme.example", password });
		await p.at("/console/people");
	} finally {
		await server.stop();
	}
});

test("a fault of the server is a page that says so, and ends no session", async () => {
	const server = await Server.start();
	try {
		const p = await Person.create(server.url, "phone-dark-de");
		await p.signIn("owner@acme.example", password);
		await p.at("/account");
		const repair = await server.breakDatabase();
		const answer = await p.page.goto("/console/people");
		assert.equal(answer.status(), 503);
		assert.ok(answer.headers()["retry-after"]);
		await p.look("unavailable");
		await repair();
		await p.go("/console/people");
		await p.page.waitForSelector(".people");
	} finally {
		await server.stop();
	}
});

test("the console without JavaScript", async () => {
	const server = await Server.start();
	try {
		const p = await Person.create(server.url, "phone-light-en", { javaScriptEnabled: false });
		await p.signIn("owner@acme.example", password);
		await p.go("/console");
		await p.page.locator(".opener").focus();
		await p.page.keyboard.press("Enter");
		for (const name of ["Search …", "Overview", "People", "Invitations"]) {
			await p.page.keyboard.press("Tab");
			assert.equal((await p.page.locator(":focus").innerText()).replace("\u00a0", " "), name, "the keyboard reaches the menu");
		}
		await p.page.keyboard.press("Escape");
		await p.open("/console/people");
		await p.send("/console/people", { q: "user@" });
		await p.page.locator(".people tbody th a").click();
		await p.send("/name", { name: "Uma" });
		await p.says("h1", /Uma/);
		await p.page.locator("main a[href*='/role']").click();
		await p.page.locator("[name=role][value=VIEWER]").check();
		await p.send("/role");
		await p.page.locator(".notice.good").waitFor();
		await p.page.locator("a[href*='/suspend']").click();
		await p.send("/suspend");
		await p.page.locator(".tag.alarm").waitFor();
		await p.go("/console/invitations/new");
		await p.send("/console/invitations/new", { people: "bea@acme.example\ncem@acme.example" });
		await p.page.locator(".invitations tbody th a").first().click();
		await p.send("/revoke");
		await p.page.locator(".notice.good").waitFor();
		await p.go("/console/keys/new");
		await p.page.locator("[name=permissions]").first().check();
		await p.send("/console/keys/new", { name: "Shop" });
		assert.match(await p.page.locator("#secret").innerText(), /^dwk_/);
		assert.equal(await p.page.locator("#secret + button").count(), 0);
		await p.go("/console/roles/new");
		await p.page.locator("[value='user.read']").check();
		await p.send("/console/roles/new", { roleName: "DESK" });
		await p.page.locator(".acts a[href$='/edit']").click();
		await p.send("/edit", { roleName: "READER" });
		await p.send("/save");
		await p.says("h1", /READER/);
		await p.page.locator("a[href$='/delete']").click();
		await p.send("/delete");
		await p.page.locator(".notice.good").waitFor();
		await p.go("/console/audit?action=session.open");
		await p.page.locator(".events a.opens").first().click();
		await p.page.locator("#event").waitFor();
		await p.go("/console/policy");
		await p.page.locator("[name=example][value=network]").click();
		await p.page.waitForURL(/example/);
		await p.send("/console/policy", { confirmMinutes: "10" });
		await p.send("/console/policy/confirm");
		await p.page.locator(".notice.good").waitFor();
		await p.go("/console/policy/versions/1");
		await p.page.locator("ins").first().waitFor();
		await p.go("/console/policy");
		await p.send("/console/policy", { text: "" });
		await p.page.locator(".notice.good").waitFor();
		await p.go("/console/settings");
		await p.send("/console/settings", { name: "Acme & Co" });
		await p.says("header .brand", /Acme & Co/);
		await p.go("/console/close");
		await p.send("/console/close", { confirm: "Acme & Co" });
		await p.page.locator(".ending").waitFor();
		p.quiet("the console without JavaScript");
	} finally {
		await server.stop();
	}
});
