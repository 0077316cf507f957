// Package outbox sends work that lies in a queue of the database to hosts that may
// be slow or dead, so that nobody's work waits for somebody else's.
//
// The queue belongs to whoever uses the package, as app/mail does with mails. A
// [Queue] says how to find what is due, whose it is and where it goes, and how to
// try it. [Queue.Run] does so until its context ends:
//
//   - At least once. The work stays in the database until a try has been noted
//     there. Try begins with a claim, a conditional statement that one of many
//     workers wins, in this process or another one. The claim of a node that dies
//     runs out.
//   - Each try has a goroutine of its own. A node has 32 at once at most: 8 of one
//     share (whose work it is), 4 to one host. A third of them is for urgent work.
//   - A host that has answered slowly shares a quarter of these with its like, one
//     each. Hosts that nobody has tried yet are taken for good ones. A try that turns
//     out to be slow is cut short once others have no place for want of it, and goes
//     on later, as a slow one that nobody cuts.
//   - Urgent work goes first, then shares take turns, and in a share its hosts.
//   - What fails is tried again after longer and longer pauses, for two days: [Pause].
//
// So a thousand dead hosts hold up the work to a good one for about a second, and
// only until each has been tried once.
//
//	outbox.go    the queue and its limits
//	dispatch.go  the loop that starts, cuts and ends tries
//	look.go      how the queue is read, piece by piece
//	waiting.go   what is due, in the order in which it is started
//	try.go       one try
//	hosts.go     which hosts are slow
package outbox

import (
	"context"
	"sync/atomic"
	"time"
)

// Job says how a piece of work is treated.
type Job struct {
	ID     string    // unique in the queue
	Due    time.Time // since when
	Urgent bool      // somebody waits for it
	Share  string    // whose work it is, such as a tenant's; those without one are one share
	Host   string    // where it goes
}

// Queue is a queue of work of the type T. Its fields are set before it is used and
// stay; all are needed.
type Queue[T any] struct {
	// Look returns work that is due, or the urgent part of it, in the order of Due and
	// ID: what comes behind the job, the zero one for all, at most limit.
	Look func(ctx context.Context, urgent bool, after Job, limit int) ([]T, error)
	// Job describes a piece of work.
	Job func(T) Job
	// Try claims the work, makes one try by calling send, and notes what came of it.
	// It returns nil without a call of send when the work is somebody else's now or
	// there is nothing to do. Its error is one of the database, or that of a context
	// that has ended.
	Try func(ctx context.Context, work T, send Send) error
	// Permanent reports whether an error of a try is a host's answer for good.
	Permanent func(error) bool
	// Now is the clock by which work is due.
	Now func() time.Time
	// Wake receives when this process has added work.
	Wake <-chan struct{}
	// Warn is told of errors of the database, at most once a second.
	Warn func(error)

	stats stats
}

// Send hands a piece of work over. The context that hand is given ends after half a
// minute, and when the try is cut short for the sake of others. The error is hand's.
type Send func(ctx context.Context, hand func(context.Context) error) error

// The limits of a node. Mail servers allow a client some 50 connections at once
// (smtpd_client_connection_count_limit of Postfix).
const (
	freshPlaces  = 24 // tries to hosts that are not known to be slow
	freshPatient = 16 // of these, for what isn't urgent
	slowPlaces   = 8  // tries to those that are
	slowPatient  = 6
	freshOfShare = 8
	slowOfShare  = 4
	freshOfHost  = 4 // to a slow host goes one try at a time
)

const (
	pollEvery   = time.Second // finds what other processes have added
	sendTimeout = 30 * time.Second
	// MaxTry is longer than a try can take from its claim to its note: how long a
	// claim has to last, so that nothing is tried twice at once.
	MaxTry = 2 * time.Minute
)

// pauses between tries. Together they are a little over two days, the span that
// RFC 5321, section 4.5.4.1, has mail servers keep trying.
var pauses = func() []time.Duration {
	p := []time.Duration{5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute}
	for range 48 {
		p = append(p, time.Hour)
	}
	return p
}()

// Pause returns how long a piece of work waits for its next try when one has failed
// that had so many before it, or false when that was the last one.
func Pause(before int) (time.Duration, bool) {
	if before >= len(pauses) {
		return 0, false
	}
	return pauses[before], true
}

// Stats is what a Queue is doing in Run.
type Stats struct {
	Fresh, Slow int // tries under way to hosts that were not, and were, known to be slow when they began
	SlowHosts   int // that are known
}

type stats struct{ fresh, slow, slowHosts atomic.Int64 }

func (s *stats) set(fresh, slow, slowHosts int) {
	s.fresh.Store(int64(fresh))
	s.slow.Store(int64(slow))
	s.slowHosts.Store(int64(slowHosts))
}

// Stats returns what the queue is doing now.
func (q *Queue[T]) Stats() Stats {
	return Stats{Fresh: int(q.stats.fresh.Load()), Slow: int(q.stats.slow.Load()), SlowHosts: int(q.stats.slowHosts.Load())}
}

// Run does what becomes due until ctx ends: at once what this process adds, within a
// second what another one does. When it returns no try is under way any more.
func (q *Queue[T]) Run(ctx context.Context) {
	d := newDispatcher(ctx, q)
	defer q.stats.set(0, 0, 0)
	defer d.end()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	d.look.want()
	for ctx.Err() == nil {
		d.read()
		d.start()
		q.stats.set(d.busy.fresh(), d.busy.slow(), d.hosts.slow)
		select {
		case <-ctx.Done():
		case <-q.Wake:
			d.look.want()
		case <-tick.C:
			d.look.want()
		case <-d.again():
		case e := <-d.events:
			if err := d.handle(e); err != nil {
				d.failed(err)
			}
		}
	}
}

// Drain tries all that is due once and returns when that is done. What others are
// trying it leaves to them. The error is one of the database or of ctx; work that
// could not be sent is none.
func (q *Queue[T]) Drain(ctx context.Context) error {
	d := newDispatcher(ctx, q)
	defer d.end()
	for more := true; more; {
		found, err := d.readAll()
		if err != nil {
			return err
		}
		more = found > 0
		for d.start(); len(d.flight) > 0; d.start() {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case e := <-d.events:
				if err := d.handle(e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
