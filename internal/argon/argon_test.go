package argon

import (
	"strings"
	"testing"
)

// cheap keeps the tests quick: about a millisecond a hash.
var cheap = Params{MemoryKiB: 1024, Time: 1, Parallelism: 1}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		params Params
		hint   string // "" for parameters that are fine
	}{
		{Default, ""},
		{cheap, ""},
		{Params{47104, 1, 1}, ""},
		{Params{1 << 20, 4, 4}, ""},
		{Params{}, "unit is KiB"},
		{Params{19, 2, 1}, "unit is KiB"},
		{Params{1023, 2, 1}, "unit is KiB"},
		{Params{1<<20 + 1, 1, 1}, "memory"},
		{Params{19456, 0, 1}, "time"},
		{Params{19456, 65, 1}, "time"},
		{Params{19456, 2, 0}, "parallelism"},
		{Params{19456, 2, 65}, "parallelism"},
		{Params{1 << 20, 5, 1}, "memory × time"},
	} {
		err := test.params.Check()
		switch {
		case test.hint == "" && err != nil:
			t.Errorf("%+v: %v, want it accepted", test.params, err)
		case test.hint != "" && (err == nil || !strings.Contains(err.Error(), test.hint)):
			t.Errorf("%+v: %v, want an error about %q", test.params, err, test.hint)
		}
	}
}

func TestNewPoolPanicsOnUncheckedParams(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("NewPool accepted parameters that Check refuses")
		}
	}()
	NewPool(Params{}, Options{})
}
