#!/usr/bin/env bash
# Signs a file with minisign, as FILE.minisig:
#
#   SIGN_KEY=doorward.key scripts/sign.sh FILE VERSION
#
# minisign asks for the password of the secret key, unless the key has none. The signature is the same
# for the same file and version: its comment has no time.
set -euo pipefail

command -v minisign >/dev/null || {
	echo "sign: install minisign" >&2
	exit 1
}
[ -r "$SIGN_KEY" ] || {
	echo "sign: SIGN_KEY must name the secret key; $SIGN_KEY can't be read" >&2
	exit 1
}
minisign -S -s "$SIGN_KEY" -m "$1" -t "doorward $2" -c "signature of the release of doorward" >/dev/null
