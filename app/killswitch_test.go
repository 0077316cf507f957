package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/installation"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// The kill switch: for each path on which somebody's status or membership
// changes, and each thing that lets somebody in, whether it is dead afterwards or
// lives. One that is dead is dead on two nodes when the call returns.

// cast is somebody, an ADMIN, with everything that can be held.
type cast struct {
	owner, ann, other person // other is another member's session
	there             *person
	sent, received    offered // invitations by the person, by the OWNER
	reset             string
	device            []byte
}

// inBrowser is the person in the browser that is known.
func (c cast) inBrowser() doorward.Caller {
	by := c.ann.Caller
	by.Devices = [][]byte{c.device}
	return by
}

type offered struct{ id, token string }

// offers invites somebody new.
func (w *world) offers(by person, who string) offered {
	w.Helper()
	inv, token := w.invite(by, fmt.Sprintf("%s%d@example.com", who, w.made), doorward.RoleUser)
	return offered{inv.ID, token}
}

// cast makes it; elsewhere says whether the person is in another tenant, too.
func (w *world) cast(elsewhere bool) cast {
	w.Helper()
	var c cast
	_, c.owner = w.tenant()
	c.ann, c.other = w.join(c.owner, doorward.RoleAdmin), w.join(c.owner, doorward.RoleUser)
	if elsewhere {
		_, boss := w.tenant()
		_, token := w.invite(boss, c.ann.Email, doorward.RoleUser)
		joined, err := w.on(0).Invitations.Accept(w.Context(), c.ann.Caller, token, "")
		w.ok(err)
		r, err := w.on(0).Login.WithPassword(w.Context(), stranger(0), c.ann.Email, first, joined.TenantID)
		w.ok(err)
		by := stranger(0).As(r.User)
		by.SessionID = r.Session.ID
		c.there = &person{by, r.User, r.Token}
	}
	c.sent, c.received = w.offers(c.ann, "sent"), w.offers(c.owner, "received")
	c.reset, c.device = w.reset(c.ann), []byte(c.ann.Email)
	_, err := w.db.Write(w.Context(), func(tx *store.Tx) error {
		_, err := tx.InsertDevice(w.Context(), c.device, c.ann.ID, 20, time.Time{})
		return err
	})
	w.ok(err)
	return c
}

// fate tells what each thing is worth now: "lives", or why not. The columns are
// those of the table below.
func (w *world) fate(c cast) string {
	w.Helper()
	var fates []string
	for i := range w.nodes {
		fates = append(fates, strings.Join([]string{
			w.fateOfSession(i, &c.ann), w.fateOfSession(i, c.there), w.fateOfSession(i, &c.other),
			w.fateOfInvitation(i, c.sent), w.fateOfInvitation(i, c.received), w.fateOfReset(i, c.reset), w.fateOfDevice(c),
		}, " "))
		if fates[i] != fates[0] {
			w.Errorf("node %d says %q, another %q", i, fates[i], fates[0])
		}
	}
	return fates[0]
}

func (w *world) fateOfSession(i int, p *person) string {
	if p == nil {
		return "-"
	}
	id, err := w.on(i).Sessions.Check(w.Context(), p.token)
	if err == nil && id.Role != p.Role {
		return "lives:" + string(id.Role)
	}
	return fate(err)
}

// A password that is too short shows what a token is worth, and leaves it so.

// fateOfInvitation tells one that is revoked, for good, from one whose sender may
// not invite for now.
func (w *world) fateOfInvitation(i int, o offered) string {
	w.Helper()
	now, err := w.db.Read().Invitation(w.Context(), o.id)
	w.ok(err)
	if now.State != doorward.InvitationPending {
		return string(now.State)
	}
	_, err = w.on(i).Invitations.Complete(w.Context(), stranger(i), o.token, "short", "short")
	return fate(err)
}

func (w *world) fateOfReset(i int, token string) string {
	return fate(failure(w.on(i).Passwords.Reset(w.Context(), stranger(i), token, "short", "short")))
}

func (w *world) fateOfDevice(c cast) string {
	w.Helper()
	known, err := w.db.Read().KnownDevices(w.Context(), c.ann.Email, [][]byte{c.device}, time.Time{})
	w.ok(err)
	return map[bool]string{true: "lives", false: isStrange}[len(known) == 1]
}

func fate(err error) string {
	if err == nil || code(err) == doorward.CodeValidationFailed {
		return "lives"
	}
	return string(code(err))
}

// operatorByKey is one who calls the API; the other operator is at the terminal.
var operatorByKey = doorward.Caller{Principal: doorward.Principal{Kind: doorward.Operator, ID: "key_1"}}

func edited(by func(cast) doorward.Caller, e func() user.Edit) func(*world, cast) error {
	return func(w *world, c cast) error {
		_, _, err := w.on(0).Users.Edit(w.Context(), by(c), c.ann.User, e())
		return err
	}
}

func byOwner(c cast) doorward.Caller  { return c.owner.Caller }
func atTerminal(cast) doorward.Caller { return operator }

func suspended() user.Edit {
	to := doorward.UserSuspended
	return user.Edit{Status: &to}
}

func demoted() user.Edit {
	to := doorward.RoleViewer
	return user.Edit{Role: &to}
}

func resumed() user.Edit {
	to := doorward.UserActive
	return user.Edit{Status: &to}
}

func promoted() user.Edit {
	to := doorward.RoleAdmin
	return user.Edit{Role: &to}
}

// rejoined makes the person a member again: with the password, or with a new one
// when it went with the last membership.
func rejoined(w *world, c cast) error {
	_, token := w.invite(c.owner, c.ann.Email, doorward.RoleAdmin)
	var err error
	if w.account(c.ann).PasswordHash == "" {
		_, err = w.on(0).Invitations.Complete(w.Context(), stranger(0), token, first, first)
	} else {
		_, err = w.on(0).Invitations.Accept(w.Context(), stranger(0), token, first)
	}
	return err
}

func thawed(w *world, c cast) error {
	return failure(w.on(0).Tenants.Thaw(w.Context(), operator, c.ann.TenantID))
}

func restored(w *world, c cast) error {
	_, err := w.on(0).Tenants.Restore(w.Context(), w.signIn(c.owner.Email, first).Caller)
	return err
}

func frozen(by doorward.Caller) func(*world, cast) error {
	return func(w *world, c cast) error {
		_, err := w.on(0).Tenants.Freeze(w.Context(), by, c.ann.TenantID)
		return err
	}
}

// The fates of, in this order: the person's session in the tenant; the one in
// another tenant, "-" for whoever is in one tenant only; another member's
// session; an invitation that the person sent; one that the OWNER sent; the
// person's reset link; the browser that is known.
const (
	isOut      = "unauthenticated"
	isRevoked  = "REVOKED"
	isIdle     = "invitation_revoked" // its sender may not invite now
	isExpired  = "reset_expired"
	isStrange  = "unknown"
	membership = isOut + " %s lives " + isRevoked + " lives %s %s"
)

var killSwitch = []struct {
	path             string
	do               func(*world, cast) error
	alone, elsewhere string
	undo             func(*world, cast) error // nil: nothing to take back
}{
	{"suspended by an OWNER", edited(byOwner, suspended), fmt.Sprintf(membership, "-", isExpired, "lives"), fmt.Sprintf(membership, "lives", "lives", "lives"), edited(byOwner, resumed)},
	{"suspended at the terminal", edited(atTerminal, suspended), fmt.Sprintf(membership, "-", isExpired, "lives"), fmt.Sprintf(membership, "lives", "lives", "lives"), edited(atTerminal, resumed)},
	{"removed", func(w *world, c cast) error {
		_, err := w.on(0).Users.Remove(w.Context(), c.owner.Caller, c.ann.User, nil)
		return err
	}, fmt.Sprintf(membership, "-", isExpired, isStrange), fmt.Sprintf(membership, "lives", "lives", "lives"), rejoined},
	{"left", func(w *world, c cast) error {
		_, err := w.on(0).Users.Leave(w.Context(), c.ann.Caller, c.ann.TenantID)
		return err
	}, fmt.Sprintf(membership, "-", isExpired, isStrange), fmt.Sprintf(membership, "lives", "lives", "lives"), rejoined},

	// Its invitations wait for the tenant.
	{
		"frozen by key", frozen(operatorByKey),
		isOut + " - " + isOut + " tenant_frozen tenant_frozen " + isExpired + " lives",
		isOut + " lives " + isOut + " tenant_frozen tenant_frozen lives lives", thawed,
	},
	{
		"frozen at the terminal", frozen(operator),
		isOut + " - " + isOut + " tenant_frozen tenant_frozen " + isExpired + " lives",
		isOut + " lives " + isOut + " tenant_frozen tenant_frozen lives lives", thawed,
	},
	{
		"closed", func(w *world, c cast) error {
			_, _, err := w.on(0).Tenants.Close(w.Context(), c.owner.Caller, c.owner.User.TenantName)
			return err
		},
		isOut + " - " + isOut + " tenant_closing tenant_closing " + isExpired + " lives",
		isOut + " lives " + isOut + " tenant_closing tenant_closing lives lives", restored,
	},

	// No session ends; what was offered with the lost authority is no offer.
	{"demoted by an OWNER", edited(byOwner, demoted), "lives:VIEWER - lives " + isIdle + " lives lives lives", "lives:VIEWER lives lives " + isIdle + " lives lives lives", edited(byOwner, promoted)},
	{"demoted at the terminal", edited(atTerminal, demoted), "lives:VIEWER - lives " + isIdle + " lives lives lives", "lives:VIEWER lives lives " + isIdle + " lives lives lives", edited(atTerminal, promoted)},

	// Only sessions end.
	{"signed out by an OWNER", func(w *world, c cast) error {
		_, err := w.on(0).Users.SignOut(w.Context(), c.owner.Caller, c.ann.User)
		return err
	}, isOut + " - lives lives lives lives lives", isOut + " lives lives lives lives lives lives", nil},
	{"signed out", func(w *world, c cast) error {
		return failure(w.on(0).Sessions.End(w.Context(), stranger(0), []secret.Token{c.ann.token}))
	}, isOut + " - lives lives lives lives lives", isOut + " lives lives lives lives lives lives", nil},
	{"under tighter rules", func(w *world, c cast) error {
		days, domains := int64(1), []string{"example.com"} // the addresses that are invited
		_, err := w.on(0).Tenants.Edit(w.Context(), c.owner.Caller, tenant.Edit{InvitationDays: &days, AllowedEmailDomains: &domains})
		return err
	}, "lives - lives lives lives lives lives", "lives lives lives lives lives lives lives", nil},

	{"signed out elsewhere", func(w *world, c cast) error {
		return failure(w.on(0).Sessions.EndOthers(w.Context(), c.ann.Caller))
	}, "lives - lives lives lives lives " + isStrange, "lives " + isOut + " lives lives lives lives " + isStrange, nil},
	{"signed out elsewhere, in the known browser", func(w *world, c cast) error {
		return failure(w.on(0).Sessions.EndOthers(w.Context(), c.inBrowser()))
	}, "lives - lives lives lives lives lives", "lives " + isOut + " lives lives lives lives lives", nil},

	// The password: the person's sessions, links and browsers, in every tenant.
	{"a new password", func(w *world, c cast) error {
		return failure(w.on(0).Passwords.Change(w.Context(), c.ann.Caller, first, password(1), password(1)))
	}, "lives - lives lives lives " + isExpired + " " + isStrange, "lives " + isOut + " lives lives lives " + isExpired + " " + isStrange, nil},
	{"a new password, in the known browser", func(w *world, c cast) error {
		return failure(w.on(0).Passwords.Change(w.Context(), c.inBrowser(), first, password(1), password(1)))
	}, "lives - lives lives lives " + isExpired + " lives", "lives " + isOut + " lives lives lives " + isExpired + " lives", nil},
	{"a reset", func(w *world, c cast) error {
		return failure(w.on(0).Passwords.Reset(w.Context(), stranger(0), c.reset, password(1), password(1)))
	}, isOut + " - lives lives lives reset_used " + isStrange, isOut + " " + isOut + " lives lives lives reset_used " + isStrange, nil},
}

// afterwards is what each fate becomes when the act is taken back: what has ended
// has ended.
var afterwards = strings.NewReplacer("tenant_frozen", "lives", "tenant_closing", "lives", isIdle, "lives", "lives:VIEWER", "lives")

func TestKillSwitch(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.nodes = 2
			w := newWorld(t, e, noLimits, time.Now)
			for _, k := range killSwitch {
				for elsewhere, want := range map[bool]string{false: k.alone, true: k.elsewhere} {
					c := w.cast(elsewhere)
					if got := w.fate(c); strings.Count(got, "lives") < 6 {
						t.Fatalf("%s: before it the fates are %q", k.path, got)
					}
					w.ok(k.do(w, c))
					if got := w.fate(c); got != want {
						t.Errorf("%s, in another tenant too: %v\n got %q\nwant %q", k.path, elsewhere, got, want)
					}
					if k.undo == nil {
						continue
					}
					w.ok(k.undo(w, c))
					if got := w.fate(c); got != afterwards.Replace(want) {
						t.Errorf("%s, and that taken back, in another tenant too: %v\n got %q\nwant %q", k.path, elsewhere, got, afterwards.Replace(want))
					}
				}
			}
		})
	}
}

// TestKillSwitchRestore: a database that is set back knows no browser, whatever is
// kept: its owner may have given it up since.
func TestKillSwitchRestore(t *testing.T) {
	onEach(t, func(w *world) {
		c := w.cast(false)
		knows := func() int {
			known, err := w.db.Read().KnownDevices(w.Context(), c.ann.Email, [][]byte{c.device}, time.Time{})
			w.ok(err)
			return len(known)
		}
		if knows() != 1 {
			w.Fatal("the browser isn't known to begin with: this shows nothing")
		}
		_, err := w.on(0).Installation.Restored(w.Context(), operator, installation.Keep{Sessions: true, Links: true})
		w.ok(err)
		if knows() != 0 {
			w.Error("a browser of before the restore is known")
		}
	})
}
