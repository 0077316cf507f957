package examples_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHAProxy(t *testing.T) {
	haproxy := need(t, "haproxy")
	t.Parallel()
	testGateway(t, open(t, "haproxy", func(t *testing.T, folder string) {
		run(t, folder, haproxy, "-db", "-f", "haproxy.cfg")
	}))
}

// TestHAProxyWithABrokenScript: a failed script must not allow the request. HAProxy treats
// a failed script as completed, and would continue to the service.
func TestHAProxyWithABrokenScript(t *testing.T) {
	haproxy := need(t, "haproxy")
	t.Parallel()
	s := open(t, "haproxy", func(t *testing.T, folder string) {
		file := filepath.Join(folder, "doorward.lua")
		script, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		broken := strings.Replace(string(script), "core.httpclient()", "core.no_such_thing()", 1)
		if broken == string(script) {
			t.Fatal("nothing was broken")
		}
		write(t, file, broken)
		run(t, folder, haproxy, "-db", "-f", "haproxy.cfg")
	})
	for _, role := range roles {
		wantUnavailable(t, s.ask(t, s.people[role].Token(), "GET /reports", ""))
	}
	if got := s.ask(t, "", "GET /problems/forbidden", ""); got.status != http.StatusOK {
		t.Errorf("Doorward's own pages: %d", got.status)
	}
	if lines := s.reached(t); len(lines) > 0 {
		t.Errorf("these reached the service: %q", lines)
	}
}
