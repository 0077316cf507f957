package outbox

import "time"

// look is how far the queue has been read. What is new is read at once, from a little
// before the last look on. All of it is read again and again, piece by piece: what
// was there at the start, what there was no memory for, and what has come late. Either
// way what is urgent is read first, however much else there is.
type look struct {
	urgent, other news

	whole   bool // a reading of all is under way
	after   Job  // as far as it has come
	began   time.Time
	wholeAt time.Time // no piece before
	nextAt  time.Time // no new reading of all before
	left    bool      // there was no memory or time for something

	rows  int // read so far
	timer *time.Timer
}

// news is how far what is new has been read.
type news struct {
	wanted bool      // there may be something
	newest time.Time // when the last look for it took place, by the queue's clock
	at     time.Time // no such look before, by our own clock
}

const (
	piece = 2000 // that are read at once
	// overlap is how long before a look something can have been made due that it has
	// not found: a transaction takes its time, and clocks differ by a little.
	overlap = 5 * time.Second
	// A reading is followed by a rest of so many times as long as it took: one of what
	// is new, one of a piece, and one of all pieces.
	restNew, restPiece, restWhole = 4, 4, 19
	// little is what takes no time to read, so that no rest is needed: how long that
	// took says how busy the machine is.
	little = 100
	// few is when more is read of what there was no memory for.
	few = 1000
)

// read reads what it is time for.
func (d *dispatcher[T]) read() {
	l, now := &d.look, time.Now()
	if now.Before(d.pause) {
		return
	}
	err := d.readNew(&l.urgent, d.readUrgent)
	if err == nil {
		err = d.readNew(&l.other, d.readOther)
	}
	if err != nil {
		d.failed(err)
		return
	}
	if !l.whole && (!now.Before(l.nextAt) || l.left && d.waiting.len() < few) {
		l.whole, l.left, l.after, l.began = true, false, Job{}, now
	}
	if l.whole && !now.Before(l.wholeAt) {
		began := time.Now()
		if err := d.readPiece(); err != nil {
			d.failed(err)
			return
		}
		l.wholeAt = restFor(began, restPiece)
	}
}

// readNew reads what has become due since the last time, and a little before.
func (d *dispatcher[T]) readNew(n *news, read func(after Job) error) error {
	began, now := time.Now(), d.queue.Now()
	if !n.wanted || began.Before(n.at) {
		return nil
	}
	from := now
	if !n.newest.IsZero() && n.newest.Before(from) { // else the clock was set back
		from = n.newest
	}
	before := d.look.rows
	if err := read(Job{Due: from.Add(-overlap)}); err != nil {
		return err
	}
	n.wanted, n.newest, n.at = false, now, time.Now()
	if d.look.rows-before > little {
		n.at = restFor(began, restNew)
	}
	return nil
}

// readOther reads a piece of what comes behind a job. The rest is found in time.
func (d *dispatcher[T]) readOther(after Job) error {
	n, _, err := d.readFrom(false, after)
	d.look.left = d.look.left || n == piece
	return err
}

// readUrgent reads the urgent work that comes behind a job, as far as there is memory
// for it.
func (d *dispatcher[T]) readUrgent(after Job) error {
	for range maxWaiting / piece {
		n, last, err := d.readFrom(true, after)
		if err != nil || n < piece {
			return err
		}
		after = last
	}
	return nil
}

// readPiece goes on with the reading of all.
func (d *dispatcher[T]) readPiece() error {
	l := &d.look
	if l.after == (Job{}) {
		if err := d.readUrgent(l.after); err != nil {
			return err
		}
	}
	n, last, err := d.readFrom(false, l.after)
	if err != nil {
		return err
	}
	l.after = last
	if n < piece {
		l.whole = false
		l.nextAt = restFor(l.began, restWhole)
		if soonest := time.Now().Add(pollEvery); l.nextAt.Before(soonest) {
			l.nextAt = soonest
		}
	}
	return nil
}

// readAll reads all there is and memory for, and returns how much of it was not known.
func (d *dispatcher[T]) readAll() (found int, err error) {
	for after := (Job{}); ; {
		before := d.waiting.len()
		n, last, err := d.readFrom(false, after)
		found += d.waiting.len() - before
		if err != nil || n < piece {
			return found, err
		}
		after = last
	}
}

// readFrom reads a piece of what comes behind a job, or of the urgent part of that, and
// returns how much and the last of it.
func (d *dispatcher[T]) readFrom(urgent bool, after Job) (n int, last Job, err error) {
	all, err := d.queue.Look(d.ctx, urgent, after, piece)
	if err != nil {
		return 0, after, err
	}
	d.look.rows += len(all)
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

// want says that there may be something new.
func (l *look) want() { l.urgent.wanted, l.other.wanted = true, true }

// again receives when it is time for a reading that waits.
func (d *dispatcher[T]) again() <-chan time.Time {
	l := &d.look
	at := l.nextAt
	switch {
	case l.whole || l.left && d.waiting.len() < few:
		at = l.wholeAt
	}
	for _, n := range []news{l.urgent, l.other} {
		if n.wanted && n.at.Before(at) {
			at = n.at
		}
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
