#!/usr/bin/env bash
# Lints the deployment files without deploying them: the chart, the compose file,
# the Dockerfile, the scripts, the systemd unit, the Debian package, the signature of
# releases, and that Doorward accepts their settings. Every check runs.
set -euo pipefail
cd "$(dirname "$0")/.."

# The maximum exposure by "systemd-analyze security", in tenths. What remains is the network
# (0.5, and 0.2 for any address), being a service at all, and /proc/sys, see the unit.
exposure=12

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
check() { # NAME COMMAND...
	local name=$1
	shift
	"$@" || {
		echo "lint: $name failed" >&2
		failed=1
	}
}

deploylint() { scripts/tool.sh deploylint "$@"; }

# Without the certificate's files, which don't exist here.
accepts() { # FILE
	env -i "$work/doorward" config check --config "$1" --tls-cert= --tls-key= >/dev/null
}

chart_settings() { # VALUES
	deploylint settings deploy/helm "$1" >"$work/settings.yaml" && accepts "$work/settings.yaml"
}

unit() {
	sed "s|/usr/bin/doorward|$work/doorward|; /^User=/d; /^Group=/d" deploy/deb/doorward.service >"$work/doorward.service"
	sed "s|/usr/bin/doorward|$work/doorward|; /^User=/d; /^Group=/d" deploy/deb/doorward-backup.service >"$work/doorward-backup.service"
	cp deploy/deb/doorward-backup.timer "$work"
	systemd-analyze verify --man=no "$work/doorward.service" "$work/doorward-backup.service" "$work/doorward-backup.timer" || return
	for service in doorward doorward-backup; do
		systemd-analyze security --offline=true --no-pager --threshold="$exposure" "deploy/deb/$service.service" >"$work/security" || {
			cat "$work/security" >&2
			return 1
		}
	done
}

# A finding is fixed, or has its reason in deploy/deb/overrides.
package() {
	"$work/doorward" completion bash >"$work/doorward.bash" || return
	SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) scripts/deb.sh "$work/doorward" "$work/doorward.bash" \
		"$(dpkg --print-architecture)" 1.0.0 "$work/doorward.deb" >/dev/null || return
	lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$work/doorward.deb"
}

# The same file gives the same signature, which holds for this file alone.
signature() {
	minisign -G -W -f -p "$work/sign.pub" -s "$work/sign.key" >/dev/null
	echo "checksums" >"$work/sums"
	SIGN_KEY=$work/sign.key scripts/sign.sh "$work/sums" 1.0.0 && cp "$work/sums.minisig" "$work/first" || return
	SIGN_KEY=$work/sign.key scripts/sign.sh "$work/sums" 1.0.0 && cmp "$work/sums.minisig" "$work/first" || return
	minisign -V -q -p "$work/sign.pub" -m "$work/sums" || return
	echo "others" >"$work/sums"
	! minisign -V -q -p "$work/sign.pub" -m "$work/sums" 2>/dev/null
}

CGO_ENABLED=0 go build -ldflags '-s -w' -o "$work/doorward" ./cmd/doorward
check chart deploylint chart deploy/helm deploy/helm/ci/*.yaml
for values in deploy/helm/ci/*.yaml; do
	check "settings of the chart with $values" chart_settings "$values"
done
check "compose file" deploylint compose deploy/compose/compose.yaml
check Dockerfile deploylint dockerfile deploy/container/Dockerfile
check "settings of the package" accepts deploy/deb/doorward.yaml
check shellcheck shellcheck --severity=warning scripts/*.sh deploy/compose/*.sh deploy/ha/*.sh deploy/deb/postinst deploy/deb/prerm deploy/deb/postrm .ci/run
for config in deploy/ha/*.cfg; do
	check "$config" haproxy -c -q -f "$config"
done
check "systemd unit" unit
check "Debian package" package
check "signature of checksums" signature
exit "$failed"
