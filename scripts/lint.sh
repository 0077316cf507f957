#!/usr/bin/env bash
# All static checks. Every check runs; the exit code says whether one of them
# failed.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
check() { # NAME COMMAND...
	local name=$1
	shift
	"$@" || {
		echo "lint: $name failed" >&2
		failed=1
	}
}

formatted() {
	local files
	files=$(scripts/tool.sh gofumpt -l .) || return
	[ -z "$files" ] || {
		printf '%s\n' "$files" "not formatted: run make fmt" >&2
		return 1
	}
}

# In the workspace, Doorward isn't compiled once more for the modules that import it.
for module in . client client/tests examples/messaging bench tools; do
	workspace=$PWD/scripts/go.work
	[ "$module" != tools ] || workspace=off
	check "go vet in $module" env GOWORK="$workspace" go -C "$module" vet ./...
	check "staticcheck in $module" env -C "$module" GOWORK="$workspace" "$PWD/scripts/tool.sh" staticcheck ./...
	check "go mod tidy in $module (run it there)" go -C "$module" mod tidy -diff
done
check "go mod verify" go mod verify # scripts/verify.sh checks the other modules, too
check gofumpt formatted
check OpenAPI scripts/lint-openapi.sh
exit "$failed"
