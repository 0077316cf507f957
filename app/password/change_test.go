package password_test

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
)

// TestUnchanged: the password that one has is refused, again and again, without a change,
// an event or an attempt that counts. A reset by mail may set it again.
func TestUnchanged(t *testing.T) {
	apptest.OnEachClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, _ *apptest.MovedClock) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		elsewhere := f.SignIn(ann.User.Email, apptest.FirstPassword)
		f.RecordPending()
		rows := func() map[string]int {
			return map[string]int{"events": f.CountRows("events"), "mails": f.CountRows("mails"), "attempts": f.CountRows("attempts"), "counted": f.Int(`SELECT CAST(coalesce(sum(hits), 0) AS BIGINT) FROM throttles`)}
		}
		change := func(current, next string) doorward.Code {
			return apptest.Code(apptest.ErrorOf(f.Node(0).Passwords.Change(f.Context(), ann.Caller, current, next, next)))
		}
		before := rows()
		for range 20 {
			if got := change(apptest.FirstPassword, apptest.FirstPassword); got != doorward.CodeValidationFailed {
				f.Fatalf("a change to the same password: %q", got)
			}
		}
		f.RecordPending()
		for what, n := range rows() {
			if n != before[what] {
				f.Errorf("%s: %d more", what, n-before[what])
			}
		}
		if !f.IsValid(elsewhere.Token) {
			f.Error("another session has ended")
		}
		if got := change(apptest.FirstPassword, apptest.Password(1)); got != "" {
			f.Errorf("a change to another password after that: %q", got)
		}
		next := apptest.Password(1)
		if _, err := f.Node(0).Passwords.Reset(f.Context(), apptest.Anonymous(0), f.ResetToken(ann), next, next); err != nil {
			f.Errorf("a reset to the same password: %v", err)
		}
	})
}
