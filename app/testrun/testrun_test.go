package testrun_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
)

func wantNotFound(f *apptest.Fixture, err error) {
	f.Helper()
	if apptest.Code(err) != doorward.CodeNotFound {
		f.Errorf("the answer is %v, want not_found", err)
	}
}

// TestTests: a test begins once, in the browser that has asked, within ten minutes; its claims are there
// for a day.
func TestTests(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		p := f.Provider()
		p.Change(func(s *oidctest.Settings) { s.Now = clock.Now })
		c := f.Create(owner, apptest.DraftOf(p))
		tests := f.Node(0).Tests
		test, err := tests.Make(f.Context(), owner.Caller, c.ID)
		f.NoError(err)
		begin := func(by doorward.Caller) error {
			_, _, err := tests.Begin(f.Context(), by, c.ID, test.ID, "")
			return err
		}
		another := owner.Caller
		another.SessionID = "ses_another"
		wantNotFound(f, begin(another))
		f.NoError(begin(owner.Caller))
		wantNotFound(f, begin(owner.Caller))
		clock.Move(10 * time.Minute)
		wantNotFound(f, apptest.ErrorOf(tests.End(f.Context(), test.ID, nil, nil)))
		show := func() (doorward.ConnectionTest, error) {
			return tests.Show(f.Context(), owner.Caller, c.ID, test.ID)
		}
		got, err := show()
		f.NoError(err)
		if got.Status != doorward.TestFailed {
			t.Errorf("a test that nobody has ended is %s", got.Status)
		}
		clock.Move(24 * time.Hour)
		wantNotFound(f, apptest.ErrorOf(show()))
		f.NoError(f.Node(0).Connections.Sweep(f.Context()))
		if n := f.CountRows("connection_tests"); n != 0 {
			t.Errorf("%d tests are left", n)
		}
	})
}

// TestTestOfOthersByLink: a set-up link sees of the newest test, which an OWNER has made, no claims, and of the address the
// domain alone. The OWNER sees all.
func TestTestOfOthersByLink(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		c := f.Create(owner, apptest.DraftOf(f.Provider()))
		tests := f.Node(0).Tests
		link := doorward.Caller{Principal: doorward.Principal{Kind: doorward.BySetupLink, ID: "stl_1", TenantID: owner.User.TenantID, ConnectionID: c.ID}}
		for address, want := range map[string]string{"zoe@acme.example": "acme.example", "zoe at acme": ""} {
			test, err := tests.Make(f.Context(), owner.Caller, c.ID)
			f.NoError(err)
			_, _, err = tests.Begin(f.Context(), owner.Caller, c.ID, test.ID, "")
			f.NoError(err)
			checks := []doorward.TestCheck{{Name: "email", OK: want != "", Seen: address}, {Name: "iss", OK: true, Seen: "https://idp.example"}}
			f.NoError(apptest.ErrorOf(tests.End(f.Context(), test.ID, json.RawMessage(`{"sub":"zoe-1"}`), checks)))
			got, err := tests.Show(f.Context(), link, c.ID, "")
			f.NoError(err)
			if got.ID != test.ID || got.Claims != nil || got.Checks[0].Seen != want || got.Checks[1].Seen != "https://idp.example" {
				t.Errorf("the link sees %s, %+v", got.Claims, got.Checks)
			}
			if got, err = tests.Show(f.Context(), owner.Caller, c.ID, ""); err != nil || got.Claims == nil || got.Checks[0].Seen != address {
				t.Errorf("the OWNER sees %s, %+v, %v", got.Claims, got.Checks, err)
			}
		}
	})
}
