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

// checkIsolated checks that the process has a name of its own, nothing of the server's
// environment, and none of the server's sockets and files in dir.
func checkIsolated(t *testing.T, pid int, dir string) {
	t.Helper()
	readProc := func(name string) string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if environment := readProc("environ"); environment != "" {
		t.Errorf("its environment is %q", environment)
	}
	if name, args := readProc("comm"), readProc("cmdline"); name != "doorward-hash\n" || !strings.HasSuffix(args, "\x00"+hashCommand+"\x00") {
		t.Errorf("it is called %q, with the arguments %q", name, args)
	}
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(open) < 3 {
		t.Errorf("its descriptors are %q, %v", open, err)
	}
	for _, name := range open {
		target, _ := os.Readlink(name)
		if strings.HasPrefix(target, "socket:") || strings.HasPrefix(target, dir) {
			t.Errorf("it has %s open", target)
		}
	}
}

// TestHashProcess: a server hashes in a process of its own, which has nothing of the
// server's. When that dies a login is unavailable, not refused, and the next one
// succeeds. The process ends with the server.
func TestHashProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	dir := t.TempDir()
	s := newTestServer(t, program, "sqlite:"+filepath.Join(dir, "d.db"))
	s.start()
	defer s.kill()
	signal := func(pid int, sent syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(pid, sent); err != nil {
			t.Fatal(err)
		}
	}
	if s.login("owner@acme.example") == "" {
		t.Fatal("no login")
	}
	processes := childrenOf(t, s.cmd.Process.Pid)
	if len(processes) != 1 {
		t.Fatalf("the server has the processes %v, want one", processes)
	}
	checkIsolated(t, processes[0], dir)
	signal(processes[0], syscall.SIGTERM) // as a supervisor sends it to all
	if s.login("owner@acme.example") == "" {
		t.Error("SIGTERM has ended the process before the server")
	}
	signal(processes[0], syscall.SIGKILL)
	body := map[string]string{"email": "owner@acme.example", "password": password}
	if status, answer, err := s.ask("", http.MethodPost, "/api/v2/auth/login", body); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("a login while the process is dead: %d %s, %v, want 503", status, answer, err)
	}
	if s.login("owner@acme.example") == "" {
		t.Error("no login after that")
	}
	processes = childrenOf(t, s.cmd.Process.Pid)
	if len(processes) != 1 {
		t.Errorf("the server has the processes %v, want one", processes)
	}
	s.kill()
	for _, pid := range processes {
		s.waitUntil("the end of the process", func() bool {
			_, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // an error for a zombie, too
			return err != nil
		})
	}
}
