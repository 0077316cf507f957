package factor

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/totp"
)

// maxTyped is longer than anybody types a code, with all separators, in bytes.
const maxTyped = 200

// Typed returns the answer with its code in the form in which codes are compared, whatever separators,
// digits of other scripts or letters that look like digits were typed or pasted. Errors:
// validation_failed (invalid, at /code or /recoveryCode) for a text that can't be a code, which is
// therefore no try.
func (a Answer) Typed() (Answer, error) {
	var err error
	switch a.Method() {
	case doorward.ByCode:
		a.Code, err = typedCode(a.Code)
	case doorward.ByRecovery:
		var ok bool
		if a.RecoveryCode, ok = typedRecovery(a.RecoveryCode); !ok {
			err = doorward.Invalid("/recoveryCode", "invalid", "A recovery code has 24 letters and digits.")
		}
	}
	return a, err
}

// typedCode returns the six digits of a code of an authenticator app. Errors: validation_failed (invalid,
// at /code).
func typedCode(text string) (string, error) {
	code := likeDigits.Replace(plainSigns(text))
	if len(code) != totp.Digits || strings.ContainsFunc(code, func(r rune) bool { return r < '0' || r > '9' }) {
		return "", doorward.Invalid("/code", "invalid", "The code of the app has six digits.")
	}
	return code, nil
}

// typedRecovery returns the characters of a recovery code, and false for a text that can't be one. The
// alphabet of base32 (RFC 4648) has neither 0 nor 1, so that these are taken for O and I.
func typedRecovery(text string) (string, bool) {
	code := likeLetters.Replace(strings.ToUpper(plainSigns(text)))
	isForeign := func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '2' || r > '7') }
	return code, len(code) == recoveryChars && !strings.ContainsFunc(code, isForeign)
}

// The characters that are read for one another, in a code that has only the digit or only the letter.
var (
	likeLetters = strings.NewReplacer("0", "O", "1", "I")
	likeDigits  = strings.NewReplacer("O", "0", "o", "0", "I", "1", "i", "1", "l", "1")
)

// plainSigns narrows full-width characters, writes the digits of all scripts in ASCII, and removes what
// people and programs put between the signs of a code, and what can't be seen.
func plainSigns(text string) string {
	if len(text) > maxTyped {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if isSeparator(r) {
			return -1
		}
		return asciiDigit(r)
	}, norm.NFKC.String(text))
}

// isSeparator reports whether it is a space, a line end, a dash or a dot, or invisible. The keyboards of
// Japan have the last two of otherDashes in the place of a dash and a dot.
func isSeparator(r rune) bool {
	const otherDashes = "\u2212\u2043\u02d7_.\u00b7\u2022\u30fc\u30fb" // the first is the minus sign
	return unicode.IsSpace(r) || unicode.In(r, unicode.Pd, unicode.Cf) || doorward.IsBlank(r) || strings.ContainsRune(otherDashes, r)
}

// asciiDigit returns the digit of a decimal digit of any script. Unicode encodes each script's ten in
// order, and its tables begin each range with a zero.
func asciiDigit(r rune) rune {
	for _, t := range unicode.Nd.R16 {
		if r >= rune(t.Lo) && r <= rune(t.Hi) {
			return '0' + (r-rune(t.Lo))%10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if r >= rune(t.Lo) && r <= rune(t.Hi) {
			return '0' + (r-rune(t.Lo))%10
		}
	}
	return r
}
