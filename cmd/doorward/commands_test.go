package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/doctest"
	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/installed"
	"github.com/doorward/doorward/internal/pgtest"
)

// TestCommandsPage runs each line of docs/commands.md, and so each example of --help, in a
// copy of an installation.
func TestCommandsPage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three dozen commands; make test runs them")
	}
	installed.Program(t, "bash", "bash")
	f := newPageFixture(t)
	for _, block := range doctest.Read(t, "../../docs/commands.md") {
		for line := range strings.Lines(block.Script) {
			f.runLine(t, block.Position, line)
		}
	}
}

// pageFixture is an installation to copy, with the ids and the database that take the place
// of those in the examples.
type pageFixture struct {
	folder, tenant, webhook, delivery, postgres string
}

// hold makes another tenant the holder of a domain, as a proof does.
func (f *pageFixture) hold(t *testing.T, domain string) {
	t.Helper()
	db, err := openSQL("sqlite:doorward.db", f.folder)
	if err == nil {
		_, err = db.Exec(`INSERT INTO tenants (id, name, status, created_at) VALUES ('tnt_other', 'Globex', 'active', 0)`)
	}
	if err == nil {
		_, err = db.Exec(`INSERT INTO domains (id, tenant_id, domain, status, token, created_at, verified_at) VALUES ('dom_x', 'tnt_other', $1, 'verified', 'x', 0, 0)`, domain)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
}

const peopleCSV = "email,role,name\nowner@acme.example,OWNER,Olga\nann@acme.example,USER,Ann\n"

// newPageFixture makes Acme with two people, and the files, keys and webhook that the examples
// name.
func newPageFixture(t *testing.T) *pageFixture {
	t.Helper()
	f := &pageFixture{folder: t.TempDir(), postgres: pgtest.DSN(t)}
	writeFile(t, f.folder, "people.csv", peopleCSV)
	f.run(t, "doorward tenant create --name Acme --owner-email first@acme.example --smtp file:mail")
	f.tenant = regexp.MustCompile("tnt_[a-z2-7]{26}").FindString(f.run(t, "doorward tenant list"))
	f.run(t, "doorward user import people.csv --tenant "+f.tenant)
	f.webhook = regexp.MustCompile("whk_[a-z2-7]{26}").FindString(f.run(t, "doorward webhook create --url http://localhost:1/doorward --events '*'"))
	f.run(t, "doorward key create-operator --name signup-2026") // the webhook gets the event
	f.delivery = regexp.MustCompile("whd_[a-z2-7]{26}").FindString(f.run(t, "doorward webhook deliveries "+f.webhook))
	f.run(t, "doorward key create-service --name router --may access.introspect")
	f.run(t, "mkdir -p backups/doorward && doorward backup backups/doorward.db && doorward audit verify > yesterday.txt")
	f.run(t, "cp -p doorward.db.key master.key") // the webhook's secret is sealed with it
	f.hold(t, "acme.example")
	writeFile(t, f.folder, "model.yaml", "actions:\n  invoice.approve: {roles: [OWNER, ADMIN]}\n")
	writeFile(t, f.folder, "doorward.yaml", "smtp: file:mail\n")
	writeFile(t, f.folder, "breached.txt", "swordfish\n")
	writeFile(t, f.folder, "secret", "sqlite:doorward.db")
	writeFile(t, f.folder, "people.csv", strings.NewReplacer("owner@", "bob@", "ann@", "eve@").Replace(peopleCSV))
	writeFile(t, f.folder, "people.jsonl", `{"email": "eve@acme.example", "role": "USER"}`+"\n")
	return f
}

// run runs a command in the installation. TestMain has put doorward first on $PATH.
func (f *pageFixture) run(t *testing.T, command string) string {
	t.Helper()
	cmd := exec.Command("bash", "-euc", command)
	cmd.Dir = f.folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// runLine runs a line in a copy of the installation, after what the line needs, such as a
// server.
func (f *pageFixture) runLine(t *testing.T, place, line string) {
	t.Helper()
	addr, other, folder := freeport.AddressOn("localhost"), freeport.AddressOn("localhost"), t.TempDir()
	if strings.Contains(line, "doorward move") { // its target must be empty
		f.postgres = pgtest.DSN(t)
	}
	if err := os.CopyFS(folder, os.DirFS(f.folder)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"secret", "master.key", "doorward.db.key"} { // CopyFS makes them readable for everybody
		if err := os.Chmod(filepath.Join(folder, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runner := doctest.Runner{Dir: folder, Env: []string{"DOORWARD_LISTEN=" + addr}, Rewrite: strings.NewReplacer(
		"localhost:8080", addr, "localhost:9090", other, "https://hooks.example.com", "http://localhost:1", "/var/backups/", "backups/", "/var/lib/doorward/", "", " | vector", "", "journalctl -u doorward -o cat --since -1h |", "echo serving |", "/etc/doorward/", "", "/etc/", "", "/run/secrets/database", "secret",
		"https://platform.example/reports --session-file token", "http://"+addr+"/api/v2/auth/session", // no gateway runs here: ask Doorward, without a session
		"tnt_7vkq2m5x3yh4n6rj7wd2c5tpae", f.tenant, "whk_5tqm7x3yh4n6rj7wd2c5tpae7k", f.webhook, "whd_5tqm7x3yh4n6rj7wd2c5tpae7k", f.delivery,
		"postgres://doorward@db1,db2/doorward", f.postgres, "postgres://doorward@db/doorward", f.postgres,
	).Replace}
	block := doctest.Block{Position: place, Script: line}
	switch {
	case strings.Contains(line, "doorward serve"):
		block.Background, block.HasOutput, block.Output = true, true, `{…"msg":"serving",…}`+"\n"
	case strings.Contains(line, "doorward dev"):
		block.Background, block.HasOutput, block.Output = true, true, "Doorward … is ready at …\n"
	case strings.Contains(line, "audit export --follow"):
		block.Background, block.HasOutput, block.Output = true, true, `{…"action":"tenant.create",…}`+"\n"
	case strings.Contains(line, "doorward healthcheck"):
		runner.Run(t, doctest.Block{Position: place, Script: "doorward serve", Background: true, HasOutput: true, Output: `{…"msg":"serving",…}` + "\n"})
	case strings.Contains(line, "key rotate-signing"):
		serve := "doorward serve --assertion-audience https://messages.example.com"
		runner.Run(t, doctest.Block{Position: place, Script: serve, Background: true, HasOutput: true, Output: `{…"msg":"serving",…}` + "\n"})
	case strings.Contains(line, "key enable-service"): // a restore disables the key first
		runner.Run(t, doctest.Block{Position: place, Script: "doorward restore --force backups/doorward.db"})
	case strings.Contains(line, "doorward doctor gateway"):
		serve := "doorward serve --base-url http://" + addr + " --admin-listen " + other
		runner.Run(t, doctest.Block{Position: place, Script: serve, Background: true, HasOutput: true, Output: `{…"msg":"serving",…}` + "\n"})
	case strings.Contains(line, "key replace-master"): // a lost one
		remove(t, filepath.Join(folder, "master.key"))
		remove(t, filepath.Join(folder, "doorward.db.key"))
	case strings.Contains(line, "key create-master"):
		remove(t, filepath.Join(folder, "master.key"))
	case strings.Contains(line, "model show --version"):
		runner.Run(t, doctest.Block{Position: place, Script: "doorward model apply model.yaml && sed -i s/ADMIN/ADMIN,USER/ model.yaml && doorward model apply model.yaml"})
	case strings.Contains(line, "tenant restore"):
		runner.Run(t, doctest.Block{Position: place, Script: "doorward tenant close " + f.tenant})
	case strings.Contains(line, "doorward backup /"):
		remove(t, filepath.Join(folder, "backups/doorward.db"))
	case strings.Contains(line, "doorward restore /"):
		remove(t, filepath.Join(folder, "doorward.db"))
	}
	runner.Run(t, block)
}

func remove(t *testing.T, file string) {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}
