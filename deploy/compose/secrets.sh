#!/bin/sh
# Makes the passwords of the compose file, once, in the folder secrets beside
# this script. The mail server's address is yours to write into secrets/smtp;
# until then mails go to the log.
set -eu
umask 077
cd "$(dirname "$0")"
[ ! -e secrets ] || {
	echo "$PWD/secrets is there already; nothing is done." >&2
	exit 1
}

password() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

mkdir secrets
password >secrets/postgres
password >secrets/doorward
password >secrets/replication
printf 'postgres://doorward:%s@primary,standby/doorward?target_session_attrs=read-write' "$(cat secrets/doorward)" >secrets/database
printf 'log:' >secrets/smtp
# Without Swarm a secret is the file itself, and it is read by other users than
# yours: by postgres (999) and by Doorward (65532). The folder keeps it closed.
chmod 0444 secrets/*
