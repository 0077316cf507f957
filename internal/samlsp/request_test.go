package samlsp_test

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/internal/samlsp"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/internal/samlsp/samltest"
)

func TestRequest(t *testing.T) {
	w := newWorld(t)
	contexts := []string{"urn:oasis:names:tc:SAML:2.0:ac:classes:TimeSyncToken", "urn:b"}
	for name, c := range map[string]struct {
		ask    samlsp.Ask
		format string
		want   string // of the request, without what each has
	}{
		"plain":                {samlsp.Ask{}, "", `></>`},
		"with a format":        {samlsp.Ask{}, samlsp.NameIDPersistent, `><samlp:NameIDPolicy Format="` + samlsp.NameIDPersistent + `" AllowCreate="true"/></>`},
		"fresh":                {samlsp.Ask{Fresh: true}, "", ` ForceAuthn="true"></>`},
		"fresh, with contexts": {samlsp.Ask{Fresh: true, Contexts: contexts}, "", ` ForceAuthn="true"><samlp:RequestedAuthnContext Comparison="exact"><saml:AuthnContextClassRef>` + contexts[0] + `</saml:AuthnContextClassRef><saml:AuthnContextClassRef>urn:b</saml:AuthnContextClassRef></samlp:RequestedAuthnContext></>`},
		"contexts alone":       {samlsp.Ask{Contexts: contexts}, "", `></>`},
	} {
		t.Run(name, func(t *testing.T) {
			w.config.NameIDFormat = c.format
			request := w.start(t, c.ask)
			text := request.Text
			for _, each := range []string{
				`<samlp:AuthnRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="` + request.ID + `" Version="2.0" IssueInstant="2026-11-29T12:00:00Z" Destination="https://idp.example/saml/sso"`,
				` ProtocolBinding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" AssertionConsumerServiceURL="` + w.config.ACSURL + `"`,
				`<saml:Issuer>` + w.config.EntityID + `</saml:Issuer>`, `samlp:AuthnRequest`,
			} {
				if !strings.Contains(text, each) {
					t.Errorf("no %s in %s", each, text)
				}
				text = strings.Replace(text, each, "", 1)
			}
			if text != c.want {
				t.Errorf("the request has %s, not %s", text, c.want)
			}
			if !regexp.MustCompile(`^_[A-Za-z0-9_-]{52}$`).MatchString(request.ID) {
				t.Errorf("the id is %s", request.ID)
			}
		})
	}
}

// TestAddresses keeps what the provider's address has already, and escapes everything.
func TestAddresses(t *testing.T) {
	w := newWorld(t)
	for sso, want := range map[string]string{
		"https://idp.example/sso":     "https://idp.example/sso?SAMLRequest=",
		"https://idp.example/sso?a=b": "https://idp.example/sso?a=b&SAMLRequest=",
	} {
		w.config.Provider.SSOURL = sso
		address, _, err := samlsp.Start(w.config, samlsp.Ask{RelayState: "a&b=c+d"}, w.now)
		if err != nil || !strings.HasPrefix(address, want) || !strings.HasSuffix(address, "&RelayState=a%26b%3Dc%2Bd") {
			t.Errorf("the address is %s: %v", address, err)
		}
	}
	w.config.Provider.SSOURL, w.config.EntityID = `https://idp.example/"><x>&`, `https://sp.example/?a=<b>&c="d"`
	request := w.start(t, samlsp.Ask{})
	if request.Destination != w.config.Provider.SSOURL || request.Issuer != w.config.EntityID {
		t.Errorf("the request is read as %+v", request)
	}
}

func TestStartRefuses(t *testing.T) {
	w := newWorld(t)
	if _, _, err := samlsp.Start(w.config, samlsp.Ask{RelayState: strings.Repeat("a", 81)}, w.now); err == nil {
		t.Error("a RelayState of 81 bytes was sent")
	}
	w.config.MACKey = w.config.MACKey[:31]
	if _, _, err := samlsp.Start(w.config, samlsp.Ask{}, w.now); err == nil {
		t.Error("an id was sealed by 31 bytes")
	}
	// HMAC pads keys with zeros, so this id has the MAC of the short key, too.
	long := w.config
	long.MACKey = append(slices.Clone(w.config.MACKey), 0)
	_, id, err := samlsp.Start(long, samlsp.Ask{}, w.now)
	if err != nil {
		t.Fatal(err)
	}
	form := samltest.FormOf(`<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" Version="2.0" InResponseTo="`+id+`"/>`, "")
	if _, err := samlsp.Read(w.config, form, w.now); err == nil {
		t.Error("an id was read by 31 bytes")
	}
}

// TestSignedRequest verifies a request's signature as the binding says: over the query as it was sent.
func TestSignedRequest(t *testing.T) {
	w := newWorld(t)
	w.config.Sign = ownKey()
	certificate, err := x509.ParseCertificate(derOf(ownKey()))
	if err != nil {
		t.Fatal(err)
	}
	for _, relayState := range []string{"", "tab 1"} {
		request := w.start(t, samlsp.Ask{RelayState: relayState})
		signed, encoded, found := strings.Cut(request.RawQuery, "&Signature=")
		if !found {
			t.Fatalf("no signature in %s", request.RawQuery)
		}
		value, err := url.QueryUnescape(encoded)
		if err != nil {
			t.Fatal(err)
		}
		signature, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			t.Fatal(err)
		}
		digest := sha256.Sum256([]byte(signed))
		if err := rsa.VerifyPKCS1v15(certificate.PublicKey.(*rsa.PublicKey), crypto.SHA256, digest[:], signature); err != nil {
			t.Errorf("RelayState %q: %v", relayState, err)
		}
		if request.Query.Get("SigAlg") != "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256" || strings.Contains(request.Text, "Signature") {
			t.Errorf("the request is signed by %s: %s", request.Query.Get("SigAlg"), request.Text)
		}
	}
}

// TestIDs are each another, and good on another node by the same key.
func TestIDs(t *testing.T) {
	w, seen := newWorld(t), map[string]bool{}
	for range 100 {
		request := w.start(t, samlsp.Ask{})
		if seen[request.ID] {
			t.Fatal("an id twice")
		}
		seen[request.ID] = true
	}
	later := w.now.Add(90 * time.Second)
	request := w.start(t, samlsp.Ask{Fresh: true})
	form := samltest.FormOf(fmt.Sprintf(`<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" Version="2.0" InResponseTo="%s"/>`, request.ID), "")
	other := newWorld(t)
	got, err := samlsp.Read(other.config, form, later)
	if err != nil || !got.Began.Equal(w.now) || !got.Fresh || got.RequestID != request.ID {
		t.Errorf("read as %+v: %v", got, err)
	}
}

// TestMetadata is ours, as package xml reads it.
func TestMetadata(t *testing.T) {
	type descriptor struct {
		EntityID string `xml:"entityID,attr"`
		Role     struct {
			Protocols string `xml:"protocolSupportEnumeration,attr"`
			Signed    string `xml:"AuthnRequestsSigned,attr"`
			Wants     string `xml:"WantAssertionsSigned,attr"`
			Keys      []struct {
				Use         string `xml:"use,attr"`
				Certificate string `xml:"KeyInfo>X509Data>X509Certificate"`
				Methods     []struct {
					Algorithm string `xml:"Algorithm,attr"`
				} `xml:"EncryptionMethod"`
			} `xml:"KeyDescriptor"`
			Format string `xml:"NameIDFormat"`
			ACS    []struct {
				Binding  string `xml:"Binding,attr"`
				Location string `xml:"Location,attr"`
				Index    string `xml:"index,attr"`
			} `xml:"AssertionConsumerService"`
			Others []struct {
				XMLName xml.Name
			} `xml:",any"`
		} `xml:"urn:oasis:names:tc:SAML:2.0:metadata SPSSODescriptor"`
		Others []struct {
			XMLName xml.Name
		} `xml:",any"`
	}
	w := newWorld(t)
	w.config.ACSURL += "?a=1&b=2"
	for name, c := range map[string]struct {
		sign, decrypt *samlsp.Key
		uses          string
	}{
		"no key": {nil, nil, ""}, "signs": {ownKey(), nil, "signing"}, "decrypts": {nil, otherKey(), "encryption"},
		"both": {ownKey(), otherKey(), "signing encryption"},
	} {
		t.Run(name, func(t *testing.T) {
			w.config.Sign, w.config.Decrypt, w.config.NameIDFormat = c.sign, c.decrypt, samlsp.NameIDPersistent
			said := samlsp.Metadata(w.config)
			if again := samlsp.Metadata(w.config); string(again) != string(said) {
				t.Error("the metadata differ between two calls")
			}
			var got descriptor
			if err := xml.Unmarshal(said, &got); err != nil {
				t.Fatal(err)
			}
			uses := []string{}
			for _, key := range got.Role.Keys {
				uses = append(uses, key.Use)
				want := map[string]*samlsp.Key{"signing": c.sign, "encryption": c.decrypt}[key.Use]
				if key.Certificate != want.Certificate() || (len(key.Methods) == 3) != (key.Use == "encryption") {
					t.Errorf("the key for %s is %+v", key.Use, key)
				}
			}
			if strings.Join(uses, " ") != c.uses || got.EntityID != w.config.EntityID || len(got.Role.ACS) != 1 ||
				got.Role.ACS[0].Location != w.config.ACSURL || got.Role.ACS[0].Binding != "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" ||
				got.Role.Signed != fmt.Sprint(c.sign != nil) || got.Role.Wants != "true" || got.Role.Format != samlsp.NameIDPersistent || len(got.Role.Others)+len(got.Others) > 0 {
				t.Errorf("the metadata say %+v", got)
			}
		})
	}
}

// TestKeys come back as they were kept, and say nothing of themselves.
func TestKeys(t *testing.T) {
	marshalled, err := ownKey().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := samlsp.ParseKey(marshalled)
	if err != nil || again.ID != ownKey().ID || again.Certificate() != ownKey().Certificate() {
		t.Fatalf("the key comes back as %v: %v", again, err)
	}
	encoded, err := json.Marshal(ownKey())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(again), fmt.Sprintf("%#v %+v", again, again), string(encoded)} {
		if !strings.Contains(text, again.ID) || len(text) > 200 {
			t.Errorf("a log shows %s", text)
		}
	}
	mixed, err := otherKey().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	certificate, _, _ := strings.Cut(string(marshalled), "-----BEGIN PRIVATE")
	_, private, _ := strings.Cut(string(mixed), "-----BEGIN PRIVATE")
	for name, kept := range map[string]string{
		"nothing": "", "a certificate": certificate, "the wrong key": certificate + "-----BEGIN PRIVATE" + private, "twice the certificate": certificate + certificate,
	} {
		if _, err := samlsp.ParseKey([]byte(kept)); err == nil {
			t.Errorf("%s: a key was read", name)
		}
	}
	// A certificate of ours passes as a provider's: it has the form that products expect.
	if diff := cmp.Diff(1, len(mustParse(t, again).Certificates)); diff != "" {
		t.Error(diff)
	}
}

// mustParse reads our certificate in the metadata of a provider.
func mustParse(t *testing.T, key *samlsp.Key) metadata.Provider {
	t.Helper()
	idp := *sharedProvider()
	idp.Certificate = derOf(key)
	said, err := metadata.Parse(idp.Metadata(), "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return said
}
