package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

// MailKind says which text a mail has.
type MailKind string

// The kinds of mails.
const (
	MailInvitation MailKind = "invitation" // SubjectID is the invitation
	MailReset      MailKind = "reset"      // Recipient requested a reset; whether it has an account is looked up when the mail is sent
	// The operator has removed the password of Recipient; with a link that sets another one, as MailReset.
	MailPasswordForgotten MailKind = "password_forgotten"

	// Notices of an action; SubjectID is its audit event.
	MailPasswordChanged   MailKind = "password_changed"
	MailSignedIn          MailKind = "signed_in" // from a browser that is not known
	MailRoleChanged       MailKind = "role_changed"
	MailSuspended         MailKind = "suspended"
	MailRemoved           MailKind = "removed"
	MailAddressSuspended  MailKind = "address_suspended" // a change of the address has suspended a membership; to the person and the managers of the tenant
	MailTenantOwnerless   MailKind = "tenant_ownerless"  // no active OWNER is left in a tenant; to the operator
	MailAPIKeyExpiring    MailKind = "apikey_expiring"   // an API key of the recipient ends soon
	MailAPIKeyLeaked      MailKind = "apikey_leaked"     // an API key was reported as leaked, and was ended
	MailOperatorKeyLeaked MailKind = "operator_key_leaked"
	MailServiceKeyLeaked  MailKind = "service_key_leaked"

	// Mails about a change of the address; SubjectID is the change.
	MailEmailConfirm   MailKind = "email_confirm"   // to the new address, with the code
	MailEmailRequested MailKind = "email_requested" // to the old one, with a link that undoes it
	MailEmailChanged   MailKind = "email_changed"   // to the old one with such a link, once it is confirmed
	MailEmailRestored  MailKind = "email_restored"  // to the new one: it was undone
	MailEmailSet       MailKind = "email_set"       // a notice: the operator has changed it; to the new one, and to the old one if that can't undo it

	// Notices about second factors, webhooks and domains; SubjectID is the audit event.
	MailFactorAdded     MailKind = "factor_added"
	MailFactorRemoved   MailKind = "factor_removed"
	MailFactorRenamed   MailKind = "factor_renamed"
	MailFactorsRemoved  MailKind = "factors_removed"  // all, after a reset
	MailFactorsReset    MailKind = "factors_reset"    // all tenants let the recipient begin again; with a code
	MailFactorsWord     MailKind = "factors_word"     // a tenant lets the recipient begin again, and others have not yet
	MailFactorsDemanded MailKind = "factors_demanded" // a tenant demands a second factor that the recipient has not set up
	MailRecoveryCodes   MailKind = "recovery_codes"   // new ones were made
	MailRecoveryUsed    MailKind = "recovery_used"    // one stood in for a factor
	MailPasskeyCopied   MailKind = "passkey_copied"   // a passkey was found to be a copy, and was disabled
	MailFactorsDisabled MailKind = "factors_disabled" // those set up around a change of the address that was undone
	MailWebhookFailing  MailKind = "webhook_failing"  // a webhook had no success for some time
	MailWebhookDisabled MailKind = "webhook_disabled" // Doorward has disabled it
	MailDomainLapsed    MailKind = "domain_lapsed"    // to OWNERs: the record of a domain is missing, or the operator has released it
	MailDomainTaken     MailKind = "domain_taken"     // to OWNERs: another tenant has proved a domain that had lapsed

	MailSecretsLost MailKind = "secrets_lost" // to OWNERs: secrets of the tenant were lost with the master key
	MailSSOBypass   MailKind = "sso_bypass"   // to OWNERs: one of them has signed in without the sign-on that the tenant demands
	// Notices about a connection, to OWNERs; SubjectID is the audit event.
	MailDirectoryAlarm       MailKind = "directory_alarm"        // its directory has suspended or removed many people
	MailSCIMSecretLeaked     MailKind = "scim_secret_leaked"     // a secret of its directory was found and ended
	MailSCIMSecretExpiring   MailKind = "scim_secret_expiring"   // a secret of a connection's directory ends soon
	MailClientSecretExpiring MailKind = "client_secret_expiring" // a client secret ends soon
	MailCertificateExpiring  MailKind = "certificate_expiring"   // the last certificate of a provider of SAML ends soon
	MailClientRefused        MailKind = "client_refused"         // the provider refuses every client secret, or the key
	MailProviderUnread       MailKind = "provider_unread"        // what the provider says of itself couldn't be read for long
	MailCertificatesGone     MailKind = "certificates_gone"      // the provider of SAML has only certificates left that were taken away by hand

	MailAddressRefused MailKind = "address_refused" // a directory wanted another address for the recipient's account; SubjectID is the connection

	MailDigest MailKind = "digest" // notices that were held back: see Tx.HoldNotice

	MailAccountErased MailKind = "account_erased" // to OWNERs: somebody's account was erased; SubjectID is the audit event
)

// MailKinds are all that this version can send.
var MailKinds = []MailKind{
	MailInvitation, MailReset, MailPasswordForgotten, MailPasswordChanged, MailSignedIn, MailRoleChanged, MailSuspended, MailRemoved, MailAddressSuspended, MailTenantOwnerless,
	MailAPIKeyExpiring, MailAPIKeyLeaked, MailOperatorKeyLeaked, MailServiceKeyLeaked,
	MailEmailConfirm, MailEmailRequested, MailEmailChanged, MailEmailRestored, MailEmailSet,
	MailFactorAdded, MailFactorRemoved, MailFactorRenamed, MailFactorsRemoved, MailFactorsReset, MailFactorsWord, MailFactorsDemanded, MailRecoveryCodes, MailRecoveryUsed,
	MailPasskeyCopied, MailFactorsDisabled,
	MailWebhookFailing, MailWebhookDisabled, MailDomainLapsed, MailDomainTaken, MailClientSecretExpiring, MailCertificateExpiring, MailSCIMSecretExpiring, MailSCIMSecretLeaked, MailDirectoryAlarm, MailAddressRefused, MailClientRefused, MailProviderUnread, MailCertificatesGone, MailAccountErased, MailSSOBypass, MailSecretsLost, MailDigest,
}

// kindsToSend is the list of MailKinds in which sqlDueMails looks for the kind of a mail.
var kindsToSend = func() string {
	text := " "
	for _, kind := range MailKinds {
		text += string(kind) + " "
	}
	return text
}()

// Urgent reports whether a person waits for a mail of the kind, or must learn of
// an attack at once.
func (k MailKind) Urgent() bool {
	switch k {
	case MailReset, MailPasswordChanged, MailSignedIn, MailEmailConfirm, MailEmailRequested, MailEmailChanged, MailEmailRestored:
		return true
	}
	return false
}

// Mail is a queued mail. It holds no text and no token: both are made when it is
// sent.
type Mail struct {
	ID        string
	Kind      MailKind
	Recipient string // canonical address
	SubjectID string
	State     doorward.Delivery
	Tries     int
	NextAt    time.Time
	CreatedAt time.Time
	LastError string
	ReturnTo  string // where the page of the link redirects to; may be empty
	Share     string // see Tx.MailShare; may be empty
}

func mailFields(m *Mail) []any {
	return []any{
		&m.ID, &m.Kind, &m.Recipient, &m.SubjectID, &m.State, &m.Tries,
		(*storedTime)(&m.NextAt), (*storedTime)(&m.CreatedAt), &m.LastError, &m.ReturnTo, &m.Share,
	}
}

const selectMail = `SELECT id, kind, recipient, subject_id, state, tries, next_at, created_at, last_error, return_to, share
FROM mails `

const sqlInsertMail = `INSERT INTO mails (id, kind, recipient, subject_id, state, tries, next_at, created_at, last_error, return_to, share)
VALUES ($1, $2, $3, $4, 'queued', 0, $5, $5, '', $6, $7)`

// QueueMail queues a mail, to be sent after the commit. It counts in the share tx.MailShare.
func (tx *Tx) QueueMail(ctx context.Context, kind MailKind, recipient, subjectID string) error {
	return tx.queueMail(ctx, kind, recipient, subjectID, "")
}

// QueueReset is QueueMail for a MailReset whose page redirects to returnTo, an
// allowed path or URL; it may be empty.
func (tx *Tx) QueueReset(ctx context.Context, recipient, returnTo string) error {
	return tx.queueMail(ctx, MailReset, recipient, "", returnTo)
}

func (tx *Tx) queueMail(ctx context.Context, kind MailKind, recipient, subjectID, returnTo string) error {
	tx.mailQueued = true
	return tx.run(ctx, sqlInsertMail, doorward.NewID(doorward.PrefixMail), kind, recipient, subjectID, micros(tx.Now), returnTo, tx.MailShare)
}

// Neither LIKE nor an array works the same in both databases: a text contains a
// kind if removing it makes the text shorter.
const sqlDueMails = selectMail + `WHERE state = 'queued' AND (next_at, id) > ($1, $2) AND next_at <= $3 AND replace($5, ' ' || kind || ' ', '') <> $5` + mailsGoOn + `
ORDER BY next_at, id LIMIT $4`

// DueMails returns mails to send at now, the longest waiting first. It continues after the
// NextAt and ID of after; zero: from the beginning. Kinds that this version doesn't know wait
// for a node of the newer version. It returns none while the queue is paused.
func (r Reader) DueMails(ctx context.Context, after Mail, now time.Time, limit int) ([]Mail, error) {
	return list(ctx, r, mailFields, sqlDueMails, micros(after.NextAt), after.ID, micros(now), limit, kindsToSend)
}

// The kinds are those of MailKind.Urgent, and of the index mails_urgent_account.
const sqlDueUrgentMails = selectMail + `WHERE state = 'queued' AND kind IN ('reset', 'password_changed', 'signed_in', 'email_confirm', 'email_requested', 'email_changed', 'email_restored') AND (next_at, id) > ($1, $2) AND next_at <= $3` + mailsGoOn + `
ORDER BY next_at, id LIMIT $4`

// DueUrgentMails is DueMails for urgent mails only. Other mails don't slow it
// down.
func (r Reader) DueUrgentMails(ctx context.Context, after Mail, now time.Time, limit int) ([]Mail, error) {
	return list(ctx, r, mailFields, sqlDueUrgentMails, micros(after.NextAt), after.ID, micros(now), limit)
}

const sqlDueMailsOf = selectMail + `WHERE subject_id = $1 AND state = 'queued' AND (next_at, id) > ($2, $3) AND next_at <= $4` + mailsGoOn + `
ORDER BY next_at, id LIMIT $5`

// DueMailsOf is DueMails for those about a subject, of any kind.
func (r Reader) DueMailsOf(ctx context.Context, subjectID string, after Mail, now time.Time, limit int) ([]Mail, error) {
	return list(ctx, r, mailFields, sqlDueMailsOf, subjectID, micros(after.NextAt), after.ID, micros(now), limit)
}

const sqlClaimMail = `UPDATE mails SET tries = tries + 1, next_at = $1 WHERE id = $2 AND state = 'queued' AND tries = $3 AND next_at <= $4` + mailsGoOn

// ClaimMail claims the mail for one try. It reports false if another worker has claimed it, if
// it is no longer queued and due, or the queue is paused. If the worker dies, the mail is due again at until.
func (tx *Tx) ClaimMail(ctx context.Context, m Mail, until time.Time) (bool, error) {
	return tx.affected(ctx, sqlClaimMail, micros(until), m.ID, m.Tries, micros(tx.Now))
}

const sqlMailSent = `UPDATE mails SET state = 'sent', sent_at = $1, last_error = '' WHERE id = $2`

// MarkMailSent records that the mail server has accepted the mail.
func (tx *Tx) MarkMailSent(ctx context.Context, id string) error {
	return tx.run(ctx, sqlMailSent, micros(tx.Now), id)
}

const sqlMailRetry = `UPDATE mails SET next_at = $1, last_error = $2 WHERE id = $3 AND state = 'queued'`

// ScheduleMailRetry records a failed try and when the next one is due. The cause may have
// any bytes.
func (tx *Tx) ScheduleMailRetry(ctx context.Context, id string, next time.Time, cause string) error {
	return tx.run(ctx, sqlMailRetry, micros(next), storable(cause), id)
}

const sqlMailFailed = `UPDATE mails SET state = 'failed', last_error = $1 WHERE id = $2 AND state = 'queued'`

// MarkMailFailed marks the mail as failed permanently. The cause may have any bytes.
func (tx *Tx) MarkMailFailed(ctx context.Context, id, cause string) error {
	return tx.run(ctx, sqlMailFailed, storable(cause), id)
}

const sqlSetMailSubject = `UPDATE mails SET subject_id = $1 WHERE id = $2`

// SetMailSubject sets the object that the mail is about.
func (tx *Tx) SetMailSubject(ctx context.Context, id, subjectID string) error {
	return tx.run(ctx, sqlSetMailSubject, subjectID, id)
}

const sqlDeleteMail = `DELETE FROM mails WHERE id = $1`

// DeleteMail deletes the mail.
func (tx *Tx) DeleteMail(ctx context.Context, id string) error {
	return tx.run(ctx, sqlDeleteMail, id)
}

const sqlDeleteOldMails = `DELETE FROM mails WHERE id IN (
  SELECT id FROM mails WHERE kind <> 'invitation' AND state <> 'queued' AND recipient <> '' AND created_at <= $1 LIMIT $2)`

// DeleteOldMails deletes finished mails that were queued at an instant or before, except those
// of invitations, whose state is shown. It returns how many, at most limit.
func (tx *Tx) DeleteOldMails(ctx context.Context, until time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteOldMails, micros(until), limit)
}

const sqlBlankOldMails = `UPDATE mails SET recipient = '', last_error = '' WHERE id IN (
  SELECT id FROM mails WHERE kind = 'invitation' AND state <> 'queued' AND recipient <> '' AND created_at <= $1 LIMIT $2)`

// BlankOldMails removes recipient and error from finished mails of invitations that were queued
// at an instant or before. They are kept for their state. It returns how many, at most limit.
func (tx *Tx) BlankOldMails(ctx context.Context, until time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlBlankOldMails, micros(until), limit)
}
