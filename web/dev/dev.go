// Package dev is what "doorward dev" has beyond a server: a mailbox that shows
// what would have been sent.
package dev

import (
	"context"
	"html/template"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/web/front"
)

// Mailbox takes mails in place of a mail server and keeps the newest in
// memory. The zero Mailbox keeps them without logging.
type Mailbox struct {
	Log *slog.Logger

	mu    sync.Mutex
	mails []smtp.Message
}

// kept is how many mails are.
const kept = 100

// Send keeps the mail and logs its text. It never fails.
func (m *Mailbox) Send(ctx context.Context, mail smtp.Message) error {
	m.mu.Lock()
	m.mails = append(m.mails, mail)
	m.mails = m.mails[max(0, len(m.mails)-kept):]
	m.mu.Unlock()
	if m.Log != nil {
		m.Log.InfoContext(ctx, "mail", "to", mail.To, "subject", mail.Subject, "text", mail.Text)
	}
	return nil
}

// Check never fails.
func (m *Mailbox) Check(context.Context) error { return nil }

// Mails returns the mails to an address, or all for the empty one, the newest
// first.
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

// Clear throws all mails away.
func (m *Mailbox) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mails = nil
}

// Routes returns the page /dev/mail.
func (m *Mailbox) Routes() []front.Route {
	return []front.Route{front.On("GET /dev/mail", front.Public(), front.Raw(m.show), front.Doc{})}
}

func (m *Mailbox) show(_ context.Context, c *front.Call) error {
	h := c.W.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	return page.Execute(c.W, m.Mails(c.R.URL.Query().Get("to")))
}

var page = template.Must(template.New("mail").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Mail · Doorward dev</title>
<style>
body { margin: 2rem auto; max-width: 46rem; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif }
article { border: 1px solid #8884; border-radius: 8px; padding: 1rem 1.25rem; margin: 1.25rem 0 }
h2 { font-size: 1.1rem; margin: 0 }
p { margin: .25rem 0 .75rem; opacity: .75 }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; font: 13px/1.5 ui-monospace, monospace }
</style>
</head>
<body>
<main>
<h1>Mail</h1>
<p>What would have been sent, the newest first. Nothing leaves this machine.</p>
{{range .}}<article>
<h2>{{.Subject}}</h2>
<p>to {{.To}}</p>
<pre>{{.Text}}</pre>
</article>
{{else}}<p>No mail yet. Invite somebody.</p>
{{end}}</main>
</body>
</html>
`))
