package tenant

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/store"
)

// Filter selects tenants; empty fields select all.
type Filter struct{ Status, Text string }

// rowsAtOnce is how many tenants All reads at once.
const rowsAtOnce = 500

// All returns the tenants that the filter selects, the oldest first, to the operator. Errors: validation_failed.
func (t *Tenants) All(ctx context.Context, by doorward.Caller, f Filter) iter.Seq2[doorward.Tenant, error] {
	return doorward.EachRow(rowsAtOnce, func(w doorward.Window) (doorward.Page[doorward.Tenant], error) { return t.List(ctx, by, f, w) })
}

// List returns tenants, the oldest first, to the operator or to a service, which gets
// those that its key covers. Errors: validation_failed.
func (t *Tenants) List(ctx context.Context, by doorward.Caller, f Filter, w doorward.Window) (doorward.Page[doorward.Tenant], error) {
	chosen := store.TenantFilter{Status: doorward.TenantStatus(f.Status), Text: f.Text}
	switch chosen.Status {
	case "", doorward.TenantActive, doorward.TenantFrozen, doorward.TenantClosing:
	default:
		return doorward.Page[doorward.Tenant]{}, doorward.InvalidFields(doorward.FieldError{
			Parameter: "status", Code: "invalid", Message: "The status is active, frozen or closing.",
		})
	}
	if by.Service != nil {
		chosen.IDs = by.Service.Tenants
	}
	return t.db.Read().TenantPage(ctx, chosen, w)
}

// Find returns a tenant to the operator or to a service. Errors: not_found, also when
// the key of the service doesn't cover it.
func (t *Tenants) Find(ctx context.Context, by doorward.Caller, id string) (doorward.Tenant, error) {
	if !by.Service.Covers(id) {
		return doorward.Tenant{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	return t.Get(ctx, id)
}

// Freeze blocks all access to the tenant, even that of an OWNER to a closing tenant. It ends the
// tenant's sessions, and the reset links of users who can't sign in elsewhere. Errors:
// not_found.
func (t *Tenants) Freeze(ctx context.Context, by doorward.Caller, id string) (doorward.Ended, error) {
	var ended doorward.Ended
	return t.perform(ctx, by, &ended, t.freezeOperation(ctx, id, &ended))
}

func (t *Tenants) freezeOperation(ctx context.Context, id string, ended *doorward.Ended) access.Operation {
	return t.shutOperation(ctx, doorward.TenantFreeze, id, ended, func(tx *access.Tx, _ doorward.Tenant) (bool, error) {
		return tx.FreezeTenant(ctx, id)
	})
}

// shutOperation freezes or closes the tenant by set, and then ends all sessions, resets and
// deliveries.
func (t *Tenants) shutOperation(ctx context.Context, action doorward.Action, id string, ended *doorward.Ended, set setter) access.Operation {
	first := func(tx *access.Tx, before doorward.Tenant) (bool, error) {
		*ended = doorward.Ended{} // the transaction may run again, after another one has shut the tenant
		return set(tx, before)
	}
	return changeStatus(ctx, action, id, first, func(tx *access.Tx) (err error) {
		*ended, err = t.endAll(ctx, tx, id)
		return err
	})
}

// perform performs the operations, all or none, and returns what they have ended.
func (t *Tenants) perform(ctx context.Context, by doorward.Caller, ended *doorward.Ended, operations ...access.Operation) (doorward.Ended, error) {
	revocation, err := t.writer.DoAll(ctx, by, operations...)
	if err != nil {
		return doorward.Ended{}, err
	}
	ended.Revocation = revocation
	return *ended, nil
}

// minHoldAfterThaw is how long an OWNER can restore a closed tenant after a thaw, at least,
// unless its hold was shorter: data must not be destroyed right after the thaw.
const minHoldAfterThaw = 24 * time.Hour

// Thaw permits access again; in a closed tenant, to its OWNERs. It ends sessions that were
// opened by requests that overlapped the freeze. Errors: not_found, tenant_closing when it is
// closed and not frozen: it has to be restored instead.
func (t *Tenants) Thaw(ctx context.Context, by doorward.Caller, id string) (doorward.Revocation, error) {
	return t.writer.DoAll(ctx, by, t.thawOperation(ctx, id))
}

func (t *Tenants) thawOperation(ctx context.Context, id string) access.Operation {
	thaw := func(tx *access.Tx, before doorward.Tenant) (bool, error) {
		grace := time.Duration(0)
		if before.ClosedAt != nil {
			grace = min(minHoldAfterThaw, t.DestroyedAt(before).Sub(*before.ClosedAt))
		}
		thawed, err := tx.ThawTenant(ctx, id, tx.Now.Add(grace))
		if err == nil && !thawed && before.ClosedAt != nil {
			err = doorward.Fail(doorward.CodeTenantClosing, "The tenant is closed, not frozen. An OWNER can restore it, or \"doorward tenant restore\".")
		}
		return thawed, err
	}
	return changeStatus(ctx, doorward.TenantThaw, id, thaw, func(tx *access.Tx) error { return tx.EndTenantSessions(ctx, id, "") })
}

// setter changes the status of a tenant, and reports whether it did.
type setter func(tx *access.Tx, before doorward.Tenant) (bool, error)

// changeStatus returns an operation that calls set and, if the status has changed, records that
// and calls next.
func changeStatus(ctx context.Context, action doorward.Action, id string, set setter, next func(*access.Tx) error) access.Operation {
	return access.Operation{Action: action, On: object(id), Write: func(tx *access.Tx) error {
		before, err := find(ctx, tx.Reader, id)
		if err != nil {
			return err
		}
		changed, err := set(tx, before)
		if err != nil || !changed {
			tx.SkipEvent()
			return err
		}
		after, err := tx.Tenant(ctx, id)
		if err != nil {
			return err
		}
		tx.Changed("status", string(before.Status), string(after.Status))
		return next(tx)
	}}
}

// Close closes the caller's tenant: all sessions end at once, and its data is
// destroyed after the hold. confirm must be the tenant's name. Errors: validation_failed,
// forbidden.
func (t *Tenants) Close(ctx context.Context, by doorward.Caller, confirm string) (doorward.Tenant, doorward.Ended, error) {
	var closed doorward.Tenant
	var ended doorward.Ended
	id := by.TenantID
	revocation, err := t.writer.Do(ctx, by, doorward.TenantClose, object(id), func(tx *access.Tx) error {
		before, err := find(ctx, tx.Reader, id)
		if err != nil {
			return err
		}
		if err := checkConfirmation(before, confirm); err != nil {
			return err
		}
		tx.Changed("status", string(before.Status), string(doorward.TenantClosing))
		if _, err = tx.CloseTenant(ctx, id, tx.Now.Add(t.hold)); err != nil {
			return err
		}
		if ended, err = t.endAll(ctx, tx, id); err != nil {
			return err
		}
		closed, err = tx.Tenant(ctx, id)
		return err
	})
	if err != nil {
		return doorward.Tenant{}, doorward.Ended{}, err
	}
	ended.Revocation = revocation
	return closed, ended, nil
}

// Confirmed freezes, thaws or closes a tenant for the operator, who has typed its name to confirm that. It returns what
// has ended, and whether the status has changed: a tenant that was frozen or closed already stays as it is. Errors:
// those of Freeze, Thaw and CloseFor; validation_failed unless confirm is the name of the tenant.
func (t *Tenants) Confirmed(ctx context.Context, by doorward.Caller, action doorward.Action, id, confirm string) (ended doorward.Ended, changed bool, err error) {
	if err := t.requireOperator(ctx, by, action, id); err != nil {
		return ended, false, err
	}
	var op access.Operation
	switch action {
	case doorward.TenantFreeze:
		op = t.freezeOperation(ctx, id, &ended)
	case doorward.TenantThaw:
		op = t.thawOperation(ctx, id)
	case doorward.TenantClose:
		op = t.closeOperation(ctx, id, &ended)
	default:
		return ended, false, doorward.Fail(doorward.CodeNotFound, "")
	}
	write := op.Write
	op.Write = func(tx *access.Tx) error {
		before, err := find(ctx, tx.Reader, id)
		if err == nil {
			err = checkConfirmation(before, confirm)
		}
		if err == nil {
			err = write(tx)
		}
		changed = err == nil && !tx.IsSkipped()
		return err
	}
	ended, err = t.perform(ctx, by, &ended, op)
	return ended, changed, err
}

func checkConfirmation(t doorward.Tenant, confirm string) error {
	switch doorward.CleanName(confirm) {
	case doorward.CleanName(t.Name):
		return nil
	case "":
		return doorward.Invalid("/confirm", "required", "Type the name of the tenant to confirm.")
	}
	return doorward.Invalid("/confirm", "mismatch", "This is not the name of the tenant, letter for letter.")
}

// endAll ends the sessions and resets in the tenant, and drops the deliveries to its webhooks.
// Pending invitations stay, but can't be accepted until the tenant is active again.
func (t *Tenants) endAll(ctx context.Context, tx *access.Tx, id string) (doorward.Ended, error) {
	sessions, err := tx.CountTenantSessions(ctx, t.sessions, id, tx.Now)
	if err == nil {
		err = tx.EndTenantSessions(ctx, id, "")
	}
	if err != nil {
		return doorward.Ended{}, err
	}
	if err := tx.DropDeliveriesOf(ctx, id); err != nil {
		return doorward.Ended{}, err
	}
	ended := doorward.Ended{Sessions: sessions}
	tx.RecordEnded(ended)
	return ended, tx.ExpireStrandedResets(ctx, id)
}

// CloseFor closes a tenant for the operator, with the same hold as Close. Until it is over, an
// OWNER can restore the tenant, unless it is also frozen. A closed tenant stays as it is.
// Errors: not_found, forbidden.
func (t *Tenants) CloseFor(ctx context.Context, by doorward.Caller, id string) (doorward.Ended, error) {
	if err := t.requireOperator(ctx, by, doorward.TenantClose, id); err != nil {
		return doorward.Ended{}, err
	}
	var ended doorward.Ended
	return t.perform(ctx, by, &ended, t.closeOperation(ctx, id, &ended))
}

func (t *Tenants) closeOperation(ctx context.Context, id string, ended *doorward.Ended) access.Operation {
	return t.shutOperation(ctx, doorward.TenantClose, id, ended, func(tx *access.Tx, _ doorward.Tenant) (bool, error) {
		return tx.CloseTenant(ctx, id, tx.Now.Add(t.hold))
	})
}

// RestoreFor undoes the closing of a tenant for the operator, but not a freeze. Errors:
// not_found, forbidden, tenant_not_closing when it isn't closed or its hold is over.
func (t *Tenants) RestoreFor(ctx context.Context, by doorward.Caller, id string) (doorward.Revocation, error) {
	if err := t.requireOperator(ctx, by, doorward.TenantRestore, id); err != nil {
		return doorward.Revocation{}, err
	}
	restore := func(tx *access.Tx, _ doorward.Tenant) (bool, error) {
		wasClosing, err := tx.RestoreTenant(ctx, id)
		if err == nil && !wasClosing {
			err = doorward.Fail(doorward.CodeTenantNotClosing, "")
		}
		return wasClosing, err
	}
	return t.writer.DoAll(ctx, by, changeStatus(ctx, doorward.TenantRestore, id, restore, func(tx *access.Tx) error { return tx.EndTenantSessions(ctx, id, "") }))
}

// CountSessions counts the sessions that would end if the tenant were frozen or closed now. Errors: unavailable.
func (t *Tenants) CountSessions(ctx context.Context, id string) (int64, error) {
	return t.db.Read().CountTenantSessions(ctx, t.sessions, id, t.db.Now())
}

// requireOperator refuses services, whatever their keys allow inside a tenant.
func (t *Tenants) requireOperator(ctx context.Context, by doorward.Caller, action doorward.Action, id string) error {
	return t.writer.RecordIfRefusal(ctx, by, action, object(id), decide.Enter(&by.Principal, decide.Route{Credential: decide.OfOperator, Actions: []doorward.Action{action}}).Err())
}

// Restore undoes the closing of the caller's tenant, but not a freeze. It ends all
// sessions except the caller's, since requests that overlapped the closing may
// have opened some. Errors: forbidden, tenant_frozen, tenant_not_closing when it
// isn't closing or the hold is over.
func (t *Tenants) Restore(ctx context.Context, by doorward.Caller) (restored Changed, err error) {
	id := by.TenantID
	restored.Revocation, err = t.writer.Do(ctx, by, doorward.TenantRestore, object(id), func(tx *access.Tx) error {
		before, err := find(ctx, tx.Reader, id)
		if err != nil {
			return err
		}
		if before.Status == doorward.TenantFrozen {
			return doorward.Fail(doorward.CodeTenantFrozen, "")
		}
		wasClosing, err := tx.RestoreTenant(ctx, id)
		if err != nil {
			return err
		}
		if !wasClosing {
			return doorward.Fail(doorward.CodeTenantNotClosing, "")
		}
		tx.Changed("status", string(before.Status), string(doorward.TenantActive))
		if err := tx.EndTenantSessions(ctx, id, by.SessionID); err != nil {
			return err
		}
		restored.Tenant, err = tx.Tenant(ctx, id)
		return err
	})
	return restored, err
}

// DestroyedAt returns when the data of a closed tenant is destroyed: as stored at its
// closing, else after the hold. A frozen tenant is not destroyed.
func (t *Tenants) DestroyedAt(closed doorward.Tenant) time.Time {
	if closed.DestroyAt != nil {
		return *closed.DestroyAt
	}
	return closed.ClosedAt.Add(t.hold)
}

func object(id string) doorward.Object {
	return doorward.Object{Type: "tenant", ID: id, TenantID: id}
}

func find(ctx context.Context, read store.Reader, id string) (doorward.Tenant, error) {
	t, err := read.Tenant(ctx, id)
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeNotFound, "No tenant has the id %s. The list of tenants shows all.", id)
	}
	return t, err
}
