#!/usr/bin/env bash
# Runs each fuzz target of the module, two at a time with one worker each: most of a
# short run is starting, which uses one core.
#
#   scripts/fuzz.sh [TIME]     TIME as go test -fuzztime takes it, 10s by default
#
# A failing input is written under testdata/fuzz beside the target: fix the code and
# commit the input, and every later go test tries it again.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}

fuzz() { # FOLDER TARGET
	local out
	out=$(mktemp)
	if go test -run '^$' -fuzz "^$2\$" -fuzztime "$time" -parallel 1 "$1" >"$out" 2>&1; then
		echo "$2 in $1: $(tail -n 1 "$out")"
	elif out_of_time "$out"; then
		echo "$2 in $1: out of time while an input ran, and no input failed (go.dev/issue/75804)"
	else
		echo "$2 in $1: failed"
		cat "$out"
		return 1
	fi
	rm -f "$out"
}

# Go before 1.27 sometimes reports the end of TIME as a failure of the target. A
# true failure names its input or says why the program died.
out_of_time() {
	grep -qE '^ +context deadline exceeded$' "$1" &&
		! grep -qE 'Failing input written|panic:|fuzzing process (hung|terminated)' "$1"
}

targets=$(grep -rHoE --include='*_test.go' --exclude-dir=testdata --exclude-dir=tools '^func Fuzz[A-Za-z0-9_]*' . |
	sort | sed -E 's|/[^/]*_test.go:func | |' || true)
failed=0 running=0 total=0
finish_one() {
	wait -n || failed=$((failed + 1))
	running=$((running - 1))
}
while read -r folder target; do
	[ -n "$target" ] || continue
	[ "$running" -lt 2 ] || finish_one
	fuzz "$folder" "$target" &
	running=$((running + 1)) total=$((total + 1))
done <<<"$targets"
while [ "$running" -gt 0 ]; do finish_one; done
echo "fuzz targets: $((total - failed)) passed, $failed failed"
[ "$failed" = 0 ]
