package passkey_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/passkey"
	"github.com/doorward/doorward/internal/passkey/passkeytest"
)

const origin = "https://id.example.com"

var (
	party     = passkey.New(origin+"/platform", "Doorward")
	ann       = passkey.User{ID: "usr_ann", Name: "ann@acme.example"}
	challenge = []byte("a challenge of thirty-two bytes.")
)

// must returns the value of a call that must not fail.
func must[T any](t *testing.T, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func toJSON(t *testing.T, credential map[string]any) []byte {
	t.Helper()
	b, err := json.Marshal(credential)
	return must(t, b, err)
}

// register creates a passkey for ann.
func register(t *testing.T, a *passkeytest.Authenticator) passkey.Credential {
	t.Helper()
	options, err := party.CreationOptions(challenge, ann, nil)
	made, err2 := a.Create(must(t, options, err))
	c, err := party.Register(challenge, ann.ID, toJSON(t, must(t, made, err2)))
	return must(t, c, err)
}

// use signs in with the passkey: it has the authenticator answer and verifies the answer.
func use(t *testing.T, a *passkeytest.Authenticator, c passkey.Credential) (passkey.Credential, error) {
	t.Helper()
	options, err := party.RequestOptions(challenge, []passkey.Credential{c})
	got, err2 := a.Get(must(t, options, err))
	answer, err := passkey.Parse(toJSON(t, must(t, got, err2)))
	if answer = must(t, answer, err); string(answer.CredentialID) != string(c.ID) || answer.UserHandle != ann.ID {
		t.Errorf("the answer is %+v", answer)
	}
	return party.Verify(challenge, ann.ID, c, answer)
}

// Browsers offer passkeys only for host names, over HTTPS; over HTTP only for localhost.
func TestWhereBrowsersHavePasskeys(t *testing.T) {
	for base, want := range map[string]bool{
		"https://id.example.com": true, "https://id.example.com:8443/x": true, "http://localhost:8080": true, "http://a.localhost": true,
		"http://id.example.com": false, "http://127.0.0.1:8080": false, "https://192.0.2.1": false, "https://[::1]:443": false, "http://localhost.example.com": false, "ftp://x.example": false,
	} {
		if got := passkey.New(base, "Doorward").Usable(); got != want {
			t.Errorf("%s: usable is %v, want %v", base, got, want)
		}
	}
}

func TestRegisterAndUse(t *testing.T) {
	a := passkeytest.New(origin)
	c := register(t, a)
	for range 2 {
		back, err := passkey.Read(c.ID, c.Text())
		next, err2 := use(t, a, must(t, back, err))
		if next = must(t, next, err2); next.Counter <= c.Counter || slices.Equal(next.Text(), c.Text()) {
			t.Errorf("the counter went from %d to %d", c.Counter, next.Counter)
		}
		c = next
	}
	options, err := party.CreationOptions(challenge, ann, []passkey.Credential{c})
	if _, err := a.Create(must(t, options, err)); !errors.Is(err, passkeytest.ErrExcluded) {
		t.Errorf("a second one on the same authenticator: %v", err)
	}
	o, err := passkeytest.Read(options)
	if must(t, o, err); o.RP.ID != "id.example.com" || string(o.User.ID) != ann.ID || o.Selection.UserVerification != "required" || o.Selection.ResidentKey != "required" {
		t.Errorf("the options are %+v", o)
	}
}

// An answer of an authenticator with one wrong part is refused, at registration and at use.
func TestWrongAnswers(t *testing.T) {
	for name, spoil := range map[string]func(*passkeytest.Authenticator){
		"origin":        func(a *passkeytest.Authenticator) { a.Origin = "https://evil.example.com" },
		"port":          func(a *passkeytest.Authenticator) { a.Origin = origin + ":8443" },
		"relying party": func(a *passkeytest.Authenticator) { a.RPID = "example.com" },
		"presence":      func(a *passkeytest.Authenticator) { a.Flags = passkeytest.Verified },
		"verification":  func(a *passkeytest.Authenticator) { a.Flags = passkeytest.Present },
		"backed up without being eligible": func(a *passkeytest.Authenticator) {
			a.Flags = passkeytest.Present | passkeytest.Verified | passkeytest.BackedUp
		},
	} {
		a := passkeytest.New(origin)
		c := register(t, a)
		spoil(a)
		if _, err := use(t, a, c); !errors.Is(err, passkey.ErrWrong) {
			t.Errorf("used with a wrong %s: %v", name, err)
		}
		options, err := party.CreationOptions(challenge, ann, nil)
		made, err2 := a.Create(must(t, options, err))
		if _, err := party.Register(challenge, ann.ID, toJSON(t, must(t, made, err2))); !errors.Is(err, passkey.ErrWrong) {
			t.Errorf("registered with a wrong %s: %v", name, err)
		}
	}
	a := passkeytest.New(origin)
	c := register(t, a)
	options, err := party.RequestOptions([]byte("another challenge of 32 bytes..."), nil)
	got, err2 := a.Get(must(t, options, err))
	answer, err := passkey.Parse(toJSON(t, must(t, got, err2)))
	if _, err := party.Verify(challenge, ann.ID, c, must(t, answer, err)); !errors.Is(err, passkey.ErrWrong) {
		t.Errorf("to another challenge: %v", err)
	}
	a.Keys[0].Handle = []byte("usr_eve")
	options, err = party.RequestOptions(challenge, nil)
	got, err2 = a.Get(must(t, options, err))
	answer, err = passkey.Parse(toJSON(t, must(t, got, err2)))
	if _, err := party.Verify(challenge, ann.ID, c, must(t, answer, err)); !errors.Is(err, passkey.ErrWrong) {
		t.Errorf("with another user handle: %v", err)
	}
	other := register(t, passkeytest.New(origin))
	c.PublicKey = other.PublicKey
	a.Keys[0].Handle = []byte(ann.ID)
	if _, err := use(t, a, c); !errors.Is(err, passkey.ErrWrong) {
		t.Errorf("with another key: %v", err)
	}
	for _, junk := range []string{"", "{}", "[]", `{"id":"x"}`} {
		if _, err := passkey.Parse([]byte(junk)); !errors.Is(err, passkey.ErrWrong) {
			t.Errorf("%q: %v", junk, err)
		}
		if _, err := party.Register(challenge, ann.ID, []byte(junk)); !errors.Is(err, passkey.ErrWrong) {
			t.Errorf("registered %q: %v", junk, err)
		}
	}
}

// A signature counter that has not increased means that the passkey was copied. One that is
// always 0 means that the authenticator doesn't count.
func TestCopied(t *testing.T) {
	a := passkeytest.New(origin)
	c := register(t, a)
	copied := a.Copy()
	c, err := use(t, a, c)
	must(t, c, err)
	if _, err := use(t, copied, c); !errors.Is(err, passkey.ErrCopied) {
		t.Errorf("the same counter: %v", err)
	}
	a.Counter = 0
	if _, err := use(t, a, c); !errors.Is(err, passkey.ErrCopied) {
		t.Errorf("0 after a counter: %v", err)
	}
	a = passkeytest.New(origin)
	a.Counter = 0
	c = register(t, a)
	for range 3 {
		c, err = use(t, a, c)
		must(t, c, err)
	}
}

// A passkey may become a synced one, but not the other way round.
func TestBecomesSynced(t *testing.T) {
	a := passkeytest.New(origin)
	c := register(t, a)
	a.Flags |= passkeytest.BackupEligible | passkeytest.BackedUp
	c, err := use(t, a, c)
	if must(t, c, err); !c.BackupEligible {
		t.Error("the credential is not recorded as synced")
	}
	a.Flags = passkeytest.Present | passkeytest.Verified
	if _, err := use(t, a, c); !errors.Is(err, passkey.ErrWrong) {
		t.Errorf("a synced passkey that claims to be of one device: %v, want ErrWrong", err)
	}
}

func TestModel(t *testing.T) {
	apple := []byte("\xfb\xfc\x30\x07\x15\x4e\x4e\xcc\x8c\x0b\x6e\x02\x05\x57\xd7\xbd")
	for _, c := range []struct {
		aaguid []byte
		want   string
	}{{apple, "Apple Passwords"}, {make([]byte, 16), ""}, {nil, ""}} {
		if got := (passkey.Credential{AAGUID: c.aaguid}).Model(); got != c.want {
			t.Errorf("AAGUID %x: %q, want %q", c.aaguid, got, c.want)
		}
	}
}

// padded pads every base64 text of an answer, as some libraries write it.
func padded(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if name != "type" && name != "authenticatorAttachment" && name != "transports" {
				v[name] = padded(member)
			}
		}
	case string:
		return v + strings.Repeat("=", (4-len(v)%4)%4)
	}
	return v
}

func TestPaddedAnswers(t *testing.T) {
	a := passkeytest.New(origin)
	options, err := party.CreationOptions(challenge, ann, nil)
	made, err2 := a.Create(must(t, options, err))
	c, err := party.Register(challenge, ann.ID, toJSON(t, padded(must(t, made, err2)).(map[string]any)))
	c = must(t, c, err)
	options, err = party.RequestOptions(challenge, nil)
	got, err2 := a.Get(must(t, options, err))
	answer, err := passkey.Parse(toJSON(t, padded(must(t, got, err2)).(map[string]any)))
	if _, err := party.Verify(challenge, ann.ID, c, must(t, answer, err)); err != nil {
		t.Error(err)
	}
}
