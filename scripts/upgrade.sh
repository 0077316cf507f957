#!/usr/bin/env bash
# Upgrades three nodes from an earlier version to this tree and back, under traffic,
# on its own PostgreSQL, and fails if any check does:
#
#   scripts/upgrade.sh REF      a tag or a commit, such as v1.4.2
set -euo pipefail
cd "$(dirname "$0")/.."

ref=${1:?which version to come from? make upgrade FROM=v1.4.2}
commit=$(git rev-parse --verify --quiet "$ref^{commit}") || {
	echo "upgrade: there is no commit $ref in this clone; run git fetch --tags" >&2
	exit 2
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree"
git archive "$commit" | tar --extract --directory "$work/tree"
CGO_ENABLED=0 go -C "$work/tree" build -o "$work/doorward" ./cmd/doorward
echo "from $(git log -1 --format='%h %cs %s' "$commit") to $(git describe --always --dirty)"
DOORWARD_TEST_POSTGRES=require DOORWARD_TEST_UPGRADE_FROM=$work/doorward go test -count=1 -v -run '^TestRollingUpgrade$' ./node
