//go:build linux

package node_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/logtest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/web/routetest"
)

// junkRequests is the number of requests.
func junkRequests() int { return fulltest.Of(2000, 100_000) }

// junk makes the bytes for one connection. token is a session.
type junk func(r *rand.Rand, token string) []byte

// junks has a generator for each kind of junk. Each piece has its own seed.
var junks = map[string]junk{
	"bytes": func(r *rand.Rand, _ string) []byte { return randomBytes(r, 1+r.IntN(4096)) },
	"bytes in a head": func(r *rand.Rand, _ string) []byte {
		return fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", randomBytes(r, 1+r.IntN(500)))
	},
	"a long head": func(r *rand.Rand, _ string) []byte { return get("/healthz", "X-Long: "+word(r, 64<<10)) },
	"many headers": func(r *rand.Rand, _ string) []byte {
		return get("/healthz", strings.Repeat(word(r, 3)+": a\r\n", 4000)+"X: y")
	},
	"a long path": func(r *rand.Rand, _ string) []byte { return get("/"+word(r, 20<<10), "") },
	"odd paths":   func(r *rand.Rand, token string) []byte { return get(oddPath(r), sessionCookie(token)) },
	"odd methods": func(r *rand.Rand, token string) []byte {
		return rawRequest(pick(r, "get", "PRI", "CONNECT", "TRACE", "OPTIONS", word(r, 9)), target(r), sessionCookie(token), "")
	},
	"odd versions": func(r *rand.Rand, _ string) []byte {
		return fmt.Appendf(nil, "GET / %s\r\nHost: x\r\nConnection: close\r\n\r\n", pick(r, "HTTP/0.9", "HTTP/1.7", "HTTP/3.0", "HTTP/1.1/1", ""))
	},
	"no host, or two": func(r *rand.Rand, _ string) []byte {
		return fmt.Appendf(nil, "GET / HTTP/1.1\r\n%sConnection: close\r\n\r\n", pick(r, "", "Host: a\r\nHost: b\r\n", "Host: a b\r\n"))
	},
	"odd chunks":  oddChunks,
	"odd lengths": oddLengths,
	"a large body": func(r *rand.Rand, token string) []byte {
		return post(target(r), sessionCookie(token), `{"email":"`+word(r, 70_000)+`"}`)
	},
	"odd JSON": func(r *rand.Rand, token string) []byte { return post(target(r), sessionCookie(token), oddJSON(r)) },
	"deep JSON": func(r *rand.Rand, token string) []byte {
		return post(target(r), sessionCookie(token), strings.Repeat(pick(r, "[", `{"a":`), 5000))
	},
	"JSON bytes changed": func(r *rand.Rand, token string) []byte {
		return post(target(r), sessionCookie(token), corrupt(r, `{"email":"ann@acme.example","password":"four quiet","role":"USER"}`))
	},
	"odd types": func(r *rand.Rand, token string) []byte {
		return rawRequest("POST", target(r), sessionCookie(token)+"\r\nContent-Type: "+word(r, 40)+"\r\nContent-Encoding: gzip", "{}")
	},
	"odd forms": func(r *rand.Rand, _ string) []byte {
		return rawRequest("POST", pick(r, "/login", "/forgot", "/accept", "/reset"), "Content-Type: application/x-www-form-urlencoded", oddForm(r))
	},
	"odd credentials": func(r *rand.Rand, _ string) []byte {
		return get(target(r), pick(r, "Authorization: Bearer ", "Authorization: ", "Cookie: JSESSIONID=", "Cookie: ")+word(r, r.IntN(3000)))
	},
	"odd queries": func(r *rand.Rand, token string) []byte { return get(target(r)+"?"+oddQuery(r), sessionCookie(token)) },
	"odd proxies": func(r *rand.Rand, token string) []byte {
		return get(target(r), sessionCookie(token)+"\r\nX-Forwarded-For: "+word(r, 900)+"\r\nX-Request-Id: "+word(r, 300))
	},
	"a body cut short": func(r *rand.Rand, token string) []byte {
		return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: localhost\r\n%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", target(r), sessionCookie(token), 2+r.IntN(70_000))
	},
	"TLS": func(r *rand.Rand, _ string) []byte {
		return append([]byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01}, randomBytes(r, 512)...)
	},
	"HTTP/2": func(r *rand.Rand, _ string) []byte {
		return append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), randomBytes(r, 64)...)
	},
}

// targets are pages, an unknown path, and the paths of the API except the one that would end the
// session.
var targets = append(
	[]string{"/", "/docs", "/login", "/console", "/account", "/openapi.json", "/healthz", "/nothing"},
	routetest.Paths("/api/v2/auth/logout")...,
)

func target(r *rand.Rand) string { return pick(r, targets...) }

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// word returns printable characters, including those with a meaning in URLs, JSON and HTTP, but
// no colon: it would end the name of a header.
func word(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('!' + r.IntN('~'-'!'))
	}
	return strings.ReplaceAll(string(b), ":", ";")
}

func sessionCookie(token string) string { return "Cookie: JSESSIONID=" + token }

// rawRequest returns a request that closes its connection.
func rawRequest(method, path, headers, body string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", method, path)
	if headers != "" {
		out.WriteString(headers + "\r\n")
	}
	if body != "" {
		fmt.Fprintf(&out, "Content-Length: %d\r\n", len(body))
	}
	out.WriteString("\r\n" + body)
	return out.Bytes()
}

func get(path, headers string) []byte { return rawRequest(http.MethodGet, path, headers, "") }

func post(path, headers, body string) []byte {
	return rawRequest(http.MethodPost, path, headers+"\r\nContent-Type: application/json", body)
}

func oddPath(r *rand.Rand) string {
	path := target(r)
	for range 1 + r.IntN(4) {
		at := r.IntN(len(path) + 1)
		path = path[:at] + pick(r, "%00", "%", "%zz", "..", "/../", "//", "\x00", "%2e%2e%2f", "%c0%ae", "\\", ";a=b", "#", "%ff", "é", "*", "%0d%0aX: y") + path[at:]
	}
	return path
}

func oddQuery(r *rand.Rand) string {
	var all []string
	for range 1 + r.IntN(5) {
		all = append(all, pick(r, "cursor", "limit", "action", "role", "from", "until", "format", "email", word(r, 5))+"="+pick(r, "", "-1", "99999999999999999999", "%00", "%ff", "'", "\"", "null", "message.read", word(r, 60)))
	}
	return strings.NewReplacer(" ", "", "#", "").Replace(strings.Join(all, "&"))
}

func oddForm(r *rand.Rand) string {
	return pick(r, "email=", "password=", "%zz=", "token=", "=&=&", word(r, 3)+"=") + pick(r, "%00", "%ff%fe", strings.Repeat("a", 5000), "a%26b", word(r, 200)) + "&password=%"
}

func oddJSON(r *rand.Rand) string {
	return pick(
		r, "", "null", "[]", "0", `"`, "{", `{"email":1e999}`, `{"email":"a","email":"b"}`, `{"":""}`, `{"email":"\ud800"}`, "{\"email\":\"\xff\"}", `{"email":null,"password":[]}`,
		`{"email":"a@b.example","password":"`+strings.Repeat("p", 5000)+`"}`, `{"expiresInDays":99999999999999999999999999}`, "\ufeff{}", "{}{}", `{"invitations":[`+strings.Repeat("{},", 3000)+"{}]}",
		`{"token":"`+word(r, 43)+`"}`, `{"locale":"`+word(r, 20)+`"}`, string(randomBytes(r, 200)),
	)
}

func corrupt(r *rand.Rand, text string) string {
	b := []byte(text)
	for range 1 + r.IntN(3) {
		b[r.IntN(len(b))] = byte(r.Uint32())
	}
	return string(b)
}

func oddChunks(r *rand.Rand, token string) []byte {
	body := pick(r, "zz\r\n", "-1\r\nabc\r\n", "fffffffffffffffff\r\n", "3;"+word(r, 5000)+"\r\nabc\r\n0\r\n\r\n", "1\r\na0\r\n\r\n", "0\r\nTrailer: a\r\nX: "+word(r, 30)+"\r\n\r\n", "\r\n")
	return append(rawRequest("POST", target(r), sessionCookie(token)+"\r\nContent-Type: application/json\r\nTransfer-Encoding: "+pick(r, "chunked", "chunked, chunked", "gzip, chunked", "identity", "\tchunked"), ""), body...)
}

func oddLengths(r *rand.Rand, token string) []byte {
	length := pick(r, "-1", "99999999999999999999", "+5", "5, 5", "5\r\nContent-Length: 6", "5\r\nTransfer-Encoding: chunked", "0x5", "")
	return append(rawRequest("POST", target(r), sessionCookie(token)+"\r\nContent-Type: application/json\r\nContent-Length: "+length, ""), "{} {}"...)
}

// junkSender sends junk to a server, each piece on a connection of its own.
type junkSender struct {
	*doorwardtest.Server
	t     *testing.T
	token string

	mu     sync.Mutex
	status map[int]int // how often; 0: closed without an answer
}

// sendAll sends n pieces, eight at a time.
func (b *junkSender) sendAll(seed, n int) {
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := worker; i < n; i += 8 {
				b.sendOne(rand.New(rand.NewPCG(uint64(seed), uint64(i))))
			}
		})
	}
	all.Wait()
}

func (b *junkSender) sendOne(r *rand.Rand) {
	name := kinds[r.IntN(len(kinds))]
	sent := junks[name](r, b.token)
	status, err := b.send(r, sent)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status[status]++
	switch {
	case err != nil:
		b.t.Errorf("%s: %v\n%.300q", name, err, sent)
	case status == http.StatusServiceUnavailable && b.Shortages() > 0: // the machine is busy
	case status >= 500 && status != http.StatusNotImplemented && status != http.StatusHTTPVersionNotSupported:
		// net/http answers these two for transfer codings and versions.
		b.t.Errorf("%s is answered %d\n%.300q", name, status, sent)
	}
}

// send returns the status of the answer, 0 for none. Unless the text asks for "Connection:
// close", it closes its side, so that the server doesn't wait for more. After a complete
// request that would mean that the client has left.
func (b *junkSender) send(r *rand.Rand, text []byte) (int, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(r.Uint32()), byte(1+r.IntN(250)))}}
	conn, err := dialer.Dial("tcp", b.Node.Address())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(waittest.Deadline())
	_, _ = conn.Write(text) // the server may close the connection before the end
	if !bytes.Contains(text, []byte("Connection: close")) {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return 0, errors.New("neither answered nor closed")
	}
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode, nil
}

// kinds are the names of junks, sorted.
var kinds = slices.Sorted(maps.Keys(junks))

// usage counts the goroutines of this process, and the bytes of its heap.
type usage struct {
	goroutines int
	heap       uint64
}

// settledUsage returns the usage once the server has ended all connections but the one that asks:
// it keeps one for half a second after an early answer, and waits two seconds for a body. The
// number of goroutines is the least of many, since some work in the background now and then.
func (b *junkSender) settledUsage() (u usage) {
	waittest.Until(b.t, "the end of all connections", func() bool {
		http.DefaultClient.CloseIdleConnections()
		return metricOf(b.t, b.Server, "doorward_connections") <= 1
	})
	http.DefaultClient.CloseIdleConnections()
	u.goroutines = runtime.NumGoroutine()
	for range 100 {
		wait(b.t.Context(), 2*time.Millisecond)
		u.goroutines = min(u.goroutines, runtime.NumGoroutine())
	}
	runtime.GC()
	runtime.GC() // what sync.Pool holds is freed by the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.heap = m.HeapAlloc
	return u
}

// maxHeapGrowth is the allowed growth of the heap, in bytes. With 100,000 requests, a leak
// of a hundred bytes per request exceeds it.
const maxHeapGrowth = 8 << 20

// TestJunk runs alone, so that leaked goroutines and memory show.
func TestJunk(t *testing.T) {
	log := &journal{}
	b := &junkSender{Server: doorwardtest.Start(t, doorwardtest.Log(log)), t: t, status: map[int]int{}}
	acme := b.Tenant("Acme")
	b.token = acme.Owner.Token()
	b.sendAll(1, 2000) // allocates everything that is made once, such as pages of documents
	before := b.settledUsage()
	began := time.Now()
	b.sendAll(2, junkRequests())
	took := time.Since(began)
	after := b.settledUsage()
	t.Logf("%d requests in %v; statuses %v; goroutines %d, then %d; heap %d KiB, then %d KiB",
		junkRequests(), took.Round(time.Millisecond), b.status, before.goroutines, after.goroutines, before.heap>>10, after.heap>>10)
	if after.goroutines > before.goroutines {
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines are left over:\n%s", after.goroutines-before.goroutines, stacks[:runtime.Stack(stacks, true)])
	}
	if after.heap > before.heap+maxHeapGrowth {
		t.Errorf("the heap has grown by %d KiB", (after.heap-before.heap)>>10)
	}
	if text := log.String(); strings.Contains(text, "panic") {
		t.Errorf("panics:\n%.3000s", text[strings.Index(text, "panic"):])
	}
	if status, body := acme.Owner.Get("/api/v2/auth/session"); status != http.StatusOK {
		t.Errorf("afterwards the session that the junk was sent with is %d %s", status, body)
	}
}

// journal keeps the lines about panics. All lines would grow the heap that the test measures.
type journal struct{ logtest.Journal }

func (j *journal) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("panic")) {
		return j.Journal.Write(p)
	}
	return len(p), nil
}
