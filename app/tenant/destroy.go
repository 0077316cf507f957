package tenant

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Sweep notifies members of demands for second factors, and destroys the data of tenants whose hold is
// over. For each of these, it leaves one event in the trail of the installation, without personal data. It
// can be interrupted at any point and continues the next time, on any node. While changes are paused it
// does nothing.
func (t *Tenants) Sweep(ctx context.Context) error {
	if m, err := t.writer.Maintenance(ctx); err != nil || m.On {
		return err
	}
	searchable := t.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) { return tx.MakeTenantsSearchable(ctx, limit) })
	notified := t.notifyMembers(ctx)
	due, err := t.db.Read().TenantsDue(ctx, t.db.Now())
	for _, tenant := range due {
		if failed := t.destroyLogged(ctx, tenant); !errors.Is(failed, errNotDue) {
			err = errors.Join(err, failed)
		}
	}
	return errors.Join(searchable, notified, err)
}

// destroyLogged destroys the tenant's data, and logs before and after, since that is final.
func (t *Tenants) destroyLogged(ctx context.Context, closed doorward.Tenant) error {
	if closed.ClosedAt.Unix() != 0 { // 0: the destruction has begun before, see MarkDestroyed
		t.log.Warn("tenant data is being destroyed", "tenant", closed.ID, "closedAt", *closed.ClosedAt, "destroyAt", t.DestroyedAt(closed))
	}
	err := t.destroy(ctx, closed.ID)
	if err == nil {
		t.log.Warn("tenant data is destroyed", "tenant", closed.ID)
	}
	return err
}

// destroy first makes a restore impossible. Then it takes several steps, each in transactions
// of its own, so that other callers can write in between.
func (t *Tenants) destroy(ctx context.Context, id string) error {
	err := t.writer.Upkeep(ctx, func(tx *store.Tx) error { return t.markDestroyed(ctx, tx, id) })
	for _, step := range []destroyStep{destroySessions, destroyLogo, destroyCalls, destroyDecisions, destroyInvitations, destroyUsage, destroyAPIKeys, destroyWebhooks, destroyPeople, destroyTrail} {
		for more := true; more && err == nil; {
			err = t.writer.Upkeep(ctx, func(tx *store.Tx) (err error) { more, err = locked(ctx, tx, id, step); return err })
		}
	}
	if err != nil {
		return err
	}
	return t.deleteTenant(ctx, id)
}

// destroyStep deletes some rows of the tenant, and reports whether there may be more.
type destroyStep func(ctx context.Context, tx *store.Tx, tenantID string) (more bool, err error)

// locked runs the step with the tenant locked. Without the lock, two nodes could each delete fewer
// rows than a batch has, and both take that for the end.
func locked(ctx context.Context, tx *store.Tx, id string, step destroyStep) (more bool, err error) {
	if err := tx.LockTenant(ctx, id); err != nil {
		return false, err
	}
	return step(ctx, tx, id)
}

func (t *Tenants) markDestroyed(ctx context.Context, tx *store.Tx, id string) error {
	if err := tx.LockTenant(ctx, id); err != nil {
		return err
	}
	marked, err := tx.MarkDestroyed(ctx, id)
	if err != nil {
		return err
	}
	if !marked {
		return errNotDue
	}
	return tx.EndTenantSessions(ctx, id, "")
}

// errNotDue means that another call has restored or destroyed the tenant.
var errNotDue = errors.New("tenant: not to be destroyed")

const (
	// batch is how many people are destroyed in one transaction, and of how many webhooks or keys the counts are.
	batch = 50
	// sessionBatch is how many rows of sessions are.
	sessionBatch = 500
)

func destroySessions(ctx context.Context, tx *store.Tx, id string) (more bool, err error) {
	n, err := tx.SweepEnded(ctx, id, sessionBatch)
	return n == sessionBatch, err
}

func destroyPeople(ctx context.Context, tx *store.Tx, id string) (more bool, err error) {
	page, err := tx.UserPage(ctx, id, store.UserFilter{}, doorward.Window{Limit: batch})
	for _, user := range page.Items {
		if err = destroyPerson(ctx, tx, user); err != nil {
			return false, err
		}
	}
	return page.Next != nil, err
}

// destroyPerson ends the membership, and the account when it was the last one.
// The lock on the account keeps it from becoming a member elsewhere at the same time.
func destroyPerson(ctx context.Context, tx *store.Tx, user doorward.User) error {
	account, err := tx.Account(ctx, user.ID)
	if err != nil {
		return err
	}
	if _, err = tx.LockAccount(ctx, account.ID); err != nil {
		return err
	}
	if _, err = tx.DeleteMembership(ctx, user.TenantID, user.ID); err != nil {
		return err
	}
	remaining, err := tx.CountMemberships(ctx, user.ID)
	if err != nil || remaining > 0 {
		return err
	}
	if err := tx.RedactEvents(ctx, user.ID); err != nil {
		return err
	}
	return tx.DeleteAccount(ctx, account)
}

// rowBatch is how many rows without locks of their own are deleted in one transaction.
const rowBatch = 500

func destroyDecisions(ctx context.Context, tx *store.Tx, id string) (more bool, err error) {
	n, err := tx.DropDecisionsOf(ctx, id, rowBatch)
	return n == rowBatch, err
}

func destroyLogo(ctx context.Context, tx *store.Tx, id string) (more bool, err error) {
	_, err = tx.DeleteLogo(ctx, id)
	return false, err
}

// destroyCalls deletes the answers kept for retries, which name people.
func destroyCalls(ctx context.Context, tx *store.Tx, id string) (more bool, err error) {
	return false, tx.DeleteCallsOf(ctx, id)
}

func destroyInvitations(ctx context.Context, tx *store.Tx, id string) (more bool, err error) {
	n, err := tx.DeleteInvitations(ctx, id, rowBatch)
	return n == rowBatch, err
}

func destroyUsage(ctx context.Context, tx *store.Tx, id string) (more bool, err error) {
	n, err := tx.DeleteUsageOf(ctx, id, batch)
	return n > 0, err
}

func destroyAPIKeys(ctx context.Context, tx *store.Tx, id string) (more bool, err error) {
	return false, tx.DeleteAPIKeys(ctx, id)
}

func destroyWebhooks(ctx context.Context, tx *store.Tx, id string) (more bool, err error) {
	n, err := tx.DeleteWebhooksOf(ctx, id, rowBatch)
	return n == rowBatch, err
}

func destroyTrail(ctx context.Context, tx *store.Tx, id string) (more bool, err error) {
	deleted, err := tx.DeleteChain(ctx, id)
	return deleted > 0, err
}

// deleteTenant deletes what is left and records it.
func (t *Tenants) deleteTenant(ctx context.Context, id string) error {
	on := doorward.Object{Type: "tenant", ID: id} // in the trail of the installation
	_, err := t.writer.Do(ctx, access.System, doorward.TenantDestroy, on, func(tx *access.Tx) error {
		existed, err := tx.DeleteTenant(ctx, id)
		if !existed { // another node has deleted it
			tx.SkipEvent()
		}
		if err == nil { // else their use would be recorded in the trail of no tenant
			err = tx.EndChallengesOfTenant(ctx, id)
		}
		if err == nil { // events recorded after the trail was deleted
			_, err = tx.DeleteChain(ctx, id)
		}
		return err
	})
	return err
}
