package main_test

import (
	"bufio"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/web/edge"
	"github.com/doorward/doorward/web/front"
)

// discard is a ResponseWriter that keeps nothing.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkCheck is the handler of a check that finds its session in memory:
// what Doorward adds to net/http.
func BenchmarkCheck(b *testing.B) {
	door := doorwardtest.Start(b)
	ann := door.Tenant("Acme").Join("ann@acme.example", "USER")
	base, err := url.Parse(door.URL)
	if err != nil {
		b.Fatal(err)
	}
	site := front.New(door.Node.App, base, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
	handler := edge.Check(site, http.NotFoundHandler())
	raw := "GET /api/v2/access/check?action=message.send HTTP/1.1\r\nHost: x\r\nX-Request-Id: bench\r\nCookie: JSESSIONID=" + ann.Token() + "\r\n\r\n"
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		b.Fatal(err)
	}
	w := discard{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.h)
		handler.ServeHTTP(w, req)
	}
	if w.h.Get("X-Auth-User") != ann.ID {
		b.Fatal("the check did not pass")
	}
}
