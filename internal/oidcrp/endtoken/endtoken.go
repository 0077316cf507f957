// Package endtoken checks the tokens by which a provider ends sign-ins itself: those of Global Token Revocation
// (draft-parecki-oauth-global-token-revocation) and logout tokens (OpenID Connect Back-Channel Logout 1.0, section
// 2.6).
//
//	token, err := endtoken.Logout(ctx, client, discovery, clientID, text, now)
//
// A token is signed by a published key of the provider, by an algorithm that it announces, as its ID tokens are. Each
// error is a *oidcrp.Fault, in the order of the checks: alg, kid, signature, the type, iss, aud, exp, iat, lifetime,
// nonce, events, sub. The two kinds can't stand in for each other, nor an ID token for either.
//
// A token is good once: the caller uses Token.ID up, and remembers that until Token.Until.
package endtoken

import (
	"context"
	"encoding/base64"
	"errors"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/doorward/doorward/internal/oidcrp"
)

// RevocationLifeMax is how long a token of a revocation may be good, from iat to exp. A logout token may be so for as
// long as an ID token (oidcrp.LifetimeMax): section 2.4 of its specification only recommends two minutes.
const RevocationLifeMax = 5 * time.Minute

const (
	idMax   = 255 // bytes of jti and sub
	timeMax = 1e11
	// logoutEvent is the member of events that makes a token a logout token.
	logoutEvent = "http://schemas.openid.net/event/backchannel-logout"
)

// Types of the header. The first is that of a revocation: providers that sign tokens for anybody and any audience,
// such as Google for service accounts, write JWT, and are refused by it.
const typeRevocation = "global-token-revocation+jwt"

var logoutTypes = []string{"", "logout+jwt", "jwt"}

// Token is what a provider says.
type Token struct {
	ID      string    // jti
	Until   time.Time // when it is over, with the skew
	Subject string    // of a logout token, as Session; one of them may be empty
	Session string    // sid
}

// claims are those that are read.
type claims struct {
	Iss    string         `json:"iss"`
	Aud    jsontext.Value `json:"aud"`
	Exp    jsontext.Value `json:"exp"`
	Iat    jsontext.Value `json:"iat"`
	Nbf    jsontext.Value `json:"nbf"`
	JTI    string         `json:"jti"`
	Nonce  jsontext.Value `json:"nonce"`
	Events jsontext.Value `json:"events"`
	Sub    jsontext.Value `json:"sub"`
	Sid    jsontext.Value `json:"sid"`
}

// Revocation checks a token by which the provider speaks to the address audience.
func Revocation(ctx context.Context, c *oidcrp.Client, d oidcrp.Discovery, audience, text string, now time.Time) (Token, error) {
	typ, read, err := signed(ctx, c, d, text)
	if err != nil {
		return Token{}, orUnread(err, text, d, audience, now, RevocationLifeMax)
	}
	if typ != "" && typ != typeRevocation {
		return Token{}, fault(oidcrp.CheckProvider, "typ "+typ, typeRevocation, oidcrp.AdviceProvider)
	}
	token, err := read.check(d, audience, now, RevocationLifeMax)
	if err == nil && read.Events != nil {
		err = fault(oidcrp.CheckProvider, "events", "no events", oidcrp.AdviceProvider)
	}
	return token, err
}

// Logout checks a logout token for the client.
func Logout(ctx context.Context, c *oidcrp.Client, d oidcrp.Discovery, clientID, text string, now time.Time) (Token, error) {
	typ, read, err := signed(ctx, c, d, text)
	if err != nil {
		return Token{}, orUnread(err, text, d, clientID, now, oidcrp.LifetimeMax)
	}
	if !slices.Contains(logoutTypes, typ) {
		return Token{}, fault(oidcrp.CheckProvider, "typ "+typ, "logout+jwt", oidcrp.AdviceProvider)
	}
	token, err := read.check(d, clientID, now, oidcrp.LifetimeMax)
	if err != nil {
		return Token{}, err
	}
	var events map[string]jsontext.Value
	if json.Unmarshal(read.Events, &events) != nil || events[logoutEvent].Kind() != '{' {
		return Token{}, fault(oidcrp.CheckProvider, "no event of a logout", logoutEvent, oidcrp.AdviceProvider)
	}
	return read.who(token)
}

// who fills in whom a logout token is about.
func (c claims) who(t Token) (Token, error) {
	var isText bool
	if t.Subject, isText = text(c.Sub); c.Sub != nil && (!isText || t.Subject == "" || len(t.Subject) > idMax || hasControl(t.Subject)) {
		return Token{}, fault(oidcrp.CheckSub, string(c.Sub), "1 to 255 bytes without control characters", oidcrp.AdviceProvider)
	}
	if t.Session, isText = text(c.Sid); c.Sid != nil && (!isText || t.Session == "") {
		return Token{}, fault(oidcrp.CheckSub, "sid "+string(c.Sid), "a text", oidcrp.AdviceProvider)
	}
	if t.Subject == "" && t.Session == "" {
		return Token{}, fault(oidcrp.CheckSub, "neither sub nor sid", "one of them", oidcrp.AdviceProvider)
	}
	return t, nil
}

// signed returns the type, without a prefix "application/" and in lower case (RFC 7515, section 4.1.9), and the claims.
func signed(ctx context.Context, c *oidcrp.Client, d oidcrp.Discovery, text string) (typ string, read claims, err error) {
	typ, payload, err := c.Signed(ctx, d, text)
	if err != nil {
		return "", read, err
	}
	if json.Unmarshal(payload, &read) != nil {
		return "", read, fault(oidcrp.CheckProvider, "claims that are of another type, or twice there", "an object of JSON", oidcrp.AdviceProvider)
	}
	return strings.TrimPrefix(strings.ToLower(typ), "application/"), read, nil
}

// orUnread makes of the refusal of a token by an unknown key one that says no more than that the keys can't be read, if
// they were not read since it came, and else it may be good: anybody can have them read just before the provider begins
// to sign by a new one. Other errors it returns as they are.
func orUnread(err error, text string, d oidcrp.Discovery, audience string, now time.Time, lifeMax time.Duration) error {
	refused, isFault := errors.AsType[*oidcrp.Fault](err)
	if !isFault || !refused.Unread {
		return err
	}
	var said claims
	parts := strings.Split(text, ".") // three, since a header was read
	payload, fault := base64.RawURLEncoding.DecodeString(parts[1])
	if fault != nil || json.Unmarshal(payload, &said) != nil {
		return err
	}
	if _, fault := said.check(d, audience, now, lifeMax); fault != nil {
		return err
	}
	unread := *refused
	unread.Unavailable, unread.Advice = true, oidcrp.AdviceRetry
	return &unread
}

// check makes the checks that both kinds have.
func (c claims) check(d oidcrp.Discovery, audience string, now time.Time, lifeMax time.Duration) (Token, error) {
	if c.Iss == "" || c.Iss != d.Issuer {
		return Token{}, fault(oidcrp.CheckIss, c.Iss, d.Issuer, oidcrp.AdviceIssuer)
	}
	if audience == "" || !slices.Contains(texts(c.Aud), audience) {
		return Token{}, fault(oidcrp.CheckAud, string(c.Aud), audience, oidcrp.AdviceClientID)
	}
	until, err := c.times(now, lifeMax)
	switch {
	case err != nil:
		return Token{}, err
	case c.Nonce != nil: // then it is an ID token
		return Token{}, fault(oidcrp.CheckNonce, "a nonce", "none", oidcrp.AdviceProvider)
	case c.JTI == "" || len(c.JTI) > idMax:
		return Token{}, fault(oidcrp.CheckProvider, "jti "+c.JTI, "a jti of 1 to 255 bytes", oidcrp.AdviceProvider)
	}
	return Token{ID: c.JTI, Until: until.Add(oidcrp.Skew)}, nil
}

// times checks exp, iat, nbf and the life, and returns exp.
func (c claims) times(now time.Time, lifeMax time.Duration) (time.Time, error) {
	exp, isTime := numericDate(c.Exp)
	if !isTime || !now.Before(exp.Add(oidcrp.Skew)) {
		return exp, timeFault(oidcrp.CheckExp, "", c.Exp, "a time after ", now)
	}
	iat, isTime := numericDate(c.Iat)
	if !isTime || iat.After(now.Add(oidcrp.Skew)) {
		return exp, timeFault(oidcrp.CheckIat, "", c.Iat, "a time before ", now)
	}
	if nbf, isTime := numericDate(c.Nbf); c.Nbf != nil && (!isTime || nbf.After(now.Add(oidcrp.Skew))) {
		return exp, timeFault(oidcrp.CheckIat, "nbf ", c.Nbf, "a time before ", now)
	}
	if life := exp.Sub(iat); life <= 0 || life > lifeMax {
		return exp, fault(oidcrp.CheckLifetime, life.String(), "at most "+lifeMax.String(), oidcrp.AdviceProvider)
	}
	return exp, nil
}

func timeFault(check, name string, seen jsontext.Value, wanted string, now time.Time) *oidcrp.Fault {
	said := string(seen)
	if at, isTime := numericDate(seen); isTime {
		said = at.UTC().Format(time.RFC3339)
	}
	return fault(check, name+said, wanted+now.UTC().Format(time.RFC3339), oidcrp.AdviceClock)
}

// fault returns the fault with what was seen, bounded; empty: absent.
func fault(check, seen, wanted, advice string) *oidcrp.Fault {
	if seen == "" {
		seen = "absent"
	}
	return &oidcrp.Fault{Check: check, Seen: oidcrp.Clip(seen), Wanted: oidcrp.Clip(wanted), Advice: advice}
}

// numericDate reads a NumericDate (RFC 7519, section 2).
func numericDate(raw jsontext.Value) (at time.Time, ok bool) {
	var seconds float64
	if raw.Kind() != '0' || json.Unmarshal(raw, &seconds) != nil || seconds <= 0 || seconds > timeMax {
		return time.Time{}, false
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)), true
}

func text(raw jsontext.Value) (value string, ok bool) {
	ok = raw.Kind() == '"' && json.Unmarshal(raw, &value) == nil
	return value, ok
}

// texts reads a text, or a list of texts. Anything else is none.
func texts(raw jsontext.Value) []string {
	if one, isText := text(raw); isText {
		return []string{one}
	}
	var all []string
	if raw.Kind() != '[' || json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

func hasControl(text string) bool { return strings.ContainsFunc(text, unicode.IsControl) }
