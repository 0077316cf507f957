package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// try is a running try. Only the loop uses it until it has ended, except for what
// send fills in.
type try struct {
	Job
	number     int  // in the order of starts
	slow       bool // in a slot for slow hosts
	slowAfter  time.Duration
	slowNow    bool // has turned out to be slow
	preempted  bool
	preemption context.Context // ends when the try is preempted
	preempt    context.CancelFunc
	requeue    func() // into waiting

	sent bool          // send was called
	took time.Duration // by send
	err  error         // of send
}

// event is a report of a try to the loop: it has turned out to be slow, or has ended.
type event struct {
	*try
	ended bool
	err   error // of Try
}

var errPreempted = errors.New("cancelled because it was slow and others were waiting")

// launch starts a try in a goroutine of its own.
func (d *dispatcher[T]) launch(work T, job Job, slow bool) {
	d.started++
	t := &try{Job: job, number: d.started, slow: slow, slowAfter: d.hosts.slowAfter()}
	t.preemption, t.preempt = context.WithCancel(d.ctx)
	t.requeue = func() { d.waiting.add(work, job, d.hosts.isSlow(job)) }
	d.running[job.ID] = t
	d.limiter.add(t, 1)
	d.tries.Go(func() {
		defer t.preempt()
		err := d.queue.Try(d.ctx, work, func(ctx context.Context, deliver func(context.Context) error) error {
			return d.send(ctx, t, deliver)
		})
		d.report(event{t, true, err})
	})
}

// send delivers within sendTimeout, and measures how long that takes. It reports the try to
// the loop when it turns out to be slow. If it is preempted, the error wraps errPreempted.
func (d *dispatcher[T]) send(ctx context.Context, t *try, deliver func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	defer context.AfterFunc(t.preemption, cancel)()
	defer time.AfterFunc(t.slowAfter, func() { d.report(event{try: t}) }).Stop()
	began := time.Now()
	err := deliver(ctx)
	if err != nil && t.preemption.Err() != nil && d.ctx.Err() == nil && !d.queue.Permanent(err) {
		err = fmt.Errorf("%w: %w", errPreempted, err)
	}
	t.sent, t.took, t.err = true, time.Since(began), err
	return err
}

// report sends the loop an event, unless the loop has ended.
func (d *dispatcher[T]) report(e event) {
	select {
	case d.events <- e:
	case <-d.ended:
	}
}
