package member

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// EndAccess ends the sessions, invitations, set-up links, resets and challenges that depend on the membership on; the
// tenant forgets the browsers that it has remembered. endKeys ends the API keys or
// gives them another owner; without it they are revoked. The caller has locked the tenant and the account.
func EndAccess(ctx context.Context, tx *access.Tx, life store.SessionLifetime, on doorward.Object, endKeys func() (revoked, transferred int64, err error)) (ended doorward.Ended, err error) {
	if endKeys == nil {
		endKeys = func() (revoked, _ int64, err error) { revoked, err = RevokeKeys(ctx, tx, on); return revoked, 0, err }
	}
	if ended.Sessions, err = tx.DeleteMemberSessions(ctx, life, on.TenantID, on.ID); err != nil {
		return ended, err
	}
	if ended.APIKeys, ended.APIKeysTransferred, err = endKeys(); err != nil {
		return ended, err
	}
	if ended.Invitations, err = tx.RevokeInvitationsBy(ctx, on.TenantID, on.ID); err != nil {
		return ended, err
	}
	if err := endSetupLinks(ctx, tx, on); err != nil {
		return ended, err
	}
	if ended.Webhooks, err = access.MadeWebhooks(ctx, tx.Reader, &tx.By, tx.Now, on.TenantID, on.ID); err != nil {
		return ended, err
	}
	if err := tx.ForgetProofsIn(ctx, on.TenantID, on.ID); err != nil {
		return ended, err
	}
	remaining, err := tx.CountActiveMemberships(ctx, on.ID)
	if err != nil || remaining > 0 {
		return ended, err
	}
	return ended, tx.ExpireResets(ctx, on.ID)
}

// End ends the membership on, and what depends on it, as EndAccess does. It locks the account before the membership, as a
// login does, so that accepting an invitation comes either before it or after it. ClearIfOrphaned is for after it. Errors:
// not_found, last_owner.
func End(ctx context.Context, tx *access.Tx, life store.SessionLifetime, owners Owners, on doorward.Object, endKeys func() (revoked, transferred int64, err error)) (doorward.Ended, error) {
	if _, err := tx.LockAccount(ctx, on.ID); err != nil {
		return doorward.Ended{}, err
	}
	existed, err := tx.DeleteMembership(ctx, on.TenantID, on.ID)
	if err == nil && !existed {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	if err == nil {
		err = owners.Keep(ctx, tx, on.TenantID, on.Held)
	}
	if err != nil {
		return doorward.Ended{}, err
	}
	return EndAccess(ctx, tx, life, on, endKeys)
}

// ClearIfOrphaned deletes the password, the factors and the known browsers of an account that is in
// no tenant. The user sets a new password with the next invitation.
func ClearIfOrphaned(ctx context.Context, tx *access.Tx, id string) error {
	remaining, err := tx.CountMemberships(ctx, id)
	if err != nil || remaining > 0 {
		return err
	}
	return tx.ClearCredentials(ctx, id)
}

// RevokeKeys revokes the API keys that the member owns, with an event for each.
func RevokeKeys(ctx context.Context, tx *access.Tx, on doorward.Object) (int64, error) {
	ids, err := tx.RevokeAPIKeysOf(ctx, on.TenantID, on.ID)
	for _, id := range ids {
		key := doorward.Object{Type: "key", ID: id, TenantID: on.TenantID}
		err = errors.Join(err, tx.RecordAlso(ctx, doorward.APIKeyRevoke, key, doorward.Change{Field: "status", To: string(doorward.APIKeyRevoked)}))
	}
	return int64(len(ids)), err
}

// endSetupLinks deletes the set-up links that the member has made, with an event for each: a member who is resumed
// finds none alive.
func endSetupLinks(ctx context.Context, tx *access.Tx, on doorward.Object) error {
	links, err := tx.DeleteSetupLinksOf(ctx, on.TenantID, on.ID)
	for _, l := range links {
		con := doorward.Object{Type: "connection", ID: l.ConnectionID, TenantID: l.TenantID}
		err = errors.Join(err, tx.RecordAlso(ctx, doorward.SetupLinkManage, con, doorward.Change{Field: doorward.FieldSetupLink, From: l.ID}))
	}
	return err
}

// Owners watches that tenants have an active OWNER.
type Owners struct {
	Operator string // address that gets mails about tenants without one; empty: none are sent
}

// Keep is called after a change to a member who was an OWNER if previous says so. It returns last_owner
// if no active OWNER remains in an active tenant. In a frozen or closing one nobody must stay for that:
// the loss is recorded and reported. It counts under the lock on the tenant, and only if it must:
// counting is slow in a large tenant.
func (o Owners) Keep(ctx context.Context, tx *access.Tx, tenantID string, previous doorward.Role) error {
	if previous != doorward.RoleOwner {
		return nil
	}
	tenant, err := tx.Tenant(ctx, tenantID)
	if err != nil {
		return err
	}
	if tenant.Status != doorward.TenantActive {
		return o.Report(ctx, tx, tenantID, previous)
	}
	n, err := tx.CountActiveOwners(ctx, tenantID)
	if err == nil && n == 0 {
		err = doorward.Fail(doorward.CodeLastOwner, "")
	}
	return err
}

// Report is Keep for a change that must not be refused.
func (o Owners) Report(ctx context.Context, tx *access.Tx, tenantID string, previous doorward.Role) error {
	if previous != doorward.RoleOwner {
		return nil
	}
	n, err := tx.CountActiveOwners(ctx, tenantID)
	if err != nil || n > 0 {
		return err
	}
	on := doorward.Object{Type: "tenant", ID: tenantID} // in the trail of the installation
	if o.Operator == "" {
		return tx.RecordAlso(ctx, doorward.TenantOwnerless, on)
	}
	return tx.NotifyAlso(ctx, store.MailTenantOwnerless, []string{o.Operator}, doorward.TenantOwnerless, on)
}

// Suspend suspends the member m, as an administrator would, because of the transaction's action on the
// account. It records that in the trail of the tenant and tells the person, by the address, and the
// managers of the tenant. A member whom an administrator has suspended stays as it is. The caller has locked the tenant and the
// account, and then calls Owners.
func Suspend(ctx context.Context, tx *access.Tx, life store.SessionLifetime, m doorward.User, address string) error {
	changed, err := Hold(ctx, tx, m, doorward.ByAdministrator)
	if err != nil || !changed {
		return err
	}
	is, err := tx.User(ctx, m.TenantID, m.ID)
	if err != nil {
		return err
	}
	on := Object(m)
	ended, err := EndAccess(ctx, tx, life, on, nil)
	if err != nil {
		return err
	}
	to, err := access.EmailsOf(ctx, tx.Reader, m.TenantID, access.Managers...)
	if err != nil {
		return err
	}
	changes := append(StatusChanges(m, is), doorward.Change{Field: "cause", To: string(doorward.AccountEmail)})
	changes = append(changes, access.EndedChanges(ended)...)
	return tx.NotifyAlso(ctx, store.MailAddressSuspended, append(to, address), doorward.UserSuspend, on, changes...)
}
