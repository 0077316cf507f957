package mail

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"strings"
	texttemplate "text/template"

	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/store"
)

//go:embed text
var texts embed.FS

// languages that mails are written in; the first is the fallback.
var languages = []string{"en", "de"}

// A mail named N in language L is N.L.txt, whose first line is the subject,
// and N.L.html.
var (
	plain = texttemplate.Must(texttemplate.New("").Option("missingkey=error").ParseFS(texts, "text/*.txt"))
	rich  = template.Must(template.New("").Option("missingkey=error").ParseFS(texts, "text/*.html"))
)

// words are what the texts may use.
type words struct {
	Name, Tenant, Role, Inviter string
	Link, Code                  string
	Until                       string
}

// letter is a mail ready to be sent.
type letter struct{ subject, text, html string }

func (l *letter) message(row store.Mail) smtp.Message {
	return smtp.Message{ID: row.ID, To: row.Recipient, Subject: l.subject, Text: l.text, HTML: l.html}
}

// newLetter fills in the texts of a mail. They are embedded and tested with
// every kind of words, so a failure is a defect of this package.
func newLetter(name, locale string, w words) *letter {
	name += "." + language(locale)
	var text, html bytes.Buffer
	err := plain.ExecuteTemplate(&text, name+".txt", w)
	if err == nil {
		err = rich.ExecuteTemplate(&html, name+".html", w)
	}
	if err != nil {
		panic(fmt.Sprintf("mail: text %s: %v", name, err))
	}
	subject, body, _ := strings.Cut(text.String(), "\n")
	return &letter{subject: subject, text: strings.TrimSpace(body) + "\n", html: html.String()}
}

// language is the one to write in for a BCP 47 tag.
func language(locale string) string {
	primary, _, _ := strings.Cut(strings.ToLower(locale), "-")
	for _, l := range languages {
		if l == primary {
			return l
		}
	}
	return languages[0]
}

// mint makes a token that opens the subject and stores its hash.
func mint(ctx context.Context, tx *store.Tx, subjectID string) (string, error) {
	token := secret.New()
	hash := token.Hash()
	return token.Reveal(), tx.InsertLinkToken(ctx, hash[:], subjectID)
}
