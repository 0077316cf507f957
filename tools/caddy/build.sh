#!/usr/bin/env bash
# Prints where the Caddy is that go.mod pins, and builds it before that if it
# isn't there yet, which takes minutes:
#
#   tools/caddy/build.sh          build if need be
#   tools/caddy/build.sh --path   only say where it is or would be
#
# It is kept in the user's cache folder, under a name that changes with what it
# is made of, so that it is built once and not for every checkout. It is a module
# of its own so that none of Caddy's 150 modules touches ours.
set -euo pipefail
cd "$(dirname "$0")"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/doorward
made_of=$({ cat go.mod go.sum && go version; } | sha256sum | cut -c 1-16)
caddy=$cache/caddy-$made_of

if [ "${1:-}" != --path ] && [ ! -x "$caddy" ]; then
	echo "building Caddy, once; this takes minutes" >&2
	mkdir -p "$cache"
	# Under its name only when it is whole: two may build at once.
	go build -o "$caddy.$$" github.com/caddyserver/caddy/v2/cmd/caddy
	mv "$caddy.$$" "$caddy"
fi
echo "$caddy"
