// Package mailaddr decides which strings are e-mail addresses and gives each
// mailbox one spelling, the canonical address. That spelling identifies an account,
// is stored, returned and used for mail, so that mail always goes to the address
// that was compared.
//
//	canonical, err := mailaddr.Parse("Grace.Hopper@BÜCHER.example")
//	// "grace.hopper@xn--bcher-kva.example", nil
//
// # What is accepted
//
//   - a local part of dot-separated RFC 5322 atoms, ASCII only, at most 64
//     bytes; "+tag" and dots are kept
//   - one @
//   - a domain of at least two labels, in ASCII or as an internationalised name
//     (IDNA 2008, RFC 5891), which becomes A-labels ("xn--…")
//
// Letters are lower-cased, also in the local part. RFC 5321 lets a mail server
// distinguish Ann from ann, but hardly any does, and one person would end up with two
// accounts.
//
// # What is refused although a standard allows it
//
// Quoted local parts, comments, display names, address literals, trailing dots
// and surrounding spaces: each is a second spelling of something. Non-ASCII
// local parts (RFC 6531): they cannot be delivered everywhere.
//
// In a domain, every character that compatibility processing (UTS #46) would change
// into another or drop, beyond letter case: full-width letters and dots, ligatures,
// zero-width and other invisible characters. Otherwise one domain could look like
// another. For the same reason symbols and emoji are refused, as in IDNA 2008. The
// rules also apply to decoded "xn--" labels.
//
// Two narrow consequences: an internationalised name must be composed (Unicode NFC,
// RFC 5891 section 5.2), and Cherokee, whose IDNA form has capital letters, must be
// sent as "xn--".
package mailaddr

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Limits in bytes of the canonical form.
const (
	maxAddress = 254 // RFC 5321 section 4.5.3.1.3, less the angle brackets of a path
	maxLocal   = 64  // RFC 5321 section 4.5.3.1.1

	// maxInput refuses long input before any work is done on it. It refuses nothing
	// with a canonical form of at most maxAddress bytes: each byte of an A-label stands
	// for at most one character, which is at most 4 bytes of UTF-8.
	maxInput = maxAddress * utf8.UTFMax
)

// ErrInvalid is what every error of [Parse] wraps. The text of those errors says
// which rule was broken and never repeats the input.
var ErrInvalid = errors.New("not an e-mail address")

var (
	errLength = fmt.Errorf("%w: it may have at most %d bytes", ErrInvalid, maxAddress)
	errAt     = fmt.Errorf("%w: it needs exactly one @", ErrInvalid)
	errLocal  = fmt.Errorf("%w: the part before the @ may have 1 to %d unaccented letters, digits, "+
		"!#$%%&'*+-/=?^_`{|}~, and single dots between them", ErrInvalid, maxLocal)
	errDomain = fmt.Errorf("%w: the part after the @ must be a domain name such as example.com", ErrInvalid)
)

// profile converts without mapping: it refuses what the usual lookup profile
// would silently change. All checks for registration are made: an account is
// kept for years, like a registration, not for one lookup.
var profile = idna.New(idna.ValidateForRegistration())

// Parse returns the canonical form of the address s, or an error that wraps
// [ErrInvalid]. The canonical form is ASCII, has at most 254 bytes and is a
// fixed point: parsing it gives the same string.
func Parse(s string) (canonical string, err error) {
	if len(s) > maxInput {
		return "", errLength
	}
	local, domain, found := strings.Cut(s, "@")
	if !found || strings.Contains(domain, "@") {
		return "", errAt
	}
	if !isDotAtom(local) {
		return "", errLocal
	}
	domain, ok := toALabels(domain)
	if !ok {
		return "", errDomain
	}
	canonical = strings.ToLower(local) + "@" + domain
	if len(canonical) > maxAddress {
		return "", errLength
	}
	return canonical, nil
}

// ParseDomain returns the canonical form of a domain, which Domain returns of its addresses, or an error that wraps
// [ErrInvalid]. The dot at the end of an absolute name, as DNS consoles show it, is dropped.
func ParseDomain(s string) (string, error) {
	address, err := Parse("x@" + strings.TrimSuffix(s, "."))
	return Domain(address), err
}

// Local returns what stands before the @ of a canonical address. For anything
// else the result is undefined.
func Local(canonical string) string {
	local, _, _ := strings.Cut(canonical, "@")
	return local
}

// Domain returns what stands after the @ of a canonical address, as A-labels.
// For anything else the result is undefined.
func Domain(canonical string) string {
	_, domain, _ := strings.Cut(canonical, "@")
	return domain
}

// isDotAtom reports whether s is a dot-atom of RFC 5322 section 3.2.3 that fits
// in a local part.
func isDotAtom(s string) bool {
	if len(s) > maxLocal {
		return false
	}
	for atom := range strings.SplitSeq(s, ".") {
		if atom == "" || strings.ContainsFunc(atom, isNotAtext) {
			return false
		}
	}
	return true
}

// isNotAtext reports whether r is outside RFC 5322 atext. Invalid UTF-8 arrives
// here as U+FFFD and is outside.
func isNotAtext(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r)
}

// toALabels returns the domain s lower-cased and as A-labels.
func toALabels(s string) (string, bool) {
	if strings.ContainsFunc(s, foldsIntoASCII) {
		return "", false
	}
	domain, err := profile.ToASCII(strings.ToLower(s))
	if err != nil {
		return "", false
	}
	// The converted form is checked, so that one rule holds for what was typed and
	// for what was hidden in an A-label.
	readable, err := profile.ToUnicode(domain)
	if err != nil || strings.ContainsFunc(readable, isForbiddenInName) {
		return "", false
	}
	return domain, hasTopLevelName(domain)
}

// foldsIntoASCII reports whether lower-casing would turn r, which is not ASCII,
// into ASCII: the Kelvin sign into k, the dotted capital I of Turkish into i. That
// would turn one domain into another.
func foldsIntoASCII(r rune) bool {
	return r >= utf8.RuneSelf && unicode.ToLower(r) < utf8.RuneSelf
}

// exceptions are the characters that RFC 5892 section 2.6 lets into names though
// they are neither letter, mark nor decimal digit. Some are meant for certain
// neighbours only; section 5.4 of RFC 5891 leaves that to the registries.
const exceptions = "\u00b7\u0375\u05f3\u05f4\u06fd\u06fe\u0f0b\u3007\u30fb"

// isForbiddenInName reports whether r has no place in a name: symbols, punctuation,
// emoji, blanks, and the two joiners, which package idna lets pass where they
// change the shape of letters but which cannot be seen.
func isForbiddenInName(r rune) bool {
	if r == '-' || r == '.' || strings.ContainsRune(exceptions, r) {
		return false
	}
	return !unicode.In(r, unicode.Letter, unicode.Mark, unicode.Nd)
}

// hasTopLevelName reports whether the domain has two labels or more, and the last is
// neither empty (after a trailing dot) nor a number: 192.0.2.1 is no domain (RFC 3696
// section 2).
func hasTopLevelName(domain string) bool {
	dot := strings.LastIndexByte(domain, '.')
	return dot > 0 && strings.Trim(domain[dot+1:], "0123456789") != ""
}
