package hosted_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward/internal/samlsp/samltest"
)

// samlSetup is a setup whose connection is one by SAML.
type samlSetup struct {
	setup
	idp  *samltest.Provider
	text atomic.Pointer[string] // what is answered at the address of the metadata
	at   string                 // that address
}

func newSAMLSetup(t *testing.T) *samlSetup {
	t.Helper()
	s := &samlSetup{setup: newSetup(t)}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, *s.text.Load()) }))
	t.Cleanup(server.Close)
	s.idp, s.at = samltest.New("https://idp.acme.example/saml"), server.URL+"/metadata"
	text := string(s.idp.Metadata())
	s.text.Store(&text)
	made := s.api(t, "POST", "/api/v2/sso/connections", map[string]any{"type": "saml", "name": "Acme <SAML>", "product": "entra"})
	s.con, _ = made["id"].(string)
	return s
}

// both returns metadata of the provider and of another one.
func (s *samlSetup) both() string {
	one := func(text []byte) string { return strings.TrimPrefix(string(text), `<?xml version="1.0"?>`) }
	other := samltest.New("https://idp.globex.example/saml")
	return `<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata">` + one(s.idp.Metadata()) + one(other.Metadata()) + `</md:EntitiesDescriptor>`
}

// upload sends a form with a file, given as pairs of name and value; the file is the value of metadataFile.
func (b browser) upload(path string, pairs ...string) answer {
	b.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i+1 < len(pairs); i += 2 {
		var w io.Writer
		var err error
		if pairs[i] == "metadataFile" {
			w, err = form.CreateFormFile(pairs[i], "metadata.xml")
		} else {
			w, err = form.CreateFormField(pairs[i])
		}
		if err == nil {
			_, err = io.WriteString(w, pairs[i+1])
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	_ = form.Close() // into memory
	return b.sendBody(path, form.FormDataContentType(), "same-origin", &body)
}

// sendBody sends a body as a page of the site would.
func (b browser) sendBody(path, media, site string, body io.Reader) answer {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), "POST", b.url+path, body)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", media)
	req.Header.Set("Sec-Fetch-Site", site)
	res, err := b.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer{status: res.StatusCode, to: res.Header.Get("Location"), body: string(text), header: res.Header}
}

// save sends the form of the provider's step, with some fields changed.
func (s *samlSetup) save(b browser, change ...string) answer {
	b.Helper()
	fields := map[string]string{
		"metadataBy": "address", "metadataUrl": s.at, "metadata": "", "metadataFile": "", "entityId": "", "subjectFrom": "objectidentifier", "emailFrom": "email",
		"version": formVersion.FindStringSubmatch(b.get("/setup/provider").body)[1],
	}
	for i := 0; i+1 < len(change); i += 2 {
		fields[change[i]] = change[i+1]
	}
	var pairs []string
	for name, value := range fields {
		pairs = append(pairs, name, value)
	}
	return b.upload("/setup/saml", pairs...)
}

// test signs in at the provider to test, and returns the page with the result. lie changes the provider's answer.
func (s *samlSetup) test(b browser, lie func(*samltest.Answer)) answer {
	b.Helper()
	start, err := url.Parse(b.send("/setup/test").to)
	if err != nil {
		b.Fatal(err)
	}
	request, err := samltest.Read(b.get(start.RequestURI()).to)
	if err != nil {
		b.Fatal(err)
	}
	a := s.idp.Answer(request, s.Node.App.Now())
	a.NameID = ann
	a.Attributes = []samltest.Attribute{{Name: "email", Values: []string{ann}}, {Name: "http://schemas.microsoft.com/identity/claims/objectidentifier", Values: []string{"ann-7"}}}
	if lie != nil {
		lie(&a)
	}
	form, err := s.idp.Form(a)
	if err != nil {
		b.Fatal(err)
	}
	// Browsers send no cookie with the form of another site.
	posted := open(b.T, s.Server).sendBody(request.ACS[len(s.URL):], "application/x-www-form-urlencoded", "cross-site", strings.NewReader(form.Encode()))
	callback, err := url.Parse(posted.to)
	if posted.status != http.StatusSeeOther || err != nil {
		b.Fatalf("acs: %d to %q\n%s", posted.status, posted.to, posted.body)
	}
	back := b.get(callback.RequestURI())
	if back.status != http.StatusSeeOther || !strings.HasPrefix(back.to, "/setup/test?test=tst_") {
		b.Fatalf("the callback: %d to %q\n%s", back.status, back.to, back.body)
	}
	return b.get(back.to)
}

// By the link alone a connection by SAML is set up and tested, from the first page on, and a scanner of mails uses nothing up.
func TestSetupSAMLByLink(t *testing.T) {
	s := newSAMLSetup(t)
	code := s.link(t)
	scanner, b := open(t, s.Server), open(t, s.Server)
	for range 2 {
		scanner.get("/setup").is(t, 200, "")
		scanner.send("/setup", "token", code).is(t, 200, "", "Acme &lt;SAML&gt;", "Begin")
	}
	scanner.upload("/setup/saml", "metadataBy", "address", "metadataUrl", s.at).is(t, 303, "/setup")
	b.send("/setup/begin", "token", code).is(t, 303, "/setup/provider")
	address := "/api/v2/auth/sso/" + s.con
	b.get("/setup/provider").is(t, 200, "", address+"/acs</code>", address+"/metadata</code>", address+"/start</code>", "In the console of Microsoft Entra ID", "Basic SAML Configuration", `value="objectidentifier"`, "App Federation Metadata Url").
		lacks(t, "/callback</code>", "clientSecret", "signRequests", "encrypt", "Take away", "Still missing")
	b.get("/setup/test").is(t, 200, "", "Still missing for a test: <strong>The provider’s metadata</strong>")
	b.send("/setup/test").is(t, 422, "")

	s.save(b, "metadataUrl", "").is(t, 303, "/setup/provider?done=setup-incomplete")
	s.save(b, "metadataUrl", s.provider.Issuer()+"/nothing-here").is(t, 422, "", "The address answers HTTP 404", "/nothing-here")
	s.save(b, "metadataUrl", "http://idp.example/").is(t, 422, "", "There are no metadata of a SAML 2.0 identity provider")
	s.save(b, "metadataBy", "text", "metadata", "<no>metadata</no>").is(t, 422, "", "These are no metadata", "&lt;no&gt;metadata&lt;/no&gt;")
	s.save(b, "metadataBy", "text", "metadataFile", "\xff\xfe\x00").is(t, 422, "", "These are no metadata").lacks(t, "\xff")
	s.save(b, "metadataBy", "text", "metadataFile", strings.Repeat(" ", 256<<10+1)).is(t, 413, "", "The file is larger than 256 KiB")
	s.save(b, "metadataBy", "text", "metadata", "<!DOCTYPE x>"+string(s.idp.Metadata())).is(t, 422, "", "The metadata have a document type")
	s.save(b, "version", "old").is(t, 412, "", "Somebody else has changed the connection")

	refused := s.save(b, "metadataBy", "text", "metadataFile", "\ufeff"+s.both())
	refused.is(t, 422, "", "The metadata have several providers. Choose yours.", `<option value="https://idp.globex.example/saml">`, `<option value="https://idp.acme.example/saml">`, "&lt;md:EntitiesDescriptor")
	s.save(b, "metadataBy", "text", "metadata", s.both(), "entityId", "https://nobody.example").is(t, 422, "", "The metadata don’t have this provider", `<option value="https://idp.acme.example/saml">`)
	s.save(b, "metadataBy", "text", "metadata", s.both(), "entityId", "https://idp.acme.example/saml").is(t, 303, "/setup/test?done=setup-saved-test")
	b.get("/setup/provider").is(t, 200, "", "The provider calls itself", "idp.<wbr>acme.<wbr>example", "Leave both empty to keep", "Ends in 1 day")
	s.save(b, "metadataUrl", "").is(t, 422, "", "Enter the address of the provider’s metadata")
	s.save(b).is(t, 303, "/setup/test?done=setup-saved-test")
	b.get("/setup/provider").is(t, 200, "", `value="`+s.at+`"`).lacks(t, "Leave both empty to keep")
	s.save(b, "metadataBy", "text").is(t, 422, "", "Choose the file, or paste its text")

	s.test(b, func(a *samltest.Answer) { a.Audience = "another" }).is(t, 200, "", "The test has not passed", "the application that the assertion is for", "Identifier (Entity ID)").lacks(t, "Client ID")
	s.test(b, nil).is(t, 200, "", "The test has passed").lacks(t, "ann-7", ann)
	b.get("/setup/protocol").is(t, 200, "", "<strong>Test</strong>", "the application that the assertion is for", ">Done<", ">Refused<")
}

// A provider of SAML that doesn't lead back: what to compare there is what SAML has.
func TestSetupSAMLUnanswered(t *testing.T) {
	s := newSAMLSetup(t)
	b := s.begun(t)
	s.save(b)
	start, err := url.Parse(b.send("/setup/test").to)
	if err != nil {
		t.Fatal(err)
	}
	b.get(start.RequestURI())
	b.get("/setup/test").is(t, 200, "", "has not led back yet", "/acs</code>", "/metadata</code>", "Reply URL (Assertion Consumer Service URL)", "Identifier (Entity ID)").lacks(t, "redirect address", "Client ID")
}

// A link changes what the connection signs in by, and nothing else, whatever its form says; what an OWNER has taken away
// stays away.
func TestSetupSAMLLinkChangesNothingElse(t *testing.T) {
	s := newSAMLSetup(t)
	next := samltest.New("https://idp.acme.example/saml")
	two := strings.Replace(string(s.idp.Metadata()), `<md:KeyDescriptor use="encryption">`, between(string(next.Metadata()), `<md:KeyDescriptor use="signing">`, `<md:KeyDescriptor use="encryption">`)+`<md:KeyDescriptor use="encryption">`, 1)
	s.text.Store(&two)
	b := s.begun(t)
	s.save(b, "name", "Renamed", "signRequests", "1", "encrypt", "1", "status", "active", "jit", "domains", "certificates", "x", "groupsFrom", "groups").is(t, 303, "/setup/test?done=setup-saved-test")
	at := "/api/v2/sso/connections/" + s.con
	is := s.api(t, "GET", at, nil)
	if is["name"] != "Acme <SAML>" || is["signRequests"] != false || is["encrypt"] != false || is["status"] != "draft" || is["jit"] != "off" || is["groupsFrom"] != nil {
		t.Errorf("a link has changed more than it may: %v", is)
	}
	all, _ := is["certificates"].([]any)
	if len(all) != 2 {
		t.Fatalf("the metadata have %d certificates", len(all))
	}
	first, _ := all[0].(map[string]any)
	s.api(t, "PATCH", at, map[string]any{"certificates": []any{first["fingerprint"]}})
	for _, change := range [][]string{{"emailFrom", "mail"}, {"metadataBy", "text", "metadata", two}, {"metadataUrl", s.at + "?again"}} {
		s.save(b, change...).is(t, 303, "/setup/test?done=setup-saved-test")
		if left, _ := s.api(t, "GET", at, nil)["certificates"].([]any); len(left) != 1 {
			t.Errorf("a link that sends %q brings a certificate back: %v", change[:2], left)
		}
	}
	s.save(b, "metadataBy", "text", "metadata", string(next.Metadata())).is(t, 422, "", "were taken away by hand", "Only an owner")
	for _, path := range []string{"/refresh", "/certificate/" + strings.Repeat("0a", 32), "/enable"} {
		if to := b.send("/console/sso/connections/" + s.con + path); to.status != http.StatusSeeOther || !strings.HasPrefix(to.to, "/login?") {
			t.Errorf("by a link %s of the console is answered %d to %q", path, to.status, to.to)
		}
	}
	// A form of the other protocol, sent by hand.
	b.send("/setup/provider", "issuer", s.provider.Issuer(), "clientId", "x", "clientAuth", "secret_basic", "emailFrom", "email", "version", formVersion.FindStringSubmatch(b.get("/setup/provider").body)[1]).is(t, 422, "")
}

// between returns the text from the first mark to the second.
func between(text, from, to string) string {
	i, j := strings.Index(text, from), strings.Index(text, to)
	return text[i:j]
}
