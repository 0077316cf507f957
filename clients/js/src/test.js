// Starts a real Doorward for a test: "doorward dev" in a folder of its own, with the tenant Acme
// and one person for each role. The program is DOORWARD_BIN, or doorward on the PATH.

import { execFile, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { Client } from "./index.js";

/** The password of all four people. */
export const password = "open sesame 9042";

// Settings in the environment of the test are not meant for this server.
const environment = () => Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("DOORWARD_")));

/** startDoorward starts a server on a free port, and resolves to it when it answers. flags are those
 * of "doorward dev", model is the text of a model of the platform's own actions. It rejects if
 * the program is missing, or ends. */
export async function startDoorward({ flags = [], model } = {}) {
	const program = process.env.DOORWARD_BIN || "doorward";
	const folder = await mkdtemp(path.join(tmpdir(), "doorward-"));
	const options = { cwd: folder, env: environment() };
	const args = ["dev", "--listen", "localhost:0", "--password-memory-kib", "1024", "--password-time", "1", "--log-level", "error"];
	if (model !== undefined) {
		await writeFile(path.join(folder, "model.yaml"), model);
		args.push("--model", "model.yaml");
	}
	const server = spawn(program, [...args, ...flags], { ...options, stdio: ["ignore", "pipe", "inherit"] });
	const kill = () => {
		server.kill("SIGKILL");
		rmSync(folder, { recursive: true, force: true });
	};
	process.once("exit", kill); // also of a test that has failed
	const ended = new Promise((done) => { server.once("close", done).once("error", done); });
	const stop = async () => {
		process.removeListener("exit", kill);
		server.kill("SIGKILL");
		await ended;
		rmSync(folder, { recursive: true, force: true });
	};
	try {
		return serverAt(await addressOf(server, program), { program, options, stop });
	} catch (error) {
		await stop();
		throw error;
	}
}

/** addressOf resolves to the address that the server prints. */
function addressOf(server, program) {
	return new Promise((resolve, reject) => {
		let output = "";
		server.stdout.on("data", (text) => {
			output += text;
			const found = output.match(/is ready at (\S+)/);
			if (found) resolve(found[1]);
		});
		server.once("exit", (code) => reject(new Error(`${program} dev ended with ${code}`)));
		server.once("error", (cause) => reject(new Error(`${program} can't be started: set DOORWARD_BIN to the program, or put doorward on the PATH`, { cause })));
	});
}

function serverAt(url, { program, options, stop }) {
	const client = new Client({ baseUrl: url });
	return {
		url, client, stop,
		/** signIn resolves to a client with a new session of "owner", "admin", "user" or "viewer". */
		async signIn(role) {
			return client.as((await client.login({ email: `${role}@acme.example`, password })).token);
		},
		/** operate runs a command on the server's database, and resolves to what it prints. */
		async operate(...args) {
			const { stdout } = await promisify(execFile)(program, [...args, "--database", "sqlite:doorward-dev/doorward.db", "--base-url", url], options);
			return stdout;
		},
		/** createServiceKey resolves to a new service key that may do these things. */
		async createServiceKey(...may) {
			return (await this.operate("key", "create-service", "--name", `test ${may.join()}`.slice(0, 50), "--may", may.join())).trim().split("\n").at(-1);
		},
	};
}
