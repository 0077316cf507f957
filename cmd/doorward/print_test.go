package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPrintedSettingsAreAConfiguration: printed settings, read again, print the same.
func TestPrintedSettingsAreAConfiguration(t *testing.T) {
	first := printSettings(t, "--database=sqlite:x.db", "--trusted-proxies=10.0.0.0/8,fd00::/8", "--session-idle=90m",
		"--mail-from=\"Doorward: yes\" <no-reply@localhost>", "--migrate=false", "--tls-key=line\nbreak # no comment")
	file := filepath.Join(t.TempDir(), "again.yaml")
	if err := os.WriteFile(file, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	origin := regexp.MustCompile(`(?m) +# (default|--\S+|\S+ line \d+: \S+)$`)
	if diff := cmp.Diff(origin.ReplaceAllString(first, ""), origin.ReplaceAllString(printSettings(t, "--config="+file), "")); diff != "" {
		t.Errorf("printed, then read and printed again (-first +then):\n%s", diff)
	}
}

// printSettings returns the output of config print --effective.
func printSettings(t *testing.T, flags ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetArgs(append([]string{"config", "print", "--effective"}, flags...))
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPasswordsAreMasked(t *testing.T) {
	const secret = "SESAME"
	for _, c := range []struct{ name, value, want string }{
		{"database", "sqlite:doorward.db", "sqlite:doorward.db"},
		{"database", "postgres://door@db/doorward", "postgres://door@db/doorward"},
		{"database", "postgres://door:SESAME@db/doorward", "postgres://door:********@db/doorward"},
		{"database", "postgresql://door:SES%40AME@db1:5432,db2:5432/doorward", "postgresql://door:********@db1:5432,db2:5432/doorward"},
		{"database", "postgres://:SESAME@db/doorward", "postgres://:********@db/doorward"},
		{"database", "postgres://db/doorward?user=door&password=SESAME&sslmode=require", "postgres://db/doorward?user=door&password=********&sslmode=require"},
		{"database", "postgres://db/doorward?sslmode=require&p%61ssword=SESAME", "postgres://db/doorward?sslmode=require&p%61ssword=********"},
		{"database", "postgres://door:SESAME", masked},
		{"database", "postgres://door:SESAME/x@db/doorward", masked},
		{"database", "mysql://door:SESAME@db/doorward", masked},
		{"smtp", "log:", "log:"},
		{"smtp", "file:mail", "file:mail"},
		{"smtp", "smtp://door:SESAME@mail.example:587?tls=require", "smtp://door:********@mail.example:587?tls=require"},
		{"smtp", "smtp://door:SESAME@mail.example/path", masked},
		{"trace-otlp", "http://door:SESAME@collector:4318", "http://door:********@collector:4318"},
		{"acme-url", "https://door:SESAME@ca.example/directory", "https://door:********@ca.example/directory"},
		{"return-to", "https://app.example.com/?a=b", "https://app.example.com/?a=b"},
		{"mail-from", "Door: <door@example.com>", "Door: <door@example.com>"},
	} {
		got := mask(c.name, c.value)
		if strings.Contains(got, secret) || strings.Contains(got, "AME") { // the end of SES%40AME
			t.Errorf("%s %q is printed as %q, with the secret", c.name, c.value, got)
		}
		if got != c.want {
			t.Errorf("%s %q is printed as %q, want %q", c.name, c.value, got, c.want)
		}
	}
}
