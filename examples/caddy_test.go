package examples_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/waittest"
)

func TestCaddy(t *testing.T) {
	caddy := needCaddy(t)
	t.Parallel()
	testGateway(t, open(t, "caddy", func(t *testing.T, folder string) { runCaddy(t, caddy, folder) }))
}

func runCaddy(t *testing.T, caddy, folder string) {
	t.Helper()
	// Caddy keeps its state in the user's home.
	run(t, folder, "env", "HOME="+folder, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", caddy, "run", "--config", "Caddyfile", "--adapter", "caddyfile")
}

// needCaddy returns the path of Caddy. Debian's version passes on headers whose names have
// dots, so Caddy is built from its module, which takes minutes.
func needCaddy(t *testing.T) string {
	t.Helper()
	fulltest.Only(t, "Caddy is built from source, in minutes; TestCaddyRecorded and TestTraefik send such requests, too")
	for _, file := range []string{"go.mod", "go.sum"} { // for go test to know that this depends on them
		if _, err := os.ReadFile("../tools/caddy/" + file); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("../tools/caddy/build.sh").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// recordedCheck has the check that Caddy sends with claimedCheck: its target, Host and the headers
// that describe the client's request.
const recordedCheck = "testdata/caddy-check.txt"

// claimedCheck is the request of a client with the last of claims.
func claimedCheck(host string) string {
	headers := append([]string{"Host: " + host, "Cookie: JSESSIONID={viewer}", "Content-Length: 0"}, claims[len(claims)-1]...)
	return rawRequest("POST /messages/a%20b?c=/d HTTP/1.1", headers...)
}

// TestCaddyRecords: Caddy still sends the check that TestCaddyRecorded sends.
func TestCaddyRecords(t *testing.T) {
	caddy := needCaddy(t)
	t.Parallel()
	want, err := os.ReadFile(recordedCheck)
	if err != nil {
		t.Fatal(err)
	}
	if got := recordCaddy(t, caddy); got != string(want) {
		t.Errorf("Caddy sends the check\n%s\nwant, by %s,\n%s", got, recordedCheck, want)
	}
}

// recordCaddy returns the check that Caddy sends to a server in Doorward's place.
func recordCaddy(t *testing.T, caddy string) string {
	t.Helper()
	checks := make(chan string, 1)
	doorward := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case checks <- describe(r):
		default: // not the first
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(doorward.Close)
	s := &site{test: t, gateway: freeAddress(t)}
	folder := copyExample(t, "caddy", map[string]string{
		gatewayPort: port(s.gateway), doorwardPort: port(doorward.URL), servicePort: port(freeAddress(t)),
	})
	runCaddy(t, caddy, folder)
	waittest.Until(t, "Caddy listens", func() bool { return isListening(s.gateway) })
	s.raw(t, claimedCheck("gateway.example"))
	return <-checks
}

// describe returns a check as it is recorded.
func describe(r *http.Request) string {
	lines := []string{r.Method + " " + r.RequestURI, "Host: " + r.Host}
	for _, name := range []string{
		"Cookie", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Uri", "X-Forwarded-Method",
		"X-Original-Uri", "X-Original-Method",
	} {
		for _, value := range r.Header[name] {
			lines = append(lines, name+": "+value)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestCaddyRecorded sends the check that Caddy was recorded to send: Doorward takes it for the
// client's request, and believes none of its claims.
func TestCaddyRecorded(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(recordedCheck)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{gateway: "gateway.example", server: doorwardtest.Start(t, doorwardtest.BaseURL("http://gateway.example"), doorwardtest.TrustLoopback())}
	s.populate(t)
	viewer := s.people["VIEWER"]
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(text), "{viewer}", viewer.Token())), "\n")
	conn, err := net.Dial("tcp", s.server.Node.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(waittest.Deadline()); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(rawRequest(lines[0]+" HTTP/1.1", append(lines[1:], "Connection: close")...))); err != nil {
		t.Fatal(err)
	}
	got := answers(conn)
	if len(got) != 1 {
		t.Fatalf("%d answers", len(got))
	}
	wantProblem(t, got[0], http.StatusForbidden, "forbidden")
	s.wantRecorded(t, viewer.User, 0, stated{"127.0.0.1", http.MethodPost, "gateway.example", "/messages/a b", ""}, claims[len(claims)-1])
}
