package oidcrp

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/doorward/doorward/internal/oidcrp/cause"
)

// The checks, by which a Fault names what failed.
const (
	CheckOfIssuer     = "issuer" // of CheckIssuer and Discover alone
	CheckState        = "state"
	CheckIssParameter = "iss_parameter"
	CheckProvider     = "provider_error"
	CheckClient       = "client"
	CheckAlg          = "alg"
	CheckSignature    = "signature"
	CheckKid          = "kid"
	CheckIss          = "iss"
	CheckAud          = "aud"
	CheckAzp          = "azp"
	CheckNonce        = "nonce"
	CheckExp          = "exp"
	CheckIat          = "iat"
	CheckLifetime     = "lifetime"
	CheckAuthTime     = "auth_time"
	CheckSub          = "sub"
	CheckTid          = "tid"
	CheckHd           = "hd"
)

// Checks are those of Finish, in the order in which they are made: those before the one that failed
// have passed.
var Checks = []string{
	CheckState, CheckIssParameter, CheckProvider, CheckClient, CheckAlg, CheckKid, CheckSignature, CheckIss,
	CheckAud, CheckAzp, CheckNonce, CheckExp, CheckIat, CheckLifetime, CheckAuthTime, CheckSub, CheckTid, CheckHd,
}

// The codes of faults of CheckIssuer and Discover; the last two also say why something couldn't be reached
// at Finish.
const (
	CodeInvalid        = "invalid"             // no https, userinfo, query, fragment; of an endpoint, too
	CodeMultiTenant    = "multi_tenant_issuer" // Entra's addresses for everybody
	CodeIssuerMismatch = "issuer_mismatch"     // the document names another issuer
	CodeUnreachable    = "unreachable"         // no document there
	CodeAddressRefused = "address_refused"     // by the guard of the http.Client
)

// The advice of faults: keys of the sentences that say what to do.
const (
	AdviceAnother      = "another_provider"  // the answer is of another provider than the one that was asked
	AdviceAssignment   = "assignment"        // assign the person to the application at the provider
	AdviceClientID     = "client_id"         // compare the client id; allow the code flow
	AdviceClientKey    = "client_key"        // give the provider the address of our keys
	AdviceClientSecret = "client_secret"     // make a new secret at the provider, copy its value
	AdviceClock        = "clock"             // compare the clocks
	AdviceConsent      = "consent"           // an administrator of the provider consents
	AdviceFresh        = "fresh"             // the provider has to send auth_time
	AdviceHostedDomain = "hosted_domain"     // prove the domain of the Google organisation
	AdviceIssuer       = "issuer"            // copy the issuer as the provider writes it
	AdviceKeys         = "keys"              // the provider signs by a key that it doesn't publish
	AdviceNetwork      = "network"           // the provider is at an address that this installation doesn't call
	AdviceOwnAddress   = "own_directory"     // use the address of one's own directory
	AdvicePKCE         = "pkce"              // allow PKCE with S256
	AdviceProvider     = "provider"          // the provider doesn't follow OpenID Connect
	AdviceRedirect     = "redirect"          // the address leads elsewhere; copy the final one
	AdviceRedirectURI  = "redirect_uri"      // register our callback's address at the provider
	AdviceRetry        = "retry"             // try again; look at the provider's status
	AdviceScope        = "scope"             // allow the scopes openid, email, profile
	AdviceSigning      = "signing_algorithm" // sign by RS256 or ES256, without encryption
	AdviceStartAgain   = "start_again"       // the sign-in took too long, or was begun elsewhere
	AdviceTLS          = "tls"               // the certificate of the provider
)

// Advices are all of them.
var Advices = []string{
	AdviceAnother, AdviceAssignment, AdviceClientID, AdviceClientKey, AdviceClientSecret, AdviceClock, AdviceConsent, AdviceFresh,
	AdviceHostedDomain, AdviceIssuer, AdviceKeys, AdviceNetwork, AdviceOwnAddress, AdvicePKCE, AdviceProvider, AdviceRedirect,
	AdviceRedirectURI, AdviceRetry, AdviceScope, AdviceSigning, AdviceStartAgain, AdviceTLS,
}

// Fault says which check failed. Seen and Wanted are for administrators of the tenant: at most textMax
// characters, without control characters, tokens and secrets. Err is for the operator's log, may be
// nil, and holds no secret either.
type Fault struct {
	Check        string // one of Checks, or CheckOfIssuer
	Code         string // of CheckOfIssuer, and of what couldn't be reached
	Seen, Wanted string
	Advice       string      // one of Advices, or empty
	Cause        cause.Cause // of CodeUnreachable
	Unavailable  bool        // nothing was refused: the provider can't be reached, or has a fault
	Unread       bool        // of CheckKid: the keys were not read since the token came, so it may be by a new one
	Err          error
}

// Error says what failed.
func (f *Fault) Error() string {
	text := "check " + f.Check + " of OpenID Connect failed"
	if f.Code != "" {
		text += " (" + f.Code + ")"
	}
	if f.Seen != "" {
		text += ": seen " + f.Seen
	}
	if f.Wanted != "" {
		text += ": wanted " + f.Wanted
	}
	if f.Err != nil {
		text += ": " + f.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// unreachable returns the fault of a request that got no usable answer.
func (c *Client) unreachable(check string, err error) *Fault {
	fault := &Fault{Check: check, Unavailable: true, Code: CodeUnreachable, Err: err}
	if c.refused(err) {
		fault.Code = CodeAddressRefused
		fault.Seen, fault.Advice = "an address that this installation doesn't call", AdviceNetwork
		return fault
	}
	if fault.Cause, fault.Seen = cause.Of(err); errors.Is(err, errNotJSON) {
		fault.Cause, fault.Seen = cause.NotJSON, err.Error()
	}
	fault.Advice = cmp.Or(adviceAbout[fault.Cause], AdviceRetry)
	return fault
}

// adviceAbout has what to do about a cause; retry about the others.
var adviceAbout = map[cause.Cause]string{
	cause.Redirect: AdviceRedirect, cause.NotJSON: AdviceProvider, cause.TooLong: AdviceProvider,
	cause.OtherName: AdviceTLS, cause.Untrusted: AdviceTLS, cause.NoTLS: AdviceTLS, cause.NoHost: AdviceIssuer,
}

// textMax bounds Seen and Wanted, and texts in Asserted.Claims, in characters.
const textMax = 200

// longRun is what a token, a secret or a code looks like.
var longRun = regexp.MustCompile(`[A-Za-z0-9_\-.+=~]{40,}`)

// said returns what a provider said as text for a Fault: bounded, without control characters, and
// without the secrets and whatever looks like a token.
func said(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return Clip(longRun.ReplaceAllString(text, "…"))
}

// Clip returns the text on one line, without control characters and characters that turn the
// direction of reading, and of at most textMax characters.
func Clip(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), 4*textMax+utf8.UTFMax)], "�")
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp):
			return -1
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) <= textMax {
		return text
	}
	return string([]rune(text)[:textMax-1]) + "…"
}

// withoutAddress returns the cause alone, since a URL may be the provider's secret.
func withoutAddress(err error) error {
	if urlErr, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", strings.ToLower(urlErr.Op), urlErr.Err)
	}
	return err
}
