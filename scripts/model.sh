#!/usr/bin/env bash
# Has spin explore every state of docs/lease/lease.pml, in half a minute: the
# protocol must hold, and with each piece of it taken away spin must find how it
# breaks.
#
#   scripts/model.sh                   all of it
#   scripts/model.sh -DNO_RULE5        one variant, with the story of what it finds
set -euo pipefail
model=$(realpath "$(dirname "$0")/../docs/lease/lease.pml")

for program in spin gcc; do
	command -v "$program" >/dev/null || {
		echo "the model needs $program; on Debian: sudo apt-get install spin gcc libc6-dev" >&2
		exit 1
	}
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$model" .

# COLLAPSE keeps the states small; a search that runs out of depth or memory
# says so, and is no proof.
explore() { # SWITCH...
	rm -f lease.pml.trail
	spin "$@" -a lease.pml && gcc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=2000 -o pan pan.c && ./pan -m200000 >found 2>&1
}

states() { awk '/states, stored/ { print $1; exit }' found; }

whole() { grep -q 'errors: 0' found && ! grep -qE 'max search depth too small|out of memory|Search not completed' found; }

broken() { grep -q 'pan:1: assertion violated' found; }

failed=0
outcome() { # SWITCHES VERDICT
	printf '%-24s %9s states  %s\n' "$1" "$(states)" "$2"
}

holds() { # SWITCH...
	explore "$@"
	if whole; then
		outcome "$*" "holds"
	else
		outcome "$*" "FAILED: no check may accept after the answer; see scripts/model.sh $*"
		failed=1
	fi
}

breaks() { # SWITCH
	explore "$1"
	if broken; then
		outcome "$1" "breaks, as it must"
	else
		outcome "$1" "FAILED: found nothing wrong, so the model shows nothing about this piece"
		failed=1
	fi
}

if [ $# -gt 0 ]; then
	explore "$@"
	grep -E 'pan:|errors:|states, stored' found
	[ ! -e lease.pml.trail ] || spin "$@" -t -p -g lease.pml
	exit
fi

holds -DL=2
holds -DL=3
# The switches are read off the model, so that none is forgotten here. One of
# them, NO_REVOCATION, shows that the model lets checks accept at all.
for switch in $(grep -oE '\bNO_[A-Z0-9_]*[A-Z0-9]\b' lease.pml | sort -u); do
	breaks "-D$switch"
done
exit "$failed"
