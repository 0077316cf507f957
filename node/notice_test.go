//go:build linux

package node_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/logtest"
	"github.com/doorward/doorward/internal/waittest"
)

// awaitLine waits for a log line that contains all the words.
func awaitLine(t *testing.T, readLog func() string, words ...string) string {
	t.Helper()
	for deadline := waittest.Deadline(); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		for line := range strings.Lines(readLog()) {
			if hasAll(line, words) {
				return line
			}
		}
	}
	t.Fatalf("no line has %q:\n%s", words, readLog())
	return ""
}

func hasAll(line string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(line, w) {
			return false
		}
	}
	return true
}

// TestRaceLostDatabaseIsLoggedOnce: the log has one line for the database and one for the
// lease, however long the outage lasts.
func TestRaceLostDatabaseIsLoggedOnce(t *testing.T) {
	t.Parallel()
	log := &logtest.Journal{}
	server := doorwardtest.Start(t, doorwardtest.Log(log))
	server.Tenant("Acme") // returns only once there is a lease
	if err := server.Node.DB.Close(); err != nil {
		t.Fatal(err)
	}
	awaitLine(t, log.String, "ERROR", "database lost", "err", "503")
	awaitLine(t, log.String, "WARN", "lease lost")
	for _, message := range []string{"database lost", "lease lost"} {
		if n := strings.Count(log.String(), message); n != 1 {
			t.Errorf("%q is logged %d times", message, n)
		}
	}
}

// TestExhaustedDescriptorsAreLogged: at a limited rate, with advice. net/http retries a
// thousand times, and reports each like an error of a client.
func TestExhaustedDescriptorsAreLogged(t *testing.T) {
	t.Parallel()
	limited := filepath.Join(t.TempDir(), "limited")
	script := "#!/bin/sh\nulimit -n 80\nexec " + builtProgram(t) + " \"$@\"\n"
	if err := os.WriteFile(limited, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	p := serve(t, limited, "sqlite:"+filepath.Join(t.TempDir(), "doorward.db"))
	var taken []net.Conn
	defer func() {
		for _, c := range taken {
			_ = c.Close()
		}
	}()
	for range 100 { // the kernel queues connections that aren't accepted
		c, err := net.Dial("tcp", p.address)
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, c)
	}
	readLog := func() string {
		text, err := os.ReadFile(p.log)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	awaitLine(t, readLog, "ERROR", "connections are not accepted", "too many open files", "80", "LimitNOFILE")
	if n := strings.Count(readLog(), "connections are not accepted"); n > 2 {
		t.Errorf("%d lines in a moment", n)
	}
	for _, c := range taken {
		_ = c.Close()
	}
	taken = nil
	if err := p.waitReady(); err != nil { // it recovers without help
		t.Error(err)
	}
	if metricAt(t, p.url(), "doorward_accept_errors_total") < 1 {
		t.Error("no error is counted")
	}
}
