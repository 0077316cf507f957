package provider_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/clientsecret"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/internal/seal"
)

func wantCode(f *apptest.Fixture, err error, code doorward.Code) {
	f.Helper()
	if got := apptest.Code(err); got != code {
		f.Errorf("the error is %v, want %s", err, code)
	}
}

func get(f *apptest.Fixture, by apptest.Person, id string) connection.Shown {
	f.Helper()
	c, err := f.Node(1).Connections.Connection(f.Context(), by.Caller, id)
	f.NoError(err)
	return c
}

// TestProtocol: equal faults in a row are one entry with the last ten requests; others are entries of their
// own. A provider that refuses the client is told to OWNERs once a day, and not after a test.
func TestProtocol(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		f.UseMasterKey()
		c := f.Create(owner, connection.Draft{Type: "oidc", Name: new("x")})
		fault := doorward.Attempt{ConnectionID: c.ID, Kind: doorward.AttemptSignIn, Outcome: doorward.AttemptRefused, Check: "client", Seen: "a\x00b" + strings.Repeat("ß", 300)}
		record := func(a doorward.Attempt, request string) {
			a.RequestIDs = []string{request}
			f.Node(0).Connections.Record(f.Context(), a)
			clock.Move(time.Second)
		}
		test := fault
		test.ConnectionID, test.Kind = f.Create(owner, connection.Draft{Type: "oidc", Name: new("y")}).ID, doorward.AttemptTest
		record(test, "req_t")
		f.NoError(f.Node(0).Mail.Deliver(f.Context()))
		if got := strings.Join(f.Subjects(owner.User.Email), "\n"); strings.Contains(got, "refuses") {
			t.Errorf("a test mails %q", got)
		}
		for i := range 12 {
			record(fault, fmt.Sprint("req_", i))
		}
		other := fault
		other.Check = "aud"
		record(other, "req_x")
		record(doorward.Attempt{ConnectionID: c.ID, Kind: doorward.AttemptSignIn, Outcome: doorward.AttemptSignedIn, Subject: "7"}, "req_y")
		record(doorward.Attempt{ConnectionID: c.ID, Kind: doorward.AttemptSignIn, Outcome: doorward.AttemptSignedIn, Subject: "7"}, "req_z")
		record(doorward.Attempt{ConnectionID: "con_none", Kind: doorward.AttemptSignIn, Outcome: doorward.AttemptRefused}, "req_w")
		page, err := f.Node(0).Connections.Attempts(f.Context(), owner.Caller, c.ID, doorward.Window{Limit: 50})
		f.NoError(err)
		first := page.Items[len(page.Items)-1]
		if len(page.Items) != 4 || first.Count != 12 || len(first.RequestIDs) != 10 || first.RequestIDs[9] != "req_11" {
			t.Errorf("the protocol is %+v", page.Items)
		}
		if !strings.HasPrefix(first.Seen, "abß") || len([]rune(first.Seen)) > 255 {
			t.Errorf("seen is %q", first.Seen)
		}
		f.NoError(f.Node(0).Mail.Deliver(f.Context()))
		if got := strings.Count(strings.Join(f.Subjects(owner.User.Email), "\n"), "refuses"); got != 1 {
			t.Errorf("the OWNER got %d mails", got)
		}
		_, err = f.Node(0).ClientSecrets.Add(f.Context(), owner.Caller, c.ID, clientsecret.Typed{Secret: "a new secret"})
		f.NoError(err)
		record(fault, "req_2")
		f.NoError(f.Node(0).Mail.Deliver(f.Context()))
		if got := strings.Count(strings.Join(f.Subjects(owner.User.Email), "\n"), "refuses"); got != 2 {
			t.Errorf("after a new secret, which is refused, the OWNER has got %d mails", got)
		}
		clock.Move(24 * time.Hour)
		record(fault, "req_1")
		f.NoError(f.Node(0).Mail.Deliver(f.Context()))
		if got := strings.Count(strings.Join(f.Subjects(owner.User.Email), "\n"), "refuses"); got != 3 {
			t.Errorf("a day later the OWNER has got %d mails", got)
		}
		clock.Move(30 * 24 * time.Hour)
		f.NoError(f.Node(0).Connections.Sweep(f.Context()))
		if n := f.CountRows("connection_attempts"); n != 0 {
			t.Errorf("%d entries are left", n)
		}
	})
}

// TestDirectoryFaults: of a directory's requests twenty a minute have entries of their own, and equal ones are counted in
// one, also not in a row. Those above that are counted in one entry for each check, which names nobody.
func TestDirectoryFaults(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		c := f.Create(owner, connection.Draft{Type: "scim", Name: new("x")})
		record := func(n int, check string) {
			f.Node(0).Connections.RecordDirectory(f.Context(), doorward.Attempt{
				ConnectionID: c.ID, Outcome: doorward.AttemptRefused, Check: check, Seen: "POST /Users", Subject: fmt.Sprint("u", n), RequestIDs: []string{fmt.Sprint("req_", n)},
			})
		}
		for range 2 {
			for n := range 5 {
				record(n, "uniqueness")
			}
		}
		for n := range 500 {
			record(n, "invalidValue")
		}
		counts := func() map[string]int {
			page, err := f.Node(0).Connections.Attempts(f.Context(), owner.Caller, c.ID, doorward.Window{Limit: 100})
			f.NoError(err)
			all := map[string]int{}
			for _, a := range page.Items {
				all[a.Check+" "+a.Subject] = a.Count
			}
			return all
		}
		if all := counts(); len(all) != 5+10+1 || all["uniqueness u4"] != 2 || all["invalidValue u9"] != 1 || all["invalidValue "] != 1 {
			t.Errorf("in the minute the protocol has %v", all)
		}
		clock.Move(time.Minute)
		f.NoError(f.Node(0).Connections.WriteDirectoryFaults(f.Context()))
		if all := counts(); len(all) != 5+10+1 || all["invalidValue "] != 490 {
			t.Errorf("a minute later the protocol has %v", all)
		}
		record(1000, "invalidValue")
		if all := counts(); all["invalidValue u1000"] != 1 {
			t.Errorf("in the next minute the protocol has %v", all)
		}
	})
}

// TestSecondSecret: the newest secret is tried first, and the other one when the provider refuses it; what
// is used is recorded.
func TestSecondSecret(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		p := f.Provider()
		c := f.Create(owner, apptest.DraftOf(p))
		_, err := f.Node(0).ClientSecrets.Add(f.Context(), owner.Caller, c.ID, clientsecret.Typed{Secret: "not yet known there"})
		f.NoError(err)
		f.NoError(apptest.ErrorOf(f.SignInAt(p, c.ID, false)))
		got := get(f, owner, c.ID)
		if got.Secrets[0].LastUsedAt != nil || got.Secrets[1].LastUsedAt == nil {
			t.Errorf("the secrets are %+v", got.Secrets)
		}
	})
}

// TestKeysRotate: each connection has a key of its own. The next one is published a day before it signs,
// and the last one for a day, on whichever node the sweep runs.
func TestKeysRotate(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		p := f.Provider()
		d := apptest.DraftOf(p)
		d.ClientAuth = new("private_key_jwt")
		c, other := f.Create(owner, d), f.Create(owner, d)
		keys := func(id string) (all [][]byte) {
			raw, err := f.Node(1).Connections.Keys(f.Context(), id)
			f.NoError(err)
			for _, k := range raw {
				all = append(all, k)
			}
			return all
		}
		p.Change(func(s *oidctest.Settings) {
			s.Now = clock.Now
			s.Apps = []oidctest.App{{ID: "doorward", Auth: "private_key_jwt", Keys: func() [][]byte { return keys(c.ID) }}}
		})
		kid := func() string {
			ready, err := f.Node(0).Connections.Ready(f.Context(), c.ID, false)
			f.NoError(err)
			return ready.Config.Key.ID
		}
		f.NoError(apptest.ErrorOf(f.SignInAt(p, c.ID, false)))
		if len(keys(c.ID)) != 1 || string(keys(c.ID)[0]) == string(keys(other.ID)[0]) {
			t.Error("the connections have one key in common")
		}
		wantCode(f, apptest.ErrorOf(f.Node(0).Connections.Keys(f.Context(), "con_none")), doorward.CodeNotFound)
		first := kid()
		for _, step := range []struct {
			days, published int
			isFirst         bool
		}{{88, 1, true}, {1, 2, true}, {1, 2, false}, {1, 1, false}} {
			clock.Move(time.Duration(step.days) * 24 * time.Hour)
			for i := range 2 {
				f.NoError(f.Node(i).Connections.Sweep(f.Context()))
			}
			if got := len(keys(c.ID)); got != step.published || (kid() == first) != step.isFirst {
				t.Errorf("after %d more days %d keys are published, and the first one signs: %t", step.days, got, kid() == first)
			}
			f.NoError(apptest.ErrorOf(f.SignInAt(p, c.ID, false)))
		}
	})
}

// TestDiscoveryIsReadDaily: one node reads it, a fault changes nothing and is in the protocol, and what is
// kept serves.
func TestDiscoveryIsReadDaily(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		p := f.Provider()
		p.Change(func(s *oidctest.Settings) { s.Now = clock.Now })
		c := f.Active(owner, p)
		reads := func() int { return p.Count(oidctest.DiscoveryPath) }
		before := reads()
		readDue := func() {
			for i := range 2 {
				f.NoError(f.Node(i).Connections.ReadDue(f.Context()))
			}
		}
		readDue()
		clock.Move(24 * time.Hour)
		readDue()
		if got := reads() - before; got != 1 {
			t.Errorf("it was read %d times, want once", got)
		}
		clock.Move(24 * time.Hour)
		p.Change(func(s *oidctest.Settings) {
			s.Lies.Answer = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, oidctest.DiscoveryPath) {
					w.WriteHeader(http.StatusBadGateway)
					return true
				}
				return false
			}
		})
		readDue()
		f.NoError(apptest.ErrorOf(f.SignInAt(p, c.ID, false))) // by what is kept
		page, err := f.Node(0).Connections.Attempts(f.Context(), owner.Caller, c.ID, doorward.Window{Limit: 1})
		f.NoError(err)
		if got := page.Items[0]; got.Kind != doorward.AttemptMetadata || got.Outcome != doorward.AttemptUnavailable || got.Seen != "unreachable: HTTP 502 Bad Gateway" {
			t.Errorf("the protocol has %+v", got)
		}
		if got := get(f, owner, c.ID); got.InForce.TestedAt == nil || got.Status != doorward.ConnectionActive {
			t.Errorf("after the fault it is %+v", got)
		}
		err = apptest.ErrorOf(f.Node(0).Tests.Make(f.Context(), owner.Caller, c.ID))
		wantCode(f, err, doorward.CodeProviderUnavailable)
		if e, _ := errors.AsType[*doorward.Error](err); e == nil || !strings.Contains(e.Detail, "answers HTTP 502 Bad Gateway") || len(e.Fields) != 1 || e.Fields[0].Message != e.Detail {
			t.Errorf("the refused test says %+v", e)
		}
	})
}

// TestMissing: a connection may be made before the customer's IT has issuer and client; a test says what is
// missing.
func TestMissing(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		p := f.Provider()
		f.UseMasterKey()
		c, err := f.Node(0).Connections.Create(f.Context(), owner.Caller, connection.Draft{Type: "oidc", Name: new("x")})
		f.NoError(err)
		edit := func(d connection.Draft) {
			_, _, err := f.Node(0).Connections.Edit(f.Context(), owner.Caller, c.ID, connection.Change{Draft: d})
			f.NoError(err)
		}
		try := func() error {
			return apptest.ErrorOf(f.Node(0).Tests.Make(f.Context(), owner.Caller, c.ID))
		}
		f.WantField(try(), "/issuer", "required")
		edit(connection.Draft{Issuer: new(p.Issuer())})
		f.WantField(try(), "/clientId", "required")
		edit(connection.Draft{ClientID: new("doorward")})
		f.WantField(try(), "/secrets", "required")
		_, err = f.Node(0).ClientSecrets.Add(f.Context(), owner.Caller, c.ID, clientsecret.Typed{Secret: apptest.ClientSecret})
		f.NoError(err)
		f.PassTest(owner, c.ID, p)
	})
}

// TestSecretsAreSealed: secrets and keys are readable in their place only.
func TestSecretsAreSealed(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		p := f.Provider()
		c := f.Create(owner, apptest.DraftOf(p))
		all, err := f.DB.Read().ConnectionSecrets(f.Context(), c.ID)
		f.NoError(err)
		elsewhere := seal.Place{Table: "connection_secrets", ID: "ccs_other", Column: "secret_sealed"}
		if _, err := f.Node(0).MasterKey.Open(f.Context(), elsewhere, all[0].Sealed); err == nil {
			t.Error("a secret opens in the place of another one")
		}
	})
}

// TestRaceAttempts: of equal faults at once on two nodes none is lost.
func TestRaceAttempts(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		f.UseMasterKey()
		c := f.Create(owner, connection.Draft{Type: "oidc", Name: new("x")})
		fault := doorward.Attempt{ConnectionID: c.ID, Kind: doorward.AttemptSignIn, Outcome: doorward.AttemptRefused, Check: "aud"}
		apptest.Concurrently(8, func(i int) error {
			one := fault
			one.RequestIDs = []string{fmt.Sprint("req_", i)}
			f.Node(i).Connections.Record(f.Context(), one)
			return nil
		})
		if n := f.Int(`SELECT coalesce(sum(count), 0) FROM connection_attempts WHERE connection_id = $1`, c.ID); n != 8 {
			t.Errorf("the protocol counts %d faults, want 8", n)
		}
	})
}

// TestRaceKeys: of nodes that sweep at once, one makes the next key.
func TestRaceKeys(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		c := f.Create(owner, connection.Draft{Type: "oidc", Name: new("x"), ClientAuth: new("private_key_jwt")})
		clock.Move(89 * 24 * time.Hour)
		for _, err := range apptest.Concurrently(6, func(i int) error { return f.Node(i).Connections.Sweep(f.Context()) }) {
			f.NoError(err)
		}
		if n := f.Int(`SELECT count(*) FROM connection_keys WHERE connection_id = $1`, c.ID); n != 2 {
			t.Errorf("there are %d keys, want 2", n)
		}
	})
}

// TestSecretsEnd: OWNERs are told 30 days, 7 days and a day before, once each, on whichever node the sweep runs; then it is
// still tried.
func TestSecretsEnd(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		p := f.Provider()
		p.Change(func(s *oidctest.Settings) { s.Now = clock.Now })
		f.UseMasterKey()
		c, err := f.Node(0).Connections.Create(f.Context(), owner.Caller, apptest.DraftOf(p))
		f.NoError(err)
		ends := clock.Now().Add(40 * 24 * time.Hour)
		_, err = f.Node(0).ClientSecrets.Add(f.Context(), owner.Caller, c.ID, clientsecret.Typed{Secret: apptest.ClientSecret, ExpiresAt: &ends})
		f.NoError(err)
		for _, step := range []struct {
			days, mails int
		}{{9, 0}, {1, 1}, {22, 1}, {1, 2}, {6, 3}, {3, 3}} {
			clock.Move(time.Duration(step.days) * 24 * time.Hour)
			for i := range 2 {
				f.NoError(f.Node(i).Connections.Sweep(f.Context()))
			}
			f.NoError(f.Node(0).Mail.Deliver(f.Context()))
			if got := strings.Count(strings.Join(f.Subjects(owner.User.Email), "\n"), "ends on"); got != step.mails {
				t.Errorf("after %d more days the OWNER has got %d mails, want %d", step.days, got, step.mails)
			}
		}
		if got, err := f.SignInAt(p, c.ID, false); err != nil || got.UsedSecret != 0 {
			t.Errorf("the secret used is %d", got.UsedSecret)
		}
	})
}
