// Tests connections of a real "doorward dev" with the providers of four makers, two of OpenID Connect and
// two of SAML, and SimpleSAMLphp:
//
//	node test.mjs DOORWARD FOLDER [SIMPLESAMLPHP]
//
// FOLDER has the installed packages, node_modules; SIMPLESAMLPHP is the folder with its www, and PHP is needed, too.
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
import * as simple from "./simplesamlphp.mjs";
import { Doorward, Owner, certificate } from "./setup.mjs";

const [program, packages, simplesamlphp] = process.argv.slice(2);
const folder = await mkdtemp(path.join(tmpdir(), "doorward-certificate-"));
const files = certificate(folder);
/** load imports a file of an installed package. */
const load = (file) => import(pathToFileURL(path.join(packages, "node_modules", file)));

try {
	for (const [maker, { test }] of Object.entries({ "oauth2-mock-server": mock, "oidc-provider": oidc, samlp, samlify, ...(simplesamlphp && { SimpleSAMLphp: simple }) })) {
		console.log(maker);
		const doorward = await Doorward.start(program, files.cert);
		try {
			await test({ doorward, owner: await new Owner(doorward).begin(), files, load, simplesamlphp });
		} finally {
			await doorward.stop();
		}
	}
	if (!simplesamlphp) console.log("SimpleSAMLphp is left out: it takes PHP, with mbstring and xml, and apt-get");
} finally {
	await rm(folder, { recursive: true });
}
