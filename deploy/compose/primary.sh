#!/bin/sh
# The image of PostgreSQL runs this once, in a new primary: Doorward's database, and
# a synchronous standby.
set -eu

psql --quiet --set ON_ERROR_STOP=1 --username postgres --dbname postgres \
	--set doorward="$(cat /run/secrets/doorward)" --set replication="$(cat /run/secrets/replication)" <<-'EOF'
	CREATE ROLE doorward LOGIN PASSWORD :'doorward';
	CREATE DATABASE doorward OWNER doorward;
	CREATE ROLE replication LOGIN REPLICATION PASSWORD :'replication';
	SELECT pg_create_physical_replication_slot('standby');
	-- While the standby is down nothing is committed, and all requests get 503. To go on without it:
	-- ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf();
	ALTER SYSTEM SET synchronous_standby_names = 'standby';
EOF
echo 'host replication replication all scram-sha-256' >>"$PGDATA/pg_hba.conf"
