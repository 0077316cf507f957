package incident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/incident"
)

// byRoot is the operator at a terminal.
var byRoot = doorward.OperatorAtTerminal(doorward.Terminal{SystemUser: "root@db1", Reason: "ticket 4711"})

// eventsOf returns the events of the action in the trail of the tenant, each as its target and changes.
func eventsOf(f *apptest.Fixture, tenantID string, action doorward.Action) (found []string) {
	f.Helper()
	events, err := f.DB.Read().EventsAfter(f.Context(), tenantID, 0, 1000)
	f.NoError(err)
	for _, e := range events {
		if e.Action != action {
			continue
		}
		text := e.Target.Type
		for _, c := range e.Changes {
			text += " " + c.Field + "=" + c.To
		}
		found = append(found, text)
	}
	return found
}

func wantEvents(f *apptest.Fixture, tenantID string, action doorward.Action, want ...string) {
	f.Helper()
	for i := range want {
		want[i] += " operatorReason=ticket 4711 systemUser=root@db1"
	}
	if got := eventsOf(f, tenantID, action); strings.Join(got, "\n") != strings.Join(want, "\n") {
		f.Errorf("the trail of %q has\n%s\nwant\n%s", tenantID, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSignOut: sessions end on all nodes before it returns, those of one tenant or of all, and nothing else does.
func TestSignOut(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		zeta, other := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		sessions, err := f.Node(0).Incidents.SignOut(f.Context(), byRoot, incident.Sessions{TenantID: acme.ID})
		f.NoError(err)
		if sessions != 2 || f.IsValid(owner.Token) || f.IsValid(ann.Token) || !f.IsValid(other.Token) {
			f.Errorf("%d sessions ended; valid: %v %v %v", sessions, f.IsValid(owner.Token), f.IsValid(ann.Token), f.IsValid(other.Token))
		}
		wantEvents(f, acme.ID, doorward.IncidentSignOut, "tenant sessionsEnded=2")
		wantEvents(f, zeta.ID, doorward.IncidentSignOut)
		wantEvents(f, "", doorward.IncidentSignOut, "tenant sessionsEnded=2")

		owner = f.SignIn(owner.User.Email, apptest.FirstPassword)
		sessions, err = f.Node(0).Incidents.SignOut(f.Context(), byRoot, incident.Sessions{})
		f.NoError(err)
		if sessions != 2 || f.IsValid(owner.Token) || f.IsValid(other.Token) {
			f.Errorf("%d sessions ended; valid: %v %v", sessions, f.IsValid(owner.Token), f.IsValid(other.Token))
		}
		wantEvents(f, zeta.ID, doorward.IncidentSignOut, "tenant sessionsEnded=1")
		f.SignIn(other.User.Email, apptest.FirstPassword)
		if _, err := f.Node(0).Incidents.SignOut(f.Context(), byRoot, incident.Sessions{TenantID: "tnt_none"}); apptest.Code(err) != doorward.CodeNotFound {
			f.Errorf("of an unknown tenant: %v", err)
		}
	})
}

// TestSignOutSince: earlier sessions stay.
func TestSignOutSince(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		acme, owner := f.Tenant()
		clock.Move(time.Minute)
		since := clock.Now().Add(-time.Second)
		later := f.SignIn(owner.User.Email, apptest.FirstPassword)
		sessions, err := f.Node(0).Incidents.SignOut(f.Context(), byRoot, incident.Sessions{Since: since})
		f.NoError(err)
		if sessions != 1 || !f.IsValid(owner.Token) || f.IsValid(later.Token) {
			f.Errorf("%d sessions ended; valid: %v %v", sessions, f.IsValid(owner.Token), f.IsValid(later.Token))
		}
		wantEvents(f, acme.ID, doorward.IncidentSignOut, "tenant sessionsEnded=1 openedSince="+since.UTC().Format(time.RFC3339))
	})
}

// TestForceReset: the password is gone, imported ones too, with sessions and known browsers. A mail has a link
// that sets another one. What needs no password stays.
func TestForceReset(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		factor := f.Enrol(&ann)
		f.Exec(`INSERT INTO users (id, email, password_hash, created_at) VALUES ('usr_without', 'without@acme.example', '', 0)`)
		done, err := f.Node(0).Incidents.ForceReset(f.Context(), byRoot, incident.People{Email: strings.ToUpper(ann.User.Email)})
		f.NoError(err)
		if done.People != 1 || done.Sessions == 0 || f.IsValid(ann.Token) || !f.IsValid(owner.Token) {
			f.Errorf("%+v; valid: %v %v", done, f.IsValid(ann.Token), f.IsValid(owner.Token))
		}
		if code := f.TryLogin(ann.User.Email, apptest.FirstPassword); code != doorward.CodeInvalidCredentials {
			f.Errorf("the old password is answered %s", code)
		}
		account := f.Account(ann)
		if account.PasswordHash != "" || account.ManagedBy != "" || account.Factors != 1 || f.Int(`SELECT count(*) FROM devices d JOIN users u ON u.id = d.user_id AND u.credential_generation = d.credential_generation WHERE u.id = '`+ann.User.ID+`'`) != 0 {
			f.Errorf("the account is %+v", account)
		}
		wantEvents(f, acme.ID, doorward.IncidentForceReset, "user sessionsEnded=1")
		wantEvents(f, "", doorward.IncidentForceReset, "user people=1 sessionsEnded=1")

		next := apptest.FirstPassword
		f.NoError(apptest.ErrorOf(f.Node(1).Passwords.Reset(f.Context(), apptest.Anonymous(1), f.MailToken(ann.User.Email), next, next)))
		f.SignInWith(ann, factor)

		done, err = f.Node(0).Incidents.ForceReset(f.Context(), byRoot, incident.People{})
		f.NoError(err)
		if done.People != 2 || done.Mails != 2 || f.IsValid(owner.Token) || f.Int(`SELECT count(*) FROM users WHERE password_hash <> ''`) != 0 {
			f.Errorf("of all: %+v", done)
		}
		if subjects := f.Subjects("without@acme.example"); len(subjects) > 0 {
			f.Errorf("an account without a password got %q", subjects)
		}
	})
}

// TestForceResetOfTenant: first all sessions in the tenant end, and in other tenants those of its members; the trails
// say how many, and whose password is removed.
func TestForceResetOfTenant(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		zeta, other := f.Tenant()
		f.Exec(`INSERT INTO memberships (tenant_id, user_id, role, status, created_at, name) VALUES ('` + zeta.ID + `', '` + owner.User.ID + `', 'USER', 'active', 0, '')`)
		elsewhere, err := apptest.SignedIn(f.Node(0).Login.WithPassword(f.Context(), apptest.Anonymous(0), owner.User.Email, apptest.FirstPassword, zeta.ID))
		f.NoError(err)
		ann := f.Join(owner, doorward.RoleUser)
		f.Exec(`UPDATE users SET password_hash = '' WHERE id = '` + ann.User.ID + `'`)
		done, err := f.Node(0).Incidents.ForceReset(f.Context(), byRoot, incident.People{TenantID: acme.ID})
		f.NoError(err)
		if want := (incident.Reset{People: 1, Mails: 1, Sessions: 3}); done != want {
			f.Errorf("%+v, want %+v", done, want)
		}
		if f.IsValid(owner.Token) || f.IsValid(elsewhere.Token) || f.IsValid(ann.Token) || !f.IsValid(other.Token) {
			f.Error("the wrong sessions have ended")
		}
		wantEvents(f, acme.ID, doorward.IncidentForceReset, "tenant sessionsEnded=2", "user")
		wantEvents(f, zeta.ID, doorward.IncidentForceReset, "tenant sessionsEnded=1", "user")
		wantEvents(f, "", doorward.IncidentForceReset, "tenant sessionsEnded=2", "tenant people=1 sessionsEnded=1", "installation mailsQueued=1")
	})
}

// resetsMailed returns how many mails say that the person's password was removed.
func resetsMailed(f *apptest.Fixture, p apptest.Person) (n int) {
	f.Helper()
	for _, subject := range f.Subjects(p.User.Email) {
		if strings.HasPrefix(subject, "Your password no longer works") {
			n++
		}
	}
	return n
}

// TestForceResetInterrupted: called again, it mails those whose passwords an earlier call has removed, except those
// who have chosen another one since.
func TestForceResetInterrupted(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann, bob := f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleUser)
		f.Exec(`ALTER TABLE mails RENAME TO away`) // the database fails when the first mail is queued
		done, err := f.Node(0).Incidents.ForceReset(f.Context(), byRoot, incident.People{})
		f.Exec(`ALTER TABLE away RENAME TO mails`)
		if err == nil || done.People != 3 || done.Mails != 0 || f.IsValid(ann.Token) {
			f.Fatalf("interrupted: %+v, %v", done, err)
		}
		f.Exec(`UPDATE users SET password_hash = '` + f.Account(owner).PasswordHash + `x' WHERE id = '` + bob.User.ID + `'`)
		f.Exec(`DELETE FROM memberships WHERE user_id = '` + bob.User.ID + `'`) // so that the next call doesn't remove it
		done, err = f.Node(1).Incidents.ForceReset(f.Context(), byRoot, incident.People{TenantID: owner.User.TenantID})
		f.NoError(err)
		if done.People != 0 || done.Mails != 2 || f.CountRows("forgotten_passwords") != 0 {
			f.Errorf("again: %+v", done)
		}
		if resetsMailed(f, owner) != 1 || resetsMailed(f, ann) != 1 || resetsMailed(f, bob) != 0 {
			f.Errorf("mailed: %d to the OWNER, %d to Ann, %d to Bob, who has another password", resetsMailed(f, owner), resetsMailed(f, ann), resetsMailed(f, bob))
		}
	})
}

// TestRaceForceResets: of two calls at once, each removes some of the passwords. Nobody gets two mails.
func TestRaceForceResets(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		people := []apptest.Person{owner}
		for range 12 {
			people = append(people, f.Join(owner, doorward.RoleUser))
		}
		dones := make([]incident.Reset, 2)
		for _, err := range apptest.Concurrently(2, func(i int) (err error) {
			dones[i], err = f.Node(i).Incidents.ForceReset(f.Context(), byRoot, incident.People{TenantID: []string{"", acme.ID}[i]})
			return err
		}) {
			f.NoError(err)
		}
		n := len(people)
		if dones[0].People+dones[1].People != n || dones[0].Mails+dones[1].Mails != n || dones[0].Sessions+dones[1].Sessions < int64(n) {
			f.Errorf("of %d people, the calls have reset %+v", n, dones)
		}
		for _, p := range people {
			if n := resetsMailed(f, p); n != 1 || f.IsValid(p.Token) {
				f.Errorf("%s got %d mails; the session is valid: %v", p.User.Email, n, f.IsValid(p.Token))
			}
		}
		if events := eventsOf(f, acme.ID, doorward.IncidentForceReset); len(events) < n {
			f.Errorf("the trail has %q", events)
		}
		f.WantNoDeadlocks()
	})
}
