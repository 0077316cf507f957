//go:build linux

package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/waittest"
)

// slowClient is a way to hold a connection: the part of a request that is sent at
// once, and the part that follows byte by byte.
type slowClient struct {
	name, begin, drip string
	neverReads        bool // it never reads the answer
}

// slowClients are slow in sending the header of a request, a body that the server
// reads, or bodies that it doesn't read, or in reading the answer.
var slowClients = []slowClient{
	{name: "head", begin: "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", drip: "a"},
	{name: "no head at all"},
	{name: "body", begin: unfinished("POST /api/v2/auth/login"), drip: " "},
	{name: "form", begin: strings.Replace(unfinished("POST /login"), "application/json", "application/x-www-form-urlencoded", 1), drip: "a"},
	{name: "body that nobody reads", begin: unfinished("POST /api/v2/auth/logout"), drip: " "},
	{name: "body for an unknown path", begin: unfinished("POST /no/such/path"), drip: " "},
	{name: "body with a check", begin: unfinished("POST /api/v2/access/check"), drip: " "},
	{name: "chunks", begin: "GET /api/v2/auth/session HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n", drip: "a"},
	{name: "answer", begin: strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 20), neverReads: true},
	{name: "page", begin: strings.Repeat("GET /docs HTTP/1.1\r\nHost: localhost\r\n\r\n", 20), neverReads: true},
}

func unfinished(request string) string {
	return request + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{"
}

// slowConnections is the number of simultaneous connections.
func slowConnections() int { return fulltest.Of(400, 2000) }

// TestSlowConnections: many connections from four clients, each reopened when the
// server ends it (those that never read are held instead), don't disturb other people.
func TestSlowConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	t.Parallel()
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "doorward.db")
	p := serve(t, builtProgram(t), dsn)
	l := newLoad(t, []*process{p}, dsn, 1)
	idle := p.residentKiB(t)
	h := &connections{t: t, address: p.address, ended: map[string]int{}}
	h.hold(slowConnections(), slowClients)
	defer h.release()
	open := h.awaitHeld(p)
	h.checkOthers(t, l)
	p.waitUntil(t, "the server ends every slow request", h.haveAllEnded)
	t.Logf("resident %d KiB before and %d KiB with %d connections, %v goroutines; ended by the server, with the longest wait: %s",
		idle, p.residentKiB(t), open, p.metric(t, "go_goroutines"), h.counts())
	if n := p.metric(t, "doorward_connections_refused_total"); n > 0 {
		t.Errorf("%v connections were refused: each client holds %d", n, slowConnections()/4)
	}
}

// TestSlowReadersAreEnded: a client has 30 s to read an answer.
func TestSlowReadersAreEnded(t *testing.T) {
	fulltest.Only(t, "it takes half a minute; TestSlowConnections shows the other limits")
	p := serve(t, builtProgram(t), "sqlite:"+filepath.Join(t.TempDir(), "doorward.db"))
	h := &connections{t: t, address: p.address, ended: map[string]int{}}
	h.hold(50, slowClients[len(slowClients)-2:]) // those that never read
	defer h.release()
	p.waitUntil(t, "50 slow readers", func() bool { return p.metric(t, "doorward_connections") >= 50 })
	began := time.Now()
	p.waitUntil(t, "the end of slow readers", func() bool { return p.metric(t, "doorward_connections") < 10 })
	t.Logf("slow readers are ended after %v", time.Since(began).Round(time.Second))
}

// connections holds connections of slow clients, and counts those that the server has ended.
type connections struct {
	t       *testing.T
	address string
	stop    context.CancelFunc
	all     sync.WaitGroup

	mu      sync.Mutex
	ended   map[string]int // by the name of the slow client
	longest atomic.Int64   // nanoseconds until the server ended a connection
}

// hold opens n connections, and reopens each whenever it ends.
func (h *connections) hold(n int, clients []slowClient) {
	ctx, stop := context.WithCancel(h.t.Context())
	h.stop = stop
	for i := range n {
		from := &net.TCPAddr{IP: net.IPv4(127, 0, 3, byte(1+i%4))}
		h.all.Go(func() {
			for ctx.Err() == nil {
				h.holdOnce(ctx, from, clients[i%len(clients)])
			}
		})
	}
}

// awaitHeldFor is no limit: a machine that reopens too few connections in it makes a weaker test.
const awaitHeldFor = 30 * time.Second

// awaitHeld waits for all connections at the same time, and returns how many there were:
// fewer if the machine can't reopen them as fast as the server ends them.
func (h *connections) awaitHeld(p *process) (most int) {
	h.t.Helper()
	for end := time.Now().Add(awaitHeldFor); most < slowConnections() && time.Now().Before(end); wait(h.t.Context(), 50*time.Millisecond) {
		most = max(most, int(p.metric(h.t, "doorward_connections")))
	}
	if most < slowConnections()/4 {
		h.t.Fatalf("only %d slow connections at a time: too few to show anything", most)
	}
	return most
}

func (h *connections) release() {
	h.stop()
	h.all.Wait()
}

// holdOnce holds one connection until the server ends it, or the test does.
func (h *connections) holdOnce(ctx context.Context, from net.Addr, s slowClient) {
	dialer := net.Dialer{LocalAddr: from, Control: limitReceiveBuffer}
	conn, err := dialer.DialContext(ctx, "tcp", h.address)
	if err != nil {
		return // the test is over, or no port is free for the moment
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	began := time.Now()
	_, err = io.WriteString(conn, s.begin)
	if s.neverReads {
		<-ctx.Done()
		return
	}
	go drip(ctx, conn, s.drip)
	if err == nil {
		_, err = io.Copy(io.Discard, conn) // until the server ends it
	}
	if ctx.Err() == nil && (err == nil || errors.Is(err, syscall.ECONNRESET)) {
		h.recordEnd(s.name, time.Since(began))
	}
}

func (h *connections) recordEnd(name string, took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended[name]++
	if took.Nanoseconds() > h.longest.Load() {
		h.longest.Store(took.Nanoseconds())
	}
}

// limitReceiveBuffer keeps the kernel from buffering an unread answer.
func limitReceiveBuffer(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
}

// drip sends the text twice a second.
func drip(ctx context.Context, conn net.Conn, text string) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// haveAllEnded reports whether the server has ended connections of each kind that sends
// slowly.
func (h *connections) haveAllEnded() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !slices.ContainsFunc(slowClients, func(s slowClient) bool { return !s.neverReads && h.ended[s.name] < slowConnections()/len(slowClients) })
}

func (h *connections) counts() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprint(h.ended, " ", time.Duration(h.longest.Load()).Round(10*time.Millisecond))
}

// checkOthers checks that another person is served: a login and thirty checks, ten times.
func (h *connections) checkOthers(t *testing.T, l *load) {
	t.Helper()
	var checks, logins []time.Duration
	for range 10 {
		began := l.now()
		s := l.login(0, l.history.people[0])
		if s == nil {
			t.Fatal("nobody can sign in")
		}
		logins = append(logins, l.now()-began)
		for range 30 {
			r := l.check(0, s)
			if r.status != http.StatusOK && r.status != http.StatusForbidden {
				t.Fatalf("a check is answered %d", r.status)
			}
			checks = append(checks, r.to-r.from)
		}
	}
	t.Logf("%d checks took %v in the median and %v at most, %d logins %v and %v",
		len(checks), median(checks), slices.Max(checks), len(logins), median(logins), slices.Max(logins))
}

// residentKiB returns the process's resident memory.
func (p *process) residentKiB(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("no VmRSS in\n%s", text)
	}
	n, _ := strconv.Atoi(string(found[1]))
	return n
}

// metric returns the value of a series at the process.
func (p *process) metric(t *testing.T, series string) float64 {
	t.Helper()
	return metricAt(t, p.url(), series)
}

// waitUntil polls until isDone returns true. The description is for the error.
func (p *process) waitUntil(t *testing.T, description string, isDone func() bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log(p.tail())
		}
	}()
	waittest.Until(t, description, isDone)
}
