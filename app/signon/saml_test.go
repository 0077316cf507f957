package signon_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/acs"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/flow"
	"github.com/doorward/doorward/app/signon"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/internal/samlsp/samltest"
	"github.com/doorward/doorward/store"
)

// onSAML runs the test on SQLite with providers of SAML.
func onSAML(t *testing.T, test func(*world, *site)) {
	t.Helper()
	apptest.OnSQLite(t, func(f *apptest.Fixture) { test(samlWorld(f)) })
}

// onEachSAML is onSAML on each database.
func onEachSAML(t *testing.T, test func(*world, *site)) {
	t.Helper()
	apptest.OnEach(t, func(f *apptest.Fixture) { test(samlWorld(f)) })
}

func samlWorld(f *apptest.Fixture) (*world, *site) {
	w := &world{Fixture: f, bySAML: true}
	s := w.site("acme.example", doorward.JITDomains)
	s.says("subject-1", "ann@acme.example", nil)
	return w, s
}

// begin begins a sign-in and returns the form with the provider's answer.
func (b *browser) begin(ask signon.Ask) url.Values {
	b.s.w.Helper()
	address, err := b.start(ask)
	b.s.w.NoError(err)
	return b.s.saml.answer(b, address)
}

// through posts the form and goes on to the callback.
func (b *browser) through(form url.Values) (signon.Result, error) {
	query, err := b.post(form)
	if err != nil {
		return signon.Result{}, err
	}
	return b.finish(query)
}

// last is the newest entry of the protocol of the kind.
func (s *site) last(kind doorward.AttemptKind) doorward.Attempt {
	s.w.Helper()
	got, err := s.w.DB.Read().LastAttempt(s.w.Context(), s.conID, kind)
	s.w.NoError(err)
	return got
}

// samlLies are what a provider may say wrongly, with the check that refuses it and the advice.
var samlLies = []struct {
	check, advice string
	lie           func(*samltest.Answer)
}{
	{"status", "assignment", func(a *samltest.Answer) { a.Status = "urn:oasis:names:tc:SAML:2.0:status:RequestDenied" }},
	{"status", "request_signed", func(a *samltest.Answer) { a.Status = "urn:oasis:names:tc:SAML:2.0:status:Requester" }},
	{"status", "retry", func(a *samltest.Answer) { a.Status = "urn:oasis:names:tc:SAML:2.0:status:Responder" }},
	{"alg", "signing_sha256", func(a *samltest.Answer) { a.Signing.SHA1 = true }},
	{"signature", "sign_assertion", func(a *samltest.Answer) { a.SignAssertion = false }},
	{"signature", "provider", func(a *samltest.Answer) {
		a.Edit = func(text string) string { return strings.ReplaceAll(text, "subject-1", "subject-2") }
	}},
	{"certificate", "certificate", func(a *samltest.Answer) { a.Signing = samltest.Signing{Key: spareKeys()[2], KeyInfo: "-"} }},
	{"encryption", "encryption", func(a *samltest.Answer) { a.Encrypting = &samltest.Encrypting{Certificate: certificates()[0]} }},
	{"iss", "another_provider", func(a *samltest.Answer) { a.AssertionIssuer = "https://other.example" }},
	{"audience", "audience", func(a *samltest.Answer) { a.Audience = "https://other.example" }},
	{"recipient", "acs_address", func(a *samltest.Answer) { a.Recipient = "https://other.example" }},
	{"destination", "acs_address", func(a *samltest.Answer) { a.Destination = "https://other.example" }},
	{"in_response_to", "start_again", func(a *samltest.Answer) { a.AssertionInResponseTo = "_another" }},
	{"in_response_to", "start_again", func(a *samltest.Answer) { a.InResponseTo = "_another" }},
	{"time", "clock", func(a *samltest.Answer) { a.NotOnOrAfter = a.Issued.Add(-time.Hour) }},
	{"time", "clock", func(a *samltest.Answer) { a.SessionNotOnOrAfter = a.Issued.Add(-time.Second) }},
	{"nameid", "name_id", func(a *samltest.Answer) { a.NameIDFormat = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient" }},
	{"doctype", "provider", func(a *samltest.Answer) { a.Edit = func(text string) string { return "<!DOCTYPE r>" + text } }},
	{"structure", "provider", func(a *samltest.Answer) { a.Edit = func(string) string { return "<r/>" } }},
	{"email", "email_claim", func(a *samltest.Answer) { a.Attributes = nil }},
}

// TestEachSAMLLieIsRefused: with its check and advice, which the protocol and a test have, and nothing is written.
func TestEachSAMLLieIsRefused(t *testing.T) {
	onSAML(t, func(w *world, s *site) {
		for _, l := range samlLies {
			s.saml.lies(l.lie)
			s.refused(l.check, s.browser().signIn)
			if got := s.last(doorward.AttemptSignIn); got.Check != l.check || got.Outcome != doorward.AttemptRefused || got.Advice != l.advice {
				t.Errorf("%s: the protocol has %+v", l.check, got)
			}
			before := w.rows()
			test := s.test(nil)
			if check, advice := notable(test); test.Status != doorward.TestFailed || check != l.check || advice != l.advice {
				t.Errorf("%s, advice %s: the test ends with %s, %+v", l.check, l.advice, test.Status, test.Checks)
			}
			delete(before, "connection_tests")
			if diff := difference(before, w.rows()); diff != "connection_tests 0 -> 1" && !strings.HasPrefix(diff, "audit") && !strings.HasPrefix(diff, "connection_tests") {
				t.Errorf("%s: a test has written %s", l.check, diff)
			}
		}
		s.saml.lies(nil)
		s.in(s.browser().signIn())
	})
}

// TestAnswersOfOthers: a response is good for the connection that asked, in the browser that began; in another
// browser, or at another tenant's connection, it opens nothing, and stays good for the right one.
func TestAnswersOfOthers(t *testing.T) {
	onSAML(t, func(w *world, s *site) {
		other := w.site("globex.example", doorward.JITDomains)
		other.says("subject-1", "ann@acme.example", nil)
		b, stranger := s.browser(), other.browser()
		form := b.begin(signon.Ask{})
		stranger.begin(signon.Ask{})
		other.refused("in_response_to", func() (signon.Result, error) { return stranger.through(form) })

		thief := s.browser()
		thief.begin(signon.Ask{})
		query, err := b.post(form)
		w.NoError(err)
		s.refused("in_response_to", func() (signon.Result, error) { return thief.finish(query) })
		if got := s.last(doorward.AttemptSignIn); got.Check != "in_response_to" {
			t.Errorf("the protocol has %+v", got)
		}
		s.refused("state", func() (signon.Result, error) { return s.browser().finish(query) })
		// A sealed answer is no other connection's.
		other.refused("state", func() (signon.Result, error) { return stranger.finish(query) })
		s.in(b.finish(query))
	})
}

// TestReplayedAssertion: an assertion is accepted once, on all nodes, also in another response and for another request.
func TestReplayedAssertion(t *testing.T) {
	onEachSAML(t, func(w *world, s *site) {
		b := s.browser()
		form := b.begin(signon.Ask{})
		query, err := b.post(form)
		w.NoError(err)
		elsewhere := *b
		elsewhere.node = 1
		for _, one := range []*browser{b, &elsewhere} {
			again, err := one.post(form)
			w.NoError(err)
			fresh := s.browser()
			fresh.node = one.node
			if _, err := fresh.finish(again); apptest.Code(err) != doorward.CodeSignOnState {
				t.Errorf("a replay in another browser is answered %v", err)
			}
		}
		s.in(b.finish(query))
		s.refused("state", func() (signon.Result, error) { return elsewhere.finish(query) })

		// The same assertion in a new response to a new request: the ID is known, whatever else is new.
		known := ""
		s.saml.lies(func(a *samltest.Answer) { known = a.AssertionID })
		s.in(s.browser().signIn())
		s.saml.lies(func(a *samltest.Answer) { a.AssertionID = known })
		s.refused("replay", s.browser().signIn)
		if got := s.last(doorward.AttemptSignIn); got.Check != "replay" || got.Outcome != doorward.AttemptRefused {
			t.Errorf("the protocol has %+v", got)
		}
		// Nor while it waits for its own browser, which it still is good for.
		waiting := s.browser()
		s.saml.lies(func(a *samltest.Answer) { known = a.AssertionID })
		query, err = waiting.post(waiting.begin(signon.Ask{}))
		w.NoError(err)
		s.saml.lies(func(a *samltest.Answer) { a.AssertionID = known })
		s.refused("replay", s.browser().signIn)
		s.in(waiting.finish(query))
		// Another connection's ids are its own.
		other := w.site("globex.example", doorward.JITDomains)
		other.says("subject-1", "bob@globex.example", nil)
		other.saml.lies(func(a *samltest.Answer) { a.AssertionID = known })
		other.in(other.browser().signIn())
	})
}

// TestWaitsAMinute: what was received waits for a minute for the browser, and the assertion is known until it wouldn't be
// accepted any more; then its row goes.
func TestWaitsAMinute(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		w, s := samlWorld(f)
		s.saml.lies(func(a *samltest.Answer) {
			a.NotOnOrAfter, a.ConfirmedUntil = a.Issued.Add(time.Hour), a.Issued.Add(time.Hour)
		})
		b := s.browser()
		form := b.begin(signon.Ask{})
		query, err := b.post(form)
		w.NoError(err)
		clock.Move(time.Minute)
		s.refused("state", func() (signon.Result, error) { return b.finish(query) })
		clock.Move(8*time.Minute + 59*time.Second)
		s.refused("replay", func() (signon.Result, error) { return b.through(form) })
		w.NoError(w.Node(0).Connections.Sweep(w.Context()))
		if n := w.count("saml_assertions"); n != 1 {
			t.Errorf("%d assertions are known", n)
		}
		clock.Move(2 * time.Minute)
		w.NoError(w.Node(0).Connections.Sweep(w.Context()))
		if n := w.count("saml_assertions"); n != 0 {
			t.Errorf("%d assertions are left", n)
		}
		s.in(s.browser().signIn())
	})
}

// TestWaitingIsSealed: what waits in the database names nobody.
func TestWaitingIsSealed(t *testing.T) {
	onSAML(t, func(w *world, s *site) {
		b := s.browser()
		query, err := b.post(b.begin(signon.Ask{}))
		w.NoError(err)
		if n := w.count("saml_assertions WHERE said IS NOT NULL AND length(said) > 200 AND instr(CAST(said AS TEXT), 'ann') = 0 AND instr(CAST(said AS TEXT), 'subject') = 0"); n != 1 {
			t.Errorf("%d rows wait, sealed", n)
		}
		if strings.Contains(query.Encode(), "ann") && strings.Contains(query.Encode(), "subject-1") {
			t.Error("the address names the person")
		}
		s.in(b.finish(query))
		if n := w.count("saml_assertions WHERE said IS NOT NULL"); n != 0 {
			t.Errorf("%d rows still say something", n)
		}
	})
}

// TestUnsolicited: a response that answers no request isn't looked at, counts nothing, and drops the RelayState.
func TestUnsolicited(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, _ *apptest.StoppedClock) {
		w, s := samlWorld(f)
		s.saml.lies(func(a *samltest.Answer) { a.InResponseTo, a.AssertionInResponseTo = "", "" })
		for range 70 {
			b := s.browser()
			query, err := b.post(b.begin(signon.Ask{}))
			if err != nil || !acs.IsUnsolicited(query) || len(query) != 1 {
				t.Fatalf("an unsolicited response leads to %v, %v", query, err)
			}
		}
		if n := w.count("connection_attempts") + w.count("saml_assertions"); n != 0 {
			t.Errorf("%d rows are written", n)
		}
		s.saml.lies(nil)
		s.in(s.browser().signIn())
	})
}

// TestLimitAtACS: refused responses count for the address, once each, and good ones of before the limit don't.
func TestLimitAtACS(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		w, s := samlWorld(f)
		for range 61 {
			clock.Move(time.Millisecond)
			s.in(s.browser().signIn())
		}
		s.saml.lies(func(a *samltest.Answer) { a.Audience = "another" })
		for i := range 60 {
			if _, err := s.browser().signIn(); apptest.Code(err) != doorward.CodeSignOnRefused {
				t.Fatalf("the refused response %d is answered %v", i, err)
			}
		}
		b := s.browser()
		form := b.begin(signon.Ask{})
		if _, err := b.post(form); apptest.Code(err) != doorward.CodeTooManyAttempts {
			t.Errorf("beyond the limit: %v", err)
		}
		clock.Move(time.Minute)
		s.saml.lies(nil)
		s.in(s.browser().signIn())
		if n := w.count("throttles WHERE hits > 0 AND bucket LIKE 'signon%'"); n != 0 {
			t.Errorf("refused responses count at the callback again, in %d rows", n)
		}
	})
}

// TestSessionOfProvider: SessionNotOnOrAfter ends the session, exactly, on every node; a step-up makes it no later.
func TestSessionOfProvider(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		w, s := samlWorld(f)
		until := w.DB.Now().Add(20 * time.Minute).Truncate(time.Second)
		s.saml.lies(func(a *samltest.Answer) { a.SessionNotOnOrAfter = until })
		in := s.in(s.browser().signIn())
		limits := w.Node(0).Sessions.Limits()
		if got := in.Session.ExpiresAt(limits); !got.Equal(until) {
			t.Errorf("the session ends at %s, want %s", got, until)
		}
		if !w.IsValid(in.Token) {
			t.Fatal("the session isn't valid")
		}
		s.saml.lies(func(a *samltest.Answer) { a.SessionNotOnOrAfter = until.Add(time.Hour) })
		b := s.browser().as(apptest.PersonOf(in))
		done, err := b.through(b.begin(signon.Ask{StepUp: true}))
		w.NoError(err)
		if done.Raised == nil || !done.Raised.Session.ExpiresAt(limits).Equal(until) {
			t.Fatalf("after a step-up: %+v", done)
		}
		for i := range 2 {
			_, err := w.Node(i).Sessions.Check(w.Context(), done.Raised.Token)
			w.NoError(err)
		}
		clock.Move(until.Sub(w.DB.Now()) - time.Microsecond)
		if !w.IsValid(done.Raised.Token) {
			t.Error("the session ends too early")
		}
		clock.Move(time.Microsecond)
		for i := range 2 {
			if _, err := w.Node(i).Sessions.Check(w.Context(), done.Raised.Token); apptest.Code(err) != doorward.CodeUnauthenticated {
				t.Errorf("after its end, on node %d: %v", i, err)
			}
		}
		s.saml.lies(nil)
		if in := s.in(s.browser().signIn()); !in.Session.ProviderUntil.IsZero() {
			t.Error("a session without a bound has one")
		}
	})
}

// TestStepUpBySAML: a fresh sign-in of the same identity proves the session again. Another person, an old sign-in, and
// one by another context than the connection trusts change nothing.
func TestStepUpBySAML(t *testing.T) {
	onSAML(t, func(w *world, s *site) {
		s.says("subject-2", "ben@acme.example", nil)
		s.in(s.browser().signIn())
		s.says("subject-1", "ann@acme.example", nil)
		in := s.in(s.browser().signIn())
		b := s.browser().as(apptest.PersonOf(in))
		stepUp := func() (signon.Result, error) { return b.through(b.begin(signon.Ask{StepUp: true})) }
		address, err := b.start(signon.Ask{StepUp: true})
		w.NoError(err)
		request, err := samltest.Read(address)
		if err != nil || request.ForceAuthn != "true" || strings.Contains(request.Text, "RequestedAuthnContext") || len(request.RelayState) > 80 || strings.Contains(request.RelayState, "/") {
			t.Errorf("the request is %+v, %v", request, err)
		}
		s.says("subject-2", "ann@acme.example", nil)
		s.refused("sub", stepUp)
		if got := s.last(doorward.AttemptStepUp); got.Check != "sub" || got.Advice != "start_again" {
			t.Errorf("the protocol has %+v", got)
		}
		s.says("subject-1", "ann@acme.example", nil)
		s.saml.lies(func(a *samltest.Answer) { a.AuthnInstant = a.Issued.Add(-4 * time.Minute) })
		s.refused("auth_time", stepUp)
		s.saml.lies(nil)
		if !w.IsValid(in.Token) {
			t.Fatal("a refused step-up ends the session")
		}
		done, err := stepUp()
		w.NoError(err)
		if done.Raised == nil || done.Raised.Session.ID != in.Session.ID || w.IsValid(in.Token) || !w.IsValid(done.Raised.Token) {
			t.Fatalf("the session is %+v", done.Raised)
		}
		b = s.browser().as(apptest.Person{Caller: apptest.PersonOf(in).Caller})
		s.edit(func(c *doorward.Connection) {
			c.TrustFactor, c.FactorACR = true, []string{"urn:strong", "urn:stronger"}
		})
		s.refused("factor", stepUp)
		if got := s.last(doorward.AttemptStepUp); got.Advice != "context" || got.Check != "factor" {
			t.Errorf("the protocol has %+v", got)
		}
		s.says("subject-1", "ann@acme.example", map[string]any{"acr": "urn:stronger"})
		if address, err = b.start(signon.Ask{StepUp: true}); err != nil {
			t.Fatal(err)
		}
		if request, _ := samltest.Read(address); !strings.Contains(request.Text, ">urn:strong<") || !strings.Contains(request.Text, ">urn:stronger<") {
			t.Errorf("the request is %s", request.Text)
		}
		if done, err = stepUp(); err != nil || done.Raised == nil {
			t.Errorf("by a trusted context: %+v, %v", done, err)
		}
		address, err = s.browser().start(signon.Ask{})
		w.NoError(err)
		if request, _ := samltest.Read(address); request.ForceAuthn != "" || strings.Contains(request.Text, "RequestedAuthnContext") {
			t.Errorf("a sign-in asks %+v", request)
		}
	})
}

// TestFactorOfSAMLProvider: what Entra ID and AD FS, and REFEDS, call several factors counts where it is trusted.
func TestFactorOfSAMLProvider(t *testing.T) {
	onSAML(t, func(w *world, s *site) {
		for _, name := range []string{"http://schemas.microsoft.com/claims/multipleauthn", "https://refeds.org/profile/mfa"} {
			s.says("subject-1", "ann@acme.example", map[string]any{"acr": name})
			s.edit(func(c *doorward.Connection) { c.TrustFactor = false })
			if in := s.in(s.browser().signIn()); in.Session.AAL != 1 || !slices.Equal(in.Session.ProviderAMR, []string{name}) {
				t.Errorf("without trust: level %d, the provider said %v", in.Session.AAL, in.Session.ProviderAMR)
			}
			s.edit(func(c *doorward.Connection) { c.TrustFactor = true })
			if in := s.in(s.browser().signIn()); in.Session.AAL != 2 {
				t.Errorf("with trust: level %d", in.Session.AAL)
			}
		}
		s.says("subject-1", "ann@acme.example", map[string]any{"acr": strings.Repeat("x", 129), "amr": []string{"hwk", "a b", "hwk"}})
		if in := s.in(s.browser().signIn()); !slices.Equal(in.Session.ProviderAMR, []string{"hwk"}) {
			t.Errorf("the session has %v", in.Session.ProviderAMR)
		}
	})
}

// TestSAMLTest: a test is a whole sign-in that opens nothing. It shows the mapped values and the names of all attributes,
// and says of a subject that is an address that somebody else can get it.
func TestSAMLTest(t *testing.T) {
	onSAML(t, func(w *world, s *site) {
		s.edit(func(c *doorward.Connection) { c.GroupsFrom = "groups" })
		s.says("subject-1", "ann@acme.example", map[string]any{"groups": []string{"staff"}})
		s.saml.lies(func(a *samltest.Answer) {
			a.Attributes = append(a.Attributes, samltest.Attribute{Name: "salary", Values: []string{"much"}})
		})
		test := s.test(nil)
		claims := string(test.Claims)
		if test.Status != doorward.TestPassed || !strings.Contains(claims, "subject-1") || !strings.Contains(claims, "staff") || !strings.Contains(claims, "salary") || strings.Contains(claims, "much") {
			t.Errorf("the test ends with %s, %+v, %s", test.Status, test.Checks, claims)
		}
		if _, advice := notable(test); advice != "" {
			t.Errorf("the test advises %q: %+v", advice, test.Checks)
		}
		names := make([]string, len(test.Checks))
		for i, check := range test.Checks {
			names[i] = check.Name
		}
		if want := []string{"size", "doctype", "structure", "alg", "signature", "certificate", "iss", "audience", "recipient", "destination", "in_response_to", "time", "auth_time", "nameid", "sub", "status", "email", "domain", "groups"}; !slices.Equal(names, want) {
			t.Errorf("the checks are %v", names)
		}
		s.says("ann@acme.example", "ann@acme.example", nil)
		i := slices.IndexFunc(s.test(nil).Checks, func(c doorward.TestCheck) bool { return c.Advice == "subject" && c.OK && c.Name == "sub" })
		if i < 0 {
			t.Error("a subject that is an address has no advice")
		}
		if c, err := w.DB.Read().Connection(w.Context(), s.conID); err != nil || c.InForce.TestedAt == nil {
			t.Errorf("the connection isn't tested: %v", err)
		}
	})
}

// TestPendingSAML: what awaits a switch is tested by itself, and signs nobody in before that.
func TestPendingSAML(t *testing.T) {
	onSAML(t, func(w *world, s *site) {
		next := w.newSAMLProvider()
		next.use(1)
		next.says("subject-1", "ann@acme.example", nil)
		s.awaits(next)
		old := s.saml
		s.saml = next
		if test := s.test(nil); test.Status != doorward.TestPassed {
			t.Errorf("the test of what is pending ends with %s, %+v", test.Status, test.Checks)
		}
		s.saml = old
		if test := s.test(nil); test.Status != doorward.TestFailed {
			t.Errorf("by what is in force, the test of what is pending ends with %s", test.Status)
		}
		s.in(s.browser().signIn())
		// The provider that awaits a switch answers a sign-in by the one in force.
		b := s.browser()
		address, err := b.start(signon.Ask{})
		w.NoError(err)
		s.refused("certificate", func() (signon.Result, error) { return b.through(next.answer(b, address)) })
		if entry := s.last(doorward.AttemptSignIn); entry.Check != "certificate" {
			t.Errorf("the protocol has %+v", entry)
		}
	})
}

// awaits makes the provider one that awaits a switch.
func (s *site) awaits(next *samlProvider) {
	s.w.Helper()
	said, err := metadata.Parse(next.Metadata(), "", s.w.DB.Now())
	s.w.NoError(err)
	p := doorward.ConnectionParameters{Issuer: said.EntityID, EmailFrom: "email", MetadataURL: next.EntityID}
	s.w.write(func(tx *store.Tx) error {
		err := tx.SetConnectionParameters(s.w.Context(), s.conID, true, p)
		return errors.Join(err, keepIt(s, tx, true, said))
	})
}

// TestCertificateTakenAway: by the provider's metadata, or by hand, in force at once on every node: also for a response
// that was accepted and waits for its browser, and for what the person is asked for afterwards.
func TestCertificateTakenAway(t *testing.T) {
	onEachSAML(t, func(w *world, s *site) {
		fingerprint := s.fingerprint()
		ben := s.member("ben", doorward.RoleUser)
		for name, take := range map[string]func(*store.Tx) error{
			"by the address": func(tx *store.Tx) error { return s.keepOnly(tx, 1) },
			"by hand": func(tx *store.Tx) error {
				return tx.RemoveCertificates(w.Context(), s.conID, false, []string{fingerprint})
			},
		} {
			s.saml.announces(1)
			waiting, asked, late := s.browser(), s.browser().as(ben), s.browser()
			query, err := waiting.post(waiting.begin(signon.Ask{}))
			w.NoError(err)
			asked.asked(asked.signIn())
			form := late.begin(signon.Ask{})
			w.write(take)
			waiting.node, late.node = 1, 1
			s.refused("certificate", func() (signon.Result, error) { return waiting.finish(query) })
			s.refused("certificate", func() (signon.Result, error) { return late.through(form) })
			if _, err := w.Node(1).SignOn.Agree(w.Context(), asked.by, s.conID, asked.held); apptest.Code(err) != doorward.CodeSignOnRefused {
				t.Errorf("%s: what the person was asked for is answered %v", name, err)
			}
			w.write(func(tx *store.Tx) error {
				return errors.Join(s.keepOnly(tx, 0), tx.RemoveCertificates(w.Context(), s.conID, false, nil))
			})
			s.in(s.browser().signIn())
		}
	})
}

// fingerprint is that of the provider's certificate.
func (s *site) fingerprint() string {
	s.w.Helper()
	said, err := metadata.Parse(s.saml.Metadata(), "", s.w.DB.Now())
	s.w.NoError(err)
	return said.Certificates[0].Fingerprint
}

// keepOnly keeps metadata with the i-th certificates alone, as if they had just been read.
func (s *site) keepOnly(tx *store.Tx, i int) error {
	was := s.saml.Certificate
	s.saml.Certificate = certificates()[i]
	said, err := metadata.Parse(s.saml.Metadata(), "", tx.Now)
	s.saml.Certificate = was
	return errors.Join(err, keepIt(s, tx, false, said))
}

// TestRaceRotation: a provider takes another certificate, in three steps, while people sign in on two nodes: none of them is
// refused, and the metadata are read when a response needs it, at most once a minute.
func TestRaceRotation(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		w, s := samlWorld(f)
		signIns := func() {
			t.Helper()
			clock.Move(2 * time.Minute)
			errs := apptest.Concurrently(8, func(i int) error {
				b := s.browser()
				b.node = i
				return apptest.ErrorOf(b.signIn())
			})
			w.WantOnly(errs, "")
		}
		signIns()
		reads := s.saml.reads()
		s.saml.announces(0, 1)
		signIns()
		if got := s.saml.reads(); got != reads {
			t.Errorf("metadata are read %d times though the certificate is known", got-reads)
		}
		s.saml.use(1)
		signIns()
		if got := s.saml.reads(); got != reads+1 {
			t.Errorf("metadata are read %d times for the new certificate", got-reads)
		}
		s.saml.announces(1)
		signIns()
		// One that the metadata don't name is refused, and read for at most once a minute.
		clock.Move(2 * time.Minute)
		reads = s.saml.reads()
		s.saml.use(2)
		for i := range 4 {
			b := s.browser()
			b.node = i
			if _, err := b.signIn(); apptest.Code(err) != doorward.CodeSignOnRefused {
				t.Errorf("by a certificate that nobody names, a sign-in is answered %v", err)
			}
		}
		if got := s.saml.reads(); got != reads+1 {
			t.Errorf("metadata are read %d times within a minute", got-reads)
		}
	})
}

// TestMetadataOutOfReach: a response by an unknown certificate is no refusal while the metadata can't be read.
func TestMetadataOutOfReach(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		w, s := samlWorld(f)
		ann := s.in(s.browser().signIn())
		s.saml.use(1)
		s.saml.mu.Lock()
		s.saml.serve = func(rw http.ResponseWriter) { rw.WriteHeader(http.StatusBadGateway) }
		s.saml.mu.Unlock()
		clock.Move(2 * time.Minute)
		for range 2 { // the second one within the minute
			clock.Move(11 * time.Second)
			before := w.rows()
			b := s.browser()
			_, err := b.signIn()
			if apptest.Code(err) != doorward.CodeProviderUnavailable {
				t.Errorf("the sign-in is answered %v", err)
			}
			if diff := difference(before, w.rows()); diff != "" || !w.IsValid(ann.Token) {
				t.Errorf("a fault has written %s, and ended the session", diff)
			}
			if got := s.last(doorward.AttemptSignIn); got.Outcome != doorward.AttemptUnavailable {
				t.Errorf("the protocol has %+v", got)
			}
		}
		s.saml.announces(1)
		clock.Move(2 * time.Minute)
		s.in(s.browser().signIn())
	})
}

// TestRaceTabsBySAML: 32 tabs of one browser, each of which has begun, end as 5 that browsers keep; each of these ends once.
func TestRaceTabsBySAML(t *testing.T) {
	onEachSAML(t, func(w *world, s *site) {
		b := s.browser()
		var forms []url.Values
		for range 32 {
			forms = append(forms, b.begin(signon.Ask{}))
		}
		if len(b.tabs) != flow.MaxTabs {
			t.Fatalf("the browser keeps %d sign-ins", len(b.tabs))
		}
		errs := apptest.Concurrently(64, func(i int) error {
			one := *b
			one.node, one.by.IP = i, "192.0.2."+string(rune('0'+i%8)) // refused ones are limited by address
			return apptest.ErrorOf(one.through(forms[i%32]))
		})
		in := 0
		for _, err := range errs {
			if err == nil {
				in++
			}
		}
		w.WantOnly(errs, "", doorward.CodeSignOnRefused, doorward.CodeSignOnState)
		if in != flow.MaxTabs || w.count("sessions WHERE issuer = '"+s.conID+"'") != in {
			t.Errorf("%d sign-ins of 32 tabs succeed", in)
		}
	})
}

// TestRaceSamePost: the same response, posted to two nodes at once, opens one session. The trail is counted,
// since the oldest session ends when somebody has too many.
func TestRaceSamePost(t *testing.T) {
	const opened = "events WHERE action = 'session.open' AND outcome = 'done'"
	onEachSAML(t, func(w *world, s *site) {
		for round := range apptest.Rounds(3, 20) {
			b := s.browser()
			form := b.begin(signon.Ask{})
			before := w.count(opened)
			errs := apptest.Concurrently(8, func(i int) error {
				one := *b
				one.node, one.by.IP = i, fmt.Sprintf("198.51.100.%d", round)
				return apptest.ErrorOf(one.through(form))
			})
			w.WantOnly(errs, "", doorward.CodeSignOnRefused, doorward.CodeSignOnState)
			if n := w.count(opened) - before; n != 1 {
				t.Errorf("%d sessions are opened", n)
			}
		}
	})
}
