package outbox

import (
	"context"
	"sync"
	"time"
)

// dispatcher is one run of a queue. Its goroutine alone touches it, but for what
// try.go says.
type dispatcher[T any] struct {
	queue   *Queue[T]
	ctx     context.Context
	stop    context.CancelFunc
	look    look
	waiting *waiting[T]
	hosts   hosts
	flight  map[string]*try
	busy    busy
	started int // tries so far
	tries   sync.WaitGroup
	events  chan event
	ended   chan struct{}
	pause   time.Time // nothing is read or started before: the database has failed
}

// busy counts the tries under way.
type busy struct {
	lane                  [lanes]int
	freshOf, slowOf, host map[string]int // of a share, of a share, to a host
}

func (b *busy) fresh() int { return b.lane[laneOf(true, false)] + b.lane[laneOf(false, false)] }
func (b *busy) slow() int  { return b.lane[laneOf(true, true)] + b.lane[laneOf(false, true)] }

// hasPlace reports whether one more try of the kind may begin.
func (b *busy) hasPlace(urgent, slow bool) bool {
	all, most, mostPatient := b.fresh(), freshPlaces, freshPatient
	if slow {
		all, most, mostPatient = b.slow(), slowPlaces, slowPatient
	}
	return all < most && (urgent || b.lane[laneOf(false, slow)] < mostPatient)
}

func newDispatcher[T any](ctx context.Context, q *Queue[T]) *dispatcher[T] {
	ctx, stop := context.WithCancel(ctx)
	return &dispatcher[T]{
		queue: q, ctx: ctx, stop: stop,
		waiting: newWaiting[T](),
		flight:  map[string]*try{},
		busy:    busy{freshOf: map[string]int{}, slowOf: map[string]int{}, host: map[string]int{}},
		events:  make(chan event),
		ended:   make(chan struct{}),
	}
}

// end cuts all tries and waits for them.
func (d *dispatcher[T]) end() {
	d.stop()
	close(d.ended)
	d.tries.Wait()
	d.look.end()
}

// count adds a try to what is under way, or takes it out.
func (d *dispatcher[T]) count(t *try, n int) {
	of := d.busy.freshOf
	if t.slow {
		of = d.busy.slowOf
	}
	d.busy.lane[laneOf(t.Urgent, t.slow)] += n
	add(of, t.Share, n)
	add(d.busy.host, t.Host, n)
}

func add(to map[string]int, name string, n int) {
	if to[name] += n; to[name] == 0 {
		delete(to, name)
	}
}

// start starts all tries that there is a place for, and makes places where work to
// good hosts has none.
func (d *dispatcher[T]) start() {
	if time.Now().Before(d.pause) {
		return
	}
	for _, urgent := range []bool{true, false} {
		for d.busy.hasPlace(urgent, false) && d.startNext(urgent, false, d.mayFresh) {
		}
		for d.busy.hasPlace(urgent, true) && d.startNext(urgent, true, d.maySlow) {
		}
	}
	d.makeRoom()
}

func (d *dispatcher[T]) startNext(urgent, slow bool, may func(share string) func(host string) bool) bool {
	work, found := d.waiting.take(laneOf(urgent, slow), may)
	if found {
		d.launch(work, d.queue.Job(work), slow)
	}
	return found
}

// mayFresh says which hosts a share may have a try to, nil for none.
func (d *dispatcher[T]) mayFresh(share string) func(host string) bool {
	if d.busy.freshOf[share] >= freshOfShare {
		return nil
	}
	return d.hostHasPlace
}

func (d *dispatcher[T]) hostHasPlace(host string) bool { return d.busy.host[host] < freshOfHost }

func (d *dispatcher[T]) maySlow(share string) func(host string) bool {
	if d.busy.slowOf[share] >= slowOfShare {
		return nil
	}
	return func(host string) bool { return d.busy.host[host] == 0 }
}

// makeRoom cuts a try that has turned out to be slow for each share whose work to
// good hosts could go on in its place. What has been cut already counts.
func (d *dispatcher[T]) makeRoom() {
	if !d.overdue() {
		return
	}
	leaving, ofShare := [lanes]int{}, map[string]int{}
	for _, t := range d.flight {
		if t.cutShort {
			leaving[laneOf(t.Urgent, false)]++
			ofShare[t.Share]++
		}
	}
	for _, urgent := range []bool{true, false} {
		d.waiting.shares(laneOf(urgent, false), d.hostHasPlace, func(share string) {
			if d.busy.freshOf[share] >= freshOfShare {
				if ofShare[share]++; ofShare[share] == 1 {
					d.cutOne(func(t *try) bool { return t.Share == share })
				}
				return
			}
			d.makePlace(urgent, &leaving)
		})
	}
}

// makePlace cuts a try in favour of one that has no place, unless one is leaving for
// it: any for an urgent one, else one that isn't urgent itself.
func (d *dispatcher[T]) makePlace(urgent bool, leaving *[lanes]int) {
	patient, hurried := laneOf(false, false), laneOf(true, false)
	switch {
	case leaving[patient] > 0:
		leaving[patient]--
	case urgent && leaving[hurried] > 0:
		leaving[hurried]--
	case !d.busy.hasPlace(urgent, false):
		d.cutOne(func(t *try) bool { return urgent || !t.Urgent })
	}
}

// overdue reports whether there is a try that makeRoom could cut.
func (d *dispatcher[T]) overdue() bool {
	for _, t := range d.flight {
		if t.overdue && !t.slow {
			return true
		}
	}
	return false
}

// cutOne cuts the try that has been slow for longest.
func (d *dispatcher[T]) cutOne(fits func(*try) bool) {
	var longest *try
	for _, t := range d.flight {
		if t.overdue && !t.slow && !t.cutShort && fits(t) && (longest == nil || t.number < longest.number) {
			longest = t
		}
	}
	if longest != nil {
		longest.cutShort = true
		longest.cut()
	}
}

// handle takes notice of what a try tells. The error is one of the database.
func (d *dispatcher[T]) handle(e event) error {
	t := e.try
	if d.flight[t.ID] != t {
		return nil // told late that it is slow
	}
	if !e.over {
		t.overdue = true
		d.judge(t, false)
		return nil
	}
	delete(d.flight, t.ID)
	d.count(t, -1)
	d.learn(t)
	if e.err == nil || d.ctx.Err() != nil {
		return nil
	}
	if !t.sent {
		t.putBack()
	}
	return e.err
}

// learn notes how quick the host was. A failure for now is no news of it: the mail
// server may be down, or one mailbox full.
func (d *dispatcher[T]) learn(t *try) {
	if !t.sent {
		return
	}
	if t.err == nil {
		d.hosts.succeeded(t.took)
	}
	answered := t.err == nil || d.queue.Permanent(t.err)
	switch {
	case t.took >= t.slowAfter && !t.overdue:
		d.judge(t, false)
	case t.took < t.slowAfter && answered:
		d.judge(t, true)
	}
}

func (d *dispatcher[T]) judge(t *try, quick bool) {
	if d.hosts.judge(t.Host, quick) {
		d.waiting.move(t.Host, d.hosts.isSlow(t.Host))
	}
}

// failed lets a database that fails rest for a second.
func (d *dispatcher[T]) failed(err error) {
	if now := time.Now(); now.After(d.pause) {
		d.pause = now.Add(pollEvery)
		d.queue.Warn(err)
	}
}
