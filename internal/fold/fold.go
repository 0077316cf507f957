// Package fold makes texts comparable for people: without regard to case, accents and
// width. The program does this, since PostgreSQL and SQLite have no function that does the
// same on both.
//
//	fold.Text("Müller, Straße")  // "muller, strasse"
//	fold.Words("  Haddad Carla") // "haddad", "carla"
//	fold.Key("Élodie")           // sorts in any collation as "elodie" does by its bytes
package fold

import (
	"encoding/hex"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// undecomposed replaces letters that Unicode doesn't decompose: those with a stroke, joined
// ones, eth, thorn and the dotless i; and the apostrophes and the minus sign that people and their
// keyboards use for one another. Capitals have been folded before.
var undecomposed = strings.NewReplacer("ø", "o", "ł", "l", "đ", "d", "ħ", "h", "ŧ", "t", "ð", "d", "þ", "th", "æ", "ae", "œ", "oe", "ı", "i",
	"`", "'", "\u2018", "'", "\u2019", "'", "\u201b", "'", "\u02bb", "'", "\u02bc", "'", "\u02b9", "'", "\u2032", "'", "\u2212", "-")

// acute has the acute accent alone, in both of its forms, which people type as an apostrophe. Unicode
// decomposes it into a space and a mark, and so it is replaced before.
var acute = strings.NewReplacer("\u00b4", "'", "\u1ffd", "'")

// Text decomposes the text (NFKD), drops its marks and what can't be seen (Cf), folds letter case, so that
// ß is ss, makes all dashes one, and composes what is left (NFC).
func Text(s string) string {
	if isPlain(s) {
		return s
	}
	folded := undecomposed.Replace(cases.Fold().String(norm.NFKD.String(acute.Replace(s))))
	unmarked := strings.Map(func(r rune) rune {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Cf):
			return -1
		case unicode.Is(unicode.Pd, r):
			return '-'
		}
		return r
	}, norm.NFKD.String(folded)) // folding may have made characters that decompose
	return norm.NFC.String(unmarked)
}

// isPlain reports whether the text is ASCII without capitals and the grave accent, which folding leaves as
// it is.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 || s[i] >= 'A' && s[i] <= 'Z' || s[i] == '`' {
			return false
		}
	}
	return true
}

// Words returns the words of the text, folded.
func Words(s string) []string { return strings.Fields(Text(s)) }

// keyBytes is how many bytes of a folded text are in its key: texts that differ only after
// them sort as equal.
const keyBytes = 64

// Key returns the beginning of the folded text in hexadecimal digits, which every collation
// sorts alike.
func Key(s string) string {
	folded := strings.TrimSpace(Text(s))
	return hex.EncodeToString([]byte(folded[:min(len(folded), keyBytes)]))
}
