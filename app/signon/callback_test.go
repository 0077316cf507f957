package signon_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	mrand "math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/signon"
	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// lies are what a provider may say wrongly, with the check that refuses it.
var lies = []struct {
	check string
	lie   func(*oidctest.Lies)
}{
	{"state", func(l *oidctest.Lies) { l.Callback = func(p url.Values) { p.Set("state", "another") } }},
	{"iss_parameter", func(l *oidctest.Lies) { l.Callback = func(p url.Values) { p.Set("iss", "https://other.example") } }},
	{"iss_parameter", func(l *oidctest.Lies) { l.Callback = func(p url.Values) { p.Del("iss") } }},
	{"provider_error", func(l *oidctest.Lies) { l.Callback = func(p url.Values) { p.Set("error", "access_denied") } }},
	{"provider_error", func(l *oidctest.Lies) { l.Callback = func(p url.Values) { p.Set("code", "another") } }},
	{"alg", func(l *oidctest.Lies) { l.Header = func(h map[string]any) { h["alg"] = "none" } }},
	{"alg", func(l *oidctest.Lies) { l.Header = func(h map[string]any) { h["alg"] = "HS256" } }},
	{"kid", func(l *oidctest.Lies) { l.Header = func(h map[string]any) { h["kid"] = "another" } }},
	{"signature", func(l *oidctest.Lies) { l.Signature = func(b []byte) []byte { b[0] ^= 1; return b } }},
	{"iss", claim("iss", "https://other.example")},
	{"aud", claim("aud", "another")},
	{"azp", claim("azp", "another")},
	{"nonce", claim("nonce", "another")},
	{"exp", claim("exp", 1)},
	{"iat", func(l *oidctest.Lies) {
		l.Claims = func(c map[string]any) {
			c["iat"] = time.Now().Add(time.Hour).Unix()
			c["exp"] = time.Now().Add(2 * time.Hour).Unix()
		}
	}},
	{"lifetime", func(l *oidctest.Lies) {
		l.Claims = func(c map[string]any) { c["exp"] = time.Now().Add(48 * time.Hour).Unix() }
	}},
	{"sub", claim("sub", "")},
	{"sub", claim("sub", "a\x00b")},
	{"sub", claim("sub", strings.Repeat("a", 256))},
	{"email", claim("email", "no address")},
	{"email", claim("email", 1)},
}

func claim(name string, value any) func(*oidctest.Lies) {
	return func(l *oidctest.Lies) { l.Claims = func(c map[string]any) { c[name] = value } }
}

// TestEachLieIsRefused: with its check, which the protocol has, and nothing is written.
func TestEachLieIsRefused(t *testing.T) {
	onSQLite(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		s.says("subject-1", "ann@acme.example", nil)
		for _, l := range lies {
			s.provider.Change(func(p *oidctest.Settings) { p.Lies = oidctest.Lies{}; l.lie(&p.Lies) })
			b := s.browser()
			b.by.IP = "192.0.2." + string(rune('0'+mrand.IntN(10)))
			s.refused(l.check, b.signIn)
			if got, err := w.DB.Read().LastAttempt(w.Context(), s.conID, doorward.AttemptSignIn); err != nil || got.Check != l.check || got.Outcome != doorward.AttemptRefused {
				t.Errorf("the protocol has %+v, %v", got, err)
			}
		}
		s.provider.Change(func(p *oidctest.Settings) { p.Lies = oidctest.Lies{} })
		s.in(s.browser().signIn())
	})
}

// TestProviderDown: a fault of the provider is no refusal.
func TestProviderDown(t *testing.T) {
	onSQLite(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		s.says("subject-1", "ann@acme.example", nil)
		ann := s.in(s.browser().signIn())
		for _, answer := range []func(http.ResponseWriter, *http.Request) bool{
			func(w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true },
			func(w http.ResponseWriter, r *http.Request) bool { _, _ = w.Write([]byte("<html>")); return true },
		} {
			b := s.browser()
			address, err := b.start(signon.Ask{})
			w.NoError(err)
			query := b.callback(address)
			s.provider.Change(func(p *oidctest.Settings) {
				p.Lies.Answer = func(w http.ResponseWriter, r *http.Request) bool {
					return r.URL.Path == oidctest.TokenPath && answer(w, r)
				}
			})
			before := w.rows()
			if _, err := b.finish(query); apptest.Code(err) != doorward.CodeProviderUnavailable {
				t.Errorf("a provider with a fault is answered %v", err)
			}
			if diff := difference(before, w.rows()); diff != "" || !w.IsValid(ann.Token) {
				t.Errorf("a fault has written %s, and ended the session", diff)
			}
			s.provider.Change(func(p *oidctest.Settings) { p.Lies.Answer = nil })
		}
		got, err := w.DB.Read().LastAttempt(w.Context(), s.conID, doorward.AttemptSignIn)
		if err != nil || got.Outcome != doorward.AttemptUnavailable {
			t.Errorf("the protocol has %+v, %v", got, err)
		}
	})
}

// TestStepUpByProvider: a fresh sign-in of the same identity proves the session again, under a new token.
// Another person, and a provider that doesn't say when it was, change nothing.
func TestStepUpByProvider(t *testing.T) {
	onSQLite(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		s.says("subject-2", "ben@acme.example", nil)
		s.in(s.browser().signIn())
		s.says("subject-1", "ann@acme.example", nil)
		in := s.in(s.browser().signIn())
		b := s.browser().as(apptest.PersonOf(in))
		stepUp := func() (signon.Result, error) {
			address, err := b.start(signon.Ask{StepUp: true})
			if err != nil {
				return signon.Result{}, err
			}
			if !strings.Contains(address, "prompt=login") || !strings.Contains(address, "max_age=0") {
				t.Errorf("the provider is asked by %s", address)
			}
			return b.finish(b.callback(address))
		}
		s.says("subject-2", "ann@acme.example", nil)
		s.refused("sub", stepUp)
		s.says("subject-1", "ann@acme.example", nil)
		for _, at := range []any{nil, w.DB.Now().Add(-time.Hour).Unix()} {
			s.provider.Change(func(p *oidctest.Settings) {
				p.Lies.Claims = func(c map[string]any) {
					if c["auth_time"] = at; at == nil {
						delete(c, "auth_time")
					}
				}
			})
			s.refused("auth_time", stepUp)
		}
		s.provider.Change(func(p *oidctest.Settings) { p.Lies.Claims = nil })
		if !w.IsValid(in.Token) {
			t.Fatal("a refused step-up ends the session")
		}
		done, err := stepUp()
		w.NoError(err)
		if done.Raised == nil || done.Raised.Session.ID != in.Session.ID || !done.Raised.Session.ProvedAt.After(in.Session.ProvedAt) || w.IsValid(in.Token) || !w.IsValid(done.Raised.Token) {
			t.Errorf("the session is %+v", done.Raised)
		}
	})
}

// TestAsOldAsTheProviderSays: a session is proved when its provider says it was, at the latest now; a provider
// that doesn't say when counts as of now. A factor of the account proves nothing in the provider's name.
func TestAsOldAsTheProviderSays(t *testing.T) {
	onSQLite(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		s.edit(func(c *doorward.Connection) { c.JITRole = doorward.RoleAdmin })
		on := doorward.Object{TenantID: s.tenantID()}
		for _, c := range []struct {
			at   time.Duration // from now; 0: the provider doesn't say
			code doorward.Code
		}{{-3 * time.Hour, doorward.CodeStepUpRequired}, {-time.Minute, ""}, {30 * time.Second, ""}, {0, ""}} {
			before := w.DB.Now()
			claims := map[string]any{"auth_time": before.Add(c.at).Unix()}
			if c.at == 0 {
				claims["auth_time"] = nil
			}
			s.says("subject-1", "ann@acme.example", claims)
			in := apptest.PersonOf(s.in(s.browser().signIn()))
			p, err := w.Node(0).Sessions.Check(w.Context(), in.Token)
			w.NoError(err)
			if want := before.Add(c.at).Unix(); c.at < 0 && p.AuthAt.Unix() != want || c.at >= 0 && (p.AuthAt.Before(before) || p.AuthAt.After(w.DB.Now())) {
				t.Errorf("signed in %s ago at the provider, the session is proved at %s", -c.at, p.AuthAt)
			}
			by := in.Caller
			by.Principal = p
			if got := apptest.Code(w.Node(0).Access.Require(w.Context(), by, doorward.APIKeyCreate, on)); got != c.code {
				t.Errorf("%s after the sign-in at the provider a sensitive action is answered %q, want %q", -c.at, got, c.code)
			}
		}
	})
}

// TestTest: a test is a whole sign-in, which opens no session, joins nobody, and counts for exactly what it has
// tested; once, in the browser of the session that asked.
func TestTest(t *testing.T) {
	onSQLite(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		w.write(func(tx *store.Tx) error {
			return apptest.ErrorOf(tx.SetConnectionStatus(w.Context(), s.conID, doorward.ConnectionDraft))
		})
		s.says("subject-1", "ann@elsewhere.example", nil)
		run := func(lie func(*oidctest.Lies)) doorward.ConnectionTest {
			s.provider.Change(func(p *oidctest.Settings) {
				p.Lies = oidctest.Lies{}
				if lie != nil {
					lie(&p.Lies)
				}
			})
			test, err := w.Node(0).Tests.Make(w.Context(), s.owner.Caller, s.conID)
			w.NoError(err)
			before := w.rows()
			if _, err := s.browser().start(signon.Ask{Test: test.ID}); apptest.Code(err) != doorward.CodeNotFound {
				t.Errorf("another browser is answered %v", err)
			}
			b := s.browser().as(s.owner)
			address, err := b.start(signon.Ask{Test: test.ID})
			w.NoError(err)
			if _, err := b.start(signon.Ask{Test: test.ID}); apptest.Code(err) != doorward.CodeNotFound {
				t.Errorf("a second beginning is answered %v", err)
			}
			done, err := b.finish(b.callback(address))
			w.NoError(err)
			if done.Test != test.ID {
				t.Errorf("the result is %+v", done)
			}
			if diff := difference(before, w.rows()); diff != "" {
				t.Errorf("a test has written %s", diff)
			}
			test, err = w.DB.Read().ConnectionTest(w.Context(), test.ID)
			w.NoError(err)
			return test
		}
		if test := run(claim("nonce", "another")); test.Status != doorward.TestFailed || test.Checks[len(test.Checks)-1].Name != "nonce" {
			t.Errorf("a lie ends with %s, %+v", test.Status, test.Checks)
		}
		if test := run(claim("email", "")); test.Status != doorward.TestFailed {
			t.Errorf("without an address it ends with %s", test.Status)
		}
		if c, _ := w.DB.Read().Connection(w.Context(), s.conID); c.InForce.TestedAt != nil {
			t.Error("a failed test counts")
		}
		test := run(nil)
		last := test.Checks[len(test.Checks)-1]
		if test.Status != doorward.TestPassed || last.Name != "domain" || last.Advice != "domain" || !strings.Contains(string(test.Claims), "subject-1") {
			t.Errorf("the test ends with %s, %+v, %s", test.Status, test.Checks, test.Claims)
		}
		if c, _ := w.DB.Read().Connection(w.Context(), s.conID); c.InForce.TestedAt == nil {
			t.Error("a passed test doesn't count")
		}
	})
}

// TestStrayCallbacks: callbacks without a cookie are one entry a minute, with a count, and limited.
func TestStrayCallbacks(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		w := &world{Fixture: f}
		s := w.site("acme.example", doorward.JITDomains)
		s.says("subject-1", "ann@acme.example", nil)
		b := s.browser()
		code := func() doorward.Code {
			_, err := b.finish(url.Values{"state": {"none"}, "code": {"none"}})
			return apptest.Code(err)
		}
		for range 60 {
			if got := code(); got != doorward.CodeSignOnState {
				t.Fatalf("a stray callback is answered %q", got)
			}
		}
		if got := code(); got != doorward.CodeTooManyAttempts {
			t.Errorf("beyond the limit: %q", got)
		}
		clock.Move(time.Millisecond) // entries of one instant have no order
		s.in(s.browser().signIn())   // by somebody else in the same office
		clock.Move(time.Millisecond)
		s.says("subject-9", "zoe@zeta.example", nil)
		for range 60 {
			if _, err := s.browser().signIn(); apptest.Code(err) != doorward.CodeSignOnRefused {
				t.Fatalf("a refused sign-in is answered %v", err)
			}
		}
		s.says("subject-1", "ann@acme.example", nil)
		if _, err := s.browser().signIn(); apptest.Code(err) != doorward.CodeTooManyAttempts {
			t.Errorf("after 60 refused ones a sign-in is answered %v", err)
		}
		clock.Move(2 * time.Minute)
		w.NoError(w.Node(0).SignOn.WriteStrays(w.Context()))
		page, err := w.DB.Read().AttemptPage(w.Context(), s.conID, doorward.Window{Limit: 10})
		w.NoError(err)
		n, entries := 0, 0
		for _, a := range page.Items {
			if a.Check == signon.CheckState {
				n, entries = n+a.Count, entries+1
			}
		}
		counts := map[doorward.UsageOutcome]int64{}
		usage, err := w.DB.Read().Usage(w.Context(), s.conID, clock.Now().Add(-2*time.Hour))
		w.NoError(err)
		for _, one := range usage {
			counts[one.Outcome] += one.Times
		}
		if want := (map[doorward.UsageOutcome]int64{doorward.UsageSignedIn: 1, doorward.UsageRefused: 60}); !maps.Equal(counts, want) {
			t.Errorf("the chart counts %v, want %v: a stray callback is no sign-in", counts, want)
		}
		if entries > 2 || n != 60 {
			t.Errorf("the protocol has %+v", page.Items)
		}
		for range 600 {
			if _, err := b.start(signon.Ask{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.start(signon.Ask{}); apptest.Code(err) != doorward.CodeTooManyAttempts {
			t.Errorf("the 601st start is answered %v", err)
		}
	})
}

// TestRaceSameAnswer: of many callbacks with the same answer on two nodes, one opens a session; of many new
// tabs of one new person, all are one account.
func TestRaceSameAnswer(t *testing.T) {
	onEachByBoth(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		s.says("subject-1", "ann@acme.example", nil)
		b := s.browser()
		address, err := b.start(signon.Ask{})
		w.NoError(err)
		query := b.callback(address)
		errs := apptest.Concurrently(8, func(i int) error {
			one := *b
			one.node = i
			return apptest.ErrorOf(one.finish(query))
		})
		w.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeSignOnState: 7})
		s.says("subject-2", "ben@acme.example", nil)
		errs = apptest.Concurrently(6, func(i int) error {
			one := s.browser()
			one.node = i
			return apptest.ErrorOf(one.signIn())
		})
		w.WantOnly(errs, "")
		if n := w.count("identities"); n != 2 {
			t.Errorf("there are %d identities", n)
		}
	})
}

// TestRaceOff: once the connection is disabled, no sign-in by it opens a session that stays.
func TestRaceOff(t *testing.T) {
	onEachByBoth(t, func(w *world) {
		for round := range apptest.Rounds(3, 20) {
			s := w.site(w.NewEmail("d")[:3]+rand.Text()[:8]+".example", doorward.JITDomains)
			s.domainFor("subject-1")
			var tokens apptest.OpenedSessions
			errs := apptest.Concurrently(5, func(i int) error {
				if i == 0 {
					return w.Node(1).Access.Upkeep(w.Context(), func(tx *store.Tx) error {
						if err := tx.LockTenant(w.Context(), s.tenantID()); err != nil {
							return err
						}
						if _, err := tx.SetConnectionStatus(w.Context(), s.conID, doorward.ConnectionDisabled); err != nil {
							return err
						}
						return apptest.ErrorOf(tx.DeleteIssuerSessions(w.Context(), store.SessionLifetime{}, s.tenantID(), doorward.Issuer(s.conID)))
					})
				}
				one := s.browser()
				one.node, one.by.IP = i, fmt.Sprintf("198.51.100.%d", round) // an address may be refused 60 times a minute
				r, err := one.signIn()
				if err != nil {
					return err
				}
				in, err := apptest.SignedIn(r.Outcome, nil)
				return tokens.Add(in.Opened, err)
			})
			w.WantOnly(errs, "", doorward.CodeNotFound, doorward.CodeSignOnRefused)
			if n := w.CountValid(&tokens); n > 0 {
				t.Errorf("%d sessions outlive the connection", n)
			}
		}
	})
}

// domainFor makes the provider name somebody in the site's domain.
func (s *site) domainFor(subject string) { s.says(subject, subject+"@"+s.domain, nil) }

// TestRandomLiar: whatever the providers of three tenants say, nobody gets anything of another tenant, nobody
// becomes an OWNER, no account changes, none is made for an address that the tenant hasn't proved, and none is
// opened by a second subject, nor that of an OWNER or of a member of another tenant.
func TestRandomLiar(t *testing.T) {
	onSQLite(t, func(w *world) {
		sites := []*site{w.site("one.example", doorward.JITDomains), w.site("two.example", doorward.JITInvited), w.site("three.example", doorward.JITOff)}
		var people []apptest.Person
		for _, s := range sites {
			people = append(people, s.owner, s.member("boss", doorward.RoleOwner), s.member("ann", doorward.RoleAdmin), s.member("ben", doorward.RoleUser))
			s.edit(func(c *doorward.Connection) {
				c.GroupsFrom, c.TrustFactor = "groups", true
				c.Mappings = []doorward.GroupMapping{{Group: "a", Role: doorward.RoleAdmin}, {Group: "o", Role: doorward.RoleOwner}}
			})
		}
		for i, s := range sites {
			both := s.member("both", doorward.RoleUser)
			_, code := w.Invite(sites[(i+1)%len(sites)].owner, both.User.Email, doorward.RoleUser)
			w.NoError(apptest.ErrorOf(w.Node(0).Invitations.Accept(w.Context(), both.Caller, code, "")))
			people = append(people, both)
		}
		before := map[string]doorward.Account{}
		for _, p := range people {
			before[p.User.ID] = w.Account(p)
		}
		owners := w.count("memberships WHERE role = 'OWNER'")
		l := &liar{sites: sites, people: people, subjects: map[string]string{}, seed: mrand.Uint64()}
		l.random = mrand.New(mrand.NewPCG(l.seed, 0))
		for range fulltest.Of(100, 2000) {
			l.signIn(t)
		}
		if l.signedIn == 0 || l.refused == 0 {
			t.Errorf("seed %d: %d sign-ins, %d refused for a lie", l.seed, l.signedIn, l.refused)
		}
		for id, was := range before {
			now, err := w.DB.Read().Account(w.Context(), id)
			w.NoError(err)
			if now.Email != was.Email || now.PasswordHash != was.PasswordHash || now.Factors != was.Factors || now.ManagedBy != was.ManagedBy || now.Generation != was.Generation {
				t.Errorf("seed %d: the account %s has changed", l.seed, was.Email)
			}
		}
		if n := w.count("memberships WHERE role = 'OWNER'"); n != owners {
			t.Errorf("seed %d: there are %d OWNERs, and were %d", l.seed, n, owners)
		}
	})
}

// liar makes the providers of several tenants say anything.
type liar struct {
	sites  []*site
	people []apptest.Person // of all tenants
	// subjects has the subject by which each account was opened.
	subjects map[string]string
	seed     uint64
	random   *mrand.Rand
	// signedIn counts sessions, refused the lies that were told from the truth.
	signedIn, refused int
}

// pick returns one of the values.
func pick[T any](l *liar, values ...T) T { return values[l.random.IntN(len(values))] }

// signIn signs in at one of the tenants, as anybody. Every fourth answer has a lie, and some others go to the
// connection of another tenant.
func (l *liar) signIn(t *testing.T) {
	t.Helper()
	s := pick(l, l.sites...)
	subject := fmt.Sprintf("s%d", l.random.IntN(50))
	s.says(subject, pick(l, l.addresses()...), map[string]any{
		"groups": pick[any](l, nil, "o", []string{"o"}, []string{"a", "o"}, []any{1}), "amr": []string{"mfa"},
	})
	told := lies[l.random.IntN(len(lies))]
	isLie := l.random.IntN(4) == 0
	s.provider.Change(func(p *oidctest.Settings) {
		if p.Lies = (oidctest.Lies{}); isLie {
			told.lie(&p.Lies)
		}
	})
	b := s.browser()
	b.by.IP = fmt.Sprintf("198.51.%d.%d", l.random.IntN(100), l.random.IntN(100))
	address, err := b.start(signon.Ask{})
	s.w.NoError(err)
	query := b.callback(address)
	if l.random.IntN(8) == 0 {
		b.s = pick(l, l.sites...)
	}
	result, err := b.finish(query)
	switch {
	case b.s != s, isLie && told.check != "email": // an address doesn't matter once the identity is known
		if err == nil {
			t.Fatalf("seed %d: a lie about %s, or an answer for another tenant, is taken", l.seed, told.check)
		}
		l.refused++
	case err == nil && result.Held == "":
		l.judge(t, s, subject, s.in(result, err))
	}
}

// addresses are those of all people, and some that nobody has.
func (l *liar) addresses() []string {
	all := []string{"new@one.example", "new@two.example", "nobody@elsewhere.example", "", "ANN@ONE.EXAMPLE"}
	for _, p := range l.people {
		all = append(all, p.User.Email)
	}
	return all
}

// judge looks at a session that the provider's word for the subject has opened.
func (l *liar) judge(t *testing.T, s *site, subject string, in login.SignedIn) {
	t.Helper()
	l.signedIn++
	email := in.User.Email
	if in.Session.TenantID != s.tenantID() || in.User.Role == doorward.RoleOwner {
		t.Fatalf("seed %d: a session of %s in %s as %s", l.seed, email, in.Session.TenantID, in.User.Role)
	}
	if !strings.HasSuffix(email, "@"+s.domain) || strings.HasPrefix(email, "both@") {
		t.Fatalf("seed %d: %s is signed in, without a proof, by the provider of %s", l.seed, email, s.domain)
	}
	if by, ok := l.subjects[in.User.ID]; ok && by != subject {
		t.Fatalf("seed %d: %s is signed in as %s, and was as %s", l.seed, email, subject, by)
	}
	l.subjects[in.User.ID] = subject
}

// count counts the rows of a table, with a condition.
func (w *world) count(from string) int {
	w.Helper()
	return storetest.Query[int](w.T, storetest.Raw(w.T, w.DSN), "SELECT count(*) FROM "+from)
}

// TestAnswersInTime: a provider that never answers is a fault, of which time is left to write: a sign-in is in the
// protocol, and a test has failed.
func TestAnswersInTime(t *testing.T) {
	onSQLite(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		s.says("subject-1", "ann@acme.example", nil)
		test, err := w.Node(0).Tests.Make(w.Context(), s.owner.Caller, s.conID)
		w.NoError(err)
		b := s.browser().as(s.owner)
		queries := map[doorward.AttemptKind]url.Values{}
		for kind, ask := range map[doorward.AttemptKind]signon.Ask{doorward.AttemptSignIn: {}, doorward.AttemptTest: {Test: test.ID}} {
			address, err := b.start(ask)
			w.NoError(err)
			queries[kind] = b.callback(address)
		}
		s.provider.Change(func(p *oidctest.Settings) {
			p.Lies.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
				_, _ = io.Copy(io.Discard, r.Body) // else the server doesn't notice that the client has gone
				<-r.Context().Done()
				return true
			}
		})
		for kind, query := range queries {
			ctx, cancel := waittest.Interrupt(w.Context(), 2*time.Second)
			defer cancel()
			_, err := b.signOn().Finish(ctx, b.by, s.conID, query, b.cookies())
			if code := apptest.Code(err); kind == doorward.AttemptSignIn && code != doorward.CodeProviderUnavailable || kind == doorward.AttemptTest && code != "" {
				t.Errorf("%s: the answer is %v", kind, err)
			}
			if got, err := w.DB.Read().LastAttempt(w.Context(), s.conID, kind); err != nil || got.Outcome != doorward.AttemptUnavailable || got.Seen != "no answer in time" {
				t.Errorf("%s: the protocol has %+v, %v", kind, got, err)
			}
		}
		if test, err = w.Node(0).Tests.Show(w.Context(), s.owner.Caller, s.conID, test.ID); err != nil || test.Status != doorward.TestFailed {
			t.Errorf("the test is %s, %v", test.Status, err)
		}
	})
}
