package domain

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doorward/doorward"
)

// A name server that accepts the question and never answers is given up after lookupWithin, which leaves time
// for the answer within 12 s.
func TestRaceSilentServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &Domains{resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				buffer := make([]byte, 1500)
				for {
					if _, err := far.Read(buffer); err != nil {
						return
					}
				}
			}()
			return near, nil
		}}}
		began := time.Now()
		_, err := d.look(t.Context(), doorward.Domain{Name: "acme.example", Token: "x"})
		if took := time.Since(began); !doorward.HasCode(err, doorward.CodeProviderUnavailable) || took != lookupWithin || took > 9*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// shown has no record that isn't meant for Doorward, and bounds the others.
func TestShown(t *testing.T) {
	t.Parallel()
	long := "doorward-" + string(make([]byte, 500))
	texts := []string{"password of an internal host", "DOORWARD-verification=other", "a token here", long, "\xffdoorward"}
	got := shown(texts, "token")
	want := []string{"DOORWARD-verification=other", "a token here", long[:maxSeenText], "\uFFFDdoorward"}
	if len(got) != len(want) {
		t.Fatalf("shows %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("shows %q, want %q", got[i], want[i])
		}
	}
	var many []string
	for range 50 {
		many = append(many, "doorward")
	}
	if n := len(shown(many, "token")); n != maxSeen {
		t.Errorf("shows %d records", n)
	}
}
