// Package totp makes and checks the one-time codes of authenticator apps: RFC 6238 with
// SHA-1, 30 seconds and 6 digits, the only form that every app reads.
//
// A code is valid once: the caller stores the step that [Match] returns and passes it to
// the next call, as the argument after. It stores the step only if the stored one is still
// smaller, because several requests may match the same code at once.
package totp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" // RFC 6238: the apps know nothing else, and HMAC doesn't need collision resistance
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	period    = 30        // seconds
	modulus   = 1_000_000 // 10 to the power of Digits
	seedBytes = 20        // 160 bits, as RFC 4226, section 4, recommends
	skew      = 1         // steps that a clock may be early or late
)

// Digits is the length of a code.
const Digits = 6

// NewSeed returns 160 bits from the operating system's random source. It doesn't fail.
func NewSeed() []byte {
	seed := make([]byte, seedBytes)
	_, _ = rand.Read(seed)
	return seed
}

// Base32 returns the seed as people type it into an app: capitals, without padding.
func Base32(seed []byte) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(seed)
}

// Step returns the number of the 30-second step that t is in, counted from 1970.
func Step(t time.Time) int64 { return t.Unix() / period }

// Code returns the six digits of a step.
func Code(seed []byte, step int64) string {
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(step))
	mac := hmac.New(sha1.New, seed)
	mac.Write(counter[:])
	sum := mac.Sum(nil)
	offset := sum[len(sum)-1] & 0xf // RFC 4226, section 5.3
	number := binary.BigEndian.Uint32(sum[offset:]) & 0x7fffffff
	return fmt.Sprintf("%0*d", Digits, number%modulus)
}

// Match returns the step that the code belongs to: the current one, the one before it or
// the next one, if it is greater than after. Anything other than six digits never matches. It takes the
// same time for each wrong code.
func Match(seed []byte, code string, now time.Time, after int64) (step int64, ok bool) {
	typed := []byte(code)
	for candidate := Step(now) - skew; candidate <= Step(now)+skew; candidate++ {
		isSame := subtle.ConstantTimeCompare([]byte(Code(seed, candidate)), typed) == 1
		// The last of two steps with the same code wins, so that the code isn't valid twice.
		if isSame && candidate > after {
			step, ok = candidate, true
		}
	}
	return step, ok
}

// URI returns the otpauth address that apps read from a QR code, in the key URI format.
// The app shows the issuer, of which a long one is shortened, and the account. That format forbids colons in both, so a
// space takes their place.
func URI(issuer, account string, seed []byte) string {
	issuer, account = escape(shortened(issuer)), escape(account)
	return fmt.Sprintf("otpauth://totp/%s:%s?secret=%s&issuer=%s&algorithm=SHA1&digits=%d&period=%d",
		issuer, account, Base32(seed), issuer, Digits, period)
}

// maxIssuer is the longest issuer in an address, in bytes. It is in the address twice, and each of its bytes
// can take three characters; with the longest account the code stays small enough for a phone's camera.
const maxIssuer = 60

// shortened returns the name, or its beginning with an ellipsis.
func shortened(name string) string {
	if len(name) <= maxIssuer {
		return name
	}
	const ellipsis = "…"
	cut := maxIssuer - len(ellipsis)
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	return strings.TrimRight(name[:cut], " ") + ellipsis
}

// escape percent-encodes a name. Apps show the plus sign of form encoding as it is.
func escape(name string) string {
	name = url.QueryEscape(strings.ReplaceAll(name, ":", " "))
	return strings.NewReplacer("+", "%20", "%40", "@").Replace(name)
}
