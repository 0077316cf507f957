package outbox

import (
	"context"
	"sync/atomic"
	"time"
)

// Job describes a piece of work to the outbox.
type Job struct {
	ID     string    // unique in the queue
	Due    time.Time // since when
	Urgent bool      // somebody waits for it
	Share  string    // its owner, such as a tenant; jobs without one are one share
	Host   string    // where it goes
	// LastTryWasQuick says whether the last try to the host succeeded within a second. Only a Queue
	// with Endpoints reads it.
	LastTryWasQuick bool
}

// Queue is a queue of work of the type T. All fields but Unreachable and Endpoints must be set. They must not
// change once the queue is used.
type Queue[T any] struct {
	// Fetch returns work that is due, or the urgent part of it, in the order of Due
	// and ID: what comes after the job (the zero Job: everything), at most limit.
	Fetch func(ctx context.Context, urgent bool, after Job, limit int) ([]T, error)
	// Job describes a piece of work.
	Job func(T) Job
	// Try claims the work, makes one try by calling send, and stores the State that
	// Backoff.After returns. It returns nil without a call of send when another worker
	// has the claim or there is nothing to do. Its error is one of the database, or
	// that of a context that has ended.
	Try func(ctx context.Context, work T, send Send) error
	// Permanent reports whether an error of a try is a host's permanent refusal.
	Permanent func(error) bool
	// Unreachable reports whether an error of a try, which may be nil, says that the one server through which
	// all work goes can't be reached: then Run makes one try at a time, after rests of a second to half a
	// minute. Nil: each host has a server of its own.
	Unreachable func(error) bool
	// Now is the clock by which work is due.
	Now func() time.Time
	// Wake receives when this process has added work.
	Wake <-chan struct{}
	// Warn is called with errors of the database, at most once a second.
	Warn func(error)
	// Endpoints says that hosts are endpoints that customers name, and not mail servers. An
	// endpoint counts as fast only if its last try has succeeded within a second, so a new one
	// counts as slow. Job.LastTryWasQuick has the stored result of the last try, by any process.
	Endpoints bool

	stats stats
}

// Send calls deliver, with a context that ends after half a minute or when the try
// is preempted, and returns its error.
type Send func(ctx context.Context, deliver func(context.Context) error) error

const (
	pollEvery   = time.Second // how often the table is searched for work of other processes
	sendTimeout = 30 * time.Second
	// MaxTry is longer than any try, and so the duration of a claim: nothing is tried
	// twice at the same time.
	MaxTry = 2 * time.Minute
)

// Stats is what a Queue is doing in Run.
type Stats struct {
	Fast, Slow int // running tries, by what was known of the host when they began
	SlowHosts  int // hosts known to be slow
}

type stats struct{ fast, slow, slowHosts atomic.Int64 }

func (s *stats) set(fast, slow, slowHosts int) {
	s.fast.Store(int64(fast))
	s.slow.Store(int64(slow))
	s.slowHosts.Store(int64(slowHosts))
}

// Stats returns what the queue is doing now.
func (q *Queue[T]) Stats() Stats {
	return Stats{Fast: int(q.stats.fast.Load()), Slow: int(q.stats.slow.Load()), SlowHosts: int(q.stats.slowHosts.Load())}
}

// Run tries what becomes due until ctx ends: work of this process at once, that of
// others within a second. When it returns all tries have ended.
func (q *Queue[T]) Run(ctx context.Context) {
	d := newDispatcher(ctx, q)
	if q.Unreachable != nil {
		d.breaker = &breaker{}
	}
	defer q.stats.set(0, 0, 0)
	defer d.end()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	d.poller.wake()
	for ctx.Err() == nil {
		d.poll()
		d.start()
		q.stats.set(d.limiter.running(fastHost), d.limiter.running(slowHost), d.hosts.slow)
		select {
		case <-ctx.Done():
		case <-q.Wake:
			d.poller.wake()
		case <-tick.C:
			d.poller.tick()
		case <-d.nextPoll():
		case e := <-d.events:
			if err := d.handle(e); err != nil {
				d.pause(err)
			}
		}
	}
}

// Drain tries everything that is due once, except what other workers have claimed.
// The error is one of the database or of ctx; a failed try is not an error.
func (q *Queue[T]) Drain(ctx context.Context) error {
	d := newDispatcher(ctx, q)
	defer d.end()
	for more := true; more; {
		found, err := d.fetchAll()
		if err != nil {
			return err
		}
		more = found > 0
		for d.start(); len(d.running) > 0; d.start() {
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
