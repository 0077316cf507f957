package audit_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/store"
)

// TestActors: by whom events are, in one trail and in all, for the operator and for a tenant. What can be nobody is refused
// instead of finding nothing; who has an account elsewhere is no tenant's business.
func TestActors(t *testing.T) {
	onSQLite(t, func(r *fixture) {
		root := doorward.OperatorAtTerminal(doorward.Terminal{SystemUser: "root@db1.acme.example", Reason: "spam"})
		trail := r.newTrail(0)
		write := func(by doorward.Caller, tenantID string) {
			e := doorward.NewEvent(by, doorward.TenantUpdate, doorward.Object{Type: "tenant", ID: tenantID, TenantID: tenantID}, doorward.Done)
			e.AddTerminal(by)
			_, err := r.db.Write(r.Context(), func(tx *store.Tx) error { return tx.InsertEvent(r.Context(), e) })
			r.noError(err)
		}
		r.writeEvents("tnt_a", 1, 1) // by ann@acme.example, who has no account any more
		write(root, "tnt_a")
		write(doorward.OperatorAtTerminal(), "tnt_b")
		tenant := doorward.Caller{}.As(doorward.User{TenantID: "tnt_a"})
		inTrail := root
		inTrail.TenantID = "tnt_a"
		found := func(page doorward.Page[doorward.Event], err error) string {
			if doorward.HasCode(err, doorward.CodeValidationFailed) {
				return "refused"
			}
			r.noError(err)
			return fmt.Sprint(len(page.Items))
		}
		for _, c := range []struct{ actor, tenant, operator, all string }{
			{"operator", "1", "1", "2"},
			{"root@db1.acme.example", "1", "1", "1"},
			{"root@db2", "refused", "refused", "refused"},
			{"ann@acme.example", "1", "1", "1"},
			{"cat@acme.example", "0", "refused", "refused"},
			{"usr_none", "0", "0", "0"},
			{"cat", "refused", "refused", "refused"},
		} {
			f, w := audit.Filter{Actor: c.actor}, doorward.Window{Limit: 10}
			got := []string{found(trail.List(r.Context(), tenant, f, w)), found(trail.List(r.Context(), inTrail, f, w)), found(trail.ListAll(r.Context(), root, f, w))}
			if diff := cmp.Diff([]string{c.tenant, c.operator, c.all}, got); diff != "" {
				r.Errorf("%s in a tenant, for the operator, in all trails (-want +got):\n%s", c.actor, diff)
			}
			f.Action = string(doorward.SessionOpen) // of which there is no event
			if got := found(trail.ListAll(r.Context(), root, f, w)); c.all != "refused" && got != "0" {
				r.Errorf("%s with another filter: %s", c.actor, got)
			}
		}
	})
}
