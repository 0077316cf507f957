package guard

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/guard/guardtest"
	"github.com/doorward/doorward/internal/waittest"
)

// TestIsPublic: no spelling or translation of an internal address is public, and no reserved
// address is.
func TestIsPublic(t *testing.T) {
	for _, text := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.254", "100.100.100.200", "127.0.0.1", "127.255.0.1",
		"168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.170", "192.0.2.1", "192.31.196.1",
		"192.52.193.1", "192.88.99.1", "192.168.1.1", "192.175.48.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1",
		"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "::ffff:0:127.0.0.1",
		"64:ff9b::127.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b:1::10.0.0.1", "100::1", "100:0:0:1::1", "2001::1", "2001:0:7f00:1::", "2001:2::1",
		"2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::1", "2002:a00:1::", "2002:808:808::1", "2620:4f:8000::1", "3fff::1",
		"5f00::1", "4000::1", "fc00::1", "fd12:3456:789a::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "2606:4700::1%eth0", "fec0::1", "ff02::1", "ff0e::1",
	} {
		if IsPublic(netip.MustParseAddr(text)) {
			t.Errorf("%s is public", text)
		}
	}
	for _, text := range []string{"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "198.17.0.1", "198.20.0.1", "223.255.255.254", "2001:200::1", "2001:4860:4860::8888", "2606:4700::1111", "2a00:1450::1"} {
		if !IsPublic(netip.MustParseAddr(text)) {
			t.Errorf("%s is not public", text)
		}
	}
	if IsPublic(netip.Addr{}) {
		t.Error("the zero Addr is public")
	}
}

// TestSpellings: an internal address in a URL is never connected to, however it is written.
func TestSpellings(t *testing.T) {
	server, accepted := countingServer()
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, host := range []string{
		"127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "0177.1", "127.0.0.1.", "0", "0.0.0.0",
		"localhost", "LOCALHOST", "localhost.", "a.localhost", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:1]",
		"[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1%25lo]", "[::1%25lo]", "①②⑦.0.0.1", "127。0。0。1",
	} {
		u, err := url.Parse("https://" + host + ":" + port + "/")
		if err != nil {
			continue // no URL that can be stored
		}
		if err := post(t, New(Options{}), u.String()); err == nil {
			t.Errorf("%s was answered", host)
		}
		if answer, err := New(Options{}).HTTP().Get(u.String()); err == nil {
			answer.Body.Close()
			t.Errorf("%s was answered to the client of HTTP", host)
		}
	}
	if n := accepted(); n > 0 {
		t.Errorf("there were %d connections", n)
	}
}

// countingServer returns a server, and a function that returns how many connections it has
// accepted.
func countingServer() (*httptest.Server, func() int64) {
	var n atomic.Int64
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			n.Add(1)
		}
	}
	s.StartTLS()
	return s, n.Load
}

func post(t *testing.T, c *Client, target string) error {
	t.Helper()
	_, err := postForAnswer(t, c, target)
	return err
}

func postForAnswer(t *testing.T, c *Client, target string) (Answer, error) {
	t.Helper()
	return postWithin(t, waittest.Limit, c, target)
}

func postWithin(t *testing.T, limit time.Duration, c *Client, target string) (Answer, error) {
	t.Helper()
	ctx, cancel := waittest.Interrupt(t.Context(), limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader("{}"))
	if err != nil {
		return Answer{}, err
	}
	return c.Do(r)
}

// TestRebinding: a name that answers with a public address when it is checked, and with an
// internal one when it is dialled, reaches nothing.
func TestRebinding(t *testing.T) {
	server, accepted := countingServer()
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	names := &guardtest.NameServer{Addrs: []string{guardtest.Public, "127.0.0.1"}}
	c := New(Options{Resolver: names.Resolver(t)})
	u, _ := url.Parse("https://rebinding.example:" + port + "/")
	if err := c.Check(t.Context(), u); err != nil {
		t.Fatalf("the first answer is public: %v", err)
	}
	if err := post(t, c, u.String()); !IsRefused(err) {
		t.Errorf("the second answer is internal, and the error is %v", err)
	}
	if err := c.Check(t.Context(), u); !IsRefused(err) {
		t.Errorf("Check accepts a name with an internal address: %v", err)
	}
	if n := accepted(); n > 0 || names.Asked() < 3 {
		t.Errorf("%d connections, %d questions", n, names.Asked())
	}
}

// TestCheck: only https is allowed, and in development http on a loopback name or address.
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		local     bool
		url       string
		isAllowed bool
	}{
		{false, "https://public.example/", true},
		{false, "http://public.example/", false},
		{false, "https://8.8.8.8/", true},
		{false, "https://10.1.2.3/", false},
		{false, "https://[::ffff:8.8.8.8]/", false},
		{false, "https://localhost/", false},
		{false, "http://localhost:8081/", false},
		{false, "ftp://8.8.8.8/", false},
		{false, "https://2130706433/", false},
		{false, "https://0x7f.1/", false},
		{false, "https://0X7F000001/", false},
		{false, "https://127.1/", false},
		{false, "https://0177.0.0.1/", false},
		{false, "https://127.0.0.1./", false},
		{false, "https://8.8.8.8./", false},
		{false, "https://①②⑦.0.0.1/", false},
		{false, "https://%E2%91%A0②⑦。0。0。1/", false},
		{false, "https://x.0x/", false},
		{false, "https://a\u200d.invalid/", false},
		{false, "https://bücher.example/", true},
		{false, "https://1.2.3.4.invalid./", true},
		{true, "http://localhost:8081/", true},
		{true, "http://hooks.localhost:8081/", true},
		{true, "http://127.0.0.1:8081/", true},
		{true, "http://[::1]:8081/", true},
		{true, "https://127.0.0.1:8081/", false},
		{true, "http://10.0.0.1/", false},
		{true, "http://8.8.8.8/", false},
	} {
		u, _ := url.Parse(test.url)
		err := New(Options{Local: test.local, Resolver: (&guardtest.NameServer{Addrs: []string{guardtest.Public}}).Resolver(t)}).Check(t.Context(), u)
		if test.isAllowed != (err == nil) || err != nil && !IsRefused(err) {
			t.Errorf("local %v, %s: %v", test.local, test.url, err)
		}
	}
}

// TestNamesThatDoNotExist are refused, unless the resolver can't be reached.
func TestNamesThatDoNotExist(t *testing.T) {
	u, _ := url.Parse("https://absent.example/")
	if err := New(Options{Resolver: new(guardtest.NameServer).Resolver(t)}).Check(t.Context(), u); !IsRefused(err) {
		t.Errorf("a name that does not exist: %v", err)
	}
	if err := New(Options{Resolver: guardtest.Unreachable()}).Check(t.Context(), u); err == nil || IsRefused(err) {
		t.Errorf("a name that can't be resolved: %v", err)
	}
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// TestAllow: of the internal addresses, only those that the operator allows are dialled.
func TestAllow(t *testing.T) {
	server, _ := countingServer()
	defer server.Close()
	// The certificate isn't trusted, so an error of TLS shows that there was a connection.
	c := New(Options{Allow: loopback})
	if err := post(t, c, server.URL); err == nil || IsRefused(err) {
		t.Errorf("an allowed address: %v", err)
	}
	if err := post(t, c, "https://192.168.1.1/"); !IsRefused(err) {
		t.Errorf("an address that is not allowed: %v", err)
	}
	u, _ := url.Parse("https://127.0.0.1/")
	if err := c.Check(t.Context(), u); err != nil {
		t.Error(err)
	}
}

// TestRedirects: a redirect is an answer, and is not followed, even to an allowed address.
func TestRedirects(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var requests atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			http.Redirect(w, r, "/again", status)
		}))
		got, err := postForAnswer(t, New(Options{Local: true}), server.URL)
		server.Close()
		if err != nil || got.Status != status || requests.Load() != 1 {
			t.Errorf("%d: %v, %v after %d requests", status, got.Status, err, requests.Load())
		}
	}
}

// TestEnvironmentProxies: the environment's proxies are not used, the operator's is.
func TestEnvironmentProxies(t *testing.T) {
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Method + " " + r.Host)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer proxy.Close()
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	names := &guardtest.NameServer{Addrs: []string{"127.0.0.1"}}
	if err := post(t, New(Options{Resolver: names.Resolver(t)}), "https://a.example/"); !IsRefused(err) || asked.Load() != nil {
		t.Errorf("without a proxy of the operator: %v, it was asked for %v", err, asked.Load())
	}
	u, _ := url.Parse(proxy.URL)
	c := New(Options{Proxy: u})
	if err := post(t, c, "https://a.example/"); err == nil || asked.Load() != "CONNECT a.example:443" {
		t.Errorf("with a proxy of the operator: %v, it was asked for %v", err, asked.Load())
	}
	for _, host := range []string{
		"169.254.169.254", "⑯⑨.254.169.254", "2852039166", "0xa9fea9fe", "169.254.43518",
		"localhost", "LOCALHOST.", "metadata.localhost", "ｌocalhost",
	} {
		asked = atomic.Value{}
		if err := post(t, c, "https://"+host+"/"); !IsRefused(err) || asked.Load() != nil {
			t.Errorf("the internal address %s through the proxy: %v, it was asked for %v", host, err, asked.Load())
		}
	}
}

// TestHostileAnswers: endless headers, bodies and interim answers, and slow ones, end in
// time, and cost little memory.
func TestHostileAnswers(t *testing.T) {
	endless := func(w io.Writer, text string) {
		for {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
		}
	}
	for _, test := range []struct {
		name   string
		serve  func(net.Conn)
		status int // 0: an error
		body   int
	}{
		{"a body without end", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			endless(c, strings.Repeat("x", 1<<16))
		}, 200, AnswerMax},
		{"a chunked body without end", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n")
			endless(c, "1\r\nx\r\n")
		}, 500, AnswerMax},
		{"no body, and an open connection", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 204 No\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
		}, 204, 0},
		{"a body that stops", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
			_, _ = io.Copy(io.Discard, c)
		}, 200, 3},
		{"a compressed body stays as it is", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc")
		}, 200, 3},
		{"headers without end", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			endless(c, "A: "+strings.Repeat("x", 1000)+"\r\n")
		}, 0, 0},
		{"interim answers without end", func(c net.Conn) { endless(c, "HTTP/1.1 103 Hints\r\n\r\n") }, 0, 0},
		{"a status line without end", func(c net.Conn) { endless(c, "HTTP/1.1 200 OKOKOKOK") }, 0, 0},
		{"nothing", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, 0, 0},
		{"no HTTP", func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n") }, 0, 0},
		{"a closed connection", func(net.Conn) {}, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close() //nolint:errcheck // the test is over
			go func() {
				for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
					_, _ = http.ReadRequest(bufio.NewReader(conn)) // an answer before the request would be another error
					test.serve(conn)
					_ = conn.Close()
				}
			}()
			var before, after runtime.MemStats
			// Some answers end only with the request. A busy machine has more time to read what comes before.
			for limit := 2 * time.Second; ; limit *= 2 {
				runtime.ReadMemStats(&before)
				got, err := postWithin(t, limit, New(Options{Local: true}), fmt.Sprintf("http://%s/", listener.Addr()))
				runtime.ReadMemStats(&after)
				if got.Status == test.status && len(got.Body) == test.body && (err == nil) == (test.status > 0) {
					break
				}
				if limit > waittest.Limit/2 {
					t.Fatalf("status %d, %d bytes, %v", got.Status, len(got.Body), err)
				}
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
				t.Errorf("it used %d bytes", used)
			}
		})
	}
}
