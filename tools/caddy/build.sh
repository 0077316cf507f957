#!/usr/bin/env bash
# Builds Caddy, once, and prints its path; with --path it only prints that.
exec "$(dirname "$0")/../cached.sh" caddy github.com/caddyserver/caddy/v2/cmd/caddy "$@"
