package doorward_test

import (
	"testing"

	"github.com/doorward/doorward"
)

// Names are valid in any script, and invalid if nothing of them is visible.
func TestNamesAreVisible(t *testing.T) {
	for name, isVisible := range map[string]bool{
		"Ann": true, "李": true, "علی\u200cرضا": true, "!": true, "7": true, "👩\u200d🚀": true, "e\u0301": true, "\u00a0x": true,
		"": false, " ": false, "\u200b": false, "\u0301": false, "\u00ad": false, "\u3164": false, "\u2800": false, "\ufeff\ufe0f": false,
	} {
		required, optional := name, name
		if got := len(doorward.RequireName("/name", &required, "Name it.")) == 0; got != isVisible {
			t.Errorf("%+q passes as a name: %v, want %v", name, got, isVisible)
		}
		if got := len(doorward.CheckName("/name", &optional)) == 0; got != (isVisible || name == "") {
			t.Errorf("%+q passes as a name that may be empty: %v", name, got)
		}
	}
}

// A name has one form, however it was typed or pasted.
func TestCleanName(t *testing.T) {
	for typed, want := range map[string]string{
		" Acme  Ltd ": "Acme Ltd", "Acme\u00a0Ltd": "Acme Ltd", "Acme\u2003\u3000Ltd\u202f": "Acme Ltd",
		"Ac\u200bme\ufeff": "Acme", "\u2060Acme\u00ad": "Acme", "\u200eAcme\u200f": "Acme", "Acme\u200d": "Acme",
		"Jose\u0301": "José", "e\u200b\u0301": "é", "Tru\u031bo\u031b\u0300ng": "Trường", "\u212bngstr\u00f6m": "Ångström",
		"علی\u200cرضا": "علی\u200cرضا", "👩\u200d🚀": "👩\u200d🚀", "❤\ufe0f": "❤\ufe0f", "\U0001f3f4\U000e0067\U000e007f": "\U0001f3f4\U000e0067\U000e007f",
		"\u0600\u0661": "\u0600\u0661",                                                  // a visible one of the category Cf
		"Acme\t":       "Acme", "\r\nAcme\u2028": "Acme", "\u200b Acme\n\ufeff": "Acme", // as copied from a table
		"Ac\u200dme": "Acme", "Acme\ufe0f Ltd": "Acme Ltd", "Ac\u200c\u200dme\U000e0041": "Acme", "Ак\u200dме": "Акме", "A\u200c B": "A B", "علی\u200c رضا": "علی رضا",
		"علی\u200c\u200cرضا": "علی\u200cرضا", "❤\ufe0f\u200d🔥": "❤\ufe0f\u200d🔥", "1\ufe0f\u20e3": "1\ufe0f\u20e3", "葛\U000e0100城": "葛\U000e0100城", "क्\u200dष": "क्\u200dष",
		"a\nb": "a\nb", "a\tb": "a\tb", "a\u202eb": "a\u202eb", "": "", " \u200b ": "",
	} {
		got := doorward.CleanName(typed)
		if got != want {
			t.Errorf("%+q is cleaned to %+q, want %+q", typed, got, want)
		}
		if again := doorward.CleanName(got); again != got {
			t.Errorf("%+q is cleaned again to %+q", got, again)
		}
	}
}
