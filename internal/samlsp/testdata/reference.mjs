// Judges SAML responses with the npm package @node-saml/node-saml, and makes responses with samlp and samlify. Reads
// {provider, us, responses, requests} from the standard input, and writes {judged, made}: one answer for each.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(import.meta.url);
const { SAML } = require("@node-saml/node-saml");
const samlp = require("samlp");
const samlify = require("samlify");
const { provider, us, responses, requests } = JSON.parse(readFileSync(0, "utf8"));

// A response is {form, requestId, certificates, key}: what is posted, which request it answers, the provider's
// certificates, the key that decrypts it.
async function judge({ form, requestId, certificates, key }) {
  if (certificates.length === 0) return { error: "no certificate" };
  const saml = new SAML({
    idpCert: certificates, idpIssuer: provider.entityId, issuer: us.entityId, audience: us.entityId, callbackUrl: us.acs,
    wantAssertionsSigned: false, wantAuthnResponseSigned: false, validateInResponseTo: "always", acceptedClockSkewMs: 180_000,
    decryptionPvk: key || undefined,
    cacheProvider: {
      async saveAsync() { return null; },
      async getAsync(id) { return id === requestId ? new Date().toISOString() : null; },
      async removeAsync() { return null; },
    },
  });
  try {
    const { profile } = await saml.validatePostResponseAsync({ SAMLResponse: form });
    return { nameId: profile?.nameID ?? "" };
  } catch (error) {
    return { error: String(error.message) };
  }
}

// A request is {query, address}: the parameters that a browser brings, and all of them as they are signed.
function bySamlp({ query }, options) {
  return new Promise((resolve) => {
    const auth = samlp.auth({
      issuer: provider.entityId, cert: provider.certificate, key: provider.key, signingCert: us.certificate,
      getPostURL: (audience, request, _, next) => next(null, request.documentElement.getAttribute("AssertionConsumerServiceURL")),
      recipient: us.acs, destination: us.acs,
      responseHandler: (response) => resolve({ form: response.toString("base64") }),
      ...options,
    });
    const user = { id: "ann-7", displayName: "Ann", name: { givenName: "Ann", familyName: "Lee" }, emails: [{ value: "ann@example.com" }] };
    const response = { set() {}, send: (answer) => resolve({ error: String(answer) }) };
    auth({ method: "GET", query, user }, response, (error) => resolve({ error: String(error) }));
  });
}

samlify.setSchemaValidator({ validate: async () => "not looked at" });

// The template of samlify's own, which has no AuthnStatement, with one.
const template = samlify.SamlLib.defaultLoginResponseTemplate.context.replace(
  "{AuthnStatement}",
  '<saml:AuthnStatement AuthnInstant="{IssueInstant}"><saml:AuthnContext><saml:AuthnContextClassRef>' +
    "urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>",
);

function filled(request) {
  const now = Date.now(), at = (ms) => new Date(now + ms).toISOString();
  const id = `_${now}`;
  const context = samlify.SamlLib.replaceTagsByValue(template.replace("{AttributeStatement}", ""), {
    ID: id, AssertionID: `${id}a`, Destination: us.acs, Audience: us.entityId, SubjectRecipient: us.acs, Issuer: provider.entityId,
    IssueInstant: at(0), AuthnInstant: at(0), StatusCode: "urn:oasis:names:tc:SAML:2.0:status:Success", ConditionsNotBefore: at(0),
    ConditionsNotOnOrAfter: at(300_000), SubjectConfirmationDataNotOnOrAfter: at(300_000), InResponseTo: request.extract.request.id,
    NameIDFormat: "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress", NameID: "ann@example.com",
  });
  return { id, context };
}

async function bySamlify({ query, signed }, options) {
  const idp = samlify.IdentityProvider({
    entityID: provider.entityId, signingCert: provider.certificate, privateKey: provider.key, wantAuthnRequestsSigned: true,
    singleSignOnService: [{ Binding: "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect", Location: provider.ssoUrl }],
    loginResponseTemplate: { context: template, attributes: [] },
    ...options.idp,
  });
  const sp = samlify.ServiceProvider({ metadata: us.metadata });
  try {
    const info = await idp.parseLoginRequest(sp, "redirect", { query, octetString: signed });
    const { context } = await idp.createLoginResponse(sp, info, "post", { email: "ann@example.com" }, { customTagReplacement: () => filled(info) });
    return { form: context };
  } catch (error) {
    return { error: error?.stack ?? String(error) };
  }
}

const judged = [];
for (const response of responses) judged.push(await judge(response));
const made = {};
const { samlp: one, samlpSigned: two, samlify: three, samlifyEncrypted: four } = requests;
if (one) {
  made.samlp = await bySamlp(one, {});
  made.samlpSigned = await bySamlp(two, { signResponse: true, signAssertion: false });
  made.samlify = await bySamlify(three, { idp: {} });
  made.samlifyEncrypted = await bySamlify(four, { idp: { isAssertionEncrypted: true, dataEncryptionAlgorithm: "http://www.w3.org/2009/xmlenc11#aes256-gcm" } });
}
process.stdout.write(JSON.stringify({ judged, made }));
