#!/bin/sh
# Creates the passwords and the master key of the compose file, once, in the folder
# secrets beside this script. Write the mail server's URL into secrets/smtp; until then
# mails go to the log.
set -eu
umask 077
cd "$(dirname "$0")"
[ ! -e secrets ] || {
	echo "$PWD/secrets exists already; nothing was changed." >&2
	exit 1
}

password() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

mkdir secrets
password >secrets/postgres
password >secrets/doorward
password >secrets/replication
printf 'postgres://doorward:%s@primary,standby/doorward?target_session_attrs=read-write' "$(cat secrets/doorward)" >secrets/database
printf 'log:' >secrets/smtp
# The master key, for second factors, webhooks and assertions (docs/rotate.md). Keep a
# copy in another place.
head -c 32 /dev/urandom | base64 >secrets/master
# Without Swarm a secret is the file itself, with the owner and mode that it has
# here. PostgreSQL's are read by its own user (999); the folder's mode protects
# them.
chmod 0444 secrets/postgres secrets/doorward secrets/replication
# Doorward refuses a secret that others may read, so it runs as the owner of its
# secrets: if root runs this script they get the image's user, else it runs as you.
# In rootless Docker or Podman your own user is root inside the container: write
# DOORWARD_USER=0:0 into .env.
chmod 0600 secrets/database secrets/smtp secrets/master
if [ "$(id -u)" = 0 ]; then
	chown 65532:65532 secrets/database secrets/smtp secrets/master
else
	echo "DOORWARD_USER=$(id -u):$(id -g)" >>.env
fi
