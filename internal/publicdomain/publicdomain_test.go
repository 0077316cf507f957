package publicdomain

import (
	"slices"
	"testing"
)

func TestIs(t *testing.T) {
	t.Parallel()
	for domain, want := range map[string]bool{
		"com": true, "co.uk": true, "github.io": true, "foo.ck": true, "www.ck": false, // *.ck, !www.ck
		"gmail.com": true, "mail.gmail.com": true, "gmx.de": true, "xn--p1ai": true,
		"acme.example": false, "acme.co.uk": false, "acme.github.io": false, "notgmail.com": false, "xn--bcher-kva.example": false,
		"acme.internal": false,
	} {
		if got := Is(domain); got != want {
			t.Errorf("%s: %v, want %v", domain, got, want)
		}
	}
}

// The list is searched by halves, and its entries need no other form.
func TestListIsSorted(t *testing.T) {
	t.Parallel()
	if len(freemail) < 100 || !slices.IsSorted(freemail) || len(slices.Compact(slices.Clone(freemail))) != len(freemail) {
		t.Errorf("freemail.txt has %d entries, which must be sorted and different", len(freemail))
	}
}
