package samlsp_test

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/internal/samlsp"
	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/internal/samlsp/samltest"
)

// world is a connection and its provider, at one instant.
type world struct {
	provider *samltest.Provider
	config   samlsp.Config
	now      time.Time
}

// The keys are made once, since each takes long. Tests read them only.
var (
	sharedProvider = sync.OnceValue(func() *samltest.Provider { return samltest.New("https://idp.example/saml") })
	otherProvider  = sync.OnceValue(func() *samltest.Provider { return samltest.New("https://idp.example/saml") })
	ownKey         = sync.OnceValue(newKey)
	otherKey       = sync.OnceValue(newKey)
)

func newKey() *samlsp.Key {
	key, err := samlsp.NewKey("con_1", time.Now())
	if err != nil {
		panic(err)
	}
	return key
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{provider: sharedProvider(), now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	said, err := metadata.Parse(w.provider.Metadata(), "", w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.config = samlsp.Config{
		ConnectionID: "con_1", EntityID: "https://sp.example/api/v2/auth/sso/con_1/metadata",
		ACSURL: "https://sp.example/api/v2/auth/sso/con_1/acs", Provider: said, MACKey: []byte(strings.Repeat("k", 32)),
	}
	return w
}

// start begins a sign-in, and returns the request as the provider reads it.
func (w *world) start(t testing.TB, ask samlsp.Ask) samltest.Request {
	t.Helper()
	address, id, err := samlsp.Start(w.config, ask, w.now)
	if err != nil {
		t.Fatal(err)
	}
	request, err := samltest.Read(address)
	if err != nil || request.ID != id {
		t.Fatalf("the request is %q, not %q: %v", request.ID, id, err)
	}
	return request
}

// finish posts the form.
func (w *world) finish(form url.Values) (samlsp.Asserted, error) {
	response, err := samlsp.Read(w.config, form, w.now)
	if err != nil {
		return samlsp.Asserted{}, err
	}
	return samlsp.Finish(w.config, response, w.now)
}

// signIn signs somebody in, with the provider's answer changed.
func (w *world) signIn(t testing.TB, ask samlsp.Ask, change func(*samltest.Answer)) (samlsp.Asserted, error) {
	t.Helper()
	answer := w.provider.Answer(w.start(t, ask), w.now)
	if change != nil {
		change(&answer)
	}
	form, err := w.provider.Form(answer)
	if err != nil {
		t.Fatal(err)
	}
	return w.finish(form)
}

// checkOf returns the check that failed; empty: none did.
func checkOf(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	f, isFault := errors.AsType[*fault.Fault](err)
	if !isFault {
		t.Fatalf("not a fault: %v", err)
	}
	return f.Check
}

func TestSignIn(t *testing.T) {
	w := newWorld(t)
	got, err := w.signIn(t, samlsp.Ask{RelayState: "tab-1"}, func(a *samltest.Answer) {
		a.SessionNotOnOrAfter = w.now.Add(time.Hour)
		a.Attributes = append(a.Attributes, samltest.Attribute{Name: "groups", Values: []string{"staff", "admins"}})
		w.config.GroupsFrom = "groups"
	})
	if err != nil {
		t.Fatal(err)
	}
	want := samlsp.Asserted{
		Subject: "ann-7", Address: "ann@example.com", Groups: samlsp.Groups{State: samlsp.GroupsList, Names: []string{"staff", "admins"}},
		Methods: []string{"urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport"},
		At:      w.now, SessionUntil: w.now.Add(time.Hour), IssuedAt: w.now, AcceptedUntil: w.now.Add(10 * time.Minute),
		AssertionID: got.AssertionID, RequestID: got.RequestID, SignedBy: []string{w.config.Provider.Certificates[0].Fingerprint}, Names: []string{"email", "groups"},
		Values: map[string][]string{
			"NameID": {"ann-7"}, "NameIDFormat": {samlsp.NameIDPersistent}, "email": {"ann@example.com"}, "groups": {"staff", "admins"},
		},
		Passed: got.Passed,
	}
	if diff := cmp.Diff(want, got); diff != "" || got.AssertionID == "" || got.RequestID == "" {
		t.Errorf("the assertion says (-want +got):\n%s", diff)
	}
}

// derOf returns the certificate of a key of ours.
func derOf(key *samlsp.Key) []byte {
	der, err := base64.StdEncoding.DecodeString(key.Certificate())
	if err != nil {
		panic(err)
	}
	return der
}

func passedOf(err error) []string {
	f, _ := errors.AsType[*fault.Fault](err)
	return f.Passed
}
