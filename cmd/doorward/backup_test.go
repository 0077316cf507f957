package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/fulltest"
)

// writers is how many people run through all operations during the backup.
const writers = 8

// TestBackupWhilePeopleWrite takes backups of a server under load, restores each, and
// checks that everything acknowledged before the backup began is there, and that nothing
// is half done.
func TestBackupWhilePeopleWrite(t *testing.T) {
	if testing.Short() {
		t.Skip("takes several seconds; the session backup.txtar restores one, too")
	}
	t.Parallel()
	rounds := fulltest.Of(2, 4)
	s := newTestServer(t, program, "sqlite:doorward.db")
	s.start()
	alive, stop := context.WithCancel(context.Background())
	var people sync.WaitGroup
	for i := range writers {
		people.Go(func() {
			for n := 0; s.runPerson(alive, &people, fmt.Sprintf("writer%d.%d@acme.example", i, n)); n++ {
			}
		})
	}
	var before []*acknowledged
	for round := range rounds {
		wanted := 8 * (round + 1)
		s.waitUntil("more people", func() bool { return s.acked.size(&s.acked.registered) >= wanted })
		before = append(before, s.acked.copy())
		s.runCommand("backup", fmt.Sprintf("copy%d.db", round))
	}
	stop()
	people.Wait()
	s.shutDown()
	for round, acked := range before {
		s.checkRestored(fmt.Sprintf("copy%d.db", round), acked)
	}
}

// copy returns everything acknowledged so far, without sessions, which a restore ends.
func (l *acknowledged) copy() *acknowledged {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &acknowledged{invited: append([]string(nil), l.invited...), registered: append([]string(nil), l.registered...)}
}

// newCommand returns a command of the program on the server's database.
func (s *testServer) newCommand(args ...string) *exec.Cmd {
	cmd := exec.Command(s.program, append(args, "--database", s.dsn)...)
	cmd.Dir = s.dir
	return cmd
}

func (s *testServer) runCommand(args ...string) {
	s.Helper()
	if out, err := s.newCommand(args...).CombinedOutput(); err != nil {
		s.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// checkRestored restores the backup, starts a server on it, and checks that all of acked is
// there and no session.
func (s *testServer) checkRestored(file string, acked *acknowledged) {
	s.Helper()
	s.dsn = "sqlite:" + file + ".restored"
	s.runCommand("restore", file)
	s.checkConsistent()
	if n := s.count(`SELECT count(*) FROM sessions`); n != 0 {
		s.Errorf("%s: %d sessions are live after the restore", file, n)
	}
	s.start()
	if s.owner = s.login("owner@acme.example"); s.owner == "" {
		s.Fatal("the OWNER can't log in")
	}
	s.checkKept(acked)
	s.shutDown()
}

// TestRestoreKilled: whenever a restore is killed, the database is the old or the new
// one, and the next restore succeeds.
func TestRestoreKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("the session backup.txtar restores, too")
	}
	t.Parallel()
	s := newTestServer(t, program, "sqlite:doorward.db")
	s.runCommand("backup", "copy.db")
	kills := fulltest.Of(6, 24)
	for round := range kills {
		cmd := s.newCommand("restore", "--force", "copy.db")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(120 * time.Millisecond * time.Duration(round+1) / time.Duration(kills))
		cmd.Process.Kill()
		cmd.Wait() // fails unless the restore was complete
		s.checkConsistent()
		s.runCommand("doctor")
	}
	s.runCommand("restore", "--force", "copy.db")
	s.start()
	if s.login("owner@acme.example") == "" {
		t.Error("the OWNER can't log in")
	}
	s.shutDown()
}

// TestBackupOfAnOlderSchema: a backup from before the first migration is refused, unchanged, and
// the message says what to do.
func TestBackupOfAnOlderSchema(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old, err := openSQL("sqlite:old.db", dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = old.Exec(`CREATE TABLE goose_db_version (version_id BIGINT, is_applied BOOLEAN); INSERT INTO goose_db_version VALUES (39, TRUE)`)
	if err := errors.Join(err, old.Close()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "old.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"restore", "--database", "sqlite:new.db", "old.db"},
		{"backup", "verify", "old.db"},
		{"backup", "--database", "sqlite:old.db", "copy.db"},
		{"move", "--from", "sqlite:old.db", "--to", "sqlite:moved.db"},
		{"migrate", "--database", "sqlite:old.db"},
		{"doctor", "--database", "sqlite:old.db"},
		{"serve", "--database", "sqlite:old.db", "--listen", "localhost:0", "--migrate=false"},
	} {
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitUnavailable || !strings.Contains(string(out), "schema 39, older than the 40 that this binary can begin with: start doorward of commit ") {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
	if after, err := os.ReadFile(filepath.Join(dir, "old.db")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has changed, %v", err)
	}
}
