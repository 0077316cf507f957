package front

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	urlpath "path"
	"strconv"
	"strings"
	"sync"

	"github.com/doorward/doorward"
)

// Content is the same for everybody: a file that pages load, or a document. Text is
// compressed once, for the first request. Nothing in it is secret, so its compressed
// length reveals nothing (BREACH). Answers to one caller are never compressed, see
// docs/threat-model.md.
type Content struct {
	MediaType string
	Body      []byte
	zipped    func() []byte // empty for a picture, and if it would not be shorter
	hash      string
}

// NewContent returns the content of a text or a PNG picture.
func NewContent(mediaType string, body []byte) Content {
	sum := sha256.Sum256(body)
	return Content{
		MediaType: mediaType, Body: body, hash: hex.EncodeToString(sum[:6]),
		zipped: sync.OnceValue(func() []byte { return zip(mediaType, body) }),
	}
}

func zip(mediaType string, body []byte) []byte {
	if mediaType == "image/png" { // compressed already
		return nil
	}
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // fails only for an unknown level
	_, _ = w.Write(body)                                    // a buffer takes everything
	_ = w.Close()
	if out.Len() >= len(body) {
		return nil
	}
	return out.Bytes()
}

// Send answers with the content. A client that has it, by its ETag, gets 304. The caller
// has set Cache-Control.
func (c *Call) Send(status int, content Content) {
	h, body, tag := c.W.Header(), content.Body, `"`+content.hash+`"`
	if zipped := content.zipped(); len(zipped) > 0 {
		h.Set("Vary", "Accept-Encoding")
		if takesGzip(c.R.Header) {
			h.Set("Content-Encoding", "gzip")
			body, tag = zipped, `"`+content.hash+`-gzip"` // other bytes, so another tag
		}
	}
	if status == http.StatusOK {
		h.Set("ETag", tag)
		if matchesTag(c.R.Header, tag) {
			h.Del("Content-Encoding")
			c.W.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Type", content.MediaType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.W.WriteHeader(status)
	_, _ = c.W.Write(body) // fails if the client has disconnected
}

// takesGzip reports whether Accept-Encoding allows gzip (RFC 9110, section 12.5.3). A
// header that can't be parsed doesn't.
func takesGzip(h http.Header) bool {
	for part := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		coding, weight, weighted := strings.Cut(strings.TrimSpace(part), ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
		return !weighted || err == nil && q > 0
	}
	return false
}

// matchesTag reports whether If-None-Match has the tag, compared weakly (RFC 9110,
// section 13.1.2).
func matchesTag(h http.Header, tag string) bool {
	for part := range strings.SplitSeq(strings.Join(h.Values("If-None-Match"), ","), ",") {
		if part = strings.TrimPrefix(strings.TrimSpace(part), "W/"); part == tag || part == "*" {
			return true
		}
	}
	return false
}

// File returns the route of a file, GET /assets/NAME. Pages link to Site.FileName instead,
// which HashedFiles serves.
func File(name, mediaType string, body []byte) Route {
	content := NewContent(mediaType, body)
	r := On("GET /assets/"+name, Public(), Raw(func(_ context.Context, c *Call) error {
		c.Send(http.StatusOK, content)
		return nil
	}), Doc{})
	r.file, r.fileName = &content, name
	return r
}

// FileName returns the name of a file with the hash of its content in it.
func (s *Site) FileName(name string) string {
	content, known := s.files[name]
	if !known {
		return name
	}
	ending := urlpath.Ext(name)
	return strings.TrimSuffix(name, ending) + "." + content.hash + ending
}

// HashedFiles returns the route of all files by their names with a hash, which browsers may
// cache forever. During an upgrade a page of one version may ask a node of another for its
// file: it gets the node's own, uncacheable.
func HashedFiles() Route {
	return On("GET /assets/{file}", Public(), Raw(func(_ context.Context, c *Call) error {
		asked := c.R.PathValue("file")
		ending := urlpath.Ext(asked)
		stem := strings.TrimSuffix(asked, ending)
		name := strings.TrimSuffix(stem, urlpath.Ext(stem)) + ending
		content, known := c.site.files[name]
		if !known || !isHash(strings.TrimPrefix(urlpath.Ext(stem), ".")) {
			return doorward.Fail(doorward.CodeNotFound, "")
		}
		if asked == c.site.FileName(name) {
			c.W.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		c.Send(http.StatusOK, *content)
		return nil
	}), Doc{})
}

func isHash(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) == 12
}
