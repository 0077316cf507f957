package doorward

import (
	"net/netip"
	"testing"
	"time"
)

// TestLoosening: each setting of a tenant counts in both directions.
func TestLoosening(t *testing.T) {
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	strict := TenantSettings{
		SessionIdle: time.Minute, SessionAbsolute: time.Hour, InvitationDays: 2, AllowedDomains: []string{"acme.example"}, StepUp: time.Minute,
		SecondFactor:   SecondFactor{Since: since, Roles: []Role{RoleAdmin, RoleOwner}, GraceDays: 1, RememberDays: 1},
		KeepEventsDays: 60,
	}
	for name, loosen := range map[string]func(*TenantSettings){
		"idle":                 func(s *TenantSettings) { s.SessionIdle = 2 * time.Minute },
		"idle, none":           func(s *TenantSettings) { s.SessionIdle = 0 },
		"absolute":             func(s *TenantSettings) { s.SessionAbsolute = 2 * time.Hour },
		"absolute, none":       func(s *TenantSettings) { s.SessionAbsolute = 0 },
		"invitations":          func(s *TenantSettings) { s.InvitationDays = 3 },
		"invitations, all":     func(s *TenantSettings) { s.InvitationDays = 0 },
		"a domain more":        func(s *TenantSettings) { s.AllowedDomains = []string{"acme.example", "evil.example"} },
		"another domain":       func(s *TenantSettings) { s.AllowedDomains = []string{"evil.example"} },
		"all domains":          func(s *TenantSettings) { s.AllowedDomains = nil },
		"fewer days of events": func(s *TenantSettings) { s.KeepEventsDays = 59 },
		"step-up":              func(s *TenantSettings) { s.StepUp = 0 },
		"no demand":            func(s *TenantSettings) { s.SecondFactor.Since = time.Time{} },
		"fewer roles":          func(s *TenantSettings) { s.SecondFactor.Roles = []Role{RoleAdmin} },
		"grace":                func(s *TenantSettings) { s.SecondFactor.GraceDays = 2 },
		"remember":             func(s *TenantSettings) { s.SecondFactor.RememberDays = 2 },
	} {
		loose := strict
		loosen(&loose)
		if there, back := (&Effects{Settings: []SettingsEffect{{strict, loose}}}), (&Effects{Settings: []SettingsEffect{{loose, strict}}}); !there.Loosen() || back.Loosen() != (name == "another domain") {
			t.Errorf("%s: loosens %v, and back %v", name, there.Loosen(), back.Loosen())
		}
	}
	forEver := strict
	forEver.KeepEventsDays = 0
	if back := (&Effects{Settings: []SettingsEffect{{forEver, strict}}}); !back.Loosen() || (&Effects{Settings: []SettingsEffect{{strict, forEver}}}).Loosen() {
		t.Error("events that are kept for ever are kept longest")
	}
	all := strict
	all.SecondFactor.Roles = nil
	if (&Effects{Settings: []SettingsEffect{{strict, all}}}).Loosen() {
		t.Error("a demand of all roles loosens that of some")
	}
}

func TestRaising(t *testing.T) {
	for _, c := range []struct {
		before, after Role
		want          bool
	}{
		{"", RoleViewer, false},
		{"", RoleUser, false},
		{"", RoleAdmin, true},
		{"", RoleOwner, true},
		{RoleUser, RoleAdmin, true},
		{RoleAdmin, RoleOwner, false},
		{RoleOwner, RoleUser, false},
		{RoleAdmin, "", false},
	} {
		if got := (&Effects{Roles: []RoleEffect{{c.before, c.after}}}).Raise(nil); got != c.want {
			t.Errorf("from %q to %q raises: %v, want %v", c.before, c.after, got, c.want)
		}
	}
	if !(&Effects{KeysTransferred: true}).Raise(nil) || (&Effects{}).Raise(nil) {
		t.Error("keys that change hands raise, and nothing doesn't")
	}
}

func TestWidening(t *testing.T) {
	narrow := APIKey{
		Permissions: []Action{UserRead}, AllowedIPs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/25")}, PerSecond: 5,
		ExpiresAt: time.Unix(1000, 0), OwnerID: "usr_a", Status: APIKeyDisabled,
	}
	for name, widen := range map[string]func(*APIKey){
		"permission": func(k *APIKey) { k.Permissions = []Action{UserRead, UserInvite} },
		"addresses":  func(k *APIKey) { k.AllowedIPs = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} },
		"anywhere":   func(k *APIKey) { k.AllowedIPs = nil },
		"faster":     func(k *APIKey) { k.PerSecond = 6 },
		"unlimited":  func(k *APIKey) { k.PerSecond = 0 },
		"longer":     func(k *APIKey) { k.ExpiresAt = time.Unix(1001, 0) },
		"active":     func(k *APIKey) { k.Status = APIKeyActive },
	} {
		wide := narrow
		widen(&wide)
		if there, back := (&Effects{Keys: []KeyEffect{{narrow, wide}}}), (&Effects{Keys: []KeyEffect{{wide, narrow}}}); !there.Widen() || back.Widen() {
			t.Errorf("%s: widens %v, and back %v", name, there.Widen(), back.Widen())
		}
	}
	if other := narrow; true {
		other.OwnerID = "usr_b"
		if !(&Effects{Keys: []KeyEffect{{narrow, other}, {narrow, narrow}}}).Widen() {
			t.Error("a key of another owner isn't wider")
		}
	}
	if !(&Effects{Keys: []KeyEffect{{APIKey{}, narrow}}}).Widen() {
		t.Error("a new key isn't wider than none")
	}
}
