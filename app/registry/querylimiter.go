package registry

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
)

const (
	// maxOpen is how many queries may wait for a database that doesn't answer: at least
	// the size of a PostgreSQL pool.
	maxOpen = 16
	// silence is how long the database may be silent before further checks fail at
	// once. Replies take a millisecond or two.
	silence = 500 * time.Millisecond
)

// QueryLimiter bounds the checks that wait for the database. If the database
// hangs, each check would wait for its full timeout, and they would pile up here
// and in the gateway.
type QueryLimiter struct {
	open atomic.Int64
	// lastReply is the time of the last reply since epoch. A query that begins while no other is
	// open sets it, too: silence then counts from the start of the query.
	lastReply atomic.Int64
}

// epoch is the origin of the monotonic clock.
var epoch = time.Now()

var errSilent = errors.New("registry: the database has not answered for half a second")

// Do runs query. If the database is silent and enough queries wait for it already, it
// returns unavailable instead.
func (q *QueryLimiter) Do(query func() error) error {
	return q.doAt(func() time.Duration { return time.Since(epoch) }, query)
}

func (q *QueryLimiter) doAt(now func() time.Duration, query func() error) error {
	defer q.open.Add(-1)
	switch n := q.open.Add(1); {
	case n == 1:
		q.lastReply.Store(int64(now()))
	case n > maxOpen && now()-time.Duration(q.lastReply.Load()) > silence:
		return doorward.Unavailable(errSilent)
	}
	err := query()
	if !doorward.HasCode(err, doorward.CodeUnavailable) {
		q.lastReply.Store(int64(now()))
	}
	return err
}
