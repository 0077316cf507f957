package samlsp_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	saml2 "github.com/russellhaering/gosaml2"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/npmtest"
	"github.com/doorward/doorward/internal/samlsp"
	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/internal/samlsp/samltest"
)

// What testdata/reference.mjs reads and writes.
type (
	posed struct {
		Provider  map[string]string       `json:"provider"`
		Us        map[string]string       `json:"us"`
		Responses []posedResponse         `json:"responses"`
		Requests  map[string]posedRequest `json:"requests"`
	}
	posedResponse struct {
		Form         string   `json:"form"`
		RequestID    string   `json:"requestId"`
		Certificates []string `json:"certificates"`
		Key          string   `json:"key,omitzero"`
	}
	posedRequest struct {
		Query  map[string]string `json:"query"`
		Signed string            `json:"signed"`
	}
	answered struct {
		Judged []struct{ NameID, Error string }
		Made   map[string]struct{ Form, Error string }
	}
)

// pose returns what is asked about the responses and requests.
func pose(t *testing.T, w *world, responses []posedResponse, requests map[string]posedRequest) posed {
	t.Helper()
	w.config.Sign, w.config.Decrypt = ownKey(), otherKey()
	private, err := x509.MarshalPKCS8PrivateKey(w.provider.Key)
	if err != nil {
		t.Fatal(err)
	}
	return posed{
		Provider: map[string]string{
			"entityId": w.provider.EntityID, "ssoUrl": w.provider.SSOURL, "key": asPEM("PRIVATE KEY", private), "certificate": asPEM("CERTIFICATE", w.provider.Certificate),
		},
		Us: map[string]string{
			"entityId": w.config.EntityID, "acs": w.config.ACSURL, "metadata": string(samlsp.Metadata(w.config)), "certificate": asPEM("CERTIFICATE", derOf(ownKey())),
		},
		Responses: responses, Requests: requests,
	}
}

// ask runs testdata/reference.mjs.
func ask(t *testing.T, w *world, responses []posedResponse, requests map[string]posedRequest) (answers answered) {
	t.Helper()
	npmtest.Ask(t, pose(t, w, responses, requests), &answers)
	if len(answers.Judged) != len(responses) {
		t.Fatalf("%d answers for %d responses", len(answers.Judged), len(responses))
	}
	return answers
}

// install comes first in a test, since it may take longer than responses are good.
func install(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("installs packages with npm")
	}
	npmtest.Install(t)
}

func asPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// verdict is what a judge says of a response: whom it names, or why it refuses.
type verdict struct{ subject, refused string }

// sample is a response of the attacks, of the forms of wrapping or of the shapes, at the time that it is now.
type sample struct {
	name, check string // check is ours that refuses it
	w           *world
	text        string
	requestID   string // that it answers
	ours        verdict
}

// cryptographic are the checks about which implementations have to be of one mind. What else is refused differs from
// one to the next.
var cryptographic = []string{fault.CheckAlg, fault.CheckSignature, fault.CheckCertificate, fault.CheckEncryption}

func samples(t *testing.T) (all []sample) {
	t.Helper()
	add := func(name, check string, change func(*world, *samltest.Answer)) {
		w := newWorld(t)
		w.now = time.Now().Truncate(time.Second)
		request := w.start(t, samlsp.Ask{})
		answer := w.provider.Answer(request, w.now)
		change(w, &answer)
		text, err := w.provider.Text(answer)
		if err != nil {
			t.Fatal(err)
		}
		got, err := w.finish(samltest.FormOf(text, ""))
		s := sample{name: name, check: check, w: w, text: text, requestID: request.ID, ours: verdict{subject: got.Subject}}
		if err != nil {
			s.ours.refused = err.Error()
		}
		all = append(all, s)
	}
	for _, at := range attacks {
		if at.check == "" || slices.Contains(cryptographic, at.check) {
			add(at.name, at.check, at.change)
		}
	}
	for _, form := range wrapping {
		add("wrapping "+form.name, fault.CheckSignature, func(_ *world, a *samltest.Answer) {
			a.SignAssertion, a.SignResponse, a.Edit = !form.ofResponse, form.ofResponse, form.wrap
		})
	}
	for _, s := range shapes {
		add("shape "+s.name, "", func(w *world, a *samltest.Answer) {
			s.change(&w.config)
			request := samltest.Request{ID: a.InResponseTo, ACS: w.config.ACSURL, Issuer: w.config.EntityID}
			a.SignAssertion, a.Edit = false, func(string) string { return w.fill(t, s, request) }
		})
	}
	return all
}

func posedOf(t *testing.T, all []sample) (responses []posedResponse) {
	t.Helper()
	for _, s := range all {
		response := posedResponse{Form: base64.StdEncoding.EncodeToString([]byte(s.text)), RequestID: s.requestID, Certificates: []string{}}
		for _, kept := range s.w.config.Provider.Certificates {
			response.Certificates = append(response.Certificates, asPEM("CERTIFICATE", kept.DER))
		}
		if s.w.config.Decrypt != nil {
			response.Key = privateOf(t, s.w.config.Decrypt)
		}
		responses = append(responses, response)
	}
	return responses
}

// byNodeSAML judges the samples with @node-saml/node-saml.
func byNodeSAML(t *testing.T, all []sample) []verdict {
	t.Helper()
	return ask(t, newWorld(t), posedOf(t, all), map[string]posedRequest{}).verdicts()
}

// byPySAML2 judges the samples with pysaml2 and xmlsec1.
func byPySAML2(t *testing.T, all []sample) []verdict {
	t.Helper()
	questions, err := json.Marshal(pose(t, newWorld(t), posedOf(t, all), map[string]posedRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	python := exec.CommandContext(t.Context(), "/usr/bin/python3", "testdata/pysaml2.py") // Debian's, which has python3-pysaml2
	python.Stdin, python.Stderr = bytes.NewReader(questions), os.Stderr
	out, err := python.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answers answered
	if err := json.Unmarshal(out, &answers); err != nil || len(answers.Judged) != len(all) {
		t.Fatalf("%d answers for %d responses: %v", len(answers.Judged), len(all), err)
	}
	return answers.verdicts()
}

func (a answered) verdicts() (all []verdict) {
	for _, judged := range a.Judged {
		all = append(all, verdict{judged.NameID, judged.Error})
	}
	return all
}

// privateOf returns the private key of ours as PEM.
func privateOf(t *testing.T, key *samlsp.Key) string {
	t.Helper()
	marshalled, err := key.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	_, private, _ := strings.Cut(string(marshalled), "-----END CERTIFICATE-----\n")
	return private
}

// byGoSAML2 judges the samples with github.com/russellhaering/gosaml2.
func byGoSAML2(t *testing.T, all []sample) (verdicts []verdict) {
	t.Helper()
	for _, s := range all {
		store := dsig.MemoryX509CertificateStore{}
		for _, kept := range s.w.config.Provider.Certificates {
			certificate, err := x509.ParseCertificate(kept.DER)
			if err != nil {
				t.Fatal(err)
			}
			store.Roots = append(store.Roots, certificate)
		}
		sp := &saml2.SAMLServiceProvider{
			IdentityProviderIssuer: s.w.provider.EntityID, AssertionConsumerServiceURL: s.w.config.ACSURL, AudienceURI: s.w.config.EntityID,
			IDPCertificateStore: &store, AllowMissingAttributes: true, Clock: dsig.NewFakeClockAt(s.w.now),
		}
		if s.w.config.Decrypt != nil {
			pair, err := tls.X509KeyPair([]byte(asPEM("CERTIFICATE", derOf(s.w.config.Decrypt))), []byte(privateOf(t, s.w.config.Decrypt)))
			if err != nil {
				t.Fatal(err)
			}
			sp.SPKeyStore = dsig.TLSCertKeyStore(pair) //nolint:staticcheck // its successor decrypts nothing
		}
		var v verdict
		switch info, err := sp.RetrieveAssertionInfo(base64.StdEncoding.EncodeToString([]byte(s.text))); {
		case err != nil:
			v.refused = err.Error()
		case info.WarningInfo.NotInAudience, info.WarningInfo.InvalidTime:
			v.refused = "a warning"
		default:
			v.subject = info.NameID
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// otherwise are the responses of which the judges say otherwise than this package, and why.
var otherwise = map[string]map[string]string{
	"gosaml2": {
		"with a name of the key alone":                       "wants a certificate in KeyInfo",
		"two EncryptedKeys":                                  "takes the first of several keys",
		"encrypted with SHA-256 in OAEP":                     "knows no other digest than SHA-1 there",
		"encrypted by CBC in an unsigned response":           "takes CBC",
		"encrypted by RSA PKCS #1 v1.5":                      "takes RSA PKCS #1 v1.5",
		"encrypted by RSA PKCS #1 v1.5 in a signed response": "takes RSA PKCS #1 v1.5",
		"SHA-1 of the digest alone":                          "takes SHA-1",
		"SHA-1":                                              "takes SHA-1",
		"of the whole document":                              "takes a reference without an id",
		"SHA-1 of the response":                              "takes SHA-1",
		"good since 3 min":                                   "allows for no skew",
		"good for a second":                                  "allows for no skew",
		"confirmed for a second":                             "allows for no skew",
	},
	"node-saml": {
		"two EncryptedKeys":                                     "takes the first of several keys",
		"SHA-1 of the digest alone":                             "takes SHA-1",
		"SHA-1":                                                 "takes SHA-1",
		"SHA-1 of the response":                                 "takes SHA-1",
		"encrypted with the key beside":                         "looks for the key within EncryptedData",
		"encrypted with SHA-256 in OAEP":                        "knows no OAEP of XML Encryption 1.1",
		"encrypted by CBC in an unsigned response":              "takes CBC",
		"the response's signature wrong, the assertion's right": "one right signature is enough",
		"the assertion's signature wrong, the response's right": "one right signature is enough",
		"a request 10 min old":                                  "has the clock of the machine",
		"good since 3 min":                                      "has the clock of the machine",
		"good for a second":                                     "has the clock of the machine",
		"confirmed for a second":                                "has the clock of the machine",
	},
	"pysaml2": {
		"SHA-1 of the digest alone":                          "takes SHA-1",
		"SHA-1":                                              "takes SHA-1",
		"SHA-1 of the response":                              "takes SHA-1",
		"two EncryptedKeys":                                  "takes the first of several keys",
		"encrypted with the key beside":                      "looks for the key within EncryptedData",
		"encrypted with SHA-256 in OAEP":                     "knows no OAEP of XML Encryption 1.1",
		"encrypted by CBC in an unsigned response":           "takes CBC",
		"encrypted by RSA PKCS #1 v1.5":                      "takes RSA PKCS #1 v1.5",
		"encrypted by RSA PKCS #1 v1.5 in a signed response": "takes RSA PKCS #1 v1.5",
		"a request 10 min old":                               "has the clock of the machine",
		"good for a second":                                  "has the clock of the machine",
		"confirmed for a second":                             "has the clock of the machine",
	},
}

// TestJudges compares with implementations of others, at full size with three: what this package accepts they accept, with the same subject;
// and whatever is wrong with signatures and encryption they refuse, or take what was signed.
func TestJudges(t *testing.T) {
	install(t)
	all := samples(t)
	judges := map[string][]verdict{"gosaml2": byGoSAML2(t, all), "node-saml": byNodeSAML(t, all)}
	if fulltest.On() { // 100 processes of xmlsec1
		judges["pysaml2"] = byPySAML2(t, all)
	}
	for judge, verdicts := range judges {
		compared := 0
		for i, theirs := range verdicts {
			s := all[i]
			if _, isKnown := otherwise[judge][s.name]; isKnown {
				continue
			}
			compared++
			switch isSigned := theirs.subject == "ann-7"; {
			case s.check == "" && theirs.refused != "":
				t.Errorf("%s refuses %s: %s", judge, s.name, theirs.refused)
			case s.check == "" && s.w.config.SubjectFrom == "" && theirs.subject != s.ours.subject:
				t.Errorf("%s: %s says %q, and we say %q", s.name, judge, theirs.subject, s.ours.subject)
			case s.check != "" && theirs.refused == "" && !(isSigned && strings.HasPrefix(s.name, "wrapping")):
				t.Errorf("%s takes %s, as %q", judge, s.name, theirs.subject)
			}
		}
		if compared < 50 {
			t.Errorf("%s has judged %d responses only", judge, compared)
		}
	}
}

// TestOtherProviders has two providers of other makers answer requests of ours, which are signed.
func TestOtherProviders(t *testing.T) {
	install(t)
	w := newWorld(t)
	w.now = time.Now().Truncate(time.Second)
	w.config.Sign, w.config.Decrypt = ownKey(), otherKey()
	requests := map[string]posedRequest{}
	for _, name := range []string{"samlp", "samlpSigned", "samlify", "samlifyEncrypted"} {
		request := w.start(t, samlsp.Ask{RelayState: "tab-1"})
		signed, _, _ := strings.Cut(request.RawQuery, "&Signature=")
		query := map[string]string{}
		for key := range request.Query {
			query[key] = request.Query.Get(key)
		}
		requests[name] = posedRequest{query, signed}
	}
	made := ask(t, w, []posedResponse{}, requests).Made
	w.now = time.Now()
	for name, made := range made {
		t.Run(name, func(t *testing.T) {
			if made.Error != "" {
				t.Fatal(made.Error)
			}
			text, err := base64.StdEncoding.DecodeString(made.Form)
			if err != nil {
				t.Fatal(err)
			}
			got, err := w.finish(samltest.FormOf(string(text), "tab-1"))
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			subject := map[bool]string{true: "ann-7", false: "ann@example.com"}[strings.HasPrefix(name, "samlp")]
			if got.Subject != subject || got.Address != "ann@example.com" {
				t.Errorf("the response says %+v", got)
			}
		})
	}
}
