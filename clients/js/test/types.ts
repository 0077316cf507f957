// Compiled, not run: shows what the types allow and refuse.
import { Client, Invalid, type User } from "@doorward/client";
import { Verifier, type Assertion } from "@doorward/client/assertion";
import { check, currentSession, refusal, type Identity } from "@doorward/client/check";
import { protect } from "@doorward/client/express";
import { protect as hook } from "@doorward/client/fastify";
import { startDoorward } from "@doorward/client/test";
import { receive, verifyWebhook } from "@doorward/client/webhook";
import { DoorwardProvider } from "../react/index.js";
import { createServer } from "node:http";
import fastify from "fastify";

const doorward = new Client({ baseUrl: "http://localhost:8080" });
const { token, user } = await doorward.login({ email: "ann@acme.example", password: "x" });
const me: User = user;
const ann = doorward.as(token);
const people = await ann.get("/api/v2/users", { query: { q: "ann", status: "active" } });
const address: string = people.items[0]?.email ?? me.email;
for await (const invitation of ann.list("/api/v2/invitations")) invitation.invitedBy satisfies string | null;
const edited = await ann.patch("/api/v2/users/{id}", { role: "ADMIN" }, { params: { id: "usr_1" } });
edited.user.role satisfies string;
await ann.delete("/api/v2/tenant", { body: { confirm: "Acme" } });
const loggedOut: undefined = await ann.logout();
const verified: Assertion = await new Verifier(doorward, "https://reports.example").verify(address);
createServer((req, res) => { void protect(doorward, "message.read")(req, res, () => res.end(req.doorward?.tenantId)); });
fastify().get("/", { onRequest: hook(doorward, "message.read", { via: "introspection" }) }, async (request) => request.doorward?.role ?? verified.role);
const invoice = { type: "invoice", id: "17", properties: { amount: 10 } };
createServer((req, res) => { void protect(doorward, "invoice.pay", { resource: "deferred" })(req, res, async () => {
	const payer: Identity = await check(doorward, req, "invoice.pay", { resource: invoice, ip: req.socket.remoteAddress });
	res.end(payer.email);
}); });
await check(doorward, new Request("https://shop.example"), "invoice.pay", { resource: invoice });
await check(doorward, new Request("https://shop.example"), "invoice.pay", { resource: "deferred", touch: false });
const { body, ...answer } = refusal(new Invalid({ status: 422, code: "validation_failed" }));
export const refused: Response = new Response(body, answer);
const { allowed, stepUp } = await doorward.can({ userId: me.id, tenantId: me.tenantId }, "invoice.pay", invoice, { time: new Date(), timeout: 100 });
await doorward.can(token, "invoice.pay", invoice);
createServer(receive("whsec_AAAA", ({ type, data }) => console.log(type, data.actor.id)));
const server = await startDoorward({ model: "actions: {}", flags: ["--log-level", "info"] });
await (await server.signIn("owner")).session();
new Client({ baseUrl: server.url, logger: (message, { address, cause }) => console.error(message, address, cause) });
DoorwardProvider({ initialSession: await currentSession(doorward, new Request("https://shop.example")), baseUrl: "/platform" });
export const seen = [loggedOut, Invalid, allowed, stepUp?.acr, verifyWebhook(["whsec_AAAA"], new Headers(), "").type];

// @ts-expect-error the path has no such parameter
await ann.get("/api/v2/users/{id}", { params: { name: "usr_1" } });
// @ts-expect-error there is no such path
await ann.get("/api/v2/user");
// @ts-expect-error the password is missing
await doorward.login({ email: "ann@acme.example" });
// @ts-expect-error there is no such status
await ann.get("/api/v2/users", { query: { status: "frozen" } });
// @ts-expect-error the middleware doesn't know the resource
protect(doorward, "invoice.pay", { resource: invoice });
// @ts-expect-error the tenant of a token is unknown
await doorward.can(token, "invoice.pay");
