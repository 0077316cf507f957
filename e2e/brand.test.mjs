// Colour and logo: those of a tenant, set in the console and shown to invited people; and those
// of the installation.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { crc32, deflateSync } from "node:zlib";
import { Person, Server, everyScreen, first, onScreens, password } from "./harness.mjs";

/** drawing returns a PNG. For each pixel paint returns red, green, blue and alpha, 0 to 255, or null if it is transparent. */
function drawing(width, height, paint) {
	const line = 1 + 4 * width;
	const rows = Buffer.alloc(height * line);
	for (let y = 0; y < height; y++) {
		for (let x = 0; x < width; x++) rows.set(paint(x, y) ?? [0, 0, 0, 0], y * line + 1 + 4 * x);
	}
	const number = (n) => { const four = Buffer.alloc(4); four.writeUInt32BE(n); return four; };
	const chunk = (kind, data) => {
		const body = Buffer.concat([Buffer.from(kind), data]);
		return Buffer.concat([number(data.length), body, number(crc32(body))]);
	};
	const head = Buffer.concat([number(width), number(height), Buffer.from([8, 6, 0, 0, 0])]);
	const sign = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
	return Buffer.concat([sign, chunk("IHDR", head), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

/** A disc, and bars in the place of letters. The bars are almost black, so they can't be seen on a dark page. */
const wordmark = drawing(720, 160, (x, y) => {
	if (Math.hypot(x - 80, y - 80) < 72) return [214, 58, 47, 255];
	return x > 190 && x < 690 && y > 40 && y < 120 && (x - 190) % 88 < 58 ? [24, 26, 34, 255] : null;
});

/** A square sign, beside which the name is shown. */
const mark = drawing(96, 96, (x, y) => (Math.hypot(x - 48, y - 48) < 46 && Math.hypot(x - 48, y - 48) > 20 ? [20, 130, 110, 255] : null));

const file = (name, mimeType, buffer) => ({ name, mimeType, buffer });

const logo = (p) => p.page.locator("header img.logo");
/** assertLogo checks that the header has a logo that the browser can show. */
async function assertLogo(p) {
	assert.equal(await logo(p).count(), 1);
	await logo(p).evaluate((image) => image.decode());
	assert.ok(await logo(p).evaluate((image) => image.naturalWidth > 0 && image.clientHeight > 8));
}

const photo = file("photo.png", "image/png", Buffer.alloc(3 << 20)); // larger than a logo may be

const choose = (p, chosen) => p.page.locator("#logo").setInputFiles(chosen);

/** submit sends a form of the settings and waits for its success. */
async function submit(p, action, fields) {
	await p.send(action, fields);
	await p.page.waitForSelector(".notice.good");
}

onScreens("brand", everyScreen, ({ server, create, journey }) => {
	/** settings signs the owner in and opens the settings. */
	const settings = async (options) => {
		const owner = await create(options);
		await owner.openSession("owner@acme.example");
		await owner.go("/console/settings?tab=appearance");
		assert.equal(await logo(owner).count(), 0);
		return owner;
	};

	/** invite has the owner invite a person, and returns the code of the invitation. */
	const invite = async (owner, people) => {
		await owner.go("/console/invitations/new");
		await owner.send("/console/invitations/new", { people });
		return server.code(people);
	};

	/** assertInvitationLogo checks that the page of the invitation has the tenant's logo. */
	const assertInvitationLogo = async (invited) => {
		await invited.page.waitForSelector("form[action$='/accept/register']");
		await assertLogo(invited);
		assert.equal(await logo(invited).getAttribute("alt"), "Acme");
	};

	const remove = async (owner) => {
		await owner.go("/console/settings?tab=appearance");
		await submit(owner, "/settings/logo/remove");
		assert.equal(await logo(owner).count(), 0);
	};

	journey("a tenant's colour and logo without scripts", async () => {
		const owner = await settings({ javaScriptEnabled: false });
		await submit(owner, "/settings/accent", { accent: "", picked: "#d63a2f" });
		assert.equal(await owner.page.locator("#accent").inputValue(), "#d63a2f");
		await choose(owner, photo);
		await owner.send("/settings/logo");
		await owner.says("#logo-fault", /256 KiB/);
		await choose(owner, file("logo.png", "image/png", wordmark));
		await submit(owner, "/settings/logo");
		await assertLogo(owner);

		const code = await invite(owner, "yan@acme.example");
		const yan = await create({ javaScriptEnabled: false });
		await yan.go("/accept");
		await yan.send("/accept", { token: code });
		await assertInvitationLogo(yan);
		await remove(owner);
		for (const one of [owner, yan]) one.quiet("brand without scripts");
	});

	journey("a tenant's colour and logo", async () => {
		const owner = await settings();
		await owner.send("/settings/accent", { accent: "yellow" });
		await owner.page.waitForSelector("#accent[aria-invalid=true]");
		await owner.look("brand-accent-refused");
		await owner.page.locator("#picked").fill("#d63a2f");
		assert.equal(await owner.page.locator("#accent").inputValue(), "#d63a2f", "the picker doesn't fill the field");
		await submit(owner, "/settings/accent");
		assert.equal(await owner.page.locator("#accent").inputValue(), "#d63a2f");

		await choose(owner, file("logo.svg", "image/svg+xml", Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>")));
		await owner.send("/settings/logo");
		await owner.page.waitForSelector("#logo[aria-invalid=true]");
		await owner.says("#logo-fault", /SVG/);
		await owner.look("brand-logo-refused");
		await choose(owner, photo);
		assert.match(await owner.page.locator("#logo").evaluate((input) => input.validationMessage), /256 KiB/);
		await choose(owner, file("logo.png", "image/png", wordmark));
		await submit(owner, "/settings/logo");
		await assertLogo(owner);
		await owner.look("brand-settings");
		await owner.go("/console");
		await owner.look("brand-console");

		const code = await invite(owner, "zoe@acme.example");
		const zoe = await create();
		await zoe.go(`/accept#token=${code}`);
		await assertInvitationLogo(zoe);
		await zoe.look("brand-accept");
		await zoe.go("/login");
		assert.equal(await logo(zoe).count(), 0, "the login page has a tenant's logo");

		await owner.go("/account");
		await assertLogo(owner);
		await owner.look("brand-account");
		await remove(owner);
	});
});

describe("the installation's logo", () => {
	let folder, server;
	const people = [];
	before(async () => {
		folder = await mkdtemp(path.join(tmpdir(), "doorward-logo-"));
		await writeFile(path.join(folder, "mark.png"), mark);
		server = await Server.start("--brand-name", "Initech", "--brand-logo", path.join(folder, "mark.png"));
	});
	after(async () => {
		await server.stop();
		await rm(folder, { recursive: true });
	});
	afterEach(async () => {
		for (const one of people.splice(0)) await one.context.close();
	});

	test("is on the login, and no tenant's", async () => {
		for (const screen of first(["phone-light-en", "desktop-dark-en"])) {
			const p = await Person.create(server.url, screen);
			people.push(p);
			await p.go("/login");
			await p.onBoth(() => assertLogo(p));
			await p.says("header .brand", /Initech/);
			await p.look("brand-installation-login");
			await p.signIn("owner@acme.example", password);
			await p.go("/console");
			await p.onBoth(async () => {
				assert.equal(await logo(p).count(), 0);
				assert.equal(await p.page.locator("header .brand .monogram").textContent(), "A");
			});
			await p.says("header .brand", /Acme/);
			await p.look("brand-installation-console");
		}
	});
});
