package signon_test

import (
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/signon"
)

// setupLink makes a set-up link of the connection, begins by it, and returns its caller.
func (s *site) setupLink() doorward.Caller {
	s.w.Helper()
	links := s.w.Node(0).SetupLinks
	made, err := links.Make(s.w.Context(), s.owner.Caller, s.conID, 0)
	s.w.NoError(err)
	_, token, _ := strings.Cut(made.URL, "#token=")
	cookie, err := links.Begin(s.w.Context(), apptest.Anonymous(0), token)
	s.w.NoError(err)
	by, _, err := links.Caller(s.w.Context(), apptest.Anonymous(0), cookie.Reveal())
	s.w.NoError(err)
	return by
}

// TestTestByLink: a test that a set-up link has asked for is begun in the browser of that link alone, leads back to
// the link's pages, and shows the link checks but no claims.
func TestTestByLink(t *testing.T) {
	byBoth(t, func(w *world) {
		s, other := w.site("acme.example", doorward.JITOff), w.site("zeta.example", doorward.JITOff)
		s.says("subject-1", "ann@acme.example", nil)
		link, otherLink := s.setupLink(), other.setupLink()
		test, err := w.Node(0).Tests.Make(w.Context(), link, s.conID)
		w.NoError(err)
		for what, one := range map[string]struct {
			b    *browser
			link string
		}{
			"no link":        {s.browser(), ""},
			"another link":   {s.browser(), otherLink.ID},
			"the session":    {s.browser().as(s.owner), ""},
			"another tenant": {other.browser(), link.ID},
		} {
			if _, err := one.b.start(signon.Ask{Test: test.ID, SetupLink: one.link}); apptest.Code(err) != doorward.CodeNotFound {
				t.Errorf("%s: %v", what, err)
			}
		}
		b := s.browser().as(s.owner) // whose session is in the same browser
		address, err := b.start(signon.Ask{Test: test.ID, SetupLink: link.ID})
		w.NoError(err)
		done, err := b.finish(b.callback(address))
		w.NoError(err)
		if done.Test != test.ID || !done.ByLink {
			t.Errorf("the result is %+v", done)
		}
		shown := func(by doorward.Caller) doorward.ConnectionTest {
			test, err := w.Node(1).Tests.Show(w.Context(), by, s.conID, test.ID)
			w.NoError(err)
			return test
		}
		if got := shown(link); got.Status != doorward.TestPassed || len(got.Checks) == 0 || len(got.Claims) > 0 {
			t.Errorf("the link is shown %s, %+v, claims %s", got.Status, got.Checks, got.Claims)
		}
		if got := shown(s.owner.Caller); len(got.Claims) == 0 {
			t.Error("the OWNER is shown no claims")
		}
		if _, err := w.Node(0).Tests.Show(w.Context(), otherLink, s.conID, test.ID); apptest.Code(err) != doorward.CodeNotFound {
			t.Errorf("another link: %v", err)
		}
	})
}
