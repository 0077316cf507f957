package examples_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
)

// testStepUp: where the model demands a recent proof, a browser that opens a page is sent to
// the step-up page and back; everything else gets the 403 of RFC 9470, unchanged.
func testStepUp(t *testing.T, s *site) {
	const strict = "actions:\n" +
		"  message.send: {roles: [OWNER, ADMIN, USER]}\n" +
		"  message.read: {roles: [OWNER, ADMIN, USER, VIEWER]}\n" +
		"  report.read: {roles: [OWNER, ADMIN, USER, VIEWER], stepUp: %t}\n"
	demandProof := func(isDemanded bool) {
		t.Helper()
		by := doorward.Caller{Principal: doorward.Principal{Kind: doorward.Operator}}
		if _, err := s.server.Node.App.Models.Apply(t.Context(), by, fmt.Sprintf(strict, isDemanded), nil, true); err != nil {
			t.Fatal(err)
		}
	}
	demandProof(true)
	defer demandProof(false)
	s.server.Advance(doorward.DefaultStepUp + time.Minute)
	viewer, origin := s.people["VIEWER"], "http://"+s.gateway
	for _, path := range []string{"/reports/daily?a=b&c=d", "/reports?original=/x"} {
		var to string
		for _, headers := range [][]string{page, page[:2]} {
			got := s.ask(t, viewer.Token(), "GET "+path, "", headers...)
			if got.status != http.StatusFound || got.header.Get("Cache-Control") != "no-store" {
				t.Fatalf("%s: %d %s", path, got.status, got.body)
			}
			if to = strings.TrimPrefix(got.header.Get("Location"), origin); to != "/step-up?original="+origin+path {
				t.Errorf("%s leads to %q", path, to)
			}
		}
		form := url.Values{"password": {"four quiet green llamas"}}.Encode()
		back := s.raw(t, viewerRequest("POST "+to, "Cookie: JSESSIONID="+viewer.Token(), "Content-Type: application/x-www-form-urlencoded", "Content-Length: "+fmt.Sprint(len(form)))+form)
		if len(back) == 0 || back[0].status != http.StatusSeeOther || back[0].header.Get("Location") != path {
			t.Fatalf("the proof for %s answers %+v", path, back)
		}
		_, cookie, _ := strings.Cut(back[0].header.Get("Set-Cookie"), "JSESSIONID=")
		token, _, _ := strings.Cut(cookie, ";")
		if got := s.ask(t, token, "GET "+path, "", page...); got.status != http.StatusOK {
			t.Errorf("%s after the proof: %d %s", path, got.status, got.body)
		}
		viewer.Login()
		s.server.Advance(doorward.DefaultStepUp + time.Minute)
	}
	for _, headers := range [][]string{nil, {"Accept", "application/json"}, {"Accept", "text/html", "Sec-Fetch-Mode", "cors"}} {
		wantProblem(t, s.ask(t, viewer.Token(), "GET /reports", "", headers...), http.StatusForbidden, "step_up_required")
	}
	wantProblem(t, s.ask(t, viewer.Token(), "POST /messages", "", page[:2]...), http.StatusForbidden, "forbidden")
	s.reached(t)
	for role, p := range s.people { // the following tests need fresh sessions
		p.Login()
		p.Session = sessionOf(t, p.Person)
		s.people[role] = p
	}
}
