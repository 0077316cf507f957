package ui

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/connection"
)

// What the console and the pages of set-up links both show of a connection. Their templates are in
// html/signon.html.

// productNames are the products' own names, which are the same in each language.
var productNames = map[doorward.Product]string{
	doorward.Okta: "Okta", doorward.Entra: "Microsoft Entra ID", doorward.Google: "Google Workspace", doorward.Keycloak: "Keycloak",
	doorward.Ping: "PingOne", doorward.OneLogin: "OneLogin", doorward.JumpCloud: "JumpCloud", doorward.OtherProduct: "",
}

// ProductName returns the name of a provider's product; empty for another one.
func ProductName(p doorward.Product) string { return productNames[p] }

// english returns the messages of this package in the first language.
var english = sync.OnceValue(func() catalogue {
	all := catalogue{}
	_ = all.read(files, "text/"+Languages[0].Tag+".txt") // rendering the pages reports the error
	return all
})

// hasMessage reports whether this package has a message of the key.
func hasMessage(key string) bool { return english()[key] != "" }

// Guide says what to do in the console of a connection's provider.
type Guide struct {
	Product doorward.Product
	// Addresses of this server, to enter there. KeysURL is empty for a connection with client secrets.
	Callback, Start, KeysURL string
	// Revoke and Logout are where the provider ends sessions itself.
	Revoke, Logout string
}

// RevokeURL is Revoke where the product revokes people; empty for others.
func (g Guide) RevokeURL() string {
	if g.Product == doorward.Okta {
		return g.Revoke
	}
	return ""
}

// LogoutURL is Logout where the product sends logout tokens; empty for others.
func (g Guide) LogoutURL() string {
	switch g.Product {
	case doorward.Keycloak, doorward.Ping, doorward.OtherProduct:
		return g.Logout
	}
	return ""
}

// ProductName is the name of the provider's product; empty for another one.
func (g Guide) ProductName() string { return ProductName(g.Product) }

// Steps are the keys of the steps, in their order.
func (g Guide) Steps() (keys []string) {
	for n := 1; ; n++ {
		key := fmt.Sprintf("sso.guide.%s.%d", g.Product, n)
		if !hasMessage(key) {
			return keys
		}
		keys = append(keys, key)
	}
}

// IssuerHint is the key of where the issuer is found.
func (g Guide) IssuerHint() string { return "sso.issuer." + string(g.Product) }

// Copied is a value to copy, with the key of its label.
type Copied struct{ Label, Value string }

// copied makes a Copied, for templates.
func copied(label, value string) Copied { return Copied{label, value} }

// ParameterForm are the fields for what a connection signs people in by, as typed or as stored. The template
// "parameterFields" shows them.
type ParameterForm struct{ Issuer, ClientID, ClientAuth, EmailFrom string }

// ClientAuths are the ways in which Doorward can authenticate to a provider, in the order of the form.
var ClientAuths = []string{string(doorward.PrivateKeyJWT), string(doorward.SecretBasic), string(doorward.SecretPost)}

// ClientAuths are what the form offers.
func (ParameterForm) ClientAuths() []string { return ClientAuths }

// ParameterFormOf returns the fields: as typed if the form is shown again, else as stored.
func ParameterFormOf(c *Call, stored doorward.ConnectionParameters) ParameterForm {
	if c.Values("issuer") != nil {
		return ParameterForm{c.Value("issuer"), c.Value("clientId"), c.Value("clientAuth"), c.Value("emailFrom")}
	}
	return StoredParameters(stored)
}

// StoredParameters returns the fields as they are stored.
func StoredParameters(p doorward.ConnectionParameters) ParameterForm {
	return ParameterForm{p.Issuer, p.ClientID, string(p.ClientAuth), p.EmailFrom}
}

// TypedParameters returns the fields that were sent, for a change of the connection.
func TypedParameters(c *Call) (issuer, clientID, clientAuth, emailFrom *string) {
	typed := func(name string) *string {
		text := strings.TrimSpace(c.Value(name))
		return &text
	}
	return typed("issuer"), typed("clientId"), typed("clientAuth"), typed("emailFrom")
}

// CanBeTested reports whether nothing is missing that a test of the connection needs.
func CanBeTested(c connection.Shown) bool {
	edited, _ := c.ToTest()
	return edited.Issuer != "" && edited.ClientID != "" && (edited.ClientAuth == doorward.PrivateKeyJWT || len(c.Secrets) > 0)
}

// PublishedKey is a key by which Doorward authenticates to a provider.
type PublishedKey struct {
	ID  string `json:"kid"`
	Alg string `json:"alg"`
}

// PublishedKeys returns the keys of a key set (RFC 7517).
func PublishedKeys(set []json.RawMessage) (all []PublishedKey) {
	for _, text := range set {
		var one PublishedKey
		if json.Unmarshal(text, &one) == nil {
			all = append(all, one)
		}
	}
	return all
}

// TestResult is a test of a connection. The template "testResult" shows it.
type TestResult struct {
	doorward.ConnectionTest
	URL    string // where it begins, while it waits
	Checks []TestCheck
}

// NewTestResult returns the test of a connection to a provider of the product. start is where sign-ins by the
// connection begin.
func NewTestResult(test doorward.ConnectionTest, start string, product doorward.Product) TestResult {
	shown := TestResult{ConnectionTest: test, URL: start + "?" + url.Values{"test": {test.ID}}.Encode()}
	for _, check := range test.Checks {
		shown.Checks = append(shown.Checks, TestCheck{check, product})
	}
	return shown
}

// Waits reports whether nobody has signed in yet.
func (t TestResult) Waits() bool { return t.Status == doorward.TestWaiting }

// HasPassed reports whether the test has passed.
func (t TestResult) HasPassed() bool { return t.Status == doorward.TestPassed }

// Notable are the checks that have not passed, and those of which something was seen.
func (t TestResult) Notable() []TestCheck {
	return slices.DeleteFunc(slices.Clone(t.Checks), func(c TestCheck) bool { return c.OK && c.Seen == "" })
}

// Quiet are the other checks, which have passed.
func (t TestResult) Quiet() []TestCheck {
	return slices.DeleteFunc(slices.Clone(t.Checks), func(c TestCheck) bool { return !c.OK || c.Seen != "" })
}

// TestCheck is what a test says of one check.
type TestCheck struct {
	doorward.TestCheck
	Product doorward.Product // of the provider
}

// CheckKey is the key of the message about the check; empty if there is none.
func (s TestCheck) CheckKey() string { return checkKey(s.Name) }

// AdviceKey is the key of the message that says what to do; empty if there is none.
func (s TestCheck) AdviceKey() string { return AdviceKey(s.Advice, s.Product) }

// Attempt is an entry of a connection's protocol. The template "attempt" shows what was tried.
type Attempt struct {
	doorward.Attempt
	Product doorward.Product // of the provider
}

// Tone is the class of the outcome's tag.
func (a Attempt) Tone() string {
	switch a.Outcome {
	case doorward.AttemptRefused:
		return "alarm"
	case doorward.AttemptUnavailable, doorward.AttemptAsked:
		return "warm"
	}
	return ""
}

// CheckKey is the key of the message about the check; empty if there is none.
func (a Attempt) CheckKey() string { return checkKey(a.Check) }

// AdviceKey is the key of the message that says what to do; empty if there is none.
func (a Attempt) AdviceKey() string { return AdviceKey(a.Advice, a.Product) }

func checkKey(check string) string {
	if key := "sso.check." + check; hasMessage(key) {
		return key
	}
	return ""
}

// AdviceKey returns the key of the message about the advice, in the words of the provider's product where there
// is such a message; empty if there is none.
func AdviceKey(advice string, product doorward.Product) string {
	for _, key := range []string{"sso.advice." + advice + "." + string(product), "sso.advice." + advice} {
		if hasMessage(key) {
			return key
		}
	}
	return ""
}

// ProvingRecord is the DNS record that proves a domain. The template "record" shows it.
type ProvingRecord struct{ Name, Value string }

// RecordOf returns the record that proves the domain.
func RecordOf(d doorward.Domain) (r ProvingRecord) {
	r.Name, r.Value = d.Record()
	return r
}
