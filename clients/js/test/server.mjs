// The server of these tests: the kit for tests, with the program of this checkout.

import path from "node:path";
import { startDoorward } from "@doorward/client/test";

export { password } from "@doorward/client/test";

process.env.DOORWARD_BIN ??= path.resolve(import.meta.dirname, "../../../bin/doorward");

export const audience = "https://reports.example";

export const start = (...flags) => startDoorward({ flags: ["--assertion-audience", audience, ...flags] });

/** model and policy are of invoices: a policy of the tenant reads their amount. */
export const model = `
actions:
  invoice.pay: {roles: [OWNER, ADMIN], resource: invoice}
resources:
  invoice: {amount: long}
`;
export const policy = `
@id("large") @reason("Large invoices are paid by the OWNER.") forbid(principal, action == Action::"invoice.pay", resource)
  when { resource.amount > 1000 } unless { principal in Role::"OWNER" };
@id("inside") forbid(principal, action == Action::"invoice.pay", resource) when { resource.amount < 10 && !context.ip.isInRange(ip("192.0.2.0/24")) };
`;
