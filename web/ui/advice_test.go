package ui

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/app/signoff"
	"github.com/doorward/doorward/app/signon"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/internal/scim"
)

// advices returns the sentences of a language about what to do, by advice or advice.product.
func advices(t *testing.T, tag string) map[string]string {
	t.Helper()
	text, err := files.ReadFile("text/" + tag + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, message, ok := strings.Cut(strings.TrimSpace(line), " = "); ok && strings.HasPrefix(key, "sso.advice.") {
			all[strings.TrimPrefix(key, "sso.advice.")] = message
		}
	}
	return all
}

// allAdvices are those of tests, sign-ins by both protocols, revocations and directories.
var allAdvices = slices.Concat(signon.Advices, directory.Advices, []string{signoff.AdviceBody})

// protocols are the types of connections that sign people in.
var protocols = []doorward.ConnectionType{doorward.OpenIDConnect, doorward.SAML}

// adviceOf returns what a key of a sentence is about: the advice, and where they matter the protocol and the product. isLink
// says that it is for those who have only a set-up link.
func adviceOf(key string) (advice string, of doorward.ConnectionType, product doorward.Product, isLink bool) {
	parts := strings.Split(key, ".")
	advice, parts = parts[0], parts[1:]
	if len(parts) > 0 && slices.Contains(protocols, doorward.ConnectionType(parts[0])) {
		of, parts = doorward.ConnectionType(parts[0]), parts[1:]
	}
	rest := strings.Join(parts, ".")
	if isLink = "."+rest == byLink; !isLink {
		product = doorward.Product(rest)
	}
	return advice, of, product, isLink
}

// TestEachAdviceHasASentence: in each language, for each advice of tests and protocols, and for no other.
func TestEachAdviceHasASentence(t *testing.T) {
	for _, l := range Languages {
		have := advices(t, l.Tag)
		for _, advice := range allAdvices {
			if have[advice] == "" {
				t.Errorf("%s: no sentence for the advice %q", l.Tag, advice)
			}
		}
		for key := range have {
			advice, _, product, _ := adviceOf(key)
			if !slices.Contains(allAdvices, advice) || product != "" && !slices.Contains(doorward.Products, product) {
				t.Errorf("%s: nothing leads to the sentence %q", l.Tag, key)
			}
		}
	}
}

// TestMessagesOfConnections: the message keys that pages compute from products, checks and attempts exist.
func TestMessagesOfConnections(t *testing.T) {
	var keys []string
	add := func(prefix string, names ...string) {
		for _, name := range names {
			keys = append(keys, prefix+name)
		}
	}
	for _, p := range doorward.Products {
		add("sso.issuer.", string(p))
		if steps := (Guide{Product: p}).Steps(); len(steps) < 3 {
			t.Errorf("no instructions for %s", p)
		} else if isEither := slices.ContainsFunc(steps, func(s Step) bool { return s.Class != "" }); isEither != (p.DefaultClientAuth() == doorward.PrivateKeyJWT) {
			t.Errorf("%s has steps for keys or secrets alone: %t", p, isEither)
		}
	}
	for _, kind := range doorward.AttemptKinds {
		add("sso.kind.", string(kind))
	}
	add("sso.outcome.", string(doorward.AttemptSignedIn), string(doorward.AttemptAsked), string(doorward.AttemptDone), string(doorward.AttemptRefused), string(doorward.AttemptUnavailable))
	add("sso.auth.", ClientAuths...)
	add("sso.check.", oidcrp.Checks...)
	add("sso.check.", fault.Checks...)
	add("sso.check.", fault.CheckOfMetadata)
	add("sso.check.", oidcrp.CheckOfIssuer, "email", "domain", "jit", "removed", "suspended", "joining", "factor", "groups", "changed", signoff.CheckBody)
	add("sso.check.", directory.CheckSecret, directory.CheckDraft, directory.CheckTenant, directory.CheckUnknown, directory.CheckLastOwner, directory.CheckRefused, directory.CheckSuspended, directory.CheckMembers, directory.CheckRevoked)
	add("sso.check.", scim.Uniqueness, scim.InvalidFilter, scim.InvalidSyntax, scim.InvalidPath, scim.NoTarget, scim.InvalidValue, scim.Mutability)
	for _, key := range keys {
		if !hasMessage(key) {
			t.Errorf("no message %q", key)
		}
	}
}

// TestAdviceInWordsOfProducts: a sentence for a product names fields as the page about it does, the same ones in
// each language, and is the one that is shown for connections of the product.
func TestAdviceInWordsOfProducts(t *testing.T) {
	quoted := regexp.MustCompile(`[“„]([^“”„]+)[”“]`)
	words := func(message string) (all []string) {
		for _, found := range quoted.FindAllStringSubmatch(message, -1) {
			all = append(all, found[1])
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	english := advices(t, "en")
	for key, message := range english {
		for _, l := range Languages {
			if diff := cmp.Diff(words(message), words(advices(t, l.Tag)[key])); diff != "" {
				t.Errorf("%s and English name other fields in %s:\n%s", l.Tag, key, diff)
			}
		}
		advice, of, product, _ := adviceOf(key)
		if product == "" {
			continue
		}
		page, err := os.ReadFile("../../docs/sign-on-" + string(product) + ".md")
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(string(page)), " ")
		for _, word := range words(message) {
			if !strings.Contains(text, word) {
				t.Errorf("%s names %q, which the page about %s doesn't have", key, word, product)
			}
		}
		if of == "" && slices.Contains(oidcrp.Advices, advice) {
			of = doorward.OpenIDConnect
		}
		if got := AdviceKey(advice, of, product); got != "sso.advice."+key {
			t.Errorf("the advice %s of %s is shown as %q", advice, product, got)
		}
	}
	for _, c := range []struct {
		advice  string
		of      doorward.ConnectionType
		product doorward.Product
		want    string
	}{
		{"client_secret", doorward.OpenIDConnect, doorward.OtherProduct, "client_secret"},
		{"provider", doorward.OpenIDConnect, doorward.Okta, "provider"},
		{"provider", doorward.SAML, doorward.Okta, "provider.saml"},
		{"groups_claim", doorward.SAML, doorward.Okta, "groups_claim.saml"},
		{"groups_claim", doorward.SAML, doorward.Entra, "groups_claim.saml.entra"},
		{"assignment", doorward.SAML, doorward.Okta, "assignment.okta"},
	} {
		if got := AdviceKey(c.advice, c.of, c.product); got != "sso.advice."+c.want {
			t.Errorf("the advice %s of %s (%s) is shown as %q", c.advice, c.product, c.of, got)
		}
	}
}

// TestAdviceOfProtocols: no sentence for a connection of SAML speaks of OpenID Connect, and the other way round.
func TestAdviceOfProtocols(t *testing.T) {
	foreign := map[doorward.ConnectionType]*regexp.Regexp{
		doorward.OpenIDConnect: regexp.MustCompile(`SAML|NameID|[Aa]ssertion|ACS`),
		doorward.SAML:          regexp.MustCompile(`OpenID|OIDC|token|Token|prompt=|[Ii]ssuer|[Cc]laim\b|Client-ID|client ID`),
	}
	fields := regexp.MustCompile(`[“„][^“”„]+[”“]`) // of the provider's console, in its own words
	other := map[doorward.ConnectionType][]string{doorward.OpenIDConnect: fault.Advices, doorward.SAML: oidcrp.Advices}
	own := map[doorward.ConnectionType][]string{doorward.OpenIDConnect: oidcrp.Advices, doorward.SAML: fault.Advices}
	for _, l := range Languages {
		have := advices(t, l.Tag)
		for of, words := range foreign {
			for _, advice := range signon.Advices {
				if advice == "subject" || slices.Contains(other[of], advice) && !slices.Contains(own[of], advice) {
					continue // of the other protocol alone
				}
				for _, product := range doorward.Products {
					key := strings.TrimPrefix(AdviceKey(advice, of, product), "sso.advice.")
					if found := words.FindString(fields.ReplaceAllString(have[key], "")); found != "" {
						t.Errorf("%s: the sentence %s, for %s, speaks of %q", l.Tag, key, of, found)
					}
				}
			}
		}
	}
}

// TestAdviceByALink: what only an OWNER can do, somebody with a set-up link is told to ask of its maker. The rest is as in
// the console.
func TestAdviceByALink(t *testing.T) {
	const maker = "ann@acme.example"
	owners := []string{
		"context", "domain", "encryption", "factor", "hosted_domain", "invite", "joining", "network", "reinstate", "request_signed",
		"scim_allowed", "scim_disabled", "scim_domain", "scim_draft", "scim_owner", "scim_quota", "scim_revoked", "scim_tenant",
	}
	for _, of := range protocols {
		for _, advice := range allAdvices {
			shown := TestCheck{TestCheck: doorward.TestCheck{Advice: advice}, Type: of, Product: doorward.Entra, Maker: maker}.AdviceKey()
			if tried := (Attempt{Attempt: doorward.Attempt{Advice: advice}, Type: of, Product: doorward.Entra, Maker: maker}).AdviceKey(); tried != shown {
				t.Errorf("the advice %s is %s in tests, and %s in protocols", advice, shown, tried)
			}
			console := TestCheck{TestCheck: doorward.TestCheck{Advice: advice}, Type: of, Product: doorward.Entra}.AdviceKey()
			isOwners := slices.Contains(owners, advice)
			if isOwners != (shown != console) || isOwners != strings.Contains(english()[shown], "{maker}") || strings.Contains(english()[console], "{maker}") {
				t.Errorf("the advice %s is %q by a link, and %q in the console", advice, english()[shown], english()[console])
			}
		}
	}
}

// TestRecordOf: a record says what to enter where the console adds the domain itself.
func TestRecordOf(t *testing.T) {
	for name, want := range map[string][2]string{
		"acme.example": {"acme.example", "_doorward"}, "mail.acme.co.uk": {"acme.co.uk", "_doorward.mail"}, "a.b.xn--bcher-kva.example": {"xn--bcher-kva.example", "_doorward.a.b"},
	} {
		if got := RecordOf(doorward.Domain{Name: name}); got.Zone != want[0] || got.Host != want[1] || got.Name != "_doorward."+name {
			t.Errorf("the record of %s is %+v", name, got)
		}
	}
}
