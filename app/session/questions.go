package session

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
)

const (
	// probes may wait for a database that says nothing: as many as a pool of PostgreSQL
	// has connections at least.
	probes = 16
	// silence is how long it has said nothing until everybody else is told at once.
	// Answers take a millisecond or two.
	silence = 500 * time.Millisecond
)

// questions are what checks ask of the database. One that hangs would cost each of
// them all the time that a check may take, and they would pile up here and in the
// gateway in front, at as many a second as people come.
type questions struct {
	open      atomic.Int64
	lastReply atomic.Int64 // of life, after the epoch: the last answer, or the first question since none was open
}

// epoch is the beginning of a clock that nobody sets.
var epoch = time.Now()

var errSilent = errors.New("session: the database has answered no check for half a second, and enough are waiting for it")

// ask has do ask the database, unless enough are waiting already for one that says
// nothing: that is unavailable.
func (q *questions) ask(do func() error) error {
	return q.askAt(func() time.Duration { return time.Since(epoch) }, do)
}

func (q *questions) askAt(now func() time.Duration, do func() error) error {
	defer q.open.Add(-1)
	switch n := q.open.Add(1); {
	case n == 1:
		q.lastReply.Store(int64(now()))
	case n > probes && now()-time.Duration(q.lastReply.Load()) > silence:
		return doorward.Unavailable(errSilent)
	}
	err := do()
	if !doorward.HasCode(err, doorward.CodeUnavailable) {
		q.lastReply.Store(int64(now()))
	}
	return err
}
