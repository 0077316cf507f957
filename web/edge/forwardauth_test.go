package edge_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/logtest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web/front"
)

func TestCheckAnswersEveryMethod(t *testing.T) {
	t.Parallel()
	d := start(t)
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "QUERY", "get", "X"} {
		d.check(t, method, "action=message.read", as(d.people["VIEWER"])).passes(d.people["VIEWER"])
		refused := d.check(t, method, "action=message.send", as(d.people["VIEWER"]))
		if method == "HEAD" {
			if refused.status != http.StatusForbidden || len(refused.body) > 0 {
				t.Errorf("HEAD: %d %s", refused.status, refused.body)
			}
			continue
		}
		refused.fails(http.StatusForbidden, "forbidden")
		d.check(t, method, "", nil).fails(http.StatusUnauthorized, "unauthenticated")
	}
}

// granted is a part of the table of docs/permissions.md.
var granted = map[string]string{
	"message.send": "OWNER ADMIN USER",
	"message.read": "OWNER ADMIN USER VIEWER", "report.read": "OWNER ADMIN USER VIEWER",
	"user.read": "OWNER ADMIN USER VIEWER", "tenant.read": "OWNER ADMIN USER VIEWER",
	"user.invite": "OWNER ADMIN", "user.manage": "OWNER ADMIN", "settings.manage": "OWNER ADMIN",
	"apikey.manage": "OWNER ADMIN", "webhook.manage": "OWNER ADMIN", "audit.read": "OWNER ADMIN",
	"billing.read": "OWNER", "billing.manage": "OWNER", "data.destroy": "OWNER", "tenant.destroy": "OWNER", "policy.manage": "OWNER",
}

func TestCheckFollowsTheTableOfPermissions(t *testing.T) {
	t.Parallel()
	d := start(t)
	for _, role := range roles {
		p := d.people[role]
		d.check(t, "GET", "", as(p)).passes(p)
		for action, to := range granted {
			a := d.check(t, "GET", "action="+action, as(p))
			if strings.Contains(to, role) {
				a.passes(p)
			} else {
				a.fails(http.StatusForbidden, "forbidden")
			}
		}
	}
}

func TestCheckTakesOneAction(t *testing.T) {
	t.Parallel()
	d := start(t)
	user, viewer := d.people["USER"], d.people["VIEWER"]
	const (
		alone     = "the credential alone"
		send      = "message.send"
		read      = "report.read"
		unknown   = "unknown_action"
		malformed = "invalid_query"
	)
	for query, asks := range map[string]string{
		"": alone, "&&": alone,
		"action=message.send": send, "action=message%2Esend": send, "%61ction=message.send": send,
		"&action=message.send&": send, "action=report.read": read,

		// An unknown parameter may be a misspelt action.
		"x=1": malformed, "=": malformed, "Action=message.send": malformed, "ACTION=message.send": malformed, "actions=message.send": malformed,
		"actoin=message.send": malformed, "action%20=message.send": malformed, "action[]=message.send": malformed,
		"%41ction=message.send": malformed, "x=1&action=message.send": malformed, "action=message.send&x=1&y": malformed,
		"action=report.read&Action=message.send": malformed, "Original=/m": malformed, "audience=x": malformed,

		"action": unknown, "action=": unknown, "action=&action=": unknown,
		"action=none": unknown, "action=*": unknown, "action=message": unknown, "action=message.": unknown,
		"action=message.sendx": unknown, "action=message.send.": unknown, "action=MESSAGE.SEND": unknown,
		"action=message.send+": unknown, "action=%20message.send": unknown, "action=message.send%00": unknown,
		"action=message.send%0d%0a": unknown, "action=message.send,report.read": unknown,
		"action=session.open": unknown, "action=user.suspend": unknown, // events, not permissions
		"action=message.send&action=message.send": unknown, "action=report.read&action=message.send": unknown,
		"action=report.read&%61ction=message.send": unknown, "action=report.read&action": unknown,
		"action=report.read;action=message.send": malformed, "action=report.read;": malformed, ";action=report.read": malformed,
		"action=report.read&x=%zz": malformed, "action=%": malformed, "x=%zz": malformed, "action=report.read&a;b": malformed,
		"action=" + strings.Repeat("message.send", 100): unknown,

		// What a gateway puts before the client's path and query.
		"action=message.send&original=/messages":                       send,
		"action=message.send&original=/messages?action=report.read":    send,
		"action=message.send&original=/messages?a&action=report.read":  send,
		"action=message.send&original=/m?a;b=%zz&original=&action=":    send,
		"action=report.read&original=/reports?action=message.send&a;b": read,
		// Only directly after the first action, where no client can write.
		"action=message.send&x=1&original=/m&action=report.read":         malformed,
		"action=message%2Esend&original=/m?a&action=report.read&x=1;%zz": send,
		"action=message.send&Action=report.read&original=/m":             malformed,
		"action=report.read&action=message.send&original=/m":             unknown,
		"original=/m&action=message.send":                                send,
		"original=/m?a&original=&action=message.send":                    send,
		"original=/m?&action=report.read&original=&action=message.send":  unknown,
		"x=/m?&action=report.read&original=&action=message.send":         malformed,
		"original=/m":                                alone,
		"original=/m?a=1&b=2":                        malformed,
		"x=1&original=/m":                            malformed,
		"action=none&original=/m":                    unknown,
		"action=none&original=/m&action=report.read": unknown,
		"action=&original=/m&action=report.read":     unknown,
		"action=message.sendx&original=/m":           unknown,
	} {
		forUser, forViewer := d.check(t, "GET", query, as(user)), d.check(t, "GET", query, as(viewer))
		switch asks {
		case alone, read:
			forUser.passes(user)
			forViewer.passes(viewer)
		case send:
			forUser.passes(user)
			forViewer.fails(http.StatusForbidden, "forbidden")
		case unknown:
			forUser.fails(http.StatusForbidden, "unknown_action")
			forViewer.fails(http.StatusForbidden, "unknown_action")
		case malformed:
			forUser.fails(http.StatusBadRequest, "invalid_query")
			forViewer.fails(http.StatusBadRequest, "invalid_query")
		}
		d.check(t, "GET", query, nil).fails(http.StatusUnauthorized, "unauthenticated")
	}
}

// The client's own identity headers are ignored.
func TestCheckIgnoresIdentityHeaders(t *testing.T) {
	t.Parallel()
	d := start(t)
	viewer := d.people["VIEWER"]
	owner := d.people["OWNER"].identity
	for _, spelling := range []func(string) string{
		func(name string) string { return name },
		strings.ToLower,
		strings.ToUpper,
		func(name string) string { return strings.ReplaceAll(name, "-", "_") },
		func(name string) string { return strings.Replace(name, "-", "_", 1) },
	} {
		var forged headers
		for name, value := range owner {
			forged = append(forged, spelling(name), value, spelling(name), value)
		}
		forged = append(forged, "Connection", "X-Auth-User, X-Auth-Role", "X-Forwarded-User", "owner")
		d.check(t, "GET", "", forged).fails(http.StatusUnauthorized, "unauthenticated")
		d.check(t, "GET", "action=message.send", append(as(viewer), forged...)).fails(http.StatusForbidden, "forbidden")
		d.check(t, "GET", "action=report.read", append(as(viewer), forged...)).passes(viewer)
	}
}

func TestCheckTakesOneCredential(t *testing.T) {
	t.Parallel()
	d := start(t)
	user, key := d.people["USER"], d.createOperatorKey(t)
	mine, other := "JSESSIONID="+user.Token(), "JSESSIONID="+d.people["VIEWER"].Token()
	forged := "JSESSIONID=" + strings.Repeat("A", 43)
	for name, test := range map[string]struct {
		sent headers
		want string // a code, or "" if allowed
	}{
		"one":                           {headers{"Cookie", mine}, ""},
		"one among others":              {headers{"Cookie", "a=b; " + mine + "; c=d;e"}, ""},
		"no space between":              {headers{"Cookie", "a=b;" + mine + ";c=d"}, ""},
		"tabs":                          {headers{"Cookie", "a=b;\t" + mine + "\t; c=d"}, ""},
		"the same twice":                {headers{"Cookie", mine + "; " + mine}, ""},
		"the same in two headers":       {headers{"Cookie", mine, "Cookie", mine}, ""},
		"a Tomcat's beside it":          {headers{"Cookie", "JSESSIONID=D0A1B2C3D4E5F60718293A4B5C6D7E8F; " + mine}, ""},
		"a Tomcat's behind it":          {headers{"Cookie", mine + "; JSESSIONID=D0A1B2C3.node1"}, ""},
		"a Tomcat's in another header":  {headers{"Cookie", "JSESSIONID=node0abc.node0", "Cookie", mine}, ""},
		"an empty one beside it":        {headers{"Cookie", "JSESSIONID=; JSESSIONID; " + mine}, ""},
		"a scheme Doorward doesn't use": {headers{"Cookie", mine, "Authorization", "Basic dXNlcjpwYXNz"}, ""},

		"a bearer":                   {headers{"Authorization", "Bearer " + user.Token()}, ""},
		"a bearer, another case":     {headers{"Authorization", "bEARER " + user.Token()}, ""},
		"a bearer, two spaces":       {headers{"Authorization", "Bearer  " + user.Token()}, ""},
		"a bearer beside a Tomcat's": {headers{"Cookie", "JSESSIONID=D0A1B2C3.node1; a=b", "Authorization", "Bearer " + user.Token()}, ""},

		"none":                            {nil, "unauthenticated"},
		"an empty header":                 {headers{"Cookie", ""}, "unauthenticated"},
		"an empty value":                  {headers{"Cookie", "JSESSIONID="}, "unauthenticated"},
		"junk":                            {headers{"Cookie", "JSESSIONID=junk"}, "unauthenticated"},
		"a forged one":                    {headers{"Cookie", forged}, "unauthenticated"},
		"another case":                    {headers{"Cookie", strings.ToLower("JSESSIONID") + "=" + user.Token()}, "unauthenticated"},
		"a longer name":                   {headers{"Cookie", "X" + mine + "; xJSESSIONID=" + user.Token()}, "unauthenticated"},
		"in quotes":                       {headers{"Cookie", `JSESSIONID="` + user.Token() + `"`}, "unauthenticated"},
		"a space before":                  {headers{"Cookie", "JSESSIONID= " + user.Token()}, "unauthenticated"},
		"a space in the name":             {headers{"Cookie", "JSESSIONID =" + user.Token()}, "unauthenticated"},
		"escaped":                         {headers{"Cookie", "JSESSIONID=%" + fmt.Sprintf("%02x", user.Token()[0]) + user.Token()[1:]}, "unauthenticated"},
		"padded":                          {headers{"Cookie", mine + "="}, "unauthenticated"},
		"one character less":              {headers{"Cookie", mine[:len(mine)-1]}, "unauthenticated"},
		"one character more":              {headers{"Cookie", mine + "A"}, "unauthenticated"},
		"a comma between":                 {headers{"Cookie", mine + ", " + mine}, "unauthenticated"},
		"two that differ":                 {headers{"Cookie", mine + "; " + other}, "unauthenticated"},
		"two that differ, in two headers": {headers{"Cookie", mine, "Cookie", other}, "unauthenticated"},
		"a forged one beside it":          {headers{"Cookie", mine + "; " + forged}, "unauthenticated"},
		"a forged one in front":           {headers{"Cookie", forged, "Cookie", mine}, "unauthenticated"},
		"in another header":               {headers{"Cookie2", mine, "X-Cookie", mine, "Set-Cookie", mine}, "unauthenticated"},
		"both ways":                       {headers{"Cookie", mine, "Authorization", "Bearer " + user.Token()}, "unauthenticated"},
		"both ways, two people":           {headers{"Cookie", other, "Authorization", "Bearer " + user.Token()}, "unauthenticated"},
		"both ways, with a tab":           {headers{"Cookie", mine, "Authorization", "Bearer\t" + user.Token()}, "unauthenticated"},
		"bearer: two":                     {headers{"Authorization", "Bearer " + user.Token(), "Authorization", "Bearer " + user.Token()}, "unauthenticated"},
		"bearer: beside another scheme":   {headers{"Authorization", "Bearer " + user.Token(), "Authorization", "Basic dXNlcjpwYXNz"}, "unauthenticated"},
		"bearer: behind another scheme":   {headers{"Authorization", "Basic dXNlcjpwYXNz", "Authorization", "Bearer " + user.Token()}, "unauthenticated"},
		"bearer: two in one":              {headers{"Authorization", "Bearer " + user.Token() + ", Bearer " + user.Token()}, "unauthenticated"},
		"bearer: forged":                  {headers{"Authorization", "Bearer " + strings.Repeat("A", 43)}, "unauthenticated"},
		"bearer: padded":                  {headers{"Authorization", "Bearer " + user.Token() + "="}, "unauthenticated"},
		"bearer: in quotes":               {headers{"Authorization", `Bearer "` + user.Token() + `"`}, "unauthenticated"},
		"bearer: one character less":      {headers{"Authorization", "Bearer " + user.Token()[:42]}, "unauthenticated"},
		"bearer: one character more":      {headers{"Authorization", "Bearer " + user.Token() + "A"}, "unauthenticated"},
		"bearer: like an operator key":    {headers{"Authorization", "Bearer dwo_" + user.Token()}, "unauthenticated"},
		"bearer: without a scheme":        {headers{"Authorization", user.Token()}, "unauthenticated"},
		"bearer: another scheme":          {headers{"Authorization", "Token " + user.Token()}, "unauthenticated"},
		"bearer: another header":          {headers{"Proxy-Authorization", "Bearer " + user.Token(), "X-Authorization", "Bearer " + user.Token()}, "unauthenticated"},
		"with a key":                      {headers{"Cookie", mine, "Authorization", "Bearer " + key}, "unauthenticated"},
		"with an invalid key":             {headers{"Cookie", mine, "Authorization", "Bearer x"}, "unauthenticated"},
		"with an empty key":               {headers{"Cookie", mine, "Authorization", "bearer"}, "unauthenticated"},
		"an invalid key":                  {headers{"Authorization", "Bearer dwo_" + strings.Repeat("A", 43)}, "unauthenticated"},
		"two keys":                        {headers{"Authorization", "Bearer " + key, "Authorization", "Bearer " + key}, "unauthenticated"},
		"an operator key":                 {headers{"Authorization", "Bearer " + key}, "unauthenticated"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, query := range []string{"", "action=message.send"} {
				a := d.check(t, "GET", query, test.sent)
				if test.want == "" {
					a.passes(user)
				} else {
					a.fails(http.StatusUnauthorized, test.want)
				}
			}
		})
	}
	d.check(t, "GET", "JSESSIONID="+user.Token()+"&token="+user.Token(), nil).fails(http.StatusUnauthorized, "unauthenticated")
}

// TestCheckGuardsAgainstOtherOrigins: browsers send the cookie with forged requests,
// too. A gateway that passes on the method gets CSRF protection for all services
// behind it.
func TestCheckGuardsAgainstOtherOrigins(t *testing.T) {
	t.Parallel()
	d := start(t, doorwardtest.BaseURL("https://platform.example"))
	user := d.people["USER"]
	origins := []struct {
		name string
		sent headers
		same bool
	}{
		{"no browser", nil, true},
		{"the same", headers{"Origin", "https://platform.example"}, true},
		{"the same, written otherwise", headers{"Origin", "HTTPS://Platform.Example:443"}, true},
		{"same-origin", headers{"Sec-Fetch-Site", "same-origin"}, true},
		{"an address that the person typed", headers{"Sec-Fetch-Site", "none"}, true},
		{"another", headers{"Origin", "https://other.example"}, false},
		{"another port", headers{"Origin", "https://platform.example:8443"}, false},
		{"another scheme", headers{"Origin", "http://platform.example"}, false},
		{"a longer host", headers{"Origin", "https://platform.example.evil.example"}, false},
		{"null", headers{"Origin", "null"}, false},
		{"an empty one", headers{"Origin", ""}, false},
		{"cross-site", headers{"Sec-Fetch-Site", "cross-site"}, false},
		{"same-site", headers{"Sec-Fetch-Site", "same-site", "Origin", "https://platform.example"}, false},
		{"an unknown value", headers{"Sec-Fetch-Site", "elsewhere"}, false},
	}
	methods := []struct {
		name string
		sent headers
		safe bool // the origin doesn't matter; also if the gateway states no method
	}{
		{"none", nil, true},
		{"GET", headers{"X-Forwarded-Method", "GET"}, true},
		{"HEAD", headers{"X-Original-Method", "HEAD"}, true},
		{"OPTIONS", headers{"X-Forwarded-Method", "OPTIONS"}, true},
		{"GET in both", headers{"X-Forwarded-Method", "GET", "X-Original-Method", "GET"}, true},
		{"POST", headers{"X-Forwarded-Method", "POST"}, false},
		{"DELETE", headers{"X-Original-Method", "DELETE"}, false},
		{"an unknown one", headers{"X-Forwarded-Method", "PURGE"}, false},
		{"small letters", headers{"X-Forwarded-Method", "get"}, false},
		{"an empty one", headers{"X-Forwarded-Method", ""}, false},
		{"two in one", headers{"X-Forwarded-Method", "GET, POST"}, false},
		{"two headers", headers{"X-Forwarded-Method", "GET", "X-Forwarded-Method", "POST"}, false},
		{"the client's own beside it", headers{"X-Forwarded-Method", "GET", "X-Original-Method", "POST"}, false},
		{"a WebSocket", headers{"X-Forwarded-Method", "GET", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-Websocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-Websocket-Version", "13"}, false},
		{"a WebSocket without a method", headers{"Connection", "Upgrade", "Upgrade", "websocket"}, false},
		{"a WebSocket, small letters", headers{"connection", "upgrade", "upgrade", "WebSocket"}, false},
		{"an upgrade to something else", headers{"X-Original-Method", "GET", "Upgrade", "h2c"}, false},
		{"the key of a WebSocket alone", headers{"X-Original-Method", "GET", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="}, false},
		{"the version of a WebSocket alone", headers{"X-Original-Method", "GET", "Sec-WebSocket-Version", "13"}, false},
		{"the protocol of a WebSocket alone", headers{"Sec-WebSocket-Protocol", "chat"}, false},
		{"the mode of a WebSocket alone", headers{"X-Original-Method", "GET", "Sec-Fetch-Mode", "websocket"}, false},
		{"a WebSocket over HTTP/2", headers{"X-Forwarded-Method", "CONNECT"}, false},
		{"another mode", headers{"X-Original-Method", "GET", "Sec-Fetch-Mode", "navigate"}, true},
		{"the client's own beside it, in the other header", headers{"X-Original-Method", "GET", "X-Forwarded-Method", "POST"}, false},
	}
	for _, origin := range origins {
		for _, method := range methods {
			t.Run(origin.name+"/"+method.name, func(t *testing.T) {
				for _, checkMethod := range []string{"GET", "POST"} {
					sent := append(append(as(user), origin.sent...), method.sent...)
					a := d.check(t, checkMethod, "action=message.send", sent)
					if origin.same || method.safe {
						a.passes(user)
					} else {
						a.fails(http.StatusForbidden, "cross_origin")
					}
				}
			})
		}
	}
	// A bearer credential isn't a cookie: browsers never add one to a forged request.
	asBearer := headers{"Authorization", "Bearer " + user.Token()}
	foreign := headers{"Origin", "https://other.example", "X-Forwarded-Method", "POST", "Upgrade", "websocket"}
	d.check(t, "POST", "action=message.send", append(asBearer, foreign...)).passes(user)
	d.check(t, "POST", "action=message.send", append(headers{"Authorization", "Basic eDp4"}, as(user, foreign...)...)).fails(http.StatusForbidden, "cross_origin")
	d.check(t, "POST", "action=message.send", append(asBearer, as(user, foreign...)...)).fails(http.StatusUnauthorized, "unauthenticated")
	// The credential is checked first: without one the answer reveals nothing else.
	d.check(t, "GET", "", headers{"Origin", "null", "X-Forwarded-Method", "POST"}).fails(http.StatusUnauthorized, "unauthenticated")
}

// TestCheckSaysWhatItBelieves: doctor gateway compares it with what it has sent.
func TestCheckSaysWhatItBelieves(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("x", 100)
	for _, test := range []struct {
		trusted bool
		uri     string
		want    front.CheckedRequest
	}{
		{true, "/reports/a%20b?c=d", front.CheckedRequest{IP: "192.0.2.7", Method: "POST", Host: "platform.example", Path: "/reports/a b"}},
		{true, long, front.CheckedRequest{IP: "192.0.2.7", Method: "POST", Host: "platform.example"}},
		{false, "/reports", front.CheckedRequest{IP: "127.0.0.1"}},
	} {
		options := []doorwardtest.Option{doorwardtest.BaseURL("https://platform.example"), func(c *node.Config) { c.Listen = "127.0.0.1:0" }}
		if test.trusted {
			options = append(options, doorwardtest.TrustLoopback())
		}
		d := start(t, options...)
		a := d.check(t, "GET", "", as(
			d.people["USER"], "Origin", "https://other.example", "X-Forwarded-Method", "POST",
			"X-Forwarded-For", "192.0.2.7", "X-Forwarded-Host", "platform.example", "X-Forwarded-Uri", test.uri,
		))
		a.fails(http.StatusForbidden, "cross_origin")
		var problem front.Problem
		if err := json.Unmarshal(a.body, &problem); err != nil || problem.Request == nil || *problem.Request != test.want {
			t.Errorf("trusted %v: %s, want %+v", test.trusted, a.body, test.want)
		}
	}
}

// TestCheckByConnect: for a WebSocket over HTTP/2, a gateway that only forwards the
// client's method sends CONNECT. (Go's client can't send such a path.)
func TestCheckByConnect(t *testing.T) {
	t.Parallel()
	d := start(t)
	for origin, want := range map[string]string{d.URL: "200 OK", "https://other.example": "403 Forbidden"} {
		conn, err := net.Dial("tcp", d.Node.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\nOrigin: %s\r\nCookie: JSESSIONID=%s\r\nConnection: close\r\n\r\n", checkPath, origin, d.people["USER"].Token())
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || line != "HTTP/1.1 "+want+"\r\n" {
			t.Errorf("from %s: %q, %v, want %s", origin, line, err, want)
		}
	}
}

// TestCheckReadsNoBody: the answer doesn't wait for the body, whatever its headers
// say.
func TestCheckReadsNoBody(t *testing.T) {
	t.Parallel()
	d := start(t)
	for name, head := range map[string]string{
		"a length":     "Content-Length: 9\r\n\r\n{",
		"a big length": "Content-Length: 9000000\r\n\r\n",
		"chunks":       "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
		"Expect":       "Content-Length: 9000000\r\nExpect: 100-continue\r\n\r\n",
		"another form": "Transfer-Encoding: chunked\r\nContent-Type: nonsense\r\nContent-Encoding: br\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, query := range []string{"action=message.send", "action=billing.read"} {
				want := "HTTP/1.1 200 OK\r\n"
				if query == "action=billing.read" {
					want = "HTTP/1.1 403 Forbidden\r\n"
				}
				conn, err := net.Dial("tcp", d.Node.Address())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if err := conn.SetDeadline(waittest.Deadline()); err != nil {
					t.Fatal(err)
				}
				if _, err := fmt.Fprintf(conn, "POST %s?%s HTTP/1.1\r\nHost: x\r\nCookie: JSESSIONID=%s\r\n%s", checkPath, query, d.people["USER"].Token(), head); err != nil {
					t.Fatal(err)
				}
				response := bufio.NewReader(conn)
				if line, err := response.ReadString('\n'); line != want {
					t.Errorf("%q, %v, want %q", line, err, want)
				}
				if _, err := io.Copy(io.Discard, response); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("the connection stays open for the rest of the body")
				}
			}
		})
	}
}

func TestCheckKeepsTheRequestID(t *testing.T) {
	t.Parallel()
	d := start(t)
	user := d.people["USER"]
	long := strings.Repeat("a", 128)
	for _, who := range []headers{as(user), nil} {
		for _, id := range []string{"a", "req_1.2-3", long} {
			if got := d.check(t, "GET", "", append(who, "X-Request-Id", id)).header["X-Request-Id"]; len(got) != 1 || got[0] != id {
				t.Errorf("%q became %q", id, got)
			}
		}
		for _, id := range []string{"", long + "a", "a b", "a/b", "ä", "a\"b"} {
			if got := d.check(t, "GET", "", append(who, "X-Request-Id", id)).header["X-Request-Id"]; len(got) != 1 || got[0] == id || got[0] == "" {
				t.Errorf("%q became %q", id, got)
			}
		}
	}
}

func TestCheckSendsHSTS(t *testing.T) {
	t.Parallel()
	d := start(t, doorwardtest.BaseURL("https://platform.example"))
	for _, who := range []headers{as(d.people["USER"]), nil} {
		if got := d.check(t, "GET", "", who).header.Get("Strict-Transport-Security"); !strings.HasPrefix(got, "max-age=") {
			t.Errorf("Strict-Transport-Security: %q", got)
		}
	}
}

func TestCheckHasOneAddress(t *testing.T) {
	t.Parallel()
	d := start(t, doorwardtest.BaseURL("http://localhost:8080/platform"))
	user := d.people["USER"]
	for path, found := range map[string]bool{
		checkPath: true, "/platform" + checkPath: true, "/api/v2/access/%63heck": true, checkPath + "?": true,
		checkPath + "/": false, checkPath + "/messages": false, "/platform/platform" + checkPath: false, "/other" + checkPath: false,
		"/" + checkPath: false, "/api/v2//access/check": false, "/api/v2/access/../access/check": false, "/api/v2/access%2Fcheck/x": false,
		"/API/v2/access/check": false, "/api/v2/access": false, checkPath + ";x": false, "/platform": false,
	} {
		a := d.send(t, "GET "+path, nil, as(user))
		if found {
			a.passes(user)
			continue
		}
		if a.status == http.StatusOK && a.header["X-Auth-User"] != nil {
			t.Errorf("%s is a check, too", path)
		}
		if strings.Contains(path, "check") {
			a.fails(http.StatusNotFound, "not_found")
		}
	}
}

// A logout and the idle limit take effect at once.
func TestCheckSeesEndedSessions(t *testing.T) {
	t.Parallel()
	d := start(t)
	user := d.people["USER"]
	d.check(t, "GET", "action=message.send", as(user)).passes(user)
	if status, body := user.Post("/api/v2/auth/logout", nil); status != http.StatusNoContent {
		t.Fatalf("logout: %d %s", status, body)
	}
	d.check(t, "GET", "action=message.send", as(user)).fails(http.StatusUnauthorized, "unauthenticated")

	admin := d.people["ADMIN"]
	d.check(t, "GET", "", as(admin)).passes(admin)
	d.Advance(time.Hour - time.Second)
	d.check(t, "GET", "", as(admin)).passes(admin)
	d.Advance(time.Hour)
	d.check(t, "GET", "", as(admin)).fails(http.StatusUnauthorized, "unauthenticated")
}

// TestCheckThatIsNoUse: with touch=false a session goes on idling, whether it is in memory or not and
// however its cookies are sent; what the client sends as original doesn't count.
func TestCheckThatIsNoUse(t *testing.T) {
	t.Parallel()
	for name, untouched := range map[string]string{"alone": "touch=false", "after the action": "action=message.send&touch=false", "first": "touch=false&action=message.send&original=?a=b"} {
		d := start(t)
		user := d.people["USER"]
		for range 3 {
			d.Advance(19 * time.Minute)
			d.check(t, "GET", untouched, as(user)).passes(user)
			d.check(t, "GET", untouched, append(as(user), "Cookie", "other=1")).passes(user)
		}
		d.Advance(4 * time.Minute) // more than an hour since the login
		if a := d.check(t, "GET", untouched, as(user)); a.status != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, a.status)
		}
	}
	d := start(t)
	user := d.people["USER"]
	for range 3 {
		d.Advance(55 * time.Minute)
		d.check(t, "GET", "action=message.send&original=?x&touch=false", as(user)).passes(user)
	}
	for _, wrong := range []string{"touch=true", "touch=", "touch=false&touch=false", "touch=fals%65", "%74ouch=false"} {
		d.check(t, "GET", wrong, as(user)).fails(http.StatusBadRequest, "invalid_query")
	}
}

// TestCheckWithoutDatabase: without the database, the answer is 503 once the lease has
// expired; for a session that isn't cached it is so from the start.
func TestCheckWithoutDatabase(t *testing.T) {
	t.Parallel()
	d := start(t)
	user := d.people["USER"]
	d.check(t, "GET", "", as(user)).passes(user)
	if err := d.Node.DB.Close(); err != nil {
		t.Fatal(err)
	}
	unknown := headers{"Cookie", "JSESSIONID=" + strings.Repeat("A", 43)}
	d.check(t, "GET", "", unknown).fails(http.StatusServiceUnavailable, "unavailable")
	d.check(t, "GET", "", headers{"Authorization", "Bearer dwo_" + strings.Repeat("A", 43)}).fails(http.StatusServiceUnavailable, "unavailable")
	waittest.Until(t, "the lease is over", func() bool { return d.check(t, "GET", "", as(user)).status != http.StatusOK })
	for _, query := range []string{"", "action=message.send", "action=none"} {
		d.check(t, "POST", query, as(user, "X-Forwarded-Method", "POST")).fails(http.StatusServiceUnavailable, "unavailable")
	}
	// Requests that need no database are still answered.
	d.check(t, "GET", "", nil).fails(http.StatusUnauthorized, "unauthenticated")
}

// An allowed check isn't logged; a refused one is, without secrets.
func TestAllowedCheckIsNotLogged(t *testing.T) {
	t.Parallel()
	log := &logtest.Journal{}
	d := start(t, doorwardtest.Log(log))
	user := d.people["USER"]
	before := log.String()
	d.check(t, "POST", "action=message.send", as(user)).passes(user)
	if after := log.String(); after != before {
		t.Errorf("logged: %s", after[len(before):])
	}
	d.check(t, "POST", "action=billing.read&original="+user.Token(), as(user)).fails(http.StatusForbidden, "forbidden")
	refused := log.String()[len(before):]
	if !strings.Contains(refused, checkPath) || strings.Contains(refused, user.Token()) {
		t.Errorf("logged: %s", refused)
	}
}

// Gateways and services keep asking while the database is down. Each cause is logged the
// first time, then at most once a second.
func TestOutageDoesNotFloodTheLog(t *testing.T) {
	t.Parallel()
	log := &logtest.Journal{}
	d := start(t, doorwardtest.Log(log))
	key := d.createOperatorKey(t)
	if err := d.Node.DB.Close(); err != nil {
		t.Fatal(err)
	}
	unknown := strings.Repeat("A", 43)
	for name, ask := range map[string]func() answer{
		"checks":        func() answer { return d.check(t, "POST", "", headers{"Cookie", "JSESSIONID=" + unknown}) },
		"introspection": func() answer { return d.introspect(t, key, object{"credential": unknown}) },
	} {
		before, began := log.String(), time.Now()
		for range 50 {
			ask().fails(http.StatusServiceUnavailable, "unavailable")
		}
		maxLines := 1 + int(time.Since(began)/time.Second)
		after := log.String()[len(before):]
		if lines := strings.Count(after, "request failed"); lines < 1 || lines > maxLines || strings.Count(after, "status=503") > 0 {
			t.Errorf("%s: 50 failed, with %d lines about the cause, want 1 to %d and no other line:\n%s", name, lines, maxLines, after)
		}
	}
}
