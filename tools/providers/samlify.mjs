// samlify encrypts assertions, wants signed requests, and has several certificates in its metadata.

import assert from "node:assert/strict";
import { connect, joins, overlaps, people, provesAgain, Provider, signsIn, stolen } from "./saml.mjs";

const redirect = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect";
const encryption = { isAssertionEncrypted: true, dataEncryptionAlgorithm: "http://www.w3.org/2009/xmlenc11#aes256-gcm" };

class Samlify extends Provider {
	tellsWhen = true; // somebody has signed in, by AuthnInstant

	identity(options) {
		return this.samlify.IdentityProvider({
			entityID: this.entityId, privateKey: this.signing.key, wantAuthnRequestsSigned: true, // the key that signs is looked up by its certificate
			signingCert: this.published.map(({ cert }) => cert), nameIDFormat: ["urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"],
			singleSignOnService: [{ Binding: redirect, Location: `${this.base}/sso` }],
			singleLogoutService: [{ Binding: redirect, Location: `${this.base}/slo` }], ...options // it warns where there is none,
		});
	}

	register({ metadata }) { this.sp = this.samlify.ServiceProvider({ metadata }); }

	metadata() { return this.identity().getMetadata(); }

	/** response fills samlify's own template, which lacks an AuthnStatement and attributes. */
	response(id, at) {
		const { SamlLib } = this.samlify;
		const instant = (ms) => new Date(ms).toISOString();
		const { id: nameID, email } = people[this.person];
		const statements = `<saml:AuthnStatement AuthnInstant="${instant(at)}"><saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>` +
			`<saml:AttributeStatement><saml:Attribute Name="urn:oid:0.9.2342.19200300.100.1.3" FriendlyName="mail"><saml:AttributeValue>${email}</saml:AttributeValue></saml:Attribute></saml:AttributeStatement>`;
		const own = `_${crypto.randomUUID()}`;
		const now = Date.now();
		const acs = this.sp.entityMeta.getAssertionConsumerService("post");
		const template = SamlLib.defaultLoginResponseTemplate.context.replace("{AuthnStatement}", statements).replace("{AttributeStatement}", "");
		return {
			id: own,
			context: SamlLib.replaceTagsByValue(template, {
				ID: own, AssertionID: `${own}a`, Destination: acs, SubjectRecipient: acs, Audience: this.sp.entityMeta.getEntityID(), Issuer: this.entityId,
				IssueInstant: instant(now), StatusCode: "urn:oasis:names:tc:SAML:2.0:status:Success", ConditionsNotBefore: instant(now), ConditionsNotOnOrAfter: instant(now + 300_000),
				SubjectConfirmationDataNotOnOrAfter: instant(now + 300_000), InResponseTo: id, NameIDFormat: "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent", NameID: nameID,
			}),
		};
	}

	async respond({ answer, address, query, at }) {
		const idp = this.identity({ signingCert: this.signing.cert, ...this.options });
		const octetString = address.search.slice(1).replace(/&Signature=.*/, "");
		const request = await idp.parseLoginRequest(this.sp, "redirect", { query, octetString });
		const { context, entityEndpoint } = await idp.createLoginResponse(this.sp, request, "post", {}, { customTagReplacement: () => this.response(request.extract.request.id, at) });
		answer.setHeader("Content-Type", "text/html");
		answer.end(`<form method="post" action="${entityEndpoint}"><input name="SAMLResponse" value="${context}"><input name="RelayState" value="${query.RelayState}"></form>`);
	}
}

export async function test({ doorward, owner, files, load }) {
	const provider = await new Samlify().start(files);
	provider.samlify = (await load("samlify/build/index.js")).default;
	provider.samlify.setSchemaValidator({ validate: async () => "not looked at" });
	const world = { doorward, owner, provider };
	provider.options = encryption;
	try {
		const connection = await connect(world, { signRequests: true, encrypt: true });
		const browser = await signsIn(world, connection);
		console.log("ok an encrypted assertion");
		await joins(world, connection);
		await provesAgain(world, connection, browser);
		await stolen(world, connection);
		provider.options = {};
		assert.equal((await browser.signIn(connection)).user.email, people[1].email);
		await overlaps(world, connection);
	} finally {
		provider.stop();
	}
}
