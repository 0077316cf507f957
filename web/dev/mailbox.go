package dev

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/fold"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// Mailbox receives mails instead of a mail server and keeps them in memory while the
// program runs. The zero Mailbox keeps them without logging.
type Mailbox struct {
	Log *slog.Logger

	mu    sync.Mutex
	mails []smtp.Message
	first int // number of the first mail, after those that Clear deleted
}

// pageSize is the number of mails on a page.
const pageSize = 50

// Send keeps the mail and logs its text. It never fails.
func (m *Mailbox) Send(ctx context.Context, mail smtp.Message) error {
	m.mu.Lock()
	m.mails = append(m.mails, mail)
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
	var found []smtp.Message
	for mail := range m.newestFirst() {
		if to == "" || strings.EqualFold(mail.To, to) {
			found = append(found, mail.Message)
		}
	}
	return found
}

// Clear deletes all mails.
func (m *Mailbox) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.first += len(m.mails)
	m.mails = nil
}

// numberedMail is a mail with its number in this run, which is in the path of its pages.
type numberedMail struct {
	smtp.Message
	Number int
}

// newestFirst iterates over the mails that there are now.
func (m *Mailbox) newestFirst() iter.Seq[numberedMail] {
	m.mu.Lock()
	mails, first := m.mails, m.first
	m.mu.Unlock()
	return func(yield func(numberedMail) bool) {
		for i, mail := range slices.Backward(mails) {
			if !yield(numberedMail{mail, first + i}) {
				return
			}
		}
	}
}

// mail returns the mail with the number in the path of the request. Errors: not_found.
func (m *Mailbox) mail(r *http.Request) (numberedMail, error) {
	for mail := range m.newestFirst() {
		if strconv.Itoa(mail.Number) == r.PathValue("number") {
			return mail, nil
		}
	}
	return numberedMail{}, doorward.Fail(doorward.CodeNotFound, "")
}

// Routes returns the pages at /dev/mail.
func (m *Mailbox) Routes() []front.Route {
	return []front.Route{
		front.On("GET /dev/mail", front.Public(), set.Show(m.list), front.Doc{}),
		front.On("GET /dev/mail/{number}", front.Public(), set.Show(m.show), front.Doc{}),
		front.On("GET /dev/mail/{number}/html", front.Public(), front.Raw(m.html), front.Doc{}),
	}
}

// mailPage is a page of the list.
type mailPage struct {
	Query string // what the mails contain
	To    string // the address that they went to; empty for any
	Found int    // mails on all pages
	Mails []mailView
	Older string // query of the next page; empty for none
}

func (m *Mailbox) list(_ context.Context, c *ui.Call) (ui.View, error) {
	query := c.R.URL.Query()
	p := mailPage{Query: strings.TrimSpace(query.Get("q")), To: query.Get("to")}
	from, _ := strconv.Atoi(query.Get("from")) // 0 unless it is a number
	for mail := range m.newestFirst() {
		if !p.matches(mail) {
			continue
		}
		if p.Found++; p.Found > from && len(p.Mails) < pageSize {
			p.Mails = append(p.Mails, viewOf(c, mail))
		}
	}
	if next := from + pageSize; next < p.Found {
		p.Older = "?" + url.Values{"q": {p.Query}, "to": {p.To}, "from": {strconv.Itoa(next)}}.Encode()
	}
	return ui.View{Page: "mail", Wide: true, Body: p}, nil
}

// matches reports whether the mail is one of those that the page lists. The search ignores
// letter case and accents, as in other lists.
func (p mailPage) matches(mail numberedMail) bool {
	if p.To != "" && !strings.EqualFold(mail.To, p.To) {
		return false
	}
	text := fold.Text(mail.To + "\n" + mail.Subject + "\n" + mail.Text)
	return strings.Contains(text, fold.Text(p.Query))
}

func (m *Mailbox) show(_ context.Context, c *ui.Call) (ui.View, error) {
	mail, err := m.mail(c.R)
	return ui.View{Page: "letter", Wide: true, Frames: true, Body: viewOf(c, mail)}, err
}

// html answers with the mail as a mail program would show it. Its Content-Security-Policy
// allows no script and nothing from elsewhere, and gives it an origin of its own, so that it
// can't reach the page around it.
func (m *Mailbox) html(_ context.Context, c *front.Call) error {
	mail, err := m.mail(c.R)
	if err != nil {
		return err
	}
	h := c.W.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; sandbox; frame-ancestors 'self'")
	h.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(c.W, mail.HTML) // fails if the client has disconnected
	return nil
}

// mailView is a mail with paths on this site.
type mailView struct {
	To, Subject, Text string
	PagePath          string
	HTMLPath          string // of its HTML; empty if it has none
	LinkPath          string // that the link in its text leads to; empty for none
}

// link finds the link of an invitation or of a password reset, alone on its line.
var link = regexp.MustCompile(`(?m)^https?://\S+/((?:accept|reset)(?:\?\S*)?#token=\S+)$`)

func viewOf(c *ui.Call, mail numberedMail) mailView {
	base := c.Site().BasePath()
	v := mailView{To: mail.To, Subject: mail.Subject, Text: mail.Text, PagePath: base + "/dev/mail/" + strconv.Itoa(mail.Number)}
	if mail.HTML != "" {
		v.HTMLPath = v.PagePath + "/html"
	}
	if found := link.FindStringSubmatch(mail.Text); found != nil {
		v.LinkPath = base + "/" + found[1]
	}
	return v
}

// latest returns the newest mails, limit at most.
func (m *Mailbox) latest(c *ui.Call, limit int) []mailView {
	var all []mailView
	for mail := range m.newestFirst() {
		if len(all) == limit {
			break
		}
		all = append(all, viewOf(c, mail))
	}
	return all
}
