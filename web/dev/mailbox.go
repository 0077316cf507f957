package dev

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// Mailbox receives mails instead of a mail server and keeps the newest in memory.
// The zero Mailbox keeps them without logging.
type Mailbox struct {
	Log *slog.Logger

	mu    sync.Mutex
	mails []smtp.Message
}

// maxKept is the number of mails kept.
const maxKept = 100

// Send keeps the mail and logs its text. It never fails.
func (m *Mailbox) Send(ctx context.Context, mail smtp.Message) error {
	m.mu.Lock()
	m.mails = append(m.mails, mail)
	m.mails = m.mails[max(0, len(m.mails)-maxKept):]
	m.mu.Unlock()
	if m.Log != nil {
		m.Log.InfoContext(ctx, "mail", "to", mail.To, "subject", mail.Subject, "text", mail.Text)
	}
	return nil
}

// Check never fails.
func (m *Mailbox) Check(context.Context) error { return nil }

// Mails returns the mails to an address, or all if it is empty, the newest first.
func (m *Mailbox) Mails(to string) []smtp.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []smtp.Message
	for _, mail := range slices.Backward(m.mails) {
		if to == "" || strings.EqualFold(mail.To, to) {
			found = append(found, mail)
		}
	}
	return found
}

// Clear deletes all mails.
func (m *Mailbox) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mails = nil
}

// Routes returns the page /dev/mail.
func (m *Mailbox) Routes() []front.Route {
	return []front.Route{front.On("GET /dev/mail", front.Public(), set.Show(m.show), front.Doc{})}
}

func (m *Mailbox) show(_ context.Context, c *ui.Call) (ui.View, error) {
	return ui.View{Page: "mail", Wide: true, Body: m.recentMails(c, c.R.URL.Query().Get("to"), maxKept)}, nil
}

// mailView is a mail with the path of its link.
type mailView struct {
	To, Subject, Text string
	Path              string // of the link, on this site; empty for none
}

var link = regexp.MustCompile(`(?m)^https?://\S+/((?:accept|reset)(?:\?\S*)?#token=\S+)$`)

// recentMails returns the newest mails to an address, or to any if it is empty.
func (m *Mailbox) recentMails(c *ui.Call, to string, most int) []mailView {
	var all []mailView
	for _, mail := range m.Mails(to) {
		if len(all) == most {
			break
		}
		one := mailView{To: mail.To, Subject: mail.Subject, Text: mail.Text}
		if found := link.FindStringSubmatch(mail.Text); found != nil {
			one.Path = c.Site().BasePath() + "/" + found[1]
		}
		all = append(all, one)
	}
	return all
}
