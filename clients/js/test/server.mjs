// Starts a real Doorward for a test: "doorward dev" in a folder of its own, with one person
// for each role.

import { execFile, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";

const program = process.env.DOORWARD ?? path.resolve(import.meta.dirname, "../../../bin/doorward");

export const password = "open sesame 9042";
export const audience = "https://reports.example";

export async function start(...flags) {
	const folder = await mkdtemp(path.join(tmpdir(), "doorward-js-"));
	const cheap = ["--password-memory-kib", "1024", "--password-time", "1", "--log-level", "error"];
	const server = spawn(program, ["dev", "--listen", "localhost:0", "--assertion-audience", audience, ...cheap, ...flags], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
	const url = await new Promise((resolve, reject) => {
		let output = "";
		server.stdout.on("data", (text) => {
			output += text;
			const found = output.match(/is ready at (\S+)/);
			if (found) resolve(found[1]);
		});
		server.once("error", reject).once("exit", (code) => reject(new Error(`doorward dev ended with ${code}`)));
	});
	return {
		url,
		/** operate runs a command on the server's database, and returns what it prints. */
		async operate(...args) {
			const { stdout } = await promisify(execFile)(program, [...args, "--database", "sqlite:doorward-dev/doorward.db", "--base-url", url], { cwd: folder });
			return stdout;
		},
		async stop() {
			const ended = new Promise((done) => { server.removeAllListeners("exit").once("exit", done); });
			server.kill("SIGKILL");
			await ended;
			await rm(folder, { recursive: true });
		},
	};
}
