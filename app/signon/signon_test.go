package signon_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/demand"
	"github.com/doorward/doorward/app/flow"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/signon"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/store"
)

// TestNewPerson: by JIT for a proved domain somebody gets a managed account and the role of the mapped groups, and
// is the same person at the next sign-in, also under another address.
func TestNewPerson(t *testing.T) {
	byBoth(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		s.edit(func(c *doorward.Connection) {
			c.GroupsFrom, c.Mappings = "groups", []doorward.GroupMapping{{Group: "guests", Role: doorward.RoleViewer}}
		})
		s.says("subject-1", "Ann@Acme.example", map[string]any{"name": "Ann Lee", "amr": []string{"pwd"}, "groups": []string{"others", "guests"}})
		first := s.in(s.browser().signIn())
		account, err := w.DB.Read().Account(w.Context(), first.User.ID)
		w.NoError(err)
		if first.User.Email != "ann@acme.example" || first.User.Role != doorward.RoleViewer || !w.bySAML && first.User.Name != "Ann Lee" || account.ManagedBy != s.tenantID() || account.PasswordHash != "" {
			t.Errorf("the new member is %+v, managed by %q", first.User, account.ManagedBy)
		}
		if !slices.Equal(first.Session.AMR, []string{"fed"}) || first.Session.AAL != 1 || !slices.Equal(first.Session.ProviderAMR, []string{"pwd"}) {
			t.Errorf("the session is by %v, level %d, and the provider said %v", first.Session.AMR, first.Session.AAL, first.Session.ProviderAMR)
		}
		if !w.IsValid(first.Token) || first.Device != nil || first.CanSwitch {
			t.Error("the session isn't valid, or leads elsewhere")
		}
		s.says("subject-1", "ann.lee@other.example", nil)
		if again := s.in(s.browser().signIn()); again.User.ID != first.User.ID || again.User.Email != first.User.Email {
			t.Errorf("the same identity is %s %s", again.User.ID, again.User.Email)
		}
		s.refused("domain", func() (signon.Result, error) {
			s.says("subject-2", "ben@other.example", nil)
			return s.browser().signIn()
		})
	})
}

// TestOffIsOff: a draft, a disabled connection and the mode off are not there; a sign-in that was under way is
// refused.
func TestOffIsOff(t *testing.T) {
	byBoth(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		s.says("subject-1", "ann@acme.example", nil)
		off := func(turn func(*store.Tx) error, back func(*store.Tx) error) {
			t.Helper()
			b := s.browser()
			address, err := b.start(signon.Ask{})
			w.NoError(err)
			w.write(turn)
			s.refused("state", func() (signon.Result, error) { return b.finish(b.callback(address)) })
			if _, err := s.browser().start(signon.Ask{}); apptest.Code(err) != doorward.CodeNotFound {
				t.Errorf("a start is answered %v", err)
			}
			if _, err := s.browser().finish(b.callback(address)); apptest.Code(err) != doorward.CodeNotFound {
				t.Errorf("a callback without a sign-in is answered %v", err)
			}
			w.write(back)
		}
		status := func(to doorward.ConnectionStatus) func(*store.Tx) error {
			return func(tx *store.Tx) error { return apptest.ErrorOf(tx.SetConnectionStatus(w.Context(), s.conID, to)) }
		}
		mode := func(m doorward.SSOMode) func(*store.Tx) error {
			return func(tx *store.Tx) error { return s.setMode(tx, m) }
		}
		off(status(doorward.ConnectionDisabled), status(doorward.ConnectionActive))
		off(status(doorward.ConnectionDraft), status(doorward.ConnectionActive))
		off(mode(doorward.SSOOff), mode(doorward.SSORequired))
		s.in(s.browser().signIn())
	})
}

// TestOffEndsWhatBegan: what has begun before the connection was disabled, or sign-on was turned off, is over, though that is
// on again.
func TestOffEndsWhatBegan(t *testing.T) {
	byBoth(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		by, ctx := s.owner.Caller, w.Context()
		w.write(func(tx *store.Tx) error {
			c, err := tx.Connection(ctx, s.conID)
			return errors.Join(err, apptest.ErrorOf(tx.MarkConnectionTested(ctx, s.conID, false, c.InForce.Revision)))
		})
		status := func(to string) error {
			_, _, err := w.Node(1).Connections.Edit(ctx, by, s.conID, connection.Change{Draft: connection.Draft{Status: &to}})
			return err
		}
		mode := func(to string) error {
			return apptest.ErrorOf(w.Node(1).Demands.Put(ctx, by, demand.Draft{Mode: to, Guests: doorward.GuestsAllowed}, nil))
		}
		for i, turn := range []struct {
			set     func(string) error
			off, on string
		}{{status, "disabled", "active"}, {mode, "off", "optional"}} {
			s.domainFor(fmt.Sprintf("subject-%d", i))
			b, asked := s.browser(), s.browser().as(s.owner)
			address, err := b.start(signon.Ask{})
			w.NoError(err)
			if waits := asked.asked(asked.signIn()); !waits.Replaces {
				t.Fatalf("the page shows %+v", waits)
			}
			w.NoError(turn.set(turn.off))
			w.NoError(turn.set(turn.on))
			s.refused("state", func() (signon.Result, error) { return b.finish(b.callback(address)) })
			s.refused("state", func() (signon.Result, error) {
				return signon.Result{}, apptest.ErrorOf(asked.signOn().Waiting(ctx, asked.by, s.conID, asked.held))
			})
			s.refused("state", func() (signon.Result, error) { return asked.signOn().Agree(ctx, asked.by, s.conID, asked.held) })
			s.in(s.browser().signIn())
		}
	})
}

// TestReplay: an answer of the provider is good once, in the browser that has begun, for ten minutes. Other tabs
// go on.
func TestReplay(t *testing.T) {
	byBoth(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		s.says("subject-1", "ann@acme.example", nil)
		b := s.browser()
		var tabs []string
		for range flow.MaxTabs {
			address, err := b.start(signon.Ask{})
			w.NoError(err)
			tabs = append(tabs, address)
		}
		query := b.callback(tabs[1])
		s.refused("state", func() (signon.Result, error) { return s.browser().finish(query) })
		s.in(b.finish(query))
		s.refused("state", func() (signon.Result, error) { return b.finish(query) })
		other := *b
		other.node = 1
		s.refused("state", func() (signon.Result, error) { return other.finish(query) })
		s.in(other.finish(b.callback(tabs[3])))
		address, err := b.start(signon.Ask{})
		w.NoError(err)
		check := "state"
		if w.bySAML { // which the protocol lists, since the browser has another tab
			check = "in_response_to"
		}
		s.refused(check, func() (signon.Result, error) { return b.finish(b.callback(tabs[0])) }) // the oldest has gone
		s.in(b.finish(b.callback(address)))
	})
}

// TestSecondFactorOfSignOn: a provider's factor counts only where the tenant trusts it, and is no factor of the
// account. Else a managed account sets one up.
func TestSecondFactorOfSignOn(t *testing.T) {
	byBoth(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		w.EditTenant(s.owner, func(settings *doorward.TenantSettings) { settings.SecondFactor.Since = w.DB.Now().Add(-1) })
		s.says("subject-1", "ann@acme.example", map[string]any{"amr": []string{"pwd", "otp"}, "acr": "strong"})
		result, err := s.browser().signIn()
		w.NoError(err)
		if _, ok := result.Outcome.(login.EnrolmentNeeded); !ok {
			t.Fatalf("without trust: %T", result.Outcome)
		}
		s.edit(func(c *doorward.Connection) { c.TrustFactor = true })
		in := s.in(s.browser().signIn())
		if in.Session.AAL != 2 || !slices.Equal(in.Session.AMR, []string{"fed", "mfa"}) || !in.Session.FactorAt.IsZero() {
			t.Errorf("with trust: level %d by %v, factor at %v", in.Session.AAL, in.Session.AMR, in.Session.FactorAt)
		}
		s.says("subject-1", "ann@acme.example", map[string]any{"amr": []string{"pwd"}, "acr": "strong"})
		s.edit(func(c *doorward.Connection) { c.FactorACR = []string{"strong"} })
		s.in(s.browser().signIn())
		s.edit(func(c *doorward.Connection) { c.FactorACR = nil })
		if result, err = s.browser().signIn(); err != nil || result.Outcome == nil {
			t.Fatal(err)
		}
		if _, ok := result.Outcome.(login.EnrolmentNeeded); !ok {
			t.Errorf("with one factor: %T", result.Outcome)
		}
	})
}

// TestCookieFits: whatever the return address, browsers take the cookie: a longer one would be dropped, and the
// callback refused.
func TestCookieFits(t *testing.T) {
	byBoth(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		for _, character := range []string{"a", "&", "<", `"`, "\\", "é", "\u2028"} {
			to := "/inbox?" + strings.Repeat(character, (1024-len("/inbox?"))/len(character))
			b := s.browser()
			_, err := b.start(signon.Ask{Return: to})
			w.NoError(err)
			for name, value := range b.tabs {
				if n := len(name) + len(value); n > 4000 {
					t.Errorf("with %q the cookie has %d bytes", character, n)
				}
			}
		}
	})
}

// TestRemovedUnderAnotherAddress: who was removed doesn't come back by a new address, of the account and at the
// provider.
func TestRemovedUnderAnotherAddress(t *testing.T) {
	byBoth(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		_, elsewhere := w.Tenant()
		ann := s.member("ann", doorward.RoleUser)
		_, code := w.Invite(elsewhere, ann.User.Email, doorward.RoleUser)
		w.NoError(apptest.ErrorOf(w.Node(0).Invitations.Accept(w.Context(), ann.Caller, code, "")))
		s.says("subject-1", ann.User.Email, nil)
		b := s.browser()
		b.asked(b.signIn())
		s.in(b.prove(apptest.FirstPassword))
		w.NoError(apptest.ErrorOf(w.Node(0).Users.Remove(w.Context(), s.owner.Caller, ann.User, user.Handover{}, nil)))
		w.write(func(tx *store.Tx) error { return tx.SetEmail(w.Context(), ann.User.ID, "married@acme.example") })
		s.says("subject-1", "married@acme.example", nil)
		s.refused("removed", s.browser().signIn)
		_, code = w.Invite(s.owner, "married@acme.example", doorward.RoleUser)
		by := w.SignIn("married@acme.example", apptest.FirstPassword)
		w.NoError(apptest.ErrorOf(w.Node(0).Invitations.Accept(w.Context(), by.Caller, code, "")))
		s.in(s.browser().signIn())
	})
}

// TestChangedMeanwhile: what an OWNER changes while the provider is asked, or the person, is what decides.
func TestChangedMeanwhile(t *testing.T) {
	onSQLite(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		ben := s.member("ben", doorward.RoleUser)
		s.says("subject-1", "ann@acme.example", nil)
		during := func(change func()) func() (signon.Result, error) {
			b := s.browser()
			address, err := b.start(signon.Ask{})
			w.NoError(err)
			query := b.callback(address)
			s.provider.Change(func(p *oidctest.Settings) {
				p.Lies.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path == oidctest.TokenPath {
						change()
					}
					return false
				}
			})
			return func() (signon.Result, error) { return b.finish(query) }
		}
		edit := func(d connection.Draft) {
			_, _, err := w.Node(0).Connections.Edit(w.Context(), s.owner.Caller, s.conID, connection.Change{Draft: d})
			w.NoError(err)
		}
		refused := func(check string, r signon.Result, err error) {
			if e := new(doorward.Error); !errors.As(err, &e) || e.Check != check {
				t.Errorf("the sign-in ends with %T, %v, want the check %s", r.Outcome, err, check)
			}
		}
		r, err := during(func() { edit(connection.Draft{JIT: typed("off")}) })()
		refused("jit", r, err)
		edit(connection.Draft{JIT: typed("domains")})
		in := s.in(during(func() { edit(connection.Draft{JITRole: typed("VIEWER")}) })())
		if in.User.Role != doorward.RoleViewer {
			t.Errorf("the role is %s", in.User.Role)
		}
		change := func(emailFrom string) {
			w.write(func(tx *store.Tx) error {
				c, err := tx.Connection(w.Context(), s.conID)
				if err != nil {
					return err
				}
				c.InForce.EmailFrom = emailFrom
				return errors.Join(tx.SetConnectionParameters(w.Context(), s.conID, true, c.InForce), apptest.ErrorOf(tx.SwitchConnection(w.Context(), s.conID, true)))
			})
		}
		r, err = during(func() { change("upn") })()
		refused("state", r, err)
		s.provider.Change(func(p *oidctest.Settings) { p.Lies.Answer = nil })
		change("email")
		b := s.browser().as(ben)
		b.asked(b.signIn())
		change("upn")
		if _, err := b.signOn().Agree(w.Context(), b.by, s.conID, b.held); apptest.Code(err) != doorward.CodeSignOnState {
			t.Errorf("what was held before a switch is answered %v", err)
		}
	})
}

// TestManyMethods: a factor counts wherever it stands in the provider's list, of which a session keeps the first ten.
func TestManyMethods(t *testing.T) {
	byBoth(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		s.edit(func(c *doorward.Connection) { c.TrustFactor = true })
		s.says("subject-1", "ann@acme.example", map[string]any{"amr": []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "pwd", "k", "otp"}})
		in := s.in(s.browser().signIn())
		if in.Session.AAL != 2 || len(in.Session.ProviderAMR) != 10 {
			t.Errorf("level %d, and the provider said %v", in.Session.AAL, in.Session.ProviderAMR)
		}
	})
}

// TestOddMethods: values of amr that can't be stored are left out. PostgreSQL takes no NUL.
func TestOddMethods(t *testing.T) {
	onEach(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		s.says("subject-1", "ann@acme.example", map[string]any{"amr": []string{"pwd\x00", "a\u00a0b", "c\vd", "", "hwk"}})
		in := s.in(s.browser().signIn())
		kept, err := w.DB.Read().UserSessions(w.Context(), in.User.ID)
		w.NoError(err)
		if got := kept[0].Session.ProviderAMR; !slices.Equal(got, []string{"hwk"}) {
			t.Errorf("the session has %q", got)
		}
	})
}

// TestRemovedWithTheIdentity: who was removed doesn't come back as a new account when the identity is deleted, where
// the provider names another address than the account had.
func TestRemovedWithTheIdentity(t *testing.T) {
	byBoth(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		ann := w.Join(s.owner, doorward.RoleUser) // with an address of another domain
		w.Identity(ann, s.conID)
		w.Exec(`UPDATE identities SET issuer = $1, subject = 'subject-1'`, s.issuer())
		s.says("subject-1", "ann@acme.example", nil)
		s.in(s.browser().signIn())
		w.NoError(apptest.ErrorOf(w.Node(0).Users.Remove(w.Context(), s.owner.Caller, ann.User, user.Handover{}, nil)))
		s.refused("removed", s.browser().signIn)
		all, err := w.DB.Read().IdentitiesOf(w.Context(), ann.User.ID)
		w.NoError(err)
		w.NoError(apptest.ErrorOf(w.Node(0).Connections.Unlink(w.Context(), s.owner.Caller, all[0].ID)))
		s.refused("removed", s.browser().signIn)
		s.says("subject-2", "bob@acme.example", nil)
		s.in(s.browser().signIn())
	})
}

// TestDNSDown: name servers that don't answer leave a domain as it was, for people who come by its connection for
// the first time, too.
func TestDNSDown(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		w := &world{Fixture: f}
		s := w.site("acme.example", doorward.JITDomains)
		s.says("subject-1", "ann@acme.example", nil)
		ann := s.in(s.browser().signIn())
		domain, err := w.DB.Read().DomainHolder(w.Context(), s.domain)
		w.NoError(err)
		record, _ := domain.Record()
		f.DNS.Fail(record, true)
		for i := range 2 {
			for range 10 {
				clock.Move(24 * time.Hour)
				w.NoError(w.Node(0).Domains.Watch(w.Context()))
			}
			_, err := w.Node(0).Domains.Verify(w.Context(), w.SignIn(s.owner.User.Email, apptest.FirstPassword).Caller, domain.ID)
			if apptest.Code(err) != doorward.CodeProviderUnavailable {
				t.Errorf("verify is answered %v", err)
			}
			now, err := w.DB.Read().DomainHolder(w.Context(), s.domain)
			if err != nil || now.Status != doorward.DomainVerified || now.MissingSince != nil || now.TenantID != s.tenantID() {
				t.Errorf("the domain is %+v, %v", now, err)
			}
			if again := s.in(s.browser().signIn()); again.User.ID != ann.User.ID {
				t.Errorf("the sign-in is of %s", again.User.Email)
			}
			s.says(fmt.Sprint("new-", i), fmt.Sprintf("new%d@acme.example", i), nil)
			s.in(s.browser().signIn())
			s.says("subject-1", "ann@acme.example", nil)
		}
	})
}
