package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
)

// conversation is what a product sends, step by step, and what it has to be answered. It is made by hand after the
// product's public documentation:
//
//	# a comment
//	@header Name: value        of all requests from here on; without a value: none
//	@query text                is added to the query of all requests
//	@active                    the connection is enabled; it is a draft before
//	== a title                 of the steps that follow
//
//	POST /Users                ends with an empty line
//	{"the": "body"}
//	=> 201 {"the": "answer"}   at least these members; null: absent; a list has just these items, in any order
//
// In an answer "${name}" is any text, the same at each place; in a request it stands for that.
type conversation struct {
	t      *testing.T
	d      *server
	secret string
	enable func()
	header http.Header
	query  string
	title  string
	known  map[string]string
}

// TestSCIMConversations plays what Okta, Entra ID, OneLogin, Ping and JumpCloud send, from the test of the connection to
// the deletion.
func TestSCIMConversations(t *testing.T) {
	files, err := filepath.Glob("scim/testdata/*.txt")
	if err != nil || len(files) < 14 {
		t.Fatalf("%d conversations, %v", len(files), err)
	}
	onBoth(t, func(t *testing.T, d *server) {
		for i, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				newConversation(t, d, d.Tenant(fmt.Sprintf("Acme %d", i)), i).play(string(text))
			})
		}
	})
}

// newConversation returns a conversation with the directory of a new connection in the tenant, which has proved a domain:
// acme.example of the file stands for it.
func newConversation(t *testing.T, d *server, acme *doorwardtest.Tenant, i int) *conversation {
	t.Helper()
	owner, domain := as(acme.Owner.Token()), fmt.Sprintf("acme%d.example", i)
	a := d.send(t, "POST "+domainsPath, m{"domain": domain}, owner).ok(http.StatusCreated)
	d.publish(a)
	d.send(t, "POST "+domainsPath+"/"+a.text("id")+"/verify", nil, owner).ok(http.StatusOK)
	id := d.send(t, "POST "+connectionsPath, m{"type": "scim", "name": "Directory"}, owner).ok(http.StatusCreated).text("id")
	secret := d.send(t, "POST "+connectionsPath+"/"+id+"/scim-secrets", m{}, owner).ok(http.StatusCreated).text("secret")
	return &conversation{
		t: t, d: d, secret: secret, header: http.Header{}, known: map[string]string{"": domain},
		enable: func() {
			d.send(t, "PATCH "+connectionsPath+"/"+id, m{"status": "active"}, owner).ok(http.StatusOK)
		},
	}
}

func (c *conversation) play(text string) {
	c.t.Helper()
	text = strings.ReplaceAll(text, "acme.example", c.known[""])
	for block := range strings.SplitSeq(text, "\n\n") {
		for strings.HasPrefix(block, "#") || strings.HasPrefix(block, "@") || strings.HasPrefix(block, "==") {
			var line string
			line, block, _ = strings.Cut(block, "\n")
			c.direct(line)
		}
		if strings.TrimSpace(block) != "" {
			c.step(block)
		}
	}
}

// direct follows a line that is no request.
func (c *conversation) direct(line string) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "@header":
		name, value, _ := strings.Cut(rest, ":")
		c.header[name] = []string{strings.TrimSpace(value)}
	case "@query":
		c.query = rest
	case "@active":
		c.enable()
	case "==":
		c.title = rest
	}
}

var answerLine = regexp.MustCompile(`(?m)^=> (\d{3})`)

func (c *conversation) step(block string) {
	c.t.Helper()
	at := answerLine.FindStringSubmatchIndex(block)
	if at == nil {
		c.t.Fatalf("%s: no answer in\n%s", c.title, block)
	}
	status, _ := strconv.Atoi(block[at[2]:at[3]])
	request, want := block[:at[0]], strings.TrimSpace(block[at[1]:])
	line, body, _ := strings.Cut(strings.TrimSuffix(request, "\n"), "\n")
	a := c.send(c.filled(line), c.filled(body))
	if a.status != status {
		c.t.Fatalf("%s: %s\n%s\nanswered %d %s\nwant %d", c.title, line, body, a.status, a.body, status)
	}
	if want == "" {
		if len(a.body) > 0 {
			c.t.Errorf("%s: %s has the body %s", c.title, line, a.body)
		}
		return
	}
	if err := c.compare(json.RawMessage(want), a.at("")); err != nil {
		c.t.Fatalf("%s: %s\n%s\nanswered %s\n%v", c.title, line, body, a.body, err)
	}
}

func (c *conversation) filled(text string) string {
	for name, value := range c.known {
		text = strings.ReplaceAll(text, "${"+name+"}", value)
	}
	return text
}

func (c *conversation) send(line, body string) answer {
	c.t.Helper()
	method, path, _ := strings.Cut(line, " ")
	if c.query != "" {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		path += separator + c.query
	}
	var sent any
	if body != "" {
		sent = body
	}
	return c.d.send(c.t, method+" /scim/v2"+path, sent, bearer(c.secret), func(r *http.Request) {
		r.Header.Del("Content-Type")
		for name, value := range c.header {
			if name != "Content-Type" || body != "" {
				r.Header[name] = value
			}
		}
	})
}

// compare returns an error unless got has what want has.
func (c *conversation) compare(want json.RawMessage, got any) error {
	var wanted any
	if err := json.Unmarshal(want, &wanted); err != nil {
		return fmt.Errorf("the expected answer: %w", err)
	}
	return c.covers(wanted, got, "")
}

func (c *conversation) covers(want, got any, at string) error {
	switch want := want.(type) {
	case m:
		object, ok := got.(m)
		if !ok && len(want) > 0 {
			return fmt.Errorf("%s is %v, want an object", at, got)
		}
		for name, value := range want {
			if err := c.covers(value, object[name], at+"/"+name); err != nil {
				return err
			}
		}
		return nil
	case []any:
		return c.coversList(want, got, at)
	case string:
		if name, isName := strings.CutPrefix(want, "${"); isName {
			return c.knows(strings.TrimSuffix(name, "}"), got, at)
		}
	}
	if want != got {
		return fmt.Errorf("%s is %v, want %v", at, got, want)
	}
	return nil
}

func (c *conversation) coversList(want []any, got any, at string) error {
	list, _ := got.([]any)
	if len(list) != len(want) {
		return fmt.Errorf("%s has %d items, want %d", at, len(list), len(want))
	}
	used := map[int]bool{}
	for _, item := range want {
		found := false
		for i := range list {
			if !used[i] && c.covers(item, list[i], at) == nil {
				used[i], found = true, true
				break
			}
		}
		if !found {
			return fmt.Errorf("%s has no item %v", at, item)
		}
	}
	return nil
}

// knows learns the value of a name, or compares it with what was learnt.
func (c *conversation) knows(name string, got any, at string) error {
	text, ok := got.(string)
	if !ok || text == "" || c.known[name] != "" && c.known[name] != text {
		return fmt.Errorf("%s is %v, want %s %s", at, got, name, c.known[name])
	}
	c.known[name] = text
	return nil
}
