#!/usr/bin/env bash
# Builds Caddy, once, and prints where it is; with --path it only prints.
exec "$(dirname "$0")/../cached.sh" caddy github.com/caddyserver/caddy/v2/cmd/caddy "$@"
