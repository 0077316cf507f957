package factor

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Reset lets a member set up factors again. It ends the member's sessions in the tenant and mails
// the member a code for ConfirmReset. It doesn't remove factors itself, since they protect the
// account in other tenants, too. The result doesn't show whether the member has factors. Errors:
// forbidden, also for oneself; not_found.
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
		// A code that was mailed before works until the next one is made: this mail may be held back.
		if err := tx.ForgetProofsIn(ctx, member.TenantID, member.ID, store.PurposeFactorReset); err != nil {
			return err
		}
		return tx.Notify(ctx, store.MailFactorsReset, member.Email)
	}))
	ended.Revocation = revocation
	return ended, err
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

// ConfirmReset removes all factors and recovery codes of the account, by the code of the mail and the
// password. Errors: challenge_over, invalid_credentials, too_many_attempts.
func (f *Factors) ConfirmReset(ctx context.Context, by doorward.Caller, token, password string) (doorward.Revocation, error) {
	c, account, err := f.openReset(ctx, token)
	if err != nil {
		return doorward.Revocation{}, err
	}
	proof, err := f.verifier.CheckForAccount(ctx, by, account.ID, account.Email, password)
	if err != nil {
		return doorward.Revocation{}, err
	}
	by = by.As(doorward.User{ID: account.ID, Email: account.Email})
	revocation, err := f.writer.Do(ctx, by, doorward.MFARecover, userObject(account.ID, c.TenantID), func(tx *access.Tx) error {
		if err := proof.Lock(ctx, tx, doorward.Fail(doorward.CodeInvalidCredentials, "")); err != nil {
			return err
		}
		if err := explainResetOver(challengeOverUnless(tx.TakeChallenge(ctx, c.hash[:]))); err != nil {
			return err
		}
		if err := proof.Succeed(ctx, tx.Tx); err != nil {
			return err
		}
		return f.removeAll(ctx, tx, account)
	})
	return revocation, proof.FailIfRefused(ctx, err)
}

// openReset returns the challenge of a mail and its account. The challenge stays valid when the
// password changes, since ConfirmReset asks for the present one.
func (f *Factors) openReset(ctx context.Context, token string) (Challenge, doorward.Account, error) {
	parsed, err := secret.Parse(token)
	if err != nil {
		return Challenge{}, doorward.Account{}, explainResetOver(ChallengeOver())
	}
	c := Challenge{hash: parsed.Hash()}
	if c.Challenge, err = f.db.Read().Challenge(ctx, c.hash[:], store.PurposeFactorReset, doorward.ChallengeTries, f.db.Now()); err != nil {
		return c, doorward.Account{}, explainResetOver(challengeOverIfNone(err))
	}
	account, err := f.db.Read().Account(ctx, c.UserID)
	return c, account, explainResetOver(challengeOverIfNone(err))
}

// explainResetOver adds the text for the code of a mail to challenge_over.
func explainResetOver(err error) error {
	if !doorward.HasCode(err, doorward.CodeChallengeOver) {
		return err
	}
	return doorward.Fail(doorward.CodeChallengeOver, "The code was used, was replaced by a newer one, or is older than %d hours. Ask an administrator for another.", doorward.FactorResetLife/time.Hour)
}

// ShowReset returns the address of the account that the code of a mail is for. Errors:
// challenge_over.
func (f *Factors) ShowReset(ctx context.Context, token string) (string, error) {
	_, account, err := f.openReset(ctx, token)
	return account.Email, err
}

// removeAll removes the account's factors and recovery codes, and notifies the person.
func (f *Factors) removeAll(ctx context.Context, tx *access.Tx, account doorward.Account) error {
	if err := tx.DeleteFactors(ctx, account.ID); err != nil {
		return err
	}
	if _, err := f.afterChange(ctx, tx, account.ID); err != nil {
		return err
	}
	if err := credential.ClearCodes(ctx, tx.Tx, account.ID); err != nil {
		return err
	}
	return notify(ctx, tx, store.MailFactorsRemoved, account.Email)
}

// ResetByAddress is the operator's reset of an account by its address: it removes all factors at
// once, and ends all sessions. Errors: not_found.
func (f *Factors) ResetByAddress(ctx context.Context, by doorward.Caller, address string) (doorward.Ended, error) {
	var ended doorward.Ended
	account, err := f.byAddress(ctx, address)
	if err != nil {
		return ended, err
	}
	home, err := credential.HomeTenant(ctx, f.db.Read(), account.ID, "")
	if err != nil {
		return ended, err
	}
	revocation, err := f.writer.Do(ctx, by, doorward.MFAReset, userObject(account.ID, home), func(tx *access.Tx) error {
		ended = doorward.Ended{}
		if locked, err := tx.LockAccount(ctx, account.ID); err != nil || !locked {
			return notFoundUnless(locked, err)
		}
		sessions, err := tx.DeleteUserSessions(ctx, f.lifetime, account.ID, "")
		if err != nil {
			return err
		}
		for _, n := range sessions {
			ended.Sessions += n
		}
		if err := tx.RecordEndedByTenant(ctx, account.ID, sessions); err != nil {
			return err
		}
		return f.removeAll(ctx, tx, account)
	})
	ended.Revocation = revocation
	return ended, err
}

func (f *Factors) byAddress(ctx context.Context, address string) (doorward.Account, error) {
	email, err := mailaddr.Parse(address)
	if err != nil {
		return doorward.Account{}, doorward.Fail(doorward.CodeNotFound, "This is %s.", err)
	}
	account, err := f.db.Read().AccountByEmail(ctx, email)
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeNotFound, "No account has this address.")
	}
	return account, err
}
