package front

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/doorward/doorward"
)

// The size of a page, in rows.
const (
	defaultLimit = 50
	maxLimit     = 200
)

// parameters returns the query parameters, parsed once. A malformed query is an error:
// an ignored filter would list everything. Errors: invalid_query.
func (c *Call) parameters() (url.Values, error) {
	if c.values == nil {
		values, err := url.ParseQuery(c.R.URL.RawQuery)
		if err != nil {
			return nil, doorward.Fail(doorward.CodeInvalidQuery, "")
		}
		c.values = values
	}
	return c.values, nil
}

// RefuseUnknownParameters returns an error for an unknown query parameter: a misspelt filter
// would list everything. Names are case-sensitive, and the error doesn't repeat
// them. Errors: invalid_query.
func (c *Call) RefuseUnknownParameters() error {
	parameters, err := c.parameters()
	if err != nil {
		return err
	}
	names := c.queryNames()
	for name := range parameters {
		if !slices.Contains(names, name) {
			return doorward.Fail(doorward.CodeInvalidQuery, "%s", unknownName(names))
		}
	}
	return nil
}

func unknownName(names []string) string {
	if len(names) == 0 {
		return "This endpoint takes no query parameters, and the request has some. Leave them out."
	}
	return "The query has a parameter that this endpoint does not know. It takes " + strings.Join(names, ", ") + ", spelt like this."
}

// queryNames returns the names of the route's parameters.
func (c *Call) queryNames() (names []string) {
	for _, p := range c.query {
		names = append(names, p.Name)
	}
	if c.sorts != nil {
		names = append(names, "sort")
	}
	if c.list {
		names = append(names, "limit", "cursor")
	}
	return names
}

// Filter returns a query parameter, empty when it is absent. A repeated one is
// ambiguous, and one that isn't valid text matches no row: both are refused.
// Errors: invalid_query, validation_failed.
func (c *Call) Filter(name string) (string, error) {
	parameters, err := c.parameters()
	values := parameters[name]
	switch {
	case err != nil:
		return "", err
	case len(values) > 1:
		return "", badParameter(name, "invalid", "Send this parameter once.")
	case len(values) == 1 && !IsText(values[0]):
		return "", badParameter(name, "invalid", "Send text in UTF-8, without NUL.")
	case len(values) == 1:
		return values[0], nil
	}
	return "", nil
}

// Into says where the value of a query parameter goes. Make it with To.
type Into struct {
	name  string
	value *string
}

// To puts the value of the parameter into a variable.
func To(name string, value *string) Into { return Into{name, value} }

// Filters is Filter for several parameters. Errors: invalid_query, and validation_failed with the faults of
// all of them, in their order.
func (c *Call) Filters(all ...Into) error {
	var faults []doorward.FieldError
	for _, one := range all {
		value, err := c.Filter(one.name)
		var e *doorward.Error
		switch {
		case err == nil:
			*one.value = value
		case errors.As(err, &e) && len(e.Fields) > 0:
			faults = append(faults, e.Fields...)
		default:
			return err
		}
	}
	if len(faults) > 0 {
		return doorward.InvalidFields(faults...)
	}
	return nil
}

// Given is Filter, and also reports whether the parameter is there. An empty one is often a
// mistake in a script, so it must not count as absent. Errors: those of Filter.
func (c *Call) Given(name string) (value string, isGiven bool, err error) {
	value, err = c.Filter(name)
	return value, c.values[name] != nil, err
}

// Flag returns a query parameter that is true or false; absent is false. An empty value is
// an error, so that "?dryRun" doesn't act. Errors: invalid_query, validation_failed.
func (c *Call) Flag(name string) (bool, error) {
	parameters, err := c.parameters()
	if err != nil || parameters[name] == nil {
		return false, err
	}
	switch value, err := c.Filter(name); {
	case err != nil:
		return false, err
	case value == "true":
		return true, nil
	case value == "false":
		return false, nil
	}
	return false, badParameter(name, "invalid", "Send true or false.")
}

func badParameter(name, code, message string) error {
	return doorward.InvalidFields(doorward.FieldError{Parameter: name, Code: code, Message: message})
}

// Sort returns the name that the request sorts the list by, with a - before it for
// descending; empty for the usual order. Pages, whose routes have no Doc.Sort, get any name.
// Errors: invalid_query, validation_failed.
func (c *Call) Sort() (string, error) {
	sort, err := c.Filter("sort")
	if err == nil && sort != "" && c.sorts != nil && !slices.Contains(c.sorts, strings.TrimPrefix(sort, "-")) {
		err = badParameter("sort", "invalid", "The list sorts by "+strings.Join(c.sorts, ", ")+"; with - before it in reverse.")
	}
	return sort, err
}

// Window returns the part of a list that the request asks for by sort, limit and cursor. It
// asks for the number of rows of the whole list, too. Errors: invalid_query, validation_failed, invalid_cursor.
func (c *Call) Window(ctx context.Context) (doorward.Window, error) {
	w, err := c.WindowUpTo(ctx, defaultLimit, maxLimit)
	w.Count = true
	return w, err
}

// WindowUpTo is Window with another default and maximum size of a page, without a count.
func (c *Call) WindowUpTo(ctx context.Context, defaultRows, maxRows int) (w doorward.Window, err error) {
	if w.After, err = c.cursorPosition(ctx, "cursor"); err != nil { // its 400 comes before any 422
		return w, err
	}
	if w.Limit, err = c.limitUpTo(defaultRows, maxRows); err != nil {
		return w, err
	}
	w.Sort, err = c.Sort()
	return w, err
}

// Limit is the limit of a list without a cursor. Errors: invalid_query,
// validation_failed.
func (c *Call) Limit() (int, error) { return c.limitUpTo(defaultLimit, maxLimit) }

func (c *Call) limitUpTo(defaultRows, maxRows int) (int, error) {
	text, err := c.Filter("limit")
	if err != nil || text == "" {
		return defaultRows, err
	}
	limit, err := strconv.Atoi(text)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, badParameter("limit", "invalid", "The limit is a whole number.")
	}
	if limit < 1 || limit > maxRows {
		return 0, badParameter("limit", "out_of_range", "Ask for 1 to "+strconv.Itoa(maxRows)+" rows.")
	}
	return limit, nil
}

// WindowEitherWay is Window for pages with links back: the cursor "before" selects
// the rows right before its row. Errors are those of Window.
func (c *Call) WindowEitherWay(ctx context.Context) (doorward.Window, error) {
	w, err := c.Window(ctx)
	if err == nil {
		w.Before, err = c.cursorPosition(ctx, "before")
	}
	return w, err
}

// cursorPosition returns the position of the cursor in the parameter, zero if it is absent.
func (c *Call) cursorPosition(ctx context.Context, parameter string) (doorward.Position, error) {
	cursor, err := c.Filter(parameter)
	if err != nil || cursor == "" {
		return doorward.Position{}, err
	}
	return c.OpenCursor(ctx, cursor)
}

// Cursor returns the cursor for the position, empty without one. The signature covers the
// path, the caller's tenant and the filters of the list, so that a cursor can't be forged or
// used on another list.
func (c *Call) Cursor(ctx context.Context, next *doorward.Position) (string, error) {
	if next == nil {
		return "", nil
	}
	text := append(binary.AppendVarint(nil, next.At), next.ID...)
	if next.Key != "" {
		text = append(append(text, 0), next.Key...) // an id has no NUL
	}
	mac, err := c.signature(ctx, text)
	return base64.RawURLEncoding.EncodeToString(append(mac, text...)), err
}

// nextPage returns the address of the next page, for a Link header.
func (c *Call) nextPage(cursor string) string {
	q := c.R.URL.Query()
	q.Set("cursor", cursor)
	return c.site.BaseURL() + c.R.URL.Path + "?" + q.Encode()
}

// signatureSize is short for a MAC: a forged cursor only gives a position in a list that
// its holder may read anyway.
const signatureSize = 16

// OpenCursor returns the position of a cursor that Cursor has made for the same list.
// Errors: invalid_cursor.
func (c *Call) OpenCursor(ctx context.Context, cursor string) (doorward.Position, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) < signatureSize {
		return doorward.Position{}, doorward.Fail(doorward.CodeInvalidCursor, "")
	}
	mac, err := c.signature(ctx, raw[signatureSize:])
	if err != nil {
		return doorward.Position{}, err
	}
	at, n := binary.Varint(raw[signatureSize:])
	if n <= 0 || !hmac.Equal(mac, raw[:signatureSize]) {
		return doorward.Position{}, doorward.Fail(doorward.CodeInvalidCursor, "")
	}
	id, key, _ := strings.Cut(string(raw[signatureSize+n:]), "\x00")
	return doorward.Position{At: at, ID: id, Key: key}, nil
}

func (c *Call) signature(ctx context.Context, text []byte) ([]byte, error) {
	key, err := c.site.App.Keys.CursorSecret(ctx)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, key)
	for _, part := range []string{c.R.URL.Path, c.Caller.TenantID, c.filters(), string(text)} {
		_ = binary.Write(mac, binary.BigEndian, int64(len(part))) // a hash doesn't fail
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)[:signatureSize], nil
}

// filters returns the route's parameters in a fixed order, without those that differ
// between pages. Unknown and empty ones are left out, so that a filter added later
// doesn't invalidate older cursors.
func (c *Call) filters() string {
	sent, known := c.R.URL.Query(), url.Values{}
	for _, p := range append(slices.Clip(c.query), Parameter{Name: "sort"}) {
		if value := sent.Get(p.Name); value != "" && !p.Unbound {
			known.Set(p.Name, value)
		}
	}
	return known.Encode()
}

// SetVersion sets the ETag that the client sends as If-Match with a change.
func (c *Call) SetVersion(version string) { c.W.Header().Set("ETag", `"`+version+`"`) }

// NeedVersions is Versions, but fails without If-Match. Errors: precondition_required.
func (c *Call) NeedVersions() ([]string, error) {
	if len(c.R.Header.Values("If-Match")) == 0 {
		return nil, doorward.Fail(doorward.CodePreconditionRequired, "")
	}
	return c.Versions(), nil
}

// Versions returns the versions in If-Match (RFC 9110, section 13.1.1), none if it is
// absent or a star. Proxies that compress answers change the ETag: nginx makes it weak, Apache
// appends "-gzip" within the quotes, others "--gzip" or ";br". The version is compared whatever they
// have made of it. One without quotes matches nothing.
func (c *Call) Versions() []string {
	var all []string
	for _, line := range c.R.Header.Values("If-Match") {
		for tag := range strings.SplitSeq(line, ",") {
			tag = strings.TrimSpace(tag)
			if tag == "*" {
				return nil
			}
			all = append(all, versionIn(tag))
		}
	}
	return all
}

// codings matches what proxies append to the version of an answer that they compress.
var codings = regexp.MustCompile(`[-;:+]{1,2}(?:gzip|gz|br|zstd|deflate|df)$`)

// versionIn returns the version of an ETag; empty, which no object has, for a malformed one.
func versionIn(tag string) string {
	version, opened := strings.CutPrefix(strings.TrimPrefix(tag, "W/"), `"`)
	version, closed := strings.CutSuffix(version, `"`)
	if !opened || !closed {
		return ""
	}
	return codings.ReplaceAllString(version, "")
}
