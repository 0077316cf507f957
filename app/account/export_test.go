package account_test

import (
	"bytes"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
)

// TestExportAfterErasure: an export that was authenticated before the account was erased is
// refused as one of an ended session is, and writes nothing.
func TestExportAfterErasure(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		f.NoError(apptest.ErrorOf(f.Node(0).Users.Erase(f.Context(), ann.Caller, ann.User.Email)))
		var out bytes.Buffer
		err := f.Node(0).Accounts.Export(f.Context(), ann.Caller, func() { f.Error("the answer has begun") }, &out)
		if apptest.Code(err) != doorward.CodeUnauthenticated || out.Len() > 0 {
			f.Errorf("the export ends with %v after writing %q", err, out.String())
		}
	})
}
