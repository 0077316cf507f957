// Colour and logo: of a tenant, given in the console, seen by people who are invited;
// and of the installation.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { crc32, deflateSync } from "node:zlib";
import { Person, Server, onScreens, password, walked } from "./harness.mjs";

/** drawing is a PNG of what paint returns for each place: red, green, blue and how far they cover, 0 to 255, or nothing. */
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

/** A disc and bars as high as letters, in near black: it can't be seen on a dark page. */
const wordmark = drawing(720, 160, (x, y) => {
	if (Math.hypot(x - 80, y - 80) < 72) return [214, 58, 47, 255];
	return x > 190 && x < 690 && y > 40 && y < 120 && (x - 190) % 88 < 58 ? [24, 26, 34, 255] : null;
});

/** A square sign, so that the name stands beside it. */
const mark = drawing(96, 96, (x, y) => (Math.hypot(x - 48, y - 48) < 46 && Math.hypot(x - 48, y - 48) > 20 ? [20, 130, 110, 255] : null));

const file = (name, mimeType, buffer) => ({ name, mimeType, buffer });

const logo = (p) => p.page.locator("header img.logo");
/** seen wants the header to have a logo that the browser could show. */
async function seen(p) {
	assert.equal(await logo(p).count(), 1);
	await logo(p).evaluate((image) => image.decode());
	assert.ok(await logo(p).evaluate((image) => image.naturalWidth > 0 && image.clientHeight > 8));
}

onScreens("brand", walked, ({ screen, server, create }) => {
	test("a tenant's colour and logo", async () => {
		// Half of the screens run without scripts.
		const scripts = screen.includes("-dark-");
		const options = { javaScriptEnabled: scripts };
		const look = async (p, name) => { if (scripts) await p.look(name); else p.quiet(name); };
		const owner = await create(options);
		await owner.signIn("owner@acme.example", password);
		await owner.go("/console/settings");
		assert.equal(await logo(owner).count(), 0);
		await owner.send("/settings/accent", { accent: "yellow" });
		await owner.page.waitForSelector("#accent[aria-invalid=true]");
		await look(owner, "brand-accent-refused");
		if (scripts) {
			await owner.page.locator("#picked").fill("#d63a2f");
			assert.equal(await owner.page.locator("#accent").inputValue(), "#d63a2f", "the picker doesn't fill the field");
		}
		await owner.send("/settings/accent", scripts ? {} : { accent: "", picked: "#d63a2f" });
		await owner.page.waitForSelector(".notice.good");
		assert.equal(await owner.page.locator("#accent").inputValue(), "#d63a2f");

		const choose = (chosen) => owner.page.locator("#logo").setInputFiles(chosen);
		await choose(file("logo.svg", "image/svg+xml", Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>")));
		await owner.send("/settings/logo");
		await owner.page.waitForSelector("#logo[aria-invalid=true]");
		await owner.says("#logo-fault", /SVG/);
		await look(owner, "brand-logo-refused");
		await choose(file("photo.png", "image/png", Buffer.alloc(3 << 20)));
		if (scripts) {
			assert.match(await owner.page.locator("#logo").evaluate((input) => input.validationMessage), /256 KiB/);
		} else {
			await owner.send("/settings/logo");
			await owner.says("#logo-fault", /256 KiB/);
		}
		await choose(file("logo.png", "image/png", wordmark));
		await owner.send("/settings/logo");
		await owner.page.waitForSelector(".notice.good");
		await seen(owner);
		await look(owner, "brand-settings");
		await owner.go("/console");
		await look(owner, "brand-console");

		await owner.go("/console/invitations/new");
		await owner.send("/console/invitations/new", { people: "zoe@acme.example" });
		const code = await server.code("zoe@acme.example");
		const zoe = await create(options);
		if (scripts) {
			await zoe.go(`/accept#token=${code}`);
		} else {
			await zoe.go("/accept");
			await zoe.send("/accept", { token: code });
		}
		await zoe.page.waitForSelector("form[action$='/accept/register']");
		await seen(zoe);
		assert.equal(await logo(zoe).getAttribute("alt"), "Acme");
		await look(zoe, "brand-accept");
		await zoe.go("/login");
		assert.equal(await logo(zoe).count(), 0, "a login is no tenant's");

		await owner.go("/account");
		await seen(owner);
		await look(owner, "brand-account");
		await owner.go("/console/settings");
		await owner.send("/settings/logo/remove");
		await owner.page.waitForSelector(".notice.good");
		assert.equal(await logo(owner).count(), 0);
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

	test("is on the login and in the console", async () => {
		for (const screen of ["phone-light-en", "desktop-dark-en"]) {
			const p = await Person.create(server.url, screen);
			people.push(p);
			await p.go("/login");
			await seen(p);
			await p.says("header .brand", /Initech/);
			await p.look("brand-installation-login");
			await p.signIn("owner@acme.example", password);
			await p.go("/console");
			await seen(p);
			await p.says(".where", /Acme/);
			await p.look("brand-installation-console");
		}
	});
});
