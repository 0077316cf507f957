// Package mail delivers the mails that other features queue.
//
// A feature queues a row in its own transaction: kind, recipient, subject. The
// worker here makes the text and the link and sends it through the mail server. So
// a transaction that is rolled back sends nothing, a mail server that is down
// delays only mails, and the database never holds a usable token: it is made when
// the mail is sent, and only its hash is stored.
//
//	mail.go       the queue, invitations and password resets
//	email.go      the mails about a change of address
//	notice.go     kinds of mails; the notices of what has happened
//	digest.go     the limit on notices; the mail that tells the others
//	render.go     the variables filled in, as plain text and as HTML
//	style.go      colour and logo of the HTML
//	catalogue.go  texts by language, from text/*.yaml
//	texts.go      the operator's own texts in place of these
//
// Package outbox decides when and in what order mails are tried. Several workers,
// in several processes, may serve one queue. If a worker dies after the mail
// server has accepted a mail and before that is stored, the mail is sent again
// with the same Message-ID.
package mail

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/outbox"
	"github.com/doorward/doorward/internal/lograte"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/internal/texts"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/store"
)

// Mail is the worker. Make it with New.
type Mail struct {
	writer    *access.Writer
	db        *store.DB
	transport atomic.Pointer[smtp.Transport]
	refused   chan struct{} // see LoginRefused
	baseURL   string
	texts     catalogueSet
	brand     atomic.Pointer[brand]
	log       *slog.Logger
	counts    counts
	queue     *outbox.Queue[store.Mail]
	writers   chan struct{} // holds an item for each running transaction of the queue
}

// counts counts tries since the start of the process, for metrics.
type counts struct{ sent, retried, failed atomic.Uint64 }

// Counts returns how many mails this process has sent, has postponed after a
// failed try, and has given up, since its start.
func (m *Mail) Counts() (sent, retried, failed uint64) {
	return m.counts.sent.Load(), m.counts.retried.Load(), m.counts.failed.Load()
}

// New returns a worker that sends through transport and makes links below baseURL. own are the
// operator's texts, as CheckTexts accepts them; nil for none. look and name are those of the installation; an empty name is left out.
func New(writer *access.Writer, db *store.DB, transport smtp.Transport, baseURL string, own *texts.File, look doorward.Brand, name string, log *slog.Logger) *Mail {
	m := &Mail{
		writer: writer, db: db, baseURL: baseURL, texts: cataloguesWith(own), log: log,
		writers: make(chan struct{}, writersAtOnce), refused: make(chan struct{}, 1),
	}
	m.SetBrand(look, name)
	m.SetTransport(transport)
	m.queue = &outbox.Queue[store.Mail]{
		Fetch: m.due, Job: job, Try: m.try, Permanent: smtp.IsPermanent, Unreachable: smtp.IsUnreachable,
		Now: db.Now, Wake: db.MailQueued(),
		Warn: lograte.Warnings(log, "mail queue"),
	}
	return m
}

// SetBrand changes the appearance of the installation's mails, and its name in them.
func (m *Mail) SetBrand(look doorward.Brand, name string) { m.brand.Store(&brand{look, name}) }

// SetTransport changes how mails are sent from now on. One that is being sent is sent as it was begun.
func (m *Mail) SetTransport(transport smtp.Transport) { m.transport.Store(&transport) }

// LoginRefused gets a value after the mail server has refused user and password.
func (m *Mail) LoginRefused() <-chan struct{} { return m.refused }

// writersAtOnce bounds the parallel transactions of the queue: requests need the
// database as well.
const writersAtOnce = 8

// upkeep is access.Writer.Upkeep, for at most writersAtOnce callers at once. If ctx ends while
// it waits for its turn, it returns the error of ctx.
func (m *Mail) upkeep(ctx context.Context, fn func(*store.Tx) error) error {
	select {
	case m.writers <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-m.writers }()
	return m.writer.Upkeep(ctx, fn)
}

// Run delivers mail until ctx ends: mail of this process at once, that of others
// within a second.
func (m *Mail) Run(ctx context.Context) { m.queue.Run(ctx) }

// Deliver tries every due mail once. The error is one of the database or of ctx; a
// failed mail is recorded in its row.
func (m *Mail) Deliver(ctx context.Context) error { return m.queue.Drain(ctx) }

// DeliverForSubject tries the due mails about a subject once, each within the timeout. It leaves
// all other mails to Run: there may be many, to hosts that don't answer. The error is one of the
// database or of ctx.
func (m *Mail) DeliverForSubject(ctx context.Context, subjectID string, timeout time.Duration) error {
	queue := outbox.Queue[store.Mail]{
		Fetch: func(ctx context.Context, _ bool, after outbox.Job, limit int) ([]store.Mail, error) {
			return m.db.Read().DueMailsOf(ctx, subjectID, store.Mail{ID: after.ID, NextAt: after.Due}, m.db.Now(), limit)
		},
		Job: m.queue.Job, Permanent: m.queue.Permanent, Now: m.queue.Now, Wake: m.queue.Wake, Warn: m.queue.Warn,
		Try: func(ctx context.Context, row store.Mail, send outbox.Send) error {
			return m.try(ctx, row, func(ctx context.Context, deliver func(context.Context) error) error {
				return send(ctx, func(ctx context.Context) error {
					ctx, cancel := context.WithTimeout(ctx, timeout)
					defer cancel()
					return deliver(ctx)
				})
			})
		},
	}
	return queue.Drain(ctx)
}

// Sending returns how many mails this process is sending, and how many domains are slow.
func (m *Mail) Sending() outbox.Stats { return m.queue.Stats() }

func (m *Mail) due(ctx context.Context, urgent bool, after outbox.Job, limit int) ([]store.Mail, error) {
	due := m.db.Read().DueMails
	if urgent {
		due = m.db.Read().DueUrgentMails
	}
	return due(ctx, store.Mail{ID: after.ID, NextAt: after.Due}, m.db.Now(), limit)
}

// job describes the mail to the outbox. The host is the recipient's domain, so that a slow mail
// server delays only the mails to its own domain.
func job(row store.Mail) outbox.Job {
	domain := mailaddr.Domain(row.Recipient)
	return outbox.Job{ID: row.ID, Due: row.NextAt, Urgent: row.Kind.Urgent(), Share: row.Share, Host: domain}
}

func (m *Mail) try(ctx context.Context, row store.Mail, send outbox.Send) error {
	ctx, span := trace.Root(ctx, "mail")
	defer span.End()
	span.Set("doorward.mail.kind", string(row.Kind))
	span.SetCount("doorward.mail.try", row.Tries+1)
	rendered, err := m.claim(ctx, row)
	if err != nil || rendered == nil {
		return err
	}
	return m.send(ctx, row, rendered, send)
}

// claim renders the mail. It returns nil when another worker has the mail, or when the mail is
// not to be sent, or only in a digest.
func (m *Mail) claim(ctx context.Context, row store.Mail) (rendered *renderedMail, err error) {
	err = m.upkeep(ctx, func(tx *store.Tx) error {
		rendered = nil
		if err := lockRecipient(ctx, tx, row); err != nil {
			return err
		}
		claimed, err := tx.ClaimMail(ctx, row, tx.Now.Add(outbox.MaxTry))
		if err != nil || !claimed {
			return err
		}
		if held, err := holdBack(ctx, tx, row); err != nil || held {
			return err
		}
		rendered, err = m.compose(ctx, tx, row)
		return err
	})
	return rendered, err
}

// lockRecipient locks the account that a mail makes a reset for: of two mails made at the same
// time, each would miss the other's reset and leave it open. The account is locked before the
// mail, in the same order as by the erasure of an account.
func lockRecipient(ctx context.Context, tx *store.Tx, row store.Mail) error {
	if row.Kind != store.MailReset && row.Kind != store.MailPasswordForgotten {
		return nil
	}
	account, err := tx.AccountByEmail(ctx, row.Recipient)
	if errors.Is(err, store.ErrNone) {
		return nil
	}
	if err == nil {
		_, err = tx.LockAccount(ctx, account.ID)
	}
	return err
}

// send sends the mail and then stores the result: in the other order, a worker
// that dies in between would lose the mail.
func (m *Mail) send(ctx context.Context, row store.Mail, rendered *renderedMail, send outbox.Send) error {
	err := send(ctx, func(ctx context.Context) error { return m.transmit(ctx, rendered.message(row)) })
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // shutting down: the claim expires and it is retried
	}
	state, pause := outbox.DefaultBackoff.After(row.Tries, err, smtp.IsPermanent(err))
	m.report(row, state, err)
	return m.upkeep(ctx, func(tx *store.Tx) error {
		switch state {
		case outbox.Retry:
			return tx.ScheduleMailRetry(ctx, row.ID, tx.Now.Add(pause), err.Error())
		case outbox.Dead:
			return tx.MarkMailFailed(ctx, row.ID, err.Error())
		}
		return tx.MarkMailSent(ctx, row.ID)
	})
}

// transmit sends the message. The trace shows whether an error is permanent, but not the mail
// server's reply, which may repeat an address.
func (m *Mail) transmit(ctx context.Context, message smtp.Message) error {
	ctx, span := trace.Start(ctx, "mail.send")
	defer span.End()
	err := (*m.transport.Load()).Send(ctx, message)
	if smtp.IsLoginRefused(err) {
		select {
		case m.refused <- struct{}{}:
		default: // one is enough
		}
	}
	switch {
	case smtp.IsPermanent(err):
		span.Fail("permanent")
	case err != nil:
		span.Fail("temporary")
	}
	return err
}

// report counts and logs the result of a try.
func (m *Mail) report(row store.Mail, state outbox.State, sendErr error) {
	switch state {
	case outbox.Sent:
		m.counts.sent.Add(1)
	case outbox.Retry:
		m.counts.retried.Add(1)
		m.log.Warn("mail not sent yet", "mail", row.ID, "kind", row.Kind, "tries", row.Tries+1, "err", sendErr)
	case outbox.Dead:
		m.counts.failed.Add(1)
		m.log.Error("mail given up", "mail", row.ID, "kind", row.Kind, "tries", row.Tries+1, "err", sendErr)
	}
}

// keepFor is how long finished mails are kept. Mails of invitations are kept longer, without
// the addresses, since the API shows their state.
const keepFor = 24 * time.Hour

// Sweep deletes finished mails, or removes the addresses in them, after keepFor.
func (m *Mail) Sweep(ctx context.Context) error {
	return errors.Join(m.sweep(ctx, (*store.Tx).DeleteOldMails), m.sweep(ctx, (*store.Tx).BlankOldMails))
}

func (m *Mail) sweep(ctx context.Context, batch func(tx *store.Tx, ctx context.Context, before time.Time, limit int) (int64, error)) error {
	return m.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
		return batch(tx, ctx, tx.Now.Add(-keepFor), limit)
	})
}

// resetLifetime is how long a password reset can be used, from the moment its mail
// is made.
const resetLifetime = 30 * time.Minute

// resetAllLifetime is that of a reset that nobody has asked for: people read its mail when they come to it.
const resetAllLifetime = 24 * time.Hour

func (m *Mail) composeInvitation(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	inv, err := tx.Invitation(ctx, row.SubjectID)
	if err != nil {
		return nil, err
	}
	if state := inv.StateAt(tx.Now); state != doorward.InvitationPending {
		return nil, tx.MarkMailFailed(ctx, row.ID, "not sent: the invitation is "+string(state))
	}
	resent, err := isResent(ctx, tx, inv, row)
	if err != nil {
		return nil, err
	}
	if resent {
		return nil, tx.MarkMailFailed(ctx, row.ID, "not sent: a newer mail replaces it")
	}
	tenant, err := tx.Tenant(ctx, inv.TenantID)
	if err != nil {
		return nil, err
	}
	inviter, err := nameIn(ctx, tx, inv.TenantID, inv.InvitedBy)
	if err != nil {
		return nil, err
	}
	locale, err := localeOf(ctx, tx, inv.Email)
	if err != nil {
		return nil, err
	}
	token, err := newLinkToken(ctx, tx, inv.ID)
	return m.texts.render(row.Kind, cmp.Or(inv.Locale, locale), variables{
		Name: inv.Name, Tenant: tenant.Name, Role: string(inv.Role), Actor: inviter,
		Link: m.baseURL + "/accept#token=" + token, Code: token, Until: formatTime(inv.ExpiresAt),
	}).withStyle(m.styleOf(tenant)), err
}

// isResent reports whether the invitation was sent again since the mail was queued. Sending it
// again has ended all earlier tokens, so this mail must not make another one. The lock on the
// tenant keeps anybody from sending it again before the token is stored.
func isResent(ctx context.Context, tx *store.Tx, inv doorward.Invitation, row store.Mail) (bool, error) {
	if err := tx.LockTenant(ctx, inv.TenantID); err != nil {
		return false, err
	}
	newest, err := tx.LastMail(ctx, inv.ID)
	return newest.After(row.CreatedAt), err
}

// composeReset makes the mail for a forgotten password. It is obsolete if the address has no
// account any more. Memberships don't matter: a user in no tenant may need the password to
// accept the next invitation, and a login checks the membership itself. A second try uses the
// reset of the first, so that both copies of the mail work.
func (m *Mail) composeReset(ctx context.Context, tx *store.Tx, row store.Mail) (*renderedMail, error) {
	account, err := tx.AccountByEmail(ctx, row.Recipient)
	if err != nil {
		return nil, err
	}
	if row.SubjectID == "" {
		if row.SubjectID, err = startReset(ctx, tx, row, account); err != nil {
			return nil, err
		}
	}
	token, err := newLinkToken(ctx, tx, row.SubjectID)
	return m.texts.render(row.Kind, account.Locale, variables{Email: account.Email, Link: m.resetLink(row.ReturnTo, token), Code: token}).withStyle(m.styleOf(doorward.Tenant{})), err
}

// resetLink returns a link with the token in its fragment, which is in no log, and returnTo in
// its query. returnTo was checked when the mail was queued, and is checked again
// before each redirect.
func (m *Mail) resetLink(returnTo, token string) string {
	link := m.baseURL + "/reset"
	if returnTo != "" {
		link += "?" + url.Values{"return": {returnTo}}.Encode()
	}
	return link + "#token=" + token
}

// startReset makes the reset of a mail and returns its id. It ends earlier ones: only the
// newest mail works.
func startReset(ctx context.Context, tx *store.Tx, row store.Mail, account doorward.Account) (string, error) {
	if err := tx.ExpireResets(ctx, account.ID); err != nil {
		return "", err
	}
	life := resetLifetime
	if row.Kind == store.MailPasswordForgotten {
		life = resetAllLifetime
	}
	reset := store.Reset{ID: doorward.NewID(doorward.PrefixReset), UserID: account.ID, CreatedAt: tx.Now, ExpiresAt: tx.Now.Add(life)}
	if err := tx.InsertReset(ctx, reset); err != nil {
		return "", err
	}
	return reset.ID, tx.SetMailSubject(ctx, row.ID, reset.ID)
}

// newLinkToken makes a token for the link to a subject, such as an invitation, and stores its
// hash.
func newLinkToken(ctx context.Context, tx *store.Tx, subjectID string) (string, error) {
	token := secret.New()
	hash := token.Hash()
	return token.Reveal(), tx.InsertLinkToken(ctx, hash[:], subjectID)
}
