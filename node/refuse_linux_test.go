package node

import (
	"net"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/waittest"
)

// TestRaceUnaccepted: connections that Accept has not returned yet are counted, also while new ones
// are refused, so that a drain waits for them.
func TestRaceUnaccepted(t *testing.T) {
	t.Parallel()
	l, err := listen("listen", "127.0.0.1:0") // the first is the name of the setting, for errors
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 3 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if err := l.refuseNew(); err != nil {
		t.Fatal(err)
	}
	uncounted := func() int { return 3 - l.unaccepted() }
	if n := waitUntilNone(waittest.Limit, uncounted); n != 0 {
		t.Fatalf("%d of 3 connections are not counted", n)
	}
	if n := waitUntilNone(20*time.Millisecond, l.unaccepted); n != 3 { // after all of the 20 ms, since none is accepted
		t.Errorf("nothing was accepted, and %d connections are left, want 3", n)
	}
	for range 3 {
		conn, err := l.Listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if n := waitUntilNone(waittest.Limit, l.unaccepted); n != 0 {
		t.Errorf("all were accepted, and %d connections are left", n)
	}
}
