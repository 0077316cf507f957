package dev_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web/dev"
)

// mailbox starts a server with the mails, and returns the address of their list.
func mailbox(t *testing.T, mails ...smtp.Message) string {
	t.Helper()
	box := &dev.Mailbox{}
	for _, mail := range mails {
		if err := box.Send(t.Context(), mail); err != nil {
			t.Fatal(err)
		}
	}
	return doorwardtest.Start(t, func(c *node.Config) { c.Extra = box.Routes() }).URL + "/dev/mail"
}

func get(t *testing.T, address string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// The mailbox keeps every mail of the run, shows them in pages, and finds them.
func TestMailboxKeepsAllMails(t *testing.T) {
	var mails []smtp.Message
	for i := range 120 {
		mails = append(mails, smtp.Message{To: fmt.Sprintf("person%d@acme.example", i%40), Subject: fmt.Sprintf("Subject %d.", i), Text: "Grüße"})
	}
	at := mailbox(t, mails...)
	for query, want := range map[string][2]string{
		"":                              {"Subject 119.", "Subject 70."},
		"?from=50":                      {"Subject 69.", "Subject 20."},
		"?from=100":                     {"Subject 19.", "Subject 0."},
		"?to=PERSON7@acme.example":      {"Subject 87.", "Subject 7."},
		"?q=grusse&from=100":            {"Subject 19.", "Subject 0."},
		"?q=SUBJECT+5.":                 {"Subject 5.", "Subject 5."},
		"?from=-7":                      {"Subject 119.", "Subject 70."},
		"?to=person7@acme.example&q=47": {"Subject 47.", "Subject 47."},
	} {
		_, page := get(t, at+query)
		first, last := strings.Index(page, "<strong>"+want[0]), strings.LastIndex(page, "<strong>"+want[1])
		if first < 0 || first != strings.Index(page, "<strong>Subject") || last < 0 || last != strings.LastIndex(page, "<strong>Subject") {
			t.Errorf("%q does not show %s to %s", query, want[0], want[1])
		}
	}
	if _, page := get(t, at); !strings.Contains(page, "/dev/mail?from=50&amp;q=&amp;to=") {
		t.Error("no link leads to older mails")
	}
}

// The count of a search names the address, and a search without a match doesn't advise to
// invite somebody.
func TestMailboxSaysWhatItFound(t *testing.T) {
	at := mailbox(t, smtp.Message{To: "ann@acme.example", Subject: "Hello"})
	for query, want := range map[string]string{
		"?to=ann@acme.example": "1 found, to ann@acme.example ·", "?q=hello": "1 found ·", "?q=none": "No mail matches.",
	} {
		if _, page := get(t, at+query); !strings.Contains(page, want) || strings.Contains(page, "Invite somebody") {
			t.Errorf("%q lacks %q:\n%s", query, want, page)
		}
	}
}

// A mail's HTML comes from templates with texts of customers: it runs nothing and loads
// nothing from elsewhere.
func TestMailboxShowsHTMLInASandbox(t *testing.T) {
	at := mailbox(t, smtp.Message{To: "ann@acme.example", Subject: "Hello", Text: "plain", HTML: `<script>parent.x = 1</script><img src="https://evil.example/x"><p>rich</p>`})
	res, page := get(t, at+"/0")
	if !strings.Contains(page, `<iframe class="paper" src="/dev/mail/0/html" sandbox `) || !strings.Contains(page, "plain") || strings.Contains(page, "rich") {
		t.Errorf("the page of the mail is\n%s", page)
	}
	if policy := res.Header.Get("Content-Security-Policy"); !strings.HasSuffix(policy, "; frame-src 'self'") {
		t.Errorf("the page's policy is %q", policy)
	}
	res, html := get(t, at+"/0/html")
	if policy := res.Header.Get("Content-Security-Policy"); policy != "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; sandbox; frame-ancestors 'self'" || !strings.Contains(html, "<p>rich</p>") {
		t.Errorf("the HTML has the policy %q: %s", policy, html)
	}
	for _, number := range []string{"1", "-1", "00", "x", "1/html"} {
		if res, _ := get(t, at+"/"+number); res.StatusCode != http.StatusNotFound {
			t.Errorf("mail %s: %s", number, res.Status)
		}
	}
}
