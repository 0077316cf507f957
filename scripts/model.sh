#!/usr/bin/env bash
# Explores every state of the models in docs/lease with spin, in a minute: the
# protocol must hold, and without any one of its rules spin must find a violation. It must hold
# with leases of two ticks; two thirds of all states are those of three ticks, which find nothing
# more.
#
#   scripts/model.sh                      all of it
#   scripts/model.sh lease -DNO_RULE5     one variant of lease.pml, with the steps that
#                                         lead to the violation
#   DOORWARD_TEST_FULL=1                  with leases of three ticks, too
set -euo pipefail
models=$(realpath "$(dirname "$0")/../docs/lease")

for program in spin gcc; do
	command -v "$program" >/dev/null || {
		echo "the model needs $program; on Debian: sudo apt-get install spin gcc libc6-dev" >&2
		exit 1
	}
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Compiling takes as long as most searches, so -O1 is faster in total than -O2, and -O0 for
# variants that break. In reverse order the violations of cluster are found in a third of the
# states; those of lease would need twice as many. COLLAPSE would save a sixth of the memory
# and take half as long again. A search that runs out of depth or memory fails.
compiling=(-O1)
explore() { # MODEL SWITCH...
	local model=$1.pml
	shift
	cp "$models/$model" .
	spin "$@" -a "$model" && gcc "${compiling[@]}" -w -DSAFETY -DMEMLIM=2000 -o pan pan.c && ./pan -m200000 >found 2>&1
}

states() { awk '/states, stored/ { print $1; exit }' found; }

is_complete() { grep -q 'errors: 0' found && ! grep -qE 'max search depth too small|out of memory|Search not completed' found; }

has_violation() { grep -q 'pan:1: assertion violated' found; }

outcome() { # MODEL AND SWITCHES, VERDICT
	printf '%-30s %9s states  %s\n' "$1" "$(states)" "$2"
}

holds() { # MODEL SWITCH...
	explore "$@"
	if is_complete; then
		outcome "$*" "holds"
	else
		outcome "$*" "FAILED: a check is answered wrongly; see scripts/model.sh $*"
		return 1
	fi
}

# breaks begins with a lease of one tick, which is fast and shows all but two violations.
breaks() { # MODEL SWITCH
	local ticks
	compiling=(-O0)
	[ "$1" != cluster ] || compiling+=(-DREVERSE)
	for ticks in 1 2; do
		explore "$@" -DL="$ticks"
		if has_violation; then
			outcome "$*" "breaks, as it must"
			return
		fi
	done
	outcome "$*" "FAILED: found no violation, so the model doesn't show that this rule is needed"
	return 1
}

# start runs holds or breaks in a folder of its own, in parallel with one other.
failed=0 running=0
start() { # HOLDS OR BREAKS, MODEL, SWITCH...
	if [ "$running" = 2 ]; then
		wait -n || failed=1
		running=1
	fi
	(mkdir "$*" && cd "$*" && "$@") &
	running=$((running + 1))
}

if [ $# -gt 0 ]; then
	explore "$@"
	grep -E 'pan:|errors:|states, stored' found
	[ ! -e "$1.pml.trail" ] || spin "${@:2}" -t -p -g "$1.pml"
	exit
fi

# The switches are read from the models, so that none is forgotten. One of them,
# NO_REVOCATION, shows that in lease.pml checks can succeed at all.
for model in lease cluster; do
	[ -z "${DOORWARD_TEST_FULL:-}" ] || start holds "$model" -DL=3
	start holds "$model" -DL=2
	for switch in $(grep -oE '\bNO_[A-Z0-9_]*[A-Z0-9]\b' "$models/$model.pml" | sort -u); do
		start breaks "$model" "-D$switch"
	done
done
while [ "$running" -gt 0 ]; do
	wait -n || failed=1
	running=$((running - 1))
done
exit "$failed"
