package web_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/getkin/kin-openapi/openapi3"

	"github.com/doorward/doorward/web/front"
)

// typed sets another Content-Type.
func typed(contentType string) opt {
	return func(r *http.Request) { r.Header.Set("Content-Type", contentType) }
}

const planPath = "/api/v2/policy/plan"

// onBodies runs a test for each operation that takes a JSON body. post sends the sample with
// another body, by the sample's caller.
func onBodies(t *testing.T, test func(t *testing.T, e operation, post func(t *testing.T, body any, opts ...opt) answer)) {
	t.Helper()
	onSQLite(t, func(t *testing.T, d *server) {
		callers := d.callers(t, d.Tenant("Acme").Owner)
		for _, e := range d.operations(t) {
			if !e.takesJSON() {
				continue
			}
			test(t, e, func(t *testing.T, body any, opts ...opt) answer {
				t.Helper()
				return d.try(t, e, body, append(opts, callers[e.Who])...)
			})
		}
	})
}

// quoted returns the text as a JSON string.
func quoted(s string) string { return fmt.Sprintf("%q", s) }

// hostileTo returns bodies that are malformed for any operation, made from its sample and keyed by
// their defect.
func hostileTo(e operation) map[string]string {
	name := slices.Sorted(maps.Keys(e.Body.(m)))[0]
	good := e.Text()
	inner := unwrapped(good)
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	return map[string]string{
		"nothing": "", "blanks": " \t\r\n", "null": "null", "true": "true", "a number": "7", "a string": quoted(good),
		"an array": "[]", "an array of the object": "[" + good + "]", "a bare word": name, "a brace": "{", "a brace too many": good + "}",
		"cut short": good[:len(good)-1], "cut in the middle": good[:len(good)/2], "a comma at the end": "{" + inner + ",}",
		"a comma first": "{," + inner + "}", "single quotes": strings.ReplaceAll(good, `"`, `'`), "names without quotes": "{" + name + ":1}",
		"trailing text": good + "x", "a second object": good + good, "a second object on its own line": good + "\n" + good,
		"a comment": "/* */" + good, "a comment after it": good + "//", "a byte order mark": "\ufeff" + good,
		"UTF-16": utf16(good), "NUL before": "\x00" + good, "NUL after": good + "\x00", "NUL in a name": `{"a\u0000":1,` + inner + "}",
		"a name twice":           "{" + quoted(name) + `:"x",` + inner + "}",
		"a name twice, last":     "{" + inner + "," + quoted(name) + `:"x"}`,
		"a name twice, escaped":  "{" + inner + `,"\u00` + fmt.Sprintf("%02x", name[0]) + name[1:] + `":"x"}`,
		"a name in capitals":     "{" + inner + "," + quoted(strings.ToUpper(name)) + `:"x"}`,
		"names in capitals only": strings.ReplaceAll(good, quoted(name), quoted(strings.ToUpper(name))),
		"a name capitalised":     "{" + inner + "," + quoted(strings.ToUpper(name[:1])+name[1:]) + `:"x"}`,
		"a name with a blank":    "{" + inner + "," + quoted(name+" ") + `:"x"}`,
		// Equal to token when case is folded.
		"token with the Kelvin sign (U+212A) for k": "{" + inner + `,"to` + "\u212a" + `en":"x"}`,
		"an unknown name": "{" + inner + `,"unknown":"x"}`, "an empty name": "{" + inner + `,"":"x"}`,
		"a prototype": "{" + inner + `,"__proto__":{"role":"OWNER"}}`, "permissions": "{" + inner + `,"permissions":["x"]}`,
		"an unknown name that is null": "{" + inner + `,"unknown":null}`, "33 levels": "{" + inner + `,"x":` + deep(32) + "}",
		"1000 levels": "{" + inner + `,"x":` + deep(1000) + "}", "10000 levels open": `{"x":` + strings.Repeat("[", 10000),
		"10000 objects open": strings.Repeat(`{"x":`, 10000), "a lone surrogate": "{" + inner + `,"x":"\ud800"}`,
		"a reversed pair": "{" + inner + `,"x":"\udc00\ud800"}`, "a bad escape": "{" + inner + `,"x":"\x41"}`,
		"a raw line break": "{" + inner + ",\"x\":\"a\nb\"}", "invalid UTF-8": "{" + inner + ",\"x\":\"\xff\"}",
		"overlong UTF-8": "{" + inner + ",\"x\":\"\xc0\x80\"}", "not a number": "{" + inner + `,"x":NaN}`, "infinity": "{" + inner + `,"x":Infinity}`,
		"a leading zero": "{" + inner + `,"x":01}`, "hexadecimal": "{" + inner + `,"x":0x1}`, "form data": "email=a&password=b", "XML": "<a/>",
		"multipart": "--x\r\n\r\n--x--",
	}
}

// unwrapped returns the text between the braces of an object.
func unwrapped(object string) string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(object), "{"), "}")
}

func utf16(s string) string {
	var out strings.Builder
	for _, c := range s {
		out.WriteString(string(c) + "\x00")
	}
	return out.String()
}

// wrongValues are malformed, or of a wrong type, for a member that is a string or an integer.
var wrongValues = map[string]string{
	"null": "null", "true": "true", "false": "false", "an array": "[]", "an array of strings": `["x"]`, "an object": "{}",
	"a number with a fraction": "1.5", "an exponent": "1e1", "nested": `{"$ne":""}`, "a lone surrogate": `"\ud800"`,
	"invalid UTF-8": "\"\xff\"", "an escaped NUL": `"a\u0000b"`, "a raw NUL": "\"a\x00b\"", "a raw line break": "\"a\nb\"",
}

func TestHostileBodies(t *testing.T) {
	onBodies(t, func(t *testing.T, e operation, post func(*testing.T, any, ...opt) answer) {
		for defect, body := range hostileTo(e) {
			if body == "" && e.mayBeEmpty() {
				continue
			}
			if a := post(t, body); a.status != http.StatusBadRequest || a.text("code") != "invalid_body" {
				t.Errorf("%s with %s: %d %s", e.Request, defect, a.status, a.body)
			}
		}
	})
}

// wrongFor returns values that are malformed, or of a wrong type, for a member of a body.
func wrongFor(schema *openapi3.Schema) map[string]string {
	wrong := maps.Clone(wrongValues)
	switch {
	case schema.Type.Includes("string"):
		wrong["an integer"] = "7"
	case schema.Type.Is("boolean"):
		wrong["an integer"] = "7"
		delete(wrong, "true")
		delete(wrong, "false")
	case schema.Type.Is("object"):
		wrong["a string"], wrong["an object"] = `"7"`, `{"x":1}`
		if len(schema.Properties) == 0 { // any object is well formed
			delete(wrong, "an object")
			delete(wrong, "nested")
		}
	case schema.Type.Is("array"):
		delete(wrong, "an array")
		wrong["a string"], wrong["an array of numbers"], wrong["an array of arrays"], wrong["an object with a member"] = `"7"`, "[7]", `[["x"]]`, `{"x":1}`
		if schema.Items.Value.Type.Is("string") {
			delete(wrong, "an array of strings")
		}
	default:
		wrong["a string"], wrong["a whole number with a fraction"] = `"7"`, "7.0"
	}
	return wrong
}

func TestWrongTypesOfValues(t *testing.T) {
	onBodies(t, func(t *testing.T, e operation, post func(*testing.T, any, ...opt) answer) {
		for name, member := range e.schema().Properties {
			for defect, value := range wrongFor(member.Value) {
				a := post(t, e.replace(name, value))
				if a.status != http.StatusBadRequest || a.text("code") != "invalid_body" {
					t.Errorf("%s with %s as %s: %d %s", e.Request, defect, name, a.status, a.body)
				}
			}
		}
	})
}

// The strict parser accepts blanks, escapes, and a body of just the largest size.
func TestGoodBodiesAreWellFormed(t *testing.T) {
	onBodies(t, func(t *testing.T, e operation, post func(*testing.T, any, ...opt) answer) {
		good := e.Text()
		padded := " \t\r\n" + strings.ReplaceAll(good, `":`, "\" :\n ") + "\r\n"
		escaped := good[:2] + fmt.Sprintf(`\u%04x`, good[2]) + good[3:] // the first letter of the first name
		full := good + strings.Repeat(" ", e.maxBody()-len(good))
		for _, body := range []string{good, padded, escaped, full} {
			a := post(t, body)
			if a.status == http.StatusBadRequest || a.status == http.StatusRequestEntityTooLarge || a.status == http.StatusUnsupportedMediaType || a.status >= 500 {
				t.Errorf("%s with %.200s: %d %s", e.Request, body, a.status, a.body)
			}
		}
	})
}

// A missing or empty member that the document requires is a validation fault, not a malformed
// body.
func TestMissingMembers(t *testing.T) {
	onBodies(t, func(t *testing.T, e operation, post func(*testing.T, any, ...opt) answer) {
		for _, body := range []m{{}, emptied(e.Body.(m))} {
			a := post(t, body)
			faults, _ := a.at("errors").([]any)
			missing := map[string]bool{}
			for _, fault := range faults {
				pointer, _ := fault.(m)["pointer"].(string)
				missing[strings.TrimPrefix(pointer, "/")] = true
				if e.schema().Properties[strings.TrimPrefix(pointer, "/")] == nil {
					t.Errorf("%s with %v has a fault of %q, which is no member: %s", e.Request, body, pointer, a.body)
				}
			}
			if a.status == http.StatusBadRequest || a.status >= 500 {
				t.Errorf("%s with %v: %d %s", e.Request, body, a.status, a.body)
			}
			if e.route.Guard.Name() == front.Optional().Name() { // 401 first, without session and challenge
				a.fails(http.StatusUnauthorized, "unauthenticated")
				continue
			}
			for _, name := range e.schema().Required {
				if _, sent := body[name]; sent && e.Body.(m)[name] == "" { // it may be empty
					continue
				}
				if a.status != http.StatusUnprocessableEntity || !missing[name] {
					t.Errorf("%s with %v: %d %s, want a fault of /%s", e.Request, body, a.status, a.body, name)
				}
			}
		}
	})
}

// emptied returns the object with texts and lists that are empty, and no other members.
func emptied(object m) m {
	empty := m{}
	for name, value := range object {
		switch value.(type) {
		case string:
			empty[name] = ""
		case []string, []m:
			empty[name] = []string{}
		}
	}
	return empty
}

func TestMediaTypes(t *testing.T) {
	onBodies(t, func(t *testing.T, e operation, post func(*testing.T, any, ...opt) answer) {
		good := e.Text()
		for _, ok := range []string{"application/json", "Application/JSON", "application/json; charset=utf-8", "application/json;charset=UTF-8", `application/json; charset="utf-8"`} {
			post(t, "{", typed(ok)).fails(http.StatusBadRequest, "invalid_body")
		}
		for _, bad := range []string{
			"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", "application/jsonp",
			"application/problem+json", "application/json; charset=iso-8859-1", "application/json; charset=utf-16", "application/json; charset=",
			"application/json, text/plain", "json", "*/*", "application/*", "", ";", "application/json;charset=utf-8;charset=utf-16",
		} {
			a := post(t, good, typed(bad)).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
			if detail := a.text("detail"); !strings.Contains(detail, "application/json") || strings.Contains(detail, "logo") {
				t.Errorf("%s as %s: %s", e.Request, bad, detail)
			}
			post(t, "", typed(bad)).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
		}
		for reason, opts := range map[string][]opt{
			"The only charset is utf-8": {typed("application/json; charset=utf8")}, "leave the header out, identity too": {with("Content-Encoding", "identity")},
			"has 2 headers Content-Type": {with("Content-Type", "application/json")}, "isn't declared as JSON": {typed("text/plain")},
		} {
			if a := post(t, good, opts...).fails(http.StatusUnsupportedMediaType, "unsupported_media_type"); !strings.Contains(a.text("detail"), reason) {
				t.Errorf("%q isn't said: %s", reason, a.text("detail"))
			}
		}
		post(t, good, without("Content-Type")).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
		twice := with("Content-Type", "application/json") // added to the one that each request has
		post(t, good, twice).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
		for _, encoding := range []string{"gzip", "identity", "br", "nonsense", ""} {
			post(t, good, with("Content-Encoding", encoding)).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
			post(t, nil, with("Content-Encoding", encoding)).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
		}
		if !e.mayBeEmpty() {
			post(t, nil).fails(http.StatusBadRequest, "invalid_body")
		}
	})
}

func TestBodySizes(t *testing.T) {
	onBodies(t, func(t *testing.T, e operation, post func(*testing.T, any, ...opt) answer) {
		good := e.Text()
		chunked := func(r *http.Request) { r.ContentLength = -1 }
		over := good + strings.Repeat(" ", e.maxBody()+1-len(good))
		for _, body := range []string{over, over + over, strings.Repeat("\xff", 2<<20)} {
			post(t, body).fails(http.StatusRequestEntityTooLarge, "body_too_large")
			post(t, body, chunked).fails(http.StatusRequestEntityTooLarge, "body_too_large")
			post(t, body, typed("text/plain")).fails(http.StatusRequestEntityTooLarge, "body_too_large")
		}
		post(t, over[1:]+"x", chunked).fails(http.StatusRequestEntityTooLarge, "body_too_large")
	})
}

// An incomplete body is answered 400.
func TestBodyCutOff(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		head := "POST /api/v2/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
		good, _ := encode(t, m{"email": owner.Email, "password": password})
		for _, request := range []string{
			head + "Content-Length: 500\r\n\r\n" + good,
			head + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n", len(good), good),
			head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + good,
			"PUT /api/v2/tenant/logo HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/png\r\nCookie: JSESSIONID=" + owner.Token() +
				"\r\nContent-Length: 500\r\n\r\n" + string(dot),
		} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(d.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(waittest.Deadline())
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || res.StatusCode != http.StatusBadRequest {
				t.Errorf("%q: %v %v, want 400", request, res, err)
			}
		}
	})
}

// A body that stalls holds up no answer, also if the handler doesn't read it: net/http drains an
// unread body before the answer is sent. At full size each answer comes within answersWithin.
func TestRaceBodyTooSlow(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		d.send(t, "GET /openapi.json", nil).ok(http.StatusOK) // making it, at the first request, takes the race detector seconds
		var all sync.WaitGroup
		for route, want := range map[string]int{
			"POST /api/v2/auth/login":    http.StatusBadRequest,
			"POST /api/v2/auth/logout":   http.StatusNoContent,
			"GET /api/v2/auth/session":   http.StatusUnauthorized,
			"GET /no/such/path":          http.StatusNotFound,
			"PUT /api/v2/auth/login":     http.StatusMethodNotAllowed,
			"GET /healthz":               http.StatusOK,
			"POST /login":                http.StatusBadRequest,
			"POST /api/v2/access/check":  http.StatusUnauthorized,
			"GET /openapi.json":          http.StatusOK,
			"POST /api/v2/auth/nonsense": http.StatusNotFound,
		} {
			all.Go(func() { d.stallBody(t, route, want) })
		}
		all.Wait()
	})
}

// stallBody sends a request with only the first byte of its body, and requires the status.
func (s *server) stallBody(t *testing.T, route string, want int) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(waittest.Deadline())
	began := time.Now()
	if _, err := io.WriteString(conn, route+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"); err != nil {
		t.Error(err)
		return
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if took := time.Since(began); err != nil || res.StatusCode != want || fulltest.On() && took > answersWithin {
		t.Errorf("%s: %v %v after %v, want %d within %v", route, res, err, took, want, answersWithin)
	}
}

// An endpoint that takes no body ignores it, with its Content-Type and Content-Encoding.
func TestBodiesThatAreNotRead(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		for _, body := range []string{"", "{", "null", "\x00\xff", strings.Repeat("x", 100<<10)} {
			for _, contentType := range []string{"application/json", "text/plain", "nonsense", "application/json; charset=utf-16"} {
				token := d.token(t, acme.Owner.Email)
				d.send(t, "POST /api/v2/auth/logout", body, as(token), typed(contentType), with("Content-Encoding", "gzip")).ok(http.StatusNoContent)
				d.send(t, "GET /api/v2/auth/session", nil, as(token)).fails(http.StatusUnauthorized, "unauthenticated")
			}
		}
		d.send(t, "GET /api/v2/auth/session", "{", as(acme.Owner.Token()), typed("nonsense")).ok(http.StatusOK)
		d.send(t, "DELETE /api/v2/auth/memberships/tnt_x", "{", as(acme.Owner.Token())).fails(http.StatusNotFound, "not_found")
	})
}
