package node_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/node"
)

// announcing sets how long the server reports itself as not ready before it stops.
func announcing(d time.Duration) doorwardtest.Option {
	return func(c *node.Config) { c.Announce = d }
}

// rawConn is a connection that the test writes and reads in pieces.
type rawConn struct {
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, s *doorwardtest.Server) rawConn {
	t.Helper()
	c, err := net.Dial("tcp", s.Node.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(waittest.Deadline()); err != nil {
		t.Fatal(err)
	}
	return rawConn{c, bufio.NewReader(c)}
}

func (l rawConn) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(l, strings.ReplaceAll(text, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
}

func (l rawConn) receive(t *testing.T) *http.Response {
	t.Helper()
	res, err := http.ReadResponse(l.in, nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatalf("incomplete answer: %v", err)
	}
	return res
}

func TestRaceDrainAnswersOpenRequests(t *testing.T) {
	t.Parallel()
	s := doorwardtest.Start(t, announcing(30*time.Second)) // time for the requests below
	const healthRequest = "GET /healthz HTTP/1.1\nHost: localhost\n\n"
	underWay, keptAlive, idle, silent := dial(t, s), dial(t, s), dial(t, s), dial(t, s)
	for _, l := range []rawConn{keptAlive, idle} {
		l.send(t, healthRequest)
		if res := l.receive(t); res.StatusCode != http.StatusOK || res.Close {
			t.Fatalf("before: %s, closes %v", res.Status, res.Close)
		}
	}
	underWay.send(t, "POST /api/v2/auth/login HTTP/1.1\nHost: localhost\nContent-Type: application/json\nContent-Length: 42\n")
	stopped := make(chan struct{})
	go func() { defer close(stopped); s.Stop() }()
	waitForReadiness(t, s, "shutting down")

	keptAlive.send(t, healthRequest)
	if res := keptAlive.receive(t); res.StatusCode != http.StatusOK || !res.Close {
		t.Errorf("on a connection kept alive: %s, closes %v, want 200 and a close", res.Status, res.Close)
	}
	newcomer := dial(t, s)
	newcomer.send(t, healthRequest)
	if res := newcomer.receive(t); res.StatusCode != http.StatusOK || !res.Close {
		t.Errorf("on a new connection: %s, closes %v, want 200 and a close", res.Status, res.Close)
	}
	// The request's headers end only now, so that its handler surely runs while the node
	// drains.
	underWay.send(t, "\n"+`{"email":"nobody@acme.example","password":`)
	if res := underWay.receive(t); res.StatusCode != http.StatusBadRequest || !res.Close {
		t.Errorf("an open request: %s, closes %v, want 400 and a close", res.Status, res.Close)
	}
	for name, l := range map[string]rawConn{"idle": idle, "silent": silent} {
		if _, err := l.in.ReadByte(); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the %s connection ends with %v, want its end", name, err)
		}
	}
	<-stopped
	if _, err := http.Get(s.URL + "/healthz"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("afterwards: %v, want a refused connection", err)
	}
}

// TestRaceDrainDropsNoRequest: clients that send requests without a pause, on kept and on new
// connections, always get an answer until the listener is closed.
func TestRaceDrainDropsNoRequest(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux can a listener refuse new connections before it is closed")
	}
	t.Parallel()
	s := doorwardtest.Start(t, announcing(200*time.Millisecond))
	var clients sync.WaitGroup
	var answers atomic.Int64
	for i := range 8 {
		clients.Go(func() {
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
			for {
				res, err := client.Get(s.URL + "/healthz")
				if errors.Is(err, syscall.ECONNREFUSED) {
					return
				}
				if err != nil {
					t.Errorf("dropped: %v", err)
					return
				}
				res.Body.Close()
				answers.Add(1)
			}
		})
	}
	for answers.Load() < 100 {
		<-time.After(time.Millisecond)
	}
	s.Stop()
	clients.Wait()
}

func TestPublicURL(t *testing.T) {
	for listen, want := range map[string]string{
		"localhost:8080":    "http://localhost:8080",
		"10.1.2.3:80":       "http://10.1.2.3",
		"[::1]:8080":        "http://[::1]:8080",
		":8080":             "http://localhost:8080",
		"0.0.0.0:8080":      "http://localhost:8080",
		"[::]:8080":         "http://localhost:8080",
		"door.example:8080": "http://door.example:8080",
	} {
		if got := (node.Config{Listen: listen}).PublicURL().String(); got != want {
			t.Errorf("listening on %s: %s, want %s", listen, got, want)
		}
	}
}

// The address in the log is the one it listens on: without a host, all interfaces.
func TestAddress(t *testing.T) {
	for listen, hosts := range map[string][]string{
		"localhost:0": {"localhost:"}, "127.0.0.1:0": {"127.0.0.1:"}, ":0": {"[::]:", "0.0.0.0:"}, "0.0.0.0:0": {"0.0.0.0:"},
	} {
		got := doorwardtest.Start(t, func(c *node.Config) { c.Listen = listen }).Node.Address()
		isOne := func(host string) bool { return strings.HasPrefix(got, host) }
		if !slices.ContainsFunc(hosts, isOne) || strings.HasSuffix(got, ":0") {
			t.Errorf("asked for %s it says that it listens on %s", listen, got)
		}
	}
}
