#!/usr/bin/env bash
# Prints where the program is that a module below this folder pins, and builds it before
# that if it isn't there yet, which takes minutes. The build.sh of the module calls it:
#
#   tools/cached.sh caddy github.com/caddyserver/caddy/v2/cmd/caddy
#   tools/cached.sh caddy github.com/caddyserver/caddy/v2/cmd/caddy --path   only say where
#
# It is kept in the user's cache folder, under a name that changes with what it is made
# of, so that it is built once and not for every checkout. Each is a module of its own so
# that none of its modules touches ours.
set -euo pipefail
name=$1 package=$2
cd "$(dirname "$0")/$name"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/doorward
made_of=$({ cat go.mod go.sum && go version; } | sha256sum | cut -c 1-16)
program=$cache/$name-$made_of

if [ "${3:-}" != --path ] && [ ! -x "$program" ]; then
	echo "building $name, once; this takes minutes" >&2
	mkdir -p "$cache"
	# Under its name only when it is whole: two may build at once.
	go build -o "$program.$$" "$package"
	mv "$program.$$" "$program"
fi
echo "$program"
