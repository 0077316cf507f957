package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestForceResetOfOneWithoutAPassword: it names a command that ends the sessions of this person, not those of everybody.
func TestForceResetOfOneWithoutAPassword(t *testing.T) {
	db, args := openInstallation(t, "sqlite:"+filepath.Join(t.TempDir(), "doorward.db"))
	execSQL(t, db, `INSERT INTO users (id, email, password_hash, created_at) VALUES ('usr_a', 'ann@acme.example', '', 0)`)
	var out bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{"incident", "force-reset", "--user", "ann@acme.example", "--yes"}, args...))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := `"doorward user sign-out ann@acme.example" ends sessions`; !strings.Contains(out.String(), want) {
		t.Errorf("got %q, want %s", out.String(), want)
	}
}
