package node_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/tlscert"
	"github.com/doorward/doorward/internal/tlscert/certtest"
	"github.com/doorward/doorward/node"
)

// tlsServer is a server with a certificate that can be changed.
type tlsServer struct {
	*doorwardtest.Server
	ca     *certtest.Authority
	folder string
	source *tlscert.Files
	first  certtest.Pair
}

func startTLS(t *testing.T, options ...doorwardtest.Option) *tlsServer {
	t.Helper()
	s := &tlsServer{ca: certtest.NewAuthority(t), folder: t.TempDir()}
	s.first = s.ca.Pair(time.Now().Add(24 * time.Hour))
	cert, key := s.first.WriteFiles(t, s.folder)
	s.source = tlscert.NewFiles(cert, key, slog.New(slog.DiscardHandler))
	if err := s.source.Load(); err != nil {
		t.Fatal(err)
	}
	s.Server = doorwardtest.Start(t, append(options, func(c *node.Config) { c.TLS = s.source })...)
	return s
}

// replace puts a new certificate in use.
func (s *tlsServer) replace(t *testing.T) certtest.Pair {
	t.Helper()
	next := s.ca.Pair(time.Now().Add(24 * time.Hour))
	next.WriteFiles(t, s.folder)
	s.source.Reload()
	return next
}

// Arguments of tlsServer.client.
const (
	http2     = true
	keepAlive = true
)

func (s *tlsServer) client(useHTTP2, keepsAlive bool) *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: s.ca.Pool}, ForceAttemptHTTP2: useHTTP2, DisableKeepAlives: !keepsAlive,
	}}
}

// getSerial sends a request, and returns the serial number of the server's certificate and
// the answer, without its body.
func getSerial(client *http.Client, address string) (serial int64, res *http.Response, err error) {
	if res, err = client.Get(address); err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.TLS.PeerCertificates[0].SerialNumber.Int64(), res, err
}

func TestTLS(t *testing.T) {
	t.Parallel()
	s := startTLS(t)
	if !strings.HasPrefix(s.Node.URL(), "https://localhost:") {
		t.Errorf("the address from outside is %s, want https://", s.Node.URL())
	}
	_, res, err := getSerial(s.client(http2, keepAlive), s.URL+"/healthz")
	if err != nil {
		t.Fatal(err)
	}
	if res.Proto != "HTTP/2.0" || res.TLS.Version != tls.VersionTLS13 || res.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%s over TLS %x with HSTS %q, want HTTP/2.0, TLS 1.3 and HSTS", res.Proto, res.TLS.Version, res.Header.Get("Strict-Transport-Security"))
	}
	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c, err := tls.Dial("tcp", s.Node.Address(), &tls.Config{RootCAs: s.ca.Pool, MinVersion: version, MaxVersion: version})
		if err == nil {
			c.Close()
		}
		if (err == nil) != want {
			t.Errorf("TLS version %x: %v, want it to work: %v", version, err, want)
		}
	}
	plain, err := http.Get("http://" + s.Node.Address() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	plain.Body.Close()
	if plain.StatusCode != http.StatusBadRequest {
		t.Errorf("plain HTTP is answered %s, want 400", plain.Status)
	}
}

// Clients send requests without a pause while the certificate is replaced repeatedly:
// none is refused, and open connections stay.
func TestRaceCertificateIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	s := startTLS(t)
	old := map[string]*http.Client{"HTTP/2": s.client(http2, keepAlive), "HTTP/1.1": s.client(!http2, keepAlive)}
	for name, client := range old {
		if _, _, err := getSerial(client, s.URL+"/healthz"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	answers, stop := s.load(t, 8)
	last := s.first
	for range 20 {
		for from := answers.Load(); answers.Load() < from+20; {
			runtime.Gosched()
		}
		last = s.replace(t)
	}
	if got, _, err := getSerial(s.client(http2, keepAlive), s.URL+"/healthz"); err != nil || got != last.Serial {
		t.Errorf("a new connection got certificate %d, %v, want the last, %d", got, err, last.Serial)
	}
	for name, client := range old {
		var reused bool
		traced := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
		req, err := http.NewRequestWithContext(traced, http.MethodGet, s.URL+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Errorf("%s on the connection from before: %v", name, err)
			continue
		}
		res.Body.Close()
		if got := res.TLS.PeerCertificates[0].SerialNumber.Int64(); !reused || got != s.first.Serial {
			t.Errorf("%s: connection reused: %v, certificate %d; want it reused, with the first certificate, %d", name, reused, got, s.first.Serial)
		}
	}
	stop()
	t.Logf("%d answers", answers.Load())
}

// load has clients send requests until stop, with HTTP/2 or 1.1, over kept or new
// connections. Each must be answered, or its connection refused after the server's end.
func (s *tlsServer) load(t *testing.T, clients int) (answers *atomic.Int64, stop func()) {
	answers = &atomic.Int64{}
	var all sync.WaitGroup
	ended := make(chan struct{})
	for i := range clients {
		client := s.client(i%2 == 0, i%4 < 2)
		all.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				_, _, err := getSerial(client, s.URL+"/healthz")
				if errors.Is(err, syscall.ECONNREFUSED) {
					return
				}
				if err != nil {
					t.Errorf("dropped: %v", err)
					return
				}
				answers.Add(1)
			}
		})
	}
	return answers, func() { close(ended); all.Wait() }
}

// Over TLS, too, a server answers all requests before it ends.
func TestRaceDrainDropsNoRequestOverTLS(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux can a listener refuse new connections before it is closed")
	}
	t.Parallel()
	s := startTLS(t, announcing(300*time.Millisecond))
	answers, stop := s.load(t, 8)
	for answers.Load() < 100 {
		runtime.Gosched()
	}
	s.Stop()
	stop()
}

func TestDialable(t *testing.T) {
	for listen, want := range map[string]string{
		"localhost:8080": "localhost:8080", "10.1.2.3:80": "10.1.2.3:80", "[::1]:8080": "[::1]:8080",
		":8080": "localhost:8080", "0.0.0.0:8080": "localhost:8080", "[::]:8080": "localhost:8080",
	} {
		if got := node.Dialable(listen); got != want {
			t.Errorf("%s is reached at %s, want %s", listen, got, want)
		}
	}
}
