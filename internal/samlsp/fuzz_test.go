package samlsp_test

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/samlsp"
	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/internal/samlsp/samltest"
)

// FuzzResponse changes responses that the provider has signed. Whatever is accepted says what was signed.
func FuzzResponse(f *testing.F) {
	w := newWorld(f)
	w.config.Decrypt = ownKey()
	request := w.start(f, samlsp.Ask{})
	for _, change := range []func(*samltest.Answer){
		func(*samltest.Answer) {},
		func(a *samltest.Answer) { a.SignAssertion, a.SignResponse = false, true },
		func(a *samltest.Answer) { encrypt(w, a) },
		func(a *samltest.Answer) { encrypt(w, a); a.Encrypting.CBC, a.SignResponse = true, true },
		func(a *samltest.Answer) { a.Edit = twice(after) },
		func(a *samltest.Answer) { a.Edit = replaced(">ann-7<", ">ann<!-- -->-7<") },
		func(a *samltest.Answer) { a.Status = "urn:oasis:names:tc:SAML:2.0:status:Requester" },
	} {
		answer := w.provider.Answer(request, w.now)
		change(&answer)
		text, err := w.provider.Text(answer)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "")
	}
	for _, s := range shapes[:2] {
		f.Add(w.fill(f, s, request), "tab")
	}
	f.Fuzz(func(t *testing.T, text, relayState string) {
		response, err := samlsp.Read(w.config, samltest.FormOf(text, relayState), w.now)
		if err == nil {
			var got samlsp.Asserted
			got, err = samlsp.Finish(w.config, response, w.now)
			if err == nil && !slices.Contains([]string{"ann-7", "ann@example.com"}, got.Subject) {
				t.Fatalf("accepted as %q", got.Subject)
			}
		}
		refused, is := errors.AsType[*fault.Fault](err)
		if err != nil && !errors.Is(err, samlsp.ErrUnsolicited) && (!is || !slices.Contains(fault.Checks, refused.Check)) {
			t.Fatalf("not a fault: %v", err)
		}
	})
}

// worst are the responses that cost most.
var worst = map[string]func(*samltest.Answer){
	"groups": func(a *samltest.Answer) {
		a.Attributes = append(a.Attributes, samltest.Attribute{Name: "groups", Values: strings.Fields(numbered("g%d ", 4900))})
	},
	"groups, both signed": func(a *samltest.Answer) {
		a.SignResponse = true
		a.Attributes = append(a.Attributes, samltest.Attribute{Name: "groups", Values: strings.Fields(numbered("g%d ", 4900))})
	},
	"text": func(a *samltest.Answer) {
		a.Attributes = append(a.Attributes, samltest.Attribute{Name: "photo", Values: []string{strings.Repeat("A", 240_000)}})
	},
	"namespaces, both signed": func(a *samltest.Answer) {
		a.SignResponse = true
		deep := "<saml:x" + numbered(` xmlns:n%d="urn:n"`, 55) + ">" + strings.Repeat("<n1:y n2:z=\"\"></n1:y>", 4000) + "</saml:x>"
		a.EditAssertion = inserted(`<saml:Attribute Name="deep"><saml:AttributeValue>`+deep+`</saml:AttributeValue></saml:Attribute>`, "</saml:AttributeStatement>")
	},
	"usual": func(*samltest.Answer) {},
}

// BenchmarkResponse is what a response costs that is accepted, and the same one when it is refused: by its signature,
// which is the last that an attacker without a certificate gets to.
func BenchmarkResponse(b *testing.B) {
	for name, change := range worst {
		for _, isRefused := range []bool{false, true} {
			label := name + "/accepted"
			if isRefused {
				label = name + "/refused"
			}
			b.Run(label, func(b *testing.B) {
				w := newWorld(b)
				w.config.GroupsFrom = "groups"
				answer := w.provider.Answer(w.start(b, samlsp.Ask{}), w.now)
				change(&answer)
				if isRefused {
					answer.Edit = func(text string) string { return strings.Replace(text, ">ann-7<", ">bob-8<", 1) }
				}
				form, err := w.provider.Form(answer)
				if err != nil {
					b.Fatal(err)
				}
				text, _ := base64.StdEncoding.DecodeString(form.Get("SAMLResponse"))
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := w.finish(form); (err != nil) != isRefused {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
