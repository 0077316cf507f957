package commonpw

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MinWord is the shortest word, in code points, that [List.Refuses] looks up without
// the digits and punctuation around it: passwords without words contain shorter ones by
// chance.
const MinWord = 4

// Word returns the part of a password from its first to its last letter.
func Word(password string) string {
	return strings.TrimFunc(password, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
}

// Refuses reports whether password, in normal form C, is one of those that are tried
// first, ignoring letter case: it is on the list, as a whole or as its [Word], or all of
// it is a sequence ("qwertyuiopas", "210987654321") or a repetition ("abcabcabcabc",
// "password password").
func (l *List) Refuses(password string) bool { return l.Cause(password) != "" }

// The causes for which a password is refused.
const (
	Listed     = "listed"     // on the list
	WordListed = "word"       // its Word is on the list
	Sequence   = "sequence"   // goes through an alphabet or a row of keys
	Repetition = "repetition" // one text twice or more
)

// Cause returns the first cause for which Refuses refuses the password; empty if it doesn't.
func (l *List) Cause(password string) string {
	word, runes := Word(password), []rune(fold(password))
	switch {
	case l.Contains(password):
		return Listed
	case word != password && utf8.RuneCountInString(word) >= MinWord && l.Contains(word):
		return WordListed
	case isSequence(runes):
		return Sequence
	case isRepetition(runes):
		return Repetition
	}
	return ""
}

// rows are the alphabets and rows of keys that a sequence can follow, in either direction;
// after one end it continues at the other. None has a character twice.
var rows = runesOf(
	"abcdefghijklmnopqrstuvwxyz", "0123456789", "123456789",
	// QWERTY: the rows one after another, each by itself, with Shift, and by columns.
	"1234567890-=qwertyuiop[]asdfghjkl;'zxcvbnm,./",
	"1234567890qwertyuiopasdfghjklzxcvbnm", "qwertyuiopasdfghjklzxcvbnm",
	"qwertyuiop", "qwertyuiop[]", "asdfghjkl", "asdfghjkl;'", "zxcvbnm", "zxcvbnm,./",
	"1234567890-=", "!@#$%^&*()", "!@#$%^&*()_+", "!@#$%^&*()_+qwertyuiop{}asdfghjkl:\"zxcvbnm<>?",
	"1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9ol.0p;/", "qazwsxedcrfvtgbyhnujmikolp",
	// QWERTZ.
	"1234567890ß´qwertzuiopü+asdfghjklöä#yxcvbnm,.-",
	"1234567890qwertzuiopasdfghjklyxcvbnm", "qwertzuiopasdfghjklyxcvbnm",
	"qwertzuiopüasdfghjklöäyxcvbnm",
	"qwertzuiop", "qwertzuiopü", "qwertzuiopü+", "asdfghjklöä", "asdfghjklöä#", "yxcvbnm", "yxcvbnm,.-",
	"1234567890ß", "!\"§$%&/()=", "!\"§$%&/()=?", "!\"§$%&/()=?qwertzuiopü*asdfghjklöä'yxcvbnm;:_",
	"1qay2wsx3edc4rfv5tgb6zhn7ujm8ik,9ol.0pö-", "qaywsxedcrfvtgbzhnujmikolp",
)

func runesOf(rows ...string) [][]rune {
	var all [][]rune
	for _, row := range rows {
		all = append(all, []rune(row))
	}
	return all
}

// isSequence reports whether s goes through a row from one character to the next. It may
// repeat each: "112233445566".
func isSequence(s []rune) bool {
	return slices.ContainsFunc(rows, func(row []rune) bool { return follows(s, row, 1) || follows(s, row, -1) })
}

// follows reports whether s goes through the row in steps of 1 or -1, with or without
// repeated characters.
func follows(s, row []rune, step int) bool {
	if len(s) == 0 {
		return false
	}
	at := slices.Index(row, s[0])
	for _, r := range s {
		if at >= 0 && r != row[at] {
			at = (at + step + len(row)) % len(row)
		}
		if at < 0 || r != row[at] {
			return false
		}
	}
	return true
}

// isRepetition reports whether s is one text twice or more, the last perhaps cut off, or
// twice with a separator between. The separator has no letters and digits. It must be shorter
// than the text; otherwise any signs between two equal letters would be a repetition.
func isRepetition(s []rune) bool {
	p := period(s)
	if p == len(s) {
		return false
	}
	between := s[min(p, len(s)-p):p] // the separator, if there is one
	return len(between) < len(s)-p && !slices.ContainsFunc(between, isAlphanumeric)
}

func isAlphanumeric(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)
}

// period is the smallest p > 0 with s[i] == s[i-p] for each i >= p; len(s) if there is no
// smaller one. It computes the failure function of Knuth, Morris and Pratt.
func period(s []rune) int {
	borders := make([]int, len(s)+1)
	border := 0
	for i := 1; i < len(s); i++ {
		for border > 0 && s[i] != s[border] {
			border = borders[border]
		}
		if s[i] == s[border] {
			border++
		}
		borders[i+1] = border
	}
	return len(s) - border
}
