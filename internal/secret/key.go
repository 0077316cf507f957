package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math/big"
)

// The form of a key: a prefix of four characters that says what it opens, 256 random bits
// as 43 base62 characters, and a checksum of both as 6 more. A double click selects it
// whole, and scanners find it by its form.
const (
	prefixChars = 4
	randomChars = 43 // ceil(256 / log2(62))
	sumChars    = 6  // ceil(32 / log2(62))
	keyChars    = prefixChars + randomChars + sumChars
)

// base62 has the digits in the order of math/big, but capitals first: 0-9A-Za-z.
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// ErrMalformedKey is returned by [ParseKey]. It never quotes what was parsed.
var ErrMalformedKey = errors.New("secret: malformed key: want a prefix such as dwk_, 49 characters of 0-9A-Za-z, and a checksum that fits")

// Key is the secret of a program: 256 random bits with a prefix and a checksum. Like
// [Token] it is opaque and redacts itself. The zero Key holds no secret: Prefix, Hint,
// Reveal and Hash panic.
type Key struct {
	_    [0]func() // makes == a compile error: it would compare addresses
	text **[keyChars]byte
}

// NewKey makes a key from the operating system's random source. The prefix must have four
// characters, the last of which is an underscore; for another one it panics.
func NewKey(prefix string) Key {
	if len(prefix) != prefixChars || prefix[prefixChars-1] != '_' {
		panic("secret: a prefix has four characters, such as dwk_")
	}
	var bits [tokenBytes]byte
	_, _ = rand.Read(bits[:])
	text := new([keyChars]byte)
	copy(text[:], prefix)
	writeBase62(text[prefixChars:prefixChars+randomChars], new(big.Int).SetBytes(bits[:]))
	writeSum(text[prefixChars+randomChars:], text[:prefixChars+randomChars])
	return Key{text: &text}
}

// writeBase62 fills dst with the number, zeros in front.
func writeBase62(dst []byte, n *big.Int) {
	digit, base := new(big.Int), big.NewInt(int64(len(base62)))
	for i := len(dst) - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		dst[i] = base62[digit.Int64()]
	}
}

// writeSum fills dst with the CRC-32 (IEEE 802.3) of data. It detects typing errors, and
// doesn't protect against attacks.
func writeSum(dst, data []byte) {
	sum := checksum(data)
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = base62[sum%uint32(len(base62))]
		sum /= uint32(len(base62))
	}
}

// checksum is crc32.ChecksumIEEE, whose argument would have to be on the heap.
func checksum(data []byte) uint32 {
	sum := ^uint32(0)
	for _, c := range data {
		sum = crc32.IEEETable[byte(sum)^c] ^ sum>>8
	}
	return ^sum
}

// ParseKey reads what [Key.Reveal] wrote, with any prefix. It needs no database to find
// a wrong character. Errors: [ErrMalformedKey].
func ParseKey(s string) (Key, error) {
	// Kept small enough to be inlined, as Parse is.
	text := new([keyChars]byte)
	if !decodeKey(text, s) {
		return Key{}, ErrMalformedKey
	}
	return Key{text: &text}, nil
}

// decodeKey copies s into text, and reports whether s is a key.
func decodeKey(text *[keyChars]byte, s string) bool {
	if len(s) != keyChars {
		return false
	}
	copy(text[:], s)
	for _, c := range text[prefixChars:] {
		if !isBase62(c) {
			return false
		}
	}
	var sum [sumChars]byte
	writeSum(sum[:], text[:keyChars-sumChars])
	return text[prefixChars-1] == '_' && sum == [sumChars]byte(text[keyChars-sumChars:])
}

func isBase62(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// Prefix returns the first four characters, which say what the key opens.
func (k Key) Prefix() string { return string((*k.text)[:prefixChars]) }

// Hint returns the prefix with the next four characters, and the last four, by which people
// tell keys apart: dwk_Ab3f…9xQ2. Over 200 bits stay unknown.
func (k Key) Hint() string {
	t := *k.text
	return string(t[:prefixChars+4]) + "…" + string(t[keyChars-4:])
}

// Reveal returns the key as text. This is the secret itself: it belongs only in the one
// answer that shows it.
func (k Key) Reveal() string { return string((*k.text)[:]) }

// Hash returns the SHA-256 of the text, prefix included, so that a key for one purpose
// doesn't work for another.
func (k Key) Hash() Hash { return sha256.Sum256((*k.text)[:]) }

// String returns "[redacted]".
func (Key) String() string { return redacted }

// Format writes "[redacted]" for every verb and flag.
func (Key) Format(f fmt.State, _ rune) { writeRedacted(f) }

// LogValue makes slog record "[redacted]".
func (Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON returns the JSON string "[redacted]".
func (Key) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText returns "[redacted]".
func (Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }
