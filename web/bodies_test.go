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
)

// typed sets another Content-Type.
func typed(contentType string) opt {
	return func(r *http.Request) { r.Header.Set("Content-Type", contentType) }
}

// bodyEndpoint is an endpoint that takes a body.
type bodyEndpoint struct {
	path       string // with a method in front, unless it is POST
	wellFormed m      // a body that is refused, but not for its form
	who        string // "owner", "operator", or "" for no credential
}

// route returns the method and path of the endpoint.
func (e bodyEndpoint) route() string {
	if strings.Contains(e.path, " ") {
		return e.path
	}
	return "POST " + e.path
}

// bodyEndpoints are the endpoints that take a JSON body, except PUT of policies and models (see
// TestLargeBodies), introspection (see web/edge) and AuthZEN. Every well-formed body is refused
// with a code other than invalid_body, so that a malformed one gets a different answer.
var bodyEndpoints = []bodyEndpoint{
	{"/api/v2/auth/invite", m{"email": "x@acme.example", "role": "NONE", "name": "X", "expiresInDays": 99, "locale": "en"}, "owner"},
	{"/api/v2/auth/complete-registration", m{"token": forged, "password": "four quiet mice", "confirmPassword": "four quiet mice"}, ""},
	{"/api/v2/auth/accept-invitation", m{"token": forged, "password": "four quiet mice"}, ""},
	{"/api/v2/auth/login", m{"email": "nobody@acme.example", "password": "four quiet mice", "tenantId": "tnt_x"}, ""},
	{"/api/v2/auth/switch-tenant", m{"tenantId": "tnt_x"}, "owner"},
	{"/api/v2/auth/forgot-password", m{"email": "none"}, ""},
	{"/api/v2/auth/reset-password", m{"token": forged, "password": "four quiet mice", "confirmPassword": "four quiet mice"}, ""},
	{"/api/v2/auth/change-email", m{"email": "none"}, "owner"},
	{"/api/v2/auth/change-email/confirm", m{"token": forged}, ""},
	{"/api/v2/auth/undo-email", m{"token": forged}, ""},
	{"/api/v2/auth/step-up/finish", m{"challenge": strings.Repeat("A", 43), "password": "x"}, "owner"},
	{"/api/v2/auth/change-password", m{"currentPassword": "four quiet mice", "password": "x", "confirmPassword": "x"}, "owner"},

	{"/api/v2/auth/login/second", m{"challenge": forged, "code": "123456", "rememberDevice": true}, ""},
	{"/api/v2/auth/factors/totp", m{"challenge": forged, "name": "Phone"}, ""},
	{"/api/v2/auth/factors/totp/confirm", m{"id": "mfa_absent", "code": "123456", "challenge": forged}, ""},
	{"/api/v2/auth/passkey/finish", m{"challenge": forged, "credential": m{"id": "x"}, "tenantId": "tnt_x"}, ""},
	{"/api/v2/auth/factors/passkey/begin", m{"challenge": forged}, ""},
	{"/api/v2/auth/factors/passkey/finish", m{"challenge": forged, "credential": m{"id": "x"}, "name": "Phone"}, ""},
	{"/api/v2/auth/factors/reset", m{"token": forged, "password": "four quiet mice"}, ""},
	{"PATCH /api/v2/auth/factors/mfa_absent", m{"name": "X"}, "owner"},

	{"/api/v2/auth/invite/bulk", m{"invitations": []m{}}, "owner"},
	{"/api/v2/users/bulk", m{"ids": []string{}, "role": "NONE", "status": "none", "remove": true}, "owner"},
	{"/api/v2/invitations/resend", m{"ids": []string{}}, "owner"},
	{"/api/v2/invitations/revoke", m{"ids": []string{}}, "owner"},
	{"PATCH /api/v2/users/usr_absent", m{"role": "NONE", "status": "none", "name": "X"}, "owner"},
	{"PATCH /api/v2/tenant", m{"name": "X", "settings": m{"sessionIdleMinutes": 9999}}, "owner"},
	{"DELETE /api/v2/tenant", m{"confirm": "acme"}, "owner"},
	{"DELETE /api/v2/auth/account", m{"confirm": "acme"}, "owner"},
	{"/api/v2/api-keys", m{"name": "X", "permissions": []string{"x"}, "role": "NONE", "expiresInDays": 9999, "allowedIps": []string{"x"}, "perSecond": 0, "ownerId": "usr_x"}, "owner"},
	{"/api/v2/webhooks", m{"url": "x", "events": []string{"x"}, "about": "X", "include": []string{"x"}, "enabled": true}, "owner"},
	{"PATCH /api/v2/webhooks/whk_absent", m{"url": "x", "events": []string{"x"}, "about": "X", "include": []string{"x"}, "enabled": false}, "owner"},
	{hookRotateAbsent, m{"graceHours": 200}, "owner"},
	{replayAbsent, m{"after": 1, "from": "x", "to": "x", "events": []string{"x"}}, "owner"},
	{"PATCH /api/v2/api-keys/key_absent", m{"name": "X", "permissions": []string{"x"}, "status": "none", "expiresInDays": 9999, "allowedIps": []string{"x"}, "perSecond": 0, "ownerId": "usr_x"}, "owner"},
	{rotateAbsent, m{"graceHours": 999}, "owner"},
	{"/api/v2/roles", m{"name": "x", "permissions": []string{"x"}, "about": "x"}, "owner"},
	{"PATCH /api/v2/roles/rol_absent", m{"name": "x", "permissions": []string{"x"}, "about": "x"}, "owner"},
	{"/api/v2/access/explain", m{"userId": "usr_x", "action": "message.send", "resource": m{"type": "x", "id": "x"}, "context": m{"ip": "x"}, "version": 9}, "owner"},
	{planPath, m{"text": "x", "hours": 999}, "owner"},
	{"/api/v2/auth/token", m{"audience": "none"}, "owner"},
	{"/api/v2/auth/report-key", m{"key": "dwk_x"}, ""},
	{"/api/v2/tenants", m{"name": "X", "ownerEmail": "none"}, "operator"},
	{"PATCH /api/v2/tenants/tnt_absent", m{"status": "frozen"}, "operator"},
}

const planPath = "/api/v2/policy/plan"

// Models and policies may have larger bodies; the other rules for bodies apply to them, too.
func TestLargeBodies(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner, operator := as(d.Tenant("Acme").Owner.Token()), bearer(d.operatorKey(t))
		for route, who := range map[string]opt{"PUT /api/v2/policy": owner, "PUT /api/v2/model": operator, "POST " + planPath: owner} {
			text := strings.Repeat("x", 1<<20)
			d.send(t, route, m{"text": text}, who, with("If-Match", "*")).fails(http.StatusRequestEntityTooLarge, "body_too_large")
			d.send(t, route, m{"text": text[:1<<19]}, who, with("If-Match", "*")).ok(http.StatusUnprocessableEntity)
			d.send(t, route, "{", who, with("If-Match", "*")).fails(http.StatusBadRequest, "invalid_body")
			d.send(t, route, m{"text": ""}, who, with("If-Match", "*"), typed("text/plain")).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
			if route != "POST "+planPath {
				d.send(t, route, m{"text": ""}, who).fails(http.StatusPreconditionRequired, "precondition_required")
			}
		}
	})
}

// onBodyEndpoints runs a test for each endpoint, with a well-formed body as text.
func onBodyEndpoints(t *testing.T, test func(t *testing.T, good string, post func(t *testing.T, body any, opts ...opt) answer, e bodyEndpoint)) {
	t.Helper()
	onSQLite(t, func(t *testing.T, d *server) {
		who := map[string]opt{
			"owner": as(d.Tenant("Acme").Owner.Token()), "operator": bearer(d.operatorKey(t)), "": anonymous,
		}
		for _, e := range bodyEndpoints {
			good, _ := encode(t, e.wellFormed)
			test(t, strings.TrimSpace(good), func(t *testing.T, body any, opts ...opt) answer {
				t.Helper()
				return d.send(t, e.route(), body, append(opts, who[e.who])...)
			}, e)
		}
	})
}

// quoted returns the text as a JSON string.
func quoted(s string) string { return fmt.Sprintf("%q", s) }

// hostileTo returns bodies that are malformed for any endpoint, made from a well-formed one
// and keyed by their defect.
func hostileTo(e bodyEndpoint, good string) map[string]string {
	name := slices.Sorted(maps.Keys(e.wellFormed))[0]
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

// Paths of objects that don't exist.
const (
	rotateAbsent     = "/api/v2/api-keys/key_absent/rotate"
	hookRotateAbsent = "/api/v2/webhooks/whk_absent/rotate-secret"
	replayAbsent     = "/api/v2/webhooks/whk_absent/replay"
)

// needNoBody are the paths at which the body may be absent.
var needNoBody = []string{rotateAbsent, hookRotateAbsent, replayAbsent, "/api/v2/auth/factors/passkey/begin", "/api/v2/auth/factors/totp"}

func TestHostileBodies(t *testing.T) {
	onBodyEndpoints(t, func(t *testing.T, good string, post func(*testing.T, any, ...opt) answer, e bodyEndpoint) {
		for defect, body := range hostileTo(e, good) {
			if body == "" && slices.Contains(needNoBody, e.path) {
				continue
			}
			if a := post(t, body); a.status != http.StatusBadRequest || a.text("code") != "invalid_body" {
				t.Errorf("%s with %s: %d %s", e.path, defect, a.status, a.body)
			}
		}
	})
}

func TestWrongTypesOfValues(t *testing.T) {
	onBodyEndpoints(t, func(t *testing.T, good string, post func(*testing.T, any, ...opt) answer, e bodyEndpoint) {
		for name, value := range e.wellFormed {
			wrong := maps.Clone(wrongValues)
			switch value.(type) {
			case string:
				wrong["an integer"] = "7"
			case bool:
				wrong["an integer"] = "7"
				delete(wrong, "true")
				delete(wrong, "false")
			case m:
				wrong["a string"], wrong["an object"] = `"7"`, `{"x":1}`
				if name == "credential" { // any object is well formed
					delete(wrong, "an object")
					delete(wrong, "nested")
				}
			case []m:
				delete(wrong, "an array")
				wrong["a string"], wrong["an object with a member"] = `"7"`, `{"x":1}`
			case []string:
				delete(wrong, "an array")
				wrong["a string"], wrong["an array of numbers"], wrong["an array of strings"] = `"7"`, `[7]`, `[["x"]]`
			default:
				wrong["a string"], wrong["a whole number with a fraction"] = `"7"`, "7.0"
			}
			old, _ := encode(t, m{name: value})
			old = unwrapped(old)
			for defect, replacement := range wrong {
				a := post(t, strings.Replace(good, old, quoted(name)+":"+replacement, 1))
				if a.status != http.StatusBadRequest || a.text("code") != "invalid_body" {
					t.Errorf("%s with %s as %s: %d %s", e.path, defect, name, a.status, a.body)
				}
			}
		}
	})
}

// The strict parser accepts blanks, escapes, and a body of just 64 KiB.
func TestGoodBodiesAreWellFormed(t *testing.T) {
	onBodyEndpoints(t, func(t *testing.T, good string, post func(*testing.T, any, ...opt) answer, e bodyEndpoint) {
		padded := " \t\r\n" + strings.ReplaceAll(good, ":", " :\n ") + "\r\n"
		escaped := good[:2] + fmt.Sprintf(`\u%04x`, good[2]) + good[3:] // the first letter of the first name
		full := good + strings.Repeat(" ", 64<<10-len(good))
		for _, body := range []string{good, padded, escaped, full} {
			if a := post(t, body); a.status < 401 || a.status > 429 || a.status == http.StatusRequestEntityTooLarge {
				t.Errorf("%s with %.200s: %d %s", e.path, body, a.status, a.body)
			}
		}
	})
}

// A missing or empty member is a validation fault, not a malformed body.
func TestMissingMembers(t *testing.T) {
	onBodyEndpoints(t, func(t *testing.T, _ string, post func(*testing.T, any, ...opt) answer, e bodyEndpoint) {
		empty := m{}
		for name, value := range e.wellFormed {
			if _, isText := value.(string); isText {
				empty[name] = ""
			}
		}
		if strings.HasPrefix(e.path, "PATCH ") { // has no required members
			return
		}
		switch e.path {
		case "/api/v2/auth/invite/bulk":
			post(t, m{}).invalid("/invitations", "out_of_range")
			return
		case "/api/v2/users/bulk", "/api/v2/invitations/resend", "/api/v2/invitations/revoke":
			post(t, m{}).invalid("/ids", "out_of_range")
			return
		case planPath: // an empty text is valid
			post(t, m{}).invalid("/text", "required")
			return
		case rotateAbsent, hookRotateAbsent, replayAbsent: // have no required members
			post(t, m{}).fails(http.StatusNotFound, "not_found")
			return
		}
		required := map[string][]string{
			"invite": {"/email", "/role"}, "complete-registration": {"/token", "/password", "/confirmPassword"},
			"login": {"/email", "/password"}, "switch-tenant": {"/tenantId"}, "forgot-password": {"/email"},
			"change-email": {"/email"}, "change-email/confirm": {"/token"}, "undo-email": {"/token"},
			"reset-password":   {"/token", "/password", "/confirmPassword"},
			"step-up/finish":   {"/challenge", "/code"},
			"change-password":  {"/password", "/confirmPassword", "/currentPassword"},
			"/api/v2/api-keys": {"/name", "/permissions"}, "/api/v2/roles": {"/name", "/permissions"}, "/api/v2/webhooks": {"/url", "/events"}, "report-key": {"/key"}, "login/second": {"/challenge", "/code"}, "passkey/finish": {"/challenge", "/credential"}, "factors/reset": {"/token", "/password"}, "token": {"/audience"}, "/api/v2/access/explain": {"/userId", "/action"},
			"/api/v2/tenants": {"/name", "/ownerEmail"}, "DELETE /api/v2/tenant": {"/confirm"}, "DELETE /api/v2/auth/account": {"/confirm"},
		}[strings.TrimPrefix(e.path, "/api/v2/auth/")]
		var want []string
		for _, pointer := range required {
			want = append(want, pointer, "required")
		}
		for _, body := range []m{{}, empty} {
			if required == nil { // without session or challenge, accepting an invitation and setting up factors are 401 first
				post(t, body).fails(http.StatusUnauthorized, "unauthenticated")
				continue
			}
			post(t, body).invalid(want...)
		}
	})
}

func TestMediaTypes(t *testing.T) {
	onBodyEndpoints(t, func(t *testing.T, good string, post func(*testing.T, any, ...opt) answer, e bodyEndpoint) {
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
				t.Errorf("%s as %s: %s", e.route(), bad, detail)
			}
			post(t, "", typed(bad)).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
		}
		post(t, good, without("Content-Type")).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
		twice := with("Content-Type", "application/json") // added to the one that each request has
		post(t, good, twice).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
		for _, encoding := range []string{"gzip", "identity", "br", "nonsense", ""} {
			post(t, good, with("Content-Encoding", encoding)).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
			post(t, nil, with("Content-Encoding", encoding)).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
		}
		if !slices.Contains(needNoBody, e.path) {
			post(t, nil).fails(http.StatusBadRequest, "invalid_body")
		}
	})
}

func TestBodySizes(t *testing.T) {
	onBodyEndpoints(t, func(t *testing.T, good string, post func(*testing.T, any, ...opt) answer, e bodyEndpoint) {
		if e.path == planPath {
			return // TestLargeBodies
		}
		chunked := func(r *http.Request) { r.ContentLength = -1 }
		over := good + strings.Repeat(" ", 64<<10+1-len(good))
		for _, body := range []string{over, over + over, strings.Repeat("\xff", 1<<20)} {
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
