package examples_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward"
)

// claims are headers in which a client claims another address, host, path or method than its
// request has. No policy, limit or list of addresses may believe them.
var claims = [][]string{
	{},
	{"X-Forwarded-For: 192.0.2.66"},
	{"X-Forwarded-For: 192.0.2.66, 127.0.0.1", "x-forwarded-for: 127.0.0.1"},
	{"X-Forwarded-Host: evil.example"},
	{"X-Forwarded-Uri: /evil"},
	{"X-Original-URI: /evil"},
	{"X-Forwarded-Method: PUT"},
	{"X-Original-Method: PUT"},
	{"X-Original-URL: /evil", "X-Original-Host: evil.example", "X-Rewrite-URL: /evil", "X-Real-IP: 192.0.2.66", "Forwarded: for=192.0.2.66;host=evil.example"},
	{"X_Forwarded_For: 192.0.2.66", "X_Forwarded_Host: evil.example", "X_Forwarded_Uri: /evil", "X-Original_URI: /evil", "X_Original_Method: PUT"},
	{"Connection: X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Uri, X-Forwarded-Method, X-Original-Method"},
	{
		"X-Forwarded-For: 192.0.2.66", "X-Forwarded-Host: evil.example", "X-Forwarded-Uri: /evil", "X-Original-URI: /evil",
		"X-Forwarded-Method: PUT", "X-Original-Method: PUT", "Connection: X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Uri",
	},
}

// stated is what Doorward took a request for: policies read it, and limits and lists of addresses
// use the address.
type stated struct{ ip, method, host, path, unreadable string }

func statedBy(r doorward.Request) stated {
	return stated{r.IP.String(), r.Method, r.Host, r.Path, strings.Join(r.Unreadable, " ")}
}

// testStated: Doorward records of each request what the gateway saw, whatever the client claims.
// The refusals of a VIEWER are among the decisions that it keeps.
func testStated(t *testing.T, s *site) {
	viewer := s.people["VIEWER"]
	want := stated{"127.0.0.1", http.MethodPost, "gateway.example", "/messages/a b", ""}
	for _, headers := range claims {
		before := len(s.recorded(t, viewer.User))
		request := viewerRequest("POST /messages/a%20b?c=/d", append([]string{"Content-Length: 0"}, headers...)...)
		got := s.raw(t, strings.ReplaceAll(request, "{viewer}", viewer.Token()))
		if len(got) > 0 && got[0].status == http.StatusBadRequest { // refused before it is checked
			continue
		}
		wantProblem(t, got[0], http.StatusForbidden, "forbidden")
		s.wantRecorded(t, viewer.User, before, want, headers)
	}
}

// testStatedHosts: what Doorward takes for the host is all of what the service gets, or it can't be read.
func testStatedHosts(t *testing.T, s *site) {
	viewer := s.people["VIEWER"]
	for host, read := range map[string]string{
		"gateway.example": "gateway.example", "Gateway.Example.:80": "gateway.example", "evil.example": "evil.example",
		"gateway.example,evil.example": "", "gateway.example, evil.example": "", "gateway.example..": "", "gateway..example": "",
	} {
		want := stated{"127.0.0.1", http.MethodPost, read, "/messages", ""}
		if read == "" {
			want.unreadable = "host"
		}
		before := len(s.recorded(t, viewer.User))
		got := s.raw(t, rawRequest("POST /messages HTTP/1.1", "Host: "+host, "Cookie: JSESSIONID="+viewer.Token(), "Content-Length: 0"))
		if read == "" && len(got) > 0 && got[0].status == http.StatusBadRequest { // refused before it is checked
			continue
		}
		wantProblem(t, got[0], http.StatusForbidden, "forbidden")
		s.wantRecorded(t, viewer.User, before, want, []string{"Host: " + host})
	}
}

// testStatedDirectly: a check that a client asks itself, past the table of routes, tells Doorward no more of
// the request than the gateway knows.
func testStatedDirectly(t *testing.T, s *site) {
	viewer := s.people["VIEWER"]
	want := stated{"127.0.0.1", "", "gateway.example", "", ""}
	for _, headers := range claims {
		before := len(s.recorded(t, viewer.User))
		request := viewerRequest("GET /api/v2/access/check?action=message.send", headers...)
		got := s.raw(t, strings.ReplaceAll(request, "{viewer}", viewer.Token()))
		if len(got) > 0 && got[0].status == http.StatusBadRequest { // refused before it is passed on
			continue
		}
		wantProblem(t, got[0], http.StatusForbidden, "forbidden")
		s.wantRecorded(t, viewer.User, before, want, headers)
	}
}

// recorded returns what Doorward took the user's requests for whose decisions it has kept, the
// newest first.
func (s *site) recorded(t *testing.T, userID string) (all []stated) {
	t.Helper()
	if err := s.server.Node.App.Access.Decisions().Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	decisions, err := s.server.Node.DB.Read().DecisionsBy(t.Context(), userID, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range decisions {
		all = append(all, statedBy(d.Request))
	}
	return all
}

// wantRecorded checks the decisions that were kept since there were before ones.
func (s *site) wantRecorded(t *testing.T, userID string, before int, want stated, headers []string) {
	t.Helper()
	all := s.recorded(t, userID)
	all = all[:len(all)-before]
	if len(all) == 0 {
		t.Fatalf("with %q Doorward has recorded nothing", headers)
	}
	if wrong := slices.IndexFunc(all, func(one stated) bool { return one != want }); wrong >= 0 {
		t.Errorf("with %q Doorward took the request for %+v, want %+v", headers, all[wrong], want)
	}
}

// simulateStated is testStated for a gateway that doesn't run.
func simulateStated(t *testing.T, s *site, send sender) {
	viewer := s.people["VIEWER"]
	want := stated{"192.0.2.7", http.MethodPost, "platform.example", "/messages/a b", ""}
	for _, headers := range claims {
		r := clientRequest(t, "POST /messages/a%20b?c=/d", viewer.Token())
		for _, line := range headers {
			name, value, _ := strings.Cut(line, ": ")
			if strings.Contains(name, "_") {
				continue // the entry point refuses such requests
			}
			r.Header.Add(name, value)
		}
		before := len(s.recorded(t, viewer.User))
		wantProblem(t, send(t, "message.send", r), http.StatusForbidden, "forbidden")
		s.wantRecorded(t, viewer.User, before, want, headers)
	}
}
