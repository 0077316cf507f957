package signon_test

import (
	"slices"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/signon"
	"github.com/doorward/doorward/store"
)

// TestNewPerson: by JIT for a proved domain somebody gets a managed account and the role of the mapped groups, and
// is the same person at the next sign-in, also under another address.
func TestNewPerson(t *testing.T) {
	onEach(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		s.edit(func(c *doorward.Connection) {
			c.GroupsFrom, c.Mappings = "groups", []doorward.GroupMapping{{Group: "guests", Role: doorward.RoleViewer}}
		})
		s.says("subject-1", "Ann@Acme.example", map[string]any{"name": "Ann Lee", "amr": []string{"pwd"}, "groups": []string{"others", "guests"}})
		first := s.in(s.browser().signIn())
		account, err := w.DB.Read().Account(w.Context(), first.User.ID)
		w.NoError(err)
		if first.User.Email != "ann@acme.example" || first.User.Role != doorward.RoleViewer || first.User.Name != "Ann Lee" || account.ManagedBy != s.tenantID() || account.PasswordHash != "" {
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
	onSQLite(t, func(w *world) {
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

// TestReplay: an answer of the provider is good once, in the browser that has begun, for ten minutes. Other tabs
// go on.
func TestReplay(t *testing.T) {
	onSQLite(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		s.says("subject-1", "ann@acme.example", nil)
		b := s.browser()
		var tabs []string
		for range signon.MaxTabs {
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
		s.refused("state", func() (signon.Result, error) { return b.finish(b.callback(tabs[0])) }) // the oldest has gone
		s.in(b.finish(b.callback(address)))
	})
}

// TestSecondFactorOfSignOn: a provider's factor counts only where the tenant trusts it, and is no factor of the
// account. Else a managed account sets one up.
func TestSecondFactorOfSignOn(t *testing.T) {
	onSQLite(t, func(w *world) {
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
