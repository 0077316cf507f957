#!/usr/bin/env bash
# Prints the path of a program that a module below this folder pins. It first builds the
# program if it hasn't been built, which takes minutes. The build.sh of the module calls it:
#
#   tools/cached.sh caddy github.com/caddyserver/caddy/v2/cmd/caddy
#   tools/cached.sh caddy github.com/caddyserver/caddy/v2/cmd/caddy --path   only prints
#
# The program is kept in the user's cache folder, under a name that changes with the pinned
# versions and with Go's, so that it is built once and not for every checkout. Each program
# has a module of its own, so that its dependencies don't affect ours.
set -euo pipefail
name=$1 package=$2
cd "$(dirname "$0")/$name"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/doorward
versions=$({ cat go.mod go.sum && go version; } | sha256sum | cut -c 1-16)
program=$cache/$name-$versions

if [ "${3:-}" != --path ] && [ ! -x "$program" ]; then
	echo "building $name, once; this takes minutes" >&2
	mkdir -p "$cache"
	# It gets its name when it is complete: two builds may run at once.
	go build -o "$program.$$" "$package"
	mv "$program.$$" "$program"
fi
echo "$program"
