#!/usr/bin/env bash
# Builds a release in a folder (dist/), reproducibly: the same commit and the same
# version of Go give the same bytes.
#
#   scripts/release.sh [VERSION [FOLDER [packages]]]
#
#   doorward_VERSION_OS_ARCH     static binaries
#   doorward_VERSION_ARCH.deb    Debian packages
#   doorward-VERSION.tgz         the Helm chart
#   doorward-client-VERSION.tgz, doorward-react-VERSION.tgz     clients for npm
#   doorward-VERSION-py3-none-any.whl                           client for pip
#   doorward-go-client-VERSION.zip, doorward-go-VERSION.zip     Go modules: the client, and all else
#   doorward_VERSION.cdx.json    what is in it: a CycloneDX bill of materials
#   SHA256SUMS                   of all these
#   SHA256SUMS.minisig           its signature by minisign, if SIGN_KEY names the secret key
#   container/                   the context of deploy/container/Dockerfile
#
# VERSION is by default that of version.go. With "packages" it makes only those for npm, pip and
# Go. scripts/reproducible.sh makes two releases and compares them.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:-$(sed -n 's/^const Version = "\(.*\)"$/\1/p' version.go)}
version=${version#v}
dist=${2:-dist}
name=doorward_$version

# One time for every file: the commit's.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export TZ=UTC LC_ALL=C
umask 022

rm -rf "$dist"
mkdir -p "$dist/container/state"
dist=$(cd "$dist" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The binary contains no path of this machine (-trimpath), nothing from its C compiler
# (CGO_ENABLED) and nothing from its git (-buildvcs). "go version -m FILE" shows the version of
# Go.
build() { # OS ARCH
	GOCACHE=${BUILD_CACHE:-$(go env GOCACHE)} CGO_ENABLED=0 GOOS=$1 GOARCH=$2 GOFLAGS='' GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT='' \
		go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X main.release=$version" \
		-o "$dist/${name}_$1_$2" ./cmd/doorward
}

deb() { # ARCH
	scripts/deb.sh "$dist/${name}_linux_$1" "$work/doorward.bash" "$1" "$(debian_version)" "$dist/${name}_$1.deb"
}

# In Debian 1.0~rc1 comes before 1.0, and 1.0+3 after it. A version begins with a digit; that
# of a bare commit comes before every release.
debian_version() {
	case $version in
	[0-9]*.*) sed -E 's/-(alpha|beta|rc|dev)/~\1/; s/-/+/g' <<<"$version" ;;
	*) echo "0~${version//-/+}" ;;
	esac
}

# Helm and npm want three numbers.
three_numbers() {
	case $version in
	[0-9]*.[0-9]*.[0-9]*) echo "$version" ;;
	*) echo "0.0.0-$version" ;;
	esac
}

chart() {
	local folder=$work/chart
	mkdir -p "$folder"
	cp -R deploy/helm "$folder/doorward"
	rm -r "$folder/doorward/ci"
	sed -i "s/^version: .*/version: $(three_numbers)/; s/^appVersion: .*/appVersion: \"$version\"/" "$folder/doorward/Chart.yaml"
	tar --create --directory "$folder" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
		--mode=u=rwX,go=rX --format=ustar doorward | gzip --no-name -9 >"$dist/doorward-$version.tgz"
}

# PEP 440 writes 1.0-rc1 as 1.0rc1, and puts what isn't a version after a plus.
python_version() {
	case $version in
	[0-9]*.[0-9]*) sed -E 's/-dev$/.dev0/; s/-(alpha|beta|rc)/\1/; s/-/+/; s/-/./g' <<<"$version" ;;
	*) echo "0.0.0+${version//-/.}" ;;
	esac
}

# sources copies the files of the checkout that are not ignored, with the same modes everywhere. A
# copy without git, as scripts/reproducible.sh makes it, has no others.
sources() {
	mkdir "$work/source"
	{ git ls-files --cached --others --exclude-standard -z 2>/dev/null || find . -type f -print0; } |
		tar --create --null --no-recursion --files-from - | tar --extract --directory "$work/source"
	chmod -R u=rwX,go=rX "$work/source"
}

# The packages for npm and pip. They get their version here: in a checkout it is that of version.go.
clients() {
	local js=$work/source/clients/js python=$work/source/clients/python
	sed -i "s/^  \"version\": \".*\"/  \"version\": \"$(three_numbers)\"/" "$js"/{,react/}package.json
	npm --prefix "$js" pack --silent --pack-destination "$dist" "$js" "$js/react" >/dev/null
	sed -i "s/^version = \".*\"/version = \"$(python_version)\"/" "$python/pyproject.toml"
	env -C "$python" python3 -c 'import backend, sys; backend.build_wheel(sys.argv[1])' "$dist" >/dev/null
}

# The Go modules, as a module proxy has them.
modules() {
	go -C tools run ./modulezip "$work/source/client" "github.com/doorward/doorward/client@v$(three_numbers)" "$dist/doorward-go-client-$version.zip"
	go -C tools run ./modulezip "$work/source" "github.com/doorward/doorward@v$(three_numbers)" "$dist/doorward-go-$version.zip"
}

# The modules that are in the binary, as it records them.
sbom() {
	go -C tools run ./sbom "$dist/${name}_linux_amd64" "$version" "$dist/$name.cdx.json"
}

sources
modules
clients
if [ "${3:-}" = packages ]; then
	exit
fi
for os in linux darwin; do
	for arch in amd64 arm64; do
		build "$os" "$arch"
	done
done
go run -trimpath ./cmd/doorward completion bash >"$work/doorward.bash"
for arch in amd64 arm64; do
	deb "$arch"
	cp "$dist/${name}_linux_$arch" "$dist/container/doorward-linux-$arch"
done
chart
sbom
(cd "$dist" && sha256sum doorward* >SHA256SUMS)
if [ -n "${SIGN_KEY:-}" ]; then
	scripts/sign.sh "$dist/SHA256SUMS" "$version"
fi
echo "$dist:" && ls -l "$dist"
