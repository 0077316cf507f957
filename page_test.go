package doorward_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/doorward/doorward"
)

// A version has none of the signs with which proxies append "-gzip" or "-br" to an ETag: one that ended
// in "-br" by itself couldn't be distinguished from one that a proxy has changed.
func TestVersionsAreWords(t *testing.T) {
	word := regexp.MustCompile(`^[0-9A-Za-z]{16,}$`)
	for i := range 1000 {
		if v := (doorward.User{ID: fmt.Sprint(i)}).Version(); !word.MatchString(v) {
			t.Fatalf("the version is %q, want letters and digits", v)
		}
	}
}
