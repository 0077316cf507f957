package signoff_test

import (
	"errors"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/flow"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/signoff"
	"github.com/doorward/doorward/app/signon"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/store"
)

type m = map[string]any

// site is a tenant with its provider, and a connection that signs people in.
type site struct {
	*apptest.Fixture
	owner    apptest.Person
	provider *oidctest.Provider
	con      connection.Shown
}

func onEach(t *testing.T, test func(*site)) {
	t.Helper()
	apptest.OnEach(t, func(f *apptest.Fixture) { test(newSite(f)) })
}

func onSQLite(t *testing.T, test func(*site)) {
	t.Helper()
	apptest.OnSQLite(t, func(f *apptest.Fixture) { test(newSite(f)) })
}

func newSite(f *apptest.Fixture) *site {
	f.Helper()
	_, owner := f.Tenant()
	s := &site{Fixture: f, owner: owner, provider: f.Provider()}
	s.con = f.Active(owner, s.provider)
	return s
}

// person makes a member with the identity of the subject.
func (s *site) person(subject string) apptest.Person {
	s.Helper()
	p := s.Join(s.owner, doorward.RoleUser)
	s.write(func(tx *store.Tx) error {
		return apptest.ErrorOf(tx.InsertIdentity(s.Context(), doorward.Identity{
			ID: doorward.NewID(doorward.PrefixIdentity), ConnectionID: s.con.ID, TenantID: s.con.TenantID, Issuer: s.provider.Issuer(), Subject: subject,
			UserID: p.User.ID, CreatedAt: tx.Now, LastUsedAt: tx.Now,
		}))
	})
	return p
}

func (s *site) write(fn func(*store.Tx) error) {
	s.Helper()
	s.NoError(s.Node(0).Access.Upkeep(s.Context(), fn))
}

// letIn makes members of the people with an address in the domain, which is proved for the connection.
func (s *site) letIn(domain string) {
	s.Helper()
	s.write(func(tx *store.Tx) error {
		d := doorward.Domain{ID: doorward.NewID(doorward.PrefixDomain), TenantID: s.con.TenantID, Name: domain, Token: domain, Status: doorward.DomainPending, CreatedAt: tx.Now}
		_, err := tx.InsertDomain(s.Context(), d)
		return errors.Join(err, tx.VerifyDomain(s.Context(), d.ID, tx.Now.Add(time.Hour)), tx.SetDomainConnection(s.Context(), d.ID, s.con.ID))
	})
	s.edit(connection.Draft{JIT: new("domains")})
}

// begun is a sign-in for which the browser is at the provider, or comes back from it.
type begun struct {
	s    *site
	tab  flow.Tab
	back func() (signon.Result, error)
}

// begin begins a sign-in of the subject. With a session of the provider (sid), it names that.
func (s *site) begin(subject, sid string) *begun {
	s.Helper()
	s.provider.Change(func(p *oidctest.Settings) {
		p.Person = oidctest.Person{Subject: subject, Email: subject + "@acme.example", Claims: m{}}
		if sid != "" {
			p.Person.Claims["sid"] = sid
		}
	})
	on, by := s.Node(0).SignOn, apptest.Anonymous(0)
	start, err := on.Start(s.Context(), by, s.con.ID, signon.Ask{})
	s.NoError(err)
	b := &begun{s: s, tab: start.Tab}
	b.back = func() (signon.Result, error) {
		back, err := s.provider.SignIn(start.URL)
		s.NoError(err)
		return on.Finish(s.Context(), by, s.con.ID, back.Query(), []flow.Tab{b.tab})
	}
	return b
}

// signIn signs the subject in.
func (s *site) signIn(subject, sid string) apptest.Person {
	s.Helper()
	result, err := s.begin(subject, sid).back()
	s.NoError(err)
	in, ok := result.Outcome.(login.SignedIn)
	if !ok {
		s.Fatalf("the sign-in ends with %+v", result)
	}
	return apptest.PersonOf(in)
}

// by is a provider's server, which has one address.
func by(i int) doorward.Caller {
	c := apptest.Anonymous(i)
	c.IP, c.RequestID = "192.0.2.7", "req_test"
	return c
}

func (s *site) revoke(i int, token string, who signoff.Subject) (doorward.Revocation, error) {
	return s.Node(i).SignOff.Revoke(s.Context(), by(i), s.con.ID, token, "/sub_id", who)
}

// revocation returns a good token, with changes.
func (s *site) revocation(changes m) string {
	return s.provider.Revocation(s.Node(0).Connections.RevokeURL(s.con.ID), changes)
}

func (s *site) bySubject(subject string) signoff.Subject {
	return signoff.Subject{Format: signoff.FormatIssuer, Issuer: s.provider.Issuer(), Subject: subject}
}

func byEmail(p apptest.Person) signoff.Subject {
	return signoff.Subject{Format: signoff.FormatEmail, Email: p.User.Email}
}

func (s *site) logout(i int, token string) error {
	return apptest.ErrorOf(s.Node(i).SignOff.Logout(s.Context(), by(i), s.con.ID, token))
}

func (s *site) logoutToken(changes m) string { return s.provider.Logout(apptest.ClientID, changes) }

// edit changes the connection.
func (s *site) edit(d connection.Draft) {
	s.Helper()
	_, _, err := s.Node(0).Connections.Edit(s.Context(), s.owner.Caller, s.con.ID, connection.Change{Draft: d})
	s.NoError(err)
}

// wantValid checks which of the people's sessions are accepted, on each node.
func (s *site) wantValid(what string, want bool, people ...apptest.Person) {
	s.Helper()
	for i, p := range people {
		for n := range s.Nodes {
			_, err := s.Node(n).Sessions.Check(s.Context(), p.Token)
			if (err == nil) != want {
				s.Errorf("%s: session %d is accepted by node %d: %v", what, i, n, err == nil)
			}
		}
	}
}

func (s *site) wantCode(what string, err error, code doorward.Code) {
	s.Helper()
	if got := apptest.Code(err); got != code || code == "" && err != nil {
		s.Errorf("%s: %v, want %q", what, err, code)
	}
}

// wantCheck is wantCode for a refused token, with the check in the protocol.
func (s *site) wantCheck(what string, err error, code doorward.Code, check string) {
	s.Helper()
	s.wantCode(what, err, code)
	entry := s.last()
	if entry.Outcome != doorward.AttemptRefused || entry.Check != check {
		s.Errorf("%s: the protocol has %+v, want the check %s", what, entry, check)
	}
}

// last returns the last entry of the protocol.
func (s *site) last() doorward.Attempt {
	s.Helper()
	entry, err := s.DB.Read().LastAttempt(s.Context(), s.con.ID, doorward.AttemptRevoke)
	if err != nil && !errors.Is(err, store.ErrNone) {
		s.NoError(err)
	}
	return entry
}
