package outbox

import "time"

// look is how far the queue has been read. What is new is read at once, from a little
// before the last look on. All of it is read again and again, piece by piece: what
// was there at the start, what there was no memory for, and what has come late.
type look struct {
	wanted bool      // something may be new
	newest time.Time // when the last look for it took place, by the queue's clock
	newAt  time.Time // no such look before; these and the following by our own clock

	whole   bool // a reading of all is under way
	after   Job  // as far as it has come
	began   time.Time
	wholeAt time.Time // no piece before
	nextAt  time.Time // no new reading of all before
	left    bool      // there was no memory for something

	timer *time.Timer
}

const (
	piece = 2000 // that are read at once
	// overlap is how long before a look something can have been made due that it has
	// not found: a transaction takes its time, and clocks differ by a little.
	overlap = 5 * time.Second
	// Reading takes a tenth of the time at most for what is new, and a twentieth or,
	// while there is hardly anything to do, a fifth for all of it.
	restNew, restPiece, restWhole = 9, 4, 19
	// few is when more is read of what there was no memory for.
	few = 1000
)

// read reads what it is time for.
func (d *dispatcher[T]) read() {
	l, now := &d.look, time.Now()
	if now.Before(d.pause) {
		return
	}
	if l.wanted && !now.Before(l.newAt) {
		l.wanted = false
		d.readNew()
	}
	hungry := l.left && d.waiting.len() < few
	if !l.whole && (!now.Before(l.nextAt) || hungry) {
		l.whole, l.left, l.after, l.began = true, false, Job{}, now
	}
	if l.whole && !now.Before(l.wholeAt) {
		d.readPiece()
	}
}

// readNew reads what has become due since the last time, and a little before.
func (d *dispatcher[T]) readNew() {
	began, now := time.Now(), d.queue.Now()
	from := now
	if d.look.newest.Before(from) && !d.look.newest.IsZero() { // else the clock was set back
		from = d.look.newest
	}
	for after := (Job{Due: from.Add(-overlap)}); ; {
		n, last, err := d.readFrom(after)
		if err != nil {
			d.failed(err)
			d.look.wanted = true
			return
		}
		if n < piece {
			break
		}
		after = last
	}
	d.look.newest = now
	d.look.newAt = restFor(began, restNew)
}

// readPiece goes on with the reading of all.
func (d *dispatcher[T]) readPiece() {
	l, began := &d.look, time.Now()
	n, last, err := d.readFrom(l.after)
	if err != nil {
		d.failed(err)
		return
	}
	l.after, l.wholeAt = last, restFor(began, restPiece)
	if n < piece {
		l.whole = false
		l.nextAt = restFor(l.began, restWhole)
		if soonest := time.Now().Add(pollEvery); l.nextAt.Before(soonest) {
			l.nextAt = soonest
		}
	}
}

// readAll reads all there is and memory for, and returns how much of it was not known.
func (d *dispatcher[T]) readAll() (found int, err error) {
	for after := (Job{}); ; {
		before := d.waiting.len()
		n, last, err := d.readFrom(after)
		found += d.waiting.len() - before
		if err != nil || n < piece {
			return found, err
		}
		after = last
	}
}

// readFrom reads what comes behind a job, and returns how much and the last of it.
func (d *dispatcher[T]) readFrom(after Job) (n int, last Job, err error) {
	all, err := d.queue.Look(d.ctx, after, piece)
	if err != nil {
		return 0, after, err
	}
	last = after
	for _, work := range all {
		last = d.queue.Job(work)
		if d.flight[last.ID] != nil {
			continue
		}
		if !d.waiting.add(work, last, d.hosts.isSlow(last.Host)) {
			d.look.left = true
		}
	}
	return len(all), last, nil
}

// restFor returns when a reading that has begun then is followed by the next one: it
// rests for so many times as long as it took.
func restFor(began time.Time, times int) time.Time {
	now := time.Now()
	return now.Add(time.Duration(times) * now.Sub(began))
}

// again receives when it is time for a reading that waits.
func (d *dispatcher[T]) again() <-chan time.Time {
	l := &d.look
	at := l.nextAt
	switch {
	case l.whole || l.left && d.waiting.len() < few:
		at = l.wholeAt
	}
	if l.wanted && l.newAt.Before(at) {
		at = l.newAt
	}
	if at.Before(d.pause) {
		at = d.pause
	}
	if l.timer == nil {
		l.timer = time.NewTimer(time.Until(at))
	} else {
		l.timer.Reset(time.Until(at))
	}
	return l.timer.C
}

func (l *look) end() {
	if l.timer != nil {
		l.timer.Stop()
	}
}
