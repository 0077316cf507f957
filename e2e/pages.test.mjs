// Every page and state of a page that the Go tests render (TestPagesRender, with -render), in a
// real Chromium: axe, contrast, widths, and the console.

import { readFile, readdir } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { Viewer, everyScreen, full, screens } from "./browser.mjs";

const folder = path.resolve(import.meta.dirname, "../artifacts/pages");
const types = { html: "text/html; charset=utf-8", css: "text/css", js: "text/javascript", svg: "image/svg+xml", png: "image/png" };

/** site serves the files. The rendered pages need scripts, which browsers don't load from disk. */
const site = createServer(async ({ url }, response) => {
	const file = path.join(folder, new URL(url, "http://site").pathname);
	try {
		const body = await readFile(file);
		response.writeHead(200, { "Content-Type": types[file.split(".").pop()], "Content-Security-Policy": "default-src 'self'; base-uri 'none'" });
		response.end(body);
	} catch {
		response.writeHead(404).end();
	}
});
before(() => new Promise((done) => { site.listen(0, "localhost", done); }));
after(() => { site.close(); site.closeAllConnections(); });

/** unfold opens what can be unfolded on a page, except menus, which would cover the rest. */
const unfold = () => {
	for (const fold of document.querySelectorAll("details:not(.row-menu details, .switcher)")) fold.open = true;
};

const names = [];
for (const protocol of (await readdir(folder)).sort()) {
	for (const file of (await readdir(path.join(folder, protocol))).sort()) {
		const name = file.match(/^en-(.*)\.html$/)?.[1];
		if (name) names.push([protocol, name]);
	}
}

describe("rendered pages", { concurrency: 2 }, () => {
	for (const [turn, screen] of everyScreen.entries()) {
		describe(screen, { concurrency: 1 }, () => {
			const language = screens[screen].locale.slice(0, 2);
			const other = language === "en" ? "de" : "en";
			let viewer;
			before(async () => { viewer = await Viewer.create(`http://localhost:${site.address().port}`, screen); });
			after(() => viewer.context.close());
			for (const [protocol, name] of names.filter((_, i) => full || i % everyScreen.length === turn)) {
				test(`${protocol}/${name}`, async () => {
					viewer.complaints = [];
					await viewer.go(`/${protocol}/${language}-${name}.html`);
					await viewer.page.evaluate(unfold);
					await viewer.passesOnBoth(name);
					await viewer.go(`/${protocol}/${other}-${name}.html`);
					await viewer.page.evaluate(unfold);
					await viewer.fitsOnBoth(name);
					viewer.quiet(name);
				});
			}
		});
	}
});
