// Package secret has types for values that must not be disclosed by accident: the 256-bit
// tokens of sessions, mails and challenges ([Token]), and the keys of programs ([Key]).
//
// Printing, logging or marshalling one gives "[redacted]". Only a method named
// Reveal returns the secret, so that a search for that word lists every use.
//
//	token := secret.New()
//	row.Hash = token.Hash()          // the database keeps this
//	cookie.Value = token.Reveal()    // the person gets this
//
//	token, err := secret.Parse(cookie.Value)
//	row, err := lookUp(token.Hash())
//
// # Why the secret is behind pointers
//
// Package fmt calls no method on an unexported field, nor on a value with a wrong
// verb (%p of a struct). Then it prints strings and arrays, and follows a pointer
// to an array, but shows only the address of a pointer to a pointer.
// Tests check this for every verb; no method could prevent it.
//
// # What this does not do
//
// It does not wipe memory: what Reveal returned, and the buffers that a secret
// came through, stay readable in the process until they are collected.
package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Sizes of a token. 256 bits can't be guessed even if any of billions of live tokens
// would match (NIST SP 800-63B section 7.1 requires at least 64 for a session secret).
const (
	tokenBytes = 32
	tokenChars = 43 // base64 without padding: ceil(32 * 8 / 6)
)

// redacted replaces the secret everywhere but in Reveal.
const redacted = "[redacted]"

// ErrMalformed is returned by [Parse]. It never quotes what was parsed: a
// mistyped token is nearly a token.
var ErrMalformed = errors.New("secret: malformed token: want exactly 43 base64url characters without padding")

// strict refuses a last character whose two unused bits are not zero. Otherwise four
// strings would decode to one token.
var strict = base64.RawURLEncoding.Strict()

// Hash is the SHA-256 of a token's 32 random bytes, or of a key's text: what is stored,
// indexed and looked up. It is no secret: nobody finds 256 random bits from their hash, so
// neither salt nor a slow function is needed, and the time that == takes can
// reveal only the hash.
type Hash [sha256.Size]byte

// Token is 256 random bits. It prints as redacted and can't be compared with ==: compare its
// Hash. Reveal and Hash of the zero Token panic, because the hash of an empty token must
// never match a row.
type Token struct {
	_    [0]func() // makes == a compile error: it would compare addresses
	bits **[tokenBytes]byte
}

// New makes a token from the operating system's random source. It can't fail: since Go
// 1.24 crypto/rand ends the process instead of returning an error.
func New() Token {
	bits := new([tokenBytes]byte)
	_, _ = rand.Read(bits[:])
	return Token{bits: &bits}
}

// Parse reads what [Token.Reveal] wrote: exactly 43 characters of base64url
// (RFC 4648 section 5) without padding, the two unused bits zero. Anything else
// is [ErrMalformed]. So each token has one spelling:
// Parse succeeds if and only if Reveal gives the same string again.
func Parse(s string) (Token, error) {
	// Kept small enough to be inlined: then bits stays on the stack of a caller
	// who only hashes the token, and a session check allocates nothing here.
	bits := new([tokenBytes]byte)
	if !decode(bits, s) {
		return Token{}, ErrMalformed
	}
	return Token{bits: &bits}, nil
}

// decode reports whether s is the canonical encoding of bits. The count matters: the
// decoder skips line breaks, so 43 characters may yield fewer than 32 bytes.
func decode(bits *[tokenBytes]byte, s string) bool {
	if len(s) != tokenChars {
		return false
	}
	var src [tokenChars]byte // []byte(s) would allocate
	copy(src[:], s)
	n, err := strict.Decode(bits[:], src[:])
	return err == nil && n == tokenBytes
}

// Reveal returns the token as 43 base64url characters. This is the secret itself: it
// belongs in a cookie, a mail or an answer, never in a log, a URL's path or query, or a
// database.
func (t Token) Reveal() string {
	return base64.RawURLEncoding.EncodeToString((*t.bits)[:])
}

// Hash returns the SHA-256 of the 32 bytes (not of their base64 spelling).
func (t Token) Hash() Hash { return sha256.Sum256((*t.bits)[:]) }

// String returns "[redacted]".
func (Token) String() string { return redacted }

// Format writes "[redacted]" for every verb and flag.
func (Token) Format(f fmt.State, _ rune) { writeRedacted(f) }

// LogValue makes slog record "[redacted]".
func (Token) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON returns the JSON string "[redacted]".
func (Token) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText returns "[redacted]".
func (Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// writeRedacted returns no error: fmt.Formatter has none, and the calling Fprintf
// reports a failing writer.
func writeRedacted(f fmt.State) { _, _ = io.WriteString(f, redacted) }
