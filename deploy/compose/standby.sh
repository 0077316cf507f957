#!/bin/sh
# Copies the primary, the first time, then follows it.
set -eu

if [ ! -s "$PGDATA/PG_VERSION" ]; then
	PGPASSWORD=$(cat /run/secrets/replication)
	export PGPASSWORD
	pg_basebackup --pgdata "$PGDATA" --write-recovery-conf --slot standby --checkpoint fast \
		--dbname 'host=primary user=replication application_name=standby'
	chmod 0700 "$PGDATA"
fi
exec postgres -c listen_addresses='*'
