#!/usr/bin/env bash
# Writes every page and state of a page, with canned data, to artifacts/pages: make pages.
set -euo pipefail
cd "$(dirname "$0")/.."

go test -count=1 -vet=off -ldflags='-s -w' ./web/hosted ./web/console ./web/dev ./web/pages -run TestPagesRender -render "$PWD/artifacts/pages"
