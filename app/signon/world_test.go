package signon_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/flow"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/signon"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// world is an installation with tenants that have a provider each.
type world struct {
	*apptest.Fixture
	bySAML bool // the providers speak SAML
}

// site is a tenant with its provider, and a connection that signs people in.
type site struct {
	w        *world
	owner    apptest.Person
	provider *oidctest.Provider // nil: saml
	saml     *samlProvider
	conID    string
	domain   string // proved for the connection
}

const clientID, clientSecret = apptest.ClientID, apptest.ClientSecret

func onEach(t *testing.T, test func(*world)) {
	t.Helper()
	apptest.OnEach(t, func(f *apptest.Fixture) { test(&world{Fixture: f}) })
}

func onSQLite(t *testing.T, test func(*world)) {
	t.Helper()
	apptest.OnSQLite(t, func(f *apptest.Fixture) { test(&world{Fixture: f}) })
}

// byBoth runs the test with providers of each protocol.
func byBoth(t *testing.T, test func(*world)) {
	t.Helper()
	for name, bySAML := range map[string]bool{"oidc": false, "saml": true} {
		t.Run(name, func(t *testing.T) {
			apptest.OnSQLite(t, func(f *apptest.Fixture) { test(&world{Fixture: f, bySAML: bySAML}) })
		})
	}
}

// onEachByBoth is byBoth on each database.
func onEachByBoth(t *testing.T, test func(*world)) {
	t.Helper()
	for name, bySAML := range map[string]bool{"oidc": false, "saml": true} {
		t.Run(name, func(t *testing.T) {
			apptest.OnEach(t, func(f *apptest.Fixture) { test(&world{Fixture: f, bySAML: bySAML}) })
		})
	}
}

// tenantID is the tenant of the site.
func (s *site) tenantID() string { return s.owner.User.TenantID }

// site makes a tenant with a provider, and an active connection with a proved domain.
func (w *world) site(domain string, jit doorward.JIT) *site {
	w.Helper()
	_, owner := w.Tenant()
	if w.bySAML {
		return w.samlSite(owner, domain, jit)
	}
	s := &site{w: w, owner: owner, provider: w.Provider(), domain: domain}
	d := apptest.DraftOf(s.provider)
	d.Name, d.JIT = new("Provider of "+domain), new(string(jit))
	s.conID = w.Create(owner, d).ID
	w.write(func(tx *store.Tx) error {
		_, err := tx.SetConnectionStatus(w.Context(), s.conID, doorward.ConnectionActive)
		return errors.Join(err, s.prove(tx, domain), s.setMode(tx, doorward.SSOOptional))
	})
	return s
}

func (w *world) write(fn func(*store.Tx) error) {
	w.Helper()
	w.NoError(w.Node(0).Access.Upkeep(w.Context(), fn))
}

// prove makes the domain one that is proved for the connection.
func (s *site) prove(tx *store.Tx, name string) error {
	id := doorward.NewID(doorward.PrefixDomain)
	d := doorward.Domain{ID: id, TenantID: s.tenantID(), Name: name, Token: id, Status: doorward.DomainPending, CreatedAt: tx.Now}
	_, err := tx.InsertDomain(s.w.Context(), d)
	return errors.Join(err, tx.VerifyDomain(s.w.Context(), id, tx.Now.Add(time.Hour)), tx.SetDomainConnection(s.w.Context(), id, s.conID))
}

func (s *site) setMode(tx *store.Tx, mode doorward.SSOMode) error {
	return tx.SetSSOPolicy(s.w.Context(), doorward.SSOPolicy{TenantID: s.tenantID(), Mode: mode, Revision: tx.Now.UnixMicro(), ChangedAt: tx.Now, BeforeMode: doorward.SSOOff})
}

// issuer is that of the site's identities.
func (s *site) issuer() string {
	if s.saml != nil {
		return s.saml.EntityID
	}
	return s.provider.Issuer()
}

// edit changes the connection.
func (s *site) edit(change func(*doorward.Connection)) {
	s.w.Helper()
	s.w.write(func(tx *store.Tx) error {
		c, err := tx.Connection(s.w.Context(), s.conID)
		if err != nil {
			return err
		}
		change(&c)
		return tx.UpdateConnection(s.w.Context(), c)
	})
}

// says makes the provider name somebody at the next sign-in.
func (s *site) says(subject, email string, claims map[string]any) {
	if s.saml != nil {
		s.saml.says(subject, email, claims)
		return
	}
	s.provider.Change(func(p *oidctest.Settings) {
		p.Person = oidctest.Person{Subject: subject, Email: email, IsVerified: true, Claims: claims}
	})
}

// browser keeps the cookies of one browser.
type browser struct {
	s    *site
	by   doorward.Caller
	node int
	tabs map[string]string
	held string
}

func (s *site) browser() *browser {
	s.w.Helper()
	by := apptest.Anonymous(0)
	by.RequestID = "req_test"
	return &browser{s: s, by: by, tabs: map[string]string{}}
}

// as is the browser with the session of the person.
func (b *browser) as(p apptest.Person) *browser {
	b.by.Principal = p.Principal
	return b
}

func (b *browser) signOn() *signon.SignOn { return b.s.w.Node(b.node).SignOn }

// cookies are those of sign-ins that have begun.
func (b *browser) cookies() (all []flow.Tab) {
	for name, value := range b.tabs {
		all = append(all, flow.Tab{Name: name, Value: value})
	}
	return all
}

// start begins a sign-in and returns the address of the provider.
func (b *browser) start(ask signon.Ask) (string, error) {
	ask.Tabs = b.cookies()
	begun, err := b.signOn().Start(b.s.w.Context(), b.by, b.s.conID, ask)
	if err != nil {
		return "", err
	}
	for _, name := range begun.Drop {
		delete(b.tabs, name)
	}
	b.tabs[begun.Tab.Name] = begun.Tab.Value
	return begun.URL, nil
}

// callback returns what the provider sends the browser back with.
func (b *browser) callback(address string) url.Values {
	b.s.w.Helper()
	if b.s.saml != nil {
		query, err := b.post(b.s.saml.answer(b, address))
		b.s.w.NoError(err)
		return query
	}
	back, err := b.s.provider.SignIn(address)
	b.s.w.NoError(err)
	return back.Query()
}

// finish takes the answer of the provider.
func (b *browser) finish(query url.Values) (signon.Result, error) {
	result, err := b.signOn().Finish(b.s.w.Context(), b.by, b.s.conID, query, b.cookies())
	b.held = result.Held
	return result, err
}

// signIn goes the whole way.
func (b *browser) signIn() (signon.Result, error) {
	b.s.w.Helper()
	address, err := b.start(signon.Ask{})
	if err != nil {
		return signon.Result{}, err
	}
	return b.finish(b.callback(address))
}

// in ends the test unless the result is a session.
func (s *site) in(r signon.Result, err error) login.SignedIn {
	s.w.Helper()
	if err != nil {
		s.w.Fatalf("the sign-in fails: %v", err)
	}
	done, ok := r.Outcome.(login.SignedIn)
	if !ok {
		s.w.Fatalf("the sign-in ends with %T, held %v", r.Outcome, r.Held != "")
	}
	if done.Session.Issuer != doorward.Issuer(s.conID) || done.Session.TenantID != s.tenantID() {
		s.w.Errorf("the session is of %q in %s", done.Session.Issuer, done.Session.TenantID)
	}
	return done
}

// refused ends the test unless the check refused it, and nothing was written.
func (s *site) refused(check string, act func() (signon.Result, error)) {
	s.w.Helper()
	before := s.w.rows()
	_, err := act()
	var e *doorward.Error
	if !errors.As(err, &e) || e.Check != check || check == "" && e.Code != doorward.CodeValidationFailed {
		s.w.Fatalf("the sign-in ends with %v, want the check %s", err, check)
	}
	if diff := difference(before, s.w.rows()); diff != "" {
		s.w.Errorf("refused by %s, and written: %s", check, diff)
	}
}

// notWritten are tables that a refusal may write.
var notWritten = []string{"connection_attempts", "usage_counts", "used_states", "saml_assertions", "inbox", "throttles", "shared_secrets", "connection_secrets", "goose_db_version"}

// rows counts the rows of all tables but notWritten.
func (w *world) rows() map[string]int {
	w.Helper()
	raw := storetest.Raw(w.T, w.DSN)
	tables := `SELECT group_concat(name, ' ') FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_'`
	if w.DB.Engine() != "sqlite" {
		tables = `SELECT string_agg(tablename, ' ') FROM pg_tables WHERE schemaname = current_schema()`
	}
	counts := map[string]int{}
	for table := range strings.FieldsSeq(storetest.Query[string](w.T, raw, tables)) {
		if !slices.Contains(notWritten, table) {
			counts[table] = storetest.Query[int](w.T, raw, "SELECT count(*) FROM "+table)
		}
	}
	return counts
}

func difference(before, after map[string]int) string {
	var all []string
	for table, n := range after {
		if before[table] != n {
			all = append(all, fmt.Sprintf("%s %d -> %d", table, before[table], n))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
