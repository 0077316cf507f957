package metadata_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/internal/samlsp/samltest"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// certificate returns a certificate of the key, in base64 with line breaks as many products write it.
func certificate(t testing.TB, key any, public any) string {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now, NotAfter: now.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString(der)
	return "\n      " + encoded[:64] + "\n      " + encoded[64:] + "\n"
}

func rsaCertificate(t testing.TB, bits int) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return certificate(t, key, key.Public())
}

func key(use, encoded string) string {
	if use != "" {
		use = ` use="` + use + `"`
	}
	return `<md:KeyDescriptor` + use + `><ds:KeyInfo><ds:X509Data><ds:X509Certificate>` + encoded + `</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>`
}

const (
	namespaces = ` xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" xmlns:ds="http://www.w3.org/2000/09/xmldsig#"`
	redirect   = `<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://idp.example/sso?a=b"/>`
	post       = `<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="https://idp.example/post"/>`
)

func role(keys string, services ...string) string {
	return `<md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:1.1:protocol urn:oasis:names:tc:SAML:2.0:protocol">` + keys + strings.Join(services, "") + `</md:IDPSSODescriptor>`
}

func entity(id, inside string, attributes ...string) string {
	return `<md:EntityDescriptor` + namespaces + ` entityID="` + id + `" ` + strings.Join(attributes, " ") + `>` + inside + `</md:EntityDescriptor>`
}

func entities(inside string, attributes ...string) string {
	return `<md:EntitiesDescriptor` + namespaces + ` ` + strings.Join(attributes, " ") + `>` + inside + `</md:EntitiesDescriptor>`
}

func codeOf(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	f, is := errors.AsType[*fault.Fault](err)
	if !is || f.Check != fault.CheckOfMetadata {
		t.Fatalf("not a fault of metadata: %v", err)
	}
	return f.Code
}

func inUTF16(text string, order binary.AppendByteOrder) string {
	var all []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		all = order.AppendUint16(all, unit)
	}
	return string(all)
}

func TestParse(t *testing.T) {
	first, second, weak := rsaCertificate(t, 2048), rsaCertificate(t, 2048), rsaCertificate(t, 1024)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := role(key("signing", first), redirect)
	one := entity("https://idp.example", good)
	past, later := `validUntil="2026-11-29T12:00:00Z"`, `validUntil="2026-11-29T12:00:01Z"`
	const id = "https://idp.example"
	for name, c := range map[string]struct {
		text, entityID, code string
		certificates         int
	}{
		"one":                           {one, "", "", 1},
		"by its name":                   {one, id, "", 1},
		"a byte order mark":             {"\xef\xbb\xbf" + one, "", "", 1},
		"UTF-16":                        {inUTF16("\ufeff"+`<?xml version="1.0" encoding="utf-16"?>`+one, binary.LittleEndian), "", "", 1},
		"UTF-16, big end first":         {inUTF16("\ufeff"+one, binary.BigEndian), "", "", 1},
		"UTF-16, pasted":                {`<?xml version="1.0" encoding="UTF-16"?>` + one, "", "", 1},
		"half a character of UTF-16":    {inUTF16("\ufeff"+one, binary.LittleEndian) + " ", "", "invalid", 0},
		"a doctype in UTF-16":           {inUTF16("\ufeff<!DOCTYPE r>"+one, binary.LittleEndian), "", "doctype", 0},
		"an XML declaration":            {`<?xml version="1.0" encoding="utf-8"?>` + "\n" + one, "", "", 1},
		"another":                       {one, id + "/", fault.CodeUnknownEntity, 0},
		"two":                           {entities(one + entity("https://two.example", good)), "", fault.CodeRequired, 0},
		"two, the second":               {entities(one + entity("https://two.example", good)), "https://two.example", "", 1},
		"two, a third":                  {entities(one + entity("https://two.example", good)), "https://three.example", fault.CodeUnknownEntity, 0},
		"one, and a service provider":   {entities(one + entity("https://sp.example", `<md:SPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"/>`)), "", "", 1},
		"one within two lists":          {entities(entities(one)), "", "", 1},
		"a service provider":            {entity("https://sp.example", `<md:SPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"/>`), "", fault.CodeInvalid, 0},
		"a provider of SAML 1.1":        {strings.Replace(one, " urn:oasis:names:tc:SAML:2.0:protocol", "", 1), "", fault.CodeInvalid, 0},
		"of no namespace":               {strings.ReplaceAll(one, "urn:oasis:names:tc:SAML:2.0:metadata", "urn:x"), "", fault.CodeInvalid, 0},
		"nothing":                       {"", "", fault.CodeInvalid, 0},
		"a page":                        {"<html><body><br></body></html>", "", fault.CodeInvalid, 0},
		"no name":                       {entity("", good), "", fault.CodeInvalid, 0},
		"a name of two lines":           {entity("a&#10;b", good), "", fault.CodeInvalid, 0},
		"a name too long":               {entity(strings.Repeat("a", 1025), good), "", fault.CodeInvalid, 0},
		"a document type":               {`<!DOCTYPE md:EntityDescriptor>` + one, "", fault.CodeDoctype, 0},
		"more than 256 KiB":             {one + strings.Repeat(" ", 256<<10), "", fault.CodeTooLarge, 0},
		"41 levels":                     {entity(id, strings.Repeat("<a>", 40)+strings.Repeat("</a>", 40)), "", fault.CodeTooLarge, 0},
		"5,001 elements":                {entity(id, strings.Repeat("<a/>", 5000)), "", fault.CodeTooLarge, 0},
		"an id twice":                   {entity(id, good+`<a ID="1"/><a ID="1"/>`), "", fault.CodeInvalid, 0},
		"by POST alone":                 {entity(id, role(key("", first), post)), "", fault.CodeInvalid, 0},
		"by POST, too":                  {entity(id, role(key("", first), post, redirect)), "", "", 1},
		"no https":                      {strings.Replace(one, "https://idp.example/sso", "http://idp.example/sso", 1), "", fault.CodeInvalid, 0},
		"a script":                      {strings.Replace(one, "https://idp.example/sso?a=b", "javascript:alert(1)", 1), "", fault.CodeInvalid, 0},
		"a user":                        {strings.Replace(one, "https://idp.example/sso", "https://a@idp.example/sso", 1), "", fault.CodeInvalid, 0},
		"without use":                   {entity(id, role(key("", first), redirect)), "", "", 1},
		"two certificates":              {entity(id, role(key("signing", first)+key("signing", second), redirect)), "", "", 2},
		"with and without use":          {entity(id, role(key("", first)+key("signing", second), redirect)), "", "", 2},
		"one twice":                     {entity(id, role(key("signing", first)+key("", first), redirect)), "", "", 1},
		"for encryption":                {entity(id, role(key("encryption", first), redirect)), "", fault.CodeNoCertificate, 0},
		"no key":                        {entity(id, role("", redirect)), "", fault.CodeNoCertificate, 0},
		"a key without certificate":     {entity(id, role(`<md:KeyDescriptor><ds:KeyInfo><ds:KeyName>a</ds:KeyName></ds:KeyInfo></md:KeyDescriptor>`, redirect)), "", fault.CodeNoCertificate, 0},
		"no base64":                     {entity(id, role(key("signing", "MII!"), redirect)), "", fault.CodeNoCertificate, 0},
		"no certificate in it":          {entity(id, role(key("signing", "MIIA"), redirect)), "", fault.CodeNoCertificate, 0},
		"RSA of 1024 bits":              {entity(id, role(key("signing", weak), redirect)), "", fault.CodeNoCertificate, 0},
		"RSA of 1024 bits, and another": {entity(id, role(key("signing", weak)+key("signing", first), redirect)), "", "", 1},
		"ECDSA":                         {entity(id, role(key("signing", certificate(t, curve, curve.Public())), redirect)), "", fault.CodeNoCertificate, 0},
		"Ed25519":                       {entity(id, role(key("signing", certificate(t, edwards, edwards.Public())), redirect)), "", fault.CodeNoCertificate, 0},
		"a chain": {
			entity(id, role(strings.Replace(key("signing", first), "</ds:X509Data>", "<ds:X509Certificate>"+second+"</ds:X509Certificate></ds:X509Data>", 1), redirect)),
			"", "", 1,
		},
		"ended":                  {entity(id, good, past), "", fault.CodeExpired, 0},
		"not ended":              {entity(id, good, later), "", "", 1},
		"the role ended":         {entity(id, strings.Replace(good, "<md:IDPSSODescriptor ", "<md:IDPSSODescriptor "+past+" ", 1)), "", fault.CodeExpired, 0},
		"the list ended":         {entities(entity(id, good, later), past), "", fault.CodeExpired, 0},
		"an end that is no time": {entity(id, good, `validUntil="soon"`), "", fault.CodeInvalid, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := metadata.Parse([]byte(c.text), c.entityID, now)
			if code := codeOf(t, err); code != c.code || len(got.Certificates) != c.certificates {
				t.Fatalf("%q with %d certificates: %v", code, len(got.Certificates), err)
			}
		})
	}
}

// TestProvider reads all that a connection keeps, and keeps it as JSON.
func TestProvider(t *testing.T) {
	idp := samltest.New("https://idp.example/saml")
	text := strings.Replace(string(idp.Metadata()), "<md:IDPSSODescriptor ", `<md:IDPSSODescriptor WantAuthnRequestsSigned="true" `, 1)
	got, err := metadata.Parse([]byte(text), "", now)
	if err != nil {
		t.Fatal(err)
	}
	read, err := x509.ParseCertificate(idp.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	want := metadata.Provider{
		EntityID: "https://idp.example/saml", SSOURL: "https://idp.example/saml/sso", WantsSigned: true,
		Certificates: []metadata.Certificate{{DER: idp.Certificate, Fingerprint: got.Certificates[0].Fingerprint, From: read.NotBefore, Until: read.NotAfter}},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got.Certificates[0].Fingerprint) != 64 {
		t.Errorf("the metadata say (-want +got):\n%s", diff)
	}
	kept, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var again metadata.Provider
	if err := json.Unmarshal(kept, &again); err != nil || !cmp.Equal(got, again) {
		t.Errorf("kept as %s: %v", kept, err)
	}
}

// TestEntities lists the providers to choose from.
func TestEntities(t *testing.T) {
	var inside strings.Builder
	for i := range 120 {
		inside.WriteString(entity(fmt.Sprint("https://", i, ".example"), role("", redirect)))
	}
	_, err := metadata.Parse([]byte(entities(inside.String())), "", now)
	f, _ := errors.AsType[*fault.Fault](err)
	if f == nil || len(f.Entities) != 100 || f.Entities[1] != "https://1.example" {
		t.Errorf("the providers are listed as %+v", f)
	}
}

// TestTooManyCertificates bounds what a response may make Doorward try.
func TestTooManyCertificates(t *testing.T) {
	var keys strings.Builder
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 11 {
		now := now.Add(time.Duration(i) * time.Second)
		keys.WriteString(key("signing", base64.StdEncoding.EncodeToString(samltest.CertificateFor(private, now))))
	}
	if _, err := metadata.Parse([]byte(entity("https://idp.example", role(keys.String(), redirect))), "", now); codeOf(t, err) != fault.CodeTooLarge {
		t.Errorf("11 certificates: %v", err)
	}
}

func TestFetch(t *testing.T) {
	idp := samltest.New("https://idp.example/saml")
	refused := errors.New("refused")
	var answer http.HandlerFunc
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	defer server.Close()
	guarded := server.Client()
	trusting := guarded.Transport
	client := metadata.New(guarded, func() time.Time { return now },
		metadata.WithRefused(func(err error) bool { return errors.Is(err, refused) }),
		metadata.WithCause(func(error) (string, string) { return "certificate", "a certificate that isn't trusted here" }))
	strict := metadata.New(&http.Client{}, func() time.Time { return now },
		metadata.WithCause(func(error) (string, string) { return "certificate", "a certificate that isn't trusted here" }))
	refusing := metadata.New(&http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, refused })},
		func() time.Time { return now }, metadata.WithRefused(func(err error) bool { return errors.Is(err, refused) }))
	if trusting == nil {
		t.Fatal("no transport")
	}
	say := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://elsewhere.example/")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		}
	}
	for name, c := range map[string]struct {
		client        *metadata.Client
		address       string
		answer        http.HandlerFunc
		code, cause   string
		advice        string
		isUnavailable bool
	}{
		"metadata":          {client, server.URL + "/metadata?a=b", say(200, string(idp.Metadata())), "", "", "", false},
		"no https":          {client, "http://idp.example/", nil, fault.CodeInvalid, "", "", false},
		"a user":            {client, "https://a:b@idp.example/", nil, fault.CodeInvalid, "", "", false},
		"nothing there":     {client, server.URL, say(404, "no"), fault.CodeUnreachable, "status", fault.AdviceRetry, true},
		"elsewhere":         {client, server.URL, say(302, ""), fault.CodeUnreachable, "redirect", fault.AdviceRedirect, true},
		"a page":            {client, server.URL, say(200, "<html>"), fault.CodeInvalid, "", fault.AdviceProvider, false},
		"too much":          {client, server.URL, say(200, strings.Repeat(" ", 300<<10)), fault.CodeTooLarge, "", fault.AdviceProvider, false},
		"isn't trusted":     {strict, server.URL, say(200, ""), fault.CodeUnreachable, "certificate", fault.AdviceTLS, true},
		"refused by guards": {refusing, "https://idp.example/", nil, fault.CodeAddressRefused, "", fault.AdviceNetwork, true},
	} {
		t.Run(name, func(t *testing.T) {
			answer = c.answer
			got, err := c.client.Fetch(context.Background(), c.address, "")
			if code := codeOf(t, err); code != c.code || err == nil && got.EntityID != idp.EntityID {
				t.Fatalf("%q: %v", code, err)
			}
			f, _ := errors.AsType[*fault.Fault](err)
			if f != nil && (f.Cause != c.cause || f.Advice != c.advice || f.Unavailable != c.isUnavailable) {
				t.Errorf("the fault is %+v", f)
			}
			if f != nil && f.Unavailable && strings.Contains(f.Error(), "/metadata") {
				t.Errorf("the fault names the address: %v", f)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func FuzzParse(f *testing.F) {
	f.Add(string(samltest.New("https://idp.example/saml").Metadata()), "")
	f.Add(entities(entity("a", role(key("", "MIIA"), redirect), `validUntil="2026-11-29T12:00:00Z"`)), "a")
	f.Fuzz(func(t *testing.T, text, entityID string) {
		got, err := metadata.Parse([]byte(text), entityID, now)
		if err != nil {
			codeOf(t, err)
			return
		}
		if len(got.Certificates) == 0 || !strings.HasPrefix(got.SSOURL, "https://") || entityID != "" && got.EntityID != entityID {
			t.Errorf("read as %+v", got)
		}
		if slices.ContainsFunc(got.Certificates, func(c metadata.Certificate) bool { return len(c.DER) == 0 }) {
			t.Error("an empty certificate")
		}
	})
}
