// Runs the code blocks of README.md, react/README.md and docs/other-languages.md.

import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import ts from "typescript";
import { Client } from "@doorward/client";
import { startDoorward } from "@doorward/client/test";
import { Webhook } from "standardwebhooks";
import { audience, model, password, policy, start } from "./server.mjs";

let server, doorward;
before(async () => {
	server = await start();
	doorward = new Client({ baseUrl: server.url });
});
after(() => server.stop());

/** block returns the block of a page that has the text. */
async function block(page, text) {
	const all = String(await readFile(new URL(page, import.meta.url))).matchAll(/^```jsx?\n(.*?)^```/gms);
	return [...all].map((match) => match[1]).find((code) => code.includes(text)).replaceAll("@doorward/react", "../react/index.js")
		.replaceAll(/https:\/\/auth\.example|http:\/\/localhost:8080/g, server.url).replaceAll("ann@acme.example", "owner@acme.example");
}

/** run imports a program that is written to this folder, where it finds packages by name. Its
 * inputs are in globalThis.inputs. */
async function run(t, text) {
	const file = path.resolve(import.meta.dirname, `readme-${process.pid}-${Math.random().toString(36).slice(2)}.mjs`);
	t.after(() => rm(file));
	await writeFile(file, `const inputs = globalThis.inputs;\n${text}`);
	return import(pathToFileURL(file));
}

const app = 'import express from "express";\nconst app = express();\n';
const listen = '\nexport const listening = app.listen(0, "127.0.0.1");\nawait new Promise((done) => listening.once("listening", done));';

async function serve(t, text) {
	const { listening, ...more } = await run(t, text + listen);
	t.after(() => listening.close());
	return { url: `http://127.0.0.1:${listening.address().port}`, ...more };
}

const signedIn = async (role) => (await doorward.login({ email: `${role}@acme.example`, password })).token;

test("calls", async (t) => {
	const owner = doorward.as(await signedIn("owner"));
	const viewer = (await owner.get("/api/v2/users", { query: { q: "viewer" } })).items[0];
	globalThis.inputs = { password, id: viewer.id };
	await run(t, `const { password, id } = inputs;\n${await block("../README.md", "doorward.login")}`);
	assert.equal((await owner.get("/api/v2/users/{id}", { params: { id: viewer.id } })).role, "ADMIN");
});

test("Express", async (t) => {
	globalThis.inputs = { doorward };
	const { url } = await serve(t, `${app}const { doorward } = inputs;\n${(await block("../README.md", "protect(doorward")).replace("} = req.doorward;", "} = req.doorward; res.send([tenantId, userId, role].join());")}`);
	const token = await signedIn("user");
	const write = (headers) => fetch(`${url}/messages`, { method: "POST", headers });
	assert.match(await (await write({ authorization: `Bearer ${token}` })).text(), /^tnt_.*,usr_.*,USER$/);
	assert.equal((await write({})).status, 401);
});

test("a resource", async (t) => {
	const own = await startDoorward({ model });
	t.after(() => own.stop());
	await (await own.signIn("owner")).put("/api/v2/policy", { text: policy }, { headers: { "if-match": "*" } });
	const client = new Client({ baseUrl: own.url, key: await own.createServiceKey("access.evaluate") });
	globalThis.inputs = { doorward: client, invoices: new Map([["1", { amount: 10 }], ["2", { amount: 1001 }]]) };
	const { url } = await serve(t, `${app}app.set("env", "test");\nimport { protect } from "@doorward/client/express";\nconst { doorward, invoices } = inputs;\n${await block("../README.md", "await check")}`);
	const { token } = await client.login({ email: "admin@acme.example", password });
	const pay = (number) => fetch(`${url}/invoices/${number}/pay`, { method: "POST", headers: { authorization: `Bearer ${token}` } });
	assert.equal((await pay(1)).status, 204);
	const refused = await pay(2);
	assert.deepEqual([refused.status, refused.headers.get("content-type"), (await refused.json()).policyId], [403, "application/problem+json", "large"]);
});

test("a route handler", async (t) => {
	const imports = 'import { DoorwardError } from "@doorward/client";\nimport { check, refusal } from "@doorward/client/check";\n';
	globalThis.inputs = { doorward };
	const { POST } = await run(t, `${imports}const { doorward } = inputs;\n${await block("../README.md", "function POST")}`);
	const send = async (token) => POST(new Request("https://shop.example/", { method: "POST", headers: token && { authorization: `Bearer ${token}` } }));
	assert.match((await (await send(await signedIn("user"))).json()).tenantId, /^tnt_/);
	const refused = await send();
	assert.deepEqual([refused.status, refused.headers.get("www-authenticate"), (await refused.json()).code], [401, 'Bearer realm="doorward"', "unauthenticated"]);
});

test("webhooks", async (t) => {
	process.env.WEBHOOK_SECRET = `whsec_${"A".repeat(32)}`;
	const { url, seen } = await serve(t, `${app}export const seen = new Set(), console = { log() {} };\n${await block("../README.md", "receive(")}`);
	const at = new Date();
	const body = '{"type":"user.role","timestamp":"2031-03-10T09:31:12Z","data":{"target":{"id":"usr_1"}}}';
	const headers = { "webhook-id": "evt_1", "webhook-timestamp": String(Math.floor(at / 1000)), "webhook-signature": new Webhook(process.env.WEBHOOK_SECRET).sign("evt_1", at, body) };
	const send = async (more) => (await fetch(`${url}/doorward`, { method: "POST", headers: { ...headers, ...more }, body })).status;
	assert.deepEqual([await send(), await send(), await send({ "webhook-id": "evt_2" })], [204, 204, 401]);
	assert.deepEqual([...seen], ["evt_1"]);
});

test("the kit for tests", async (t) => {
	await run(t, `import { Client } from "@doorward/client";\n${await block("../README.md", "startDoorward")}`);
});

test("signed assertions", async (t) => {
	const { assertion } = await doorward.as(await signedIn("user")).post("/api/v2/auth/token", { audience });
	globalThis.inputs = { doorward, req: { headers: { "x-auth-assertion": assertion } } };
	const { role } = await run(t, `const { doorward, req } = inputs;\n${(await block("../README.md", "new Verifier")).replace("const { subject", "export const { subject")}`);
	assert.equal(role, "USER");
});

const jsx = (text) => ts.transpileModule(text, { compilerOptions: { jsx: ts.JsxEmit.ReactJSX, module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 } }).outputText;

test("React", async (t) => {
	const page = (await block("../README.md", "DoorwardProvider")).replace("<DoorwardProvider>", "export const App = () => <DoorwardProvider>");
	const { App } = await run(t, jsx(`const InviteForm = () => "invite";\n${page}`));
	assert.equal(renderToString(createElement(App)), ""); // as long as it isn't known who is signed in
	const kit = await run(t, jsx((await block("../react/README.md", "DoorwardProvider")).replace('import "@doorward/react/style.css";', "").replace('import "../react/index.js/style.css";', "")));
	assert.equal(renderToString(createElement(kit.App)), "");
});

test("a session on the server's side", async (t) => {
	const { url, sessions } = await serve(t, `${app}app.use(express.json());\n${(await block("../../../docs/other-languages.md", "/sign-in")).replace("const sessions", "export const sessions")}`);
	const signIn = (secret) => fetch(`${url}/sign-in`, {
		method: "POST", redirect: "manual", headers: { "content-type": "application/json" }, body: JSON.stringify({ email: "owner@acme.example", password: secret }),
	});
	assert.equal((await signIn("wrong")).status, 401);
	const answer = await signIn(password);
	assert.equal(answer.status, 302);
	const id = /^app=([^;]+); Path=\/; HttpOnly; Secure; SameSite=Lax$/.exec(answer.headers.get("set-cookie"))[1];
	assert.equal((await doorward.as(sessions.get(id)).session()).user.role, "OWNER");
});
