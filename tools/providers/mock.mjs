// oauth2-mock-server signs anybody in without a page.

import assert from "node:assert/strict";
import { Browser } from "./setup.mjs";

/** test signs in by each way in which a connection proves itself to the provider. */
export async function test({ doorward, owner, files, load }) {
	const { OAuth2Server } = await load("oauth2-mock-server/dist/index.mjs");
	const provider = new OAuth2Server(files.key, files.cert);
	await provider.issuer.keys.generate("RS256");
	await provider.start(0, "127.0.0.1");
	try {
		provider.issuer.url = `https://localhost:${provider.address().port}`;
		provider.service.on("beforeTokenSigning", (token) => Object.assign(token.payload, { sub: "1", email: "admin@acme.example" }));
		for (const clientAuth of ["secret_basic", "secret_post", "private_key_jwt"]) {
			const connection = await owner.connect({ issuer: provider.issuer.url, clientId: "doorward", clientAuth }, clientAuth === "private_key_jwt" ? "" : "a secret of the provider");
			const { claims } = await owner.enable(connection, clientAuth === "secret_basic" && "acme.example");
			assert.equal(claims.email, "admin@acme.example");
			if (clientAuth === "secret_basic") { // the connection of the domain, which joins the account
				const session = await new Browser(doorward).signIn(connection);
				assert.equal(session.user.email, "admin@acme.example");
				assert.equal(session.session.connectionId, connection.id);
			}
			console.log(`ok ${clientAuth}`);
		}
	} finally {
		await provider.stop();
	}
}
