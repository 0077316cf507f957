package examples_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// attack is a request in which a VIEWER claims more rights or another identity. It may
// be refused; if it reaches the service, then with the true identity.
type attack struct{ name, text string }

// head is a request of one line and headers. Names and values that no client
// may choose have "evil" or OWNER in them.
func head(line string, headers ...string) string {
	return exact(line+" HTTP/1.1", append([]string{"Host: gateway.example", "Cookie: JSESSIONID={viewer}"}, headers...)...)
}

// exact is head with nothing added.
func exact(line string, headers ...string) string {
	return line + "\r\n" + strings.Join(append(headers, "", ""), "\r\n")
}

func chunked(body string, trailers ...string) string {
	return fmt.Sprintf("%x\r\n%s\r\n0\r\n%s\r\n", len(body), body, strings.Join(append(trailers, ""), "\r\n"))
}

// everyName lists the headers of identity.
const everyName = "X-Auth-User, X-Auth-Tenant, X-Auth-Role, X-Auth-Email, X-Auth-Session, X-Auth-Key, X-Auth-Assertion, X-Auth-Aal"

var attacks = []attack{
	// Identity.
	{"identity", head("GET /reports", "X-Auth-User: usr_evil", "X-Auth-Tenant: tnt_evil", "X-Auth-Role: OWNER", "X-Auth-Email: evil@x.example", "X-Auth-Session: ses_evil", "X-Auth-Key: key_evil", "X-Auth-Assertion: evil")},
	{"identity in lower case", head("GET /reports", "x-auth-user: usr_evil", "x-auth-role: OWNER", "x-auth-key: key_evil")},
	{"identity in upper case", head("GET /reports", "X-AUTH-USER: usr_evil", "X-AUTH-ROLE: OWNER", "X-AUTH-KEY: key_evil")},
	{"identity with underscores", head("GET /reports", "X_Auth_User: usr_evil", "x_auth_role: OWNER", "X_AUTH_KEY: key_evil")},
	{"identity with one underscore", head("GET /reports", "X-Auth_User: usr_evil", "X_Auth-Role: OWNER", "x-auth_key: key_evil")},
	{"identity with dots", head("GET /reports", "X.Auth.User: usr_evil", "X.Auth.Role: OWNER")},
	{"identity twice", head("GET /reports", "X-Auth-Role: OWNER", "X-Auth-User: usr_evil", "X-Auth-Role: OWNER", "x-auth-user: usr_evil")},
	{"identity before all else", exact("GET /reports HTTP/1.1", "X-Auth-Role: OWNER", "X-Auth-User: usr_evil", "Host: gateway.example", "Cookie: JSESSIONID={viewer}")},
	{"identity without a session", exact("GET /reports HTTP/1.1", "Host: gateway.example", "X-Auth-User: usr_evil", "X-Auth-Role: OWNER")},
	{"another credential", head("GET /reports", "Authorization: Basic evil")},
	{"an assertion in other spellings", head("GET /reports", "x-auth-assertion: evil", "X_Auth_Assertion: evil")},
	{"a key that is empty in truth", head("GET /reports", "X-Auth-Key: key_evil")},
	{"a space before the colon", head("GET /reports", "X-Auth-Role : OWNER", "X-Auth-User\t: usr_evil")},
	{"a space before the name", head("GET /reports", " X-Auth-Role: OWNER")},
	{"a folded header", head("GET /reports", "X-Note: a", " X-Auth-Role: OWNER", "X-Auth-Role:", " OWNER")},
	{"a bare line feed", head("GET /reports", "X-Note: a\nX-Auth-Role: OWNER")},
	{"a bare carriage return", head("GET /reports", "X-Note: a\rX-Auth-Role: OWNER")},
	{"a NUL in a name", head("GET /reports", "X-Auth-Role\x00: OWNER")},
	{"a NUL in a value", head("GET /reports", "X-Note: a\x00\r\nX-Auth-Role: OWNER")},
	{"a name that isn't ASCII", head("GET /reports", "X-Auth-Rol\xc3\xa9: OWNER", "X\xe2\x80\x91Auth\xe2\x80\x91Role: OWNER")},
	{"a header without a colon", head("GET /reports", "X-Auth-Role OWNER")},
	{"identity in trailers", head("GET /reports", "Transfer-Encoding: chunked", "Trailer: X-Auth-Role, X-Auth-User") + chunked("x", "X-Auth-Role: OWNER", "X-Auth-User: usr_evil")},
	{"identity in trailers unannounced", head("GET /reports", "Transfer-Encoding: chunked") + chunked("x", "X-Auth-Role: OWNER", "X-Auth-User: usr_evil")},

	// The true identity removed.
	{"hop-by-hop identity", head("GET /reports", "Connection: "+everyName)},
	{"hop-by-hop identity in lower case", head("GET /reports", "Connection: "+strings.ToLower(everyName))},
	{"hop-by-hop identity and an own one", head("GET /reports", "X-Auth-Role: OWNER", "Connection: keep-alive, X-Auth-Role")},
	{"hop-by-hop identity in two headers", head("GET /reports", "Connection: keep-alive", "Connection: X-Auth-User,X-Auth-Role")},
	{"hop-by-hop identity in an upgrade", head("GET /reports", "Connection: Upgrade, "+everyName, "Upgrade: websocket")},
	{"hop-by-hop identity for old proxies", head("GET /reports", "Proxy-Connection: "+everyName, "Keep-Alive: X-Auth-Role")},
	{"hop-by-hop method", head("POST /messages", "Connection: X-Original-Method, X-Forwarded-Method, X-Forwarded-Uri", "Content-Length: 0")},
	{"hop-by-hop cookie", head("GET /reports", "Connection: Cookie")},

	// Another method.
	{"a method forwarded", head("POST /messages", "X-Forwarded-Method: GET", "X-Original-Method: GET", "X_Forwarded_Method: GET", "Content-Length: 0")},
	{"a method for the service", head("GET /messages", "X-Forwarded-Method: evil", "X-Original-Method: evil", "X-HTTP-Method-Override: evil", "X-HTTP-Method: evil", "X-Method-Override: evil", "x_http_method_override: evil")},
	{"a method in small letters", head("post /messages", "Content-Length: 0")},
	{"a method in mixed letters", head("PoSt /messages", "Content-Length: 0")},
	{"a method with a tab", head("GET\tPOST /messages")},
	{"a method behind a line", "\r\n" + head("POST /messages", "Content-Length: 0")},
	{"PUT", head("PUT /messages", "Content-Length: 0")},
	{"PATCH", head("PATCH /messages", "Content-Length: 0")},
	{"DELETE", head("DELETE /messages")},
	{"OPTIONS", head("OPTIONS /messages")},
	{"TRACE", head("TRACE /messages")},
	{"CONNECT", head("CONNECT /messages")},
	{"PROPFIND", head("PROPFIND /messages")},

	// Another path.
	{"a path forwarded", head("POST /messages", "X-Forwarded-Uri: /reports", "X-Original-URI: /reports", "X-Original-URL: /reports", "X-Rewrite-URL: /reports", "Content-Length: 0")},
	{"a path for the service", head("GET /reports", "X-Forwarded-Uri: /evil", "X-Original-URI: /evil", "X-Original-URL: /evil", "X-Rewrite-URL: /evil", "X_Original_URL: /evil", "X-Forwarded-Prefix: /evil")},
	{"another sender", head("GET /reports", "Forwarded: for=evil;host=evil;proto=evil", "X-Forwarded-For: evil", "X-Forwarded-Host: evil", "X-Forwarded-Port: evil", "X-Forwarded-Proto: evil", "X-Real-IP: evil")},
	{"dots", head("POST /reports/../messages", "Content-Length: 0")},
	{"one dot", head("POST /reports/./../messages/.", "Content-Length: 0")},
	{"dots encoded", head("POST /reports/%2e%2e/messages", "Content-Length: 0")},
	{"dots encoded by half", head("POST /reports/.%2E/messages", "Content-Length: 0")},
	{"dots encoded twice", head("POST /reports/%252e%252e/messages", "Content-Length: 0")},
	{"dots out of a readable path", head("GET /messages/%2e%2e/evil")},
	{"dots between readable paths", head("GET /secrets/../reports")},
	{"encoded dots between readable paths", head("GET /secrets/%2e%2e/reports")},
	{"slashes before a readable path", head("GET //reports//daily")},
	{"a slash encoded in a readable path", head("GET /reports/..%2f..%2fsecrets")},
	{"a backslash in a readable path", head(`GET /reports/..\..\secrets`)},
	{"a parameter in a readable path", head("GET /reports/..;/secrets")},
	{"dots encoded twice in a readable path", head("GET /reports/%252e%252e/secrets")},
	{"a slash encoded", head("POST /reports%2f..%2fmessages", "Content-Length: 0")},
	{"a slash encoded at the end", head("POST /messages%2F", "Content-Length: 0")},
	{"a backslash", head(`POST /reports\..\messages`, "Content-Length: 0")},
	{"a backslash encoded", head("POST /reports%5c..%5cmessages", "Content-Length: 0")},
	{"two slashes", head("POST //messages", "Content-Length: 0")},
	{"two slashes within", head("POST /reports//..//messages", "Content-Length: 0")},
	{"a letter encoded", head("POST /%6dessages", "Content-Length: 0")},
	{"all letters encoded", head("POST /%6d%65%73%73%61%67%65%73", "Content-Length: 0")},
	{"big letters", head("POST /MESSAGES", "Content-Length: 0")},
	{"a NUL in the path", head("POST /messages%00", "Content-Length: 0")},
	{"a NUL before the path ends", head("POST /reports%00/../messages", "Content-Length: 0")},
	{"a path parameter", head("POST /messages;x=1", "Content-Length: 0")},
	{"a path parameter with dots", head("POST /reports/..;/messages", "Content-Length: 0")},
	{"a query mark encoded", head("POST /reports%3f/../messages", "Content-Length: 0")},
	{"a fragment", head("POST /messages#/../reports", "Content-Length: 0")},
	{"a fragment encoded", head("POST /reports%23/../../messages", "Content-Length: 0")},
	{"a malformed escape", head("POST /messages%zz", "Content-Length: 0")},
	{"an overlong escape", head("POST /reports/%c0%ae%c0%ae/messages", "Content-Length: 0")},
	{"no slash", head("POST messages", "Content-Length: 0")},
	{"a prefix alike", head("POST /messagesevil", "Content-Length: 0")},
	{"a whole URL", head("POST http://gateway.example/messages", "Content-Length: 0")},
	{"a whole URL elsewhere", head("POST http://evil.example/messages", "Content-Length: 0")},
	{"a whole URL with dots", head("POST http://gateway.example/reports/../messages", "Content-Length: 0")},
	{"a whole URL with two slashes", head("POST http://gateway.example//messages", "Content-Length: 0")},

	// Another question to Doorward.
	{"an action in the query", head("POST /messages?action=message.read", "Content-Length: 0")},
	{"two actions in the query", head("POST /messages?action=message.read&action=report.read", "Content-Length: 0")},
	{"an end of the query", head("POST /messages?&original=&action=message.read", "Content-Length: 0")},
	{"an empty action", head("POST /messages?action=", "Content-Length: 0")},
	{"the internal address", head("POST /_doorward?action=message.read", "Content-Length: 0")},

	// Another request inside the first.
	{"two lengths", head("GET /reports", "Content-Length: 5", "Content-Length: 0") + "POST "},
	{"a length and chunks", head("GET /reports", "Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n" + smuggled},
	{"chunks with a twist", head("GET /reports", "Transfer-Encoding: xchunked", "Content-Length: 0") + smuggled},
	{"chunks with a space", head("GET /reports", "Transfer-Encoding : chunked", "Content-Length: 0") + smuggled},
	{"chunks twice", head("GET /reports", "Transfer-Encoding: chunked, identity") + "0\r\n\r\n" + smuggled},
	{"a length with a sign", head("GET /reports", "Content-Length: +0") + smuggled},
	{"a chunk that is none", head("GET /reports", "Transfer-Encoding: chunked") + "0x0\r\n\r\n" + smuggled},
	{"a request behind the first", head("GET /reports", "Content-Length: 0") + smuggled},
	{"old HTTP", exact("POST /messages HTTP/1.0", "Cookie: JSESSIONID={viewer}", "X-Auth-Role: OWNER", "Content-Length: 0")},
	{"very old HTTP", exact("GET /messages")},
	{"new HTTP", exact("POST /messages HTTP/2.0", "Host: gateway.example", "Cookie: JSESSIONID={viewer}", "Content-Length: 0")},
	{"two hosts", head("GET /reports", "Host: evil.example")},
	{"no host", exact("GET /reports HTTP/1.1", "Cookie: JSESSIONID={viewer}")},
	{"a host with a path", exact("GET /reports HTTP/1.1", "Host: gateway.example/messages", "Cookie: JSESSIONID={viewer}")},
}

// smuggled is a request that would do harm if it reached the service past the gateway.
var smuggled = exact("POST /messages HTTP/1.1", "Host: gateway.example", "X-Auth-User: usr_evil", "X-Auth-Role: OWNER", "Content-Length: 0")

// testAttacks sends all attacks.
func testAttacks(t *testing.T, s *site) {
	s.reached(t)
	viewer := s.people["VIEWER"]
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			got := s.raw(t, strings.ReplaceAll(a.text, "{viewer}", viewer.Token()))
			for _, answer := range got {
				var e echo
				if answer.status == http.StatusOK && json.Unmarshal(answer.body, &e) == nil && e.Method != "" {
					judge(t, e, viewer.identity)
				}
			}
			for _, line := range s.reached(t) {
				judgeLine(t, line, viewer.identity)
			}
		})
	}
}

// judge checks that the service saw exactly the true identity, and a request allowed to
// a VIEWER.
func judge(t *testing.T, e echo, want identity) {
	t.Helper()
	if e.Identity != want {
		t.Errorf("identity at the service: %+v, want %+v", e.Identity, want)
	}
	if !forViewers(e.Method, e.Path) {
		t.Errorf("the service got %s %s", e.Method, e.Path)
	}
	for name, values := range e.Headers {
		judgeHeader(t, name, values)
	}
}

func judgeHeader(t *testing.T, name string, values []string) {
	t.Helper()
	text := strings.Join(values, "\n")
	switch {
	case name == "X-Note": // what the client says there is its own
	case strings.Contains(name+text, "evil") || strings.Contains(text, "OWNER"):
		t.Errorf("the client's own %s: %q at the service", name, values)
	case strings.HasPrefix(folded(name), "x-auth-") && (len(values) != 1 || !strings.Contains(everyName, name)):
		t.Errorf("%s: %q at the service", name, values)
	case name == "Cookie" || name == "Authorization":
		t.Errorf("the credential at the service, in %s", name)
	}
}

// folded is a header name as CGI programs read it.
func folded(name string) string {
	return strings.ToLower(notLetters.ReplaceAllString(name, "-"))
}

var notLetters = regexp.MustCompile(`[^A-Za-z0-9]`)

// judgeLine does the same for a line of the service's log: a request past the gateway
// may have no answer.
func judgeLine(t *testing.T, line string, want identity) {
	t.Helper()
	words := strings.Split(line, " ")
	if len(words) != 4 || words[2] != want.User || words[3] != want.Role || !forViewers(words[0], words[1]) {
		t.Errorf("the service got %q", line)
	}
}

// twoReadings matches a path that programs interpret differently.
var twoReadings = regexp.MustCompile(`(?i)//|/\.\.?(/|$)|%2e|%2f|%5c|%25|%00|;|\\`)

// forViewers reports whether a VIEWER may make the request, and it is unambiguous.
func forViewers(method, target string) bool {
	raw, _, _ := strings.Cut(target, "?")
	decoded, err := url.PathUnescape(raw)
	if err != nil || twoReadings.MatchString(raw) {
		return false
	}
	known := decoded == "/messages" || decoded == "/reports" || strings.HasPrefix(decoded, "/messages/") || strings.HasPrefix(decoded, "/reports/")
	return known && (method == http.MethodGet || method == http.MethodHead)
}
