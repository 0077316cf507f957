package tenant_test

import (
	"bytes"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/store"
)

// smallestLogo returns the smallest image that can be a logo, a PNG.
func smallestLogo(f *apptest.Fixture) []byte {
	f.Helper()
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression} // as stored logos are encoded
	f.NoError(encoder.Encode(&out, image.NewNRGBA(image.Rect(0, 0, 2, 1))))
	return out.Bytes()
}

// leaveTraces enters a wrong password, sets the same password again by two resets, and requests
// a third one that stays unused.
func leaveTraces(f *apptest.Fixture, p apptest.Person) {
	f.Helper()
	if got := f.TryLogin(p.User.Email, "not the password"); got != doorward.CodeInvalidCredentials {
		f.Fatalf("a wrong password: %s", got)
	}
	for range 2 {
		f.NoError(f.Node(0).Passwords.Forgot(f.Context(), apptest.Anonymous(0), p.User.Email, ""))
		f.NoError(apptest.ErrorOf(f.Node(0).Passwords.Reset(f.Context(), apptest.Anonymous(0), f.MailToken(p.User.Email), apptest.FirstPassword, apptest.FirstPassword)))
	}
	f.NoError(f.Node(0).Passwords.Forgot(f.Context(), apptest.Anonymous(0), p.User.Email, ""))
	f.MailToken(p.User.Email)
}

// checkTrail fails if the chain of the installation has faults.
func checkTrail(f *apptest.Fixture) {
	f.Helper()
	_, faults, err := f.Node(0).Audit.Verify(f.Context(), "")
	f.NoError(err)
	if len(faults) > 0 {
		f.Errorf("the trail of the installation has faults: %v", faults)
	}
}

// addLogoAndRole gives the tenant a name, a logo and a role. It returns the name, and all
// texts by which rows about it are found.
func addLogoAndRole(f *apptest.Fixture, owner apptest.Person) (name string, texts []string) {
	f.Helper()
	name = "Vanishing Ltd"
	const roleName, about = "VANISHED", "What vanishes"
	f.NoError(apptest.ErrorOf(f.Node(0).Tenants.Edit(f.Context(), owner.Caller, tenant.Edit{Name: &name})))
	logo := smallestLogo(f)
	f.NoError(apptest.ErrorOf(f.Node(0).Tenants.SetLogo(f.Context(), owner.Caller, logo, nil)))
	f.NoError(apptest.ErrorOf(f.Node(0).Roles.Create(f.Context(), owner.Caller, role.Draft{Name: roleName, About: about, Permissions: []string{"user.read"}})))
	return name, []string{name, roleName, about, string(logo)}
}

// leaveDecisionAndCall leaves a refused decision and a repeatable call in the database.
func leaveDecisionAndCall(f *apptest.Fixture, admin apptest.Person) {
	f.Helper()
	tenantID := admin.User.TenantID
	if f.Node(0).Access.Require(f.Context(), admin.Caller, doorward.TenantClose, doorward.Object{TenantID: tenantID}) == nil {
		f.Error("an ADMIN may close the tenant")
	}
	f.NoError(f.Node(0).Access.Decisions().Flush(f.Context()))
	f.NoError(apptest.ErrorOf(f.DB.Write(f.Context(), func(tx *store.Tx) error {
		return apptest.ErrorOf(tx.MarkCall(f.Context(), doorward.IdempotentCall{ID: []byte("a call"), TenantID: tenantID, Body: []byte("a body")}))
	})))
}

// closeForGood twice closes the tenant and restores it just before the end of the hold. Then it
// closes the tenant until the hold is over.
func closeForGood(f *apptest.Fixture, clock *apptest.MovedClock, name string, owner, member apptest.Person) {
	f.Helper()
	closeNow := func() {
		_, _, err := f.Node(0).Tenants.Close(f.Context(), owner.Caller, name)
		f.NoError(err)
	}
	for range 2 {
		closeNow()
		clock.Move(apptest.TenantHold - time.Minute)
		f.NoError(f.Node(1).Tenants.Sweep(f.Context()))
		owner = f.SignIn(owner.User.Email, apptest.FirstPassword)
		f.NoError(apptest.ErrorOf(f.Node(0).Tenants.Restore(f.Context(), owner.Caller)))
		owner = f.SignIn(owner.User.Email, apptest.FirstPassword) // as a member of an active tenant
		f.SignIn(member.User.Email, apptest.FirstPassword)
	}
	closeNow()
	owner = f.SignIn(owner.User.Email, apptest.FirstPassword)
	clock.Move(apptest.TenantHold)
	if _, err := f.Node(0).Tenants.Restore(f.Context(), owner.Caller); apptest.Code(err) != doorward.CodeTenantNotClosing {
		f.Errorf("a restoration after the hold: %v", err)
	}
}

// wantNoTraces fails if a row has one of the texts or one of the ids. Ids are allowed in the log
// of changes, which is swept hourly, and in the trail of the installation, which keeps the ids of
// blanked people and has one event about the tenant.
func wantNoTraces(f *apptest.Fixture, tenantID string, texts, ids []string) {
	f.Helper()
	rows := f.AllRows()
	if left := apptest.RowsWith(rows, texts...); len(left) > 0 {
		f.Errorf("rows left:\n%s", strings.Join(left, "\n"))
	}
	about := slices.DeleteFunc(apptest.RowsWith(rows, ids...), func(row string) bool {
		return strings.HasPrefix(row, "changes: ") || strings.HasPrefix(row, "events: ") && !strings.Contains(row, tenantID)
	})
	if len(about) != 1 || !strings.Contains(about[0], string(doorward.TenantDestroy)) {
		f.Errorf("rows left about the tenant, besides one event:\n%s", strings.Join(about, "\n"))
	}
}

// TestClosedTenantIsGone: during the hold a closed tenant can be restored
// completely; afterwards no table has its people, members of other tenants stay
// there, and the trail records the destruction.
func TestClosedTenantIsGone(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.HighLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		staying, stayer := f.Tenant()
		gone, owner := f.Tenant()
		name, texts := addLogoAndRole(f, owner)
		alone, both := f.Join(owner, doorward.RoleAdmin), f.Join(owner, doorward.RoleUser)
		vera := "Vera Vanish"
		_, _, err := f.Node(0).Users.Edit(f.Context(), owner.Caller, alone.User, user.Edit{Name: &vera})
		f.NoError(err)
		_, token := f.Invite(stayer, both.User.Email, doorward.RoleViewer)
		f.NoError(apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), both.Caller, token, "")))
		f.Invite(alone, "pending.vanish@example.com", doorward.RoleUser)
		leaveTraces(f, alone)
		leaveDecisionAndCall(f, alone)

		closeForGood(f, clock, name, owner, alone)
		texts = append(texts, vera, owner.User.Email, alone.User.Email, "pending.vanish@example.com")
		ids := []string{owner.User.ID, alone.User.ID, gone.ID}
		before := f.AllRows()
		for _, sought := range slices.Concat([]string{"decisions: "}, texts, ids) {
			if len(apptest.RowsWith(before, sought)) == 0 {
				f.Fatalf("no row has %q before the destruction: to find none afterwards proves nothing", sought)
			}
		}
		for i := range 2 {
			f.NoError(f.Node(i).Tenants.Sweep(f.Context()))
		}
		wantNoTraces(f, gone.ID, texts, ids)
		if _, err := f.Node(0).Tenants.Logo(f.Context(), doorward.HashLogo(smallestLogo(f))); apptest.Code(err) != doorward.CodeNotFound {
			f.Errorf("the logo: %v", err)
		}
		checkTrail(f)
		if again := f.SignIn(both.User.Email, apptest.FirstPassword); again.User.TenantID != staying.ID {
			f.Errorf("the member of both tenants is in %s, want the remaining one", again.User.TenantID)
		}
		f.SignIn(stayer.User.Email, apptest.FirstPassword)
		if got := f.TryLogin(alone.User.Email, apptest.FirstPassword); got != doorward.CodeInvalidCredentials {
			f.Errorf("a login of a deleted person: %s", got)
		}
	})
}
