package apikey_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// keyFixture is an API key with its secret, its owner, and other members of the tenant.
type keyFixture struct {
	tenantOwner, owner, newOwner apptest.Person // OWNER; ADMIN, who owns the key; USER, who may get it
	key                          doorward.APIKey
	secret                       secret.Key
}

// serverAddress is the IP address of the server that uses the key.
const serverAddress = "192.0.2.7"

// newKey makes a key with the role ADMIN that may invite people and send messages.
func newKey(f *apptest.Fixture) keyFixture {
	f.Helper()
	_, tenantOwner := f.Tenant()
	c := keyFixture{tenantOwner: tenantOwner, owner: f.Join(tenantOwner, doorward.RoleAdmin), newOwner: f.Join(tenantOwner, doorward.RoleUser)}
	var err error
	c.key, c.secret, err = f.Node(0).APIKeys.Create(f.Context(), c.owner.Caller, apikey.Draft{
		Name: "backup", Permissions: []string{"message.send", "user.invite"}, Role: "ADMIN", AllowedIPs: []string{"192.0.2.0/24"},
	})
	f.NoError(err)
	return c
}

// anonymousAt returns a caller without a credential at an address.
func anonymousAt(ip string) doorward.Caller {
	return doorward.Caller{Principal: doorward.Principal{Kind: doorward.Anonymous}, IP: ip, RequestID: "req_test"}
}

// probe tries the key on a node in one way, and returns "yes", the code of the refusal, or
// nothing if the key isn't in memory.
type probe func(f *apptest.Fixture, a *app.App, c keyFixture, stale doorward.Caller) string

// probes are all ways to try a key. stale is the caller of a request that began earlier.
var probes = map[string]probe{
	"check": func(f *apptest.Fixture, a *app.App, c keyFixture, _ doorward.Caller) string {
		by, err := a.APIKeys.Check(f.Context(), anonymousAt(serverAddress), c.secret.Reveal())
		if err == nil {
			err = decide.May(&by.Principal, &decide.Question{Action: doorward.MessageSend, On: by.Tenant()}).Err()
		}
		return outcome(err)
	},
	"memory": func(f *apptest.Fixture, a *app.App, c keyFixture, _ doorward.Caller) string {
		p, ok := a.APIKeys.Remembered(c.secret, netip.MustParseAddr(serverAddress))
		if !ok { // not in memory: the database decides
			return ""
		}
		return outcome(decide.May(&p, &decide.Question{Action: doorward.MessageSend, On: p.Tenant()}).Err())
	},
	"introspection": func(f *apptest.Fixture, a *app.App, c keyFixture, _ doorward.Caller) string {
		_, p, err := a.APIKeys.Introspect(f.Context(), c.secret.Reveal(), serverAddress)
		if err == nil {
			err = decide.May(&p, &decide.Question{Action: doorward.MessageSend, On: p.Tenant()}).Err()
		}
		return outcome(err)
	},
	"a write that had begun": func(f *apptest.Fixture, a *app.App, c keyFixture, stale doorward.Caller) string {
		_, err := a.Invitations.Send(f.Context(), stale, apptest.Offer(f.NewEmail("guest"), doorward.RoleViewer))
		return outcome(err)
	},
}

func outcome(err error) string {
	if err == nil {
		return "yes"
	}
	return string(apptest.Code(err))
}

// endings are all ways to end or restrict a key, and some that leave it valid. want is the outcome
// of check and introspection afterwards, and write that of a write that had begun before.
var endings = []struct {
	name        string
	do          func(f *apptest.Fixture, a *app.App, c keyFixture) error
	want, write string
}{
	{"revoked", func(f *apptest.Fixture, a *app.App, c keyFixture) error {
		return apptest.ErrorOf(a.APIKeys.Revoke(f.Context(), c.tenantOwner.Caller, c.key.ID))
	}, "unauthenticated", "unauthenticated"},
	{"disabled", edit(apikey.Edit{Status: ptr("disabled")}), "unauthenticated", "unauthenticated"},
	{"reported", func(f *apptest.Fixture, a *app.App, c keyFixture) error {
		return a.Leaks.Report(f.Context(), anonymousAt("198.51.100.1"), c.secret.Reveal())
	}, "unauthenticated", "unauthenticated"},
	{"rotated without grace", rotate(0), "unauthenticated", "unauthenticated"},
	{"rotated, and the previous secret ended", func(f *apptest.Fixture, a *app.App, c keyFixture) error {
		if err := rotate(1)(f, a, c); err != nil {
			return err
		}
		outcomesOf(f, c, doorward.Caller{}) // the nodes remember the old secret until its grace ends
		return apptest.ErrorOf(a.APIKeys.EndPrevious(f.Context(), c.tenantOwner.Caller, c.key.ID))
	}, "unauthenticated", "unauthenticated"},
	{"rotated twice", func(f *apptest.Fixture, a *app.App, c keyFixture) error {
		if err := rotate(24)(f, a, c); err != nil {
			return err
		}
		outcomesOf(f, c, doorward.Caller{})
		return rotate(24)(f, a, c)
	}, "unauthenticated", "unauthenticated"},
	{"with fewer permissions", edit(apikey.Edit{Permissions: &[]string{"message.read"}}), "forbidden", "forbidden"},
	{"from other addresses only", edit(apikey.Edit{AllowedIPs: &[]string{"198.51.100.0/24"}}), "ip_not_allowed", "yes"}, // the address of a request stays
	{"of another owner", func(f *apptest.Fixture, a *app.App, c keyFixture) error {
		viewer := doorward.RoleViewer
		if _, _, err := a.Users.Edit(f.Context(), c.tenantOwner.Caller, c.newOwner.User, user.Edit{Role: &viewer}); err != nil {
			return err
		}
		return edit(apikey.Edit{OwnerID: &c.newOwner.User.ID})(f, a, c)
	}, "forbidden", "forbidden"},

	{"its owner demoted", editOwner(func() user.Edit { to := doorward.RoleViewer; return user.Edit{Role: &to} }), "forbidden", "forbidden"},
	{"its owner suspended", editOwner(func() user.Edit { to := doorward.UserSuspended; return user.Edit{Status: &to} }), "unauthenticated", "unauthenticated"},
	{"its owner suspended and resumed", func(f *apptest.Fixture, a *app.App, c keyFixture) error {
		for _, to := range []doorward.UserStatus{doorward.UserSuspended, doorward.UserActive} {
			if _, _, err := a.Users.Edit(f.Context(), c.tenantOwner.Caller, c.owner.User, user.Edit{Status: &to}); err != nil {
				return err
			}
		}
		return nil
	}, "unauthenticated", "unauthenticated"},
	{"its owner removed", func(f *apptest.Fixture, a *app.App, c keyFixture) error {
		return apptest.ErrorOf(a.Users.Remove(f.Context(), c.tenantOwner.Caller, c.owner.User, user.Handover{}, nil))
	}, "unauthenticated", "unauthenticated"},
	{"its owner has left", func(f *apptest.Fixture, a *app.App, c keyFixture) error {
		return apptest.ErrorOf(a.Users.Leave(f.Context(), c.owner.Caller, c.owner.TenantID))
	}, "unauthenticated", "unauthenticated"},
	{"transferred to a USER", func(f *apptest.Fixture, a *app.App, c keyFixture) error {
		ended, err := a.Users.Remove(f.Context(), c.tenantOwner.Caller, c.owner.User, user.Handover{Transfer: true, OwnerID: c.newOwner.User.ID}, nil)
		if err == nil && (ended.APIKeysTransferred != 1 || ended.APIKeys != 0) {
			err = fmt.Errorf("a transfer counts as %+v", ended)
		}
		return err
	}, "yes", "forbidden"}, // a USER sends messages, and doesn't invite
	{"transferred to the OWNER", func(f *apptest.Fixture, a *app.App, c keyFixture) error {
		to := doorward.UserSuspended
		return errorOf3(a.Users.Edit(f.Context(), c.tenantOwner.Caller, c.owner.User, user.Edit{Status: &to, Keys: user.Handover{Transfer: true}}))
	}, "yes", "yes"},

	{"its tenant frozen", func(f *apptest.Fixture, a *app.App, c keyFixture) error {
		return apptest.ErrorOf(a.Tenants.Freeze(f.Context(), apptest.Operator, c.key.TenantID))
	}, "tenant_frozen", "tenant_frozen"},
	{"its tenant frozen and thawed", func(f *apptest.Fixture, a *app.App, c keyFixture) error {
		if err := apptest.ErrorOf(a.Tenants.Freeze(f.Context(), apptest.Operator, c.key.TenantID)); err != nil {
			return err
		}
		outcomesOf(f, c, doorward.Caller{})
		return apptest.ErrorOf(a.Tenants.Thaw(f.Context(), apptest.Operator, c.key.TenantID))
	}, "yes", "yes"},
	{"its tenant closed", func(f *apptest.Fixture, a *app.App, c keyFixture) error {
		return errorOf3(a.Tenants.Close(f.Context(), c.tenantOwner.Caller, c.tenantOwner.User.TenantName))
	}, "tenant_closing", "tenant_closing"},
}

func errorOf3[A, B any](_ A, _ B, err error) error { return err }

func ptr(s string) *string { return &s }

func edit(e apikey.Edit) func(*apptest.Fixture, *app.App, keyFixture) error {
	return func(f *apptest.Fixture, a *app.App, c keyFixture) error {
		return errorOf3(a.APIKeys.Edit(f.Context(), c.tenantOwner.Caller, c.key.ID, e))
	}
}

func rotate(graceHours int64) func(*apptest.Fixture, *app.App, keyFixture) error {
	return func(f *apptest.Fixture, a *app.App, c keyFixture) error {
		return apptest.ErrorOf(a.APIKeys.Rotate(f.Context(), c.tenantOwner.Caller, c.key.ID, &graceHours))
	}
}

func editOwner(e func() user.Edit) func(*apptest.Fixture, *app.App, keyFixture) error {
	return func(f *apptest.Fixture, a *app.App, c keyFixture) error {
		return errorOf3(a.Users.Edit(f.Context(), c.tenantOwner.Caller, c.owner.User, e()))
	}
}

// outcomesOf tries the key on every node in every way, from memory first. Without a stale
// caller it writes nothing.
func outcomesOf(f *apptest.Fixture, c keyFixture, stale doorward.Caller) map[string]string {
	f.Helper()
	all := map[string]string{}
	for n, a := range f.Nodes {
		for _, way := range []string{"memory", "check", "introspection", "a write that had begun"} {
			if way == "a write that had begun" && stale.ID == "" {
				continue
			}
			all[fmt.Sprintf("node %d: %s", n, way)] = probes[way](f, a, c, stale)
		}
	}
	return all
}

// TestEndsEverywhere: once a call that ends or restricts a key has returned, no node accepts the
// key in any way, and none refuses what is still permitted.
func TestEndsEverywhere(t *testing.T) {
	for _, e := range apptest.Engines {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			e.Nodes = map[string]int{"sqlite": 2, "postgres": 3}[e.Name]
			f := apptest.New(t, e, apptest.NoLimits, time.Now)
			for n, ending := range endings {
				c := newKey(f)
				stale, err := f.Node(n).APIKeys.Check(f.Context(), anonymousAt(serverAddress), c.secret.Reveal())
				f.NoError(err)
				for range 2 { // the second time from memory
					wantOutcomes(f, ending.name+": before", outcomesOf(f, c, doorward.Caller{}), "yes", "")
				}
				f.NoError(ending.do(f, f.Node(n), c))
				wantOutcomes(f, ending.name, outcomesOf(f, c, stale), ending.want, ending.write)
			}
		})
	}
}

// TestEndsWhereAClockIsBehind: once a call has ended a secret, the secret has also ended on a node
// whose clock is behind that of the called node.
func TestEndsWhereAClockIsBehind(t *testing.T) {
	t.Parallel()
	f := apptest.New(t, apptest.SQLite, apptest.NoLimits, time.Now)
	f.AddNode(apptest.NoLimits, func() time.Time { return time.Now().Add(-time.Second) })
	for _, ending := range endings {
		if ending.name != "revoked" && !strings.HasPrefix(ending.name, "rotated") {
			continue
		}
		c := newKey(f)
		outcomesOf(f, c, doorward.Caller{})
		f.NoError(ending.do(f, f.Node(0), c))
		wantOutcomes(f, ending.name, outcomesOf(f, c, doorward.Caller{}), ending.want, "")
	}
}

// TestSecretHasEndedOnOneNodeOnly: ending a key also ends its replaced secret on a node whose
// clock is behind, so that the grace is not over there yet.
func TestSecretHasEndedOnOneNodeOnly(t *testing.T) {
	t.Parallel()
	clock := apptest.NewStoppedClock()
	f := apptest.New(t, apptest.SQLite, apptest.NoLimits, clock.Now)
	f.AddNode(apptest.NoLimits, func() time.Time { return clock.Now().Add(-time.Second) })
	c := newKey(f)
	f.NoError(rotate(1)(f, f.Node(0), c))
	clock.Move(time.Hour)
	if _, err := f.Node(1).APIKeys.Check(f.Context(), anonymousAt(serverAddress), c.secret.Reveal()); err != nil {
		t.Fatalf("where the grace is not over, the secret answers %v", err)
	}
	f.NoError(edit(apikey.Edit{Status: ptr("disabled")})(f, f.Node(0), c))
	if _, err := f.Node(1).APIKeys.Check(f.Context(), anonymousAt(serverAddress), c.secret.Reveal()); outcome(err) != "unauthenticated" {
		t.Errorf("a secret of a disabled key answers %q", outcome(err))
	}
}

// wantOutcomes fails unless each way to try the key has its outcome. The key may not be in memory.
func wantOutcomes(f *apptest.Fixture, when string, outcomes map[string]string, want, write string) {
	f.Helper()
	for way, got := range outcomes {
		wanted := want
		switch {
		case strings.HasSuffix(way, "memory") && got == "":
			continue
		case strings.HasSuffix(way, "begun"):
			wanted = write
		case strings.HasSuffix(way, "introspection") && want == "ip_not_allowed":
			wanted = "unauthenticated"
		}
		if got != wanted {
			f.Errorf("%s: %s answers %q, want %q", when, way, got, wanted)
		}
	}
}

// TestEndsByItself: a key ends exactly at its expiry, at the end of a grace, or at rotateBy,
// also in memory.
func TestEndsByItself(t *testing.T) {
	week, hour := int64(7), int64(1)
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		for name, prepare := range map[string]func(c keyFixture) (time.Duration, error){
			"expiry": func(c keyFixture) (time.Duration, error) {
				return 7 * 24 * time.Hour, edit(apikey.Edit{Days: &week})(f, f.Node(0), c)
			},
			"grace": func(c keyFixture) (time.Duration, error) { return time.Hour, rotate(hour)(f, f.Node(0), c) },
			"rotateBy": func(c keyFixture) (time.Duration, error) {
				_, err := f.Node(0).Users.Remove(f.Context(), c.tenantOwner.Caller, c.owner.User, user.Handover{Transfer: true}, nil)
				return 7 * 24 * time.Hour, err
			},
		} {
			c := newKey(f)
			remaining, err := prepare(c)
			f.NoError(err)
			clock.Move(remaining - time.Microsecond)
			wantOutcomes(f, name+": just before", outcomesOf(f, c, doorward.Caller{}), "yes", "")
			clock.Move(time.Microsecond)
			wantOutcomes(f, name+": then", outcomesOf(f, c, doorward.Caller{}), "unauthenticated", "")
		}
	})
}

// TestBothSecrets: during the grace both secrets open the same key; the rotation doesn't
// change when the key expires, and clears rotateBy.
func TestBothSecrets(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		c := newKey(f)
		_, err := f.Node(0).Users.Remove(f.Context(), c.tenantOwner.Caller, c.owner.User, user.Handover{Transfer: true}, nil)
		f.NoError(err)
		before, err := f.Node(0).APIKeys.Get(f.Context(), c.tenantOwner.Caller, c.key.ID)
		f.NoError(err)
		if before.RotateBy == nil || before.OwnerID != c.tenantOwner.ID {
			t.Fatalf("a transferred key is %+v", before)
		}
		r, err := f.Node(1).APIKeys.Rotate(f.Context(), c.tenantOwner.Caller, c.key.ID, nil)
		f.NoError(err)
		for i := range f.Nodes {
			for _, s := range []secret.Key{c.secret, r.Secret} {
				by, err := f.Node(i).APIKeys.Check(f.Context(), anonymousAt(serverAddress), s.Reveal())
				f.NoError(err)
				if by.ID != c.key.ID || by.OwnerID != c.tenantOwner.ID || by.Kind != doorward.ByKey {
					t.Errorf("a secret opens %+v", by.Principal)
				}
			}
		}
		if r.Key.RotateBy != nil || !r.Key.ExpiresAt.Equal(before.ExpiresAt) || r.Key.Previous == nil {
			t.Errorf("the rotated key is %+v", r.Key)
		}
	})
}

// TestUnknownSecrets: after thirty unknown secrets from one client address, over all nodes,
// further ones are too many attempts. That doesn't affect valid keys, ended keys and other
// addresses.
func TestUnknownSecrets(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		c, ended := newKey(f), newKey(f)
		f.NoError(apptest.ErrorOf(f.Node(0).APIKeys.Revoke(f.Context(), ended.tenantOwner.Caller, ended.key.ID)))
		try := func(i int, ip, text string) string {
			_, err := f.Node(i).APIKeys.Check(f.Context(), anonymousAt(ip), text)
			return outcome(err)
		}
		got := map[string]int{}
		for i := range 40 {
			got[try(i, serverAddress, secret.NewKey(apikey.Prefix).Reveal())]++
			if i < 35 {
				if answer := try(i, serverAddress, "dwk_"+strings.Repeat("A", 49)); answer != "unauthenticated" { // its checksum is wrong
					t.Fatalf("a mistyped key answers %s", answer)
				}
			}
		}
		if diff := cmp.Diff(map[string]int{"unauthenticated": 30, "too_many_attempts": 10}, got); diff != "" {
			t.Errorf("unknown keys (-want +got):\n%s", diff)
		}
		for i := range f.Nodes {
			for text, want := range map[string]string{c.secret.Reveal(): "yes", ended.secret.Reveal(): "unauthenticated"} {
				if answer := try(i, serverAddress, text); answer != want {
					t.Errorf("after too many unknown keys a known one answers %s, want %s", answer, want)
				}
			}
		}
		if answer := try(0, "192.0.2.8", secret.NewKey(apikey.Prefix).Reveal()); answer != "unauthenticated" {
			t.Errorf("from another address an unknown key answers %s", answer)
		}
		clock.Move(10 * time.Minute)
		if answer := try(0, serverAddress, secret.NewKey(apikey.Prefix).Reveal()); answer != "unauthenticated" {
			t.Errorf("ten minutes later an unknown key answers %s", answer)
		}
	})
}

// TestRefusalsAreRecorded: every refusal has the same answer, and the trail has its cause.
// Repetitions within a minute are counted.
func TestRefusalsAreRecorded(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		c := newKey(f)
		check := func(ip string) {
			for range 3 {
				_, err := f.Node(0).APIKeys.Check(f.Context(), anonymousAt(ip), c.secret.Reveal())
				if err == nil {
					t.Fatal("the key is valid")
				}
			}
		}
		check("198.51.100.1")
		f.NoError(edit(apikey.Edit{Status: ptr("disabled")})(f, f.Node(0), c))
		check(serverAddress)
		f.NoError(edit(apikey.Edit{Status: ptr("active")})(f, f.Node(0), c))
		f.NoError(rotate(0)(f, f.Node(0), c))
		check(serverAddress)
		f.NoError(apptest.ErrorOf(f.Node(0).APIKeys.Revoke(f.Context(), c.tenantOwner.Caller, c.key.ID)))
		check(serverAddress)
		clock.Move(2 * time.Minute)
		f.Node(0).Inbox.RecordPending(f.Context())

		got := map[string]int{}
		f.NoError(f.DB.Read().EachEvent(f.Context(), c.key.TenantID, func(e doorward.Event) error {
			if e.Action == doorward.APIKeyRefuse && e.Outcome == doorward.Refused && e.Target.ID == c.key.ID {
				cause := ""
				for _, change := range e.Changes {
					if change.Field == "cause" {
						cause = change.To
					}
				}
				got[string(e.ActorType)+" "+e.IP+" "+cause] += e.RefusalCount()
			}
			return nil
		}))
		want := map[string]int{"key 198.51.100.1 address": 3, "anonymous 192.0.2.7 disabled": 3, "anonymous 192.0.2.7 rotated": 3, "anonymous 192.0.2.7 revoked": 3}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("refusals in the trail (-want +got):\n%s", diff)
		}
	})
}

// TestLastUse: the time and address of the last use are written in batches, for the key and
// for its previous secret.
func TestLastUse(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		c := newKey(f)
		ctx := context.Background()
		use := func(s secret.Key, ip string) time.Time {
			_, err := f.Node(0).APIKeys.Check(ctx, anonymousAt(ip), s.Reveal())
			f.NoError(err)
			return clock.Now()
		}
		clock.Move(time.Minute)
		first := use(c.secret, serverAddress)
		f.NoError(f.Node(0).APIKeys.Flush(ctx))
		r, err := f.Node(0).APIKeys.Rotate(ctx, c.tenantOwner.Caller, c.key.ID, nil)
		f.NoError(err)
		clock.Move(time.Hour)
		last := use(r.Secret, "192.0.2.9")
		f.NoError(f.Node(0).APIKeys.Flush(ctx))
		key, err := f.Node(0).APIKeys.Get(ctx, c.tenantOwner.Caller, c.key.ID)
		f.NoError(err)
		if key.LastUsedAt == nil || !key.LastUsedAt.Equal(doorward.Instant(last)) || key.LastUsedIP != "192.0.2.9" {
			t.Errorf("last used at %v from %q, want %v", key.LastUsedAt, key.LastUsedIP, last)
		}
		if key.Previous == nil || key.Previous.LastUsedAt == nil || !key.Previous.LastUsedAt.Equal(doorward.Instant(first)) {
			t.Errorf("the previous secret is %+v, want its last use at %v", key.Previous, first)
		}
	})
}

// TestFirstUseIsWrittenAtOnce: somebody who tries a new key sees at once that it was used;
// later uses are written once a minute.
func TestFirstUseIsWrittenAtOnce(t *testing.T) {
	clock := apptest.NewStoppedClock()
	f := apptest.New(t, apptest.SQLite, apptest.NoLimits, clock.Now)
	c, keys, ctx := newKey(f), f.Node(0).APIKeys, f.Context()
	lastUse := func() *time.Time {
		_, err := keys.Check(ctx, anonymousAt(serverAddress), c.secret.Reveal())
		f.NoError(err)
		f.NoError(keys.Flush(ctx))
		key, err := keys.Get(ctx, c.tenantOwner.Caller, c.key.ID)
		f.NoError(err)
		return key.LastUsedAt
	}
	clock.Move(time.Second)
	first := doorward.Instant(clock.Now())
	if at := lastUse(); at == nil || !at.Equal(first) {
		t.Errorf("last used at %v, want %v", at, first)
	}
	clock.Move(time.Second)
	if at := lastUse(); at == nil || !at.Equal(first) {
		t.Errorf("last used at %v, want %v: later uses are written once a minute", at, first)
	}
}

// TestInvitationsOfAKey: invitations sent with a key count as sent by its owner, and end when
// the owner may no longer invite.
func TestInvitationsOfAKey(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		c := newKey(f)
		by, err := f.Node(0).APIKeys.Check(f.Context(), anonymousAt(serverAddress), c.secret.Reveal())
		f.NoError(err)
		inv, err := f.Node(0).Invitations.Send(f.Context(), by, apptest.Offer(f.NewEmail("guest"), doorward.RoleUser))
		f.NoError(err)
		if inv.InvitedBy != c.owner.ID {
			t.Errorf("invited by %s, want the owner of the key", inv.InvitedBy)
		}
		if _, err := f.Node(0).Invitations.Send(f.Context(), by, apptest.Offer(f.NewEmail("guest"), doorward.RoleOwner)); apptest.Code(err) != doorward.CodeForbidden {
			t.Errorf("a key of an ADMIN invites an OWNER: %v", err)
		}
		ended, err := f.Node(1).Users.Suspend(f.Context(), c.tenantOwner.Caller, c.owner.User)
		f.NoError(err)
		if ended.APIKeys != 1 || ended.Invitations != 1 {
			t.Errorf("suspending the owner ended %+v", ended)
		}
	})
}

// TestNodeCutOff: a node without its database stops answering from memory before a
// revocation on another node returns. It then answers unavailable for every key, neither
// valid nor invalid.
func TestNodeCutOff(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		valid, revoked := newKey(f), newKey(f)
		for _, c := range []keyFixture{valid, revoked} {
			wantOutcomes(f, "before", outcomesOf(f, c, doorward.Caller{}), "yes", "")
		}
		f.NoError(f.DB.Close()) // of the last node
		f.NoError(apptest.ErrorOf(f.Node(0).APIKeys.Revoke(f.Context(), revoked.tenantOwner.Caller, revoked.key.ID)))
		for _, c := range []keyFixture{valid, revoked} {
			for _, way := range []string{"memory", "check", "introspection"} {
				if got := probes[way](f, f.Node(1), c, doorward.Caller{}); got != "" && got != string(doorward.CodeUnavailable) {
					t.Errorf("cut off, %s answers %q", way, got)
				}
			}
		}
	})
}

// TestCheckAllocatesNothing: a check from memory doesn't allocate, for a key that is bound to
// addresses and always used from the same one.
func TestCheckAllocatesNothing(t *testing.T) { // not parallel: see testing.AllocsPerRun
	f := apptest.New(t, apptest.SQLite, apptest.NoLimits, time.Now)
	c, ip := newKey(f), netip.MustParseAddr(serverAddress)
	_, err := f.Node(0).APIKeys.Check(f.Context(), anonymousAt(serverAddress), c.secret.Reveal())
	f.NoError(err)
	text := c.secret.Reveal()
	if n := testing.AllocsPerRun(100, func() {
		key, err := secret.ParseKey(text)
		if _, ok := f.Node(0).APIKeys.Remembered(key, ip); !ok || err != nil {
			t.Fatal("the key isn't in memory")
		}
	}); n > 0 {
		t.Errorf("a check from memory allocates %v times", n)
	}
}

// TestRaceUsesDontDeadlock: a node that writes a last use, and a rotation of the key, don't
// wait for each other.
func TestRaceUsesDontDeadlock(t *testing.T) {
	t.Parallel()
	clock := apptest.NewStoppedClock()
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, clock.Now)
	c, fresh := newKey(f), secret.NewKey(apikey.Prefix)
	hash, flushed := fresh.Hash(), make(chan struct{})
	clock.Move(time.Hour) // uses are written once a minute
	f.NoError(errorOf3(f.Node(0).APIKeys.Introspect(f.Context(), c.secret.Reveal(), serverAddress)))
	var rotation *store.Tx
	f.WhileLocked(func(tx *store.Tx) error {
		rotation = tx
		_, err := tx.UpdateAPIKey(f.Context(), c.key) // as the first statement of a rotation, it locks the key
		return err
	}, func(waitFor func(int, <-chan struct{})) {
		go func() {
			defer close(flushed)
			if err := f.Node(0).APIKeys.Flush(f.Context()); err != nil {
				t.Error(err)
			}
		}()
		waitFor(1, flushed)
		f.NoError(apptest.ErrorOf(rotation.RotateAPIKey(f.Context(), c.key.ID, hash[:], fresh.Hint(), rotation.Now)))
	})
	<-flushed
	f.WantNoDeadlocks()
}
