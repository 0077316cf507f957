# Longer recipes live in scripts/, one file each.

VULNDB   ?=

.DEFAULT_GOAL := help
.PHONY: help run test test-fast test-all upgrade bench microbench pages e2e lint fmt generate verify vuln build lint-deploy release reproducible ha clients

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## start Doorward on this machine, with a tenant, a person for each role, and mail at /dev/mail
	@echo "Compiling, which takes a minute or more the first time."
	go run ./cmd/doorward dev

test: ## every property, in its short form (installs what it needs)
	scripts/test.sh

test-all: ## the same at full size, before a release: CONTRIBUTING.md lists what it adds
	DOORWARD_TEST_FULL=1 scripts/test.sh

test-fast: ## the tests that need nothing but Go, on SQLite only
	go test -short -ldflags='-s -w' -p $$(($$(getconf _NPROCESSORS_ONLN) + 1)) ./...

upgrade: ## upgrade three nodes from an earlier version to this tree and back, under traffic; FROM=v1.4.2
	scripts/upgrade.sh $(FROM)

bench: ## servers under load, as ratios within one run (some ten minutes)
	go -C bench run .

microbench: ## the benchmarks of packages, with allocations
	go test -run '^$$' -bench . -benchmem ./...
	go -C bench test -run '^$$' -bench . -benchmem ./...

pages: ## every page with canned data in artifacts/pages, for design work and for e2e: hosted/index.html, console/index.html
	scripts/renderpages.sh

e2e: ## the pages in a real Chromium (needs node, npm, chromium); pictures in artifacts/screenshots
	DOORWARD_TEST_FULL=1 scripts/e2e.sh

clients: ## clients that three generators make from the OpenAPI document, on a real server (needs node, npm; the first run takes minutes)
	DOORWARD_TEST_FULL=1 scripts/clients.sh

lint: ## vet, staticcheck, gofumpt, tidy and verified modules, the OpenAPI document
	scripts/lint.sh

fmt: ## format all Go files
	scripts/tool.sh gofumpt -l -w .

generate: ## regenerate the tables in docs and the generated files (needs npm)
	go test -run Golden . ./app/proof ./cmd/doorward ./node ./web -update
	go generate ./...

verify: ## check that generated files, golden files, modules and the OpenAPI document are up to date
	scripts/verify.sh

vuln: ## known vulnerabilities in called code; VULNDB=folder or .tar.gz of the Go vulnerability database
	scripts/vuln.sh $(VULNDB)

build: ## bin/doorward, a static program
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/doorward ./cmd/doorward

lint-deploy: ## lint chart, compose file, Dockerfile, unit, Debian package, scripts (needs shellcheck, haproxy, systemd, lintian, minisign)
	scripts/lint-deploy.sh
	go -C tools/release test ./...

ha: ## three nodes on PostgreSQL under Patroni and etcd, with one fault after the other (some 18 minutes; needs patroni, etcd-server, haproxy)
	deploy/ha/exercise.sh

release: ## dist/: static binaries, Debian packages, chart, bill of materials, checksums; VERSION=1.2.3 SIGN_KEY=FILE
	scripts/release.sh $(VERSION)

reproducible: ## prove that a release built elsewhere has the same bytes (some minutes)
	scripts/reproducible.sh
