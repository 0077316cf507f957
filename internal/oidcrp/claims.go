package oidcrp

import (
	"crypto/subtle"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// claims are those of a token, as the provider wrote them.
type claims map[string]jsontext.Value

// text returns a claim that is a text; ok is false if it is absent or something else.
func (c claims) text(name string) (value string, ok bool) {
	raw := c[name]
	if raw.Kind() != '"' || json.Unmarshal(raw, &value) != nil {
		return "", false
	}
	return value, true
}

// texts returns a claim that is a list of texts.
func (c claims) texts(name string) (values []string, ok bool) {
	raw := c[name]
	if raw.Kind() != '[' || strings.Contains(string(raw), "null") && hasNull(raw) || json.Unmarshal(raw, &values) != nil {
		return nil, false
	}
	return values, true
}

// hasNull reports whether a list has null, which would be read as an empty text.
func hasNull(raw jsontext.Value) bool {
	var members []jsontext.Value
	return json.Unmarshal(raw, &members) != nil || slices.ContainsFunc(members, func(m jsontext.Value) bool { return m.Kind() == 'n' })
}

// timeMax bounds times, in seconds since 1970: the year 5138.
const timeMax = 1e11

// time returns a claim that is a NumericDate (RFC 7519, section 2).
func (c claims) time(name string) (at time.Time, ok bool) {
	raw := c[name]
	var seconds float64
	if raw.Kind() != '0' || json.Unmarshal(raw, &seconds) != nil || seconds <= 0 || seconds > timeMax {
		return time.Time{}, false
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)), true
}

// isTrue reports whether a claim is JSON true. The text "true" is not.
func (c claims) isTrue(name string) bool { return c[name].Kind() == 't' }

// seen returns a claim for a Fault.
func (c claims) seen(name string) string {
	raw, ok := c[name]
	if !ok {
		return "absent"
	}
	if text, isText := c.text(name); isText {
		return orEmpty(Clip(text))
	}
	return Clip(string(raw))
}

func orEmpty(text string) string {
	if text == "" {
		return "empty"
	}
	return text
}

// fault returns the fault of a claim.
func (c claims) fault(check, wanted, advice string) *Fault {
	return &Fault{Check: check, Seen: c.seen(check), Wanted: Clip(wanted), Advice: advice}
}

// checkCallback checks what the browser brought, before anything is sent, and returns the code.
func checkCallback(d Discovery, cfg Config, f Flow, callback url.Values) (code string, fault *Fault) {
	state, isOnce := single(callback, "state")
	if !isOnce || f.State == "" || subtle.ConstantTimeCompare([]byte(state), []byte(f.State)) != 1 {
		return "", &Fault{Check: CheckState, Seen: "another state", Wanted: "the state of this browser", Advice: AdviceStartAgain}
	}
	iss, isOnce := single(callback, "iss")
	if callback.Has("iss") && (!isOnce || iss != cfg.Issuer) || !callback.Has("iss") && d.PromisesIss {
		fault := &Fault{Check: CheckIssParameter, Seen: orEmpty(Clip(iss)), Wanted: Clip(cfg.Issuer), Advice: AdviceAnother}
		if !callback.Has("iss") {
			fault.Seen, fault.Advice = "absent", AdviceProvider
		}
		return "", fault
	}
	if callback.Has("error") {
		return "", providerFault(callback.Get("error"), callback.Get("error_description"), f.State, f.Nonce, f.Verifier)
	}
	if code, isOnce = single(callback, "code"); !isOnce || code == "" {
		return "", &Fault{Check: CheckProvider, Seen: "no code", Wanted: "one code", Advice: AdviceProvider}
	}
	return code, nil
}

// single returns a parameter, and whether it is there exactly once (RFC 6749, section 3.1).
func single(q url.Values, name string) (string, bool) {
	return q.Get(name), len(q[name]) == 1
}

// check makes the checks of the claims, in the order of Checks.
func (c claims) check(d Discovery, cfg Config, f Flow, now time.Time) *Fault {
	for _, one := range []func() *Fault{
		func() *Fault { return c.checkIss(d, cfg) },
		func() *Fault { return c.checkAudience(cfg) },
		func() *Fault { return c.checkNonce(f) },
		func() *Fault { return c.checkTimes(now) },
		func() *Fault { return c.checkFresh(f, now) },
		c.checkSub,
		func() *Fault { return c.checkTid(cfg) },
		func() *Fault { return c.checkHd(cfg) },
	} {
		if fault := one(); fault != nil {
			return fault
		}
	}
	return nil
}

// checkIss compares exactly. The discovery document was read for this issuer, too.
func (c claims) checkIss(d Discovery, cfg Config) *Fault {
	if iss, ok := c.text("iss"); !ok || iss == "" || iss != cfg.Issuer || iss != d.Issuer {
		return c.fault(CheckIss, cfg.Issuer, AdviceIssuer)
	}
	return nil
}

// checkAudience checks aud, and azp where it is there or there are several audiences.
func (c claims) checkAudience(cfg Config) *Fault {
	audiences, ok := c.texts("aud")
	if one, isText := c.text("aud"); isText {
		audiences, ok = []string{one}, true
	}
	if !ok || cfg.ClientID == "" || !slices.Contains(audiences, cfg.ClientID) {
		return c.fault(CheckAud, cfg.ClientID, AdviceClientID)
	}
	party, ok := c.text("azp")
	if _, isThere := c["azp"]; (isThere || len(audiences) > 1) && (!ok || party != cfg.ClientID) {
		return c.fault(CheckAzp, cfg.ClientID, AdviceClientID)
	}
	return nil
}

func (c claims) checkNonce(f Flow) *Fault {
	nonce, ok := c.text("nonce")
	if !ok || f.Nonce == "" || subtle.ConstantTimeCompare([]byte(nonce), []byte(f.Nonce)) != 1 {
		fault := &Fault{Check: CheckNonce, Seen: "another nonce", Wanted: "the nonce of this browser", Advice: AdviceStartAgain}
		if _, isThere := c["nonce"]; !isThere { // beginning again doesn't help
			fault.Seen, fault.Advice = "absent", AdviceProvider
		}
		return fault
	}
	return nil
}

// checkTimes checks exp, iat and nbf, and how long the token is good.
func (c claims) checkTimes(now time.Time) *Fault {
	exp, ok := c.time("exp")
	if !ok || !now.Before(exp.Add(Skew)) {
		return c.timeFault(CheckExp, "exp", "a time after ", now)
	}
	iat, ok := c.time("iat")
	if !ok || iat.After(now.Add(Skew)) {
		return c.timeFault(CheckIat, "iat", "a time before ", now)
	}
	if _, isThere := c["nbf"]; isThere {
		if nbf, ok := c.time("nbf"); !ok || nbf.After(now.Add(Skew)) {
			return c.timeFault(CheckIat, "nbf", "a time before ", now)
		}
	}
	if life := exp.Sub(iat); life > LifetimeMax || life <= 0 {
		return &Fault{Check: CheckLifetime, Seen: life.String(), Wanted: "at most " + LifetimeMax.String(), Advice: AdviceProvider}
	}
	return nil
}

// timeFault returns the fault of a time, in a form that people read.
func (c claims) timeFault(check, name, wanted string, now time.Time) *Fault {
	seen := c.seen(name)
	if at, ok := c.time(name); ok {
		seen = at.UTC().Format(time.RFC3339)
	}
	if name != check {
		seen = name + " " + seen
	}
	return &Fault{Check: check, Seen: seen, Wanted: wanted + now.UTC().Format(time.RFC3339), Advice: AdviceClock}
}

// checkFresh demands a sign-in since the Flow began, where one was asked for.
func (c claims) checkFresh(f Flow, now time.Time) *Fault {
	if !f.Fresh {
		return nil
	}
	at, ok := c.time("auth_time")
	if !ok || at.Before(f.At.Add(-Skew)) || at.After(now.Add(Skew)) {
		fault := c.timeFault(CheckAuthTime, "auth_time", "a time after ", f.At)
		fault.Advice = AdviceFresh
		return fault
	}
	return nil
}

// subMax bounds a subject, in bytes (OpenID Connect Core 1.0, section 2).
const subMax = 255

func (c claims) checkSub() *Fault {
	sub, ok := c.text("sub")
	if !ok || sub == "" || len(sub) > subMax || strings.ContainsFunc(sub, unicode.IsControl) {
		return c.fault(CheckSub, "1 to 255 bytes without control characters", AdviceProvider)
	}
	return nil
}

// checkTid demands that Entra's token is of the directory in the issuer, since Entra's keys sign for all
// directories.
func (c claims) checkTid(cfg Config) *Fault {
	u, ok := plainURL(cfg.Issuer)
	if !ok || !cfg.Entra && !isEntra(u) {
		return nil
	}
	directory := firstSegment(u)
	if tid, ok := c.text("tid"); !ok || tid == "" || !strings.EqualFold(tid, directory) {
		return c.fault(CheckTid, directory, AdviceOwnAddress)
	}
	return nil
}

// checkHd demands that Google's token is of an organisation whose domain the tenant has proved, since
// Google is the issuer of everybody's tokens.
func (c claims) checkHd(cfg Config) *Fault {
	if cfg.Issuer != googleIssuer && !cfg.Google {
		return nil
	}
	hd, ok := c.text("hd")
	ascii, err := idna.Lookup.ToASCII(hd)
	if !ok || hd == "" || err != nil || !slices.ContainsFunc(cfg.HostedDomains, func(d string) bool { return strings.EqualFold(d, ascii) }) {
		return c.fault(CheckHd, orNone(strings.Join(cfg.HostedDomains, " ")), AdviceHostedDomain)
	}
	return nil
}

func orNone(text string) string {
	if text == "" {
		return "a proved domain; there is none"
	}
	return text
}
