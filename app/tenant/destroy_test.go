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

// smallestLogo is the smallest logo.
func smallestLogo(f *apptest.Fixture) []byte {
	f.Helper()
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression} // as stored logos are encoded
	f.NoError(encoder.Encode(&out, image.NewNRGBA(image.Rect(0, 0, 2, 1))))
	return out.Bytes()
}

// leaveTraces enters a wrong password, asks for a reset, and sets the same
// password again.
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

// TestClosedTenantIsGone: during the hold a closed tenant can be restored
// completely; afterwards no table has its people, members of other tenants stay
// there, and the trail records the destruction.
func TestClosedTenantIsGone(t *testing.T) {
	apptest.OnEachClock(t, apptest.HighLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		staying, stayer := f.Tenant()
		gone, owner := f.Tenant()
		names := []string{"Vanishing Ltd", "Vera Vanish"}
		_, err := f.Node(0).Tenants.Edit(f.Context(), owner.Caller, tenant.Edit{Name: &names[0]})
		f.NoError(err)
		logo := smallestLogo(f)
		_, err = f.Node(0).Tenants.SetLogo(f.Context(), owner.Caller, logo, nil)
		f.NoError(err)
		_, err = f.Node(0).Roles.Create(f.Context(), owner.Caller, role.Draft{Name: "VANISHED", About: names[1], Permissions: []string{"user.read"}})
		f.NoError(err)
		names = append(names, "VANISHED")
		alone := f.Join(owner, doorward.RoleAdmin)
		_, _, err = f.Node(0).Users.Edit(f.Context(), owner.Caller, alone.User, user.Edit{Name: &names[1]})
		f.NoError(err)
		both := f.Join(owner, doorward.RoleUser)
		_, token := f.Invite(stayer, both.User.Email, doorward.RoleViewer)
		_, err = f.Node(0).Invitations.Accept(f.Context(), both.Caller, token, "")
		f.NoError(err)
		f.Invite(alone, "pending.vanish@example.com", doorward.RoleUser)
		leaveTraces(f, alone)
		if f.Node(0).Access.Require(f.Context(), alone.Caller, doorward.TenantClose, doorward.Object{TenantID: gone.ID}) == nil {
			f.Error("an ADMIN may close the tenant")
		}
		f.NoError(f.Node(0).Access.Decisions().Flush(f.Context())) // keeps the refusal
		_, err = f.DB.Write(f.Context(), func(tx *store.Tx) error {
			_, err := tx.MarkCall(f.Context(), doorward.IdempotentCall{ID: []byte("a call"), TenantID: gone.ID, Body: []byte("a body")})
			return err
		})
		f.NoError(err)

		for range 2 { // closed, restored, closed
			_, _, err = f.Node(0).Tenants.Close(f.Context(), owner.Caller, names[0])
			f.NoError(err)
			clock.Move(apptest.TenantHold - time.Minute)
			f.NoError(f.Node(1).Tenants.Sweep(f.Context()))
			owner = f.SignIn(owner.User.Email, apptest.FirstPassword)
			_, err = f.Node(0).Tenants.Restore(f.Context(), owner.Caller)
			f.NoError(err)
		}
		f.SignIn(alone.User.Email, apptest.FirstPassword)
		_, _, err = f.Node(0).Tenants.Close(f.Context(), owner.Caller, names[0])
		f.NoError(err)
		owner = f.SignIn(owner.User.Email, apptest.FirstPassword)
		clock.Move(apptest.TenantHold)
		_, err = f.Node(0).Tenants.Restore(f.Context(), owner.Caller)
		if apptest.Code(err) != doorward.CodeTenantNotClosing {
			f.Errorf("a restoration after the hold: %v", err)
		}

		names = append(names, string(logo))
		people := []string{owner.User.Email, alone.User.Email, "pending.vanish@example.com"}
		ids := []string{owner.User.ID, alone.User.ID, gone.ID}
		if before := f.AllRows(); len(apptest.RowsWith(before, "decisions: ")) == 0 || len(apptest.RowsWith(before, names...)) == 0 || len(apptest.RowsWith(before, people...)) < 10 || len(apptest.RowsWith(before, ids...)) < 10 {
			f.Fatal("the search finds too little before the destruction: its result afterwards proves nothing")
		}
		for i := range 2 {
			f.NoError(f.Node(i).Tenants.Sweep(f.Context()))
		}
		after := f.AllRows()
		if _, err := f.Node(0).Tenants.Logo(f.Context(), doorward.HashLogo(logo)); apptest.Code(err) != doorward.CodeNotFound {
			f.Errorf("the logo: %v", err)
		}
		if left := apptest.RowsWith(after, append(names, people...)...); len(left) > 0 {
			f.Errorf("rows left:\n%s", strings.Join(left, "\n"))
		}
		// Nodes follow the log of changes, which is swept hourly; the trail of the
		// installation keeps ids of blanked people.
		about := slices.DeleteFunc(apptest.RowsWith(after, ids...), func(row string) bool {
			return strings.HasPrefix(row, "changes: ") || strings.HasPrefix(row, "events: ") && !strings.Contains(row, gone.ID)
		})
		if len(about) != 1 || !strings.Contains(about[0], string(doorward.TenantDestroy)) {
			f.Errorf("rows left about the tenant, besides one event:\n%s", strings.Join(about, "\n"))
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
