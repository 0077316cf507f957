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
		if got := len(doorward.RequireName("/name", name, "Name it.")) == 0; got != isVisible {
			t.Errorf("%+q passes as a name: %v, want %v", name, got, isVisible)
		}
		if got := len(doorward.CheckName("/name", name)) == 0; got != (isVisible || name == "") {
			t.Errorf("%+q passes as a name that may be empty: %v", name, got)
		}
	}
}
