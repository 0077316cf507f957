#!/bin/sh
# Keeps one PostgreSQL cluster: creates it, runs it, and removes it when the test
# binary has ended. Run as: sh -c SCRIPT keeper BINDIR SETTINGS [FOLDER]
# where FOLDER is that of the stopped cluster that a standby is to follow. With
# DOORWARD_TEST_PGDATA the cluster is a copy of that folder, which the first keeper makes.
#
# It reads one command a line (start PORT, stop MODE, kill, promote, pause,
# resume) and answers each with "ok" or "failed"; before that it prints the
# cluster's folder, and the answer to its creation. Only the test binary holds the other
# end of its standard input, so end of file means that the binary has ended, for whatever
# reason. Everything happens here, sequentially, so that no crash leaves anything behind.
set -u
bin=$1
settings=$2
primary=${3-}
template=${DOORWARD_TEST_PGDATA-}

# In memory where there is a gigabyte for it: a database is some 300 files, which ext4 makes
# slowly right after as many were removed. Not in memory if commits are to wait for the disk.
#
# Not $TMPDIR: a socket's path may have 107 bytes, and when tests run as root
# that folder may be closed to the user who runs the server.
place() {
	case $settings in *'fsync = on'*) echo /tmp && return ;; esac
	free=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $1 == "tmpfs" { print $4 }')
	[ "${free:-0}" -gt 1048576 ] && [ -w /dev/shm ] && echo /dev/shm || echo /tmp
}
home=$(mktemp -d "$(place)/pgtest.XXXXXX") || exit 1
cd "$home" || exit 1

create() {
	copy_or_init && printf "unix_socket_directories = '%s'\n%s\n" "$home" "$settings" >>data/postgresql.conf
}

copy_or_init() {
	if [ -n "$primary" ]; then
		cp -R "$primary/data" data && touch data/standby.signal
	elif [ -n "$template" ]; then
		make_template && cp -R "$template" data
	else
		init data
	fi
}

# Several keepers may make the template at once; only the first rename succeeds.
make_template() {
	[ -d "$template" ] && return
	init "$template.$$" && { mv -T "$template.$$" "$template" || [ -d "$template" ]; }
}

init() { # FOLDER
	"$bin/initdb" --pgdata="$1" --username=postgres --auth=trust --encoding=UTF8 \
		--locale=C.UTF-8 --no-sync --no-instructions
}

start() { "$bin/pg_ctl" start --wait --timeout=60 --pgdata=data --log=log --options="-p $1"; }

stop() {
	resume
	"$bin/pg_ctl" stop --wait --timeout=60 --pgdata=data --mode="$1"
}

promote() { "$bin/pg_ctl" promote --wait --timeout=60 --pgdata=data; }

# Simulates a power failure: the server writes nothing and notifies no client. The shared
# memory segment that it leaves (named in line 7) would make the next start refuse, so
# it is removed, and so is the PID file: a later signal could hit another process with
# the same number.
kill_all() {
	segment=$(sed -n 7p data/postmaster.pid)
	signal KILL
	tries=0 # without an init that reaps it, a dead server stays visible
	while [ -d "/proc/$(server)" ] && [ $((tries += 1)) -lt 300 ]; do sleep 0.01; done
	ipcrm -m "${segment##* }"
	rm data/postmaster.pid
}

server() { head -n 1 data/postmaster.pid 2>/dev/null; }

# The PIDs of the server and its children. A signal to a process group would miss
# the children: each starts its own session.
pids() {
	server && cat /proc/[0-9]*/stat 2>/dev/null |
		awk -v parent="$(server)" '$4 == parent { print $1 }'
}

# A child may end before the signal, which makes kill fail and is harmless. (This is
# the shell's own kill: a small system has no other.)
signal() { for pid in $(pids); do kill -s "$1" "$pid" || true; done; }

# The server first, so that it forks no more.
pause() { kill -s STOP "$(server)" && signal STOP; }

resume() { signal CONT; }

answer() { if "$@" >>log 2>&1 </dev/null; then echo ok; else echo failed; fi; }

finish() {
	stop immediate || signal KILL
	cd / && rm -rf "$home"
} >/dev/null 2>&1

# A closed standard output must not end this script before finish has run.
trap '' PIPE
trap finish EXIT
trap 'exit 1' HUP INT TERM

echo "$home"
answer create
while read -r verb argument; do
	[ "$verb" != kill ] || verb=kill_all
	answer "$verb" "$argument"
done
