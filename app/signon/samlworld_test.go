package signon_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/internal/samlsp/samltest"
	"github.com/doorward/doorward/store"
)

// samlProvider is a provider of SAML that signs somebody in, or lies.
type samlProvider struct {
	*samltest.Provider
	server *httptest.Server
	now    func() time.Time

	mu     sync.Mutex
	person samlPerson
	lie    func(*samltest.Answer) // changes the next answers; nil: nothing
	serve  func(http.ResponseWriter)
	asked  int // how often the metadata were read
}

type samlPerson struct {
	subject, email  string
	groups, methods []string
	context         string
}

// spareKeys are keys of providers, since making one takes a while.
var spareKeys = sync.OnceValue(func() [4]*rsa.PrivateKey {
	var keys [4]*rsa.PrivateKey
	for i := range keys {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		keys[i] = key
	}
	return keys
})

// newSAMLProvider returns a provider with the first of the spare keys, whose metadata are at its EntityID.
func (w *world) newSAMLProvider() *samlProvider {
	w.Helper()
	p := &samlProvider{now: w.DB.Now}
	p.serve = func(rw http.ResponseWriter) { _, _ = rw.Write(p.Metadata()) }
	p.server = httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked++
		p.serve(rw)
	}))
	w.Cleanup(p.server.Close)
	p.Provider = &samltest.Provider{EntityID: p.server.URL + "/metadata", SSOURL: p.server.URL + "/sso"}
	p.use(0)
	return p
}

// use has the provider sign by the i-th of the spare keys.
func (p *samlProvider) use(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Key = spareKeys()[i]
	p.Certificate = certificates()[i]
}

var certificates = sync.OnceValue(func() (all [4][]byte) {
	for i, key := range spareKeys() {
		all[i] = samltest.CertificateFor(key, time.Now().Add(24*time.Hour))
	}
	return all
})

// announces has the metadata name the i-th certificates.
func (p *samlProvider) announces(which ...int) {
	text := p.naming(which...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serve = func(rw http.ResponseWriter) { _, _ = rw.Write([]byte(text)) }
}

// naming returns metadata that name the i-th certificates.
func (p *samlProvider) naming(which ...int) string {
	one := func(der []byte) string {
		return `<md:KeyDescriptor use="signing">` + `<ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data><ds:X509Certificate>` +
			base64.StdEncoding.EncodeToString(der) + `</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>`
	}
	var keys string
	for _, i := range which {
		keys += one(certificates()[i])
	}
	text := string(p.Metadata())
	from, to := strings.Index(text, `<md:KeyDescriptor use="signing">`), strings.Index(text, `<md:KeyDescriptor use="encryption">`)
	return text[:from] + keys + text[to:]
}

// forged returns what signs somebody in, signed by the i-th of the spare keys, whoever has it.
func (p *samlProvider) forged(b *browser, address string, i int) url.Values {
	b.s.w.Helper()
	request, err := samltest.Read(address)
	b.s.w.NoError(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.Answer(request, p.now())
	a.NameID, a.Attributes = p.person.subject, []samltest.Attribute{{Name: "email", Values: []string{p.person.email}}}
	a.Signing = samltest.Signing{Key: spareKeys()[i], KeyInfo: samltest.KeyInfo(certificates()[i])}
	form, err := p.Form(a)
	b.s.w.NoError(err)
	return form
}

// reads returns how often the metadata were read.
func (p *samlProvider) reads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func (p *samlProvider) says(subject, email string, claims map[string]any) {
	person := samlPerson{subject: subject, email: email}
	person.groups, _ = claims["groups"].([]string)
	person.methods, _ = claims["amr"].([]string)
	person.context, _ = claims["acr"].(string)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.person = person
}

// lies changes the next answers; nil: it doesn't.
func (p *samlProvider) lies(lie func(*samltest.Answer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lie = lie
}

// answer returns the form with which the provider answers the request.
func (p *samlProvider) answer(b *browser, address string) url.Values {
	b.s.w.Helper()
	request, err := samltest.Read(address)
	b.s.w.NoError(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.Answer(request, p.now())
	a.NameID, a.Attributes = p.person.subject, []samltest.Attribute{{Name: "email", Values: []string{p.person.email}}}
	if p.person.groups != nil {
		a.Attributes = append(a.Attributes, samltest.Attribute{Name: "groups", Values: p.person.groups})
	}
	if p.person.methods != nil {
		a.Attributes = append(a.Attributes, samltest.Attribute{Name: "http://schemas.microsoft.com/claims/authnmethodsreferences", Values: p.person.methods})
		a.Context = "pwd"
	}
	if p.person.context != "" {
		a.Context = p.person.context
	}
	if p.lie != nil {
		p.lie(&a)
	}
	form, err := p.Form(a)
	b.s.w.NoError(err)
	return form
}

// post posts the form to acs, again while the node judges too many others, and returns the query with which
// the browser goes to the callback.
func (b *browser) post(form url.Values) (query url.Values, err error) {
	for {
		query, err = b.signOn().Receive(b.s.w.Context(), b.by, b.s.conID, form)
		if err == nil || !strings.Contains(err.Error(), "too many SAML responses are being judged") {
			return query, err
		}
	}
}

// samlSite is site with a provider of SAML, whose metadata have an address.
func (w *world) samlSite(owner apptest.Person, domain string, jit doorward.JIT) *site {
	w.Helper()
	w.UseMasterKey()
	s := &site{w: w, owner: owner, saml: w.newSAMLProvider(), domain: domain, conID: doorward.NewID(doorward.PrefixConnection)}
	said, err := metadata.Parse(s.saml.Metadata(), "", w.DB.Now())
	w.NoError(err)
	text, err := json.Marshal(said)
	w.NoError(err)
	c := doorward.Connection{
		ID: s.conID, TenantID: s.tenantID(), Type: doorward.SAML, Name: "Provider of " + domain, Product: doorward.OtherProduct, JIT: jit, JITRole: doorward.RoleUser,
		Status: doorward.ConnectionActive, InForce: doorward.ConnectionParameters{Issuer: said.EntityID, EmailFrom: "email", MetadataURL: s.saml.EntityID},
	}
	w.write(func(tx *store.Tx) error {
		c.CreatedAt = tx.Now
		err := tx.InsertConnection(w.Context(), c)
		kept, keepErr := tx.KeepMetadata(w.Context(), s.conID, false, said.EntityID, s.saml.EntityID, string(text))
		if keepErr == nil && len(kept) != 1 {
			keepErr = errors.New("the metadata aren't kept")
		}
		return errors.Join(err, keepErr, s.prove(tx, domain), s.setMode(tx, doorward.SSOOptional))
	})
	return s
}

// keepIt keeps the metadata for what is in force or pending.
func keepIt(s *site, tx *store.Tx, pending bool, said metadata.Provider) error {
	text, err := json.Marshal(said)
	if err != nil {
		return err
	}
	address := s.saml.EntityID
	if pending {
		address = said.EntityID
	}
	kept, err := tx.KeepMetadata(s.w.Context(), s.conID, pending, said.EntityID, address, string(text))
	if err == nil && len(kept) == 0 {
		err = errors.New("the metadata aren't kept")
	}
	return err
}
