// samlp, by Auth0, signs assertions or responses, and writes the page that sends them.

import assert from "node:assert/strict";
import { connect, joins, people, provesAgain, Provider, refused, signsIn, stolen, swaps, unasked } from "./saml.mjs";
import { Browser, responseIn } from "./setup.mjs";

class Samlp extends Provider {
	options = {}; // of the responses

	register({ metadata, connection }) {
		this.connection = connection;
		const encoded = metadata.match(/use="signing">.*?<ds:X509Certificate>([^<]+)/)?.[1];
		this.signingCert = encoded && `-----BEGIN CERTIFICATE-----\n${encoded.match(/.{1,64}/g).join("\n")}\n-----END CERTIFICATE-----\n`;
	}

	metadata(request) {
		assert.equal(this.published.length, 1); // it can have one only
		return new Promise((resolve) => {
			const answer = { set() {}, send: (text) => resolve(String(text)) };
			Object.assign(request, { protocol: "https", originalUrl: request.url });
			this.samlp.metadata({ issuer: this.entityId, cert: this.published[0].cert, redirectEndpointPath: "/sso", postEndpointPath: "/sso" })(request, answer);
		});
	}

	respond({ request, answer, query }, options) {
		const { id, email, name } = people[this.person];
		const auth = this.samlp.auth({
			issuer: this.entityId, cert: this.signing.cert, key: this.signing.key, signingCert: this.signingCert,
			getPostURL: (audience, parsed, _, next) => next(null, this.connection.acsUrl),
			recipient: this.connection.acsUrl, destination: this.connection.acsUrl,
			nameIdentifierFormat: "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
			getUserFromRequest: () => ({ id, displayName: name, name: {}, emails: [{ value: email }] }),
			...this.options, ...options,
		});
		const shown = { set: (header, value) => answer.setHeader(header, value), send: (page) => answer.end(String(page)) };
		auth(Object.assign(request, { query }), shown, (failure) => answer.destroy(failure));
	}

	/** unsolicited returns the form of a response to no request, with a RelayState that leads elsewhere. */
	async unsolicited(browser) {
		this.options = { audience: this.connection.spEntityId, RelayState: "https://elsewhere.example/" };
		const page = await browser.send("GET", `${this.base}/sso`);
		this.options = {};
		return responseIn(page.text);
	}
}

export async function test({ doorward, owner, files, load }) {
	const provider = await new Samlp().start(files);
	provider.samlp = (await load("samlp/lib/index.js")).default;
	const world = { doorward, owner, provider };
	try {
		const connection = await connect(world, { signRequests: true });
		assert.ok(provider.signingCert, "our metadata have no certificate");
		const browser = await signsIn(world, connection);
		await joins(world, connection);
		await provesAgain(world, connection, browser);
		await stolen(world, connection);
		await unasked(world, connection);
		await shapes(world, connection);
		await swaps(world, connection);
	} finally {
		provider.stop();
	}
}

/** shapes signs the response, both, and neither; and by SHA-1. */
async function shapes(world, connection) {
	const { provider } = world;
	for (const options of [{ signResponse: true, signAssertion: false }, { signResponse: true }]) {
		provider.options = options;
		assert.equal((await new Browser(world.doorward).signIn(connection)).user.email, people[1].email);
	}
	for (const [check, options] of Object.entries({ signature: { signAssertion: false }, alg: { signatureAlgorithm: "rsa-sha1" } })) {
		provider.options = options;
		await refused(world, connection, check);
	}
	provider.options = {};
	console.log("ok signatures of response and assertion");
}
