package front

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/doorward/doorward"
)

// Form reads the body as a form sent by a browser. Errors: body_too_large,
// unsupported_media_type, invalid_body.
func (c *Call) Form() (url.Values, error) { return c.FormUpTo(MaxBody) }

// FormUpTo is Form for a body of at most maxBytes, in place of MaxBody.
func (c *Call) FormUpTo(maxBytes int) (url.Values, error) {
	body, err := read(c, maxBytes)
	if err != nil {
		return nil, err
	}
	media, _, err := mime.ParseMediaType(c.R.Header.Get("Content-Type"))
	if len(body) > 0 && (err != nil || media != "application/x-www-form-urlencoded") {
		return nil, doorward.Fail(doorward.CodeUnsupportedMediaType, "Send the form as application/x-www-form-urlencoded.")
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, doorward.Fail(doorward.CodeInvalidBody, "")
	}
	return values, checkText(values)
}

// checkText refuses values that are not IsText.
func checkText(values url.Values) error {
	for name, all := range values {
		if !IsText(name) || slices.ContainsFunc(all, func(value string) bool { return !IsText(value) }) {
			return doorward.Fail(doorward.CodeInvalidBody, "")
		}
	}
	return nil
}

// IsText reports whether both databases can store the text or search for it: it is UTF-8 and
// has no NUL, which PostgreSQL rejects.
func IsText(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// MaxFieldBytes bounds a form besides its file, unless it has a long text, too.
const MaxFieldBytes = 8 << 10

// Limits of a form with a file.
const (
	maxParts = 16 // fields, the file included
	// maxDrained is how many bytes of a body that is too large are read and discarded:
	// a browser shows no answer before it has sent the whole body, such as a photo.
	maxDrained = 16 << 20
)

// Upload reads the body as a browser's form with one file, of at most maxBytes, in the named
// field, and at most maxFields bytes besides. A missing file is empty. Errors: body_too_large,
// unsupported_media_type, invalid_body.
func (c *Call) Upload(field string, maxBytes, maxFields int) (url.Values, []byte, error) {
	media, params, err := mime.ParseMediaType(c.R.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" {
		return nil, nil, doorward.Fail(doorward.CodeUnsupportedMediaType, "Send the form as multipart/form-data.")
	}
	body, err := read(c, maxBytes+maxFields)
	if doorward.HasCode(err, doorward.CodeBodyTooLarge) {
		c.drain()
	}
	if err != nil {
		return nil, nil, err
	}
	values, file, err := splitForm(multipart.NewReader(bytes.NewReader(body), params["boundary"]), field)
	switch {
	case err != nil:
		return nil, nil, doorward.Fail(doorward.CodeInvalidBody, "")
	case len(file) > maxBytes:
		return nil, nil, doorward.Fail(doorward.CodeBodyTooLarge, "")
	}
	return values, file, checkText(values)
}

// drain discards the rest of the body, and leaves timeToAnswer for the answer.
func (c *Call) drain() {
	if end, ok := c.R.Context().Deadline(); ok {
		_ = http.NewResponseController(c.W).SetReadDeadline(end.Add(-timeToAnswer))
		_, _ = io.CopyN(io.Discard, c.R.Body, maxDrained)
	}
}

// timeToAnswer is what drain leaves of the request's time.
const timeToAnswer = 700 * time.Millisecond

// splitForm returns the values and the file of a form. The name of a field decides
// whether it is the file, not the other headers of its part.
func splitForm(r *multipart.Reader, field string) (url.Values, []byte, error) {
	values, file := url.Values{}, []byte(nil)
	for n := 0; ; n++ {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return values, file, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if n == maxParts {
			return nil, nil, errors.New("front: a form with too many fields")
		}
		content, err := io.ReadAll(p)
		switch name := p.FormName(); {
		case err != nil:
			return nil, nil, err
		case name == field:
			file = content
		default:
			values.Add(name, string(content))
		}
	}
}

// SetCookie sets a cookie other than the session's, for life seconds; 0 deletes it.
func (c *Call) SetCookie(name, value string, life int) {
	c.addCookie(c.site.cookieName(name)+"="+value, "; Max-Age="+strconv.Itoa(life))
}

// CookiesLike returns the values of the cookies that SetCookie has set under names with the prefix, by name.
// One that was sent with several values is left out: another host has set one of them.
func (c *Call) CookiesLike(prefix string) map[string]string {
	all := map[string]string{}
	for _, cookie := range c.R.Cookies() {
		name, ok := strings.CutPrefix(cookie.Name, c.site.cookieName(""))
		if !ok || !strings.HasPrefix(name, prefix) || len(all) >= maxCookiesLike {
			continue
		}
		if was, twice := all[name]; twice && was != cookie.Value {
			cookie.Value = ""
		}
		all[name] = cookie.Value
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

// maxCookiesLike bounds what CookiesLike returns.
const maxCookiesLike = 50

// Cookie returns the value of a cookie that SetCookie has set; empty without one. Of several
// different ones none counts, since another host has set one of them; then all are deleted, so
// that the next one counts.
func (c *Call) Cookie(name string) string {
	switch values := c.site.cookies(c.R, name); len(values) {
	case 0:
	case 1:
		return values[0]
	default:
		c.clearAll(c.site.cookieName(name))
	}
	return ""
}
