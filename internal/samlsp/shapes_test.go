package samlsp_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/internal/samlsp"
	"github.com/doorward/doorward/internal/samlsp/samltest"
)

// shape is a response in the form in which a product sends it, with data of our own.
type shape struct {
	name           string
	text           string   // with {acs}, {request}, {us}, {idp}, {now}, {before}, {later}, {tomorrow}
	signed         []string // the ids of what is signed, in the order in which the product signs
	how            samltest.Signing
	change         func(*samlsp.Config)
	subject, email string
	groups         []string
}

const (
	xmlSchema   = ` xmlns:xs="http://www.w3.org/2001/XMLSchema"`
	xmlInstance = ` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"`
	claims      = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"
	microsoft   = "http://schemas.microsoft.com/identity/claims/"
)

var shapes = []shape{
	{
		name: "Entra ID", signed: []string{"_a"}, how: samltest.Signing{NoPrefix: true},
		text: `<samlp:Response ID="_r" Version="2.0" IssueInstant="{now}" Destination="{acs}" InResponseTo="{request}" xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol">` +
			`<Issuer xmlns="urn:oasis:names:tc:SAML:2.0:assertion">{idp}</Issuer><samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>` +
			`<Assertion ID="_a" IssueInstant="{now}" Version="2.0" xmlns="urn:oasis:names:tc:SAML:2.0:assertion"><Issuer>{idp}</Issuer>` +
			`<Subject><NameID Format="urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress">ann@example.com</NameID><SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer">` +
			`<SubjectConfirmationData InResponseTo="{request}" NotOnOrAfter="{later}" Recipient="{acs}"/></SubjectConfirmation></Subject>` +
			`<Conditions NotBefore="{before}" NotOnOrAfter="{later}"><AudienceRestriction><Audience>{us}</Audience></AudienceRestriction></Conditions>` +
			`<AttributeStatement><Attribute Name="` + microsoft + `tenantid"><AttributeValue>2f1d</AttributeValue></Attribute>` +
			`<Attribute Name="` + microsoft + `objectidentifier"><AttributeValue>6b2a</AttributeValue></Attribute>` +
			`<Attribute Name="` + microsoft + `displayname"><AttributeValue>Ann</AttributeValue></Attribute>` +
			`<Attribute Name="http://schemas.microsoft.com/ws/2008/06/identity/claims/groups"><AttributeValue>g-1</AttributeValue><AttributeValue>g-2</AttributeValue></Attribute>` +
			`<Attribute Name="http://schemas.microsoft.com/claims/authnmethodsreferences"><AttributeValue>http://schemas.microsoft.com/claims/multipleauthn</AttributeValue></Attribute>` +
			`<Attribute Name="` + claims + `emailaddress"><AttributeValue>ann@example.com</AttributeValue></Attribute>` +
			`<Attribute Name="` + claims + `name"><AttributeValue>ann@corp.example</AttributeValue></Attribute></AttributeStatement>` +
			`<AuthnStatement AuthnInstant="{before}" SessionIndex="_a"><AuthnContext><AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</AuthnContextClassRef></AuthnContext></AuthnStatement></Assertion></samlp:Response>`,
		change:  func(c *samlsp.Config) { c.SubjectFrom, c.GroupsFrom = "objectidentifier", "groups" },
		subject: "6b2a", email: "ann@example.com", groups: []string{"g-1", "g-2"},
	},
	{
		name: "Okta", signed: []string{"id2", "id1"}, how: samltest.Signing{Prefixes: "xs"},
		text: `<?xml version="1.0" encoding="UTF-8"?><saml2p:Response Destination="{acs}" ID="id1" InResponseTo="{request}" IssueInstant="{now}" Version="2.0" xmlns:saml2p="urn:oasis:names:tc:SAML:2.0:protocol"` + xmlSchema + `>` +
			`<saml2:Issuer Format="urn:oasis:names:tc:SAML:2.0:nameid-format:entity" xmlns:saml2="urn:oasis:names:tc:SAML:2.0:assertion">{idp}</saml2:Issuer>` +
			`<saml2p:Status xmlns:saml2p="urn:oasis:names:tc:SAML:2.0:protocol"><saml2p:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></saml2p:Status>` +
			`<saml2:Assertion ID="id2" IssueInstant="{now}" Version="2.0" xmlns:saml2="urn:oasis:names:tc:SAML:2.0:assertion"` + xmlSchema + `><saml2:Issuer Format="urn:oasis:names:tc:SAML:2.0:nameid-format:entity" xmlns:saml2="urn:oasis:names:tc:SAML:2.0:assertion">{idp}</saml2:Issuer>` +
			`<saml2:Subject xmlns:saml2="urn:oasis:names:tc:SAML:2.0:assertion"><saml2:NameID Format="urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress">ann@example.com</saml2:NameID><saml2:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml2:SubjectConfirmationData InResponseTo="{request}" NotOnOrAfter="{later}" Recipient="{acs}"/></saml2:SubjectConfirmation></saml2:Subject>` +
			`<saml2:Conditions NotBefore="{before}" NotOnOrAfter="{later}" xmlns:saml2="urn:oasis:names:tc:SAML:2.0:assertion"><saml2:AudienceRestriction><saml2:Audience>{us}</saml2:Audience></saml2:AudienceRestriction></saml2:Conditions>` +
			`<saml2:AuthnStatement AuthnInstant="{before}" SessionIndex="{request}" xmlns:saml2="urn:oasis:names:tc:SAML:2.0:assertion"><saml2:AuthnContext><saml2:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport</saml2:AuthnContextClassRef></saml2:AuthnContext></saml2:AuthnStatement>` +
			`<saml2:AttributeStatement xmlns:saml2="urn:oasis:names:tc:SAML:2.0:assertion"><saml2:Attribute Name="groups" NameFormat="urn:oasis:names:tc:SAML:2.0:attrname-format:unspecified"><saml2:AttributeValue` + xmlSchema + xmlInstance + ` xsi:type="xs:string">Everyone</saml2:AttributeValue></saml2:Attribute></saml2:AttributeStatement></saml2:Assertion></saml2p:Response>`,
		change:  func(c *samlsp.Config) { c.GroupsFrom = "groups" },
		subject: "ann@example.com", email: "ann@example.com", groups: []string{"Everyone"},
	},
	{
		name: "Google", signed: []string{"_a"},
		text: `<?xml version="1.0" encoding="UTF-8" standalone="no"?><saml2p:Response xmlns:saml2p="urn:oasis:names:tc:SAML:2.0:protocol" Destination="{acs}" ID="_r" InResponseTo="{request}" IssueInstant="{now}" Version="2.0">` +
			`<saml2:Issuer xmlns:saml2="urn:oasis:names:tc:SAML:2.0:assertion">{idp}</saml2:Issuer><saml2p:Status><saml2p:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></saml2p:Status>` +
			`<saml2:Assertion xmlns:saml2="urn:oasis:names:tc:SAML:2.0:assertion" ID="_a" IssueInstant="{now}" Version="2.0"><saml2:Issuer>{idp}</saml2:Issuer>` +
			`<saml2:Subject><saml2:NameID Format="urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified">1089</saml2:NameID><saml2:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml2:SubjectConfirmationData InResponseTo="{request}" NotOnOrAfter="{later}" Recipient="{acs}"/></saml2:SubjectConfirmation></saml2:Subject>` +
			`<saml2:Conditions NotBefore="{before}" NotOnOrAfter="{later}"><saml2:AudienceRestriction><saml2:Audience>{us}</saml2:Audience></saml2:AudienceRestriction></saml2:Conditions>` +
			`<saml2:AttributeStatement><saml2:Attribute Name="Email"><saml2:AttributeValue` + xmlSchema + xmlInstance + ` xsi:type="xs:anyType">ann@example.com</saml2:AttributeValue></saml2:Attribute>` +
			`<saml2:Attribute Name="Department"/></saml2:AttributeStatement>` +
			`<saml2:AuthnStatement AuthnInstant="{before}" SessionIndex="_a"><saml2:AuthnContext><saml2:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:unspecified</saml2:AuthnContextClassRef></saml2:AuthnContext></saml2:AuthnStatement></saml2:Assertion></saml2p:Response>`,
		change:  func(c *samlsp.Config) { c.GroupsFrom = "Department" },
		subject: "1089", email: "ann@example.com",
	},
	{
		name: "OneLogin", signed: []string{"A1"},
		text: `<samlp:Response xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" ID="R1" Version="2.0" IssueInstant="{now}" Destination="{acs}" InResponseTo="{request}"><saml:Issuer>{idp}</saml:Issuer>` +
			`<samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status><saml:Assertion` + xmlSchema + xmlInstance + ` xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" Version="2.0" ID="A1" IssueInstant="{now}"><saml:Issuer>{idp}</saml:Issuer>` +
			`<saml:Subject><saml:NameID Format="urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress">ann@example.com</saml:NameID><saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml:SubjectConfirmationData NotOnOrAfter="{later}" Recipient="{acs}" InResponseTo="{request}"/></saml:SubjectConfirmation></saml:Subject>` +
			`<saml:Conditions NotBefore="{before}" NotOnOrAfter="{later}"><saml:AudienceRestriction><saml:Audience>{us}</saml:Audience></saml:AudienceRestriction></saml:Conditions>` +
			`<saml:AuthnStatement AuthnInstant="{before}" SessionNotOnOrAfter="{tomorrow}" SessionIndex="_s"><saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>` +
			`<saml:AttributeStatement><saml:Attribute NameFormat="urn:oasis:names:tc:SAML:2.0:attrname-format:basic" Name="User.email"><saml:AttributeValue xsi:type="xs:string">ann@example.com</saml:AttributeValue></saml:Attribute>` +
			`<saml:Attribute NameFormat="urn:oasis:names:tc:SAML:2.0:attrname-format:basic" Name="memberOf"><saml:AttributeValue xsi:type="xs:string">Staff</saml:AttributeValue></saml:Attribute></saml:AttributeStatement></saml:Assertion></samlp:Response>`,
		change:  func(c *samlsp.Config) { c.GroupsFrom = "groups" },
		subject: "ann@example.com", email: "ann@example.com", groups: []string{"Staff"},
	},
	{
		name: "AD FS", signed: []string{"_a"},
		text: `<samlp:Response ID="_r" Version="2.0" IssueInstant="{now}" Destination="{acs}" Consent="urn:oasis:names:tc:SAML:2.0:consent:unspecified" InResponseTo="{request}" xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol">` +
			`<Issuer xmlns="urn:oasis:names:tc:SAML:2.0:assertion">{idp}</Issuer><samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success" /></samlp:Status>` +
			`<Assertion ID="_a" IssueInstant="{now}" Version="2.0" xmlns="urn:oasis:names:tc:SAML:2.0:assertion"><Issuer>{idp}</Issuer>` +
			`<Subject><NameID Format="urn:oasis:names:tc:SAML:2.0:nameid-format:persistent" NameQualifier="{idp}" SPNameQualifier="{us}">CORP\ann</NameID><SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><SubjectConfirmationData InResponseTo="{request}" NotOnOrAfter="{later}" Recipient="{acs}" /></SubjectConfirmation></Subject>` +
			`<Conditions NotBefore="{before}" NotOnOrAfter="{later}"><AudienceRestriction><Audience>{us}</Audience></AudienceRestriction></Conditions>` +
			`<AttributeStatement><Attribute Name="` + claims + `upn"><AttributeValue>ann@corp.example</AttributeValue></Attribute><Attribute Name="` + claims + `emailaddress"><AttributeValue>ann@example.com</AttributeValue></Attribute>` +
			`<Attribute Name="http://schemas.xmlsoap.org/claims/Group"><AttributeValue>Domain Users</AttributeValue><AttributeValue>Staff</AttributeValue></Attribute></AttributeStatement>` +
			`<AuthnStatement AuthnInstant="{before}" SessionIndex="_a"><AuthnContext><AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport</AuthnContextClassRef></AuthnContext></AuthnStatement></Assertion></samlp:Response>`,
		change:  func(c *samlsp.Config) { c.GroupsFrom = "http://schemas.xmlsoap.org/claims/Group" },
		subject: `CORP\ann`, email: "ann@example.com", groups: []string{"Domain Users", "Staff"},
	},
	{
		name: "Shibboleth", signed: []string{"_r"},
		text: `<saml2p:Response xmlns:saml2p="urn:oasis:names:tc:SAML:2.0:protocol" Destination="{acs}" ID="_r" InResponseTo="{request}" IssueInstant="{now}" Version="2.0"><saml2:Issuer xmlns:saml2="urn:oasis:names:tc:SAML:2.0:assertion">{idp}</saml2:Issuer>` + "\n" +
			`<saml2p:Status><saml2p:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></saml2p:Status>` +
			`<saml2:Assertion xmlns:saml2="urn:oasis:names:tc:SAML:2.0:assertion" ID="_a" IssueInstant="{now}" Version="2.0"><saml2:Issuer>{idp}</saml2:Issuer>` +
			`<saml2:Subject><saml2:NameID Format="urn:oasis:names:tc:SAML:2.0:nameid-format:transient" NameQualifier="{idp}">AAdz</saml2:NameID><saml2:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml2:SubjectConfirmationData Address="192.0.2.1" InResponseTo="{request}" NotOnOrAfter="{later}" Recipient="{acs}"/></saml2:SubjectConfirmation></saml2:Subject>` +
			`<saml2:Conditions NotBefore="{before}" NotOnOrAfter="{later}"><saml2:AudienceRestriction><saml2:Audience>{us}</saml2:Audience></saml2:AudienceRestriction></saml2:Conditions>` +
			`<saml2:AuthnStatement AuthnInstant="{before}" SessionIndex="_s"><saml2:SubjectLocality Address="192.0.2.1"/><saml2:AuthnContext><saml2:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport</saml2:AuthnContextClassRef></saml2:AuthnContext></saml2:AuthnStatement>` +
			`<saml2:AttributeStatement><saml2:Attribute FriendlyName="mail" Name="urn:oid:0.9.2342.19200300.100.1.3" NameFormat="urn:oasis:names:tc:SAML:2.0:attrname-format:uri"><saml2:AttributeValue>ann@example.com</saml2:AttributeValue></saml2:Attribute>` +
			`<saml2:Attribute FriendlyName="subject-id" Name="urn:oasis:names:tc:SAML:attribute:subject-id" NameFormat="urn:oasis:names:tc:SAML:2.0:attrname-format:uri"><saml2:AttributeValue>ann7@example.com</saml2:AttributeValue></saml2:Attribute>` +
			`<saml2:Attribute FriendlyName="isMemberOf" Name="urn:oid:1.3.6.1.4.1.5923.1.5.1.1" NameFormat="urn:oasis:names:tc:SAML:2.0:attrname-format:uri"><saml2:AttributeValue>staff</saml2:AttributeValue></saml2:Attribute></saml2:AttributeStatement></saml2:Assertion></saml2p:Response>`,
		change:  func(c *samlsp.Config) { c.SubjectFrom, c.GroupsFrom = "subject-id", "groups" },
		subject: "ann7@example.com", email: "ann@example.com", groups: []string{"staff"},
	},
}

// fill fills in a shape, for the request, and signs it.
func (w *world) fill(t testing.TB, s shape, request samltest.Request) string {
	t.Helper()
	at := func(d time.Duration) string { return w.now.Add(d).Format("2006-01-02T15:04:05.000Z") }
	text := strings.NewReplacer("{acs}", request.ACS, "{request}", request.ID, "{us}", request.Issuer, "{idp}", w.provider.EntityID, "{now}", at(0),
		"{before}", at(-time.Minute), "{later}", at(time.Hour), "{tomorrow}", at(24*time.Hour)).Replace(s.text)
	for _, id := range s.signed {
		var err error
		if text, err = w.provider.Sign(text, id, s.how); err != nil {
			t.Fatal(err)
		}
	}
	return text
}

// TestShapes accepts what products send.
func TestShapes(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t)
			s.change(&w.config)
			text := w.fill(t, s, w.start(t, samlsp.Ask{}))
			got, err := w.finish(samltest.FormOf(text, ""))
			if err != nil {
				t.Fatal(err)
			}
			if marked, err := w.finish(samltest.FormOf("\xef\xbb\xbf"+text, "")); err != nil || marked.Subject != got.Subject {
				t.Errorf("with a byte order mark: %q, %v", marked.Subject, err)
			}
			want := []any{s.subject, s.email, samlsp.Groups{State: samlsp.GroupsList, Names: s.groups}}
			if diff := cmp.Diff(want, []any{got.Subject, got.Address, got.Groups}); diff != "" {
				t.Errorf("the assertion says (-want +got):\n%s", diff)
			}
			if isMicrosoft := strings.Contains(s.text, "multipleauthn"); slices.Contains(got.Methods, "http://schemas.microsoft.com/claims/multipleauthn") != isMicrosoft || len(got.Methods) == 0 {
				t.Errorf("the person signed in by %q", got.Methods)
			}
			if isAddress := strings.Contains(s.subject, "@"); got.SubjectIsAddress != isAddress {
				t.Errorf("the subject is an address: %v", got.SubjectIsAddress)
			}
		})
	}
}

// TestAttributes finds attributes by the names that products send, and by those that people write.
func TestAttributes(t *testing.T) {
	for name, c := range map[string]struct {
		from, nameID, format string
		sent                 []samltest.Attribute
		want                 string
	}{
		"by Name":                          {"login", "x", "", []samltest.Attribute{{Name: "login", Values: []string{"a@b.example"}}}, "a@b.example"},
		"Name before FriendlyName":         {"login", "x", "", []samltest.Attribute{{Name: "1", FriendlyName: "login", Values: []string{"no"}}, {Name: "login", Values: []string{"a@b.example"}}}, "a@b.example"},
		"by FriendlyName":                  {"login", "x", "", []samltest.Attribute{{Name: "1", FriendlyName: "login", Values: []string{"a@b.example"}}}, "a@b.example"},
		"by the whole name of ours":        {claims + "emailaddress", "x", "", []samltest.Attribute{{Name: claims + "emailaddress", Values: []string{"a@b.example"}}}, "a@b.example"},
		"email for an OID":                 {"", "x", "", []samltest.Attribute{{Name: "urn:oid:0.9.2342.19200300.100.1.3", Values: []string{"a@b.example"}}}, "a@b.example"},
		"mail for a URI":                   {"mail", "x", "", []samltest.Attribute{{Name: claims + "emailaddress", Values: []string{"a@b.example"}}}, "a@b.example"},
		"an own name before a common one":  {"", "x", "", []samltest.Attribute{{Name: "mail", Values: []string{"no"}}, {Name: "email", Values: []string{"a@b.example"}}}, "a@b.example"},
		"two values":                       {"", "x", "", []samltest.Attribute{{Name: "email", Values: []string{"a@b.example", "c@d.example"}}}, ""},
		"the same value by two names":      {"", "x", "", []samltest.Attribute{{Name: "mail", Values: []string{"a@b.example"}}, {Name: "User.email", Values: []string{"a@b.example"}}}, "a@b.example"},
		"two values by two names":          {"", "x", "", []samltest.Attribute{{Name: "mail", Values: []string{"a@b.example"}}, {Name: "User.email", Values: []string{"c@d.example"}}}, ""},
		"no attribute":                     {"", "a@b.example", "", nil, ""},
		"no attribute, an address":         {"", "a@b.example", samlsp.NameIDEmail, nil, "a@b.example"},
		"another attribute, an address":    {"login", "a@b.example", samlsp.NameIDEmail, nil, ""},
		"the NameID":                       {"NameID", "a@b.example", samlsp.NameIDPersistent, nil, "a@b.example"},
		"blanks around":                    {"", "x", "", []samltest.Attribute{{Name: "email", Values: []string{" a@b.example\n"}}}, "a@b.example"},
		"a value too long for an address":  {"", "x", "", []samltest.Attribute{{Name: "email", Values: []string{strings.Repeat("a", 255)}}}, ""},
		"control characters in an address": {"", "x", "", []samltest.Attribute{{Name: "email", Values: []string{"a\tb@b.example"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.config.AddressFrom = c.from
			got, err := w.signIn(t, samlsp.Ask{}, func(a *samltest.Answer) { a.NameID, a.NameIDFormat, a.Attributes = c.nameID, c.format, c.sent })
			if err != nil || got.Address != c.want {
				t.Errorf("the address is %q: %v", got.Address, err)
			}
		})
	}
}

// TestDisplayName: what products send of a name (defaults, or what their guides have one map).
func TestDisplayName(t *testing.T) {
	one := func(pairs ...string) (all []samltest.Attribute) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, samltest.Attribute{Name: pairs[i], Values: []string{pairs[i+1]}})
		}
		return all
	}
	const microsoft = "http://schemas.microsoft.com/identity/claims/"
	for name, c := range map[string]struct {
		sent []samltest.Attribute
		want string
	}{
		"Entra":               {one(claims+"name", "ann@acme.example", claims+"givenname", "Ann", claims+"surname", "Lee", microsoft+"displayname", "Ann B. Lee"), "Ann B. Lee"},
		"Entra without":       {one(claims+"name", "ann@acme.example", claims+"givenname", "Ann", claims+"surname", "Lee"), "Ann Lee"},
		"AD FS, Display-Name": {one(claims+"name", "Lee, Ann"), "Lee, Ann"},
		"Okta":                {one("firstName", "Ann", "lastName", "Lee"), "Ann Lee"},
		"Google":              {one("First name", "Ann", "Last name", "Lee"), "Ann Lee"},
		"OneLogin":            {one("User.FirstName", "Ann", "User.LastName", "Lee", "User.email", "ann@acme.example"), "Ann Lee"},
		"LDAP":                {one("urn:oid:2.5.4.42", "Ann", "urn:oid:2.5.4.4", "Lee", "urn:oid:2.16.840.1.113730.3.1.241", "Ann B. Lee"), "Ann B. Lee"},
		"a surname alone":     {one("sn", "Lee"), "Lee"},
		"several":             {[]samltest.Attribute{{Name: "displayName", Values: []string{"Ann", "Bob"}}}, ""},
		"none":                {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			got, err := w.signIn(t, samlsp.Ask{}, func(a *samltest.Answer) { a.Attributes = c.sent })
			if err != nil || got.Name != c.want {
				t.Errorf("the name is %q, want %q: %v", got.Name, c.want, err)
			}
		})
	}
}

// TestGroups reads groups in all forms.
func TestGroups(t *testing.T) {
	for name, c := range map[string]struct {
		from string
		sent []samltest.Attribute
		want samlsp.Groups
	}{
		"none asked for": {"", []samltest.Attribute{{Name: "groups", Values: []string{"a"}}}, samlsp.Groups{}},
		"absent":         {"groups", nil, samlsp.Groups{}},
		"empty":          {"groups", []samltest.Attribute{{Name: "groups"}}, samlsp.Groups{State: samlsp.GroupsList}},
		"twice":          {"groups", []samltest.Attribute{{Name: "groups", Values: []string{"a"}}, {Name: "groups", Values: []string{"b"}}}, samlsp.Groups{State: samlsp.GroupsList, Names: []string{"a", "b"}}},
		"too many":       {"groups", []samltest.Attribute{{Name: "http://schemas.microsoft.com/claims/groups.link", Values: []string{"https://graph.windows.net/x"}}}, samlsp.Groups{State: samlsp.GroupsOverage}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.config.GroupsFrom = c.from
			got, err := w.signIn(t, samlsp.Ask{}, func(a *samltest.Answer) { a.Attributes = c.sent })
			if diff := cmp.Diff(c.want, got.Groups); err != nil || diff != "" {
				t.Errorf("%v: (-want +got)\n%s", err, diff)
			}
		})
	}
}

// TestShownWithAFault shows names and mapped values of an assertion that is authentic and refused.
func TestShownWithAFault(t *testing.T) {
	w := newWorld(t)
	for _, isSigned := range []bool{true, false} {
		got, err := w.signIn(t, samlsp.Ask{}, func(a *samltest.Answer) { a.Audience, a.SignAssertion = "other", isSigned })
		if err == nil || got.Subject != "" || (got.Values != nil) != isSigned || (got.Names != nil) != isSigned {
			t.Errorf("signed %v: %v, %+v", isSigned, err, got)
		}
	}
}

// TestPassed says which checks were made.
func TestPassed(t *testing.T) {
	w := newWorld(t)
	all := "size doctype structure alg signature certificate iss audience recipient destination in_response_to time auth_time nameid sub status"
	encrypted := "size doctype structure encryption alg signature certificate iss"
	for name, c := range map[string]struct {
		change func(*samltest.Answer)
		want   string
	}{
		"accepted":              {nil, all},
		"another audience":      {func(a *samltest.Answer) { a.Audience = "other" }, "size doctype structure alg signature certificate iss"},
		"encrypted":             {func(a *samltest.Answer) { encrypt(w, a); a.Audience = "other" }, encrypted},
		"encrypted, all signed": {func(a *samltest.Answer) { encrypt(w, a); a.Audience, a.SignResponse = "other", true }, "size doctype structure alg signature certificate encryption iss"},
		"a refusal":             {func(a *samltest.Answer) { a.Status = "urn:oasis:names:tc:SAML:2.0:status:Responder" }, "size doctype structure in_response_to"},
	} {
		got, err := w.signIn(t, samlsp.Ask{}, c.change)
		passed := got.Passed
		if err != nil {
			passed = passedOf(err)
		}
		if strings.Join(passed, " ") != c.want {
			t.Errorf("%s: %v passed: %v", name, passed, err)
		}
	}
}
