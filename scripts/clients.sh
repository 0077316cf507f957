#!/usr/bin/env bash
# Tests the clients of this repository, which run on servers of their own.
#
#   DOORWARD_TEST_FULL=1    also clients that three generators make from the OpenAPI document:
#                           make clients. Each must compile, and then sign in with a wrong and
#                           with the right password, invite somebody, list the invitations and
#                           more, on a real server. A proxy adds unknown members to the
#                           answers, as a later version may. And pages that Vite and Next.js
#                           build with the packages. And a tenant's sign-on by providers
#                           of other makers: two of OpenID Connect, three of SAML.
#
# Installed packages stay in the user's cache folder, and generated files in
# artifacts/clients, so that only the first run takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
cache=${XDG_CACHE_HOME:-$HOME/.cache}/doorward
out=$root/artifacts/clients

mkdir -p "$out/oapi/api" "$out/ogen/api" "$out/typescript"
go build -o artifacts/doorward ./cmd/doorward
artifacts/doorward openapi >"$out/openapi.json"

# packages FOLDER prints the folder with the npm packages of a lock file. Exactly those are
# installed, and their installation scripts don't run.
packages() {
	local modules
	modules=$cache/npm-$(sha256sum "$1/package-lock.json" | cut -c 1-16)
	if [ ! -d "$modules" ]; then
		mkdir -p "$cache"
		rm -rf "$modules.new"
		mkdir "$modules.new"
		cp "$1/package.json" "$1/package-lock.json" "$modules.new"
		npm ci --prefix "$modules.new" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
		mv "$modules.new" "$modules"
	fi
	echo "$modules/node_modules"
}

# serve starts a server, at $address.
serve() {
	folder=$(mktemp -d)
	trap 'kill "$server" ${proxy:-} 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$folder"' EXIT
	(cd "$folder" && exec "$root/artifacts/doorward" dev --listen localhost:0 --log-level error \
		--password-memory-kib 1024 --password-time 1) >"$folder/stdout" 2>"$folder/log" &
	server=$!
	until address=$(sed -n 's/.* is ready at //p' "$folder/stdout") && [ -n "$address" ]; do
		kill -0 "$server" || { cat "$folder/log" >&2 && exit 1; }
		sleep 0.1
	done
	password=$(sed -n 's/.*password of all four: //p' "$folder/stdout")
}

# add_proxy puts a proxy before the server, at $later.
add_proxy() {
	node tools/clients/testdata/future.mjs "$address" >"$folder/later" &
	proxy=$!
	until later=$(cat "$folder/later") && [ -n "$later" ]; do
		kill -0 "$proxy" || exit 1
		sleep 0.1
	done
}

# test_go_client generates a client, and builds and runs the program that calls the server
# through it.
test_go_client() { # NAME COMMAND...
	cp "tools/clients/testdata/$1/main.go" "$out/$1/main.go"
	(cd "$out" && "${@:2}") >"$out/$1.log" 2>&1 || { cat "$out/$1.log" >&2 && return 1; }
	go -C "$out" build -o "$out/$1/$1" "./$1"
	"$out/$1/$1" "$later" "$password"
	echo "$1: its client compiles and works"
}

# types generates the types of the API, which clients/js has, too.
types() {
	ln -sfn "$(packages tools/clients)" "$out/typescript/node_modules"
	(cd "$out/typescript" && node_modules/.bin/openapi-typescript ../openapi.json --output api.d.ts >/dev/null 2>&1)
	cp "$out/typescript/api.d.ts" "$out/api.d.ts"
}

typescript() {
	cp tools/clients/testdata/calls.ts tools/clients/tsconfig.json tools/clients/package.json "$out/typescript"
	(
		cd "$out/typescript"
		node_modules/.bin/tsc
		node calls.js "$later" "$password"
	)
	echo "openapi-typescript: its types compile and work"
}

javascript() {
	ln -sfn "$(packages clients/js)" clients/js/node_modules
	diff -q "$out/api.d.ts" clients/js/src/api.d.ts || {
		echo "clients/js/src/api.d.ts doesn't match the OpenAPI document: cp artifacts/clients/api.d.ts clients/js/src" >&2
		return 1
	}
	(
		cd clients/js
		node_modules/.bin/tsc
		# By default Node resolves packages from the real folder of a link, which lacks them.
		DOORWARD_BIN=$root/artifacts/doorward node --preserve-symlinks --preserve-symlinks-main --test --test-concurrency=4 --test-timeout=300000 test/*.test.mjs
	)
}

# commands prints each block of a page that is run here, followed by a zero byte.
commands() { # PAGE
	awk '/^```console run by scripts\/clients\.sh/ { inside = 1; next } /^```/ && inside { inside = 0; printf "%c", 0 } inside' "$1"
}

# pip_without_pip makes a pip for machines without one, at the front of PATH: it installs a folder or
# a wheel of ours.
pip_without_pip() {
	mkdir -p "$out/bin"
	cat >"$out/bin/pip" <<-'END'
		#!/usr/bin/env python3
		import os, sys, zipfile
		source = sys.argv[2]
		if os.path.isdir(source):
		    sys.path.insert(0, source)
		    import backend
		    source = backend.build_wheel(".")
		zipfile.ZipFile(source).extractall(os.environ["PIP_TARGET"])
	END
	chmod +x "$out/bin/pip"
	PATH=$out/bin:$PATH
}

# works uses what a block has installed into the folder.
works() {
	[ ! -d node_modules/@doorward ] || {
		ln -s "$(packages "$root/clients/js")/react" node_modules/react
		node fresh.mjs "$address" "$password"
	}
	[ ! -d python ] || PYTHONPATH=python python3 -B fresh.py "$address" "$password"
	! grep -q replace go.mod || go run . "$address" "$password"
}

# The packages of a release and those of a checkout, installed as the pages say, each time into a
# folder that has nothing else, without a network.
fresh() {
	local package page block
	local -A tried=()
	for package in client clients/js clients/js/react clients/python; do
		cmp LICENSE "$package/LICENSE"
	done
	scripts/release.sh "" "$out/release" packages
	local -x npm_config_offline=true npm_config_legacy_peer_deps=true npm_config_ignore_scripts=true npm_config_audit=false npm_config_fund=false npm_config_loglevel=error
	local -x PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_QUIET=1 PIP_TARGET=python
	local -x PYTHONDONTWRITEBYTECODE=1 # in the checkout
	command -v pip >/dev/null || pip_without_pip
	rm -rf "$out/fresh" "$out/doorward"
	ln -s "$root" "$out/doorward"
	for page in docs/install.md clients/js/README.md clients/python/README.md client/README.md; do
		while IFS= read -r -d '' block; do
			[ -z "${tried[$block]:-}" ] || continue
			tried[$block]=1
			rm -rf "$out/fresh"
			mkdir "$out/fresh"
			cp tools/clients/testdata/fresh* "$out"/release/doorward* "$out/fresh"
			(
				cd "$out/fresh"
				echo '{"private": true, "type": "module"}' >package.json
				printf 'module shop.example\n\ngo 1.26.0\n' >go.mod
				if [[ $block == *"npm pack"* ]]; then rm doorward-*.tgz; fi
				export GOWORK=off GOPROXY=off
				bash -euo pipefail -c "$block" >install.log 2>&1 || { echo "$page: $block" >&2 && cat install.log >&2 && exit 1; }
				works
			)
		done < <(commands "$page")
	done
	echo "packages: installed as the pages say, they work in another folder (${#tried[@]} ways)"
}

# simplesamlphp prints the folder of SimpleSAMLphp as Debian packages it. It is unpacked, since to install it would
# start a web server. Nothing, where there is no PHP or no apt-get.
simplesamlphp() {
	local folder=$cache/simplesamlphp
	php -m 2>/dev/null | grep -qx mbstring && command -v apt-get >/dev/null || return 0
	if [ ! -d "$folder" ]; then
		rm -rf "$folder.new"
		mkdir -p "$folder.new"
		(cd "$folder.new" && apt-get download -qq simplesamlphp 2>/dev/null && dpkg-deb -x simplesamlphp_*.deb . && rm simplesamlphp_*.deb) >&2
		mv "$folder.new" "$folder"
	fi
	echo "$folder/usr/share/simplesamlphp"
}

# A tenant's sign-on by the providers of other makers.
providers() {
	node tools/providers/test.mjs "$root/artifacts/doorward" "$(dirname "$(packages tools/providers)")" "$(simplesamlphp)"
}

# The kit for React in a page of Vite, linked as "npm install FOLDER" does, and both packages in an
# application of Next.js, packed as "npm install FILE" unpacks them. The folder of the client's
# tests has a React of its own, which must not be bundled beside that of the page.
frameworks() {
	local modules
	modules=$(packages tools/frameworks)
	rm -rf "$out/vite" "$out/next"
	cp -r tools/frameworks/vite tools/frameworks/next "$out"
	mkdir -p "$out/vite/node_modules/@doorward"
	ln -s "$modules"/* "$out/vite/node_modules"
	ln -s "$root/clients/js/react" "$out/vite/node_modules/@doorward/react"
	(
		cd "$out/vite"
		node node_modules/vite/bin/vite.js build --logLevel error
		node node_modules/vite/bin/vite.js build --logLevel error --ssr server.jsx --outDir server
		node server/server.mjs
	)
	echo "Vite: a page with a linked @doorward/react works"
	cp -al "$modules" "$out/next/node_modules" 2>/dev/null || cp -a "$modules" "$out/next/node_modules" # Next.js follows no link out of its folder
	mkdir -p "$out/next/node_modules/@doorward/client" "$out/next/node_modules/@doorward/react"
	tar -xzf "$out"/release/doorward-client-*.tgz --strip-components 1 -C "$out/next/node_modules/@doorward/client"
	tar -xzf "$out"/release/doorward-react-*.tgz --strip-components 1 -C "$out/next/node_modules/@doorward/react"
	(
		cd "$out/next"
		export NEXT_TELEMETRY_DISABLED=1
		DOORWARD=$address node node_modules/next/dist/bin/next build >build.log 2>&1 || { cat build.log >&2 && exit 1; }
		node test.mjs "$address" "$password"
	)
	echo "Next.js: it renders who is signed in, and checks requests"
}

# -B: no compiled files in the checkout.
python() {
	env -C clients/python DOORWARD_BIN="$root/artifacts/doorward" python3 -B -m unittest --quiet
}

go_clients() {
	test_go_client oapi go tool oapi-codegen -config oapi.yaml openapi.json
	test_go_client ogen go tool ogen -config ogen.yaml -clean -package api -target ogen/api openapi.json
}

# The Go clients and the other one are generated and tested in parallel.
generated() {
	add_proxy
	cp tools/clients/go.mod tools/clients/go.sum tools/clients/*.yaml tools/clients/runtime.go "$out"
	go_clients >"$out/go.log" 2>&1 &
	typescript
	wait $! || { cat "$out/go.log" >&2 && return 1; }
	cat "$out/go.log"
}

serve
types
[ -z "${DOORWARD_TEST_FULL:-}" ] || generated
javascript
python
fresh
[ -z "${DOORWARD_TEST_FULL:-}" ] || frameworks
[ -z "${DOORWARD_TEST_FULL:-}" ] || providers
