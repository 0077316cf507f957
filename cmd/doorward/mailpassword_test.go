package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/doorward/doorward/internal/smtp/smtptest"
)

// TestPasswordOfTheMailServerIsReadAgain: the mail server gets another password, and the settings, too. A running
// server takes it when the mail server refuses the earlier one, without a signal, and sends the mail then.
func TestPasswordOfTheMailServerIsReadAgain(t *testing.T) {
	mails := smtptest.Start(t, smtptest.Options{User: "app", Password: "second"})
	s := newTestServer(t, program, "sqlite:"+filepath.Join(t.TempDir(), "doorward.db"))
	config := filepath.Join(s.dir, "doorward.yaml")
	write := func(password string) {
		t.Helper()
		if err := os.WriteFile(config, []byte("smtp: smtp://app:"+password+"@"+mails.Addr()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	s.cmd = exec.Command(program, "serve", "--config", config, "--listen", s.addr, "--database", s.dsn, "--log-level", "error")
	s.cmd.Dir = s.dir
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill() })
	s.waitUntil("ready", func() bool {
		status, _, err := s.ask("", http.MethodGet, "/readyz", nil)
		return err == nil && status == http.StatusOK
	})
	write("second")
	if status, answer, err := s.ask("", http.MethodPost, "/api/v2/auth/forgot-password", map[string]string{"email": "owner@acme.example"}); err != nil || status != http.StatusAccepted {
		t.Fatalf("forgot-password: %d %s %v", status, answer, err)
	}
	mails.Wait(t, "owner@acme.example", 1)
	s.kill()
}
