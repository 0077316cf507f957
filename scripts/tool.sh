#!/usr/bin/env bash
# Builds the tools pinned in tools/go.mod, or the one asked for of those in
# tools/release/go.mod, into bin/tools, then runs one:
#
#   scripts/tool.sh gofumpt -l .
#
# They are separate modules so that go.mod lists only the dependencies of Doorward.
# A build that changes nothing takes a quarter of a second.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

mkdir -p "$root/bin/tools"
tool=$1
shift
if package=$(grep -oE "[^[:space:]]+/$tool\$" "$root/tools/release/go.mod"); then
	go -C "$root/tools/release" build -o "$root/bin/tools/" "$package"
else
	go -C "$root/tools" build -o "$root/bin/tools/" tool
fi
exec "$root/bin/tools/$tool" "$@"
