package mail

import (
	"bytes"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/store"
)

// variables are the variables of the catalogues; docs/mail.md lists those of each
// mail. Those that users choose are untrusted input.
type variables struct {
	Name               string // of the person who gets the mail
	Tenant             string
	TenantID           string
	Member             string // whom the mail is about, by name and address
	Role               string
	FormerRole         string
	Actor              string // who did it, see actorOf; empty: the operator
	Link               string
	Code               string
	Until              string
	Email              string // of the person's account
	Address            string // that the account gets
	Site               string // the base URL, without the scheme so that it is no link
	At                 string
	IP                 string
	Browser            string
	System             string
	ByMail             bool   // the password was changed with the link of a mail
	Key                string // name of an API key, operator key or service key
	Hint               string // first and last characters of its secret
	Owner              string // of the key, by name and address; empty for somebody who has left
	LastUsed           string // empty: never
	RotateBy           bool   // the key ends because its owner has changed
	Factor             string // totp or passkey; empty for other mails
	CodesLeft          string // recovery codes that can still be used
	Webhook            string // its URL, without the scheme
	Since              string // time of the first failure
	Waiting            string // names of the person's tenants whose word is missing
	Connection         string // the name of a tenant's connection to its provider
	Suspended, Removed string // numbers of people that a directory has suspended and removed
	Domain             string // a DNS domain of the tenant
	Released           bool   // the operator has released it
	Gone               bool   // the endpoint has answered 410
	KeyLost            bool   // the webhook's secret was lost with the master key
	Count              string // of notices in a digest, or in one of its items
	Notice             string // the subject of the notices in an item of a digest

	// What an erased account has left in the tenant, by names separated by commas.
	Account                         string // its id
	Webhooks, Keys, Raised, Invited string
	KeysEnded, InvitationsEnded     string // numbers; empty for none

	Connections string // whose secret was lost with the master key, by names separated by commas; Webhooks has the same of webhooks
}

// sanitized returns the variables, each safe in one line. Names are no links; Actor and Owner
// are made by nameIn and actorOf, which keep addresses whole.
func (v variables) sanitized() variables {
	for _, s := range []*string{&v.Name, &v.Tenant, &v.Key, &v.Webhook, &v.Domain, &v.Connection} {
		*s = unlinked(*s)
	}
	for _, s := range []*string{
		&v.Name, &v.Tenant, &v.TenantID, &v.Member, &v.Role, &v.FormerRole, &v.Actor, &v.Link, &v.Code, &v.Until,
		&v.Email, &v.Address, &v.Site, &v.At, &v.IP, &v.Browser, &v.System,
		&v.Key, &v.Hint, &v.Owner, &v.LastUsed, &v.Factor, &v.CodesLeft, &v.Webhook, &v.Domain, &v.Connection, &v.Since, &v.Count, &v.Notice, &v.Waiting, &v.Suspended, &v.Removed,
		&v.Account, &v.Webhooks, &v.Keys, &v.Raised, &v.Invited, &v.KeysEnded, &v.InvitationsEnded, &v.Connections,
	} {
		*s = oneLine(*s)
	}
	return v
}

// oneLine makes untrusted text safe in running text and in a header: no line
// breaks, control characters, or characters that change the direction of text.
// Right-to-left text is isolated (UAX #9, section 6.3), or it would reorder the
// punctuation beside it.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp):
			return ' '
		case unicode.In(r, unicode.Bidi_Control):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.Join(strings.Fields(s), " ")
	if strings.ContainsFunc(s, isRightToLeft) {
		return "\u2068" + s + "\u2069"
	}
	return s
}

// unlinked is like oneLine, and puts a space into what a mail program would show as a link:
// "evil.example", "https://…", "me@evil.example", "\\host". Those programs look for the
// characters below; the others in each list are such that browsers take for them (UTS #46). An
// invisible character instead of the space could be removed on the way.
func unlinked(s string) string {
	var out strings.Builder
	var before rune
	for _, r := range oneLine(s) {
		joinsHost := strings.ContainsRune(".@\u2024\u3002\ufe52\uff0e\uff61\ufe6b\uff20", before) && !unicode.IsPunct(r)
		joinsScheme := strings.ContainsRune(":\\\ufe13\ufe55\uff1a\ufe68\uff3c", before)
		if (joinsHost || joinsScheme) && r != ' ' {
			out.WriteByte(' ')
		}
		out.WriteRune(r)
		before = r
	}
	return out.String()
}

func isRightToLeft(r rune) bool {
	return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko)
}

// renderedMail is a mail ready to be sent.
type renderedMail struct {
	Language, Direction string
	Subject, Greeting   text
	Paragraphs          []text
	Details, Advice     []text
	OpenLink, Button    text
	Link                string // empty: there is neither link nor code
	EnterCode           text
	Code                string // empty: there is only a link
	Note                text
	Style               style
	item                *sentence // heads the mail in a digest
}

// render fills in the texts in the language of a BCP 47 tag. If an operator's text can't be filled
// in, which CheckTexts finds with most values, the built-in texts take its place. They are tested
// with all variables, so a failure is a defect of this package.
func (c catalogueSet) render(kind store.MailKind, locale string, v variables) *renderedMail {
	tag := c.language(locale)
	in := c[tag]
	named := v
	named.Role, named.FormerRole = in.roleName(v.Role), in.roleName(v.FormerRole)
	r, err := in.Mails[string(kind)].fill(named.sanitized())
	switch {
	case err != nil && in.isOwn:
		return catalogues().render(kind, locale, v)
	case err != nil:
		panic(fmt.Sprintf("mail: %s in %s: %v", kind, tag, err))
	}
	r.Language, r.Direction, r.Style, r.item = tag, in.Direction, defaultStyle, in.Mails[string(store.MailDigest)].Item
	return &r
}

// withStyle sets the style of the HTML.
func (r *renderedMail) withStyle(s style) *renderedMail {
	r.Style = s
	return r
}

// fill requires sanitized variables.
func (m message) fill(v variables) (r renderedMail, err error) {
	fill := func(s *sentence) (t text) {
		if err == nil {
			t, err = s.fill(v)
		}
		return t
	}
	fillAll := func(all []*sentence) (filled []text) {
		for _, s := range all {
			if t := fill(s); t != "" {
				filled = append(filled, t)
			}
		}
		return filled
	}
	r = renderedMail{
		Subject: fill(m.Subject), Greeting: fill(m.Greeting),
		Paragraphs: fillAll(m.Paragraphs), Details: fillAll(m.Details), Advice: fillAll(m.Advice),
		OpenLink: fill(m.OpenLink), Button: fill(m.Button), Link: v.Link,
		EnterCode: fill(m.EnterCode), Code: v.Code, Note: fill(m.Note),
	}
	return r, err
}

func (r *renderedMail) message(row store.Mail) smtp.Message {
	return smtp.Message{ID: row.ID, To: row.Recipient, Subject: r.subject(), Text: r.text(), HTML: r.html()}
}

// maxSubject, in characters, keeps long names from filling the list of a mailbox. In bytes
// it is within what internal/smtp sends.
const maxSubject = 150

func (r *renderedMail) subject() string {
	s := []rune(r.Subject.Plain())
	if len(s) <= maxSubject {
		return string(s)
	}
	return string(s[:maxSubject-1]) + "…"
}

// text returns the plain text: wrapped paragraphs, with links and codes on their own lines.
func (r *renderedMail) text() string {
	blocks := []string{wrap(r.Greeting)}
	for _, p := range r.Paragraphs {
		blocks = append(blocks, wrap(p))
	}
	var details []string
	for _, d := range r.Details {
		details = append(details, wrap(d))
	}
	blocks = append(blocks, strings.Join(details, "\n"))
	for _, p := range r.Advice {
		blocks = append(blocks, wrap(p))
	}
	if r.Link != "" {
		blocks = append(blocks, wrap(r.OpenLink), r.Link, wrap(r.EnterCode), r.Code) // without a code the last two are empty
	}
	blocks = append(blocks, wrap(r.Note))
	return strings.Join(nonEmpty(blocks), "\n\n") + "\n"
}

func nonEmpty(blocks []string) (all []string) {
	for _, b := range blocks {
		if b != "" {
			all = append(all, b)
		}
	}
	return all
}

// columns is the width of the plain text. RFC 3676, section 4.2, allows 78; two are left for
// quoting.
const columns = 76

// wrap breaks a paragraph into lines of two words or more: a name alone on a line
// could be mistaken for the code.
func wrap(t text) string {
	var lines [][]string
	width := 0
	for _, word := range strings.Fields(t.Plain()) {
		n := 1 + utf8.RuneCountInString(word) // with a space before it
		last := len(lines) - 1
		// columns+1, since the first word of a line has no space before it.
		if last < 0 || width+n > columns+1 && len(lines[last]) > 1 {
			lines, last, width = append(lines, nil), last+1, 0
		}
		lines[last] = append(lines[last], word)
		width += n
	}
	return joinLines(avoidWidow(lines))
}

// avoidWidow gives a last line of one word a second one from the line above. If that has only
// two words, it joins both lines.
func avoidWidow(lines [][]string) [][]string {
	last := len(lines) - 1
	if last < 1 || len(lines[last]) > 1 {
		return lines
	}
	above := lines[last-1]
	if keep := len(above) - 1; keep > 1 {
		lines[last-1], lines[last] = above[:keep], []string{above[keep], lines[last][0]}
		return lines
	}
	lines[last-1] = append(above, lines[last]...)
	return lines[:last]
}

func joinLines(lines [][]string) string {
	var all []string
	for _, words := range lines {
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, "\n")
}

// Start is the side at which lines begin: mail programs know "left" and "right" alone.
func (r *renderedMail) Start() string {
	if r.Direction == "rtl" {
		return "right"
	}
	return "left"
}

// layout is the HTML of every mail. html/template escapes all its values. Outlook's engine is that of a word
// processor: widths and the padding of the button's background come from tables there, and it ignores
// opacity, rounded corners and what it doesn't know.
var layout = template.Must(template.ParseFS(builtInTexts, "text/layout.html"))

func (r *renderedMail) html() string {
	var out bytes.Buffer
	if err := layout.Execute(&out, r); err != nil {
		panic(fmt.Sprintf("mail: layout: %v", err))
	}
	return out.String()
}

// text is a sentence with its variables filled in, and with marks around strong parts. The
// marks are control characters, which sanitized removes from variables.
type text string

const (
	strongBegins = "\x02"
	strongEnds   = "\x03"
)

// strong marks the text as strong; catalogues call it.
func strong(s string) string {
	if s == "" {
		return ""
	}
	return strongBegins + s + strongEnds
}

var markRemover = strings.NewReplacer(strongBegins, "", strongEnds, "")

// Plain returns the text without marks.
func (t text) Plain() string { return markRemover.Replace(string(t)) }

// span is a part of a text, strong or not.
type span struct {
	Text   string
	Strong bool
}

// Spans splits the text at its marks.
func (t text) Spans() (all []span) {
	for rest := string(t); rest != ""; {
		before, after, _ := strings.Cut(rest, strongBegins)
		bold, after, _ := strings.Cut(after, strongEnds)
		all = append(all, span{before, false}, span{bold, true})
		rest = after
	}
	return slices.DeleteFunc(all, func(s span) bool { return s.Text == "" })
}
