// Tests connections of a real "doorward dev" with the providers of four makers, two of OpenID Connect and two
// of SAML:
//
//	node test.mjs DOORWARD FOLDER    FOLDER has the installed packages, node_modules
//
// The providers are on loopback with https, by a certificate that is made here (openssl).

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import * as mock from "./mock.mjs";
import * as oidc from "./oidc.mjs";
import * as samlify from "./samlify.mjs";
import * as samlp from "./samlp.mjs";
import { Doorward, Owner, certificate } from "./setup.mjs";

const [program, packages] = process.argv.slice(2);
const folder = await mkdtemp(path.join(tmpdir(), "doorward-certificate-"));
const files = certificate(folder);
/** load imports a file of an installed package. */
const load = (file) => import(pathToFileURL(path.join(packages, "node_modules", file)));

try {
	for (const [maker, { test }] of Object.entries({ "oauth2-mock-server": mock, "oidc-provider": oidc, samlp, samlify })) {
		console.log(maker);
		const doorward = await Doorward.start(program, files.cert);
		try {
			await test({ doorward, owner: await new Owner(doorward).begin(), files, load });
		} finally {
			await doorward.stop();
		}
	}
} finally {
	await rm(folder, { recursive: true });
}
