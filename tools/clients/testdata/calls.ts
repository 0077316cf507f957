// Calls a Doorward with openapi-fetch and the types that openapi-typescript makes.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const [address = "", password = ""] = process.argv.slice(2);
const email = "owner@acme.example";
const client = createClient<paths>({ baseUrl: address });

const wrong = await client.POST("/api/v2/auth/login", { body: { email, password: "not the password" } });
assert.equal(wrong.response.status, 401);
const problem: components["schemas"]["Problem"] | undefined = wrong.error;
assert.equal(problem?.code, "invalid_credentials");

const login = await client.POST("/api/v2/auth/login", { body: { email, password } });
assert.ok(login.data, JSON.stringify(login.error));
client.use({
	onRequest({ request }) {
		request.headers.set("Authorization", `Bearer ${login.data.token}`);
		return request;
	},
});

const invited = await client.POST("/api/v2/auth/invite", { body: { email: "typescript@acme.example", role: "USER" } });
assert.ok(invited.data, JSON.stringify(invited.error));
const by: string | null = invited.data.invitedBy;
assert.equal(by, login.data.user.id);

const list = await client.GET("/api/v2/invitations", { params: { query: { status: "PENDING" } } });
assert.ok(typeof list.data === "object", JSON.stringify(list.error)); // with format=csv it is text
assert.ok(list.data.items.some((one) => one.email === "typescript@acme.example"));

const bulk = await client.POST("/api/v2/auth/invite/bulk", { body: { invitations: [{ email: "bulk-ts@acme.example", role: "USER" }, { email: "no address", role: "USER" }] } });
assert.deepEqual(bulk.data?.items.map((one) => one.invitation?.email ?? one.problem?.code), ["bulk-ts@acme.example", "validation_failed"]);

const webhook = await client.POST("/api/v2/webhooks", { body: { url: "http://localhost:9/", events: ["user.*"] } });
assert.ok(webhook.data, JSON.stringify(webhook.error));
const edited = await client.PATCH("/api/v2/webhooks/{id}", { params: { path: { id: webhook.data.webhook.id } }, body: { about: "CRM" } });
assert.equal(edited.data?.about, "CRM", JSON.stringify(edited.error));

const factor = await client.POST("/api/v2/auth/factors/totp", { body: { name: "phone" } });
assert.ok(factor.data?.secret, JSON.stringify(factor.error));
const wrongCode = await client.POST("/api/v2/auth/factors/totp/confirm", { body: { id: factor.data.id, code: "000000" } });
assert.equal(wrongCode.error?.code, "validation_failed");
