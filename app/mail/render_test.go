package mail

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/store"
)

const (
	link = "https://door.example/platform/accept#token=" + code
	code = "hK3_xw-0aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// variablesWith returns variables with the value in every text but Link and Code, which users
// can't choose.
func variablesWith(value string) variables {
	v := variables{ByMail: true}
	fields := reflect.ValueOf(&v).Elem()
	for i := range fields.NumField() {
		if fields.Field(i).Kind() == reflect.String {
			fields.Field(i).SetString(value)
		}
	}
	v.Link, v.Code = "", ""
	return v
}

// values are names of people and tenants, some of them hostile.
var values = map[string]string{
	"usual":         "Ann Lee",
	"empty":         "",
	"long":          strings.Repeat("ä", 100),
	"long words":    strings.Repeat("Donaudampfschifffahrt ", 30),
	"right to left": "שלום עליכם",
	"turned around": "Ann \u202eeeL\u202c \u2067x",
	"markup":        `<script>alert(1)</script>"><img src=x onerror=alert(1)>`,
	"a template":    `{{.Code}}{{template "text" .}}`,
	"lines":         "Ann\r\nBcc: eve@evil.example\n\nhttps://evil.example\n\u2028Lee\x00\x02\x03",
	"no text":       "\xff\xfe",
	"a code":        strings.Repeat("A", 43),
	"a script":      "javascript:alert(1)",
}

// eachMail renders every mail in every language with every value.
func eachMail(t *testing.T, check func(t *testing.T, kind store.MailKind, value string, m smtp.Message)) {
	for _, kind := range kinds() {
		for language := range catalogues() {
			for name, value := range values {
				t.Run(strings.Join([]string{kind, language, name}, "/"), func(t *testing.T) {
					v := variablesWith(value)
					if hasLink[store.MailKind(kind)] {
						v.Link = link
					}
					if hasCode[store.MailKind(kind)] {
						v.Code = code
					}
					r := catalogues().render(store.MailKind(kind), language, v)
					check(t, store.MailKind(kind), value, r.message(store.Mail{ID: "msg_1", Recipient: "ann@acme.example"}))
				})
			}
		}
	}
}

// hasLink has the mails with a link, and hasCode those that also have a code.
var (
	hasLink = map[store.MailKind]bool{store.MailInvitation: true, store.MailReset: true, store.MailPasswordForgotten: true, store.MailAPIKeyExpiring: true, store.MailEmailConfirm: true, store.MailEmailRequested: true, store.MailEmailChanged: true, store.MailFactorsReset: true}
	hasCode = map[store.MailKind]bool{store.MailInvitation: true, store.MailReset: true, store.MailPasswordForgotten: true, store.MailEmailConfirm: true, store.MailEmailRequested: true, store.MailEmailChanged: true, store.MailFactorsReset: true}
)

// Whatever the values are, the transport accepts the mail, and its subject is one line of 1 to
// maxSubject characters.
func TestEveryMailCanBeSent(t *testing.T) {
	transport, err := smtp.Open("file:"+t.TempDir(), "Doorward <no-reply@door.example>", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	eachMail(t, func(t *testing.T, _ store.MailKind, _ string, m smtp.Message) {
		if err := transport.Send(t.Context(), m); err != nil {
			t.Error(err)
		}
		breaksLine := func(r rune) bool { return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) }
		if n := utf8.RuneCountInString(m.Subject); n == 0 || n > maxSubject || strings.ContainsFunc(m.Subject, breaksLine) {
			t.Errorf("the subject is %q", m.Subject)
		}
	})
}

// In the text part the link and the code each have their own line, no other line
// looks like one, and lines are short.
func TestThePlainText(t *testing.T) {
	isLink, isCode := regexp.MustCompile(`^https?://\S*$`), regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	eachMail(t, func(t *testing.T, kind store.MailKind, _ string, m smtp.Message) {
		var links, codes []string
		for line := range strings.SplitSeq(m.Text, "\n") {
			switch {
			case isLink.MatchString(line):
				links = append(links, line)
			case isCode.MatchString(line):
				codes = append(codes, line)
			case utf8.RuneCountInString(line) > columns && len(strings.Fields(line)) > 3: // up to three words may stay together
				t.Errorf("a line has %d characters: %q", utf8.RuneCountInString(line), line)
			case strings.ContainsFunc(line, unicode.IsControl):
				t.Errorf("unexpected line %q", line)
			}
		}
		var wantLinks, wantCodes []string
		if hasLink[kind] {
			wantLinks = []string{link}
		}
		if hasCode[kind] {
			wantCodes = []string{code}
		}
		if !slices.Equal(links, wantLinks) || !slices.Equal(codes, wantCodes) {
			t.Errorf("links %q, codes %q in\n%s", links, codes, m.Text)
		}
	})
}

// Whatever the values are, the HTML part has only the layout's elements and attributes, and
// contains the values; a reset has none.
func TestTheHTML(t *testing.T) {
	tags := []string{"html", "head", "meta", "title", "body", "table", "tbody", "tr", "td", "p", "strong", "br", "a"}
	attributes := []string{"lang", "dir", "charset", "name", "content", "style", "href", "role", "width", "cellpadding", "cellspacing", "border", "align", "bgcolor"}
	eachMail(t, func(t *testing.T, kind store.MailKind, value string, m smtp.Message) {
		doc, err := html.Parse(strings.NewReader(m.HTML))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		var links []string
		for n := range doc.Descendants() {
			switch n.Type {
			case html.TextNode:
				text.WriteString(n.Data)
			case html.ElementNode:
				if !slices.Contains(tags, n.Data) {
					t.Errorf("unexpected element %s in\n%s", n.Data, m.HTML)
				}
			}
			for _, a := range n.Attr {
				if !slices.Contains(attributes, a.Key) {
					t.Errorf("unexpected attribute %s", a.Key)
				}
				if a.Key == "href" {
					links = append(links, a.Val)
				}
			}
		}
		if hasLink[kind] != slices.Equal(links, []string{link}) || !hasLink[kind] && len(links) > 0 {
			t.Errorf("the links are %q", links)
		}
		if kind != store.MailReset && !strings.Contains(text.String(), oneLine(value)) {
			t.Errorf("no %q in\n%s", oneLine(value), m.HTML)
		}
		if hasCode[kind] != strings.Contains(text.String(), code) {
			t.Errorf("the HTML has the code: %v, want %v, in\n%s", !hasCode[kind], hasCode[kind], m.HTML)
		}
	})
}

// Mails that get no link, such as security notices, have none in either part.
func TestNoticesHaveNoLink(t *testing.T) {
	for _, kind := range kinds() {
		if hasLink[store.MailKind(kind)] {
			continue
		}
		for language := range catalogues() {
			m := catalogues().render(store.MailKind(kind), language, variablesWith("x")).message(store.Mail{})
			for _, bad := range []string{"://", "<a ", "href", "www."} {
				if strings.Contains(m.Text+m.HTML, bad) {
					t.Errorf("%s in %s contains %q", kind, language, bad)
				}
			}
		}
	}
}

// Names, and the URL of a webhook, are no links in any mail, in the subject, the text and the
// HTML: nothing there looks to a mail program like a URL, a host or an address.
func TestNamesAreNoLinks(t *testing.T) {
	looksLikeLink := regexp.MustCompile(`(?i)[\pL\pN][.@\x{2024}\x{3002}\x{fe52}\x{ff0e}\x{ff61}\x{ff20}][^\s\pP]|[a-z]:\S|\\\\`)
	for _, name := range []string{
		"evil.example", "Pay at https://evil.example/x?a=b", "www.evil.example", "me@evil.example", "mailto:me", "evil。example", "evil\uff0eexample",
		"evil.\u200eexample", "evil.\u200bexample", "evil.\u00adexample", "evil.❤.ws", `\\host\x`, "http://2130706433/", "שלום evil.example",
	} {
		if !looksLikeLink.MatchString(oneLine(name)) {
			t.Errorf("%q isn't found to be a link", name)
		}
		for _, kind := range kinds() {
			for language := range catalogues() {
				v := variables{Name: name, Tenant: name, Key: name, Webhook: name}
				m := catalogues().render(store.MailKind(kind), language, v).message(store.Mail{})
				_, body, _ := strings.Cut(m.HTML, "</head>")
				body = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, " ")
				for _, part := range []string{m.Subject, m.Text, html.UnescapeString(body)} {
					if found := looksLikeLink.FindString(part); found != "" {
						t.Errorf("%s in %s looks with the name %q as if it had a link: %q in\n%s", kind, language, name, found, part)
					}
				}
			}
		}
	}
	for _, name := range []string{"Ann Lee", "Acme Inc.", "J. R. Lee", "A/B & C", "(x.)", "Lee, Ann", "it's"} {
		if got := unlinked(name); got != name {
			t.Errorf("%q becomes %q", name, got)
		}
	}
	for email, want := range map[string]string{"ann.lee+x@acme.example": "ann.lee+x@acme.example", "evil.example/pay@acme.example": "evil. example/pay@ acme. example"} {
		if got := shownAddress(email); got != want {
			t.Errorf("the address %s is shown as %q, want %q", email, got, want)
		}
	}
}

// The plain text and the subject of the invitation are exactly these.
func TestTheInvitation(t *testing.T) {
	v := variables{Name: "Bob", Tenant: "Acme", Role: "USER", Actor: "Ann Lee (ann@acme.example)", Link: link, Code: code, Until: "2031-05-06 12:00 UTC"}
	want := `Hello Bob,

Ann Lee (ann@acme.example) invites you to join Acme with the role User.

Open this link to accept:

` + link + `

Or enter this code where you are asked for it:

` + code + `

The invitation is valid until 2031-05-06 12:00 UTC and can be used once. If
you don't expect it, ignore this mail; nothing happens without you.
`
	r := catalogues().render(store.MailInvitation, "", v)
	if got := r.text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := r.subject(), "Ann Lee (ann@acme.example) invites you to Acme"; got != want {
		t.Errorf("the subject is %q, want %q", got, want)
	}
	if !strings.Contains(r.html(), "to join <strong>Acme</strong> with the role User.") {
		t.Errorf("the HTML is\n%s", r.html())
	}
	if strings.Contains(r.html(), "<strong></strong>") {
		t.Errorf("an empty value is set in bold in the HTML\n%s", r.html())
	}
}

// English sentences begin with a capital, after the greeting too, whichever wording the variables choose.
func TestSentencesBeginWithCapitals(t *testing.T) {
	for _, kind := range kinds() {
		for _, value := range []string{"", "X", "passkey"} {
			for _, is := range []bool{false, true} {
				v := variablesWith(value)
				v.Tenant, v.Member = "X", "X" // never empty
				v.ByMail, v.RotateBy, v.Released, v.Gone, v.KeyLost = is, is, is, is, value == "X"
				r := catalogues().render(store.MailKind(kind), "en", v)
				for _, sentence := range slices.Concat(r.Paragraphs, r.Advice, []text{r.Note}) {
					if first, _ := utf8.DecodeRuneInString(sentence.Plain()); unicode.IsLower(first) && !strings.HasPrefix(sentence.Plain(), "passkey") {
						t.Errorf("%s: %q begins with a small letter", kind, sentence.Plain())
					}
				}
			}
		}
	}
}

// Every string variable is sanitised, including those added later.
func TestEveryVariableIsSanitized(t *testing.T) {
	sanitized := reflect.ValueOf(variablesWith("a\nb").sanitized())
	for i := range sanitized.NumField() {
		if got := fmt.Sprint(sanitized.Field(i)); strings.Contains(got, "\n") {
			t.Errorf("%s is unchanged: %q", sanitized.Type().Field(i).Name, got)
		}
	}
	v := variables{Link: "a\nb", Code: "a\nb"}.sanitized()
	if v.Link != "a b" || v.Code != "a b" {
		t.Errorf("link and code are unchanged: %q, %q", v.Link, v.Code)
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"Ann Lee": "Ann Lee", " a \t\n b ": "a b", "a\u2028b\u0085c": "a b c", "\x02a\x03": "a",
		"a\u202eb\u2066c\u200fd": "abcd", "\xffa": "\uFFFDa", "שלום": "\u2068שלום\u2069", "": "", "\n": "",
	} {
		if got := oneLine(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	tens := strings.TrimSpace(strings.Repeat("nine-long ", 20))
	long := strings.Repeat("x", 80)
	for in, want := range map[string]string{
		"":              "",
		"one":           "one",
		tens[:69]:       tens[:69],
		tens[:79]:       tens[:59] + "\n" + tens[60:79],
		long + " a b":   long + " a b",
		"a " + long:     "a " + long,
		"a b " + long:   "a b " + long,
		"a b c " + long: "a b\nc " + long,
	} {
		if got := wrap(text(in)); got != want {
			t.Errorf("%q is wrapped as\n%s\nwant\n%s", in, got, want)
		}
	}
}

// Every other mail is told at once: it was asked for, or is about the password, the address or the factors.
func TestWhatIsNeverHeldBack(t *testing.T) {
	want := []string{
		"address_refused", "digest", "directory_alarm", "email_changed", "email_confirm", "email_requested", "email_restored", "email_set", "factor_added", "factor_removed", "factor_renamed", "factors_disabled", "factors_removed", "factors_reset",
		"invitation", "passkey_copied", "password_changed", "password_forgotten", "recovery_codes", "recovery_used", "reset", "sso_bypass",
	}
	var never []string
	for _, kind := range kinds() {
		if store.HeldBack[store.MailKind(kind)] == "" {
			never = append(never, kind)
		}
	}
	if !slices.Equal(never, want) {
		t.Errorf("these are never held back: %q, want %q", never, want)
	}
}
