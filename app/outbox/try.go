package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// try is one under way. The loop has all but what send fills, until it is over.
type try struct {
	Job
	number    int  // in the order of starts
	slow      bool // in a place for slow hosts
	slowAfter time.Duration
	overdue   bool // has turned out to be slow
	cutShort  bool
	cutting   context.Context // ends when the try is cut short
	cut       context.CancelFunc
	putBack   func() // among what waits

	sent bool          // send was called
	took time.Duration // by send
	err  error         // of send
}

// event is what a try tells the loop: that it has turned out to be slow, or that it
// is over.
type event struct {
	*try
	over bool
	err  error // of Try
}

var errCutShort = errors.New("cut short after it had turned out to be slow, because others were waiting")

// launch starts a try in a goroutine of its own.
func (d *dispatcher[T]) launch(work T, job Job, slow bool) {
	d.started++
	t := &try{Job: job, number: d.started, slow: slow, slowAfter: d.hosts.slowAfter()}
	t.cutting, t.cut = context.WithCancel(d.ctx)
	t.putBack = func() { d.waiting.add(work, job, d.hosts.isSlow(job.Host)) }
	d.flight[job.ID] = t
	d.count(t, 1)
	d.tries.Go(func() {
		defer t.cut()
		err := d.queue.Try(d.ctx, work, func(ctx context.Context, hand func(context.Context) error) error {
			return d.send(ctx, t, hand)
		})
		d.tell(event{t, true, err})
	})
}

// send hands over within the time there is.
func (d *dispatcher[T]) send(ctx context.Context, t *try, hand func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	defer context.AfterFunc(t.cutting, cancel)()
	defer time.AfterFunc(t.slowAfter, func() { d.tell(event{try: t}) }).Stop()
	began := time.Now()
	err := hand(ctx)
	if err != nil && t.cutting.Err() != nil && d.ctx.Err() == nil && !d.queue.Permanent(err) {
		err = fmt.Errorf("%w: %w", errCutShort, err)
	}
	t.sent, t.took, t.err = true, time.Since(began), err
	return err
}

// tell hands the loop an event, unless it has ended.
func (d *dispatcher[T]) tell(e event) {
	select {
	case d.events <- e:
	case <-d.ended:
	}
}
