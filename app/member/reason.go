package member

import (
	"context"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
)

// Hold suspends the member m for a reason, beside those that hold already, and reports whether it is a new one. The
// caller has locked the tenant and the account, ends the access of a member who was active (EndAccess), and calls
// Owners.
func Hold(ctx context.Context, tx *access.Tx, m doorward.User, reason string) (bool, error) {
	held := m.Suspensions()
	if slices.Contains(held, reason) {
		return false, nil
	}
	return tx.SetSuspensions(ctx, m.TenantID, m.ID, append(held, reason))
}

// Lift ends the suspension of the member m for the reasons, and returns those that still hold: with none the member is
// active. The caller has locked the tenant.
func Lift(ctx context.Context, tx *access.Tx, m doorward.User, reasons ...string) (left []string, err error) {
	left = slices.DeleteFunc(m.Suspensions(), func(r string) bool { return slices.Contains(reasons, r) })
	_, err = tx.SetSuspensions(ctx, m.TenantID, m.ID, left)
	return left, err
}

// StatusChanges returns what an event says of a change of the status or of its reasons. Reasons are named where a
// directory has one: an administrator's alone is what the status says.
func StatusChanges(was, is doorward.User) (changes []doorward.Change) {
	if was.Status != is.Status {
		changes = append(changes, doorward.Change{Field: "status", From: string(was.Status), To: string(is.Status)})
	}
	before, after := was.Suspensions(), is.Suspensions()
	ofDirectory := func(reason string) bool { return reason != doorward.ByAdministrator }
	if !slices.Equal(before, after) && (slices.ContainsFunc(before, ofDirectory) || slices.ContainsFunc(after, ofDirectory)) {
		changes = append(changes, doorward.Change{Field: doorward.FieldSuspendedBy, From: strings.Join(before, " "), To: strings.Join(after, " ")})
	}
	return changes
}
