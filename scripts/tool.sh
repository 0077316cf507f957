#!/usr/bin/env bash
# Builds a tool into bin/tools and runs it. A tool pinned in tools/release/go.mod is built
# alone; else all tools pinned in tools/go.mod are built:
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
	GOWORK=off go -C "$root/tools/release" build -o "$root/bin/tools/" "$package"
else
	GOWORK=off go -C "$root/tools" build -o "$root/bin/tools/" tool
fi
exec "$root/bin/tools/$tool" "$@"
