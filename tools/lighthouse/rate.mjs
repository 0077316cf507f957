// Rates pages with Lighthouse and fails below LEAST: node rate.mjs ADDRESS PASSWORD REPORTS
// Each page is opened by a stranger or by the OWNER of "doorward dev", on a phone.

import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { launch } from "chrome-launcher";
import lighthouse from "lighthouse";

const least = Number(process.env.LEAST ?? 95);
const [, , address, password, reports] = process.argv;

const open = [
	"/", "/login", "/forgot", "/accept", "/reset", "/dev/mail", "/docs", "/docs/tutorial", "/docs/configuration", "/docs/search?q=invite+person",
	"/docs/api", "/docs/api/invitations", "/docs/api/objects", "/problems", "/problems/forbidden",
];
const signedIn = [
	"/account", "/account/security", "/console", "/console/people", "/console/invitations", "/console/audit", "/console/settings",
	"/console/roles", "/console/keys", "/console/policy", "/console/webhooks",
];

async function session() {
	const answer = await fetch(`${address}/api/v2/auth/login`, {
		method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ email: "owner@acme.example", password }),
	});
	return answer.headers.getSetCookie().find((cookie) => cookie.startsWith("JSESSIONID=")).split(";")[0];
}

const chrome = await launch({
	chromePath: process.env.CHROMIUM, chromeFlags: ["--headless", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])], logLevel: "error",
});
await mkdir(reports, { recursive: true });
let failed = 0;

async function rate(where, headers) {
	const { status } = await fetch(address + where, { headers, redirect: "manual" });
	if (status !== 200) {
		console.log(`${where}: ${status}, so it isn't rated`);
		failed++;
		return;
	}
	const { lhr } = await lighthouse(address + where, {
		port: chrome.port, logLevel: "error", output: "json", extraHeaders: headers,
		onlyCategories: ["performance", "accessibility", "best-practices", "seo"], disableStorageReset: true,
	});
	// All but the documentation tells search engines to stay away.
	const skipped = /^\/(docs|problems)/.test(where) ? [] : ["seo"];
	const scores = Object.values(lhr.categories).filter(({ id }) => !skipped.includes(id)).map(({ id, score }) => [id, Math.round(score * 100)]);
	const low = scores.filter(([, score]) => score < least);
	failed += low.length;
	console.log(`${where}: ${scores.map(([id, score]) => `${id} ${score}`).join(", ")}${low.length ? " TOO LOW" : ""}`);
	for (const [id] of low) {
		for (const { id: audit } of lhr.categories[id].auditRefs.filter(({ weight }) => weight > 0)) {
			const { score, title, displayValue = "" } = lhr.audits[audit];
			if (score !== null && score < 0.9) console.log(`    ${audit}: ${title} ${displayValue}`);
		}
	}
	await writeFile(path.join(reports, `${where.replace(/\W+/g, "-")}.json`), JSON.stringify(lhr));
}

try {
	for (const where of open) await rate(where);
	const headers = { Cookie: await session() };
	for (const where of signedIn) await rate(where, headers);
} finally {
	await chrome.kill();
}
process.exitCode = failed ? 1 : 0;
