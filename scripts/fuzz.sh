#!/usr/bin/env bash
# Runs each fuzz target of the module with one worker, two packages at a time: most of a
# short run is linking and starting, which uses one core.
#
#   scripts/fuzz.sh [TIME [FOLDER...]]
#
# TIME is as go test -fuzztime takes it, 10s by default; without a FOLDER, all of them.
#
# A failing input is written under testdata/fuzz beside the target: fix the code and
# commit the input, and every later go test tries it again.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s} folders=${*:2}

built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
corpus=$(go env GOCACHE)/fuzz

# package links the tests of a package once and fuzzes all its targets.
package() { # FOLDER
	local program=$built/${1//\//_} failed=0 target
	go test -c -fuzz . -ldflags='-s -w' -o "$program" "$1" || return
	for target in $(targets "$1"); do
		fuzz "$1" "$target" "$program" || failed=1
	done
	return "$failed"
}

# Go minimizes each input that reaches new code, by default for up to 60 s, in which nothing else is
# tried and no execution is counted: one input could take a whole run.
fuzz() { # FOLDER TARGET PROGRAM
	local out=$3.$2
	if (cd "$1" && "$3" -test.run '^$' -test.fuzz "^$2\$" -test.fuzztime "$time" \
		-test.fuzzminimizetime 1000x -test.parallel 1 -test.fuzzcachedir "$corpus/$1") >"$out" 2>&1; then
		echo "$2 in $1: passed"
	elif out_of_time "$out"; then
		echo "$2 in $1: out of time while an input ran, and no input failed (go.dev/issue/75804)"
	else
		echo "$2 in $1: failed"
		cat "$out"
		return 1
	fi
}

# Go before 1.27 sometimes reports the end of TIME as a failure of the target. A real failure
# names its input or the reason why the program died.
out_of_time() {
	grep -qE '^ +context deadline exceeded$' "$1" &&
		! grep -qE 'Failing input written|panic:|fuzzing process (hung|terminated)' "$1"
}

targets() { # FOLDER
	grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$1"/*_test.go | sed 's/^func //'
}

all_folders() {
	grep -rlE --include='*_test.go' --exclude-dir=testdata --exclude-dir=tools '^func Fuzz' . |
		xargs -r -n 1 dirname | sort -u
}

failed=0 running=0
finish_one() {
	wait -n || failed=$((failed + 1))
	running=$((running - 1))
}
[ -n "$folders" ] || folders=$(all_folders)
for folder in $folders; do
	[ "$running" -lt 2 ] || finish_one
	package "$folder" &
	running=$((running + 1))
done
while [ "$running" -gt 0 ]; do finish_one; done
echo "fuzzing: $failed packages failed"
[ "$failed" = 0 ]
