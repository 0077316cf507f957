#!/usr/bin/env bash
# All tests, after installing what they need: make test. A step also runs if an
# earlier one has failed; at the end are a table of the steps and a summary.
#
#   DOORWARD_TEST_FULL=1    everything at full size, too: make test-all. CONTRIBUTING.md has a
#                           table of what that adds
#   FRESH=1                 repeat also what has passed before with the same inputs
set -euo pipefail
cd "$(dirname "$0")/.."
full=${DOORWARD_TEST_FULL:-}

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

# SimpleSAMLphp, a provider in tests, is unpacked from its package; pysaml2 judges responses.
[ -z "$full" ] || needs+=("xmlsec1:xmlsec1" "python3-pysaml2:/usr/lib/python3/dist-packages/saml2" "php-cli:php" "php-mbstring:/usr/share/php*-mbstring" "php-xml:/usr/share/php*-xml")

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
# go test sees changes of files only in the module that it tests. In the workspace, Doorward
# isn't compiled once more for those that import it.
nested() {
	local module failed=0
	local -x GOFLAGS="$GOFLAGS -count=1"
	for module in client client/tests examples/messaging; do
		env -C "$module" GOWORK="$workspace" "$PWD/scripts/race.sh" -vet=off -ldflags='-s -w' ./... || failed=1
	done
	go -C tools test ./... || failed=1
	return "$failed"
}
workspace=$PWD/scripts/go.work

# All packages but ./node, which runs alone; the longest first.
packages() {
	printf '%s\n' ./cmd/doorward ./web
	go list ./... | grep -vxF "$(go list ./node)"
}

# The packages with tests for the race detector.
raced() {
	grep -lrE --include='*_test.go' '^func TestRace' app cmd internal node store web | xargs -n 1 dirname | sort -u | sed 's,^,./,'
}

# The tests of clusters in node: those that run the program, as a pattern for -run.
clusters() {
	awk 'FNR == 1 { name = "" } /^func Test/ { name = $2; sub(/\(.*/, "", name) } name && /builtProgram[(]|[^.]build[(]|[^.]serve[(]t/ { print name }' node/*_test.go |
		sort -u | paste -sd '|' | sed 's/.*/^(&)$/'
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
	# shellcheck disable=SC2034 # the number of the open file isn't needed
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
flags=(-vet=off -ldflags='-s -w' -timeout 40m -p $(($(nproc) + 1)))

tests() {
	local failed=0
	# shellcheck disable=SC2046
	go test "${flags[@]}" $(packages) || failed=1
	go test "${flags[@]}" -skip "$(clusters)" ./node || failed=1
	return "$failed"
}

# Clusters of processes run alone. They test the lease, and how a node serves and drains; of
# what features do they need little more than that people can sign in.
cluster_tests() {
	{
		go version && sums go.mod go.sum store app/access app/decide app/registry app/session internal node web/edge web/front
	} | unless_passed go test "${flags[@]}" -run "$(clusters)" ./node
}

# Go's race detector reports what goroutines do to the same memory. That doesn't depend on the
# database, so the tests run on SQLite; at full size, all tests of all packages on both, in their
# short forms.
race() {
	if [ -n "$full" ]; then
		env -u DOORWARD_TEST_FULL scripts/race.sh "${flags[@]}" ./...
		return
	fi
	# shellcheck disable=SC2046
	scripts/race.sh "${flags[@]}" -run '^TestRace' -skip '/^postgres$|//^postgres$' $(raced)
}

# go test repeats only tests whose code or files have changed. unless_passed does so for other
# steps: it doesn't run a command that has passed with the same standard input, which has the
# files that can break the outcome. These are fewer than those that could have a part in it, such
# as the whole server for the pages, whose parts have tests of their own; .ci/run runs all.
unless_passed() { # COMMAND...
	local passed
	passed=$cache/passed/$({ echo "$full $*" && cat; } | sha256sum | cut -c 1-16)
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
	{ spin -V && gcc --version && sums docs/lease scripts/model.sh; } | unless_passed scripts/model.sh
}

clients() {
	go run ./cmd/doorward openapi >artifacts/openapi.json || return
	{
		node --version && python3 --version && go version
		sums artifacts/openapi.json LICENSE clients docs/other-languages.md examples tools/clients tools/frameworks tools/providers app/flow app/samlprovider app/signon app/testrun internal/oidcrp internal/samlsp scripts/clients.sh
	} | unless_passed scripts/clients.sh
}

pages() {
	{
		node --version && "$(type -P chromium-headless-shell || type -P chromium)" --version
		sums app/flow app/mail/text app/samlprovider app/setuplink app/signon app/testrun clients/js cmd/doorward/dev.go docs e2e examples/react internal/oidcrp internal/samlsp scripts/e2e.sh scripts/renderpages.sh web
	} | unless_passed scripts/e2e.sh
}

# cpu sets used to the seconds of CPU that the processes of this shell have taken, without those
# that outlive their parents, as servers of PostgreSQL do. A pipe would count in another shell.
cpu() {
	local file=$results.$BASHPID # also the step in the background has one
	times >"$file"
	used=$(awk 'NR == 2 { split($1, user, "[ms]"); split($2, kernel, "[ms]"); printf "%d", 60 * (user[1] + kernel[1]) + user[2] + kernel[2] }' "$file")
}

results=$(mktemp) background_log=$(mktemp)
step() { # NAME COMMAND...
	local name=$1 began=$SECONDS outcome=passed used before
	shift
	printf '\n=== %s\n' "$name"
	cpu
	before=$used
	"$@" || outcome=FAILED
	cpu
	printf '%s\t%d\t%d\t%s\n' "$outcome" $((SECONDS - began)) $((used - before)) "$name" >>"$results"
	printf -- '--- %s %s in %d s\n' "$name" "$outcome" $((SECONDS - began))
}

# compile builds what later steps use, so that cold caches don't count for those, and no test with
# a deadline runs beside compilers. Tests are linked where they run.
compile() {
	local module
	go list -export -test -deps ./... >/dev/null || return
	go -C tools list -export -test -deps ./... >/dev/null || return
	# shellcheck disable=SC2046
	scripts/race.sh --compile $(if [ -n "$full" ]; then echo ./...; else raced; fi) || return
	for module in client client/tests examples/messaging; do
		env -C "$module" GOWORK="$workspace" "$PWD/scripts/race.sh" --compile ./... || return
	done
	scripts/tool.sh gofumpt --version
}

programs() { tools/caddy/build.sh && tools/gitleaks/build.sh; }

# Each target for ten seconds. Their inputs from before run in the step "tests".
fuzzing() { scripts/fuzz.sh 10s; }

finish() {
	[ -z "${background:-}" ] || kill -- -"$background" 2>/dev/null || true # if interrupted
	rm -rf "$results"* "$background_log" "$memory"
}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/doorward
mkdir -p "$cache"
exec {lock}>"$cache/test.lock"
memory='' background=''
trap finish EXIT
in_memory

step setup setup
! grep -q FAILED "$results" || exit 1
mkdir -p artifacts
[ -z "$full" ] || step "programs from source" programs
step compile compile
# GOMEMLIMIT, because with such a GOGC staticcheck takes more memory on many cores.
step lint env GOMEMLIMIT=4GiB scripts/lint.sh
if [ -z "$full" ]; then
	# In the background, while the tests leave the cores idle: they wait a lot.
	set -m # a process group of its own, so that finish can end all of it
	(chrt --idle --pid 0 "$BASHPID" && step model model) </dev/null >"$background_log" 2>&1 &
	background=$!
	set +m
else
	step model model
fi
step tests tests
step clusters cluster_tests
step "race detector" race
step "other modules" nested
[ -z "$full" ] || step fuzzing fuzzing
step clients clients
step pages pages
[ -z "$background" ] || wait "$background"
background=
cat "$background_log"

printf '\n%-22s %7s %7s\n' Step seconds CPU
awk -F '\t' '{ printf "%-22s %7d %7d%s\n", $4, $2, $3, $1 == "FAILED" ? "   FAILED" : ""; cpu += $3 } END { printf "%-22s %7d %7d\n", "all", '"$SECONDS"', cpu }' "$results"
full_disk || printf '\nleft out: the tests of a full disk, since this machine forbids mount namespaces\n'
printf '\nsteps: %d passed, %d failed\n' "$(grep -c ^passed "$results")" "$(grep -c ^FAILED "$results")"
! grep -q ^FAILED "$results"
