package apptest

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/store"
)

// mailbox is a transport that stores the mail in memory.
type mailbox struct {
	mu   sync.Mutex
	mail []smtp.Message
}

func (m *mailbox) Send(_ context.Context, message smtp.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mail = append(m.mail, message)
	return nil
}

func (m *mailbox) Check(context.Context) error { return nil }

// to returns the mail to the address, the oldest first.
func (m *mailbox) to(email string) (found []smtp.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, message := range m.mail {
		if message.To == email {
			found = append(found, message)
		}
	}
	return found
}

var tokenInLink = regexp.MustCompile(`#token=([A-Za-z0-9_-]{43})`)

// MailToken sends the queued mail and returns the newest token that was mailed to the address.
func (f *Fixture) MailToken(email string) (token string) {
	f.Helper()
	f.RecordPending()
	f.NoError(f.Node(0).Mail.Deliver(f.Context()))
	for _, message := range f.mail.to(email) {
		if found := tokenInLink.FindStringSubmatch(message.Text); found != nil {
			token = found[1]
		}
	}
	if token == "" {
		f.Fatalf("no mail with a token for %s", email)
	}
	return token
}

// Subjects sends the queued mail and returns the subjects of the mails to the
// address.
func (f *Fixture) Subjects(email string) (subjects []string) {
	f.Helper()
	f.NoError(f.Node(0).Mail.Deliver(f.Context()))
	for _, message := range f.mail.to(email) {
		subjects = append(subjects, message.Subject)
	}
	return subjects
}

// Mails sends the queued mail from a node and returns the mails to the address.
func (f *Fixture) Mails(i int, email string) []smtp.Message {
	f.Helper()
	f.NoError(f.Node(i).Mail.Deliver(f.Context()))
	return f.mail.to(email)
}

// Texts sends the queued mail and returns the plain text of all mails to the address.
func (f *Fixture) Texts(email string) (all string) {
	f.Helper()
	f.NoError(f.Node(0).Mail.Deliver(f.Context()))
	for _, message := range f.mail.to(email) {
		all += message.Text
	}
	return all
}

// RecordPending records all pending refusals and requested resets, on every node.
func (f *Fixture) RecordPending() {
	f.Helper()
	for _, node := range f.Nodes {
		node.Inbox.RecordPending(f.Context())
	}
}

// RecordDue writes the counts in the memory of all nodes to the inbox, and records the rows of the
// inbox that are due.
func (f *Fixture) RecordDue() {
	f.Helper()
	for _, node := range f.Nodes {
		f.NoError(node.Access.Inbox.Flush(f.Context()))
		f.NoError(node.Inbox.RecordDue(f.Context()))
	}
}

// ResetToken creates a reset without a mail, since an address gets at most three
// mails an hour.
func (f *Fixture) ResetToken(p Person) string {
	f.Helper()
	token := secret.New()
	hash, now := token.Hash(), f.DB.Now()
	r := store.Reset{ID: doorward.NewID(doorward.PrefixReset), UserID: p.User.ID, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
		return errors.Join(tx.InsertReset(f.Context(), r), tx.InsertLinkToken(f.Context(), hash[:], r.ID))
	})
	f.NoError(err)
	return token.Reveal()
}
