package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/smtp/smtptest"
)

// TestMailServerInTrouble: invitations work whatever the mail server does, and once
// it recovers each person gets the mail exactly once.
func TestMailServerInTrouble(t *testing.T) {
	for name, trouble := range map[string]func(*smtptest.Server){
		"down":                 (*smtptest.Server).Stop,
		"busy":                 func(s *smtptest.Server) { s.Refuse(smtptest.AtConnect, 421) },
		"full":                 func(s *smtptest.Server) { s.Refuse(smtptest.AtContent, 452) },
		"silent":               func(s *smtptest.Server) { s.Stall(smtptest.AtConnect) },
		"silent during a mail": func(s *smtptest.Server) { s.Stall(smtptest.AtContent) },
		"gone during a mail":   func(s *smtptest.Server) { s.HangUp(smtptest.AtContent) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink := smtptest.Start(t, smtptest.Options{})
			d := start(t, doorwardtest.Mail(sink.URL()))
			owner := d.Tenant("Acme").Owner
			trouble(sink)
			var invited []string
			for i := range 12 { // more than are sent at once
				email := fmt.Sprintf("ann%d@x.example", i)
				d.sendInvitation(t, owner, email, "USER", 3).is("delivery", "queued")
				invited = append(invited, email)
			}
			d.send(t, "POST /api/v2/auth/forgot-password", m{"email": owner.Email}).ok(http.StatusAccepted)
			d.clock.advance(6 * time.Second) // for a second try
			sink.Stop()                      // cuts the connections that wait for an answer
			sink.Behave()
			sink.Restart(t)
			d.emptyQueue(t)
			last := ""
			for _, email := range invited {
				last = onlyCode(t, sink, email, "/accept#")
			}
			d.complete(t, last, password).ok(http.StatusOK)
			d.reset(t, onlyCode(t, sink, owner.Email, "/reset#"), "three old boats").ok(http.StatusNoContent)
		})
	}
}

// onlyCode returns the code of the only mail to the address that links to the page.
func onlyCode(t *testing.T, sink *smtptest.Server, email, page string) string {
	t.Helper()
	var codes []string
	for _, mail := range sink.Wait(t, email, 1) {
		if text := mail.Parse(t).Text; strings.Contains(text, page) {
			codes = append(codes, codeLine.FindString(text))
		}
	}
	if len(codes) != 1 {
		t.Fatalf("%d mails to %s link to %s, want 1", len(codes), email, page)
	}
	return codes[0]
}
