#!/usr/bin/env bash
# Checks that generated files are up to date. They are generated again in a copy, so
# that this changes nothing here and works with uncommitted changes. Every check
# runs; the exit code says whether one of them failed.
set -euo pipefail
cd "$(dirname "$0")/.."

copies=$(mktemp -d)
trap 'chmod -R u+w "$copies" && rm -rf "$copies"' EXIT

copy() { # FOLDER
	mkdir "$copies/$1"
	git ls-files --cached --others --exclude-standard -z |
		tar --create --null --files-from - --ignore-failed-read --warning=no-failed-read |
		tar --extract --directory "$copies/$1"
}

generated() {
	copy committed
	copy generated
	go -C "$copies/generated" generate ./... || return
	diff --recursive --brief "$copies/committed" "$copies/generated" || {
		echo "the generated files don't match their sources: run make generate" >&2
		return 1
	}
}

failed=0
check() { # NAME COMMAND...
	local name=$1
	shift
	"$@" || {
		echo "verify: $name failed" >&2
		failed=1
	}
}

for module in . client client/tests examples/messaging bench tools tools/clients tools/release; do
	check "go mod tidy in $module (run it there)" go -C "$module" mod tidy -diff
	check "go mod verify in $module" go -C "$module" mod verify
done
check "generated files" generated
# Tests of golden files have Golden in their names, except TestWhoMayWhat.
check "golden files" go test -count=1 -run 'Golden|WhoMayWhat' ./...
check OpenAPI scripts/lint-openapi.sh
exit "$failed"
