package console_test

import (
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/samlsp/samltest"
)

// samlSignOn is a fixture with a provider of SAML, whose metadata are at an address.
type samlSignOn struct {
	signOn
	idp, next *samltest.Provider // next has the key that the provider has later
	text      atomic.Pointer[string]
	at        string
}

func newSAMLSignOn(t *testing.T) *samlSignOn {
	t.Helper()
	s := &samlSignOn{signOn: newSignOn(t), idp: samltest.New("https://idp.acme.example/saml"), next: samltest.New("https://idp.acme.example/saml")}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, *s.text.Load()) }))
	t.Cleanup(server.Close)
	s.at = server.URL + "/metadata"
	s.idp.Certificate = samltest.CertificateFor(s.idp.Key, s.Node.App.Now().Add(12*24*time.Hour))
	s.next.Certificate = samltest.CertificateFor(s.next.Key, s.Node.App.Now().Add(20*24*time.Hour))
	s.announce(string(s.idp.Metadata()))
	return s
}

// announce has the address answer with the text.
func (s *samlSignOn) announce(text string) { s.text.Store(&text) }

// both are the provider's metadata with its certificate and the next one.
func (s *samlSignOn) both() string {
	const signing, encryption = `<md:KeyDescriptor use="signing">`, `<md:KeyDescriptor use="encryption">`
	next := string(s.next.Metadata())
	return strings.Replace(string(s.idp.Metadata()), encryption, next[strings.Index(next, signing):strings.Index(next, encryption)]+encryption, 1)
}

// save sends the form of the connection, with some fields changed.
func (s *samlSignOn) save(b *browser, at string, change ...string) (*http.Response, string) {
	b.Helper()
	fields := map[string]string{
		"name": "Acme <SAML>", "metadataBy": "address", "metadataUrl": s.at, "metadata": "", "entityId": "", "subjectFrom": "", "emailFrom": "email",
		"version": b.version(b.get(at, http.StatusOK)),
	}
	for i := 0; i+1 < len(change); i += 2 {
		fields[change[i]] = change[i+1]
	}
	var parts []part
	for name, value := range fields {
		one := part{name: name, text: value}
		if name == "metadataFile" {
			one.file = "metadata.xml"
		}
		parts = append(parts, one)
	}
	return b.upload(at+"/saml", parts)
}

// saved requires that the form is saved, and returns the page of the connection.
func (s *samlSignOn) saved(b *browser, at string, change []string, want ...string) string {
	b.Helper()
	res, body := s.save(b, at, change...)
	if res.StatusCode != http.StatusSeeOther {
		b.Fatalf("the form is answered %d\n%s", res.StatusCode, body)
	}
	return b.get(res.Header.Get("Location"), http.StatusOK, want...)
}

// test runs a test of the connection, and returns the page with its result.
func (s *samlSignOn) test(b *browser, at string) string {
	b.Helper()
	res, body := b.ask("POST", at+"/test?tab=test", url.Values{})
	if res.StatusCode != http.StatusSeeOther {
		b.Fatalf("the test: %d\n%s", res.StatusCode, body)
	}
	result := res.Header.Get("Location")
	start, err := url.Parse(html.UnescapeString(b.findOn(testLink, b.get(result, http.StatusOK, "Sign in to test"))))
	if err != nil {
		b.Fatal(err)
	}
	res, _ = b.ask("GET", start.RequestURI(), nil)
	cookies := []string{"JSESSIONID=" + b.token}
	for _, c := range res.Cookies() {
		if c.Value != "" {
			cookies = append(cookies, c.Name+"="+c.Value)
		}
	}
	request, err := samltest.Read(res.Header.Get("Location"))
	if err != nil {
		b.Fatal(err)
	}
	answer, err := s.idp.Form(s.idp.Answer(request, s.Node.App.Now()))
	if err != nil {
		b.Fatal(err)
	}
	stranger := &browser{T: b.T, server: s.Server} // browsers send no cookie with the form of another site
	res, body = stranger.send("POST", request.ACS[len(s.URL):], strings.NewReader(answer.Encode()), "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "cross-site")
	callback, err := url.Parse(res.Header.Get("Location"))
	if res.StatusCode != http.StatusSeeOther || err != nil {
		b.Fatalf("acs: %d\n%s", res.StatusCode, body)
	}
	if res, body = b.ask("GET", callback.RequestURI(), nil, "Cookie", strings.Join(cookies, "; ")); res.StatusCode != http.StatusSeeOther {
		b.Fatalf("the callback: %d\n%s", res.StatusCode, body)
	}
	return b.get(result, http.StatusOK)
}

var (
	certificateLink = regexp.MustCompile(`/certificate/([0-9a-f]{64})"`)
	shownPrint      = regexp.MustCompile(`<code dir="ltr">((?:[0-9A-F]{2}:){7}[0-9A-F]{2})…`)
)

// A connection by SAML is made, set up by each way in which metadata come, tested, and changed.
func TestSAMLConnectionPages(t *testing.T) {
	s := newSAMLSignOn(t)
	b := s.browserOf(t, "OWNER")
	b.get("/console/sso/new", http.StatusOK, "Sign-in by SAML 2.0", `value="saml"`)
	created := b.submit("/console/sso/new", url.Values{"type": {"saml"}, "product": {"okta"}, "name": {"Acme"}}, "The connection is added, as a draft", "In the console of Okta", "/acs</code>", "/metadata</code>", "Audience URI (SP Entity ID)", `value="id"`, ">SAML<", "Not tested")
	lacks(t, created, "/callback</code>", "?tab=secrets", "?tab=keys")
	at := "/console/sso/connections/" + b.findOn(connectionLink, created)
	b.get(at+"?tab=certificates", http.StatusOK, "The provider’s metadata have not been read yet", "Our metadata")
	b.get(at+"?tab=test", http.StatusOK, "Still missing for a test: <strong>The provider’s metadata</strong>")
	lacks(t, b.get(at+"?tab=access", http.StatusOK, "Attribute with the groups", "AuthnContextClassRef"), `name="ends"`)
	b.submit(at+"/access?tab=access", url.Values{"jit": {"domains"}, "jitRole": {"USER"}, "groupsFrom": {"groups"}, "version": {b.version(created)}}, "The connection is saved", `value="groups"`)

	for _, c := range []struct {
		status int
		want   string
		change []string
	}{
		{http.StatusUnprocessableEntity, "Enter a name", []string{"name", ""}},
		{http.StatusUnprocessableEntity, "These are no metadata", []string{"metadataBy", "text", "metadata", "<x/>"}},
		{http.StatusUnprocessableEntity, "An attribute has 100 characters at most", []string{"subjectFrom", strings.Repeat("x", 101)}},
		{http.StatusRequestEntityTooLarge, "The file is larger than 256 KiB", []string{"metadataBy", "text", "metadataFile", strings.Repeat("x", 256<<10+1)}},
		{http.StatusPreconditionFailed, "Somebody else has changed this connection", []string{"version", "old", "emailFrom", "mail"}},
	} {
		res, body := s.save(b, at, c.change...)
		b.shows(c.want, res, body, c.status, []string{c.want})
	}
	s.saved(b, at, []string{"metadataBy", "text", "metadataFile", "\ufeff" + string(s.idp.Metadata()), "signRequests", "1"}, "The connection is saved", "Leave both empty to keep", `name="signRequests" value="1" checked`, "Certificate ends soon")
	s.saved(b, at, []string{"metadataBy", "text", "subjectFrom", "uid"}, "The connection is saved", `value="uid"`, "Leave both empty to keep")
	page := s.saved(b, at, nil, "The connection is saved", `value="`+s.at+`"`)
	lacks(t, page, "Leave both empty to keep", `name="signRequests" value="1" checked`)
	lacks(t, s.test(b, at), "has not passed")
	b.get(at+"?tab=test", http.StatusOK, "The test has passed", "ann@example.com", "What the provider has sent")
	b.submit(at+"/enable", url.Values{}, "The connection is enabled")
	b.get("/console", http.StatusOK, "The last certificate of Acme &lt;SAML&gt; ends on")
	b.get("/console/sso", http.StatusOK, "Okta · SAML", "Certificate ends soon")

	s.saved(b, at, []string{"subjectFrom", "uid", "name", "Acme"}, "The change is saved and waits", "the NameID", "<strong><bdi>uid</bdi></strong>", ">Acme<")
	b.post(at+"/switch", url.Values{}, http.StatusConflict, "has not passed a test")
	b.submit(at+"/discard", url.Values{}, "The change is discarded")
	open(t, s.Server, s.other).get(at, http.StatusNotFound)
	if res, _ := s.browserOf(t, "ADMIN").upload(at+"/saml", []part{{name: "name", text: "Mine"}}); res.StatusCode != http.StatusForbidden {
		t.Errorf("an ADMIN's form is answered %d", res.StatusCode)
	}
}

// Certificates are shown with their ends, taken away at once but for the last one, stay away whatever is read, and come
// back when somebody asks for it.
func TestSAMLCertificatePages(t *testing.T) {
	s := newSAMLSignOn(t)
	b := s.browserOf(t, "OWNER")
	at := "/console/sso/connections/" + b.findOn(connectionLink, b.submit("/console/sso/new", url.Values{"type": {"saml"}, "product": {"other"}, "name": {"Acme"}}))
	s.saved(b, at, nil)
	tab := at + "?tab=certificates"
	page := b.get(tab, http.StatusOK, "Ends in 12 days", "The last one can’t be taken away", "Read again", "Metadata read", "idp.<wbr>acme.<wbr>example", "/metadata</code>")
	lacks(t, page, "/certificate/")
	old := strings.ToLower(strings.ReplaceAll(b.findOn(shownPrint, page), ":", ""))

	s.announce("<html>")
	b.post(at+"/refresh?tab=certificates", url.Values{}, http.StatusUnprocessableEntity, "There are no metadata of a SAML 2.0", "Last reading, which has failed")
	s.announce(s.both())
	page = b.submit(at+"/refresh?tab=certificates", url.Values{}, "The metadata were read again", "Ends in 20 days")
	lacks(t, page, "The last one can’t be taken away", "Last reading, which has failed")
	of := ""
	for _, found := range certificateLink.FindAllStringSubmatch(page, -1) {
		if strings.HasPrefix(found[1], old) {
			of = found[1]
		}
	}
	if of == "" {
		t.Fatalf("no link takes the certificate %s away:\n%s", old, page)
	}
	b.get(at+"/certificate/"+of, http.StatusOK, "Take the certificate away?", "refused at once", b.findOn(shownPrint, page))
	for _, none := range []string{strings.Repeat("0a", 32), "x", strings.ToUpper(of)} {
		b.get(at+"/certificate/"+none, http.StatusNotFound)
		b.post(at+"/certificate/"+none, url.Values{}, http.StatusNotFound)
	}
	page = b.submit(at+"/certificate/"+of, url.Values{}, "The certificate is taken away", "1 certificate was taken away by hand", "The last one can’t be taken away")
	b.post(at+"/certificate/"+of, url.Values{}, http.StatusNotFound)
	left := b.findOn(shownPrint, page)
	lacks(t, page, "Ends in 12 days")
	lacks(t, b.submit(at+"/refresh?tab=certificates", url.Values{}, "The metadata were read again"), "Ends in 12 days")
	s.saved(b, at, []string{"emailFrom", "mail"}) // a form that has the same address
	b.get(tab, http.StatusOK, left, "1 certificate was taken away by hand")

	b.get(at+"/certificates-back", http.StatusOK, "Bring the certificates back?")
	page = b.submit(at+"/certificates-back", url.Values{}, "The certificates are back", "Ends in 12 days", "Ends in 20 days")
	lacks(t, page, "was taken away by hand")
	s.Advance(16 * time.Minute)
	b.post(at+"/certificate/"+of, url.Values{}, http.StatusForbidden, "/step-up")
	b.token = s.people["OWNER"].Login()
	b.submit(at+"/certificate/"+of, url.Values{}, "The certificate is taken away")
	last := ""
	for _, one := range s.fingerprints(b, at) {
		if one != of {
			last = one
		}
	}
	b.post(at+"/certificate/"+last, url.Values{}, http.StatusConflict, "The last certificate can’t be taken away")
}

// fingerprints returns those of the connection's provider.
func (s *samlSignOn) fingerprints(b *browser, at string) (all []string) {
	b.Helper()
	page := b.get(at+"?tab=certificates", http.StatusOK)
	for _, found := range regexp.MustCompile(`<p class="small"><code dir="ltr">([0-9A-F:<>wbr]+)</code></p>`).FindAllStringSubmatch(page, -1) {
		all = append(all, strings.ToLower(strings.NewReplacer(":", "", "<wbr>", "").Replace(found[1])))
	}
	return all
}
