package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
)

// ownThings are acts on what belongs to an account, each of which leaves it and the session as they are in
// what the next ones need; in order.
var ownThings = []struct {
	name string
	do   func(f *apptest.Fixture, p apptest.Person, elsewhere apptest.Person) error
	// forManaged: a managed account may do it.
	forManaged bool
	// refused is the refusal for a managed account; empty: sign_in_required.
	refused doorward.Code
}{
	{"a factor", func(f *apptest.Fixture, p, _ apptest.Person) error {
		return apptest.ErrorOf(f.Node(0).Factors.Enrol(f.Context(), p.Caller, ""))
	}, true, ""},
	{"a passkey", func(f *apptest.Fixture, p, _ apptest.Person) error {
		return apptest.ErrorOf(f.Node(0).Factors.BeginPasskey(f.Context(), p.Caller))
	}, true, ""},
	{"an export", func(f *apptest.Fixture, p, _ apptest.Person) error {
		return f.Node(0).Accounts.Export(f.Context(), p.Caller, func() {}, io.Discard)
	}, true, ""},
	{"the list of factors", func(f *apptest.Fixture, p, _ apptest.Person) error {
		return apptest.ErrorOf(f.Node(0).Factors.OfCaller(f.Context(), p.Caller))
	}, true, ""},
	{"remembered browsers", func(f *apptest.Fixture, p, _ apptest.Person) error {
		err := f.Node(0).Factors.ForgetBrowser(f.Context(), p.Caller, "")
		if apptest.Code(err) == doorward.CodeNotFound { // there is none
			err = nil
		}
		return err
	}, true, ""},
	{"another address", func(f *apptest.Fixture, p, _ apptest.Person) error {
		to := f.NewEmail("next")
		if err := f.Node(0).Accounts.ChangeEmail(f.Context(), p.Caller, to, false); err != nil {
			return err
		}
		return apptest.ErrorOf(f.Node(0).Accounts.ConfirmEmail(f.Context(), p.Caller, f.MailToken(to)))
	}, false, doorward.CodeManagedAccount},
	{"the refusal of a reset", func(f *apptest.Fixture, p, _ apptest.Person) error {
		err := f.Node(0).Factors.KeepFactors(f.Context(), p.Caller)
		if e := new(doorward.Error); errors.As(err, &e) && e.Code == doorward.CodeStepUpRequired && e.Proof.AAL == 2 && !p.Caller.HasFactor {
			return nil // it takes a factor, which this account hasn't
		}
		return err
	}, false, ""},
	{"an invitation elsewhere", func(f *apptest.Fixture, p, elsewhere apptest.Person) error {
		f.Exec(`UPDATE invitations SET state = 'REVOKED' WHERE email = $1 AND state = 'PENDING'`, p.User.Email)
		_, token := f.Invite(elsewhere, p.User.Email, doorward.RoleUser)
		return apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), p.Caller, token, ""))
	}, false, doorward.CodeManagedAccount},
	{"the end of a membership elsewhere", func(f *apptest.Fixture, p, elsewhere apptest.Person) error {
		f.Exec(`INSERT INTO memberships (tenant_id, user_id, role, status, name, search, created_at, name_key, email_key) VALUES ($1, $2, 'USER', 'active', '', '', 0, '', '') ON CONFLICT DO NOTHING`, elsewhere.User.TenantID, p.User.ID)
		return apptest.ErrorOf(f.Node(0).Users.Leave(f.Context(), p.Caller, elsewhere.User.TenantID))
	}, false, ""},
	{"an erasure", func(f *apptest.Fixture, p, _ apptest.Person) error {
		return apptest.ErrorOf(f.Node(0).Users.Erase(f.Context(), p.Caller, p.User.Email))
	}, false, ""},
}

// prove proves the password or the factor of the account in the person's session.
func prove(f *apptest.Fixture, p *apptest.Person, evidence login.Evidence) {
	f.Helper()
	begun, err := f.Node(0).Login.BeginStepUp(f.Context(), p.Caller)
	f.NoError(err)
	opened, err := f.Node(0).Login.StepUp(f.Context(), p.Caller, begun.Token.Reveal(), evidence)
	f.NoError(err)
	p.Token, p.Caller.Principal = opened.Token, doorward.PrincipalOf(opened.User, opened.Session)
}

func wantMethods(f *apptest.Fixture, what string, err error, methods ...string) {
	f.Helper()
	e := new(doorward.Error)
	if !errors.As(err, &e) || e.Code != doorward.CodeStepUpRequired || !slices.Equal(e.Proof.Methods, methods) {
		f.Errorf("%s: %v, want a step-up by %v", what, err, methods)
	}
}

// TestAccountByAConnection: what belongs to an account takes a session of its own. A managed account may
// change its factors and export itself.
func TestAccountByAConnection(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		f.UseMasterKey()
		_, owner := f.Tenant()
		for _, act := range ownThings {
			_, elsewhere := f.Tenant()
			ann, managed := f.ByConnection(f.Join(owner, doorward.RoleUser), doorward.MethodPassword), f.Managed(owner, doorward.RoleUser)
			if got := apptest.Code(act.do(f, ann, elsewhere)); got != doorward.CodeSignInRequired {
				t.Errorf("%s: %q", act.name, got)
			}
			want := act.refused
			if want == "" && !act.forManaged {
				want = doorward.CodeSignInRequired
			}
			if got := apptest.Code(act.do(f, managed, elsewhere)); got != want {
				t.Errorf("%s for a managed account: %q, want %q", act.name, got, want)
			}
		}
	})
}

// TestAccountWithoutAnotherSession: to whom no active tenant opens a session by the password, everything is
// left from a session of a connection, after proving the password and the factor.
func TestAccountWithoutAnotherSession(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		f.UseMasterKey()
		_, owner := f.Tenant()
		f.SignOn(owner, doorward.SSORequired)
		for _, act := range ownThings {
			_, elsewhere := f.Tenant()
			f.Exec(`UPDATE sso_policies SET mode = 'optional'`)
			plain, secured := f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleUser)
			app := f.Enrol(&secured)
			f.Exec(`UPDATE sso_policies SET mode = 'required'`)
			f.SSOMode(elsewhere, doorward.SSORequired, doorward.GuestsRefused)

			ann := f.ByConnection(plain)
			wantMethods(f, act.name, act.do(f, ann, elsewhere), doorward.ByPassword)
			prove(f, &ann, login.Evidence{Password: apptest.FirstPassword})
			if got := apptest.Code(apptest.ErrorOf(f.Node(0).Login.Switch(f.Context(), ann.Caller, elsewhere.User.TenantID))); got != doorward.CodeSignInRequired {
				t.Errorf("a switch: %q", got)
			}
			wasProved := ann
			clock.Move(doorward.DefaultStepUp + time.Second)
			wantMethods(f, act.name+" later", act.do(f, ann, elsewhere), doorward.ByPassword)
			prove(f, &ann, login.Evidence{Password: apptest.FirstPassword})
			f.Exec(`UPDATE sso_policies SET mode = 'optional'`) // decided again under the locks, not as the caller was read
			if got := apptest.Code(act.do(f, wasProved, elsewhere)); got != doorward.CodeSignInRequired {
				t.Errorf("%s, where the password opens a session: %q", act.name, got)
			}
			f.Exec(`UPDATE sso_policies SET mode = 'required'`)

			bob := f.ByConnection(secured)
			clock.Move(doorward.DefaultStepUp + time.Second)
			wantMethods(f, act.name, act.do(f, bob, elsewhere), doorward.ByPassword)
			prove(f, &bob, login.Evidence{Password: apptest.FirstPassword})
			wantMethods(f, act.name+" with a factor", act.do(f, bob, elsewhere), doorward.ByCode)
			clock.Move(time.Minute)
			prove(f, &bob, login.Evidence{Answer: factor.Answer{Code: app.Code(f.DB.Now())}})
			prove(f, &ann, login.Evidence{Password: apptest.FirstPassword})
			for _, p := range []apptest.Person{ann, bob} {
				if err := act.do(f, p, elsewhere); err != nil {
					t.Errorf("%s, after the proof: %v", act.name, err)
				}
			}
		}
	})
}

// TestOwnersByAConnection: the word of a connection is no proof for what would let a provider take over a
// tenant, where the account has a password or a factor.
func TestOwnersByAConnection(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		f.UseMasterKey()
		_, owner := f.Tenant()
		dan := f.Join(owner, doorward.RoleUser)
		acts := map[string]func(by doorward.Caller) error{
			"the role OWNER": func(by doorward.Caller) error {
				err := f.Node(0).Users.SetRole(f.Context(), by, dan.User, doorward.RoleOwner)
				if err == nil {
					f.NoError(f.Node(0).Users.SetRole(f.Context(), owner.Caller, dan.User, doorward.RoleUser))
				}
				return err
			},
			"an invitation as OWNER": func(by doorward.Caller) error {
				return apptest.ErrorOf(f.Node(0).Invitations.Send(f.Context(), by, apptest.Offer(f.NewEmail("next"), doorward.RoleOwner)))
			},
		}
		plain, secured, managed, bound := f.Join(owner, doorward.RoleOwner), f.Join(owner, doorward.RoleOwner), f.Managed(owner, doorward.RoleOwner), f.Managed(owner, doorward.RoleOwner)
		app := f.Enrol(&secured)
		f.Enrol(&bound)
		byFactor, byPassword := f.ByConnection(secured), f.ByConnection(plain)
		prove(f, &byFactor, login.Evidence{Answer: factor.Answer{Code: app.Code(f.DB.Now())}})
		joined := f.ByConnection(plain, doorward.MethodPassword)
		for name, act := range acts {
			wantMethods(f, name, act(byPassword.Caller), doorward.ByPassword)
			for what, by := range map[string]apptest.Person{"joined by the password": joined, "by a factor": byFactor, "with nothing of its own": managed, "with a new factor": bound} {
				if err := act(by.Caller); err != nil {
					t.Errorf("%s, %s: %v", name, what, err)
				}
			}
		}
		clock.Move(doorward.DefaultStepUp + time.Second)
		for name, act := range acts {
			wantMethods(f, name, act(managed.Caller), doorward.BySSO)
			wantMethods(f, name, act(bound.Caller), doorward.ByCode)
			wantMethods(f, name, act(byFactor.Caller), doorward.ByCode)
		}
		bySSO := func(p *apptest.Person) {
			begun, err := f.Node(0).Login.BeginStepUp(f.Context(), p.Caller)
			f.NoError(err)
			opened, err := f.Node(0).Login.StepUpBySSO(f.Context(), p.Caller, begun.Token.Reveal(), doorward.Assurance{}, always)
			f.NoError(err)
			p.Caller.Principal = doorward.PrincipalOf(opened.User, opened.Session)
		}
		for _, p := range []*apptest.Person{&managed, &bound, &byFactor, &byPassword} {
			bySSO(p)
		}
		prove(f, &joined, login.Evidence{Password: apptest.FirstPassword})
		for name, act := range acts {
			wantMethods(f, name, act(bound.Caller), doorward.ByCode)
			wantMethods(f, name, act(byFactor.Caller), doorward.ByCode)
			wantMethods(f, name, act(byPassword.Caller), doorward.ByPassword)
			if err := errors.Join(act(managed.Caller), act(joined.Caller)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			// A password that the account has got since counts, whatever the caller was read as.
			f.Exec(`UPDATE users SET password_hash = 'x' WHERE id = $1`, managed.User.ID)
			wantMethods(f, name, act(managed.Caller), doorward.ByPassword)
			f.Exec(`UPDATE users SET password_hash = '' WHERE id = $1`, managed.User.ID)
		}
		_, _, err := f.Node(0).Tenants.Close(f.Context(), byPassword.Caller, owner.User.TenantName)
		wantMethods(f, "closing the tenant", err, doorward.ByPassword)
		if _, _, err = f.Node(0).Tenants.Close(f.Context(), joined.Caller, owner.User.TenantName); err != nil {
			t.Errorf("closing the tenant: %v", err)
		}
	})
}

// TestWhatAConnectionShows: a session of a connection shows and ends what the person has in its tenant.
func TestWhatAConnectionShows(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, other := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		_, token := f.Invite(other, ann.User.Email, doorward.RoleUser)
		f.NoError(apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), ann.Caller, token, "")))
		in, err := apptest.SignedIn(f.Node(0).Login.WithPassword(f.Context(), apptest.Anonymous(0), ann.User.Email, apptest.FirstPassword, other.User.TenantID))
		f.NoError(err)
		elsewhere, by, second := apptest.PersonOf(in), f.ByConnection(ann), f.ByConnection(ann)
		ids := func(by doorward.Caller) (ids []string) {
			all, err := f.Node(0).Sessions.Own(f.Context(), by)
			f.NoError(err)
			for _, s := range all {
				ids = append(ids, s.ID)
			}
			slices.Sort(ids)
			return ids
		}
		here := slices.Sorted(slices.Values([]string{ann.Caller.SessionID, by.Caller.SessionID, second.Caller.SessionID}))
		if got := ids(by.Caller); !slices.Equal(got, here) {
			t.Errorf("the sessions are %v, want %v", got, here)
		}
		if got := ids(ann.Caller); len(got) != 4 {
			t.Errorf("one's own session shows %v", got)
		}
		memberships, err := f.Node(0).Users.Memberships(f.Context(), by.Caller)
		f.NoError(err)
		if len(memberships) != 1 || memberships[0].TenantID != ann.User.TenantID {
			t.Errorf("the memberships are %v", memberships)
		}
		recent, err := f.Node(0).Accounts.Recent(f.Context(), by.Caller)
		f.NoError(err)
		all, err := f.Node(0).Accounts.Recent(f.Context(), ann.Caller)
		f.NoError(err)
		if len(recent) == 0 || len(recent) >= len(all) {
			t.Errorf("%d of %d events are shown", len(recent), len(all))
		}
		if n, err := f.Node(0).Sessions.OtherBrowsers(f.Context(), by.Caller); err != nil || n != 0 {
			t.Errorf("%d other browsers, %v", n, err)
		}
		if got := apptest.Code(apptest.ErrorOf(f.Node(0).Sessions.EndOwn(f.Context(), by.Caller, elsewhere.Caller.SessionID))); got != doorward.CodeNotFound {
			t.Errorf("the end of a session elsewhere: %q", got)
		}
		devices := f.Int(`SELECT count(*) FROM devices d JOIN users u ON u.id = d.user_id AND u.credential_generation = d.credential_generation WHERE u.id = $1`, ann.User.ID)
		f.NoError(apptest.ErrorOf(f.Node(0).Sessions.EndOthers(f.Context(), by.Caller)))
		if f.IsValid(ann.Token) || f.IsValid(second.Token) || !f.IsValid(by.Token) || !f.IsValid(elsewhere.Token) {
			t.Error("the end of all others has ended others than those of the tenant")
		}
		if got := f.Int(`SELECT count(*) FROM devices d JOIN users u ON u.id = d.user_id AND u.credential_generation = d.credential_generation WHERE u.id = $1`, ann.User.ID); got != devices {
			t.Errorf("%d of %d browsers are still known", got, devices)
		}
		var held bytes.Buffer
		f.NoError(f.Node(0).Accounts.Export(f.Context(), elsewhere.Caller, func() {}, &held))
		if !bytes.Contains(held.Bytes(), fmt.Appendf(nil, `"connectionId":%q,"providerAmr":["pwd","sms"]`, f.IssuerOf(by))) {
			t.Errorf("the export lacks the connection: %s", held.Bytes())
		}
	})
}

// TestOwnSessionIsLeft: whether a tenant opens a session by the password is decided as at a sign-in.
func TestOwnSessionIsLeft(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		f.UseMasterKey()
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		by := f.ByConnection(ann)
		want := func(what string, code doorward.Code) {
			f.Helper()
			err := apptest.ErrorOf(f.Node(0).Factors.OfCaller(f.Context(), by.Caller))
			if got := apptest.Code(err); got != code {
				t.Errorf("%s: %q, want %q", what, got, code)
			}
		}
		want("sign-on is optional", doorward.CodeSignInRequired)
		f.SSOMode(owner, doorward.SSORequired, doorward.GuestsAllowed)
		want("a guest", doorward.CodeSignInRequired)
		f.Identity(ann, string(by.Caller.Issuer))
		want("a covered member", doorward.CodeStepUpRequired)
		f.SSOMode(owner, doorward.SSOOptional, doorward.GuestsAllowed)
		f.Exec(`UPDATE users SET managed_until_sign_on = $1 WHERE id = $2`, ann.User.TenantID, ann.User.ID)
		want("a password that has no sign-on yet", doorward.CodeStepUpRequired)
		f.Exec(`UPDATE users SET managed_until_sign_on = '' WHERE id = $1`, ann.User.ID)
		f.SSOMode(owner, doorward.SSORequired, doorward.GuestsAllowed)
		_, other := f.Tenant()
		_, token := f.Invite(other, ann.User.Email, doorward.RoleUser)
		f.NoError(apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), ann.Caller, token, "")))
		want("another tenant opens one", doorward.CodeSignInRequired)
		f.Exec(`UPDATE memberships SET status = 'suspended' WHERE tenant_id = $1 AND user_id = $2`, other.User.TenantID, ann.User.ID)
		want("suspended there", doorward.CodeStepUpRequired)
		f.Exec(`UPDATE memberships SET role = 'OWNER' WHERE user_id = $1`, ann.User.ID)
		f.Enrol(&ann)
		want("an OWNER with a way back", doorward.CodeSignInRequired)
	})
}

// always is a step-up that nothing else speaks against.
func always(*access.Tx) error { return nil }
