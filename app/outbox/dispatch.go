package outbox

import (
	"context"
	"sync"
	"time"
)

// dispatcher is one run of a queue. Only the goroutine of the loop, Run or Drain, uses it; the
// goroutines of tries use only queue, ctx, events and ended.
type dispatcher[T any] struct {
	queue       *Queue[T]
	ctx         context.Context
	stop        context.CancelFunc
	poller      poller
	waiting     *waiting[T]
	hosts       hosts
	running     map[string]*try
	limiter     limiter
	breaker     *breaker // nil: none
	started     int      // tries so far
	tries       sync.WaitGroup
	events      chan event
	ended       chan struct{} // closed when the loop has ended
	pausedUntil time.Time     // after an error of the database: nothing is polled or started before
}

func newDispatcher[T any](ctx context.Context, q *Queue[T]) *dispatcher[T] {
	ctx, stop := context.WithCancel(ctx)
	return &dispatcher[T]{
		queue: q, ctx: ctx, stop: stop,
		waiting: newWaiting[T](),
		running: map[string]*try{},
		limiter: newLimiter(q.Endpoints),
		hosts:   hosts{endpoints: q.Endpoints},
		events:  make(chan event),
		ended:   make(chan struct{}),
	}
}

// end cancels all tries and waits for them.
func (d *dispatcher[T]) end() {
	d.stop()
	close(d.ended)
	d.tries.Wait()
	d.poller.end()
}

// start starts tries while there are slots, and preempts slow ones for work that
// has none.
func (d *dispatcher[T]) start() {
	if time.Now().Before(d.pausedUntil) {
		return
	}
	for _, urgent := range []bool{urgentWork, normalWork} {
		for _, slow := range []bool{fastHost, slowHost} {
			for d.mayStart() && d.limiter.hasSlot(urgent, slow) && d.startNext(urgent, slow) {
			}
		}
	}
	d.preempt()
}

// mayStart reports whether the server through which all work goes may be tried now.
func (d *dispatcher[T]) mayStart() bool {
	return d.breaker == nil || d.breaker.lets(time.Now(), len(d.running))
}

// startNext starts the next work of a lane whose share and host have a free slot. It reports
// whether it has started any.
func (d *dispatcher[T]) startNext(urgent, slow bool) bool {
	work, found := d.waiting.take(laneOf(urgent, slow), func(share string) func(string) bool {
		if !d.limiter.shareHasSlot(share, slow) {
			return nil
		}
		return d.hostHasSlot(slow)
	})
	if found {
		d.launch(work, d.queue.Job(work), slow)
	}
	return found
}

func (d *dispatcher[T]) hostHasSlot(slow bool) func(host string) bool {
	return func(host string) bool { return d.limiter.hostHasSlot(host, slow) }
}

// preempt cancels slow tries that hold slots for fast hosts: at most one for each share with
// work for fast hosts that has no slot. A try that was cancelled earlier and hasn't ended yet
// counts as one of them.
func (d *dispatcher[T]) preempt() {
	if !d.hasPreemptible() {
		return
	}
	ending, ofShare := [lanes]int{}, map[string]int{}
	for _, t := range d.running {
		if t.preempted {
			ending[laneOf(t.Urgent, fastHost)]++
			ofShare[t.Share]++
		}
	}
	for _, urgent := range []bool{urgentWork, normalWork} {
		d.waiting.eachShare(laneOf(urgent, fastHost), d.hostHasSlot(fastHost), func(share string) {
			if !d.limiter.shareHasSlot(share, fastHost) {
				if ofShare[share]++; ofShare[share] == 1 {
					d.preemptOne(func(t *try) bool { return t.Share == share })
				}
				return
			}
			d.preemptFor(urgent, &ending)
		})
	}
}

// preemptFor cancels a try in favour of work without a slot, unless a try that is ending will
// free a slot for it. Urgent work can take the slot of any try, other work only that of a try
// that isn't urgent.
func (d *dispatcher[T]) preemptFor(urgent bool, ending *[lanes]int) {
	normalLane, urgentLane := laneOf(normalWork, fastHost), laneOf(urgentWork, fastHost)
	switch {
	case ending[normalLane] > 0:
		ending[normalLane]--
	case urgent && ending[urgentLane] > 0:
		ending[urgentLane]--
	case !d.limiter.hasSlot(urgent, fastHost):
		d.preemptOne(func(t *try) bool { return urgent || !t.Urgent })
	}
}

// hasPreemptible reports whether there is a try that preempt could cancel.
func (d *dispatcher[T]) hasPreemptible() bool {
	for _, t := range d.running {
		if t.slowNow && !t.slow {
			return true
		}
	}
	return false
}

// preemptOne cancels the oldest try that has turned out to be slow and that fits accepts.
func (d *dispatcher[T]) preemptOne(fits func(*try) bool) {
	var oldest *try
	for _, t := range d.running {
		if t.slowNow && !t.slow && !t.preempted && fits(t) && (oldest == nil || t.number < oldest.number) {
			oldest = t
		}
	}
	if oldest != nil {
		oldest.preempted = true
		oldest.preempt()
	}
}

// handle processes an event of a try. The error is one of the database.
func (d *dispatcher[T]) handle(e event) error {
	t := e.try
	if d.running[t.ID] != t {
		return nil // it has ended before it was reported to be slow
	}
	if !e.ended {
		t.slowNow = true
		d.score(t, !quick)
		return nil
	}
	delete(d.running, t.ID)
	d.limiter.add(t, -1)
	d.observe(t)
	if e.err == nil || d.ctx.Err() != nil {
		return nil
	}
	if !t.sent { // the database failed before the send, so the work is still due
		t.requeue()
	}
	return e.err
}

// observe scores the host by its speed. For mail a quick temporary failure doesn't count: the
// mail server may be down, or one mailbox full. For endpoints each failure counts as slow.
func (d *dispatcher[T]) observe(t *try) {
	if !t.sent {
		return
	}
	if d.breaker != nil && d.ctx.Err() == nil {
		d.breaker.observe(time.Now(), d.queue.Unreachable(t.err))
	}
	if t.err == nil {
		d.hosts.succeeded(t.took)
	}
	answered := t.err == nil || d.queue.Permanent(t.err)
	switch {
	case d.queue.Endpoints:
		d.score(t, t.err == nil && t.took < t.slowAfter)
	case t.took >= t.slowAfter && !t.slowNow:
		d.score(t, !quick)
	case t.took < t.slowAfter && answered:
		d.score(t, quick)
	}
}

func (d *dispatcher[T]) score(t *try, isQuick bool) {
	if d.hosts.score(t.Host, isQuick) {
		d.waiting.move(t.Host, d.hosts.isSlow(t.Job))
	}
}

// pause reports an error of the database, and stops polling and starting for a second. A query
// that the end of the server has cancelled is no error.
func (d *dispatcher[T]) pause(err error) {
	if now := time.Now(); now.After(d.pausedUntil) && d.ctx.Err() == nil {
		d.pausedUntil = now.Add(pollEvery)
		d.queue.Warn(err)
	}
}
