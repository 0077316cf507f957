package incident

import (
	"context"
	"errors"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/store"
)

// resetBatch is how many accounts one transaction locks.
const resetBatch = 50

// People says whose passwords ForceReset removes; the zero value: everybody's.
type People struct {
	Email    string // of one account
	TenantID string // of its members
}

// Reset is what ForceReset has done so far.
type Reset struct {
	People   int // whose password was removed
	Sessions int64
}

// ForceReset removes the passwords of people, imported ones too, so that nobody can use or guess them. It ends
// their sessions, known browsers and earlier resets, and mails each of them a reset. People without a
// password are passed over: nothing of theirs changes. Second factors, passkeys and identities stay. The
// trail of each tenant has an event for each member. It calls progress after each transaction. Errors:
// not_found, for an unknown account or tenant.
func (i *Incidents) ForceReset(ctx context.Context, by doorward.Caller, whose People, progress func(Reset)) (total Reset, err error) {
	next, on, err := i.accounts(ctx, whose)
	if err != nil {
		return total, err
	}
	for after := ""; ; {
		accounts, err := next(ctx, after)
		if err != nil || len(accounts) == 0 {
			return total, err
		}
		done, err := i.resetBatch(ctx, by, on, accounts)
		if err != nil {
			return total, err
		}
		total.People, total.Sessions = total.People+done.People, total.Sessions+done.Sessions
		progress(total)
		after = accounts[len(accounts)-1].ID
	}
}

// nextAccounts returns the next accounts with a password whose ids are greater than after, in order.
type nextAccounts func(ctx context.Context, after string) ([]doorward.Account, error)

// accounts returns a function that reads the accounts, and the target of the installation's events.
func (i *Incidents) accounts(ctx context.Context, whose People) (nextAccounts, doorward.Object, error) {
	on := doorward.Object{Type: "installation"}
	if whose.Email != "" {
		account, err := proof.FindAccount(ctx, i.db.Read(), whose.Email)
		one := func(_ context.Context, after string) ([]doorward.Account, error) {
			if after != "" || account.PasswordHash == "" {
				return nil, nil
			}
			return []doorward.Account{account}, nil
		}
		return one, doorward.Object{Type: "user", ID: account.ID}, err
	}
	if whose.TenantID != "" {
		if err := i.checkTenant(ctx, whose.TenantID); err != nil {
			return nil, on, err
		}
		on = doorward.Object{Type: "tenant", ID: whose.TenantID}
	}
	return func(ctx context.Context, after string) ([]doorward.Account, error) {
		return i.db.Read().AccountsWithPassword(ctx, whose.TenantID, after, resetBatch)
	}, on, nil
}

// resetBatch resets the accounts in one transaction.
func (i *Incidents) resetBatch(ctx context.Context, by doorward.Caller, on doorward.Object, accounts []doorward.Account) (done Reset, err error) {
	_, err = i.writer.Do(ctx, by, doorward.IncidentForceReset, on, func(tx *access.Tx) error {
		done = Reset{}
		for _, a := range accounts {
			ended, changed, err := i.reset(ctx, tx, a.ID)
			if err != nil {
				return err
			}
			if changed {
				done.People++
			}
			for _, n := range ended {
				done.Sessions += n
			}
		}
		if done.People == 0 { // others have changed or erased them since
			tx.SkipEvent()
			return nil
		}
		tx.Changed("people", "", strconv.Itoa(done.People))
		tx.RecordEnded(doorward.Ended{Sessions: done.Sessions})
		return nil
	})
	return done, err
}

// reset removes the password of an account and ends what was opened with it. It reports false if there is none.
func (i *Incidents) reset(ctx context.Context, tx *access.Tx, id string) (ended map[string]int64, changed bool, err error) {
	if changed, err = tx.ForgetPassword(ctx, id); err != nil || !changed {
		return nil, false, err
	}
	account, err := tx.Account(ctx, id) // its address may have changed since it was read
	if err != nil {
		return nil, false, err
	}
	if ended, err = proof.EndAccess(ctx, tx, i.lifetime, id, proof.Keep{}); err != nil {
		return nil, false, err
	}
	err = errors.Join(
		tx.ForgetBrowsers(ctx, id),
		tx.ExpireResets(ctx, id),
		proof.ClearDelays(ctx, tx.Tx, account.Email),
		tx.QueueMail(ctx, store.MailPasswordForgotten, account.Email, ""),
		recordInTenants(ctx, tx, doorward.IncidentForceReset, id, ended),
	)
	return ended, true, err
}

// recordInTenants records the action in the trail of each tenant of the person, with the number of sessions
// that it has ended there; for a person in no tenant, in that of the installation.
func recordInTenants(ctx context.Context, tx *access.Tx, action doorward.Action, userID string, ended map[string]int64) error {
	memberships, err := tx.Memberships(ctx, userID)
	if err != nil {
		return err
	}
	if len(memberships) == 0 {
		return tx.RecordAlso(ctx, action, doorward.Object{Type: "user", ID: userID})
	}
	for _, m := range memberships {
		on := doorward.Object{Type: "user", ID: userID, TenantID: m.TenantID}
		err = errors.Join(err, tx.RecordAlso(ctx, action, on, access.EndedChanges(doorward.Ended{Sessions: ended[m.TenantID]})...))
	}
	return err
}
