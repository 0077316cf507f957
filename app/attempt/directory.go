package attempt

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward"
)

// eachMinute is how many requests of a connection's directory the protocol has one by one, a minute and node. What it
// keeps is as few entries (doorward.AttemptsMax): a rule that is wrong for all people at once would push out the rest.
const eachMinute = 20

// directoryFaults bounds what protocols have of directories, in the memory of a node. The zero value has counted nothing.
type directoryFaults struct {
	mu      sync.Mutex
	minutes map[string]minute // by connection
	more    Strays            // by faultKey
}

// minute counts entries since an instant.
type minute struct {
	since time.Time
	n     int
}

// takeEach reports whether the entry is written by itself.
func (d *directoryFaults) takeEach(conID string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.minutes == nil {
		d.minutes = map[string]minute{}
	}
	m := d.minutes[conID]
	if age := now.Sub(m.since); age < 0 || age >= straysWindow {
		m = minute{since: now}
	}
	m.n++
	d.minutes[conID] = m
	return m.n <= eachMinute
}

// forget forgets connections that have counted nothing for a minute.
func (d *directoryFaults) forget(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for conID, m := range d.minutes {
		if age := now.Sub(m.since); age < 0 || age >= straysWindow {
			delete(d.minutes, conID)
		}
	}
}

// faultKey names what the common entry of many requests has. It has nothing that the sender chooses, which is why there
// are few.
func faultKey(a doorward.Attempt) string {
	return strings.Join([]string{a.ConnectionID, string(a.Outcome), a.Check, a.Advice}, " ")
}

// RecordDirectory is Record for a request of a connection's directory. Directories repeat all requests that were refused
// at each full run, so that equal ones are one entry, also if they aren't in a row. Of more than eachMinute a minute and
// node there is one entry a minute for those with the same check, without whom they concern.
func (r *Recorder) RecordDirectory(ctx context.Context, a doorward.Attempt) {
	a.Kind = doorward.AttemptSCIM
	now := r.db.Now()
	if !r.directories.takeEach(a.ConnectionID, now) {
		n := r.directories.more.Take(faultKey(a), now)
		if n == 0 {
			return
		}
		a.Count, a.Seen, a.Subject, a.UserID, a.Address = n, "", "", "", ""
	}
	r.Record(ctx, a)
}

// WriteDirectoryFaults writes the entries for what this node has counted and not written for more than a minute. It
// returns nil.
func (r *Recorder) WriteDirectoryFaults(ctx context.Context) error {
	now := r.db.Now()
	r.directories.forget(now)
	for key, n := range r.directories.more.Overdue(now) {
		parts := strings.Split(key, " ")
		r.Record(ctx, doorward.Attempt{
			ConnectionID: parts[0], Kind: doorward.AttemptSCIM, Outcome: doorward.AttemptOutcome(parts[1]), Check: parts[2], Advice: parts[3], Count: n,
		})
	}
	return nil
}
