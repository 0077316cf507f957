#!/usr/bin/env bash
# Builds a release twice, in two folders with paths of different lengths, the second
# time without a cache, with another umask and time zone, and compares every byte.
#
#   scripts/reproducible.sh [VERSION]
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:-0.0.0-reproducible}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
one=$work/one
two=$work/a/path/that/is/longer/two

copy() { # FOLDER
	mkdir -p "$1"
	git ls-files --cached --others --exclude-standard -z |
		tar --create --null --files-from - | tar --extract --directory "$1"
}

copy "$one"
copy "$two"
"$one/scripts/release.sh" "$version" "$work/first" >/dev/null
(umask 077 && cd / && TZ=Asia/Tokyo BUILD_CACHE=$work/cache "$two/scripts/release.sh" "$version" "$work/second" >/dev/null)
cat "$work/first/SHA256SUMS"
diff --recursive "$work/first" "$work/second" || {
	echo "the two releases differ" >&2
	exit 1
}
echo "the same bytes, twice"
