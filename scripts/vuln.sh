#!/usr/bin/env bash
# Looks for known vulnerabilities in the code that Doorward calls. It reads a local copy of the
# Go vulnerability database, so that the result doesn't change from day to day:
#
#   scripts/vuln.sh DATABASE     a folder, or a .tar.gz of one
set -euo pipefail
[ $# = 1 ] || {
	cat >&2 <<-'EOF'
		make vuln VULNDB=DATABASE, where DATABASE is a copy of https://vuln.go.dev:
		the unpacked https://vuln.go.dev/vulndb.zip, or a .tar.gz of such a folder.
	EOF
	exit 2
}
database=$(realpath -- "$1")
cd "$(dirname "$0")/.."

if [ -f "$database" ]; then
	unpacked=$(mktemp -d)
	trap 'rm -rf "$unpacked"' EXIT
	tar -xzf "$database" -C "$unpacked"
	database=$unpacked
fi
# A copy without the database's index has its entries in one flat folder.
if [ ! -e "$database/index" ] && [ -d "$database/osv" ]; then
	database=$database/osv
fi
scripts/tool.sh govulncheck -db "file://$database" ./...
