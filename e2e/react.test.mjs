// The React example: its page, the Express service and Doorward on one host, behind a real
// nginx. People sign in, see what their role allows, prove their identity again, and sign out.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { Person, Server, password, until } from "./harness.mjs";

const root = path.resolve(import.meta.dirname, "..");
const example = (name) => path.join(root, "examples", name);

/** freePorts returns distinct free ports: all are held until the last one is known. */
async function freePorts(count) {
	const held = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
	await Promise.all(held.map((server) => once(server, "listening")));
	const ports = held.map((server) => server.address().port);
	await Promise.all(held.map((server) => new Promise((done) => { server.close(done); })));
	return ports;
}

let server, site, folder;
const programs = [];

/** run starts a program that ends with the tests. */
function run(command, args, options) {
	const program = spawn(command, args, { stdio: ["ignore", "ignore", "inherit"], ...options });
	programs.push(program);
}

/** install copies an example, and links its packages as "npm install" does: those of ours to
 * their folders in the checkout. */
async function install(name) {
	const to = path.join(folder, name);
	const ownPackages = path.join(import.meta.dirname, "node_modules");
	await cp(example(name), to, { recursive: true, filter: (file) => path.basename(file) !== "node_modules" });
	await mkdir(path.join(to, "node_modules", "@doorward"), { recursive: true });
	for (const entry of await readdir(ownPackages)) await symlink(path.join(ownPackages, entry), path.join(to, "node_modules", entry));
	await symlink(path.join(root, "clients", "js"), path.join(to, "node_modules", "@doorward", "client"));
	await symlink(path.join(root, "clients", "js", "react"), path.join(to, "node_modules", "@doorward", "react"));
	return to;
}

async function startService(port, doorward) {
	const service = await install("express");
	run(process.execPath, ["server.mjs"], { cwd: service, env: { ...process.env, DOORWARD: doorward, PORT: String(port) } });
}

async function buildPage() {
	await promisify(execFile)("npm", ["run", "build"], { cwd: await install("react") });
}

async function startNginx(port, servicePort, doorwardPort) {
	const conf = (await readFile(path.join(example("react"), "nginx.conf"), "utf8"))
		.replace("127.0.0.1:8000", `127.0.0.1:${port}`).replace("127.0.0.1:9000", `127.0.0.1:${servicePort}`).replace("127.0.0.1:8080", `127.0.0.1:${doorwardPort}`)
		.replace("/srv/board/", `${folder}/react/public/`);
	const tempPaths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((n) => `${n}_temp_path ${folder}/${n};`).join(" ");
	const types = "types { text/html html; text/javascript js; text/css css; }";
	const user = process.getuid() === 0 ? "user root;" : ""; // the page is in a folder of our own
	await writeFile(path.join(folder, "nginx.conf"), `${user} daemon off; pid ${folder}/pid; error_log ${folder}/error.log; events {} http { access_log off; ${types} ${tempPaths} ${conf} }`);
	run("nginx", ["-p", folder, "-c", path.join(folder, "nginx.conf")], { env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` } });
}

before(async () => {
	folder = await mkdtemp(path.join(tmpdir(), "doorward-react-"));
	const [port, servicePort, doorwardPort] = await freePorts(3);
	site = `http://127.0.0.1:${port}`;
	[server] = await Promise.all([
		Server.start("--listen", `127.0.0.1:${doorwardPort}`, "--base-url", site),
		startService(servicePort, `http://127.0.0.1:${doorwardPort}`), buildPage(),
	]);
	await startNginx(port, servicePort, doorwardPort);
	await until("an answer of nginx", () => fetch(`${site}/board`, { redirect: "manual" }).then(({ status }) => status === 303, () => false));
});
after(async () => {
	for (const program of programs) program.kill();
	await server.stop();
	await rm(folder, { recursive: true });
});

/** open opens the page and signs a person in, which leads back to the page. */
async function open(screen, email) {
	const p = await Person.create(site, screen);
	await p.go("/app/");
	await p.page.getByRole("link", { name: "Sign in" }).click();
	await p.at("/login");
	await p.send("/login", { email, password });
	await p.at("/app/");
	await p.page.getByText(`Signed in as ${email}`).waitFor();
	return p;
}

test("an administrator writes, proves their identity, clears the board, signs out", async () => {
	const p = await open("desktop-light-de", "admin@acme.example");
	assert.equal(await p.page.evaluate(() => document.cookie), "", "a script can read a cookie");
	const stored = await p.page.evaluate(() => JSON.stringify([localStorage, sessionStorage]));
	assert.equal(stored, "[{},{}]", "a script stores something");

	const rows = p.page.getByRole("listitem");
	const clear = async () => {
		await rows.first().waitFor();
		await p.page.getByRole("button", { name: "Clear" }).click();
	};
	await p.page.getByLabel("Message").fill("hello");
	await p.page.getByRole("button", { name: "Send" }).click();
	await rows.first().waitFor();
	await server.restart("--clock-offset", "10m"); // for which the login is no recent proof any more
	await clear();
	await p.at("/step-up");
	await p.send("/step-up", { password });
	await p.at("/app/");
	await clear();
	await p.page.waitForFunction(() => document.querySelector("h1")?.textContent === "Board" && !document.querySelector("main > ul > li"));
	await p.page.locator("summary").click();
	await p.page.getByRole("button", { name: "Sign out" }).click();
	await p.page.getByRole("link", { name: "Sign in" }).waitFor();
	assert.equal((await p.page.request.get(`${site}/api/v2/auth/session`)).status(), 401);
	const complaints = p.complaints.filter((text) => !/status of 40[13]/.test(text)); // the console reports refusals, too
	assert.deepEqual(complaints, []);
	await p.context.close();
});

test("a VIEWER reads, and isn't offered more", async () => {
	const p = await open("phone-light-en", "viewer@acme.example");
	await p.page.getByText("Your role may read, and not write.").waitFor();
	assert.equal(await p.page.getByRole("button", { name: "Clear" }).count(), 0);
	await p.fits("the board");
	// The service refuses what the page hides.
	const status = await p.page.evaluate(async () => (await fetch("/board/messages", { method: "POST", body: "x" })).status);
	assert.equal(status, 403);
	await p.context.close();
});

test("a fault signs nobody out", async () => {
	const p = await open("desktop-dark-en", "user@acme.example");
	const repair = await server.breakDatabase();
	const asked = p.page.waitForResponse((response) => response.url().endsWith("/api/v2/auth/session"));
	await p.page.evaluate(() => document.dispatchEvent(new Event("visibilitychange"))); // as when the person returns to the page
	assert.equal((await asked).status(), 503);
	await p.page.getByText("Signed in as user@acme.example").waitFor();
	assert.equal(await p.page.getByRole("link", { name: "Sign in" }).count(), 0);
	await repair();
	await p.context.close();
});

test("who has two tenants can switch", async () => {
	const p = await open("desktop-light-en", "user@acme.example");
	assert.equal(await p.page.getByRole("combobox").count(), 0);
	const printed = await server.operate("tenant", "create", "--name", "Globex", "--owner-email", "user@acme.example");
	await server.api("POST", "/api/v2/auth/accept-invitation", { token: printed.match(/#token=(\S+)/)[1], password });
	await p.page.reload();
	await p.page.getByLabel("Tenant").selectOption("Globex");
	await p.page.getByText("OWNER of Globex").waitFor();
	await p.page.getByLabel("Tenant").selectOption("Acme");
	await p.page.getByText("USER of Acme").waitFor();

	// Where the other tenant asks for more than the session has, Doorward's page takes over.
	const { items } = await p.page.request.get(`${site}/api/v2/auth/memberships`).then((response) => response.json());
	const { tenantId } = items.find((membership) => membership.tenantName === "Globex");
	const owner = await server.api("POST", "/api/v2/auth/login", { email: "user@acme.example", password, tenantId });
	await server.api("PATCH", "/api/v2/tenant", { settings: { mfa: "required", mfaGraceDays: 0 } }, owner.token);
	await p.page.getByLabel("Tenant").selectOption("Globex");
	await p.at("/login/tenant");
	await p.context.close();
});
