#!/usr/bin/env bash
# PostgreSQL under Patroni and etcd on one machine that simulates three, with the files
# of this folder unchanged: each machine is an address of loopback.
#
#   export HA_HOME=/tmp/ha        where everything is kept; removed by down
#   deploy/ha/cluster.sh up       starts it, and HAProxy for three nodes of Doorward
#   deploy/ha/cluster.sh list     prints the members as Patroni sees them
#   deploy/ha/cluster.sh url 1 x  creates the database x, prints its URL for node 1
#   deploy/ha/cluster.sh down     ends it
#
#   … leader | standby                   prints the number of that machine
#   … healthy                            succeeds if all members and the replication work
#   … await-healthy                      waits for that, for three minutes at most
#   … kill | stop | cont MACHINE [PART…] SIGKILL, SIGSTOP, SIGCONT; parts: etcd
#                                        patroni postgres, all of them when none is named
#   … start MACHINE                      starts the parts that don't run
#   … switchover                         makes the synchronous standby the primary
#   … etcd-leader                        prints the number of the machine that leads etcd
#
# HA_NET=127.77.0 is how all addresses begin; HA_VIA=hosts makes url name the three servers
# instead of HAProxy, to compare.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
home=${HA_HOME:?must name a folder}
net=${HA_NET:-127.77.0}
machines="1 2 3"

postgres_bin() { sed -n 's/^ *bin_dir: *//p' "$here/patroni.yml"; }

address() { echo "$net.1$1"; }

# PostgreSQL refuses to run as root.
user=$(id -un)
[ "$user" != root ] || user=postgres
as_user() {
	if [ "$(id -un)" = "$user" ]; then "$@"; else setpriv --reuid="$user" --regid="$user" --init-groups env HOME="$home" USER="$user" "$@"; fi
}

# background LOG PIDFILE COMMAND... starts a command in a session of its own.
background() {
	local log=$1 pidfile=$2
	shift 2
	(
		cd "$home"
		[ "$(id -un)" = "$user" ] || set -- setpriv --reuid="$user" --regid="$user" --init-groups "$@"
		HOME=$home USER=$user exec setsid "$@" >>"$log" 2>&1 </dev/null
	) &
	echo $! >"$pidfile"
	disown
}

alive() { [ -s "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$(cat "$1")/status" 2>/dev/null; }

# etcd_env, member_env: the files of the first machine, adapted to another one.
etcd_env() {
	local at peers
	at=$(address "$1")
	peers=$(for n in $machines; do echo "etcd$n=http://$(address "$n"):2380"; done | paste -sd,)
	grep -o '^ETCD_[A-Z0-9_]*=.*' "$here/etcd.env"
	printf '%s\n' "ETCD_NAME=etcd$1" "ETCD_DATA_DIR=$home/$1/etcd" "ETCD_INITIAL_CLUSTER=$peers" \
		"ETCD_LISTEN_PEER_URLS=http://$at:2380" "ETCD_INITIAL_ADVERTISE_PEER_URLS=http://$at:2380" \
		"ETCD_LISTEN_CLIENT_URLS=http://$at:2379" "ETCD_ADVERTISE_CLIENT_URLS=http://$at:2379"
}

member_env() {
	local at
	at=$(address "$1")
	grep -o '^PATRONI_[A-Z0-9_]*=.*' "$here/member.env"
	printf '%s\n' "PATRONI_NAME=pg$1" "PATRONI_ETCD_HOSTS=$(etcd_hosts)" \
		"PATRONI_RESTAPI_LISTEN=$at:8008" "PATRONI_RESTAPI_CONNECT_ADDRESS=$at:8008" \
		"PATRONI_POSTGRESQL_LISTEN=$at:5432" "PATRONI_POSTGRESQL_CONNECT_ADDRESS=$at:5432" \
		"PATRONI_POSTGRESQL_DATA_DIR=$home/$1/data" "PATRONI_POSTGRESQL_PGPASS=$home/$1/pgpass"
}

etcd_hosts() { for n in $machines; do echo "$(address "$n"):2379"; done | paste -sd,; }

password() { sed -n "s/^PATRONI_$1_PASSWORD=//p" "$here/member.env"; }

start_etcd() {
	alive "$home/$1/etcd.pid" && return
	local env
	mapfile -t env < <(etcd_env "$1")
	background "$home/$1/etcd.log" "$home/$1/etcd.pid" env "${env[@]}" etcd
}

start_patroni() {
	alive "$home/$1/patroni.pid" && return
	local env
	mapfile -t env < <(member_env "$1")
	background "$home/$1/patroni.log" "$home/$1/patroni.pid" env "${env[@]}" patroni "$home/patroni.yml"
}

start() {
	start_etcd "$1"
	start_patroni "$1"
}

# start_haproxy NODE starts the HAProxy on the machine of a node of Doorward.
start_haproxy() {
	background "$home/haproxy$1.log" "$home/haproxy$1.pid" env PG1="$(address 1)" PG2="$(address 2)" PG3="$(address 3)" \
		DATABASE="$net.2$1:5000" haproxy -db -f "$home/database.cfg"
}

# patroni_answers MACHINE PATH: whether its Patroni answers 200.
patroni_answers() { curl --silent --fail --max-time 1 --output "$home/answer" "http://$(address "$1"):8008/$2"; }

# machine_that_is PATH prints the first machine whose Patroni answers 200.
machine_that_is() {
	for n in $machines; do
		if patroni_answers "$n" "$1"; then
			echo "$n"
			return
		fi
	done
	return 1
}

healthy() {
	local n running=0
	for n in $machines; do
		{ patroni_answers "$n" primary || patroni_answers "$n" replica; } && running=$((running + 1))
	done
	[ "$running" = 3 ] && machine_that_is primary >/dev/null && machine_that_is synchronous >/dev/null && synchronous
}

# synchronous: whether PostgreSQL waits for a standby. Patroni only knows which one it has named.
synchronous() { [ -n "$(psql 'SHOW synchronous_standby_names' 2>/dev/null)" ]; }

await_healthy() {
	local tries=0
	until healthy; do
		[ $((tries += 1)) -lt 360 ] || {
			echo "the cluster is not healthy after three minutes:" >&2
			list >&2
			return 1
		}
		sleep 0.5
	done
}

patronictl() {
	local env
	mapfile -t env < <(member_env 1)
	as_user env "${env[@]}" patronictl -c "$home/patroni.yml" "$@"
}

list() { patronictl list; }

switchover() { patronictl switchover --leader "pg$(machine_that_is primary)" --candidate "pg$(machine_that_is synchronous)" --force; }

# postgres_pids MACHINE: the postmaster and its children, each of which has a session of its own.
postgres_pids() {
	local server
	server=$(head -n 1 "$home/$1/data/postmaster.pid" 2>/dev/null) && [ -n "$server" ] && kill -0 "$server" 2>/dev/null || return 0
	echo "$server"
	cat /proc/[0-9]*/stat 2>/dev/null | awk -v parent="$server" '{ line = $0; sub(/^.*\) /, "", line); split(line, f, " "); if (f[2] == parent) print $1 }'
}

send() { # SIGNAL MACHINE PART
	local pid
	for pid in $(if [ "$3" = postgres ]; then postgres_pids "$2"; else cat "$home/$2/$3.pid"; fi); do
		kill -s "$1" "$pid" 2>/dev/null || true # a child may have ended by itself
	done
}

# Without PARTs, Patroni comes first: it would start PostgreSQL again.
signal() { # SIGNAL MACHINE PART...
	local name=$1 machine=$2 part
	shift 2
	[ $# -gt 0 ] || set -- patroni postgres etcd
	for part in "$@"; do
		send "$name" "$machine" "$part"
	done
}

etcd_leader() {
	local n
	for n in $machines; do
		if grep -q '^etcd_server_is_leader 1' <<<"$(curl --silent --max-time 1 "http://$(address "$n"):2379/metrics")"; then
			echo "$n"
			return
		fi
	done
	return 1
}

psql() { # SQL, on the primary
	as_user env PGPASSWORD="$(password SUPERUSER)" psql --quiet --no-psqlrc --set ON_ERROR_STOP=1 \
		--host "$(address "$(machine_that_is primary)")" --username postgres --dbname postgres --tuples-only --no-align --command "$1"
}

url() { # NODE DATABASE
	[ -n "$(psql "SELECT 1 FROM pg_database WHERE datname = '$2'")" ] || psql "CREATE DATABASE $2 OWNER doorward"
	local hosts=$net.2$1:5000
	[ "${HA_VIA:-haproxy}" = haproxy ] || hosts=$(address 1):5432,$(address 2):5432,$(address 3):5432
	echo "postgres://doorward:change-me-5@$hosts/$2?sslmode=disable&target_session_attrs=read-write"
}

up() {
	local n
	for program in etcd patroni haproxy curl psql setpriv "$(postgres_bin)/initdb"; do
		command -v "$program" >/dev/null || {
			echo "$program is missing; on Debian: sudo apt-get install --no-install-recommends patroni etcd-server haproxy curl postgresql" >&2
			return 1
		}
	done
	mkdir -p "$home"
	cp "$here"/*.yml "$here"/*.cfg "$home"
	mkdir -p "$home"/1 "$home"/2 "$home"/3
	[ "$(id -un)" = "$user" ] || chown -R "$user" "$home"
	for n in $machines; do start_etcd "$n"; done
	for n in $machines; do
		start_patroni "$n"
		start_haproxy "$n"
	done
	await_healthy
	psql "CREATE ROLE doorward LOGIN PASSWORD 'change-me-5'"
}

down() {
	local n
	for n in $machines; do
		signal CONT "$n" 2>/dev/null
		signal KILL "$n" patroni 2>/dev/null
	done
	for n in $machines; do
		as_user "$(postgres_bin)/pg_ctl" stop --silent --mode=immediate --pgdata="$home/$n/data" >/dev/null 2>&1 || true
		signal KILL "$n" etcd 2>/dev/null
		[ ! -s "$home/haproxy$n.pid" ] || kill "$(cat "$home/haproxy$n.pid")" 2>/dev/null || true
	done
	rm -rf "$home"
}

verb=${1:?}
shift
case $verb in
up | down | list | switchover | healthy | start | url) "$verb" "$@" ;;
await-healthy) await_healthy ;;
leader) machine_that_is primary ;;
standby) machine_that_is synchronous ;;
etcd-leader) etcd_leader ;;
kill | stop | cont) signal "${verb^^}" "$@" ;;
*)
	sed -n '2,/^set/{/^#/p}' "$0" >&2
	exit 2
	;;
esac
