package ui

import (
	"os"
	"strings"
	"testing"
)

// Every state that a catalogue names has a tone, and states of one word have the same one.
func TestStatesHaveOneTone(t *testing.T) {
	for _, language := range []string{"en", "de"} {
		named, byWord := map[string]string{}, map[string]string{}
		for _, catalogue := range []string{"../console/text/", "../hosted/text/"} {
			text, err := os.ReadFile(catalogue + language + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if key, word, isMessage := strings.Cut(strings.TrimSpace(line), " = "); isMessage && isState(key) {
					named[key] = word
				}
			}
		}
		for key, word := range named {
			class, err := tone(key)
			if err != nil {
				t.Error(err)
			}
			if other, isKnown := byWord[word]; isKnown && other != class {
				t.Errorf("%s: %q has the tones %q and %q", language, word, class, other)
			}
			byWord[word] = class
		}
		for key := range tones {
			if named[key] == "" {
				t.Errorf("%s: no message names %s", language, key)
			}
		}
	}
}

// isState reports whether the message of the key names a state.
func isState(key string) bool {
	if key == "factor.disabled" {
		return true
	}
	for _, prefix := range []string{"status.", "state.", "hooks.state.", "hooks.delivery."} {
		if name, isOf := strings.CutPrefix(key, prefix); isOf && !strings.Contains(name, ".") {
			return true
		}
	}
	return false
}
