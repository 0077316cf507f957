package fold_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward/internal/fold"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"Müller": "muller", "Mu\u0308ller": "muller", "STRASSE": "strasse", "Straße": "strasse", "ẞ": "ss",
		"Élodie": "elodie", "Łukasz Ørsted": "lukasz orsted", "ﬁn": "fin", "Ａｎｎ": "ann", "İpek": "ipek", "ΣΊΣΥΦΟΣ": "σισυφοσ",
		"O\u2019Brien": "o'brien", "O'Brien": "o'brien", "O`Brien": "o'brien", "O\u00b4Brien": "o'brien", "O\u201bBrien": "o'brien", "Hawai\u02bbi": "hawai'i",
		"Ann\u2010Lee": "ann-lee", "Ann\u2011Lee": "ann-lee", "Ann\u2013Lee": "ann-lee", "Ann\u2212Lee": "ann-lee", "Jo\u00adse\u200b": "jose", "علی\u200cرضا": "علیرضا", "e\u200b\u0301": "e",
		"D\u02bcArcy": "d'arcy", "한글": "한글", "": "", "a_b%c*": "a_b%c*",
	} {
		if got := fold.Text(text); got != want {
			t.Errorf("%q is folded to %q, want %q", text, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	if got, want := fold.Words("  Haddad\tCarla "), []string{"haddad", "carla"}; !slices.Equal(got, want) {
		t.Errorf("the words are %q, want %q", got, want)
	}
	if got := fold.Words(" "); len(got) > 0 {
		t.Errorf("a space has the words %q", got)
	}
}

// TestDecomposedTextFoldsAlike: a decomposed text folds like the composed one.
func TestDecomposedTextFoldsAlike(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if a, b := fold.Text(string(r)), fold.Text(norm.NFD.String(string(r))); a != b {
			t.Errorf("%U is folded to %q, and decomposed to %q", r, a, b)
		}
	}
}

func TestKeysSortAsTexts(t *testing.T) {
	names := []string{"", "Anna", "Élodie", "Ann Lee", "Zoë", "ann-lee", "李", "Ångström"}
	byKey := slices.SortedFunc(slices.Values(names), func(a, b string) int { return strings.Compare(fold.Key(a), fold.Key(b)) })
	byText := slices.SortedFunc(slices.Values(names), func(a, b string) int { return strings.Compare(fold.Text(a), fold.Text(b)) })
	if !slices.Equal(byKey, byText) {
		t.Errorf("by key %q, by text %q", byKey, byText)
	}
}
