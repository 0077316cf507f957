// Evaluates policies with Cedar's reference implementation. Reads {schema, cases} from the
// standard input and writes one answer for each case. The ids of policies are their places
// in the text, from 0.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const cedar = createRequire(import.meta.url)("@cedar-policy/cedar-wasm/nodejs");
const { schema, cases } = JSON.parse(readFileSync(0, "utf8"));

function evaluate({ policies, requests }) {
  const staticPolicies = Object.fromEntries(policies.map((text, i) => [String(i), text]));
  const checked = cedar.validate({ schema, policies: { staticPolicies } });
  const valid = checked.type === "success" && checked.validationErrors.length === 0;
  const answers = requests.map((request) => {
    const answer = cedar.isAuthorized({ ...request, policies: { staticPolicies } });
    if (answer.type !== "success") throw new Error(JSON.stringify(answer));
    const { reason, errors } = answer.response.diagnostics;
    return { refuse: reason, err: errors.map((e) => e.policyId) };
  });
  return { valid, answers };
}

const parsed = cedar.checkParseSchema(schema);
if (parsed.type !== "success") throw new Error(JSON.stringify(parsed));
process.stdout.write(JSON.stringify(cases.map(evaluate)));
