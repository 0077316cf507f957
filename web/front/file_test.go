package front

import (
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// A file is cached for ever only under the hash of its content: during an upgrade a page of one
// version may ask a node of another for it. It is compressed for clients that take gzip.
func TestFilesByTheirHash(t *testing.T) {
	text := strings.Repeat("body { color: black }\n", 50)
	s := New(nil, &url.URL{Scheme: "http", Host: "localhost"}, nil, slog.New(slog.DiscardHandler))
	h := s.Handler([]Route{File("a.css", "text/css", []byte(text)), HashedFiles()})
	ask := func(path string, header ...string) *http.Response {
		r := httptest.NewRequestWithContext(context.Background(), "GET", path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	own := "/assets/" + s.FileName("a.css")
	if len(own) != len("/assets/a.123456789abc.css") {
		t.Fatalf("the file is at %s", own)
	}
	const forever = "public, max-age=31536000, immutable"
	for path, want := range map[string]struct {
		status int
		cached string
	}{
		own: {200, forever}, "/assets/a.css": {200, "no-store"}, "/assets/a.0123456789ab.css": {200, "no-store"},
		"/assets/b.0123456789ab.css": {404, "no-store"}, "/assets/a.0123.css": {404, "no-store"}, "/assets/a.css.css": {404, "no-store"}, "/assets/a..css": {404, "no-store"},
	} {
		res := ask(path)
		if got := res.Header.Values("Cache-Control"); res.StatusCode != want.status || len(got) != 1 || got[0] != want.cached {
			t.Errorf("%s: %d, Cache-Control %q; want %d %q", path, res.StatusCode, got, want.status, want.cached)
		}
	}
	plain := ask(own)
	if body, err := io.ReadAll(plain.Body); err != nil || string(body) != text {
		t.Errorf("the file is %q, %v", body, err)
	}
	zipped := ask(own, "Accept-Encoding", "br, gzip;q=0.5")
	if zipped.Header.Get("Content-Encoding") != "gzip" || zipped.Header.Get("Vary") != "Accept-Encoding" || zipped.ContentLength >= plain.ContentLength {
		t.Errorf("compressed: %v", zipped.Header)
	}
	r, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(r); err != nil || string(body) != text {
		t.Errorf("decompressed: %q, %v", body, err)
	}
	if tag := zipped.Header.Get("ETag"); tag == plain.Header.Get("ETag") || ask(own, "Accept-Encoding", "gzip", "If-None-Match", `"x", W/`+tag).StatusCode != 304 {
		t.Errorf("the tag of the compressed file is %s, that of the file %s; want two different ones, and 304 for the first", tag, plain.Header.Get("ETag"))
	}
	for _, refused := range []string{"gzip;q=0", "identity", "", "gzip;q=x"} {
		if got := ask(own, "Accept-Encoding", refused).Header.Get("Content-Encoding"); got != "" {
			t.Errorf("Accept-Encoding %q: %s", refused, got)
		}
	}
}
