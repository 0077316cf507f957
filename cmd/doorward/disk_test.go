//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/pgtest"
)

// onSmallDisk runs the test again in a process with a small disk of its own: a private tmpfs
// of this size, which ends with the process. In that process it returns the folder on the
// disk, in this one an empty string. Without root it needs unprivileged user namespaces.
func onSmallDisk(t *testing.T, mebibytes int) string {
	t.Helper()
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	t.Parallel()
	if folder := os.Getenv(diskFolder); folder != "" {
		return folder
	}
	folder := t.TempDir()
	script := fmt.Sprintf(`mount -t tmpfs -o size=%dm,mode=755 doorward "$0" && exec "$@"`, mebibytes)
	args := []string{"--mount"}
	if os.Getuid() != 0 {
		args = append(args, "--map-root-user")
	}
	if err := os.Chmod(filepath.Dir(folder), 0o711); err != nil { // for the user of PostgreSQL
		t.Fatal(err)
	}
	if out, err := exec.Command("unshare", append(slices.Clone(args), "true")...).CombinedOutput(); err != nil {
		t.Skipf("no namespaces available: %v\n%s", err, out)
	}
	args = append(args, "sh", "-c", script, folder, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	cmd := exec.Command("unshare", args...)
	cmd.Env = append(os.Environ(), diskFolder+"="+folder)
	out, err := cmd.CombinedOutput()
	t.Logf("on a disk of %d MiB:\n%s", mebibytes, out)
	if err != nil {
		t.Fatal(err)
	}
	return ""
}

// fillDisk fills the disk to the last byte. free frees that space again.
func fillDisk(t *testing.T, folder string) (free func()) {
	t.Helper()
	name := filepath.Join(folder, "ballast")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}

// The database's disk is full under load: writes are 503, reads continue, and once
// there is space again everything recovers without help.

func TestDiskFullOnSQLite(t *testing.T) {
	if folder := onSmallDisk(t, 24); folder != "" {
		fillAndRecover(t, "sqlite:"+filepath.Join(folder, "doorward.db"), folder, 1)
	}
}

// On PostgreSQL the tables and indexes are on the full disk, but not the WAL, because a
// full WAL ends the server.
func TestDiskFullOnPostgres(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("PostgreSQL runs as a user of its own, which takes root")
	}
	if folder := onSmallDisk(t, 8); folder != "" {
		dsn := pgtest.Start(t).DSN(t) // this one sees the disk, which only this process and its children do
		keepTablesIn(t, dsn, filepath.Join(folder, "tables"))
		// A single row still fits into a page that PostgreSQL has allocated.
		fillAndRecover(t, dsn, folder, 50)
	}
}

// keepTablesIn makes the tables of an empty database in a folder.
func keepTablesIn(t *testing.T, dsn, folder string) {
	t.Helper()
	db, err := openSQL(dsn, "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var name, data string
	err = db.QueryRow(`SELECT current_database(), current_setting('data_directory')`).Scan(&name, &data)
	if err == nil {
		err = mkdirForOwnerOf(data, folder)
	}
	if err == nil {
		_, err = db.Exec(`CREATE TABLESPACE small LOCATION '` + folder + `'`)
	}
	if err == nil {
		_, err = db.Exec(`ALTER DATABASE ` + name + ` SET default_tablespace = small`)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func mkdirForOwnerOf(other, folder string) error {
	info, err := os.Stat(other)
	if err == nil {
		err = os.Mkdir(folder, 0o700)
	}
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	return os.Chown(folder, int(owner.Uid), int(owner.Gid))
}

// fillAndRecover fills the disk of a server under load, checks its answers, frees the disk,
// and checks that nothing acknowledged was lost. It invites atOnce people in one request,
// more than fit on the full disk.
func fillAndRecover(t *testing.T, dsn, folder string, atOnce int) {
	s := newTestServer(t, program, dsn)
	s.start()
	s.runPeople(func() bool { return s.acked.size(&s.acked.open) >= 10 })
	session := s.acked.open[0]
	free := fillDisk(t, folder)
	s.runPeople(s.untilRefused(atOnce))
	checks := s.checkAccess(session)
	invitedBefore := s.acked.size(&s.acked.invited)
	free()
	began := time.Now()
	s.waitUntil("writes again", func() bool { return s.invite(fmt.Sprintf("room%d@acme.example", time.Now().UnixNano())) })
	t.Logf("writes again %v after space was freed; checks: %s", time.Since(began).Round(time.Millisecond), checks)
	s.runPeople(func() bool { return s.acked.size(&s.acked.invited) >= invitedBefore+10 })
	s.checkKept(s.acked)
	s.kill()
	s.start()
	s.checkKept(s.acked)
	s.shutDown()
	s.checkConsistent()
	s.start("--clock-offset", "3m") // expires the mail attempts that the full disk interrupted
	s.checkDelivered(s.acked.invited)
	s.shutDown()
	t.Logf("acknowledged and kept: %d invitations, %d registrations, %d sessions", len(s.acked.invited), len(s.acked.registered), len(s.acked.open))
}

// runPeople runs four people at a time until enough returns true.
func (s *testServer) runPeople(enough func() bool) {
	s.Helper()
	alive, stop := context.WithCancel(s.Context())
	defer stop()
	var people sync.WaitGroup
	for i := range 4 {
		people.Go(func() {
			for n := 0; alive.Err() == nil; n++ {
				s.runPerson(alive, &people, fmt.Sprintf("full%d.%d.%d@acme.example", time.Now().UnixNano(), i, n))
			}
		})
	}
	s.waitUntil("enough was done", enough)
	stop()
	people.Wait()
}

// untilRefused returns a condition to poll: three requests in a row, each with atOnce
// invitations, were answered 503. Each poll sends one.
func (s *testServer) untilRefused(atOnce int) func() bool {
	times := 0
	return func() bool {
		var offers []map[string]string
		for i := range atOnce {
			offers = append(offers, map[string]string{"email": fmt.Sprintf("late%d.%d@acme.example", time.Now().UnixNano(), i), "role": "USER"})
		}
		if status := s.inviteAll(offers); status == http.StatusServiceUnavailable {
			times++
			return times >= 3
		}
		times = 0
		for _, o := range offers {
			s.acked.note(&s.acked.invited, o["email"])
		}
		return false
	}
}

func (s *testServer) inviteAll(offers []map[string]string) int {
	s.Helper()
	status, answer, err := s.ask(s.owner, http.MethodPost, "/api/v2/auth/invite/bulk", map[string]any{"invitations": offers})
	if err != nil || status != http.StatusOK && status != http.StatusServiceUnavailable {
		s.Fatalf("%d invitations: %d %.300s %v", len(offers), status, answer, err)
	}
	return status
}

// checkAccess checks a session for longer than a node may answer from memory, and that the
// node is ready. It returns the statuses of the checks and of a login, for the log. On a busy
// machine a check may get 503 because the database isn't read in time; so a hundred in a row must
// be answered at some time.
func (s *testServer) checkAccess(session string) string {
	s.Helper()
	statuses := map[int]int{}
	pause := time.NewTicker(4 * time.Millisecond) // without it, this would take most of the CPU of the test
	defer pause.Stop()
	check := func() int {
		status, _, err := s.ask(session, http.MethodGet, "/api/v2/access/check?action=message.read", nil)
		if err != nil {
			s.Error(err)
		}
		statuses[status]++
		return status
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); <-pause.C {
		check()
	}
	inARow := 0
	s.waitUntil("a hundred checks in a row are answered", func() bool {
		if inARow++; check() != http.StatusOK {
			inARow = 0
		}
		return inARow == 100
	})
	if len(statuses) > 2 || len(statuses) == 2 && statuses[http.StatusServiceUnavailable] == 0 {
		s.Errorf("checks on a full disk are answered %v", statuses)
	}
	ready, _, err := s.ask("", http.MethodGet, "/readyz", nil)
	if err != nil || ready != http.StatusOK {
		s.Errorf("/readyz is %d %v: a restart would not help", ready, err)
	}
	login, _, err := s.ask("", http.MethodPost, "/api/v2/auth/login", map[string]string{"email": "owner@acme.example", "password": password})
	return fmt.Sprintf("checks were answered %v, a login %d %v", statuses, login, err)
}

// TestDoctorFindsAReadOnlyDisk: the file system of SQLite became read-only, as after a fault of the disk.
func TestDoctorFindsAReadOnlyDisk(t *testing.T) {
	folder := onSmallDisk(t, 24)
	if folder == "" {
		return
	}
	dsn := "sqlite:" + filepath.Join(folder, "doorward.db")
	createInstallation(t, dsn)
	if out, err := exec.Command("mount", "-o", "remount,ro", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkDoctorFails(t, []string{"--database", dsn}, "FAIL  database       ", "read-only", "may read and write the file and its folder")
}
