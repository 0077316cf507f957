package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/doorward/doorward"
)

// An erasure removes a person's personal data from all tables. DeleteAccount deletes
// the rows of the account; the methods here remove the person's data from other rows. Rows
// about something else, such as an event or an answered invitation, stay, with blanks in
// place of that data.

// Addresses that an account has now are left out. The new address of a change that was
// undone is a former one, too.
const (
	sqlConfirmedFormerEmails = `SELECT e.old_email AS email FROM email_changes e
WHERE e.user_id = $1 AND e.confirmed_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM users u WHERE u.email = e.old_email)
UNION SELECT e.new_email FROM email_changes e
WHERE e.user_id = $1 AND e.confirmed_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM users u WHERE u.email = e.new_email)`
	sqlRequestedEmails = `SELECT DISTINCT e.new_email AS email FROM email_changes e
WHERE e.user_id = $1 AND e.confirmed_at IS NULL AND NOT EXISTS (SELECT 1 FROM users u WHERE u.email = e.new_email)`
)

// ConfirmedFormerEmails returns addresses that the account has had within the time in which
// changes can be undone, and that no account has now.
func (r Reader) ConfirmedFormerEmails(ctx context.Context, userID string) ([]string, error) {
	return list(ctx, r, textField, sqlConfirmedFormerEmails, userID)
}

// The text is that of a doorward.Change.
const sqlRenamesOf = `SELECT changes FROM events WHERE target_id = $1 AND action = 'user.rename' AND outcome = 'done'
  AND replace(changes, '{"field":"email"', '') <> changes ORDER BY at, id`

// EmailsBeforeDirectories returns addresses of the account that directories have replaced, as long as trails say so, and
// that no account has now.
func (r Reader) EmailsBeforeDirectories(ctx context.Context, userID string) (emails []string, err error) {
	fields := func(changes *[]doorward.Change) []any { return []any{lenientChanges{changes}} }
	renames, err := list(ctx, r, fields, sqlRenamesOf, userID)
	for _, c := range slices.Concat(renames...) {
		if err != nil || c.Field != doorward.FieldEmail || c.From == "" {
			continue
		}
		if _, err = r.AccountByEmail(ctx, c.From); errors.Is(err, ErrNone) {
			emails, err = append(emails, c.From), nil
		}
	}
	return emails, err
}

// ClearRequestedEmailCounters deletes the counters of mails to addresses that the account has
// requested and not confirmed, and that no account has. Other rows about these addresses stay:
// anybody can request any address.
func (tx *Tx) ClearRequestedEmailCounters(ctx context.Context, userID string) error {
	emails, err := list(ctx, tx.Reader, textField, sqlRequestedEmails, userID)
	for _, email := range emails {
		if err == nil {
			err = tx.ClearThrottle(ctx, "forgot:"+email)
		}
	}
	return err
}

// BlankedInvitation is an invitation without its address.
type BlankedInvitation struct{ ID, TenantID string }

func blankedInvitationFields(b *BlankedInvitation) []any { return []any{&b.ID, &b.TenantID} }

const (
	blankInvitation = `UPDATE invitations SET email = '', name = '', locale = '', search = ' ', name_key = '', email_key = '', state = CASE WHEN state = 'PENDING' THEN 'EXPIRED' ELSE state END
`
	sqlBlankInvitationsTo       = blankInvitation + `WHERE email = $1 AND (state <> 'PENDING' OR expires_at <= $2) RETURNING id, tenant_id`
	sqlBlankInvitationsAccepted = blankInvitation + `WHERE email <> '' AND state = 'ACCEPTED' AND id IN ` + acceptedBy + ` RETURNING id, tenant_id`
)

// BlankInvitations blanks address and name of the invitations that the user has accepted,
// and of those to one of the emails that can no longer be accepted. It returns them. A pending
// one stays: it is its tenant's offer to the owner of the mailbox.
func (tx *Tx) BlankInvitations(ctx context.Context, userID string, emails []string) ([]BlankedInvitation, error) {
	var all []BlankedInvitation
	for _, email := range emails {
		received, err := list(ctx, tx.Reader, blankedInvitationFields, sqlBlankInvitationsTo, email, micros(tx.Now))
		if err != nil {
			return nil, err
		}
		for _, inv := range received {
			if err := tx.forgetResends(ctx, inv.TenantID, email); err != nil {
				return nil, err
			}
		}
		all = append(all, received...)
	}
	accepted, err := list(ctx, tx.Reader, blankedInvitationFields, sqlBlankInvitationsAccepted, userID)
	return append(all, accepted...), err
}

// forgetResends deletes the counters of mails for invitations to the address, unless an
// invitation is pending.
func (tx *Tx) forgetResends(ctx context.Context, tenantID, email string) error {
	_, err := tx.PendingInvitation(ctx, tenantID, email)
	if !errors.Is(err, ErrNone) {
		return err
	}
	for _, kind := range []string{":", ":first:"} {
		if err := tx.ClearThrottle(ctx, "resend:"+tenantID+kind+email); err != nil {
			return err
		}
	}
	return nil
}

const (
	// blankActor removes what is about the actor of an event, and from an older event everything.
	blankActor = `UPDATE events SET actor_email = '', ip = '', personal = '', salt = NULL, changes = CASE WHEN values_digest IS NULL THEN '' ELSE changes END
`
	isActorLeft = `(salt IS NOT NULL OR actor_email <> '' OR ip <> '' OR personal <> '' OR values_digest IS NULL AND changes <> '')`

	// goesWithTarget selects events in which what is about the actor is erased with the target: a
	// caller without an identity probably was that person. app/audit/walk.go has the same rule.
	goesWithTarget = `(values_digest IS NULL OR actor_type IN ('anonymous', 'system'))`
	// blankTarget removes the values of an event, and what goes with the target.
	blankTarget = `UPDATE events SET changes = '', values_salt = NULL, actor_email = CASE WHEN ` + goesWithTarget + ` THEN '' ELSE actor_email END,
  ip = CASE WHEN ` + goesWithTarget + ` THEN '' ELSE ip END, personal = CASE WHEN ` + goesWithTarget + ` THEN '' ELSE personal END,
  salt = CASE WHEN ` + goesWithTarget + ` THEN NULL ELSE salt END
`
	isTargetLeft = `(changes <> '' OR values_salt IS NOT NULL OR ` + goesWithTarget + ` AND ` + isActorLeft + `)`

	// Events of erasures stay: they name the accounts whose events are blank.
	someEvents = ` AND NOT (action = 'account.erase' AND outcome = 'done') ORDER BY at, id LIMIT $2)`

	sqlBlankEventsBy = blankActor + `WHERE id IN
  (SELECT id FROM events WHERE actor_id = $1 AND ` + isActorLeft + someEvents
	sqlBlankEventsAbout = blankTarget + `WHERE id IN
  (SELECT id FROM events WHERE target_id = $1 AND ` + isTargetLeft + someEvents
	sqlBlankEventsOfInvitation = blankTarget + `WHERE target_id = $1 AND ` + isTargetLeft
	// The creation of a tenant names the address that its first invitation went to.
	sqlTenantCreations = `SELECT e.id AS id FROM events e JOIN invitations i ON e.target_id = i.tenant_id AND e.at = i.created_at
WHERE i.id = $1 AND e.action = 'tenant.create'`
	sqlBlankEvent = blankTarget + `WHERE id = $1`

	sqlBlankOwnEventsBy    = blankActor + `WHERE tenant_id = '' AND actor_id = $1 AND ` + isActorLeft
	sqlBlankOwnEventsAbout = blankTarget + `WHERE tenant_id = '' AND target_id = $1 AND ` + isTargetLeft
)

// BlankEvents blanks, in all trails, what is about the user: as the actor, and as the target. It
// blanks at most limit events of each kind, and reports whether there may be more. What was done
// and when stays, and so do the values of what the user has changed, except in older events; the
// chains remain valid. Events later than the erasure are blanked too: some were committed while it
// waited for a lock.
func (tx *Tx) BlankEvents(ctx context.Context, userID string, limit int) (more bool, err error) {
	for _, query := range []string{sqlBlankEventsBy, sqlBlankEventsAbout} {
		n, err := tx.exec(ctx, query, userID, limit)
		if err != nil {
			return false, err
		}
		more = more || n == int64(limit)
	}
	return more, nil
}

// RedactEvents is BlankEvents for the installation's trail alone, at once.
func (tx *Tx) RedactEvents(ctx context.Context, userID string) error {
	return tx.runEach(ctx, userID, sqlBlankOwnEventsBy, sqlBlankOwnEventsAbout)
}

// runEach runs statements that have one parameter.
func (tx *Tx) runEach(ctx context.Context, parameter string, statements ...string) error {
	for _, query := range statements {
		if err := tx.run(ctx, query, parameter); err != nil {
			return err
		}
	}
	return nil
}

// BlankEventsOfInvitation blanks the values in the events about an invitation. If it
// was the first one of its tenant, it also blanks those of the tenant's creation, and returns the
// ids of the creations.
func (tx *Tx) BlankEventsOfInvitation(ctx context.Context, id string) ([]string, error) {
	if err := tx.run(ctx, sqlBlankEventsOfInvitation, id); err != nil {
		return nil, err
	}
	creations, err := list(ctx, tx.Reader, textField, sqlTenantCreations, id)
	for _, event := range creations {
		if err == nil {
			err = tx.run(ctx, sqlBlankEvent, event)
		}
	}
	return creations, err
}

const sqlTrailsWith = `SELECT e.tenant_id AS id FROM events e LEFT JOIN tenants t ON t.id = e.tenant_id
WHERE e.actor_id = $1 AND (t.closed_at IS NULL OR t.closed_at <> 0) AND (t.id IS NOT NULL OR e.tenant_id = '')
UNION SELECT e.tenant_id FROM events e LEFT JOIN tenants t ON t.id = e.tenant_id
WHERE e.target_id = $1 AND (t.closed_at IS NULL OR t.closed_at <> 0) AND (t.id IS NOT NULL OR e.tenant_id = '')
ORDER BY id`

// TrailsWith returns the tenants in whose trails there are events by the user or about the
// user, in order; the empty id is the installation. Tenants that are being destroyed are left
// out.
func (r Reader) TrailsWith(ctx context.Context, userID string) ([]string, error) {
	return list(ctx, r, textField, sqlTrailsWith, userID)
}

// Erasure is an account that was erased, and of which personal data may be left: other nodes
// may have recorded some a moment later, and a transaction blanks a limited number of events.
type Erasure struct {
	UserID string
	At     time.Time
}

func erasureFields(e *Erasure) []any { return []any{&e.UserID, (*storedTime)(&e.At)} }

const (
	sqlInsertErasure = `INSERT INTO erasures (user_id, at) VALUES ($1, $2)`
	sqlErasures      = `SELECT user_id, at FROM erasures ORDER BY at, user_id LIMIT $1`
	sqlDeleteErasure = `DELETE FROM erasures WHERE user_id = $1`
	sqlLockErasure   = `UPDATE erasures SET at = at WHERE user_id = $1`
	sqlDeleteInboxBy = `DELETE FROM inbox WHERE source = $1`
)

// InsertErasure records that the account was erased.
func (tx *Tx) InsertErasure(ctx context.Context, userID string) error {
	return tx.run(ctx, sqlInsertErasure, userID, micros(tx.Now))
}

// Erasures returns erasures that DeleteErasure has not deleted, the oldest first.
func (r Reader) Erasures(ctx context.Context, limit int) ([]Erasure, error) {
	return list(ctx, r, erasureFields, sqlErasures, limit)
}

// LockErasure locks the erasure and reports whether it is still there: two nodes must not
// blank the same events in different orders.
func (tx *Tx) LockErasure(ctx context.Context, userID string) (bool, error) {
	return tx.affected(ctx, sqlLockErasure, userID)
}

// DeleteLateRows deletes what nodes have written from memory after the account was erased:
// kept decisions, and counts of refusals.
func (tx *Tx) DeleteLateRows(ctx context.Context, userID string) error {
	return tx.runEach(ctx, userID, sqlDeleteDecisionsOf, sqlDeleteInboxBy)
}

// DeleteErasure deletes the record of the erasure: no personal data is left.
func (tx *Tx) DeleteErasure(ctx context.Context, userID string) error {
	return tx.run(ctx, sqlDeleteErasure, userID)
}

const (
	sqlDeleteAttemptsOf = `DELETE FROM attempts WHERE own = $1 OR wider = $1`
	// A mail of an invitation that can still be accepted stays, with the invitation.
	sqlDeleteMailsTo = `DELETE FROM mails WHERE recipient = $1 AND recipient <> ''
AND NOT EXISTS (SELECT 1 FROM invitations i WHERE i.id = mails.subject_id AND i.email = $1 AND i.state = 'PENDING' AND i.expires_at > $2)`
	sqlDeleteInboxOf = `DELETE FROM inbox WHERE email = $1 OR source = $2`
)

// ForgetAddress deletes the counters, the attempts in flight, the rows in the inbox, the entries of protocols and the
// mails of an address that has no account any more.
func (tx *Tx) ForgetAddress(ctx context.Context, email string) error {
	account := "account:" + email
	for _, bucket := range []string{account, "forgot:" + email} {
		if err := tx.ClearThrottle(ctx, bucket); err != nil {
			return err
		}
	}
	if err := tx.run(ctx, sqlDeleteEntriesOfAddress, email); err != nil {
		return err
	}
	if err := tx.run(ctx, sqlDeleteAttemptsOf, account); err != nil {
		return err
	}
	if err := tx.run(ctx, sqlDeleteInboxOf, email, account); err != nil {
		return err
	}
	if err := tx.run(ctx, sqlDeleteMailsTo, email, micros(tx.Now)); err != nil {
		return err
	}
	for _, action := range append(slices.Collect(maps.Values(HeldBack)), digestLock) {
		if err := tx.ClearThrottle(ctx, NoticeBucket(email, action)); err != nil {
			return err
		}
	}
	return nil
}

const sqlErasureRecords = `SELECT target_id, at, changes FROM events
WHERE tenant_id = $1 AND action = 'account.erase' AND outcome = 'done' ORDER BY seq`

// ErasureRecord is the event of an erasure in a trail. It says whose events may be blank.
type ErasureRecord struct {
	UserID  string
	At      time.Time
	Changes []doorward.Change
}

func erasureRecordFields(e *ErasureRecord) []any {
	return []any{&e.UserID, (*storedTime)(&e.At), lenientChanges{&e.Changes}}
}

// lenientChanges scans changes that somebody may have tampered with: none, if they can't be
// read. The chain shows that.
type lenientChanges struct{ dest *[]doorward.Change }

// Scan implements sql.Scanner.
func (l lenientChanges) Scan(v any) error {
	var read []doorward.Change
	if (jsonColumn[[]doorward.Change]{&read}).Scan(v) == nil {
		*l.dest = read
	}
	return nil
}

// ErasureRecords returns the events of erasures in the tenant's trail.
func (r Reader) ErasureRecords(ctx context.Context, tenantID string) ([]ErasureRecord, error) {
	return list(ctx, r, erasureRecordFields, sqlErasureRecords, tenantID)
}
