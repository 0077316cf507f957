// Package passkey registers and verifies passkeys. It uses go-webauthn, and adds the rules
// that the library leaves to its caller.
//
//   - Every passkey is discoverable and verifies its user, at its registration and at each
//     use, so that it can sign in alone.
//   - A signature counter that has not increased means a copy: [ErrCopied]. An
//     authenticator without a counter always sends 0, which is accepted.
//   - A passkey of one device may become synced (backup eligible from 0 to 1), as password
//     managers do; the change back is refused.
//
// Nothing here is stored: the caller makes the challenge, and keeps the [Credential].
package passkey

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
)

// Errors of [Party.Register], [Parse] and [Party.Verify].
var (
	ErrWrong  = errors.New("passkey: the answer to the challenge is wrong")
	ErrCopied = errors.New("passkey: the signature counter has not increased, so there is a copy")
)

// timeout is how long a browser lets its user take.
const timeout = 5 * time.Minute

// Party is the relying party: the server as browsers know it. Make it with New.
type Party struct{ web *webauthn.WebAuthn }

// New returns the relying party of the base URL, with a name that browsers show. Its id is
// the host. It is unusable, see Usable, where browsers have no passkeys: at an IP address,
// and over plain HTTP except on localhost.
func New(baseURL, name string) *Party {
	base, err := url.Parse(baseURL)
	if err != nil || !isAllowed(base) {
		return &Party{}
	}
	web, err := webauthn.New(&webauthn.Config{
		RPID: strings.ToLower(base.Hostname()), RPDisplayName: name, RPOrigins: []string{originOf(base)},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			RequireResidentKey: protocol.ResidentKeyRequired(), ResidentKey: protocol.ResidentKeyRequirementRequired,
			UserVerification: protocol.VerificationRequired,
		},
		Timeouts: webauthn.TimeoutsConfig{Login: webauthn.TimeoutConfig{Timeout: timeout}, Registration: webauthn.TimeoutConfig{Timeout: timeout}},
		// Password managers answer extensions that nobody asked for.
		ExtensionsUnsolicitedOutputPolicy: protocol.UnsolicitedOutputPolicyIgnore,
	})
	if err != nil {
		return &Party{}
	}
	return &Party{web}
}

func isAllowed(base *url.URL) bool {
	host := base.Hostname()
	isLoopback := host == "localhost" || strings.HasSuffix(host, ".localhost")
	return net.ParseIP(host) == nil && (base.Scheme == "https" || base.Scheme == "http" && isLoopback)
}

// originOf returns the origin as browsers write it: without the default port of the scheme.
func originOf(base *url.URL) string {
	host := base.Host
	if base.Scheme == "https" && base.Port() == "443" || base.Scheme == "http" && base.Port() == "80" {
		host = base.Hostname()
	}
	return base.Scheme + "://" + strings.ToLower(host)
}

// Usable reports whether browsers have passkeys at the base URL. If not, the other methods
// must not be called.
func (p *Party) Usable() bool { return p.web != nil }

// User is the owner of a passkey. ID is the user handle.
type User struct{ ID, Name string }

// Credential is what the verification of a passkey needs.
type Credential struct {
	ID             []byte   `json:"-"`         // WebAuthn's, which the browser sends
	PublicKey      []byte   `json:"publicKey"` // a COSE key
	Counter        uint32   `json:"counter"`
	BackupEligible bool     `json:"backupEligible"` // synced between devices, or can be
	AAGUID         []byte   `json:"aaguid"`         // the model of the authenticator
	Transports     []string `json:"transports,omitempty"`
}

// Text returns the credential without its id, as it is stored. Equal credentials have equal
// texts.
func (c Credential) Text() []byte {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // it has no value that could fail
	}
	return text
}

// Read returns the credential of a text and an id.
func Read(id, text []byte) (Credential, error) {
	c := Credential{}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("passkey: stored credential: %w", err)
	}
	c.ID = id
	return c, nil
}

// native returns the credential as a value of the library.
func (c Credential) native() webauthn.Credential {
	n := webauthn.Credential{
		ID: c.ID, PublicKey: c.PublicKey, Flags: webauthn.CredentialFlags{BackupEligible: c.BackupEligible},
		Authenticator: webauthn.Authenticator{AAGUID: c.AAGUID, SignCount: c.Counter},
	}
	for _, t := range c.Transports {
		n.Transport = append(n.Transport, protocol.AuthenticatorTransport(t))
	}
	return n
}

// holder is a User with credentials, for the library.
type holder struct {
	User
	credentials []webauthn.Credential
}

func (h holder) WebAuthnID() []byte                         { return []byte(h.ID) }
func (h holder) WebAuthnName() string                       { return h.Name }
func (h holder) WebAuthnDisplayName() string                { return h.Name }
func (h holder) WebAuthnCredentials() []webauthn.Credential { return h.credentials }

func descriptors(all []Credential) []protocol.CredentialDescriptor {
	var ds []protocol.CredentialDescriptor
	for _, c := range all {
		n := c.native()
		ds = append(ds, n.Descriptor())
	}
	return ds
}

// CreationOptions returns the options for the browser to make a passkey, as WebAuthn's
// PublicKeyCredentialCreationOptionsJSON. An authenticator that already has one of the known
// passkeys refuses.
func (p *Party) CreationOptions(challenge []byte, user User, known []Credential) (json.RawMessage, error) {
	made, _, err := p.web.BeginRegistration(holder{User: user}, webauthn.WithExclusions(descriptors(known)),
		func(o *protocol.PublicKeyCredentialCreationOptions) error {
			o.Challenge = challenge
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("passkey: options: %w", err)
	}
	return json.Marshal(made.Response)
}

// Register verifies the answer to CreationOptions: a RegistrationResponseJSON. Errors:
// ErrWrong.
func (p *Party) Register(challenge []byte, userID string, response []byte) (Credential, error) {
	parsed, err := protocol.ParseCredentialCreationResponseBytes(withoutPadding(response))
	if err != nil {
		return Credential{}, wrong(err)
	}
	state := webauthn.SessionData{
		Challenge: protocol.URLEncodedBase64(challenge).String(), UserID: []byte(userID),
		UserVerification: protocol.VerificationRequired, CredParams: webauthn.CredentialParametersDefault(),
	}
	made, err := p.web.CreateCredential(holder{User: User{ID: userID}}, state, parsed)
	if err != nil {
		return Credential{}, wrong(err)
	}
	c := Credential{
		ID: made.ID, PublicKey: made.PublicKey, Counter: made.Authenticator.SignCount,
		BackupEligible: made.Flags.BackupEligible, AAGUID: made.Authenticator.AAGUID,
	}
	for _, t := range made.Transport {
		c.Transports = append(c.Transports, string(t))
	}
	return c, nil
}

// RequestOptions returns the options for the browser to use a passkey, as WebAuthn's
// PublicKeyCredentialRequestOptionsJSON. If allowed is empty, the user chooses any passkey.
func (p *Party) RequestOptions(challenge []byte, allowed []Credential) (json.RawMessage, error) {
	// Also for a list of passkeys: the library's BeginLogin would need the user.
	asked, _, err := p.web.BeginDiscoverableLogin(webauthn.WithChallenge(challenge), webauthn.WithAllowedCredentials(descriptors(allowed)))
	if err != nil {
		return nil, fmt.Errorf("passkey: options: %w", err)
	}
	return json.Marshal(asked.Response)
}

// Answer is the answer to RequestOptions. Make it with Parse.
type Answer struct {
	CredentialID []byte
	UserHandle   string // empty if the answer has none
	parsed       *protocol.ParsedCredentialAssertionData
}

// Parse reads an AuthenticationResponseJSON. It verifies nothing. Errors: ErrWrong.
func Parse(response []byte) (Answer, error) {
	parsed, err := protocol.ParseCredentialRequestResponseBytes(withoutPadding(response))
	if err != nil {
		return Answer{}, wrong(err)
	}
	return Answer{parsed.RawID, string(parsed.Response.UserHandle), parsed}, nil
}

// Verify verifies the answer of the user, by the credential as it was stored, and returns
// the one to be stored next. Errors: ErrWrong, ErrCopied.
func (p *Party) Verify(challenge []byte, userID string, c Credential, a Answer) (Credential, error) {
	if !c.BackupEligible && a.parsed.Response.AuthenticatorData.Flags.HasBackupEligible() {
		c.BackupEligible = true // it has become synced; the library would refuse any change
	}
	state := webauthn.SessionData{
		Challenge: protocol.URLEncodedBase64(challenge).String(), UserID: []byte(userID), UserVerification: protocol.VerificationRequired,
	}
	used, err := p.web.ValidateLogin(holder{User{ID: userID}, []webauthn.Credential{c.native()}}, state, a.parsed)
	if err != nil {
		return c, wrong(err)
	}
	if used.Authenticator.CloneWarning {
		return c, ErrCopied
	}
	c.Counter = used.Authenticator.SignCount
	return c, nil
}

// withoutPadding returns the answer with an id without the padding that some clients write: the library
// takes padded base64 everywhere else. What can't be read is left to the library.
func withoutPadding(response []byte) []byte {
	var members map[string]json.RawMessage
	var id string
	if json.Unmarshal(response, &members) != nil || json.Unmarshal(members["id"], &id) != nil || !strings.HasSuffix(id, "=") {
		return response
	}
	members["id"], _ = json.Marshal(strings.TrimRight(id, "="))
	out, err := json.Marshal(members)
	if err != nil {
		return response
	}
	return out
}

// wrong returns ErrWrong with the text of the cause, which errors.As can't find.
func wrong(cause error) error { return fmt.Errorf("%w: %v", ErrWrong, cause) }
