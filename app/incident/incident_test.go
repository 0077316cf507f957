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

func noProgress[T any](T) {}

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
		sessions, err := f.Node(0).Incidents.SignOut(f.Context(), byRoot, incident.Sessions{TenantID: acme.ID}, noProgress[int64])
		f.NoError(err)
		if sessions != 2 || f.IsValid(owner.Token) || f.IsValid(ann.Token) || !f.IsValid(other.Token) {
			f.Errorf("%d sessions ended; valid: %v %v %v", sessions, f.IsValid(owner.Token), f.IsValid(ann.Token), f.IsValid(other.Token))
		}
		wantEvents(f, acme.ID, doorward.IncidentSignOut, "tenant sessionsEnded=2")
		wantEvents(f, zeta.ID, doorward.IncidentSignOut)
		wantEvents(f, "", doorward.IncidentSignOut, "tenant sessionsEnded=2")

		owner = f.SignIn(owner.User.Email, apptest.FirstPassword)
		sessions, err = f.Node(0).Incidents.SignOut(f.Context(), byRoot, incident.Sessions{}, noProgress[int64])
		f.NoError(err)
		if sessions != 2 || f.IsValid(owner.Token) || f.IsValid(other.Token) {
			f.Errorf("%d sessions ended; valid: %v %v", sessions, f.IsValid(owner.Token), f.IsValid(other.Token))
		}
		wantEvents(f, zeta.ID, doorward.IncidentSignOut, "tenant sessionsEnded=1")
		f.SignIn(other.User.Email, apptest.FirstPassword)
		if _, err := f.Node(0).Incidents.SignOut(f.Context(), byRoot, incident.Sessions{TenantID: "tnt_none"}, noProgress[int64]); apptest.Code(err) != doorward.CodeNotFound {
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
		sessions, err := f.Node(0).Incidents.SignOut(f.Context(), byRoot, incident.Sessions{Since: since}, noProgress[int64])
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
		done, err := f.Node(0).Incidents.ForceReset(f.Context(), byRoot, incident.People{Email: strings.ToUpper(ann.User.Email)}, noProgress[incident.Reset])
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

		for _, whose := range []incident.People{{TenantID: acme.ID}, {}} {
			done, err = f.Node(0).Incidents.ForceReset(f.Context(), byRoot, whose, noProgress[incident.Reset])
			f.NoError(err)
		}
		if done.People != 0 || f.IsValid(owner.Token) || f.Int(`SELECT count(*) FROM users WHERE password_hash <> ''`) != 0 {
			f.Errorf("after all: %+v", done)
		}
		if subjects := f.Subjects("without@acme.example"); len(subjects) > 0 {
			f.Errorf("an account without a password got %q", subjects)
		}
	})
}
