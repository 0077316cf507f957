#!/usr/bin/env bash
# Rates the pages with Lighthouse, in Chromium, on a phone with a slow network: performance,
# accessibility, best practices, and the SEO of the documentation must each reach LEAST. make
# test doesn't run it, since the scores depend on how busy the machine is.
#
#   LEAST=95        the lowest score that passes
#   ONLY=/console   a regular expression for the pages to rate
#   CATEGORIES=…    what to rate, such as accessibility,best-practices,seo on a busy machine
#   CHROMIUM=…      the browser
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

mkdir -p artifacts
go build -o artifacts/doorward ./cmd/doorward
npm ci --prefix tools/lighthouse --ignore-scripts --no-audit --no-fund --loglevel=error
export CHROMIUM=${CHROMIUM:-$(command -v chromium-headless-shell || command -v chromium)}

folder=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$folder"' EXIT
(cd "$folder" && exec "$root/artifacts/doorward" dev --listen localhost:0 --log-level error) >"$folder/stdout" 2>"$folder/log" &
server=$!
until address=$(sed -n 's/.* is ready at //p' "$folder/stdout") && [ -n "$address" ]; do
	kill -0 "$server" || { cat "$folder/log" >&2 && exit 1; }
	sleep 0.1
done
password=$(sed -n 's/.*password of all four: //p' "$folder/stdout")
link=$(cd "$folder" && "$root/artifacts/doorward" audit link --database sqlite:doorward-dev/doorward.db --base-url "$address" | grep -o 'http[^ ]*')
node tools/lighthouse/rate.mjs "$address" "$password" artifacts/lighthouse "$link"
