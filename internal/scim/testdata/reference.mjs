// Evaluates SCIM filters and PATCH requests with two npm packages. Reads {filters, patches} from the standard
// input and writes one answer for each. A filter is [text, user], a patch [resource, operations].
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(import.meta.url);
const { parse, filter: tester } = require("scim2-parse-filter");
const { scimPatch } = require("scim-patch");
const { filters, patches } = JSON.parse(readFileSync(0, "utf8"));

// What Doorward compares, and with which type.
const comparable = {
  "id": "string", "username": "string", "externalid": "string", "displayname": "string",
  "active": "boolean", "emails.value": "string",
};

// Whether a parsed filter has eq, on what Doorward compares, joined by and, and nothing else.
function isSupported(f) {
  if (isWorkEmail(f)) return true;
  if (f.op === "and") return f.filters.every(isSupported);
  return f.op === "eq" && comparable[f.attrPath.toLowerCase()] === typeof f.compValue;
}

// emails[type eq "work"].value eq "…"
function isWorkEmail(f) {
  if (f.op !== "and" || f.filters.length !== 2 || f.filters[0].op !== "[]") return false;
  const [{ attrPath, valFilter }, value] = f.filters;
  return attrPath.toLowerCase() === "emails" && valFilter.op === "eq" && valFilter.attrPath.toLowerCase() === "type" &&
    valFilter.compValue === "work" && value.op === "eq" && value.attrPath.toLowerCase() === "emails.value" &&
    typeof value.compValue === "string";
}

function judgeFilter([text, user]) {
  let parsed;
  try {
    parsed = parse(text);
  } catch {
    return { supported: false };
  }
  return { supported: isSupported(parsed), matches: tester(parsed)(user) };
}

function judgePatch([resource, operations]) {
  try {
    return { resource: scimPatch(resource, operations) };
  } catch (error) {
    return { error: error.constructor.name };
  }
}

process.stdout.write(JSON.stringify({ filters: filters.map(judgeFilter), patches: patches.map(judgePatch) }));
