package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// childrenOf returns the processes that a process has started.
func childrenOf(t *testing.T, pid int) (all []int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lists {
		text, _ := os.ReadFile(name) // a thread may have ended
		for field := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, child)
		}
	}
	return all
}

// TestHashProcess: a server hashes in a process of its own, which gets none of the
// server's environment. When that dies a login is unavailable, not refused, and the
// next one succeeds. The process ends with the server.
func TestHashProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	s := newTestServer(t, program, "sqlite:"+filepath.Join(t.TempDir(), "d.db"))
	s.start()
	defer s.kill()
	if s.login("owner@acme.example") == "" {
		t.Fatal("no login")
	}
	processes := childrenOf(t, s.cmd.Process.Pid)
	if len(processes) != 1 {
		t.Fatalf("the server has the processes %v, want one", processes)
	}
	if environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", processes[0])); err != nil || len(environment) > 0 {
		t.Errorf("the environment of the process is %q, %v", environment, err)
	}
	if err := syscall.Kill(processes[0], syscall.SIGTERM); err != nil { // as a supervisor sends it to all
		t.Fatal(err)
	}
	if s.login("owner@acme.example") == "" {
		t.Error("SIGTERM has ended the process before the server")
	}
	if err := syscall.Kill(processes[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	body := map[string]string{"email": "owner@acme.example", "password": password}
	if status, answer, err := s.ask("", http.MethodPost, "/api/v2/auth/login", body); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("a login in the dead process: %d %s, %v, want 503", status, answer, err)
	}
	if s.login("owner@acme.example") == "" {
		t.Error("no login after that")
	}
	processes = childrenOf(t, s.cmd.Process.Pid)
	s.kill()
	for _, pid := range processes {
		s.waitUntil("the end of the process", func() bool { return syscall.Kill(pid, 0) != nil })
	}
}
