package demand_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/demand"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/proof"
)

var (
	required = demand.Draft{Mode: "required", Guests: "allowed"}
	strict   = demand.Draft{Mode: "required", Guests: "refused"}
	optional = demand.Draft{Mode: "optional", Guests: "allowed"}
	off      = demand.Draft{Mode: "off", Guests: "allowed"}
)

// put changes the policy of the OWNER's tenant, by whatever version.
func put(f *apptest.Fixture, owner apptest.Person, d demand.Draft) (demand.Changed, error) {
	return f.Node(0).Demands.Put(f.Context(), owner.Caller, d, nil)
}

// want fails unless the error has the code; empty: none.
func want(f *apptest.Fixture, err error, code doorward.Code) {
	f.Helper()
	if got := apptest.Code(err); got != code {
		f.Errorf("the answer is %q (%v), want %q", got, err, code)
	}
}

// joinAs makes a new person with the address a member.
func joinAs(f *apptest.Fixture, owner apptest.Person, email string, role doorward.Role) apptest.Person {
	f.Helper()
	_, token := f.Invite(owner, email, role)
	_, err := f.Node(0).Invitations.Complete(f.Context(), apptest.Anonymous(0), token, apptest.FirstPassword, apptest.FirstPassword)
	f.NoError(err)
	return f.SignIn(email, apptest.FirstPassword)
}

// signInTo is a login with the password to a tenant.
func signInTo(f *apptest.Fixture, node int, p apptest.Person, tenantID string) error {
	return apptest.ErrorOf(f.Node(node).Login.WithPassword(f.Context(), apptest.Anonymous(node), p.User.Email, apptest.FirstPassword, tenantID))
}

// enter signs the person in by the word of the connection.
func enter(f *apptest.Fixture, p apptest.Person, con string) (apptest.Person, error) {
	proved := proof.Proof{Account: f.Account(p), Issuer: doorward.Issuer(con), TenantID: p.User.TenantID, Methods: []string{"fed"}, BegunAt: f.DB.Now()}
	outcome, err := f.Node(0).Login.Enter(f.Context(), apptest.Anonymous(0), proved, p.User.TenantID)
	in, err := apptest.SignedIn(outcome, err)
	if err != nil {
		return apptest.Person{}, err
	}
	return apptest.PersonOf(in), nil
}

// acme is a tenant with a connection, whose OWNER has an authenticator app.
type acme struct {
	id, con, domain string
	owner           apptest.Person
	app             *apptest.Authenticator
}

func newAcme(f *apptest.Fixture) acme {
	f.Helper()
	tenant, owner := f.Tenant()
	a := acme{id: tenant.ID, domain: strings.ReplaceAll(tenant.ID, "_", "-") + ".example", owner: owner}
	a.con = f.Connection(owner, a.domain)
	a.app = f.Enrol(&a.owner)
	a.owner = f.SignInWith(a.owner, a.app)
	return a
}

func (a acme) address(name string) string { return name + "@" + a.domain }

// demanded makes the demand of a, confirmed.
func (a acme) demanded(f *apptest.Fixture, guests string) {
	f.Helper()
	f.SSOMode(a.owner, doorward.SSORequired, guests)
}

// count returns how many events of the action the tenant's trail has.
func count(f *apptest.Fixture, tenantID string, action doorward.Action) int {
	f.Helper()
	return f.Int(`SELECT count(*) FROM events WHERE tenant_id = $1 AND action = $2`, tenantID, string(action))
}

// TestNeeds: a demand needs a connection, a domain of it, and an OWNER who gets in without it.
func TestNeeds(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		want(f, apptest.ErrorOf(put(f, owner, required)), doorward.CodeConnectionNeeded)
		con := f.Connection(owner)
		want(f, apptest.ErrorOf(put(f, owner, required)), doorward.CodeDomainNeeded)
		f.Connection(owner, "acme.example")
		f.Exec(`UPDATE domains SET status = 'lapsed'`)
		want(f, apptest.ErrorOf(put(f, owner, required)), doorward.CodeDomainNeeded)
		f.Exec(`UPDATE domains SET status = 'verified', connection_id = $1`, con)
		want(f, apptest.ErrorOf(put(f, owner, required)), doorward.CodeNoWayBack)
		want(f, apptest.ErrorOf(put(f, owner, optional)), "")
		app := f.Enrol(&owner)
		owner = f.SignInWith(owner, app)
		changed, err := put(f, owner, required)
		want(f, err, "")
		if changed.ConfirmBy == nil || changed.BeforeMode != doorward.SSOOptional {
			t.Errorf("the demand is %+v, want a provisional one", changed)
		}
		_, err = f.Node(0).Demands.Put(f.Context(), owner.Caller, off, []string{"1"})
		want(f, err, doorward.CodePreconditionFailed)
		for _, d := range []demand.Draft{{Mode: "must", Guests: "allowed"}, {Mode: "off"}, {Mode: "off", Guests: "allowed", ConfirmMinutes: 4}, {Mode: "off", Guests: "allowed", ConfirmMinutes: 61}} {
			want(f, apptest.ErrorOf(put(f, owner, d)), doorward.CodeValidationFailed)
		}
	})
}

// TestDemand: from the change on passwords of covered members open no session; at the confirmation, which
// takes a session by the connection, theirs end. Guests go on until they are refused.
func TestDemand(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		a := newAcme(f)
		ann, guest := joinAs(f, a.owner, a.address("ann"), doorward.RoleUser), f.Join(a.owner, doorward.RoleUser)
		joined := f.Join(a.owner, doorward.RoleOwner)
		f.Identity(joined, a.con)
		_, elsewhere := f.Tenant()
		_, code := f.Invite(elsewhere, ann.User.Email, doorward.RoleUser)
		f.NoError(apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), ann.Caller, code, "")))
		f.NoError(apptest.ErrorOf(put(f, a.owner, optional)))
		early, err := enter(f, joined, a.con)
		f.NoError(err)
		f.NoError(apptest.ErrorOf(put(f, a.owner, required)))

		err = signInTo(f, 0, ann, a.id)
		want(f, err, doorward.CodeSSORequired)
		if e := asError(err); e != nil && e.ConnectionID != a.con {
			t.Errorf("the connection is %q, want %q", e.ConnectionID, a.con)
		}
		want(f, signInTo(f, 0, joined, a.id), doorward.CodeSSORequired)
		want(f, signInTo(f, 0, guest, a.id), "")
		in, err := apptest.SignedIn(f.Node(0).Login.WithPassword(f.Context(), apptest.Anonymous(0), ann.User.Email, apptest.FirstPassword, ""))
		want(f, err, "") // the choice passes over the tenant
		if in.Session.TenantID != elsewhere.User.TenantID {
			t.Errorf("the login is to %s", in.Session.TenantID)
		}
		other := apptest.PersonOf(in)
		want(f, apptest.ErrorOf(f.Node(0).Login.Switch(f.Context(), other.Caller, a.id)), doorward.CodeSSORequired)
		for _, p := range []apptest.Person{ann, other, guest, joined} {
			if !f.IsValid(p.Token) {
				t.Error("a session has ended before the confirmation")
			}
		}

		confirm := func(p apptest.Person) error {
			return apptest.ErrorOf(f.Node(0).Demands.Confirm(f.Context(), p.Caller, nil))
		}
		want(f, confirm(a.owner), doorward.CodeSignInRequired)
		want(f, confirm(early), doorward.CodeSignInRequired)
		late, err := enter(f, joined, a.con)
		f.NoError(err)
		want(f, confirm(late), "")
		want(f, confirm(late), doorward.CodeNothingToConfirm)
		valid := map[bool][]apptest.Person{false: {ann, joined}, true: {other, guest, late, early, a.owner}}
		for isValid, people := range valid {
			for i, p := range people {
				if f.IsValid(p.Token) != isValid {
					t.Errorf("after the confirmation session %d is valid: %v", i, !isValid)
				}
			}
		}

		f.NoError(apptest.ErrorOf(put(f, a.owner, strict)))
		want(f, signInTo(f, 0, guest, a.id), doorward.CodeGuestsRefused)
		last, err := enter(f, joined, a.con)
		f.NoError(err)
		want(f, confirm(last), "")
		if f.IsValid(guest.Token) || f.IsValid(a.owner.Token) {
			t.Error("sessions of guests go on after they are refused")
		}
	})
}

func asError(err error) *doorward.Error {
	e, _ := err.(*doorward.Error)
	return e
}

// move changes the address of the account from its session, and confirms that. It returns what undoes it.
func move(f *apptest.Fixture, p *apptest.Person, to string) (undo string) {
	f.Helper()
	f.NoError(f.Node(0).Accounts.ChangeEmail(f.Context(), p.Caller, to, false))
	confirm, undo := f.MailToken(to), f.MailToken(p.User.Email)
	f.NoError(apptest.ErrorOf(f.Node(0).Accounts.ConfirmEmail(f.Context(), p.Caller, confirm)))
	p.User.Email = to
	return undo
}

// TestChangedAddress: no change of address leads out of a demand, by whichever session, before it or under it.
// Readiness says the same. Once the tenant has the domain no longer, or the change is undone, it is as if the
// address had never lain there.
func TestChangedAddress(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		a := newAcme(f)
		_, other := f.Tenant()
		ann := joinAs(f, a.owner, a.address("ann"), doorward.RoleUser)
		_, token := f.Invite(other, ann.User.Email, doorward.RoleUser)
		f.NoError(apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), ann.Caller, token, "")))
		ben := joinAs(f, a.owner, "ben@private.example", doorward.RoleUser)
		guests := func() int {
			f.Helper()
			r, err := f.Node(0).Demands.Readiness(f.Context(), a.owner.Caller)
			f.NoError(err)
			return r.Guests
		}
		before := guests()
		a.demanded(f, doorward.GuestsAllowed)
		want(f, signInTo(f, 0, ann, a.id), doorward.CodeSSORequired)
		in, err := apptest.SignedIn(f.Node(0).Login.WithPassword(f.Context(), apptest.Anonymous(0), ann.User.Email, apptest.FirstPassword, other.User.TenantID))
		f.NoError(err)
		ann = apptest.PersonOf(in)

		undo := move(f, &ann, "ann@private.example")
		want(f, signInTo(f, 0, ann, a.id), doorward.CodeSSORequired)
		move(f, &ann, "ann@more.example")
		want(f, signInTo(f, 0, ann, a.id), doorward.CodeSSORequired)
		if n := guests(); n != before {
			t.Errorf("readiness has %d guests, want %d", n, before)
		}
		home, err := f.Node(0).Demands.HomeOf(f.Context(), ann.User.Email)
		f.NoError(err)
		if home != (demand.Home{}) {
			t.Errorf("an address alone shows that it is %+v", home)
		}
		f.Exec(`UPDATE domains SET status = 'lapsed'`)
		want(f, signInTo(f, 0, ann, a.id), doorward.CodeSSORequired)
		f.Exec(`UPDATE domains SET domain = 'another.example'`)
		want(f, signInTo(f, 0, ann, a.id), "")
		f.Exec(`UPDATE domains SET domain = $1, status = 'verified'`, a.domain)
		want(f, signInTo(f, 0, ann, a.id), doorward.CodeSSORequired)

		// Ben's thief has a mailbox in the domain; the undo makes Ben the guest that he was.
		undoBen := move(f, &ben, a.address("ben"))
		want(f, signInTo(f, 0, ben, a.id), doorward.CodeSSORequired)
		move(f, &ben, "ben@more.example")
		want(f, signInTo(f, 0, ben, a.id), doorward.CodeSSORequired)
		for _, token := range []string{undo, undoBen} {
			f.NoError(apptest.ErrorOf(f.Node(0).Accounts.UndoEmail(f.Context(), apptest.Anonymous(0), token)))
		}
		if n := f.Int(`SELECT count(*) FROM former_domains`); n != 0 {
			t.Errorf("%d domains are remembered after the changes were undone", n)
		}
		ann.User.Email, ben.User.Email = a.address("ann"), "ben@private.example"
		want(f, signInTo(f, 0, ann, a.id), doorward.CodeSSORequired)
		want(f, signInTo(f, 0, ben, a.id), "")
	})
}

// TestWayBack: an OWNER with a second factor gets in, whatever browser is remembered, and all OWNERs get a
// mail. Without the factor, and for others, the password alone is refused.
func TestWayBack(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		a := newAcme(f)
		second, admin := joinAs(f, a.owner, a.address("second"), doorward.RoleOwner), joinAs(f, a.owner, a.address("admin"), doorward.RoleAdmin)
		f.Enrol(&admin)
		f.EditTenant(a.owner, func(s *doorward.TenantSettings) { s.SecondFactor.RememberDays = 30 })
		by := apptest.Anonymous(1)
		challenge := f.Challenge(by, a.owner)
		in, err := apptest.SignedIn(f.Node(0).Login.WithSecond(f.Context(), by, challenge.Token.Reveal(), factor.Answer{RecoveryCode: a.app.Recovery[1]}, true))
		f.NoError(err)
		hash := in.Device.Hash()
		by.Devices = [][]byte{hash[:]}
		a.demanded(f, doorward.GuestsRefused)

		want(f, signInTo(f, 0, second, a.id), doorward.CodeSSORequired) // no factor
		want(f, signInTo(f, 0, admin, a.id), doorward.CodeSSORequired)
		outcome, err := f.Node(0).Login.WithPassword(f.Context(), by, a.owner.User.Email, apptest.FirstPassword, "")
		f.NoError(err)
		asked, ok := outcome.(login.SecondNeeded)
		if !ok {
			t.Fatalf("the OWNER's password is answered with %T", outcome)
		}
		if n := count(f, a.id, doorward.SSOBypass); n != 0 {
			t.Errorf("%d events before the factor", n)
		}
		_, err = apptest.SignedIn(f.Node(0).Login.WithSecond(f.Context(), by, asked.Token.Reveal(), factor.Answer{RecoveryCode: a.app.Recovery[0]}, false))
		want(f, err, "")
		if n := count(f, a.id, doorward.SSOBypass); n != 1 {
			t.Errorf("%d events of the way back", n)
		}
		for _, p := range []apptest.Person{a.owner, second} {
			if subjects := f.Subjects(p.User.Email); !slices.Contains(subjects, "An owner of "+p.User.TenantName+" signed in without its sign-on") {
				t.Errorf("%s got only the mails %q", p.User.Email, subjects)
			}
		}
	})
}

// TestReturn: a demand that isn't confirmed in time returns by itself, before any sweep. The sweep records
// it once, and ends the sessions of the connection if the mode is off again.
func TestReturn(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		a := newAcme(f)
		ann := joinAs(f, a.owner, a.address("ann"), doorward.RoleUser)
		changed, err := put(f, a.owner, demand.Draft{Mode: "required", Guests: "allowed", ConfirmMinutes: 5})
		f.NoError(err)
		in, err := enter(f, ann, a.con)
		f.NoError(err)
		want(f, signInTo(f, 0, ann, a.id), doorward.CodeSSORequired)
		for range 2 { // read from the database, then from memory
			if !f.IsValid(in.Token) {
				t.Fatal("the session by the connection isn't valid")
			}
		}
		clock.Move(5 * time.Minute)
		if f.IsValid(in.Token) {
			t.Error("the session by the connection is valid after the return")
		}

		want(f, signInTo(f, 0, ann, a.id), "")
		want(f, apptest.ErrorOf(enter(f, ann, a.con)), doorward.CodeSignInRequired)
		holds, err := f.Node(0).Demands.Get(f.Context(), a.owner.Caller)
		f.NoError(err)
		if holds.Mode != doorward.SSOOff || holds.ConfirmBy != nil || holds.Version() == changed.Version() {
			t.Errorf("what holds is %+v", holds)
		}
		for range 2 {
			f.NoError(f.Node(0).Demands.Sweep(f.Context()))
		}
		if n := count(f, a.id, doorward.SSORevert); n != 1 || f.IsValid(in.Token) {
			t.Errorf("%d events of the return; the session by the connection is valid: %v", n, f.IsValid(in.Token))
		}
		after, err := f.Node(0).Demands.Get(f.Context(), a.owner.Caller)
		f.NoError(err)
		if after.Version() != holds.Version() {
			t.Errorf("the sweep has changed the version from %s to %s", holds.Version(), after.Version())
		}
	})
}

// TestProvisional: what a provisional demand returns to is what held before the first of several changes.
func TestProvisional(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		a := newAcme(f)
		for i, step := range []struct {
			draft  demand.Draft
			before string // empty: it holds for good
		}{
			{optional, ""},
			{required, "optional allowed"},
			{strict, "optional allowed"},
			{required, "optional allowed"},
			{optional, ""},
			{optional, ""},
			{strict, "optional allowed"},
			{off, ""},
			{required, "off allowed"},
			{off, ""},
		} {
			changed, err := put(f, a.owner, step.draft)
			f.NoError(err)
			before := ""
			if changed.ConfirmBy != nil {
				before = fmt.Sprint(changed.BeforeMode, " ", doorward.SSOPolicy{GuestsRefused: changed.BeforeGuestsRefused}.Guests())
			}
			if before != step.before {
				t.Errorf("step %d returns to %q, want %q", i, before, step.before)
			}
		}
		a.demanded(f, doorward.GuestsAllowed)
		changed, err := put(f, a.owner, strict)
		f.NoError(err)
		again, err := put(f, a.owner, demand.Draft{Mode: "required", Guests: "refused", ConfirmMinutes: 60})
		f.NoError(err)
		if changed.BeforeMode != doorward.SSORequired || again.Version() != changed.Version() || !again.ConfirmBy.Equal(*changed.ConfirmBy) {
			t.Errorf("the same demand again is %+v, after %+v", again, changed)
		}
		back, err := put(f, a.owner, required)
		f.NoError(err)
		if back.ConfirmBy != nil {
			t.Error("what held before has to be confirmed")
		}
	})
}

// TestOff: with the mode off no connection signs in, and its sessions are over on each node.
func TestOff(t *testing.T) {
	e := apptest.SQLite
	e.Nodes = 3
	f := apptest.New(t, e, apptest.NoLimits, time.Now)
	a := newAcme(f)
	ann := joinAs(f, a.owner, a.address("ann"), doorward.RoleUser)
	want(f, apptest.ErrorOf(enter(f, ann, a.con)), doorward.CodeSignInRequired)
	f.SSOMode(a.owner, doorward.SSOOptional, doorward.GuestsAllowed)
	for _, turnOff := range []func() (demand.Changed, error){
		func() (demand.Changed, error) { return put(f, a.owner, off) },
		func() (demand.Changed, error) {
			a.demanded(f, doorward.GuestsRefused)
			return f.Node(0).Demands.Off(f.Context(), apptest.Operator, a.id)
		},
	} {
		f.SSOMode(a.owner, doorward.SSOOptional, doorward.GuestsAllowed)
		in, err := enter(f, ann, a.con)
		f.NoError(err)
		if !f.IsValid(in.Token) {
			t.Fatal("the session isn't valid")
		}
		changed, err := turnOff()
		f.NoError(err)
		if changed.Ended.Sessions != 1 || f.IsValid(in.Token) || !f.IsValid(ann.Token) {
			t.Errorf("%d sessions have ended; valid is that by the connection: %v, the own one: %v", changed.Ended.Sessions, f.IsValid(in.Token), f.IsValid(ann.Token))
		}
		want(f, apptest.ErrorOf(enter(f, ann, a.con)), doorward.CodeSignInRequired)
	}
	want(f, apptest.ErrorOf(f.Node(0).Demands.Off(f.Context(), apptest.Operator, "tnt_none")), doorward.CodeNotFound)
}
