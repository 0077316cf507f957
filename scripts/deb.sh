#!/usr/bin/env bash
# Makes the Debian package of a binary:
#
#   scripts/deb.sh BINARY COMPLETIONS ARCH VERSION TARGET
#
# COMPLETIONS is what "doorward completion bash" prints. All files have the time
# SOURCE_DATE_EPOCH, so the same binary gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=$1 completions=$2 arch=$3 version=$4 target=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

mtime() { date --utc --date="@$SOURCE_DATE_EPOCH" "$@"; }

# The package's changelog has one entry, which names the repository's.
changelog() {
	cat <<-END
		doorward ($version) unstable; urgency=medium

		  * What is new: https://github.com/doorward/doorward/tree/main/changelog

		 -- $(sed -n 's/^maintainer: //p' deploy/deb/nfpm.yaml)  $(LC_ALL=C mtime --rfc-email)
	END
}

changelog | gzip --no-name -9 >"$work/changelog.gz"
gzip --no-name -9 <deploy/deb/doorward.1 >"$work/doorward.1.gz"
cp "$completions" "$work/doorward.bash"
sed "s|\${BINARY}|$binary|; s|\${WORK}|$work|; s|\${VERSION}|$version|; s|\${ARCH}|$arch|; s|\${MTIME}|$(mtime +%Y-%m-%dT%H:%M:%SZ)|" \
	deploy/deb/nfpm.yaml >"$work/nfpm.yaml"
scripts/tool.sh nfpm package --config "$work/nfpm.yaml" --packager deb --target "$target"
