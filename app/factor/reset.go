package factor

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Reset gives the word of the member's tenant that the member's factors may be removed, and ends the
// sessions in this tenant. The word reaches no further: the factors protect the account in other tenants,
// too. A mail tells the person; it has a code for ConfirmReset once no other tenant's word is missing.
// The result doesn't show whether the member has factors or is in other tenants. Errors: forbidden, also
// for oneself; not_found.
func (f *Factors) Reset(ctx context.Context, by doorward.Caller, target doorward.User) (doorward.Ended, error) {
	var ended doorward.Ended
	revocation, err := f.writer.DoAll(ctx, by, f.resetOperation(ctx, target, func(tx *access.Tx, member doorward.User) (err error) {
		if member.ID == by.ID {
			return doorward.Fail(doorward.CodeForbidden, "You can't reset your own factors. Remove them, or ask another administrator.")
		}
		if ended.Sessions, err = tx.DeleteMemberSessions(ctx, f.lifetime, member.TenantID, member.ID); err != nil {
			return err
		}
		tx.RecordEnded(ended)
		if err := tx.ForgetProofsIn(ctx, member.TenantID, member.ID); err != nil {
			return err
		}
		return giveWord(ctx, tx, member)
	}))
	ended.Revocation = revocation
	return ended, err
}

// giveWord records the tenant's word and queues the mail. Beyond the limit of mails the last one is good.
func giveWord(ctx context.Context, tx *access.Tx, member doorward.User) error {
	mails, err := tx.GiveFactorWord(ctx, member.TenantID, member.ID)
	if err != nil || mails > doorward.FactorMailsPerHour {
		return err
	}
	reset, err := tx.FactorReset(ctx, member.ID, tx.Now)
	if err != nil {
		return err
	}
	kind := store.MailFactorsWord
	if reset.IsComplete() {
		kind = store.MailFactorsReset
	}
	return tx.Notify(ctx, kind, member.Email)
}

// KeepFactors makes all words for a reset of the caller's factors void, and ends the code of a mail. It
// takes a session in which a factor was proved, of any age: a person who has the factor needs no reset, and a
// thief of the password alone must not keep the owner out. It does nothing where nothing waits. Errors:
// step_up_required, sign_in_required, unauthenticated.
func (f *Factors) KeepFactors(ctx context.Context, by doorward.Caller) error {
	_, err := f.writer.Do(ctx, by, doorward.MFAKeep, userObject(by.ID, by.TenantID), func(tx *access.Tx) error {
		if _, err := tx.LockAccount(ctx, by.ID); err != nil {
			return err
		}
		if err := tx.NeedFactorNow(ctx); err != nil {
			return err
		}
		reset, err := tx.FactorReset(ctx, by.ID, tx.Now)
		if err != nil {
			return err
		}
		if len(reset.Given) == 0 {
			tx.SkipEvent()
		}
		return voidReset(ctx, tx, by.ID)
	})
	return err
}

// voidReset makes the words for the account's factors void, and ends the code of a mail.
func voidReset(ctx context.Context, tx *access.Tx, userID string) error {
	if err := tx.VoidFactorWords(ctx, userID); err != nil {
		return err
	}
	return tx.ExpireFactorCodes(ctx, userID)
}

// recordIn records the action in the trail of each of the tenants, with the sessions that it has ended
// there; ended loses these. None of the tenants learns of another.
func recordIn(ctx context.Context, tx *access.Tx, action doorward.Action, userID string, tenants []doorward.User, ended map[string]int64) error {
	for i, m := range tenants {
		changes := access.EndedChanges(doorward.Ended{Sessions: ended[m.TenantID]})
		if i == 0 {
			tx.SetTenant(m.TenantID)
			continue // RecordEndedByTenant adds the sessions
		}
		delete(ended, m.TenantID)
		if err := tx.RecordAlso(ctx, action, userObject(userID, m.TenantID), changes...); err != nil {
			return err
		}
	}
	return nil
}

// resetOperation returns the operation mfa.reset. It reads the member again under the locks, for the
// second decision and for write.
func (f *Factors) resetOperation(ctx context.Context, target doorward.User, write func(*access.Tx, doorward.User) error) access.Operation {
	current := func(read store.Reader) (doorward.User, error) {
		member, err := read.User(ctx, target.TenantID, target.ID)
		if errors.Is(err, store.ErrNone) {
			err = doorward.Fail(doorward.CodeNotFound, "")
		}
		return member, err
	}
	on := userObject(target.ID, target.TenantID)
	on.Held = target.Role
	return access.Operation{
		Action: doorward.MFAReset, On: on,
		ReadObject: func(tx *store.Tx) (doorward.Object, error) {
			member, err := current(tx.Reader)
			on := on
			on.Held = member.Role
			return on, err
		},
		Write: func(tx *access.Tx) error {
			member, err := current(tx.Reader)
			if err != nil {
				return err
			}
			if _, err := tx.LockAccount(ctx, member.ID); err != nil {
				return err
			}
			return write(tx, member)
		},
	}
}

// ConfirmReset removes all factors and recovery codes of the account and ends all sessions, by the code of
// the mail and the password. The words of the tenants are judged again: if one has lapsed, or a membership
// came since, the code is over and the words that hold stay. Errors: reset_not_found, reset_expired,
// reset_used, invalid_credentials, too_many_attempts.
func (f *Factors) ConfirmReset(ctx context.Context, by doorward.Caller, token, password string) (doorward.Revocation, error) {
	hash, account, err := f.openReset(ctx, token)
	if err != nil {
		return doorward.Revocation{}, err
	}
	proved, err := f.verifier.CheckForAccount(ctx, by, account.ID, account.Email, password)
	if err != nil {
		return doorward.Revocation{}, err
	}
	by = by.As(doorward.User{ID: account.ID, Email: account.Email})
	isComplete := false
	revocation, err := f.writer.Do(ctx, by, doorward.MFARecover, userObject(account.ID, ""), func(tx *access.Tx) error {
		if err := proved.Lock(ctx, tx, doorward.Fail(doorward.CodeInvalidCredentials, "")); err != nil {
			return err
		}
		if _, err := checkCode(tx.FactorCode(ctx, hash[:]))(tx.Now); err != nil {
			return err
		}
		reset, err := tx.FactorReset(ctx, account.ID, tx.Now)
		if err != nil {
			return err
		}
		if isComplete = reset.IsComplete(); !isComplete {
			tx.SkipEvent()
			if err := tx.ExpireFactorCodes(ctx, account.ID); err != nil {
				return err
			}
			return proved.Pause(ctx, tx.Tx)
		}
		if used, err := tx.UseFactorCode(ctx, hash[:]); err != nil || !used {
			return cmp.Or(err, error(resetExpired()))
		}
		if err := proved.Succeed(ctx, tx.Tx); err != nil {
			return err
		}
		return f.endAll(ctx, tx, doorward.MFARecover, account, reset.Given, &doorward.Ended{})
	})
	if err == nil && !isComplete {
		return revocation, resetExpired()
	}
	return revocation, proved.FailIfRefused(ctx, err)
}

// endAll removes the account's factors and ends all access to it. The trails of the tenants have it.
func (f *Factors) endAll(ctx context.Context, tx *access.Tx, action doorward.Action, account doorward.Account, tenants []doorward.User, ended *doorward.Ended) error {
	sessions, err := proof.EndAccess(ctx, tx, f.lifetime, account.ID, proof.Keep{})
	if err != nil {
		return err
	}
	for _, n := range sessions {
		ended.Sessions += n
	}
	if err := recordIn(ctx, tx, action, account.ID, tenants, sessions); err != nil {
		return err
	}
	if err := tx.RecordEndedByTenant(ctx, account.ID, sessions); err != nil {
		return err
	}
	return f.removeAll(ctx, tx, account)
}

func resetExpired() *doorward.Error {
	return doorward.Fail(doorward.CodeResetExpired, "The code was replaced by a newer one, is older than %d hours, or an organisation's word for the reset is missing by now. Ask an administrator of each of your organisations to ask for the reset again.", doorward.FactorResetLife/time.Hour)
}

// openReset returns the hash of an open code of a mail, and its account. The code stays valid when the
// password changes, since ConfirmReset asks for the present one.
func (f *Factors) openReset(ctx context.Context, token string) (secret.Hash, doorward.Account, error) {
	parsed, err := secret.Parse(token)
	if err != nil {
		return secret.Hash{}, doorward.Account{}, doorward.Fail(doorward.CodeResetNotFound, "")
	}
	hash := parsed.Hash()
	code, err := checkCode(f.db.Read().FactorCode(ctx, hash[:]))(f.db.Now())
	if err != nil {
		return hash, doorward.Account{}, err
	}
	account, err := f.db.Read().Account(ctx, code.UserID)
	if errors.Is(err, store.ErrNone) { // erased since, with the code
		err = doorward.Fail(doorward.CodeResetNotFound, "")
	}
	return hash, account, err
}

// checkCode returns a function that says why the code that was read isn't open at an instant.
func checkCode(code store.FactorCode, err error) func(now time.Time) (store.FactorCode, error) {
	return func(now time.Time) (store.FactorCode, error) {
		switch {
		case errors.Is(err, store.ErrNone):
			return code, doorward.Fail(doorward.CodeResetNotFound, "")
		case err != nil:
			return code, err
		case code.UsedAt != nil:
			return code, doorward.Fail(doorward.CodeResetUsed, "")
		case !now.Before(code.ExpiresAt):
			return code, resetExpired()
		}
		return code, nil
	}
}

// ShowReset returns the address of the account that the code of a mail is for. Errors: reset_not_found,
// reset_expired, reset_used.
func (f *Factors) ShowReset(ctx context.Context, token string) (string, error) {
	_, account, err := f.openReset(ctx, token)
	return account.Email, err
}

// codeKept is how long a code is known after its end, so that the answer says what became of it.
const codeKept = 7 * 24 * time.Hour

func (f *Factors) sweepResets(ctx context.Context) error {
	return errors.Join(
		f.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
			return tx.DeleteOldFactorWords(ctx, tx.Now.Add(-doorward.FactorWordLife), limit)
		}),
		f.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
			return tx.DeleteOldFactorCodes(ctx, tx.Now.Add(-codeKept), limit)
		}),
	)
}

// removeAll removes the account's factors and recovery codes, voids the words for that, and notifies the
// person.
func (f *Factors) removeAll(ctx context.Context, tx *access.Tx, account doorward.Account) error {
	if err := tx.DeleteFactors(ctx, account.ID); err != nil {
		return err
	}
	if err := tx.VoidFactorWords(ctx, account.ID); err != nil {
		return err
	}
	if _, err := f.afterChange(ctx, tx, account.ID); err != nil {
		return err
	}
	if err := proof.ClearCodes(ctx, tx.Tx, account.ID); err != nil {
		return err
	}
	return notify(ctx, tx, store.MailFactorsRemoved, account.Email)
}

// ResetByAddress is the operator's reset of an account by its address: it removes all factors at
// once, and ends all sessions. It needs no tenant's word. Errors: not_found.
func (f *Factors) ResetByAddress(ctx context.Context, by doorward.Caller, address string) (doorward.Ended, error) {
	var ended doorward.Ended
	account, err := proof.FindAccount(ctx, f.db.Read(), address)
	if err != nil {
		return ended, err
	}
	home, err := proof.HomeTenant(ctx, f.db.Read(), account.ID, "")
	if err != nil {
		return ended, err
	}
	revocation, err := f.writer.Do(ctx, by, doorward.MFAReset, userObject(account.ID, home), func(tx *access.Tx) error {
		ended = doorward.Ended{}
		if locked, err := tx.LockAccount(ctx, account.ID); err != nil || !locked {
			return notFoundUnless(locked, err)
		}
		reset, err := tx.FactorReset(ctx, account.ID, tx.Now)
		if err != nil {
			return err
		}
		return f.endAll(ctx, tx, doorward.MFAReset, account, append(reset.Given, reset.Missing...), &ended)
	})
	ended.Revocation = revocation
	return ended, err
}
