// Pages of another origin that may use the API, and browsers whose requests don't say where they
// come from (Sec-Fetch-Site).

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import path from "node:path";
import { after, before, test } from "node:test";
import { build } from "esbuild";
import { Person, Server, password } from "./harness.mjs";

const programs = [];

/** serve answers requests on a free port of localhost until the tests end, and returns its origin. */
async function serve(answer) {
	const server = createServer(answer).listen(0, "localhost");
	programs.push(server);
	await once(server, "listening");
	return `http://localhost:${server.address().port}`;
}

after(async () => {
	for (const program of programs.reverse()) await new Promise((done) => { program.close(done); program.closeAllConnections?.(); });
});

let app;
before(async () => {
	app = await serve((_, response) => response.setHeader("Content-Type", "text/html").end("<!doctype html><link rel=icon href=\"data:,\"><p>app"));
});

/** call sends a request to the API from the page, as an application does, and returns its answer. */
const call = (page, server, where, options = {}) => page.evaluate(async ([address, options]) => {
	const response = await fetch(address, { credentials: "include", headers: { "content-type": "application/json" }, ...options });
	return { status: response.status, id: response.headers.get("x-request-id"), body: response.status === 204 ? null : await response.json() };
}, [server.url + where, options]);

test("a page of an allowed origin signs in and out", async () => {
	const server = await Server.start("--allowed-origins", app);
	try {
		const p = await Person.create(server.url, "desktop-light-en");
		await p.page.goto(app);
		const login = { method: "POST", body: JSON.stringify({ email: "owner@acme.example", password }) };
		assert.equal((await call(p.page, server, "/api/v2/auth/login", login)).status, 200);
		const session = await call(p.page, server, "/api/v2/auth/session");
		assert.equal(session.body.user.email, "owner@acme.example");
		assert.match(session.id, /^req_/);
		assert.equal((await call(p.page, server, "/api/v2/auth/logout", { method: "POST" })).status, 204);
		assert.equal((await call(p.page, server, "/api/v2/auth/session").catch(() => ({}))).status, 401);
		await p.context.close();
	} finally {
		await server.stop();
	}
});

test("a page of another origin reads nothing", async () => {
	const server = await Server.start();
	try {
		const p = await Person.create(server.url, "desktop-light-en");
		await p.page.goto(app);
		await assert.rejects(call(p.page, server, "/api/v2/auth/session"), /Failed to fetch/);
		await p.context.close();
	} finally {
		await server.stop();
	}
});

const application = `
	import { createRoot } from "react-dom/client";
	import { DoorwardProvider, SignedIn, SignedOut, SignInLink, UserButton } from "@doorward/react";
	import "@doorward/react/style.css";
	createRoot(document.body).render(<DoorwardProvider baseUrl={new URLSearchParams(location.search).get("doorward")}>
		<SignedOut><SignInLink to={"/reports" + location.search} /></SignedOut><SignedIn><UserButton /></SignedIn>
	</DoorwardProvider>);`;

/** bundled resolves to the script and the style sheet of the application. */
async function bundled() {
	const kit = path.resolve(import.meta.dirname, "../clients/js/react"); // whose tests have a React of their own
	const react = path.join(import.meta.dirname, "node_modules", "react");
	const { outputFiles } = await build({
		stdin: { contents: application, loader: "jsx", resolveDir: import.meta.dirname }, bundle: true, write: false, outdir: "/", jsx: "automatic",
		alias: { "@doorward/react": kit, react }, logLevel: "error",
	});
	return ["js", "css"].map((kind) => outputFiles.find((file) => file.path.endsWith(kind)).text);
}

test("the kit for React leads back to pages of its own origin", async () => {
	const [script, style] = await bundled();
	const site = await serve(({ url }, response) => {
		if (url === "/app.js") return response.setHeader("Content-Type", "text/javascript; charset=utf-8").end(script);
		response.setHeader("Content-Type", "text/html; charset=utf-8")
			.end(`<!doctype html><html lang="en"><link rel=icon href="data:,"><style>${style}</style><body><script type="module" src="/app.js"></script>`);
	});
	const server = await Server.start("--allowed-origins", site, "--return-to", site);
	try {
		const p = await Person.create(server.url, "desktop-light-en");
		await p.page.goto(`${site}/?doorward=${server.url}/`); // the slash does no harm
		await p.page.getByText("Sign in").click();
		await p.page.getByLabel("E-mail").fill("owner@acme.example");
		await p.page.getByLabel("Password", { exact: true }).fill(password);
		await p.page.keyboard.press("Enter");
		await p.page.waitForURL(`${site}/reports?**`);

		await p.page.locator("summary").click();
		const menu = await p.page.locator(".doorward-menu").boundingBox();
		assert.ok(menu.x >= 0, `the menu begins at ${menu.x}`);
		const isOpen = () => p.page.locator("details").evaluate((details) => details.open);
		await p.page.locator(".doorward-menu p").click();
		assert.ok(await isOpen(), "a click on the text of the menu closes it");
		await p.page.keyboard.press("Escape");
		assert.ok(!await isOpen(), "Escape leaves the menu open");
		await p.page.keyboard.press("Enter"); // the focus is on the button
		assert.ok(await isOpen(), "the menu doesn't open again");
		await p.page.mouse.click(600, 600);
		assert.ok(!await isOpen(), "a click elsewhere leaves the menu open");
		await p.page.locator("summary").click();
		await p.page.getByText("Account", { exact: true }).click();
		await p.page.waitForURL(`${server.url}/account?return=**`);
		await p.page.getByRole("button", { name: "Sign out" }).first().click();
		await p.page.waitForURL(`${site}/reports?**`);
		await p.page.getByText("Sign in").waitFor();
		await p.context.close();
	} finally {
		await server.stop();
	}
});

// As Safari before 16.4, and proxies that drop what they don't know.
test("forms are taken without fetch metadata", async () => {
	// Below the ports that systems give to outgoing connections, so that none takes it meanwhile.
	const port = 20_000 + Math.floor(Math.random() * 10_000);
	const proxy = await serve((incoming, answer) => {
		const headers = Object.fromEntries(Object.entries(incoming.headers).filter(([name]) => !name.startsWith("sec-")));
		// Without an agent: a kept connection that the server closes at this moment would fail the request.
		const passed = request({ host: "localhost", port, method: incoming.method, path: incoming.url, headers, agent: false }, (from) => {
			answer.writeHead(from.statusCode, from.headers);
			from.pipe(answer);
		});
		passed.on("error", () => { answer.destroy(); }); // as a browser that leaves a page does it
		incoming.pipe(passed);
	});
	const server = new Server();
	await server.begin("--listen", `localhost:${port}`, "--base-url", proxy);
	try {
		const p = await Person.create(proxy, "desktop-light-en");
		await p.signIn("owner@acme.example", password);
		await p.at("/account");
		await p.send("/logout");
		await p.at("/login");
		await p.context.close();
	} finally {
		await server.stop();
	}
});
