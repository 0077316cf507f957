#!/usr/bin/env bash
# Builds the linters pinned in tools/go.mod into bin/tools, then runs one:
#
#   scripts/tool.sh gofumpt -l .
#
# They are a module of their own so that go.mod lists what Doorward is made of
# and nothing else. A build that changes nothing takes a quarter of a second.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

mkdir -p "$root/bin/tools"
go -C "$root/tools" build -o "$root/bin/tools/" tool
tool=$1
shift
exec "$root/bin/tools/$tool" "$@"
