package client

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// While the keys can't be read again, the known ones stay valid, and many calls cause one
// read every five seconds.
func TestOldKeysWhileDoorwardIsDown(t *testing.T) {
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
		t.Errorf("%d requests for the keys, want 1 to 3", n)
	}
}

// Many calls wait for the same reading, each no longer than its own context allows.
func TestCallsShareAReading(t *testing.T) {
	var reads atomic.Int32
	asked, answer := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if reads.Add(1) == 1 {
			close(asked)
		}
		<-answer
		_, _ = w.Write([]byte(`{"keys":[]}`))
	}))
	defer s.Close()
	c, err := New(s.URL, Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	v, errs := c.Verifier("https://messages.example"), make(chan error)
	for range 20 {
		go func() {
			_, err := v.key(t.Context(), "unknown")
			errs <- err
		}()
	}
	<-asked
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.key(cancelled, "unknown"); !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("a call with a cancelled context: %v", err)
	}
	close(answer)
	for range 20 {
		if err := <-errs; !errors.Is(err, ErrUnauthenticated) {
			t.Error(err)
		}
	}
	if n := reads.Load(); n != 1 {
		t.Errorf("the keys were read %d times", n)
	}
}
