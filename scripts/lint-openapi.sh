#!/usr/bin/env bash
# Checks an OpenAPI 3.1 document against the specification and the rules in
# tools/openapilint/rules.yaml:
#
#   scripts/lint-openapi.sh [FILE]     without FILE the one that doorward prints
#
# Prints a line for each finding; exits 0 when there is none.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

if [ $# = 1 ]; then
	exec "$root/scripts/tool.sh" openapilint "$1"
fi
mkdir -p "$root/bin"
go -C "$root" run ./cmd/doorward openapi >"$root/bin/openapi.json"
exec "$root/scripts/tool.sh" openapilint "$root/bin/openapi.json"
