// Rates pages with Lighthouse and fails below LEAST:
//
//	node rate.mjs ADDRESS PASSWORD REPORTS OPERATORLINK
//
// Each page is opened on a phone, without a session, as the OWNER of "doorward dev" or as the
// operator. Pages that answer a form are rated without performance. ONLY is a regular expression
// for the names of the pages to rate, and CATEGORIES a list of what to rate.

import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { launch } from "chrome-launcher";
import lighthouse, { snapshot } from "lighthouse";
import puppeteer from "puppeteer-core";

const least = Number(process.env.LEAST ?? 95);
const [, , address, password, reports, operatorLink] = process.argv;
const only = new RegExp(process.env.ONLY ?? "");
const categories = (process.env.CATEGORIES ?? "performance,accessibility,best-practices,seo").split(",");

const publicPages = [
	"/", "/login", "/forgot", "/accept", "/reset", "/dev/mail", "/docs", "/docs/tutorial", "/docs/configuration", "/docs/search?q=invite+person",
	"/docs/api", "/docs/api/invitations", "/docs/api/objects", "/problems", "/problems/forbidden", "/operator", "/confirm-email", "/undo-email", "/factors/reset",
];
const ownerPages = [
	"/account", "/account/security", "/account/erase", "/step-up", "/console", "/console/people", "/console/people/ID", "/console/people/ID/suspend",
	"/console/people/ID/reset-factors", "/console/people/ID/remove", "/console/invitations", "/console/invitations/new", "/console/roles", "/console/roles/new",
	"/console/roles/rol_admin", "/console/policy", "/console/policy/versions", "/console/explain", "/console/find", "/console/keys", "/console/keys/new",
	"/console/webhooks", "/console/webhooks/new", "/console/audit", "/console/settings", "/console/close",
];

const json = { "content-type": "application/json" };
const cookieIn = (answer, name) => answer.headers.getSetCookie().find((cookie) => cookie.startsWith(name)).split(";")[0];

/** session signs the owner in and returns the cookie. */
async function session() {
	const body = JSON.stringify({ email: "owner@acme.example", password });
	return cookieIn(await fetch(`${address}/api/v2/auth/login`, { method: "POST", headers: json, body }), "JSESSIONID=");
}

/** viewer returns the id of a person whom the owner may change. */
async function viewer(headers) {
	const { items } = await (await fetch(`${address}/api/v2/users?q=viewer`, { headers })).json();
	return items[0].id;
}

/** operator uses the link, which works once, and returns the cookie of the page. */
async function operator() {
	const body = new URLSearchParams(new URL(operatorLink).hash.slice(1));
	return cookieIn(await fetch(`${address}/operator/open`, { method: "POST", redirect: "manual", headers: { Origin: address }, body }), "doorward_operator");
}

const chrome = await launch({
	chromePath: process.env.CHROMIUM, chromeFlags: ["--headless", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])], logLevel: "error",
});
await mkdir(reports, { recursive: true });
let failed = 0;

/** report prints the scores of a page, and for each that is too low the audits that lower it. It writes Lighthouse's result to a file. */
async function report(name, lhr, isIndexed) {
	// Only the documentation and the pages of problems may be indexed by search engines.
	const skipped = isIndexed ? [] : ["seo"];
	const scores = Object.values(lhr.categories).filter(({ id, score }) => score !== null && !skipped.includes(id)).map(({ id, score }) => [id, Math.round(score * 100)]);
	const low = scores.filter(([, score]) => score < least);
	failed += low.length;
	console.log(`${name}: ${scores.map(([id, score]) => `${id} ${score}`).join(", ")}${low.length ? " TOO LOW" : ""}`);
	for (const [id] of low) {
		for (const { id: audit } of lhr.categories[id].auditRefs.filter(({ weight }) => weight > 0)) {
			const { score, title, displayValue = "" } = lhr.audits[audit];
			if (score !== null && score < 0.9) console.log(`    ${audit}: ${title} ${displayValue}`);
		}
	}
	await writeFile(path.join(reports, `${name.replace(/\W+/g, "-")}.json`), JSON.stringify(lhr));
}

async function rate(where, headers, name = where) {
	if (!only.test(name)) return;
	const { status } = await fetch(address + where, { headers, redirect: "manual" });
	if (status !== 200) {
		console.log(`${where}: ${status}, so it isn't rated`);
		failed++;
		return;
	}
	const { lhr } = await lighthouse(address + where, {
		port: chrome.port, logLevel: "error", output: "json", extraHeaders: headers, onlyCategories: categories, disableStorageReset: true,
	});
	await report(name, lhr, /^\/(docs|problems)/.test(where));
}

/** rateAnswers rates pages that answer a form: the confirmation of a bulk action, its outcomes, the preview of invitations. */
async function rateAnswers(headers) {
	const browser = await puppeteer.connect({ browserURL: `http://127.0.0.1:${chrome.port}`, defaultViewport: { width: 412, height: 823, isMobile: true, hasTouch: true } });
	const page = await browser.newPage();
	await page.setExtraHTTPHeaders(headers);
	const send = (selector) => Promise.all([page.waitForNavigation(), page.click(selector)]);
	const rateAs = async (name) => {
		if (!only.test(name)) return;
		const { lhr } = await snapshot(page, { flags: { logLevel: "error", onlyCategories: categories.filter((one) => one !== "performance") } });
		await report(name, lhr, false);
	};
	await page.goto(`${address}/console/people?q=viewer`);
	await page.click("tbody input[name=id]");
	await page.select("#act", "suspend");
	await send("#chosen [type=submit]");
	await rateAs("/console/people/chosen");
	await send("form[action$='/chosen/do'] [type=submit]");
	await rateAs("/console/people/chosen/do");
	await send("form[action$='/chosen/do'] [type=submit]"); // Undo
	await page.goto(`${address}/console/invitations/new`);
	await page.type("#people", "Ann <ann@acme.example>\nno address");
	await send("[formaction$='/preview']");
	await rateAs("/console/invitations/preview");
	await browser.disconnect();
}

try {
	for (const where of publicPages) await rate(where);
	const headers = { Cookie: await session() };
	const id = await viewer(headers);
	for (const where of ownerPages) await rate(where.replace("ID", id), headers, where);
	await rateAnswers(headers);
	await rate("/operator", { Cookie: await operator() }, "/operator opened");
} finally {
	await chrome.kill();
}
process.exitCode = failed ? 1 : 0;
