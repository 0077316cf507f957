#!/usr/bin/env bash
# Tests all page flows in Chromium, against a real server. make e2e does so at full size, and
# leaves pictures of all pages in artifacts/screenshots.
#
#   CHROMIUM=/usr/bin/chromium     another browser to drive; by default
#                                  chromium-headless-shell if installed, which takes
#                                  half the time of chromium
#   DOORWARD_TEST_FULL=1           each journey on four screens instead of one; each page on
#                                  all of them; axe checks colours, and all that depends on
#                                  the screen, on each page instead of once for each kind of
#                                  element in a process; pictures
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p artifacts
rm -rf artifacts/screenshots
go build -o artifacts/doorward ./cmd/doorward
# Exactly what the lock file names, without running installation scripts.
npm ci --prefix e2e --prefer-offline --ignore-scripts --no-audit --no-fund --loglevel=error
export CHROMIUM=${CHROMIUM:-$(command -v chromium-headless-shell || command -v chromium)}
tests=(e2e/*.test.mjs)
if [ -z "${DOORWARD_TEST_FULL:-}" ]; then
	# The console's tests take as long as the others, which share a process and a browser:
	# starting node, Playwright and Chromium takes 1.4 s of CPU.
	tests=(e2e/console.test.mjs artifacts/other.test.mjs)
	for file in e2e/*.test.mjs; do
		[ "$file" = e2e/console.test.mjs ] || echo "import \"../$file\";"
	done >artifacts/other.test.mjs
fi
DOORWARD=$PWD/artifacts/doorward node --test --test-concurrency=2 --test-reporter=spec "${tests[@]}"
