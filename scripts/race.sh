#!/usr/bin/env bash
# go test with the race detector, with the arguments of go test:
#
#   scripts/race.sh ./...
#   scripts/race.sh -run TestRevocation ./node
#   scripts/race.sh --compile ./node              only compiles, for later runs
#
# SQLite and its C library are C translated to Go. They are excluded: watching their memory
# accesses takes five times as long as everything else and can't find faults of Doorward. The
# driver, modernc.org/sqlite, is included.
#
# By default a program under the detector sleeps for a second before it exits, to catch races in
# the background. That is switched off: our tests run hundreds of commands, and end what they
# start.
set -euo pipefail

unwatched=()
for package in modernc.org/sqlite/lib modernc.org/libc/... modernc.org/memory; do
	unwatched+=("-gcflags=$package=-race=false")
done
export CGO_ENABLED=1 GORACE="atexit_sleep_ms=0 ${GORACE:-}"
if [ "${1:-}" = --compile ]; then
	shift
	exec go list -race "${unwatched[@]}" -export -test -deps "$@" >/dev/null
fi
exec go test -race "${unwatched[@]}" "$@"
