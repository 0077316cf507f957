// Package totp has time-based one-time passwords (RFC 6238): HMAC-SHA-1, steps of 30
// seconds, six digits, as all authenticator apps know them.
package totp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6238; HMAC doesn't need collision resistance
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"time"
)

const (
	period    = 30
	digits    = 6
	seedBytes = 20 // RFC 4226, section 4, R6: 160 bits are recommended
	drift     = 1  // steps that a clock may be off, either way
)

// NewSeed returns a random seed of 160 bits.
func NewSeed() []byte {
	seed := make([]byte, seedBytes)
	_, _ = rand.Read(seed) // never fails
	return seed
}

// Step is the time step of an instant.
func Step(t time.Time) int64 { return t.Unix() / period }

// Code is the code of a step.
func Code(seed []byte, step int64) string {
	mac := hmac.New(sha1.New, seed)
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(step)) //nolint:gosec // steps are positive
	mac.Write(counter[:])
	sum := mac.Sum(nil)
	offset := sum[len(sum)-1] & 0xf
	return fmt.Sprintf("%0*d", digits, (binary.BigEndian.Uint32(sum[offset:])&0x7fffffff)%1_000_000)
}

// Match returns the step of the code if it is of now, the step before or the one after,
// and later than after.
func Match(seed []byte, code string, now time.Time, after int64) (step int64, ok bool) {
	code = strings.ReplaceAll(code, " ", "")
	if len(code) != digits {
		return 0, false
	}
	for candidate := Step(now) - drift; candidate <= Step(now)+drift; candidate++ {
		if subtle.ConstantTimeCompare([]byte(Code(seed, candidate)), []byte(code)) == 1 && candidate > after && !ok {
			step, ok = candidate, true
		}
	}
	return step, ok
}

// Base32 is the seed as people type it.
func Base32(seed []byte) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(seed)
}

// URI is the address that authenticator apps read from a QR code.
func URI(issuer, account string, seed []byte) string {
	label := url.PathEscape(issuer) + ":" + url.PathEscape(account)
	query := "secret=" + Base32(seed) + "&issuer=" + url.QueryEscape(issuer) + "&algorithm=SHA1&digits=6&period=30"
	return "otpauth://totp/" + label + "?" + strings.ReplaceAll(query, "+", "%20")
}
