package password_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
)

// TestChangeToTheSamePassword: a change to the present password is refused, however often,
// without an event or an attempt that counts. A reset by mail may set it again.
func TestChangeToTheSamePassword(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, _ *apptest.MovedClock) {
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
		for table, n := range rows() {
			if n != before[table] {
				f.Errorf("%s: %d more", table, n-before[table])
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

// TestChangeWithFactor: a thief of the session of a person with a second factor can't
// guess the password with it, since step_up_required comes first. A factor that was set up after
// the caller was read counts, too.
func TestChangeWithFactor(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		before := ann.Caller
		f.Enrol(&ann)
		clock.Move(11 * time.Minute) // longer than the proof at the login counts
		withFactor := before
		withFactor.HasFactor, withFactor.HasCode = true, true
		change := func(by doorward.Caller, current string) doorward.Code {
			next := apptest.Password(1)
			return apptest.Code(apptest.ErrorOf(f.Node(0).Passwords.Change(f.Context(), by, current, next, next)))
		}
		f.RecordPending()
		counted, hash := f.CountRows("throttles"), f.Account(ann).PasswordHash
		for range 20 {
			for _, current := range []string{apptest.FirstPassword, "not the password"} {
				if got := change(withFactor, current); got != doorward.CodeStepUpRequired {
					t.Fatalf("a change without a proof of the factor: %q", got)
				}
			}
		}
		f.RecordPending()
		if n := f.CountRows("attempts"); n > 0 || f.CountRows("throttles") != counted {
			t.Errorf("%d attempts are counted", n)
		}
		if got := change(before, apptest.FirstPassword); got != doorward.CodeStepUpRequired {
			t.Errorf("a change by somebody who has set up a factor since: %q", got)
		}
		if f.Account(ann).PasswordHash != hash {
			t.Error("the password has changed")
		}
	})
}
