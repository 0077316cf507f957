package ui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/clientsecret"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/publicdomain"
	"github.com/doorward/doorward/internal/samlsp/fault"
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
	Type    doorward.ConnectionType
	Product doorward.Product
	// Addresses of this server, to enter there. KeysURL is empty where clients can't authenticate by keys. A page whose
	// form says that they don't hides it (see .by-key in the style sheet).
	Callback, Start, KeysURL string
	// Revoke and Logout are where the provider ends sessions itself.
	Revoke, Logout string
	// ACS is where a provider of SAML sends its responses, and EntityID what we are called there and where our metadata are.
	ACS, EntityID string
}

// GuideOf returns what to do in the console of the connection's provider.
func GuideOf(all *connection.Connections, c doorward.Connection) Guide {
	g := Guide{Type: c.Type, Product: c.Product, Start: all.StartURL(c.ID)}
	if c.Type == doorward.SAML {
		g.ACS, g.EntityID = all.SAML.ACSURL(c.ID), all.SAML.MetadataURL(c.ID)
		return g
	}
	g.Callback, g.Revoke, g.Logout = all.CallbackURL(c.ID), all.RevokeURL(c.ID), all.LogoutURL(c.ID)
	if edited, _ := c.ToTest(); edited.ClientAuth == doorward.PrivateKeyJWT || c.Product.OffersKeys() {
		g.KeysURL = all.KeysURL(c.ID)
	}
	return g
}

// IsSAML reports whether people sign in by SAML.
func (g Guide) IsSAML() bool { return g.Type == doorward.SAML }

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

// Step is one step of a Guide.
type Step struct {
	Key   string // of its text
	Class string // by-key or by-secret for a step that counts with that choice alone (see .by-key in the style sheet)
}

// Steps are the steps, in their order. One that is about our keys has a message of its own for client secrets.
func (g Guide) Steps() (steps []Step) {
	of := string(g.Product)
	if g.IsSAML() {
		of = "saml." + of
	}
	for n := 1; ; n++ {
		key := fmt.Sprintf("sso.guide.%s.%d", of, n)
		if !hasMessage(key) {
			return steps
		}
		if bySecret := key + ".secret"; hasMessage(bySecret) {
			steps = append(steps, Step{key, "by-key"}, Step{bySecret, "by-secret"})
		} else {
			steps = append(steps, Step{Key: key})
		}
	}
}

// IssuerHint is the key of where the issuer is found.
func (g Guide) IssuerHint() string { return "sso.issuer." + string(g.Product) }

// MetadataHint is the key of where the address of the provider's metadata is found.
func (g Guide) MetadataHint() string { return "saml.metadataUrl." + string(g.Product) }

// SubjectHint is the key of which attribute has the person's id.
func (g Guide) SubjectHint() string { return "saml.subjectFrom." + string(g.Product) }

// AddressHint is the key of which attribute has the e-mail address.
func (g Guide) AddressHint() string {
	if key := "saml.emailFrom." + string(g.Product); hasMessage(key) {
		return key
	}
	return "saml.emailFrom.hint"
}

// ClientIDHint is the key of what the product calls the client ID.
func (g Guide) ClientIDHint() string { return "sso.clientId." + string(g.Product) }

// ClientAuths are what the form offers: what the product can, and what is chosen in any case.
func (g Guide) ClientAuths(chosen string) []string {
	if g.Product.OffersKeys() || chosen == string(doorward.PrivateKeyJWT) {
		return ClientAuths
	}
	return ClientAuths[1:]
}

// AuthHint is the key of the hint at that choice; empty: there is none.
func (g Guide) AuthHint() string {
	if !g.Product.OffersKeys() {
		return ""
	}
	return "sso.auth.hint"
}

// Copied is a value to copy, with the key of its label.
type Copied struct{ Label, Value string }

// copied makes a Copied, for templates.
func copied(label, value string) Copied { return Copied{label, value} }

// ParameterForm are the fields for what a connection signs people in by, as typed or as stored. The template
// "parameterFields" shows them.
type ParameterForm struct{ Issuer, ClientID, ClientAuth, EmailFrom string }

// ClientAuths are the ways in which Doorward can authenticate to a provider, in the order of the form: that by keys is
// the first.
var ClientAuths = []string{string(doorward.PrivateKeyJWT), string(doorward.SecretBasic), string(doorward.SecretPost)}

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

// TypedSecret returns the client secret of a form with its end: the last second of the typed day (UTC), so that pages
// show the same day. Errors: validation_failed, for what is no day.
func TypedSecret(c *Call) (typed clientsecret.Typed, err error) {
	typed.Secret = strings.TrimSpace(c.Value("clientSecret"))
	day := strings.TrimSpace(c.Value("expiresAt"))
	if day == "" {
		return typed, nil
	}
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return typed, doorward.Invalid("/expiresAt", "invalid", "Write a day such as 2031-05-06.")
	}
	at = at.AddDate(0, 0, 1).Add(-time.Second)
	typed.ExpiresAt = &at
	return typed, nil
}

// MissingForTest returns the keys of the labels of what a test of the connection needs and it doesn't have.
func MissingForTest(c connection.Shown) (labels []string) {
	edited, _ := c.ToTest()
	if c.Type == doorward.SAML {
		if edited.Issuer == "" {
			labels = append(labels, "saml.metadata")
		}
		return labels
	}
	if edited.Issuer == "" {
		labels = append(labels, "field.issuer")
	}
	if edited.ClientID == "" {
		labels = append(labels, "field.clientId")
	}
	if edited.ClientAuth != doorward.PrivateKeyJWT && c.UsableSecrets() == 0 {
		labels = append(labels, "field.clientSecret")
	}
	return labels
}

// CanBeTested reports whether nothing is missing that a test of the connection needs.
func CanBeTested(c connection.Shown) bool { return len(MissingForTest(c)) == 0 }

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

// TestResult is a test of a connection. The templates "testResult" and "compare" show it.
type TestResult struct {
	doorward.ConnectionTest
	Checks    []TestCheck
	URL       string // where this browser begins it; empty: it can't
	IsChanged bool   // what the connection has now is something else than what was tested
	Compared  []Compared
	kind      doorward.ConnectionType
	product   doorward.Product
}

// Compared is a value to compare at a provider that doesn't lead back, with the key of the message about where it has it.
type Compared struct {
	Copied
	Advice string
}

// NewTestResult returns the test of the connection, whose guide has what to compare. maker is the address of who made the
// set-up link by which it is shown; empty in the console.
func NewTestResult(test doorward.ConnectionTest, of doorward.Connection, guide Guide, maker string) TestResult {
	edited, _ := of.ToTest()
	shown := TestResult{ConnectionTest: test, IsChanged: !test.IsOf(of), kind: of.Type, product: of.Product}
	compare := func(label, value, advice string) {
		shown.Compared = append(shown.Compared, Compared{Copied{label, value}, AdviceKey(advice, of.Type, of.Product)})
	}
	if of.Type == doorward.SAML {
		compare("saml.acs", guide.ACS, fault.AdviceACS)
		compare("saml.entityId", guide.EntityID, fault.AdviceAudience)
	} else {
		compare("sso.callback", guide.Callback, oidcrp.AdviceRedirectURI)
		compare("field.clientId", edited.ClientID, oidcrp.AdviceClientID)
	}
	for _, check := range test.Checks {
		shown.Checks = append(shown.Checks, TestCheck{check, of.Type, of.Product, maker})
	}
	return shown
}

// Waits reports whether nobody has signed in yet.
func (t TestResult) Waits() bool { return t.Status == doorward.TestWaiting }

// IsUnanswered reports whether the provider hasn't led back, or not in time. To somebody whose redirect address or
// client it doesn't know it shows an error of its own (RFC 6749, section 4.1.2.1), so that nothing is known here.
func (t TestResult) IsUnanswered() bool { return t.EndedAt == nil && (t.Waits() || t.BegunAt != nil) }

// AssignmentAdvice is the key of the message about where the provider says who may use the application.
func (t TestResult) AssignmentAdvice() string {
	return AdviceKey(oidcrp.AdviceAssignment, t.kind, t.product)
}

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
	Type    doorward.ConnectionType // of the connection
	Product doorward.Product        // of the provider
	Maker   string                  // of the set-up link by which it is shown; empty in the console
}

// CheckKey is the key of the message about the check; empty if there is none.
func (s TestCheck) CheckKey() string { return checkKey(s.Name) }

// AdviceKey is the key of the message that says what to do; empty if there is none.
func (s TestCheck) AdviceKey() string { return adviceFor(s.Maker, s.Advice, s.Type, s.Product) }

// Attempt is an entry of a connection's protocol. The template "attempt" shows what was tried.
type Attempt struct {
	doorward.Attempt
	Type    doorward.ConnectionType // of the connection
	Product doorward.Product        // of the provider
	Maker   string                  // of the set-up link by which it is shown; empty in the console
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
func (a Attempt) AdviceKey() string { return adviceFor(a.Maker, a.Advice, a.Type, a.Product) }

func checkKey(check string) string {
	if key := "sso.check." + check; hasMessage(key) {
		return key
	}
	return ""
}

// byLink ends the keys of messages for somebody who has only a set-up link, without a role, an account or a session: what
// to do is up to its maker.
const byLink = ".link"

// adviceFor returns AdviceKey, or the key of the message for those who have only the link of the maker.
func adviceFor(maker, advice string, of doorward.ConnectionType, product doorward.Product) string {
	if key := "sso.advice." + advice + byLink; maker != "" && hasMessage(key) {
		return key
	}
	return AdviceKey(advice, of, product)
}

// AdviceKey returns the key of the message about the advice: in the words of the provider's product, where there is
// such a message, and of the connection's protocol, where both protocols have the advice and say it in other words.
// Empty if there is none.
func AdviceKey(advice string, of doorward.ConnectionType, product doorward.Product) string {
	protocol := advice + "." + string(of)
	for _, key := range []string{protocol + "." + string(product), protocol, advice + "." + string(product), advice} {
		if hasMessage("sso.advice." + key) {
			return "sso.advice." + key
		}
	}
	return ""
}

// ProvingRecord is the DNS record that proves a domain. The template "record" shows it.
type ProvingRecord struct {
	Name, Value string
	// Zone is the domain as it was registered, whose name the consoles of many name servers add to what is entered, and
	// Host what to enter there.
	Zone, Host string
}

// RecordOf returns the record that proves the domain.
func RecordOf(d doorward.Domain) (r ProvingRecord) {
	r.Name, r.Value = d.Record()
	r.Zone = publicdomain.Registered(d.Name)
	r.Host = strings.TrimSuffix(r.Name, "."+r.Zone)
	return r
}
