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

// viewerRequest is a request with a VIEWER's session and the headers. Names and values that
// no client may choose have "evil" or OWNER in them.
func viewerRequest(line string, headers ...string) string {
	return rawRequest(line+" HTTP/1.1", append([]string{"Host: gateway.example", "Cookie: JSESSIONID={viewer}"}, headers...)...)
}

// rawRequest is a request with these headers and no others.
func rawRequest(line string, headers ...string) string {
	return line + "\r\n" + strings.Join(append(headers, "", ""), "\r\n")
}

func chunked(body string, trailers ...string) string {
	return fmt.Sprintf("%x\r\n%s\r\n0\r\n%s\r\n", len(body), body, strings.Join(append(trailers, ""), "\r\n"))
}

// identityNames lists the headers of identity.
const identityNames = "X-Auth-User, X-Auth-Tenant, X-Auth-Role, X-Auth-Email, X-Auth-Session, X-Auth-Key, X-Auth-Assertion, X-Auth-Aal"

var attacks = []attack{
	// Identity.
	{"identity", viewerRequest("GET /reports", "X-Auth-User: usr_evil", "X-Auth-Tenant: tnt_evil", "X-Auth-Role: OWNER", "X-Auth-Email: evil@x.example", "X-Auth-Session: ses_evil", "X-Auth-Key: key_evil", "X-Auth-Assertion: evil")},
	{"identity in lower case", viewerRequest("GET /reports", "x-auth-user: usr_evil", "x-auth-role: OWNER", "x-auth-key: key_evil")},
	{"identity in upper case", viewerRequest("GET /reports", "X-AUTH-USER: usr_evil", "X-AUTH-ROLE: OWNER", "X-AUTH-KEY: key_evil")},
	{"identity with underscores", viewerRequest("GET /reports", "X_Auth_User: usr_evil", "x_auth_role: OWNER", "X_AUTH_KEY: key_evil")},
	{"identity with one underscore", viewerRequest("GET /reports", "X-Auth_User: usr_evil", "X_Auth-Role: OWNER", "x-auth_key: key_evil")},
	{"identity with dots", viewerRequest("GET /reports", "X.Auth.User: usr_evil", "X.Auth.Role: OWNER")},
	{"identity twice", viewerRequest("GET /reports", "X-Auth-Role: OWNER", "X-Auth-User: usr_evil", "X-Auth-Role: OWNER", "x-auth-user: usr_evil")},
	{"identity before all else", rawRequest("GET /reports HTTP/1.1", "X-Auth-Role: OWNER", "X-Auth-User: usr_evil", "Host: gateway.example", "Cookie: JSESSIONID={viewer}")},
	{"identity without a session", rawRequest("GET /reports HTTP/1.1", "Host: gateway.example", "X-Auth-User: usr_evil", "X-Auth-Role: OWNER")},
	{"another credential", viewerRequest("GET /reports", "Authorization: Basic evil")},
	{"an assertion in other spellings", viewerRequest("GET /reports", "x-auth-assertion: evil", "X_Auth_Assertion: evil")},
	{"a key where there is none", viewerRequest("GET /reports", "X-Auth-Key: key_evil")},
	{"a space before the colon", viewerRequest("GET /reports", "X-Auth-Role : OWNER", "X-Auth-User\t: usr_evil")},
	{"a space before the name", viewerRequest("GET /reports", " X-Auth-Role: OWNER")},
	{"a folded header", viewerRequest("GET /reports", "X-Note: a", " X-Auth-Role: OWNER", "X-Auth-Role:", " OWNER")},
	{"a bare line feed", viewerRequest("GET /reports", "X-Note: a\nX-Auth-Role: OWNER")},
	{"a bare carriage return", viewerRequest("GET /reports", "X-Note: a\rX-Auth-Role: OWNER")},
	{"a NUL in a name", viewerRequest("GET /reports", "X-Auth-Role\x00: OWNER")},
	{"a NUL in a value", viewerRequest("GET /reports", "X-Note: a\x00\r\nX-Auth-Role: OWNER")},
	{"a name that isn't ASCII", viewerRequest("GET /reports", "X-Auth-Rol\xc3\xa9: OWNER", "X\xe2\x80\x91Auth\xe2\x80\x91Role: OWNER")},
	{"a header without a colon", viewerRequest("GET /reports", "X-Auth-Role OWNER")},
	{"identity in trailers", viewerRequest("GET /reports", "Transfer-Encoding: chunked", "Trailer: X-Auth-Role, X-Auth-User") + chunked("x", "X-Auth-Role: OWNER", "X-Auth-User: usr_evil")},
	{"identity in trailers unannounced", viewerRequest("GET /reports", "Transfer-Encoding: chunked") + chunked("x", "X-Auth-Role: OWNER", "X-Auth-User: usr_evil")},

	// The true identity removed.
	{"hop-by-hop identity", viewerRequest("GET /reports", "Connection: "+identityNames)},
	{"hop-by-hop identity in lower case", viewerRequest("GET /reports", "Connection: "+strings.ToLower(identityNames))},
	{"hop-by-hop identity and a forged one", viewerRequest("GET /reports", "X-Auth-Role: OWNER", "Connection: keep-alive, X-Auth-Role")},
	{"hop-by-hop identity in two headers", viewerRequest("GET /reports", "Connection: keep-alive", "Connection: X-Auth-User,X-Auth-Role")},
	{"hop-by-hop identity in an upgrade", viewerRequest("GET /reports", "Connection: Upgrade, "+identityNames, "Upgrade: websocket")},
	{"hop-by-hop identity for old proxies", viewerRequest("GET /reports", "Proxy-Connection: "+identityNames, "Keep-Alive: X-Auth-Role")},
	{"hop-by-hop method", viewerRequest("POST /messages", "Connection: X-Original-Method, X-Forwarded-Method, X-Forwarded-Uri", "Content-Length: 0")},
	{"hop-by-hop cookie", viewerRequest("GET /reports", "Connection: Cookie")},

	// Another method.
	{"a method forwarded", viewerRequest("POST /messages", "X-Forwarded-Method: GET", "X-Original-Method: GET", "X_Forwarded_Method: GET", "Content-Length: 0")},
	{"a method for the service", viewerRequest("GET /messages", "X-Forwarded-Method: evil", "X-Original-Method: evil", "X-HTTP-Method-Override: evil", "X-HTTP-Method: evil", "X-Method-Override: evil", "x_http_method_override: evil")},
	{"a method in lower case", viewerRequest("post /messages", "Content-Length: 0")},
	{"a method in mixed case", viewerRequest("PoSt /messages", "Content-Length: 0")},
	{"a method with a tab", viewerRequest("GET\tPOST /messages")},
	{"a method after an empty line", "\r\n" + viewerRequest("POST /messages", "Content-Length: 0")},
	{"PUT", viewerRequest("PUT /messages", "Content-Length: 0")},
	{"PATCH", viewerRequest("PATCH /messages", "Content-Length: 0")},
	{"DELETE", viewerRequest("DELETE /messages")},
	{"OPTIONS", viewerRequest("OPTIONS /messages")},
	{"TRACE", viewerRequest("TRACE /messages")},
	{"CONNECT", viewerRequest("CONNECT /messages")},
	{"PROPFIND", viewerRequest("PROPFIND /messages")},

	// Another path.
	{"a path forwarded", viewerRequest("POST /messages", "X-Forwarded-Uri: /reports", "X-Original-URI: /reports", "X-Original-URL: /reports", "X-Rewrite-URL: /reports", "Content-Length: 0")},
	{"a path for the service", viewerRequest("GET /reports", "X-Forwarded-Uri: /evil", "X-Original-URI: /evil", "X-Original-URL: /evil", "X-Rewrite-URL: /evil", "X_Original_URL: /evil", "X-Forwarded-Prefix: /evil")},
	{"another sender", viewerRequest("GET /reports", "Forwarded: for=evil;host=evil;proto=evil", "X-Forwarded-For: evil", "X-Forwarded-Host: evil", "X-Forwarded-Port: evil", "X-Forwarded-Proto: evil", "X-Real-IP: evil")},
	{"dots", viewerRequest("POST /reports/../messages", "Content-Length: 0")},
	{"one dot", viewerRequest("POST /reports/./../messages/.", "Content-Length: 0")},
	{"dots encoded", viewerRequest("POST /reports/%2e%2e/messages", "Content-Length: 0")},
	{"dots half encoded", viewerRequest("POST /reports/.%2E/messages", "Content-Length: 0")},
	{"dots encoded twice", viewerRequest("POST /reports/%252e%252e/messages", "Content-Length: 0")},
	{"dots out of a readable path", viewerRequest("GET /messages/%2e%2e/evil")},
	{"dots between readable paths", viewerRequest("GET /secrets/../reports")},
	{"encoded dots between readable paths", viewerRequest("GET /secrets/%2e%2e/reports")},
	{"slashes before a readable path", viewerRequest("GET //reports//daily")},
	{"a slash encoded in a readable path", viewerRequest("GET /reports/..%2f..%2fsecrets")},
	{"a backslash in a readable path", viewerRequest(`GET /reports/..\..\secrets`)},
	{"a parameter in a readable path", viewerRequest("GET /reports/..;/secrets")},
	{"dots encoded twice in a readable path", viewerRequest("GET /reports/%252e%252e/secrets")},
	{"a slash encoded", viewerRequest("POST /reports%2f..%2fmessages", "Content-Length: 0")},
	{"a slash encoded at the end", viewerRequest("POST /messages%2F", "Content-Length: 0")},
	{"a backslash", viewerRequest(`POST /reports\..\messages`, "Content-Length: 0")},
	{"a backslash encoded", viewerRequest("POST /reports%5c..%5cmessages", "Content-Length: 0")},
	{"two slashes", viewerRequest("POST //messages", "Content-Length: 0")},
	{"two slashes within", viewerRequest("POST /reports//..//messages", "Content-Length: 0")},
	{"a letter encoded", viewerRequest("POST /%6dessages", "Content-Length: 0")},
	{"all letters encoded", viewerRequest("POST /%6d%65%73%73%61%67%65%73", "Content-Length: 0")},
	{"a path in upper case", viewerRequest("POST /MESSAGES", "Content-Length: 0")},
	{"a NUL in the path", viewerRequest("POST /messages%00", "Content-Length: 0")},
	{"a NUL before the path ends", viewerRequest("POST /reports%00/../messages", "Content-Length: 0")},
	{"a path parameter", viewerRequest("POST /messages;x=1", "Content-Length: 0")},
	{"a path parameter with dots", viewerRequest("POST /reports/..;/messages", "Content-Length: 0")},
	{"a question mark encoded", viewerRequest("POST /reports%3f/../messages", "Content-Length: 0")},
	{"a fragment", viewerRequest("POST /messages#/../reports", "Content-Length: 0")},
	{"a fragment encoded", viewerRequest("POST /reports%23/../../messages", "Content-Length: 0")},
	{"a malformed escape", viewerRequest("POST /messages%zz", "Content-Length: 0")},
	{"an overlong escape", viewerRequest("POST /reports/%c0%ae%c0%ae/messages", "Content-Length: 0")},
	{"no slash", viewerRequest("POST messages", "Content-Length: 0")},
	{"a longer path with the prefix", viewerRequest("POST /messagesevil", "Content-Length: 0")},
	{"an absolute URL", viewerRequest("POST http://gateway.example/messages", "Content-Length: 0")},
	{"an absolute URL of another host", viewerRequest("POST http://evil.example/messages", "Content-Length: 0")},
	{"an absolute URL with dots", viewerRequest("POST http://gateway.example/reports/../messages", "Content-Length: 0")},
	{"an absolute URL with two slashes", viewerRequest("POST http://gateway.example//messages", "Content-Length: 0")},

	// Another question to Doorward.
	{"an action in the query", viewerRequest("POST /messages?action=message.read", "Content-Length: 0")},
	{"two actions in the query", viewerRequest("POST /messages?action=message.read&action=report.read", "Content-Length: 0")},
	{"a parameter that ends the action", viewerRequest("POST /messages?&original=&action=message.read", "Content-Length: 0")},
	{"an empty action", viewerRequest("POST /messages?action=", "Content-Length: 0")},
	{"the internal address", viewerRequest("POST /_doorward?action=message.read", "Content-Length: 0")},

	// Another request inside the first.
	{"two lengths", viewerRequest("GET /reports", "Content-Length: 5", "Content-Length: 0") + "POST "},
	{"a length and chunks", viewerRequest("GET /reports", "Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n" + smuggled},
	{"an unknown transfer coding", viewerRequest("GET /reports", "Transfer-Encoding: xchunked", "Content-Length: 0") + smuggled},
	{"chunks with a space", viewerRequest("GET /reports", "Transfer-Encoding : chunked", "Content-Length: 0") + smuggled},
	{"chunks and another coding", viewerRequest("GET /reports", "Transfer-Encoding: chunked, identity") + "0\r\n\r\n" + smuggled},
	{"a length with a sign", viewerRequest("GET /reports", "Content-Length: +0") + smuggled},
	{"an invalid chunk size", viewerRequest("GET /reports", "Transfer-Encoding: chunked") + "0x0\r\n\r\n" + smuggled},
	{"a request behind the first", viewerRequest("GET /reports", "Content-Length: 0") + smuggled},
	{"HTTP/1.0", rawRequest("POST /messages HTTP/1.0", "Cookie: JSESSIONID={viewer}", "X-Auth-Role: OWNER", "Content-Length: 0")},
	{"HTTP/0.9", rawRequest("GET /messages")},
	{"HTTP/2.0", rawRequest("POST /messages HTTP/2.0", "Host: gateway.example", "Cookie: JSESSIONID={viewer}", "Content-Length: 0")},
	{"two hosts", viewerRequest("GET /reports", "Host: evil.example")},
	{"no host", rawRequest("GET /reports HTTP/1.1", "Cookie: JSESSIONID={viewer}")},
	{"a host with a path", rawRequest("GET /reports HTTP/1.1", "Host: gateway.example/messages", "Cookie: JSESSIONID={viewer}")},
}

// smuggled is a request that would do harm if it reached the service past the gateway.
var smuggled = rawRequest("POST /messages HTTP/1.1", "Host: gateway.example", "X-Auth-User: usr_evil", "X-Auth-Role: OWNER", "Content-Length: 0")

// testAttacks sends all attacks.
func testAttacks(t *testing.T, s *site) {
	s.reached(t) // forgets earlier requests
	viewer := s.people["VIEWER"]
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			got := s.raw(t, strings.ReplaceAll(a.text, "{viewer}", viewer.Token()))
			for _, answer := range got {
				var e echo
				if answer.status == http.StatusOK && json.Unmarshal(answer.body, &e) == nil && e.Method != "" {
					checkEcho(t, e, viewer.identity)
				}
			}
			for _, line := range s.reached(t) {
				checkLogLine(t, line, viewer.identity)
			}
		})
	}
}

// checkEcho checks that the service saw exactly the true identity, and a request allowed to
// a VIEWER.
func checkEcho(t *testing.T, e echo, want identity) {
	t.Helper()
	if e.Identity != want {
		t.Errorf("identity at the service: %+v, want %+v", e.Identity, want)
	}
	if !isAllowedToViewers(e.Method, e.Path) {
		t.Errorf("the service got %s %s", e.Method, e.Path)
	}
	for name, values := range e.Headers {
		checkHeader(t, name, values)
	}
}

func checkHeader(t *testing.T, name string, values []string) {
	t.Helper()
	text := strings.Join(values, "\n")
	switch {
	case name == "X-Note": // what the client says there is its own
	case strings.Contains(name+text, "evil") || strings.Contains(text, "OWNER"):
		t.Errorf("the client's own %s: %q at the service", name, values)
	case strings.HasPrefix(folded(name), "x-auth-") && (len(values) != 1 || !strings.Contains(identityNames, name)):
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

// checkLogLine checks the same of a line of the service's log, since a request that went past
// the gateway may have no answer.
func checkLogLine(t *testing.T, line string, want identity) {
	t.Helper()
	words := strings.Split(line, " ")
	if len(words) != 4 || words[2] != want.User || words[3] != want.Role || !isAllowedToViewers(words[0], words[1]) {
		t.Errorf("the service got %q", line)
	}
}

// ambiguousPath matches a path that programs may interpret differently.
var ambiguousPath = regexp.MustCompile(`(?i)//|/\.\.?(/|$)|%2e|%2f|%5c|%25|%00|;|\\`)

// isAllowedToViewers reports whether the path is unambiguous and a VIEWER may request it.
func isAllowedToViewers(method, target string) bool {
	raw, _, _ := strings.Cut(target, "?")
	decoded, err := url.PathUnescape(raw)
	if err != nil || ambiguousPath.MatchString(raw) {
		return false
	}
	known := decoded == "/messages" || decoded == "/reports" || strings.HasPrefix(decoded, "/messages/") || strings.HasPrefix(decoded, "/reports/")
	return known && (method == http.MethodGet || method == http.MethodHead)
}
