package front

import (
	"mime"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/doorward/doorward"
)

// Form reads the body as what a browser sends of a form. Errors:
// body_too_large, unsupported_media_type, invalid_body.
func (c *Call) Form() (url.Values, error) {
	body, err := read(c)
	if err != nil {
		return nil, err
	}
	media, _, err := mime.ParseMediaType(c.R.Header.Get("Content-Type"))
	if len(body) > 0 && (err != nil || media != "application/x-www-form-urlencoded") {
		return nil, doorward.Fail(doorward.CodeUnsupportedMediaType, "A page takes what its own form sends.")
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, doorward.Fail(doorward.CodeInvalidBody, "")
	}
	for name, all := range values {
		if text := name + strings.Join(all, ""); !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return nil, doorward.Fail(doorward.CodeInvalidBody, "")
		}
	}
	return values, nil
}

// SetCookie hands the browser a cookie that is no secret, for as many seconds
// as life; 0 takes it away.
func (c *Call) SetCookie(name, value string, life int) {
	c.addCookie(name+"="+value, "; Max-Age="+strconv.Itoa(life))
}
