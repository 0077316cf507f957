package apptest

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/samlsp/samltest"
)

// MetadataServer serves the metadata of a provider of SAML over https, as its settings say.
type MetadataServer struct {
	server *httptest.Server

	mu     sync.Mutex
	text   string
	status int
	reads  int
	held   chan struct{} // answers wait until it is closed; nil: they don't
}

// MetadataServer returns a server of the metadata.
func (f *Fixture) MetadataServer(text string) *MetadataServer {
	f.Helper()
	return NewMetadataServer(f.T, text)
}

// NewMetadataServer returns a server of the metadata. Its certificate is signed by oidctest.Authorities.
func NewMetadataServer(t testing.TB, text string) *MetadataServer {
	t.Helper()
	s := &MetadataServer{text: text, status: http.StatusOK}
	s.server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.server.Close)
	return s
}

func (s *MetadataServer) serve(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	s.reads++
	status, text, held := s.status, s.text, s.held
	s.mu.Unlock()
	if held != nil {
		<-held
	}
	w.Header().Set("Content-Type", "application/samlmetadata+xml")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

// Address is where the metadata are.
func (s *MetadataServer) Address() string { return s.server.URL + "/metadata" }

// Say makes it answer with another text, and the status.
func (s *MetadataServer) Say(status int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.text = status, text
}

// Hold makes further answers wait until release is called.
func (s *MetadataServer) Hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := make(chan struct{})
	s.held = held
	return func() { close(held) }
}

// Reads returns how often it was asked.
func (s *MetadataServer) Reads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// samlKey signs the certificates of SAMLCertificate: it takes a while to make.
var samlKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// SAMLCertificate returns another certificate at each call, DER, which is good until the time.
func SAMLCertificate(until time.Time) []byte { return samltest.CertificateFor(samlKey(), until) }

// SAMLMetadata returns the metadata of a provider that signs by the certificates.
func SAMLMetadata(entityID string, certificates ...[]byte) string {
	var keys strings.Builder
	for _, der := range certificates {
		keys.WriteString(`<md:KeyDescriptor use="signing"><ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data><ds:X509Certificate>` +
			base64.StdEncoding.EncodeToString(der) + `</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>`)
	}
	return `<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="` + samltest.Escape(entityID) + `">` +
		`<md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">` + keys.String() +
		`<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://idp.example/sso"/>` +
		`</md:IDPSSODescriptor></md:EntityDescriptor>`
}

// SAMLFederation returns metadata of several providers.
func SAMLFederation(metadata ...string) string {
	return `<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata">` + strings.Join(metadata, "") + `</md:EntitiesDescriptor>`
}
