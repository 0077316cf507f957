package installed

import (
	"cmp"
	"errors"
	"testing"
)

// outcome is a test that records how it was ended, and continues.
type outcome struct {
	testing.TB
	how string
}

func (o *outcome) Helper()      {}
func (o *outcome) Fatal(...any) { o.how = cmp.Or(o.how, "failed") }
func (o *outcome) Skip(...any)  { o.how = cmp.Or(o.how, "skipped") }

func TestMissing(t *testing.T) {
	for value, want := range map[string]string{"require": "failed", "": "skipped"} {
		t.Setenv("DOORWARD_TEST_GATEWAYS", value)
		o := &outcome{TB: t}
		Missing(o, errors.New("no such thing"))
		if o.how != want {
			t.Errorf("with %q: %s, want %s", value, o.how, want)
		}
	}
}

func TestProgram(t *testing.T) {
	if Program(t, "go", "golang") == "" {
		t.Error("go was not found")
	}
	o := &outcome{TB: t}
	if place := Program(o, "no-such-program", "none"); place != "" || o.how == "" {
		t.Errorf("no-such-program was found in %q, and the test continues", place)
	}
}
