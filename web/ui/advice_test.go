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

// allAdvices are those of tests, sign-ins, revocations and directories.
var allAdvices = slices.Concat(signon.Advices, directory.Advices, []string{signoff.AdviceBody})

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
			advice, product, hasProduct := strings.Cut(key, ".")
			if !slices.Contains(allAdvices, advice) || hasProduct && "."+product != byLink && !slices.Contains(doorward.Products, doorward.Product(product)) {
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
	add("sso.check.", oidcrp.CheckOfIssuer, "email", "domain", "jit", "removed", "suspended", "joining", "factor", "groups", "changed", signoff.CheckBody)
	add("sso.check.", directory.CheckSecret, directory.CheckDraft, directory.CheckTenant, directory.CheckUnknown, directory.CheckLastOwner, directory.CheckRefused, directory.CheckSuspended, directory.CheckMembers)
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
		advice, product, hasProduct := strings.Cut(key, ".")
		if !hasProduct || "."+product == byLink {
			continue
		}
		page, err := os.ReadFile("../../docs/sign-on-" + product + ".md")
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(string(page)), " ")
		for _, word := range words(message) {
			if !strings.Contains(text, word) {
				t.Errorf("%s names %q, which the page about %s doesn't have", key, word, product)
			}
		}
		if got := AdviceKey(advice, doorward.Product(product)); got != "sso.advice."+key {
			t.Errorf("the advice %s of %s is shown as %q", advice, product, got)
		}
	}
	if got := AdviceKey("client_secret", doorward.OtherProduct); got != "sso.advice.client_secret" {
		t.Errorf("the advice of another product is shown as %q", got)
	}
}

// TestAdviceByALink: what only an OWNER can do, somebody with a set-up link is told to ask of its maker. The rest is as in
// the console.
func TestAdviceByALink(t *testing.T) {
	const maker = "ann@acme.example"
	for _, advice := range allAdvices {
		shown := TestCheck{TestCheck: doorward.TestCheck{Advice: advice}, Product: doorward.Entra, Maker: maker}.AdviceKey()
		if tried := (Attempt{Attempt: doorward.Attempt{Advice: advice}, Product: doorward.Entra, Maker: maker}).AdviceKey(); tried != shown {
			t.Errorf("the advice %s is %s in tests, and %s in protocols", advice, shown, tried)
		}
		console := TestCheck{TestCheck: doorward.TestCheck{Advice: advice}, Product: doorward.Entra}.AdviceKey()
		isOwners := slices.Contains([]string{"domain", "factor", "hosted_domain", "invite", "joining", "network", "reinstate", "scim_allowed", "scim_disabled", "scim_domain", "scim_draft", "scim_owner", "scim_quota", "scim_tenant"}, advice)
		if isOwners != (shown != console) || isOwners != strings.Contains(english()[shown], "{maker}") || strings.Contains(english()[console], "{maker}") {
			t.Errorf("the advice %s is %q by a link, and %q in the console", advice, english()[shown], english()[console])
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
