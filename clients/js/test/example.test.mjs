// The example application behind a real nginx, with a real Doorward.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { password, start } from "./server.mjs";

const example = path.resolve(import.meta.dirname, "../../../examples/express");

async function freePort() {
	const server = createServer().listen(0, "127.0.0.1");
	await once(server, "listening");
	const { port } = server.address();
	server.close();
	await once(server, "close");
	return port;
}

/** until polls until answers resolves to true. The limit is for a test that fails. */
async function until(answers) {
	for (let tries = 0; tries < 2_000; tries++) {
		if (await answers().catch(() => false)) return;
		await new Promise((done) => setTimeout(done, 50));
	}
	throw new Error("it doesn't answer");
}

test("the Express example behind nginx", async (t) => {
	const [nginxPort, boardPort, doorwardPort] = [await freePort(), await freePort(), await freePort()];
	const site = `http://127.0.0.1:${nginxPort}`;
	const doorward = `http://127.0.0.1:${doorwardPort}`;
	const server = await start("--listen", `127.0.0.1:${doorwardPort}`, "--base-url", site);
	let running = true;
	t.after(() => running && server.stop());

	const folder = await mkdtemp(path.join(tmpdir(), "doorward-example-"));
	t.after(() => rm(folder, { recursive: true }));
	// The example imports packages by name; here they are those of the client's tests.
	const app = path.resolve(import.meta.dirname, "example-server.mjs");
	await writeFile(app, await readFile(path.join(example, "server.mjs")));
	t.after(() => rm(app));
	const express = spawn(process.execPath, ["--preserve-symlinks", "--preserve-symlinks-main", app], { env: { ...process.env, DOORWARD: doorward, PORT: String(boardPort) }, stdio: "inherit" });
	t.after(() => express.kill());

	const conf = (await readFile(path.join(example, "nginx.conf"), "utf8"))
		.replace("127.0.0.1:8000", `127.0.0.1:${nginxPort}`).replace("http://127.0.0.1:9000", `http://127.0.0.1:${boardPort}`).replace("http://127.0.0.1:8080", doorward);
	const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((n) => `${n}_temp_path ${folder}/${n};`).join(" ");
	await writeFile(`${folder}/nginx.conf`, `daemon off; pid ${folder}/pid; error_log ${folder}/error.log; events {} http { access_log off; ${paths} ${conf} }`);
	const nginx = spawn("nginx", ["-p", folder, "-c", `${folder}/nginx.conf`], { env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` }, stdio: "inherit" });
	t.after(() => nginx.kill());
	await until(async () => (await fetch(`${site}/board`, { redirect: "manual" })).status === 303);

	const stranger = await fetch(`${site}/board`, { redirect: "manual" });
	assert.equal(stranger.headers.get("location"), "/login?return=%2Fboard");
	assert.equal((await fetch(new URL(stranger.headers.get("location"), site))).status, 200);

	const signIn = async (role) => {
		const answer = await fetch(`${site}/api/v2/auth/login`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ email: `${role}@acme.example`, password }) });
		assert.equal(answer.status, 200);
		return { cookie: answer.headers.getSetCookie().find((c) => c.startsWith("JSESSIONID=")).split(";")[0] };
	};
	const [user, viewer] = [await signIn("user"), await signIn("viewer")];
	const write = (headers) => fetch(`${site}/board/messages`, { method: "POST", headers: { ...headers, "content-type": "text/plain" }, body: "hello" });
	assert.equal((await write({ ...user, "x-auth-user": "usr_forged" })).status, 201);
	assert.equal((await write(viewer)).status, 403);
	assert.equal((await write({})).status, 401);
	assert.equal((await write({ ...user, origin: "https://evil.example" })).status, 403);
	assert.equal(await (await fetch(`${site}/board`, { headers: viewer })).text(), "Signed in as viewer@acme.example\nuser@acme.example: hello");

	await server.stop();
	running = false;
	const outage = await fetch(`${site}/board`, { headers: viewer, redirect: "manual" });
	assert.deepEqual([outage.status, (await outage.json()).code], [503, "unavailable"]);
});
