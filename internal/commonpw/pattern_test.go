package commonpw

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// refusals says which passwords that aren't on the list are refused.
var refusals = map[string]bool{
	// The examples of docs/sign-in.md.
	"123456789012":      true,
	"qwertyuiopas":      true,
	"aaaaaaaaaaaa":      true,
	"password password": true,

	// Sequences.
	"abcdefghijkl":  true,
	"ABCDEFGHIJKL":  true,
	"lkjihgfedcba":  true,
	"xyzabcdefghi":  true, // from the end to the start
	"210987654321":  true,
	"890123456789":  true,
	"1234567891234": true, // without the zero
	"1234567890qwe": true,
	"mnbvcxzlkjhg":  true,
	"poiuytrewqpo":  true,
	"asdfghjklasd":  true,
	"asdfghjkl;'as": true,
	"qwertzuiopas":  true,
	"qwertzuiopüas": true,
	"QWERTZUIOPÜ+":  true,
	"mnbvcxylkjhg":  true,
	"yxcvbnmyxcvb":  true,
	"!@#$%^&*()_+":  true,
	"!\"§$%&/()=?!": true,
	"1qaz2wsx3edc4": true,
	"1qay2wsx3edc4": true,
	"112233445566":  true,
	"aaabbbcccddd":  true,
	"999888777666":  true,

	// Repetitions.
	"abcabcabcabc":      true,
	"abcabcabcabca":     true,
	"AbcaBcabCabC":      true,
	"xk4xk4xk4xk4":      true,
	"llama-llama-llama": true,
	"llama, llama":      true,
	"llama llama ":      true,
	"😀😀😀😀😀😀😀😀😀😀😀😀": true,
	"x x x x x x x":             true,
	"quiet llamas quiet llamas": true,

	// Words of the list between digits and signs.
	"password1234":      true,
	"Password2024!":     true,
	"2024_Password":     true,
	"!!!sunshine!!!":    true,
	"dragon123456":      true,
	"(((( monkey ))))":  true,
	"12345admin678":     true,
	"p@ssw0rd2024!":     true,
	"monkey 😀😀😀😀😀😀":     true,
	"cheeseburger 2026": true,

	"four quiet green llamas":     false,
	"four quiet mice":             false,
	"three old boats":             false,
	"correct horse battery":       false,
	"password monkey dragon":      false,
	"llama and llama":             false,
	"llamas quiet llamas":         false,
	"llama llama drama":           false,
	"abcdefghijkm":                false,
	"1234567890ab":                false,
	"2357111317192":               false,
	"qwertyasdfgz":                false,
	"a!$%/()=?+*a":                false, // the separator is longer than the text
	"ab!$%/()=?ab":                false,
	"abc 42 !!!!!":                false,
	"9?4-7#ox$2!8":                false, // a word of two letters
	"leeds annual fair":           false,
	"日本語のとても長い文":                  false,
	"x" + strings.Repeat(" ", 11): false,
	"":                            false,
	"~":                           false,
}

func TestRefuses(t *testing.T) {
	for password, want := range refusals {
		if got := Bundled().Refuses(password); got != want {
			t.Errorf("Refuses(%q) = %v, want %v", password, got, want)
		}
	}
}

// TestRowsAreDistinct: no row has a character twice, since follows finds only the first.
func TestRowsAreDistinct(t *testing.T) {
	for _, row := range rows {
		sorted := slices.Sorted(slices.Values(row))
		if len(slices.Compact(sorted)) != len(row) || string(row) != fold(string(row)) {
			t.Errorf("%q has a character twice or upper-case letters", string(row))
		}
	}
}

// TestRefusesNoGoodPassword: passphrases, even of common passwords, and random passwords
// are accepted.
func TestRefusesNoGoodPassword(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 5))
	words := slices.DeleteFunc(bundledEntries(), func(s string) bool { return Word(s) != s || strings.ContainsAny(s, "0123456789") })
	join := func(n int, separator string, part func() string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = part()
		}
		return strings.Join(parts, separator)
	}
	word := func() string { return words[random.IntN(len(words))] }
	sign := func() string { return string(rune('!' + random.IntN('~'-'!'+1))) }
	for range 20_000 {
		for _, password := range []string{
			join(3+random.IntN(3), []string{" ", "-", ".", ""}[random.IntN(4)], word), join(12+random.IntN(9), "", sign),
		} {
			if Bundled().Refuses(password) {
				t.Errorf("%q is refused", password)
			}
		}
	}
}

// FuzzRefuses compares isRepetition with its definition. It also checks that any text
// repeated is a repetition, and that a sequence read backwards is a sequence, too.
func FuzzRefuses(f *testing.F) {
	for password := range refusals {
		f.Add(password, uint8(2))
	}
	f.Fuzz(func(t *testing.T, password string, times uint8) {
		runes := []rune(password)
		if got, want := isRepetition(runes), isRepetitionByDefinition(runes); got != want {
			t.Errorf("isRepetition(%q) = %v, want %v", password, got, want)
		}
		again := strings.Repeat(string(runes), 2+int(times%8))
		if password != "" && !isRepetition([]rune(again)) {
			t.Errorf("%q is no repetition", again)
		}
		slices.Reverse(runes)
		if isSequence([]rune(password)) != isSequence(runes) {
			t.Errorf("%q is a sequence in one direction only", password)
		}
		Bundled().Refuses(password)
	})
}

// isRepetitionByDefinition tries every length of a unit that s repeats. If s ends within the
// second unit, the beginning of a unit is the repeated text, and its end is the separator.
func isRepetitionByDefinition(s []rune) bool {
	for unit := 1; unit < len(s); unit++ {
		isUnit := true
		for i := unit; i < len(s); i++ {
			isUnit = isUnit && s[i] == s[i-unit]
		}
		text := min(unit, len(s)-unit)
		if isUnit && unit-text < text && !slices.ContainsFunc(s[text:unit], isAlphanumeric) {
			return true
		}
	}
	return false
}

func BenchmarkRefuses(b *testing.B) {
	for name, password := range map[string]string{
		"phrase": "four quiet green llamas", "longest": strings.Repeat("1234567890", 12) + "x",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Bundled().Refuses(password)
			}
		})
	}
}

func TestCause(t *testing.T) {
	for password, want := range map[string]string{
		"abcabcabcabc":    Repetition,
		"qwertyuiopas":    Sequence,
		"2026_Password!":  WordListed,
		"password1234":    Listed,
		"three old boats": "",
	} {
		if got := Bundled().Cause(password); got != want {
			t.Errorf("%s: %q, want %q", password, got, want)
		}
	}
}
