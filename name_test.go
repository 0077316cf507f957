package doorward_test

import (
	"testing"

	"github.com/doorward/doorward"
)

// What people write in any script is a name; what shows nothing is none.
func TestNamesShowSomething(t *testing.T) {
	for name, shown := range map[string]bool{
		"Ann": true, "李": true, "علی\u200cرضا": true, "!": true, "7": true, "👩\u200d🚀": true, "e\u0301": true, "\u00a0x": true,
		"": false, " ": false, "\u200b": false, "\u0301": false, "\u00ad": false, "\u3164": false, "\u2800": false, "\ufeff\ufe0f": false,
	} {
		if got := len(doorward.NeedName("/name", name, "Name it.")) == 0; got != shown {
			t.Errorf("%+q passes as a name: %v, want %v", name, got, shown)
		}
		if got := len(doorward.CheckName("/name", name)) == 0; got != (shown || name == "") {
			t.Errorf("%+q passes as a name that may be empty: %v", name, got)
		}
	}
}
