package client

import (
	"crypto/ecdsa"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// While the keys can't be read again, those known before stay good, and of many calls one
// in five seconds reads.
func TestOldKeysWhileDoorwardIsAway(t *testing.T) {
	var tries atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		tries.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer s.Close()
	c, err := New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	v := c.Verifier("https://messages.example")
	v.keys, v.readAt = map[string]*ecdsa.PublicKey{"old": {}}, time.Now().Add(-2*keysLife)
	for range 20 {
		if _, err := v.key(t.Context(), "old"); err != nil {
			t.Fatal(err)
		}
	}
	if n := tries.Load(); n < 1 || n > 3 { // a read that fails is tried again twice
		t.Errorf("asked %d times, want those of one read", n)
	}
}
