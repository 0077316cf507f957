package installed

import (
	"cmp"
	"errors"
	"testing"
)

// outcome is a test that records how it was ended, and continues.
type outcome struct {
	testing.TB
	result string
}

func (o *outcome) Helper()      {}
func (o *outcome) Fatal(...any) { o.result = cmp.Or(o.result, "failed") }
func (o *outcome) Skip(...any)  { o.result = cmp.Or(o.result, "skipped") }

func TestMissing(t *testing.T) {
	for value, want := range map[string]string{"require": "failed", "": "skipped"} {
		t.Setenv("DOORWARD_TEST_GATEWAYS", value)
		o := &outcome{TB: t}
		Missing(o, errors.New("no such thing"))
		if o.result != want {
			t.Errorf("with %q: %s, want %s", value, o.result, want)
		}
	}
}

func TestProgram(t *testing.T) {
	if Program(t, "go", "golang") == "" {
		t.Error("go was not found")
	}
	o := &outcome{TB: t}
	if place := Program(o, "no-such-program", "none"); place != "" || o.result == "" {
		t.Errorf("no-such-program was found in %q, and the test continues", place)
	}
}
