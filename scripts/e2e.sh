#!/usr/bin/env bash
# Tests all pages in Chromium: those that the Go tests render, and journeys on a real server.
#
#   CHROMIUM=/usr/bin/chromium     another browser to drive; by default
#                                  chromium-headless-shell if installed, which takes
#                                  half the time of chromium
#   DOORWARD_TEST_FULL=1           each page and each journey on all four screens, with axe on
#                                  the pages of journeys, too; pictures of all in
#                                  artifacts/screenshots
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p artifacts
rm -rf artifacts/screenshots artifacts/pages
go build -o artifacts/doorward ./cmd/doorward
scripts/renderpages.sh
# Exactly what the lock file names, without running installation scripts.
npm ci --prefix e2e --prefer-offline --ignore-scripts --no-audit --no-fund --loglevel=error
export CHROMIUM=${CHROMIUM:-$(command -v chromium-headless-shell || command -v chromium)}
tests=(e2e/*.test.mjs)
if [ "${DOORWARD_TEST_FULL:-}" != 1 ]; then
	# Two processes, since starting node, Playwright and Chromium takes 1.4 s of CPU.
	tests=(e2e/pages.test.mjs artifacts/journeys.test.mjs)
	for file in e2e/*.test.mjs; do
		[ "$file" = e2e/pages.test.mjs ] || echo "import \"../$file\";"
	done >artifacts/journeys.test.mjs
fi
DOORWARD=$PWD/artifacts/doorward node --test --test-concurrency=2 --test-reporter=spec "${tests[@]}"
