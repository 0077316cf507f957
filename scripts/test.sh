#!/usr/bin/env bash
# All tests, after installing what they need: make test. A step also runs if an
# earlier one has failed; the last line is the summary. make chaos has the long forms
# (CONTRIBUTING.md lists them).
#
#   FUZZTIME=1s     for each fuzz target
#   FRESH=1         repeat also what has passed before with the same inputs
set -euo pipefail
cd "$(dirname "$0")/.."

# Debian packages, each with a command that shows whether it is installed. The race
# detector needs a C compiler, and so does spin.
needs=(
	"postgresql:/usr/lib/postgresql/*/bin/initdb initdb"
	"chromium-headless-shell:chromium-headless-shell chromium" # the same browser without a window
	"gcc:gcc"
	"curl:curl"
	"haproxy:haproxy /usr/sbin/haproxy"
	"libc6-dev:/usr/include/stdio.h"
	"librsvg2-bin:rsvg-convert"
	"nginx:nginx /usr/sbin/nginx"
	"nodejs:node"
	"npm:npm"
	"oathtool:oathtool"
	"openssl:openssl"
	"pgbouncer:pgbouncer /usr/sbin/pgbouncer"
	"prometheus:promtool"
	"python3:python3"
	"python3-flask:/usr/lib/python3/dist-packages/flask"
	"python3-cryptography:/usr/lib/python3/dist-packages/cryptography"
	"python3-jwt:/usr/lib/python3/dist-packages/jwt"
	"spin:spin"
	"sqlite3:sqlite3"
	"zbar-tools:zbarimg"
)

has() { # COMMAND OR PATH...
	local program
	for program in "$@"; do
		compgen -G "$program" >/dev/null || command -v "$program" >/dev/null || continue
		return 0
	done
	return 1
}

missing() {
	local need
	for need in "${needs[@]}"; do
		# Unquoted: the words after the colon are alternatives, one of which is enough.
		# shellcheck disable=SC2086
		(set -f && has ${need#*:}) || echo "${need%%:*}"
	done
}

setup() {
	local packages
	packages=$(missing)
	[ -n "$packages" ] || return 0
	if [ "$(id -u)" = 0 ] && has apt-get; then
		export DEBIAN_FRONTEND=noninteractive
		apt-get update -qq
		# shellcheck disable=SC2086
		apt-get install -y -qq --no-install-recommends $packages
		packages=$(missing)
		[ -n "$packages" ] || return 0
	fi
	echo "make test needs these; on Debian: sudo apt-get install $(tr '\n' ' ' <<<"$packages")" >&2
	return 1
}

# The tests of a full disk need a private mount; a container may forbid it.
full_disk() {
	local map=()
	[ "$(id -u)" = 0 ] || map=(--map-root-user)
	unshare --mount "${map[@]}" true 2>/dev/null
}

# The other modules: the client, those that use it, and the tools. Always all of them, since
# go test sees changes of files only in the module that it tests.
nested() {
	local module failed=0
	local -x GOFLAGS="$GOFLAGS -count=1"
	for module in client client/tests examples/messaging; do
		env -C "$module" "$PWD/scripts/race.sh" -vet=off -ldflags='-s -w' ./... || failed=1
	done
	go -C tools test ./... || failed=1
	return "$failed"
}

# Packages that share memory between goroutines: sessions and keys, the lease, queues, limits,
# pools. Under the race detector the others would take most of the time and show nothing that
# these don't; make race watches everything.
shared=(./store/lease ./app/access ./app/credential ./app/outbox ./app/registry ./internal/gcra
	./internal/guard ./internal/lograte ./internal/smtp ./internal/tlscert ./internal/trace ./web/front)

# In these packages most tests send one request after the other; only the others run under the
# detector.
partly=(./store ./app ./app/apikey ./app/assertion ./app/inbox ./app/login ./app/session ./app/webhook
	./internal/argon)
concurrent='[.]Go[(]|WaitGroup|go func|Concurrently'

# All other packages, the longest first; ./node runs alone.
plain() {
	printf '%s\n' ./cmd/doorward ./web
	go list ./... | grep -vxF "$(go list ./node "${shared[@]}" "${partly[@]}")"
}

# The names of tests whose lines match, as a pattern for -run.
tests_with() { # REGEXP FOLDER...
	local regexp=$1 folder
	shift
	for folder in "$@"; do
		awk -v regexp="$regexp" 'FNR == 1 { name = "" } /^func Test/ { name = $2; sub(/\(.*/, "", name) } name && $0 ~ regexp { print name }' "$folder"/*_test.go
	done | sort -u | paste -sd '|' | sed 's/.*/^(&)$/'
}

# Temporary files go to /dev/shm if eight gigabytes of it are free and programs may run there:
# also what Go links, and a PostgreSQL cluster that all tests copy. On ext4, which is slow to
# make files right after many were removed, ./store took twice the CPU.
in_memory() {
	local free
	free=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $1 == "tmpfs" { print $4 }')
	[ "${free:-0}" -gt $((8 << 20)) ] || return 0
	memory=$(same_folder || mktemp -d /dev/shm/doorward.XXXXXX) || return 0
	chmod 1777 "$memory"
	cp "$(type -P true)" "$memory" && "$memory/true" || return 0
	export TMPDIR=$memory DOORWARD_TEST_PGDATA=$memory/pgdata DOORWARD_TEST_PGRUN=$memory/pgrun
	# One PostgreSQL for all test binaries: it ends when nothing holds this pipe open any more.
	mkfifo "$DOORWARD_TEST_PGRUN"
	exec {pgrun}<>"$DOORWARD_TEST_PGRUN"
}

# same_folder makes a folder that has the same name in each run, since go test repeats its tests
# when TMPDIR has changed. It fails while another run uses that folder.
same_folder() {
	local folder
	folder=/dev/shm/doorward-test-$(id -u)
	flock --nonblock "$lock" || return
	[ ! -O "$folder" ] || rm -rf "$folder"
	mkdir "$folder" 2>/dev/null && echo "$folder"
}

# What is built depends neither on the folder nor on the commit, so another checkout finds it in
# the cache.
GOFLAGS="$(go env GOFLAGS) -trimpath -buildvcs=false"
[ -z "${FRESH:-}" ] || GOFLAGS+=" -count=1"
export GOFLAGS

# Collecting garbage less often saves a third of the CPU of tests and compilers, and two thirds
# of staticcheck's.
export GOGC=800

# Many tests wait for a lease to end or a server to drain, so three packages keep two cores
# busy; the longest begin first. Missing programs make tests fail instead of skip. Vet runs
# only in lint.
export DOORWARD_TEST_POSTGRES=require DOORWARD_TEST_GATEWAYS=require
flags=(-vet=off -ldflags='-s -w' -timeout 20m -p $(($(nproc) + 1)))

tests() {
	local failed=0
	# shellcheck disable=SC2046
	go test "${flags[@]}" $(plain) || failed=1
	go test "${flags[@]}" -skip "$(tests_with "$concurrent" "${partly[@]}")" "${partly[@]}" || failed=1
	return "$failed"
}

# These run alone: they are clusters with deadlines. The race detector can't watch nodes that are
# processes of their own, so tests of those run without it.
nodes() {
	local failed=0 processes
	processes=$(tests_with 'builtProgram[(]|[^.]build[(]|[^.]serve[(]t' node)
	go test "${flags[@]}" -run "$processes" ./node || failed=1
	scripts/race.sh "${flags[@]}" -skip "$processes" ./node || failed=1
	return "$failed"
}

# The tests of web run on SQLite only: what handlers share doesn't depend on the database.
race() {
	local failed=0
	scripts/race.sh "${flags[@]}" "${shared[@]}" || failed=1
	scripts/race.sh "${flags[@]}" -run "$(tests_with "$concurrent" "${partly[@]}")" "${partly[@]}" || failed=1
	scripts/race.sh "${flags[@]}" -run "$(tests_with "$concurrent" web)/^(sqlite)?$" ./web || failed=1
	return "$failed"
}

# go test repeats only tests whose code or files have changed. unless_passed does the same for
# other steps: it doesn't run a command that has passed with the same standard input, which must
# have everything that the outcome depends on.
unless_passed() { # COMMAND...
	local passed
	passed=$cache/passed/$({ echo "$*" && cat; } | sha256sum | cut -c 1-16)
	if [ -z "${FRESH:-}" ] && [ -e "$passed" ]; then
		echo "passed on $(date -r "$passed" +%F) with the same files and programs; FRESH=1 repeats it"
		return
	fi
	"$@" && mkdir -p "$cache/passed" && touch "$passed"
}

sums() { # FILE OR FOLDER...
	find "$@" \( -name node_modules -o -name __pycache__ \) -prune -o -type f -print0 | sort -z | xargs -0 sha256sum
}

model() {
	{ spin -V && gcc --version && sums docs/lease scripts/model.sh; } | unless_passed env MODEL_QUICK=1 scripts/model.sh
}

clients() {
	go build -o artifacts/doorward ./cmd/doorward || return
	{
		node --version && python3 --version && go version
		sums artifacts/doorward LICENSE client clients examples tools/clients scripts/clients.sh
	} | unless_passed scripts/clients.sh
}

pages() {
	go build -o artifacts/doorward ./cmd/doorward || return
	{
		node --version && "$(type -P chromium-headless-shell || type -P chromium)" --version
		sums artifacts/doorward clients/js e2e examples/react scripts/e2e.sh
	} | unless_passed env E2E_QUICK=1 scripts/e2e.sh
}

results=$(mktemp) background_log=$(mktemp)
step() { # NAME COMMAND...
	local name=$1 began=$SECONDS outcome=passed
	shift
	printf '\n=== %s\n' "$name"
	"$@" || outcome=FAILED
	printf '%s %s\n' "$outcome" "$name" >>"$results"
	printf -- '--- %s %s in %d s\n' "$name" "$outcome" $((SECONDS - began))
}

# This package's fuzz targets start a server, which answers 503 if it gets no CPU for seconds.
# So they don't run in the background.
fuzzed_server=./web/edge

fuzz_server() { FUZZ_QUICK=1 scripts/fuzz.sh "${FUZZTIME:-1s}" "$fuzzed_server"; }

fuzz_others() { FUZZ_QUICK=1 FUZZ_EXCEPT=$fuzzed_server scripts/fuzz.sh "${FUZZTIME:-1s}"; }

# These steps run in the background, while the tests leave the cores idle: those of nodes wait
# a lot.
background_steps() {
	step model model
	step fuzzing fuzz_others
}

finish() {
	[ -z "${background:-}" ] || kill -- -"$background" 2>/dev/null || true # if interrupted
	rm -rf "$results" "$background_log" "$memory"
}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/doorward
mkdir -p "$cache"
exec {lock}>"$cache/test.lock"
memory=
trap finish EXIT
in_memory

step setup setup
! grep -q FAILED "$results" || exit 1
step Caddy tools/caddy/build.sh
step gitleaks tools/gitleaks/build.sh
# Before the tests, since it compiles everything: beside compilers many tests would miss their deadlines.
# GOMEMLIMIT, because with such a GOGC staticcheck takes more memory on many cores.
step lint env GOMEMLIMIT=4GiB scripts/lint.sh
set -m # a process group of its own, so that finish can end all of it
(chrt --idle --pid 0 "$BASHPID" && background_steps) </dev/null >"$background_log" 2>&1 &
background=$!
set +m
step tests tests
step nodes nodes
step "tests with the race detector" race
step "tests of other modules" nested
step "fuzzing with a server" fuzz_server
wait "$background"
background=
cat "$background_log"
step clients clients
step pages pages

failed=$(sed -n 's/^FAILED //p' "$results")
printf '\n%d s in all' "$SECONDS"
[ -z "$failed" ] || printf '; failed: %s' "${failed//$'\n'/, }"
full_disk || printf '\nleft out: the tests of a full disk, since this machine forbids mount namespaces'
printf '\nsteps: %d passed, %d failed\n' "$(grep -c ^passed "$results")" "$(grep -c ^FAILED "$results")"
[ -z "$failed" ]
