#!/usr/bin/env bash
# Runs what docs/high-availability.md describes: PostgreSQL under Patroni and etcd,
# three nodes of Doorward, a load of requests, and one failure after the other. It
# prints the table of the guide. It takes about 18 minutes: make ha
#
#   deploy/ha/exercise.sh                 all of it
#   deploy/ha/exercise.sh primary         only failures whose name contains that
#   HA_VIA=hosts deploy/ha/exercise.sh    for comparison: nodes connect to the three
#                                         servers directly instead of to HAProxy
#
# It needs what cluster.sh names, and Go. Everything runs on addresses of loopback
# in a folder of its own, which is removed at the end; after a failure the logs are kept.
set -euo pipefail
cd "$(dirname "$0")/../.."

HA_HOME=$(mktemp -d /tmp/doorward-ha.XXXXXX)
export HA_HOME
chmod 0755 "$HA_HOME"
finish() {
	local code=$?
	[ "$code" = 0 ] || {
		logs=$(mktemp -d)
		cp "$HA_HOME"/*.log "$HA_HOME"/*.md "$logs" 2>/dev/null || true
		for n in 1 2 3; do cp "$HA_HOME/$n/patroni.log" "$logs/patroni$n.log" 2>/dev/null || true; done
		echo "failed; the logs are in $logs" >&2
	}
	deploy/ha/cluster.sh down
}
trap finish EXIT
trap 'exit 1' INT TERM

deploy/ha/cluster.sh up
deploy/ha/cluster.sh list
go test ./node -count=1 -timeout=2h -v -run "TestHighAvailability/.*${1:-}" >"$HA_HOME/test.log" || failed=1
grep -E '^ *--- |stale accepts|only|revocations on nodes' "$HA_HOME/test.log" || true
cat <<-'HEAD'

	| What happens | Checks: longest | all | Gateway | Sign-ins | Sessions | Revocations | False 401 | Stale accepts | Old answers |
	|---|---|---|---|---|---|---|---|---|---|
HEAD
cat "$HA_HOME/table.md"
exit "${failed:-0}"
