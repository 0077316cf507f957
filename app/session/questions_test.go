package session

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
)

// While the database says nothing some wait for it, and everybody else is told at
// once. An answer lets others ask again, and so does the end of all that waited.
func TestQuestionsToASilentDatabase(t *testing.T) {
	var q questions
	now := time.Hour
	clock := func() time.Duration { return now }
	gone := doorward.Unavailable(errSilent)
	asked := func() (yes bool) {
		_ = q.askAt(clock, func() error { yes = true; return gone })
		return yes
	}
	answers, told := make(chan error), make(chan error)
	hang := func(n int) {
		for range n {
			begun := make(chan struct{})
			go func() { told <- q.askAt(clock, func() error { close(begun); return <-answers }) }()
			<-begun
		}
	}
	end := func(n int, answer error) {
		for range n {
			answers <- answer
			<-told
		}
	}
	expect := func(want bool, when string) {
		t.Helper()
		if asked() != want {
			t.Errorf("%s: asked is %v, want %v", when, !want, want)
		}
	}
	hang(probes)
	expect(true, "before the database is silent")
	now += silence + 1
	expect(false, "a silent database, and enough who wait")
	end(1, gone)
	expect(true, "one of them has given up, another one waits instead")
	hang(1)
	expect(false, "a fault is no answer")
	end(1, nil)
	hang(1)
	expect(true, "the database has answered")
	now += silence + 1
	expect(false, "it is silent again")
	end(probes, gone)
	hang(probes)
	expect(true, "all have given up, and others wait instead")
	end(probes, nil)
}
