package account

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// UndoEmail restores the address to which the code was mailed, ends all sessions, forgets all known
// browsers, disables what somebody may have set up before (disableFactors), deletes identities that were joined since, suspends what the old address
// has no claim to (suspendLater), and mails a link for a new password. A change that isn't confirmed yet
// is cancelled; later changes can no longer be confirmed or undone. Errors: validation_failed,
// email_change_not_found, email_change_over, account_exists, unavailable.
func (a *Accounts) UndoEmail(ctx context.Context, by doorward.Caller, token string) (doorward.Revocation, error) {
	change, err := a.findChange(ctx, token, a.db.Read().EmailChangeByUndo)
	if err == nil {
		err = checkUndoable(change, a.db.Now())
	}
	if err != nil {
		return doorward.Revocation{}, err
	}
	revocation, err := a.withLocks(ctx, asOwner(by, change), doorward.AccountEmail, change.UserID, func(tx *access.Tx, memberships []doorward.User) error {
		tx.Effects.MayEndWaysBack = true // an undo is never refused
		undone, err := tx.UndoEmailChange(ctx, change)
		if err == nil && !undone {
			err = changeOverError()
		}
		if err != nil {
			return err
		}
		return a.undo(ctx, tx, memberships, change)
	})
	return revocation, asAccountExists(err, "Another account has since taken the old address.")
}

func (a *Accounts) undo(ctx context.Context, tx *access.Tx, memberships []doorward.User, change store.EmailChange) error {
	account, err := tx.Account(ctx, change.UserID)
	if err != nil {
		return err
	}
	disabled, err := disableFactors(ctx, tx, change)
	if err != nil {
		return err
	}
	unlinked, err := tx.DeleteIdentitiesSince(ctx, change.UserID, change.CreatedAt)
	if err != nil {
		return err
	}
	if unlinked > 0 {
		disabled = append(disabled, doorward.Change{Field: "identitiesDeleted", To: strconv.FormatInt(unlinked, 10)})
	}
	if err := recordChange(ctx, tx, account.ID, account.Email, change.Old, disabled...); err != nil {
		return err
	}
	if err := a.suspendLater(ctx, tx, memberships, change, account.Email != change.Old); err != nil {
		return err
	}
	if err := a.endEverything(ctx, tx, account); err != nil {
		return err
	}
	if err := proof.ClearLoginNotices(ctx, tx.Tx, account.ID, change.Old); err != nil {
		return err
	}
	if account.Email != change.Old {
		if err := tx.QueueMail(ctx, store.MailEmailRestored, account.Email, change.ID); err != nil {
			return err
		}
		if err := tx.SetEmail(ctx, account.ID, change.Old); err != nil {
			return err
		}
	}
	if err := tx.ReturnToDomains(ctx, account.ID, change.CreatedAt); err != nil {
		return err
	}
	if len(disabled) > 0 {
		if err := tx.Notify(ctx, store.MailFactorsDisabled, change.Old); err != nil {
			return err
		}
	}
	return tx.QueueReset(ctx, change.Old, "")
}

// preparation is how long before a request to change the address somebody may have set up factors of
// their own for it.
const preparation = 7 * 24 * time.Hour

// disableFactors disables the factors and recovery codes that were made since the change was asked for, or
// in the days before: a thief would go on with them. They still count, so that nobody with the password
// alone signs in or sets up another one: the way back is a reset of the factors. It returns what to record.
func disableFactors(ctx context.Context, tx *access.Tx, change store.EmailChange) (recorded []doorward.Change, err error) {
	factors, codes, err := tx.DisableFactorsSince(ctx, change.UserID, change.CreatedAt.Add(-preparation))
	if err != nil {
		return nil, err
	}
	if factors > 0 {
		recorded = append(recorded, doorward.Change{Field: "factorsDisabled", To: strconv.FormatInt(factors, 10)})
	}
	if codes > 0 {
		recorded = append(recorded, doorward.Change{Field: "recoveryCodesDisabled", To: strconv.FormatInt(codes, 10)})
	}
	return recorded, tx.UpdateFactorCounts(ctx, change.UserID)
}

// suspendLater suspends the memberships that began since the change was asked for: they were offered to
// the other address. If that was in use, it also suspends those whose tenants don't allow the old one. An
// undo is never refused: tenants that it leaves without an active OWNER are reported.
func (a *Accounts) suspendLater(ctx context.Context, tx *access.Tx, memberships []doorward.User, change store.EmailChange, wasConfirmed bool) error {
	for _, m := range memberships {
		if m.Status != doorward.UserActive {
			continue
		}
		tenant, err := tx.Tenant(ctx, m.TenantID)
		if err != nil {
			return err
		}
		if m.CreatedAt.Before(change.CreatedAt) && (!wasConfirmed || allowsDomain(tenant, change.Old)) {
			continue
		}
		if err := member.Suspend(ctx, tx, a.lifetime, m, change.Old); err != nil {
			return err
		}
		if err := a.owners.Report(ctx, tx, m.TenantID, m.Role); err != nil {
			return err
		}
	}
	return nil
}

// allowsDomain reports whether the settings of the tenant allow the address.
func allowsDomain(tenant doorward.Tenant, email string) bool {
	domains := tenant.Settings.AllowedDomains
	return len(domains) == 0 || slices.Contains(domains, mailaddr.Domain(email))
}

// endEverything ends access to the account, and what was mailed for it.
func (a *Accounts) endEverything(ctx context.Context, tx *access.Tx, account doorward.Account) error {
	n, err := proof.EndAccess(ctx, tx, a.lifetime, account.ID, proof.Keep{})
	if err != nil {
		return err
	}
	if err := tx.RecordEndedByTenant(ctx, account.ID, n); err != nil {
		return err
	}
	return endMailed(ctx, tx, account.ID)
}

func checkUndoable(c store.EmailChange, now time.Time) error {
	if c.UndoneAt != nil || !now.Before(c.UndoUntil) {
		return changeOverError()
	}
	return nil
}

// ShowUndo returns the address that the token restores. It changes nothing. Errors:
// validation_failed, email_change_not_found, email_change_over, unavailable.
func (a *Accounts) ShowUndo(ctx context.Context, token string) (string, error) {
	change, err := a.findChange(ctx, token, a.db.Read().EmailChangeByUndo)
	if err == nil {
		err = checkUndoable(change, a.db.Now())
	}
	return change.Old, err
}
