// Second factors in the browser: set up by the QR code, used at the login, lost, demanded by a
// tenant, reset by an administrator.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { chosen, everyScreen, onScreens, password } from "./harness.mjs";

/** Phone is an authenticator app (RFC 6238) that scans the QR code on the page. */
class Phone {
	static async scan(p) {
		const folder = await mkdtemp(path.join(tmpdir(), "doorward-qr-"));
		const file = path.join(folder, "qr.png");
		await p.page.locator(".qr svg").screenshot({ path: file });
		const address = execFileSync("zbarimg", ["--quiet", "--raw", file], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
		await rm(folder, { recursive: true });
		assert.equal(address, await p.page.locator("a[href^='otpauth:']").getAttribute("href"), "the QR code and the link differ");
		const phone = new Phone();
		phone.secret = new URL(address).searchParams.get("secret");
		assert.equal(phone.secret, (await p.page.locator("code.secret").innerText()).replaceAll(/\s/g, ""), "the QR code and the text differ");
		phone.last = 0;
		return phone;
	}

	/** enter types a code into the form of the action, and a newer one if that took so long that
	 * the first has expired. The server accepts the codes of three time steps, each once: so there
	 * are three codes without waiting for the next step. It ticks the box, too. */
	async enter(p, action, box) {
		const now = () => Math.floor(Date.now() / 30_000);
		do {
			this.last = Math.max(this.last + 1, now() - 1);
			assert.ok(this.last <= now() + 1, "no code is left in this time step");
			if (box) await p.page.locator(box).check();
			await p.send(action, { code: totp(this.secret, this.last) });
		} while (this.last < now() - 1 && await p.page.locator(`form[action$="${action}"] [name=code]`).count() > 0);
	}
}

function totp(secret, step) {
	let bits = "";
	for (const letter of secret) bits += "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0");
	const key = Buffer.from(bits.match(/.{8}/g).map((byte) => Number.parseInt(byte, 2)));
	const counter = Buffer.alloc(8);
	counter.writeBigUInt64BE(BigInt(step));
	const mac = createHmac("sha1", key).update(counter).digest();
	return String((mac.readUInt32BE(mac.at(-1) & 15) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}

onScreens("second factors", everyScreen, ({ server, create, journey }) => {
	const signOut = async (p) => {
		await p.go("/account");
		await p.send("/logout");
		await p.at("/login");
	};

	/** setUp sets an app up from the page that begins it, and returns it with the codes. */
	const setUp = async (p, begin, confirm, name) => {
		await p.send(begin);
		await p.look(`${name}-totp`);
		const phone = await Phone.scan(p);
		await p.send(confirm, { code: "000000" });
		await p.look(`${name}-totp-refused`);
		await phone.enter(p, confirm);
		await p.look(`${name}-codes`);
		const codes = await p.page.locator(".codes code").allInnerTexts();
		assert.equal(new Set(codes).size, 10);
		return { phone, codes };
	};

	journey("an app, recovery codes, a remembered browser, a proof again", async () => {
		const { token } = await server.api("POST", "/api/v2/auth/login", { email: "owner@acme.example", password });
		await server.api("PATCH", "/api/v2/tenant", { settings: { mfaRememberDays: 7 } }, token);
		const p = await create();
		await p.signIn("user@acme.example", password);
		await p.go("/account/security");
		await p.look("security-none");
		const { phone, codes } = await setUp(p, "/account/security/totp", "/account/security/totp/confirm", "security");

		const [download] = await Promise.all([p.page.waitForEvent("download"), p.page.locator("form[action$='/recovery-codes.txt'] button").click()]);
		assert.equal(await readFile(await download.path(), "utf8"), `${codes.join("\n")}\n`);
		await p.page.emulateMedia({ media: "print" });
		assert.ok(await p.page.locator(".codes").isVisible(), "the codes are not printed");
		await p.page.emulateMedia({ media: "screen" });
		await p.go("/account/security");
		await p.look("security");
		assert.equal(await p.page.getByText(codes[0]).count(), 0, "the codes are shown again");
		await p.says("#recovery", /10/);

		await signOut(p);
		await p.send("/login", { email: "user@acme.example", password });
		await p.at("/login/second");
		await p.look("second");
		await p.send("/login/second", { code: "000000" });
		await p.look("second-refused");
		await phone.enter(p, "/login/second", "[name=remember]");
		await p.at("/account");

		await signOut(p);
		await p.send("/login", { email: "user@acme.example", password });
		await p.at("/account");
		await p.go("/account/security");
		assert.equal(await p.page.locator("#browsers li").count(), 1);
		await p.look("security-remembered");
		await p.go("/account?tab=sessions");
		assert.ok(await p.page.locator("#recent li").count() >= 4, "events are missing");
		await p.go("/account/security");
		// A remembered browser replaces the factor at a login, but never for a step-up.
		await p.send("/account/security/totp");
		await p.page.waitForSelector("a[href*='/step-up']"); // in a new tab, so that nothing typed is lost
		await p.look("security-unproved");
		for (const [link, name] of [["/recovery", "newcodes-unproved"], ["/remove/", "factorremove-unproved"]]) {
			await p.go("/account/security");
			await p.page.locator(`a[href*='/account/security${link}']`).first().click();
			await p.page.waitForSelector("a[href*='/step-up?return=']");
			assert.equal(await p.page.locator(`form[action*='/account/security${link}']`).count(), 0, "there is a button before the proof");
			await p.look(name);
		}
		await p.go("/account/erase");
		await p.page.waitForSelector("a[href*='/step-up?return=']");
		await p.look("erase-unproved");
		await p.go("/account/security");
		assert.equal(await p.page.locator("#password form").count(), 0, "there is a form for the password before the proof");
		await p.page.locator("#password a[href*='/step-up?return=']").click();
		await p.at("/step-up");
		await p.look("step-up");
		await p.send("/step-up", { code: "000000" });
		await p.look("step-up-refused");
		await phone.enter(p, "/step-up");
		await p.at("/account/security");
		assert.ok(p.page.url().endsWith("#password"), "the proof doesn't lead back to the password");
		for (const [link, name] of [["/recovery", "newcodes"], ["/remove/", "factorremove"]]) {
			await p.go("/account/security");
			await p.page.locator(`a[href*='/account/security${link}']`).first().click();
			await p.page.waitForSelector(`form[action*='/account/security${link}']`);
			await p.look(name);
			await p.page.locator(".card form a.button").click();
			await p.at("/account/security");
		}
		await p.go("/account/security");
		await p.send("/account/security/browsers/forget");
		assert.equal(await p.page.locator("#browsers li").count(), 0);
		await p.look("security-forgotten");
		await p.go("/account/security?change=password");
		await p.send("/account/password", { currentPassword: password, password: chosen, confirmPassword: chosen });
		await p.page.waitForSelector("[role=status]");

		await signOut(p);
		await p.send("/login", { email: "user@acme.example", password: chosen });
		await p.at("/login/second");
		await p.page.locator("a[href*='with=recovery']").click();
		await p.page.waitForSelector("[name=recoveryCode]");
		await p.look("second-recovery");
		await p.send("/login/second", { recoveryCode: codes[0].toLowerCase() });
		await p.at("/account");
		await p.go("/account/security");
		await p.says("#recovery", /9/);
		await p.go("/account/erase");
		await p.look("erase");
		await signOut(p);
		await p.send("/login", { email: "user@acme.example", password: chosen });
		await p.page.locator("a[href*='with=recovery']").click();
		await p.send("/login/second", { recoveryCode: codes[0] });
		await p.page.waitForSelector("[role=alert]"); // each works only once

		await p.send("/login/second", { recoveryCode: codes[1] });
		await p.at("/account");
		await p.go("/account/erase");
		await p.send("/account/erase", { confirm: "viewer@acme.example" });
		await p.page.waitForSelector("[role=alert]");
		await p.look("erase-refused");
		await p.send("/account/erase", { confirm: "user@acme.example" });
		await p.at("/login");
		await p.page.waitForSelector("[role=status]");
		await p.look("erased");
		await p.send("/login", { email: "user@acme.example", password: chosen });
		await p.page.waitForSelector("[role=alert]");
	});

	journey("demanded, set up at the login, reset by an administrator", async () => {
		const owner = await create();
		await owner.signIn("owner@acme.example", password);
		await owner.go("/console/people?factor=none");
		assert.ok(await owner.page.locator("table .tag").count() > 0, "nobody is marked");
		await owner.look("console-people-factor");
		await owner.go("/console/settings?tab=factors");
		await owner.page.locator("[name=mfa]").check();
		await owner.page.locator("[name=mfaRoles][value=VIEWER]").check();
		await owner.send("/console/settings", { mfaGraceDays: "0" });
		await owner.page.waitForSelector("form [name=confirmed]", { state: "attached" });
		await owner.page.locator("summary").click();
		assert.equal(await owner.page.getByText("viewer@acme.example").count(), 1);
		await owner.look("console-demand");
		await owner.page.locator("form:has([name=confirmed]) [type=submit]").click();
		await owner.page.waitForSelector("[role=status]");

		const viewer = await create();
		await viewer.signIn("viewer@acme.example", password);
		await viewer.at("/login/enrol");
		await viewer.look("enrol");
		await setUp(viewer, "/login/enrol", "/login/enrol/confirm", "enrol");
		await viewer.page.locator("p.after a.button").click();
		await viewer.at("/account");

		await owner.go("/console/people?q=viewer@");
		await owner.page.locator("tbody th a").first().click();
		await owner.tab("security");
		await owner.page.locator("a[href*='/reset-factors']").click();
		await owner.page.waitForSelector(".consequences");
		await owner.look("console-reset-factors");
		await owner.page.locator("form[action$='/reset-factors'] [type=submit]").click();
		await owner.page.waitForSelector("[role=status]");
		await viewer.go("/account");
		await viewer.at("/login"); // the sessions have ended

		const code = await server.code("viewer@acme.example");
		await viewer.go(`/factors/reset#token=${code}`);
		await viewer.page.waitForSelector("form[action$='/factors/reset/confirm']");
		await viewer.look("factors-reset");
		await viewer.send("/factors/reset/confirm", { password });
		await viewer.at("/login");
		await viewer.send("/login", { email: "viewer@acme.example", password });
		await viewer.at("/login/enrol");
	});
});
