package incident

import (
	"context"
	"errors"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/progress"
	"github.com/doorward/doorward/store"
)

const (
	// passwordBatch is how many accounts one transaction locks.
	passwordBatch = 2000
	// mailBatch is how many people one transaction mails. Each has an event in a trail, too.
	mailBatch = 500
)

// People says whose passwords ForceReset removes; the zero value: everybody's.
type People struct {
	Email    string // of one account
	TenantID string // of its members
}

// Reset is what ForceReset has done.
type Reset struct {
	People   int // whose password was removed
	Mails    int // that were queued, also for people whose password an earlier call has removed
	Sessions int64
}

// IsBegun reports whether something was done.
func (r Reset) IsBegun() bool { return r != Reset{} }

func (r *Reset) add(other Reset) {
	r.People, r.Mails, r.Sessions = r.People+other.People, r.Mails+other.Mails, r.Sessions+other.Sessions
}

// ForceReset removes the passwords of people, imported ones too, so that nobody can use or guess them. It ends
// their known browsers, earlier resets and sessions, and mails each of them a reset. Second factors, passkeys and
// identities stay. The trail of each tenant has an event for each member. Of one account, it is one transaction, and
// changes nothing if there is no password.
//
// Of a tenant or of everybody, what is urgent comes first: all sessions in the tenants end, also of people without a
// password; then passwords are removed; then mails are queued, also those that an interrupted call has left. It
// returns what is done, also with an error. Errors: not_found, for an unknown account or tenant.
func (i *Incidents) ForceReset(ctx context.Context, by doorward.Caller, whose People) (total Reset, err error) {
	r := &reset{i, by, whose.TenantID, doorward.Object{Type: "installation"}}
	if whose.Email != "" {
		return r.one(ctx, whose.Email)
	}
	if whose.TenantID != "" {
		r.on = doorward.Object{Type: "tenant", ID: whose.TenantID}
	}
	if total.Sessions, err = i.endSessions(ctx, by, doorward.IncidentForceReset, Sessions{TenantID: whose.TenantID}); err != nil {
		return total, err
	}
	done, err := r.passwords(ctx)
	total.add(done)
	if err != nil {
		return total, err
	}
	total.Mails, err = r.mails(ctx)
	return total, err
}

// reset is a call of ForceReset.
type reset struct {
	*Incidents
	by       doorward.Caller
	tenantID string          // empty: of all tenants
	on       doorward.Object // of the installation's events
}

// one resets the account of an address.
func (r *reset) one(ctx context.Context, address string) (done Reset, err error) {
	account, err := proof.FindAccount(ctx, r.db.Read(), address)
	if err != nil {
		return done, err
	}
	r.on = doorward.Object{Type: "user", ID: account.ID}
	_, err = r.writer.Do(ctx, r.by, doorward.IncidentForceReset, r.on, func(tx *access.Tx) error {
		done = Reset{}
		forgotten, err := tx.ForgetPasswords(ctx, r.lifetime, []string{account.ID})
		if err != nil {
			return err
		}
		if len(forgotten.UserIDs) == 0 {
			tx.SkipEvent()
			return nil
		}
		sessions := forgotten.Sessions[account.ID]
		done = Reset{People: 1, Mails: 1, Sessions: sum(sessions)}
		r.record(tx, done)
		if _, err := tx.TakeForgottenAccount(ctx, account.ID); err != nil {
			return err
		}
		_, err = r.mail(ctx, tx, account.ID, sessions)
		return err
	})
	return done, err
}

// passwords removes all passwords, in batches.
func (r *reset) passwords(ctx context.Context) (total Reset, err error) {
	all, err := r.db.Read().CountWithPassword(ctx, r.tenantID)
	progress.Step(ctx, "removing passwords", int64(all), nil)
	for after := ""; err == nil; {
		var ids []string
		if ids, err = r.db.Read().AccountsWithPassword(ctx, r.tenantID, after, passwordBatch); err != nil || len(ids) == 0 {
			break
		}
		var done Reset
		done, err = r.passwordBatch(ctx, ids)
		total.add(done)
		progress.Add(ctx, int64(len(ids)))
		after = ids[len(ids)-1]
	}
	return total, err
}

// passwordBatch removes the passwords of the accounts in one transaction. The sessions that it ends were opened
// since all were ended, or in another tenant.
func (r *reset) passwordBatch(ctx context.Context, ids []string) (done Reset, err error) {
	_, err = r.writer.Do(ctx, r.by, doorward.IncidentForceReset, r.on, func(tx *access.Tx) error {
		done = Reset{}
		forgotten, err := tx.ForgetPasswords(ctx, r.lifetime, ids)
		if err != nil {
			return err
		}
		if len(forgotten.UserIDs) == 0 { // others have changed or erased them since
			tx.SkipEvent()
			return nil
		}
		byTenant := map[string]int64{}
		for _, sessions := range forgotten.Sessions {
			for tenant, n := range sessions {
				byTenant[tenant] += n
			}
		}
		done = Reset{People: len(forgotten.UserIDs), Sessions: sum(byTenant)}
		r.record(tx, done)
		for tenant, n := range byTenant {
			err = errors.Join(err, tx.RecordAlso(ctx, doorward.IncidentForceReset, tenantObject(tenant), access.EndedChanges(doorward.Ended{Sessions: n})...))
		}
		return err
	})
	return done, err
}

// record adds to the event of the installation what a transaction has done.
func (r *reset) record(tx *access.Tx, done Reset) {
	tx.Changed("people", "", strconv.Itoa(done.People))
	tx.RecordEnded(doorward.Ended{Sessions: done.Sessions})
}

// mails queues the mails of all who have lost their password, in batches, and returns how many.
func (r *reset) mails(ctx context.Context) (total int, err error) {
	left, err := r.db.Read().CountForgotten(ctx)
	progress.Step(ctx, "queueing mails", int64(left), nil)
	for err == nil && left > 0 {
		var done, mails int
		done, mails, err = r.mailBatch(ctx)
		total += mails
		progress.Add(ctx, int64(done))
		if err == nil && done < mailBatch { // all, unless another call has taken some of them meanwhile
			left, err = r.db.Read().CountForgotten(ctx)
		}
	}
	return total, err
}

// mailBatch mails some of the people in one transaction, except those who have set another password since. It returns
// how many there were, and how many it has mailed.
func (r *reset) mailBatch(ctx context.Context) (done, mails int, err error) {
	_, err = r.writer.Do(ctx, r.by, doorward.IncidentForceReset, doorward.Object{Type: "installation"}, func(tx *access.Tx) error {
		ids, err := tx.TakeForgotten(ctx, mailBatch)
		if err != nil {
			return err
		}
		if done, mails = len(ids), 0; done == 0 {
			tx.SkipEvent()
			return nil
		}
		for _, id := range ids {
			mailed, err := r.mail(ctx, tx, id, nil)
			if err != nil {
				return err
			}
			if mailed {
				mails++
			}
		}
		tx.Changed("mailsQueued", "", strconv.Itoa(mails))
		return nil
	})
	return done, mails, err
}

// mail queues the mail for a person without a password, ends the delays of the address, and records in the person's
// tenants that the password was removed, with the number of sessions that have ended there. It reports false for a
// person who has set another password since.
func (r *reset) mail(ctx context.Context, tx *access.Tx, id string, sessions map[string]int64) (bool, error) {
	account, err := tx.Account(ctx, id)
	if err != nil {
		return false, err
	}
	if err := recordInTenants(ctx, tx, id, sessions); err != nil || account.PasswordHash != "" {
		return false, err
	}
	return true, errors.Join(
		proof.ClearDelays(ctx, tx.Tx, account.Email),
		tx.QueueMail(ctx, store.MailPasswordForgotten, account.Email, ""),
	)
}

// recordInTenants records the removal in the trail of each tenant of the person, with the number of sessions
// that it has ended there; for a person in no tenant, in that of the installation.
func recordInTenants(ctx context.Context, tx *access.Tx, userID string, ended map[string]int64) error {
	memberships, err := tx.Memberships(ctx, userID)
	if err != nil {
		return err
	}
	if len(memberships) == 0 {
		return tx.RecordAlso(ctx, doorward.IncidentForceReset, doorward.Object{Type: "user", ID: userID})
	}
	for _, m := range memberships {
		on := doorward.Object{Type: "user", ID: userID, TenantID: m.TenantID}
		err = errors.Join(err, tx.RecordAlso(ctx, doorward.IncidentForceReset, on, access.EndedChanges(doorward.Ended{Sessions: ended[m.TenantID]})...))
	}
	return err
}

func sum(sessions map[string]int64) (all int64) {
	for _, n := range sessions {
		all += n
	}
	return all
}
