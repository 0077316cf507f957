// Starts the built application, and asks it as browsers do: test.mjs ADDRESS PASSWORD

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { Client } from "@doorward/client";

const [, , baseUrl, password] = process.argv;
const next = spawn(process.execPath, ["node_modules/next/dist/bin/next", "start", "--port", "0", "--hostname", "127.0.0.1"], { env: { ...process.env, DOORWARD: baseUrl }, stdio: ["ignore", "pipe", "inherit"] });
try {
	const site = await new Promise((resolve, reject) => {
		let output = "";
		next.stdout.on("data", (text) => {
			output += text;
			const found = output.match(/Local:\s+(http:\S+)[\s\S]*Ready/);
			if (found) resolve(found[1]);
		});
		next.once("exit", (code) => reject(new Error(`next start ended with ${code}: ${output}`)));
	});
	const doorward = new Client({ baseUrl });
	const cookie = async (role) => ({ cookie: `JSESSIONID=${(await doorward.login({ email: `${role}@acme.example`, password })).token}` });
	const [owner, viewer] = [await cookie("owner"), await cookie("viewer")];
	const body = async (headers) => (await (await fetch(site, { headers })).text()).match(/<body>.*?<script/s)[0];
	assert.match(await body(owner), /<summary>owner@acme\.example<\/summary>.*invite somebody/s);
	assert.match(await body(viewer), /<summary>viewer@acme\.example<\/summary>(?!.*invite somebody)/s);
	assert.match(await body({}), /<a href="\/login" class="doorward-sign-in">Sign in<\/a>/);
	const send = async (headers) => {
		const response = await fetch(`${site}/send`, { method: "POST", headers });
		const { email, code } = await response.json();
		return [response.status, email ?? code];
	};
	assert.deepEqual([await send(owner), await send(viewer), await send({})], [[200, "owner@acme.example"], [403, "forbidden"], [401, "unauthenticated"]]);
} finally {
	next.removeAllListeners("exit").kill();
}
