package tenant_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/store"
)

// demand makes the tenant of the owner demand second factors of the roles with days of grace.
func demand(f *apptest.Fixture, owner apptest.Person, days int64, roles ...string) {
	f.Helper()
	current := f.SignIn(owner.User.Email, apptest.FirstPassword) // changes of a demand need a proof
	f.NoError(apptest.ErrorOf(f.Node(0).Tenants.Edit(f.Context(), current.Caller, tenant.Edit{Settings: map[string]any{
		doorward.SettingMFA: doorward.MFARequired, doorward.SettingMFARoles: roles, "mfaGraceDays": days,
	}})))
}

// notices sends what is queued and returns how many notices of a demand each person got.
func notices(f *apptest.Fixture, people ...apptest.Person) (got []int) {
	f.Helper()
	for _, p := range people {
		n := 0
		for _, mail := range f.Mails(0, p.User.Email) {
			if !strings.HasSuffix(mail.Subject, "demands a second factor") {
				continue
			}
			n++
			if strings.Contains(mail.Text, "://") || !strings.Contains(mail.Text, "without one until") {
				f.Errorf("the mail has a link, or doesn't say until when:\n%s", mail.Text)
			}
		}
		got = append(got, n)
	}
	return got
}

// TestDemandIsNotified: a demand for second factors, one of more roles, or with fewer days, sends one mail
// to each active member whom it covers and who has no factor when it is sent; whatever loosens it sends
// none.
func TestDemandIsNotified(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		f.UseMasterKey()
		_, owner := f.Tenant()
		_, stranger := f.Tenant()
		admin, user, quick := f.Join(owner, doorward.RoleAdmin), f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleUser)
		suspended, proved := f.Join(owner, doorward.RoleAdmin), f.Join(owner, doorward.RoleAdmin)
		f.Enrol(&proved)
		f.NoError(apptest.ErrorOf(f.Node(0).Users.Suspend(f.Context(), owner.Caller, suspended.User)))
		sweep := func() {
			f.Helper()
			for i := range f.Nodes {
				f.NoError(f.Node(i).Sweep(f.Context()))
			}
		}
		want := func(step string, want ...int) {
			f.Helper()
			sweep()
			if got := notices(f, admin, user, quick, suspended, proved, stranger); !slices.Equal(got, want) {
				f.Errorf("%s: ADMIN, USER, USER with a new factor, suspended, with a factor, of another tenant got %v notices, want %v", step, got, want)
			}
		}
		demand(f, owner, 14, "ADMIN")
		want("demanded of ADMIN", 1, 0, 0, 0, 0, 0)
		demand(f, owner, 20, "ADMIN")
		want("more days", 1, 0, 0, 0, 0, 0)
		demand(f, owner, 7, "ADMIN")
		want("fewer days", 2, 0, 0, 0, 0, 0)
		demand(f, owner, 7)
		sweep()
		f.Enrol(&quick) // before the mail is sent
		want("demanded of all", 3, 1, 0, 0, 0, 0)
	})
}

// TestDemandOfManyIsNotifiedOnce: nodes that notify a large tenant's members at the same time queue one mail
// for each.
func TestDemandOfManyIsNotifiedOnce(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		f.UseMasterKey()
		acme, owner := f.Tenant()
		const people = 450 // more than two transactions
		for i := range people {
			f.Exec(fmt.Sprintf(`INSERT INTO users (id, email, password_hash, created_at) VALUES ('usr_%[1]d', 'p%[1]d@acme.example', '', 1)`, i))
			f.Exec(fmt.Sprintf(`INSERT INTO memberships (tenant_id, user_id, role, status, name, created_at) VALUES ('%[2]s', 'usr_%[1]d', 'USER', 'active', '', 1)`, i, acme.ID))
		}
		demand(f, owner, 7)
		f.WantCodes(apptest.Concurrently(4, func(i int) error { return f.Node(i).Sweep(f.Context()) }), apptest.Codes{"": 4})
		queued := func(what string) int {
			return f.Int(`SELECT count(` + what + `) FROM mails WHERE kind = '` + string(store.MailFactorsDemanded) + `'`)
		}
		if got, want := []int{queued("*"), queued("DISTINCT recipient"), f.CountRows("factor_demands")}, []int{people + 1, people + 1, 0}; !slices.Equal(got, want) {
			f.Errorf("mails, recipients, demands left: %v, want %v", got, want)
		}
	})
}

// TestSweepPassesFailingTenants: a sweep that can't notify the members of one tenant notifies those of the
// others, and its error names that tenant.
func TestSweepPassesFailingTenants(t *testing.T) {
	t.Parallel()
	f := apptest.New(t, apptest.SQLite, apptest.NoLimits, nil)
	f.UseMasterKey()
	var owners []apptest.Person
	for range 3 {
		_, owner := f.Tenant()
		demand(f, owner, 7)
		owners = append(owners, owner)
	}
	var failing string
	f.NoError(f.SQL().QueryRow(`SELECT min(tenant_id) FROM factor_demands`).Scan(&failing))
	f.Exec(fmt.Sprintf(`CREATE TRIGGER fail BEFORE DELETE ON factor_demands WHEN old.tenant_id = '%s' BEGIN SELECT RAISE(ABORT, 'this row is broken'); END`, failing))
	if err := f.Node(0).Tenants.Sweep(f.Context()); err == nil || !strings.Contains(err.Error(), failing) {
		t.Errorf("the sweep ends with %v, want the error of %s", err, failing)
	}
	for _, owner := range owners {
		want := 1
		if owner.User.TenantID == failing {
			want = 0
		}
		if got := notices(f, owner); got[0] != want {
			t.Errorf("%s of %s got %d notices, want %d", owner.User.Email, owner.User.TenantID, got[0], want)
		}
	}
}
