package model_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/store"
)

// TestPolicyThatIsBeingAdded: a model that takes an action away is refused also if a tenant's
// policy that names the action is not committed yet.
func TestPolicyThatIsBeingAdded(t *testing.T) {
	t.Parallel()
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	acme, owner := f.Tenant()
	apply(f, 0, shared)
	by := caller(f, owner)
	trail, err := f.SQL().BeginTx(f.Context(), nil) // a change takes this lock after it has written all else
	f.NoError(err)
	defer trail.Rollback() //nolint:errcheck // after Commit it has nothing to do
	_, err = trail.ExecContext(f.Context(), `UPDATE audit_chains SET last = last WHERE tenant_id = $1`, acme.ID)
	f.NoError(err)

	var added, refused error
	addition, application := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(addition)
		text := `@id("nobody") forbid(principal, action == Action::"invoice.approve", resource);`
		_, added = f.Node(0).Policies.Put(f.Context(), by, policy.Draft{Text: text, Mode: store.PolicyEnforces}, nil)
	}()
	f.Until("the policy to wait for the trail", func() bool { return f.CountWaiting() == 1 })
	go func() {
		defer close(application)
		_, refused = f.Node(1).Models.Apply(f.Context(), apptest.Operator, strict, nil, withoutForce)
	}()
	f.Until("the model to wait for the policy, or to be applied", func() bool {
		select {
		case <-application:
			return true
		default:
			return f.CountWaiting() == 2
		}
	})
	f.NoError(trail.Commit())
	<-addition
	<-application
	f.NoError(added)
	f.WantCodes([]error{refused}, apptest.Codes{doorward.CodeModelInUse: 1})
}
