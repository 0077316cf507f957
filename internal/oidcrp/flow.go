package oidcrp

import (
	"crypto/rand"
	"encoding/base64"
	"time"

	"golang.org/x/oauth2"
)

// Auth is how the client authenticates to the token endpoint (OpenID Connect Core 1.0, section 9).
type Auth string

// The ways of authentication.
const (
	SecretBasic   Auth = "secret_basic"    // client_secret_basic
	SecretPost    Auth = "secret_post"     // client_secret_post
	PrivateKeyJWT Auth = "private_key_jwt" // by Config.Key
)

// Config is what a connection signs people in by.
type Config struct {
	Issuer, ClientID string
	Auth             Auth
	// Secrets are tried in order, the next only when the provider refuses the one before.
	Secrets []string
	Key     *Key // of PrivateKeyJWT
	// AudienceIsTokenEndpoint makes the token endpoint the audience of client assertions, instead of the
	// issuer.
	AudienceIsTokenEndpoint bool
	RedirectURI             string
	EmailClaim              string // with the address; empty: "email"
	GroupsClaim             string // with the groups; empty: none
	// AskGroups asks for the scope "groups", if the provider announces it and GroupsClaim is set. Not every provider
	// that announces it lets each client have it.
	AskGroups bool
	// Entra demands tid, and Google demands hd, whatever the issuer. Both are demanded where the issuer is
	// known as theirs, too.
	Entra, Google bool
	HostedDomains []string // that hd may be: the domains that the tenant has proved, as A-labels
}

// Flow is one sign-in under way. It is secret: seal it in a cookie of the browser.
type Flow struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	At       time.Time `json:"at"`
	// Fresh asks the provider to sign the person in again, and demands an auth_time since At.
	Fresh bool `json:"fresh,omitzero"`
}

// Begin returns a new Flow that begins at the time. State, nonce and verifier have 256 random bits.
func Begin(at time.Time) Flow {
	return Flow{State: random(), Nonce: random(), Verifier: oauth2.GenerateVerifier(), At: at}
}

func random() string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // it doesn't fail
	return base64.RawURLEncoding.EncodeToString(bits[:])
}

// AuthURL returns where the browser goes. A loginHint is the address that the person has typed; empty:
// none.
func AuthURL(d Discovery, c Config, f Flow, loginHint string) string {
	options := []oauth2.AuthCodeOption{
		oauth2.S256ChallengeOption(f.Verifier), oauth2.SetAuthURLParam("nonce", f.Nonce),
	}
	if f.Fresh {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	if loginHint != "" {
		options = append(options, oauth2.SetAuthURLParam("login_hint", loginHint))
	}
	return c.oauth(d, "").AuthCodeURL(f.State, options...)
}

// groupsScope is the scope without which some providers send no groups. No standard has it.
const groupsScope = "groups"

// oauth returns the configuration of OAuth 2.0, with the secret.
func (c Config) oauth(d Discovery, secret string) *oauth2.Config {
	style := oauth2.AuthStyleInParams
	if c.Auth == SecretBasic {
		style = oauth2.AuthStyleInHeader
	}
	scopes := []string{"openid", "email", "profile"}
	if c.AskGroups && c.GroupsClaim != "" && d.HasGroupsScope {
		scopes = append(scopes, groupsScope)
	}
	return &oauth2.Config{
		ClientID: c.ClientID, ClientSecret: secret, RedirectURL: c.RedirectURI,
		Scopes:   scopes,
		Endpoint: oauth2.Endpoint{AuthURL: d.AuthorizationEndpoint, TokenURL: d.TokenEndpoint, AuthStyle: style},
	}
}
