package similar

import "testing"

func TestName(t *testing.T) {
	known := []string{"message.send", "message.read", "ip", "aal"}
	for name, want := range map[string]string{
		"mesage.sent":  "message.send",
		"message.raed": "message.read",
		"aa":           "aal",
		"to":           "", // every byte differs
		"invoice.read": "",
		"":             "",
	} {
		if got := Name(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
