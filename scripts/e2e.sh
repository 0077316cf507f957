#!/usr/bin/env bash
# Tests all page flows in Chromium, against a real server: make e2e. Pictures of all
# pages are left in artifacts/screenshots.
#
#   CHROMIUM=/usr/bin/chromium     another browser to drive; by default
#                                  chromium-headless-shell if installed, which takes
#                                  half the time of chromium
#   E2E_QUICK=1                    each journey on one screen instead of four; each page on
#                                  a phone and a desktop; axe checks colours, and all that
#                                  depends on the screen, once for each kind of element in a
#                                  process instead of on each page; no pictures
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p artifacts
rm -rf artifacts/screenshots
go build -o artifacts/doorward ./cmd/doorward
# Exactly what the lock file names, without running installation scripts.
npm ci --prefix e2e --prefer-offline --ignore-scripts --no-audit --no-fund --loglevel=error
export CHROMIUM=${CHROMIUM:-$(command -v chromium-headless-shell || command -v chromium)}
tests=(e2e/*.test.mjs)
if [ -n "${E2E_QUICK:-}" ]; then
	# The console's tests take as long as the others, which share a process and a browser:
	# starting node, Playwright and Chromium takes 1.4 s of CPU.
	tests=(e2e/console.test.mjs artifacts/other.test.mjs)
	for file in e2e/*.test.mjs; do
		[ "$file" = e2e/console.test.mjs ] || echo "import \"../$file\";"
	done >artifacts/other.test.mjs
fi
DOORWARD=$PWD/artifacts/doorward node --test --test-concurrency=2 --test-reporter=spec "${tests[@]}"
