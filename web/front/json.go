package front

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/strictjson"
)

// MaxBody is the largest request body, in bytes.
const MaxBody = 64 << 10

// None is the body of an endpoint without one. A body sent to it isn't read.
type None struct{}

// Int is an integer in a body. Values beyond int64 are clamped to its limits, so that
// bounds checks refuse them.
type Int = strictjson.Int

// Attributes are what policies read of an object of the platform. Numbers keep all their
// digits.
type Attributes map[string]any

// UnmarshalJSON takes an object.
func (a *Attributes) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode((*map[string]any)(a))
}

// WebAuthn is an object of the browsers' API for passkeys: options, or what toJSON() gives. It
// is passed on unchanged.
type WebAuthn map[string]any

// ViewWebAuthn returns options of the server's own making; nil for none.
func ViewWebAuthn(options json.RawMessage) (w WebAuthn) {
	_ = json.Unmarshal(options, &w)
	return w
}

// Foreign makes strictjson accept null, which browser extensions send for absent members.
func (WebAuthn) Foreign() {}

// Text is the object as JSON; nil for none.
func (w WebAuthn) Text() []byte {
	if w == nil {
		return nil
	}
	text, _ := json.Marshal(w) // it was decoded from JSON
	return text
}

// Endpoint handles the requests of a route. Make it with JSON, Create, Bytes or Raw.
type Endpoint struct {
	Status int          // of a success
	In     reflect.Type // of the request body; nil: none
	Media  []string     // media types of a raw request body, in place of In
	// Fields are those of a form, see Form, and Fault is the body of its answers 400, in place of a problem.
	Fields []Parameter
	Fault  reflect.Type
	// MaxBody is the greatest size of a body that JSON or Create decodes, or of a form, in bytes; 0: the
	// constant MaxBody.
	MaxBody int
	Out     reflect.Type // of the answer's body; nil: none
	// OutMedia is the media type of an answer that is a text, in place of Out.
	OutMedia string
	Cookie   string // how a success changes the session cookie, for the reference: Markdown from the = on, within a code span; may be empty
	Return   bool   // whether a success may be 303, see Returns
	Page     bool   // whether it may be a page, with 200, in place of Status
	CSV      bool   // the answer is also available as CSV
	DryRun   bool   // a dry run is answered with 200 in place of Status, see Call.SetDryRun
	// Creates: it makes something and takes an Idempotency-Key, see Create.
	Creates bool
	// Foreign: another specification defines the form of its bodies. Every fault of the body
	// except its size is 400, and the request keeps any visible X-Request-Id.
	Foreign bool

	takesForm bool // see TakesForm
	formPage  string

	serve func(ctx context.Context, c *Call) error
	fail  func(ctx context.Context, c *Call, err error)       // nil: a problem
	amend func(ctx context.Context, c *Call, err error) error // see AmendErrors; may be nil
}

// JSON returns the endpoint that decodes a body, calls fn and answers with
// what it returns.
func JSON[In, Out any](status int, fn func(ctx context.Context, c *Call, in In) (Out, error)) Endpoint {
	e := Endpoint{Status: status, In: bodyType[In](), Out: bodyType[Out]()}
	e.serve = func(ctx context.Context, c *Call) error {
		in, _, err := decode[In](c)
		if err != nil {
			return err
		}
		out, err := fn(ctx, c, in)
		if err != nil {
			return err
		}
		e.answer(c, out)
		return nil
	}
	return e
}

// UpTo allows a body of at most maxBytes, in place of MaxBody.
func (e Endpoint) UpTo(maxBytes int) Endpoint {
	e.MaxBody = maxBytes
	return e
}

// WithDryRun says that the request may be a dry run, which is answered with 200.
func (e Endpoint) WithDryRun() Endpoint {
	e.DryRun = true
	return e
}

// SetDryRun answers the request with 200, in place of the status of the endpoint.
func (c *Call) SetDryRun() { c.isDryRun = true }

func (e Endpoint) answer(c *Call, out any) {
	if c.isDryRun {
		e.Status = http.StatusOK
	}
	if c.target != "" {
		c.W.Header().Set("Location", c.target)
		c.W.WriteHeader(http.StatusSeeOther)
		return
	}
	if e.Out == nil {
		c.W.WriteHeader(e.Status)
		return
	}
	c.site.write(c.W, e.Status, "application/json", out)
}

// Bytes returns the endpoint that takes a raw body of one of the media types, of at most
// maxBytes, calls fn with it and answers with the result.
func Bytes[Out any](status, maxBytes int, media []string, fn func(ctx context.Context, c *Call, mediaType string, body []byte) (Out, error)) Endpoint {
	e := Endpoint{Status: status, Media: media, Out: bodyType[Out]()}
	e.serve = func(ctx context.Context, c *Call) error {
		body, err := read(c, maxBytes)
		if err != nil {
			return err
		}
		mediaType, err := rawMediaType(c.R.Header, media)
		if err != nil {
			return err
		}
		out, err := fn(ctx, c, mediaType, body)
		if err != nil {
			return err
		}
		e.answer(c, out)
		return nil
	}
	return e
}

// rawMediaType returns the media type of the body if it is in the list and has no
// parameters.
func rawMediaType(h http.Header, media []string) (string, error) {
	types := h.Values("Content-Type")
	if len(types) == 1 && len(h.Values("Content-Encoding")) == 0 && slices.Contains(media, strings.ToLower(types[0])) {
		return strings.ToLower(types[0]), nil
	}
	advice := "Send the body as " + strings.Join(media, " or ") + ", without a Content-Encoding."
	if len(types) == 1 && strings.HasPrefix(strings.ToLower(types[0]), "image/svg") {
		advice += " An SVG can contain scripts, so it isn't accepted; export it as a PNG."
	}
	return "", doorward.Fail(doorward.CodeUnsupportedMediaType, "%s", advice)
}

// Returns documents that a success may redirect to the address in the parameter return.
func (e Endpoint) Returns() Endpoint {
	e.Return = true
	return e
}

// OpensSession documents that a success sets a session cookie.
func (e Endpoint) OpensSession() Endpoint {
	e.Cookie = "=<token>" + cookieAttributes + "; Secure`, with `--session-cookie persistent` also `Max-Age=<seconds>`"
	return e
}

// EndsSession documents that a success clears the session cookie.
func (e Endpoint) EndsSession() Endpoint {
	e.Cookie = "=" + cookieAttributes + "; Max-Age=0`"
	return e
}

// maxRowsCSV is the default and largest number of rows of an answer as CSV.
const maxRowsCSV = 10_000

// Spreadsheet is the format of a CSV file that begins with a byte order mark: without it, spreadsheets read
// UTF-8 as the code page of the country. Programs would read it as part of the first column's name.
const Spreadsheet = "spreadsheet"

// OrCSV adds the answer to "?format=csv" and "?format=spreadsheet", for which a session needs a recent
// proof of identity: a file takes the whole list away. fn returns the rows, the first with the names of the
// columns, and the position of the next page.
func (e Endpoint) OrCSV(fn func(ctx context.Context, c *Call, w doorward.Window) (rows [][]string, next *doorward.Position, err error)) Endpoint {
	asJSON := e.serve
	e.CSV = true
	e.serve = func(ctx context.Context, c *Call) error {
		format, err := c.Filter("format")
		switch {
		case err != nil:
			return err
		case format == "" || format == "json":
			return asJSON(ctx, c)
		case format != "csv" && format != Spreadsheet:
			return badParameter("format", "invalid", "The formats are json, csv and spreadsheet.")
		}
		if err := c.site.App.Access.NeedProof(c.Caller); err != nil {
			return err
		}
		w, err := c.WindowUpTo(ctx, maxRowsCSV, maxRowsCSV)
		if err != nil {
			return err
		}
		rows, next, err := fn(ctx, c, w)
		if err != nil {
			return err
		}
		return c.writeCSV(ctx, rows, next, format == Spreadsheet)
	}
	return e
}

// Raw returns an endpoint whose fn writes the answer itself.
func Raw(fn func(ctx context.Context, c *Call) error) Endpoint {
	return Endpoint{Status: http.StatusOK, serve: fn}
}

// WithErrorHandler makes fn answer all errors of the guard and the endpoint, in place of
// the problem (RFC 9457).
func (e Endpoint) WithErrorHandler(fn func(ctx context.Context, c *Call, err error)) Endpoint {
	e.fail = fn
	return e
}

// AmendErrors passes all errors of the guard and the endpoint through fn, before they are
// answered; after the functions that were given before.
func (e Endpoint) AmendErrors(fn func(ctx context.Context, c *Call, err error) error) Endpoint {
	first := e.amend
	e.amend = func(ctx context.Context, c *Call, err error) error {
		if first != nil {
			err = first(ctx, c, err)
		}
		return fn(ctx, c, err)
	}
	return e
}

// OptionalBody is implemented by bodies that a request may leave out, since all their
// members are optional.
type OptionalBody interface{ OptionalBody() }

func bodyType[T any]() reflect.Type {
	t := reflect.TypeFor[T]()
	if t == reflect.TypeFor[None]() {
		return nil
	}
	return t
}

// decode checks size, then media type, then syntax. body is what was sent.
func decode[In any](c *Call) (in In, body []byte, err error) {
	if bodyType[In]() == nil {
		return in, nil, nil
	}
	if body, err = read(c, cmp.Or(c.maxBody, MaxBody)); err != nil {
		return in, nil, err
	}
	if err := checkMediaType(c.R.Header, len(body)); err != nil {
		return in, nil, err
	}
	if _, isOptional := any(in).(OptionalBody); isOptional && len(body) == 0 {
		return in, body, nil
	}
	in, err = strictjson.Decode[In](body)
	return in, body, Malformed(err)
}

// readWithin is how long a body may take to arrive.
const readWithin = 2 * time.Second

// boundBody sets a deadline for the body. net/http reads the unread rest of a body
// before it sends the answer, and without a deadline would wait for it forever.
func boundBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		// Not every ResponseWriter has deadlines; the server's own limits remain.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readWithin))
	}
}

// Body returns the body if it has at most maxBytes. Errors: body_too_large, invalid_body.
func (c *Call) Body(maxBytes int) ([]byte, error) { return read(c, maxBytes) }

// Answer answers 200 with JSON.
func (c *Call) Answer(v any) { c.site.write(c.W, http.StatusOK, "application/json", v) }

// read returns the body if it has at most maxBytes. Errors: body_too_large, invalid_body.
func read(c *Call, maxBytes int) ([]byte, error) {
	tooLarge := doorward.Fail(doorward.CodeBodyTooLarge, "The body may have %d KiB at most.", maxBytes>>10)
	if c.R.ContentLength > int64(maxBytes) {
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.W, c.R.Body, int64(maxBytes)))
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return nil, tooLarge
	case err != nil:
		return nil, doorward.Fail(doorward.CodeInvalidBody, "The body arrived incomplete.")
	}
	_ = http.NewResponseController(c.W).SetReadDeadline(time.Time{})
	return body, nil
}

const sendJSON = "Send the body as \"Content-Type: application/json\", in UTF-8 and without a Content-Encoding."

// checkMediaType returns an error unless the body is JSON. An empty body without a media
// type passes: decoding refuses it with a better message.
func checkMediaType(h http.Header, size int) error {
	types, encoded := h.Values("Content-Type"), len(h.Values("Content-Encoding")) > 0
	if size == 0 && len(types) == 0 && !encoded {
		return nil
	}
	if fault := mediaFault(types, encoded); fault != "" {
		return doorward.Fail(doorward.CodeUnsupportedMediaType, "%s %s", fault, sendJSON)
	}
	return nil
}

// mediaFault says what is wrong with the media type and the encoding of a body; empty: nothing.
func mediaFault(types []string, encoded bool) string {
	if encoded {
		return "The body has a Content-Encoding: leave the header out, identity too."
	}
	if len(types) != 1 {
		return fmt.Sprintf("The request has %d headers Content-Type.", len(types))
	}
	media, params, err := mime.ParseMediaType(types[0])
	charset, has := params["charset"]
	switch {
	case err != nil || media != "application/json":
		return "The body isn't declared as JSON."
	case has && !strings.EqualFold(charset, "utf-8"):
		return "The only charset is utf-8, written like that; it may be left out."
	}
	return ""
}

// Malformed is the error for a body that package strictjson refuses; nil stays nil. It
// says where the syntax is wrong, without repeating the input.
func Malformed(err error) error {
	if err == nil {
		return nil
	}
	var fault *strictjson.Error
	if !errors.As(err, &fault) {
		return doorward.Fail(doorward.CodeInvalidBody, "")
	}
	e := doorward.Fail(doorward.CodeInvalidBody, "%s", fault.Error())
	e.Fields = []doorward.FieldError{{Pointer: fault.Pointer, Code: "malformed", Message: fault.Reason}}
	return e
}
