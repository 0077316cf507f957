#!/usr/bin/env bash
# go test with the race detector, which takes what go test takes:
#
#   scripts/race.sh ./...
#   scripts/race.sh -run TestRevocation ./node
#
# SQLite and the C library under it are C that a machine has made into Go. The
# detector isn't to watch each of their accesses to memory that isn't Go's: that
# takes five times as long as all the rest and can find nothing of ours. The driver,
# modernc.org/sqlite, to which our values are handed, is watched as our code is.
#
# A program under the detector sleeps for a second when it ends, in case something
# in the background of it is still to race. Our tests run hundreds of commands, and
# what they start in the background they end.
set -euo pipefail

unwatched=()
for package in modernc.org/sqlite/lib modernc.org/libc/... modernc.org/memory; do
	unwatched+=("-gcflags=$package=-race=false")
done
export CGO_ENABLED=1 GORACE="atexit_sleep_ms=0 ${GORACE:-}"
exec go test -race "${unwatched[@]}" "$@"
