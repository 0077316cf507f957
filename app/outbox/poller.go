package outbox

import "time"

// poller records how far the table has been read, in two ways. A recent poll reads
// what has become due since the last one. A scan reads everything, batch by batch:
// rows from before the start, rows that did not fit into memory, and rows that
// were committed late. Both read urgent work first.
type poller struct {
	urgent, normal pollState

	scanning    bool
	scanAfter   Job // the last job that the scan has read
	scanBegan   time.Time
	nextBatchAt time.Time // no batch is read before
	nextScanAt  time.Time // no scan begins before
	incomplete  bool      // rows were left out: they didn't fit into memory, or into the batch of a recent poll
	short       bool      // the last scan read everything in one batch: scans alone find what is new in time

	rows  int // fetched so far
	timer *time.Timer
}

// pollState is how far the recent polls of urgent or of normal work have come.
type pollState struct {
	wanted    bool      // there may be something new
	polledAt  time.Time // time of the last poll, by the queue's clock
	notBefore time.Time // earliest time of the next poll, by this machine's clock
}

const (
	batchSize = 2000 // rows
	// overlap is how far back each poll reads again. A row may become visible after a poll
	// with a time from before it: transactions take time, and clocks differ.
	overlap = 5 * time.Second
	// The pause after a recent poll, a batch and a scan, as a multiple of its duration.
	pauseRecent, pauseBatch, pauseScan = 4, 4, 19
	// smallPoll is how many rows a recent poll may read without a pause after it: the
	// duration of so few says more about the load of the machine than about the queue.
	smallPoll = 100
	// lowWater is the number of waiting rows below which a scan fetches those that did not fit.
	lowWater = 1000
)

// poll makes the polls and reads the batch that are due.
func (d *dispatcher[T]) poll() {
	p, now := &d.poller, time.Now()
	if now.Before(d.pausedUntil) {
		return
	}
	err := d.pollRecent(&p.urgent, d.fetchUrgent)
	if err == nil {
		err = d.pollRecent(&p.normal, d.fetchNormal)
	}
	if err != nil {
		d.pause(err)
		return
	}
	if !p.scanning && (!now.Before(p.nextScanAt) || p.incomplete && d.waiting.len() < lowWater) {
		p.scanning, p.incomplete, p.scanAfter, p.scanBegan = true, false, Job{}, now
	}
	if p.scanning && !now.Before(p.nextBatchAt) {
		began := time.Now()
		if err := d.scanBatch(); err != nil {
			d.pause(err)
			return
		}
		p.nextBatchAt = pauseUntil(began, pauseBatch)
	}
}

// pollRecent reads what has become due since the last poll, and overlap before it.
func (d *dispatcher[T]) pollRecent(r *pollState, read func(after Job) error) error {
	began, now := time.Now(), d.queue.Now()
	if !r.wanted || began.Before(r.notBefore) {
		return nil
	}
	from := now
	if !r.polledAt.IsZero() && r.polledAt.Before(from) { // else this is the first poll, or the clock was set back
		from = r.polledAt
	}
	before := d.poller.rows
	if err := read(Job{Due: from.Add(-overlap)}); err != nil {
		return err
	}
	r.wanted, r.polledAt, r.notBefore = false, now, time.Now()
	if d.poller.rows-before > smallPoll {
		r.notBefore = pauseUntil(began, pauseRecent)
	}
	return nil
}

// fetchNormal fetches one batch of work after a job. A scan finds the rest.
func (d *dispatcher[T]) fetchNormal(after Job) error {
	n, _, err := d.fetch(normalWork, after)
	d.poller.incomplete = d.poller.incomplete || n == batchSize
	return err
}

// fetchUrgent fetches the urgent work after a job, as much as fits into memory.
func (d *dispatcher[T]) fetchUrgent(after Job) error {
	for range maxWaiting / batchSize {
		n, last, err := d.fetch(urgentWork, after)
		if err != nil || n < batchSize {
			return err
		}
		after = last
	}
	return nil
}

// scanBatch reads the next batch of the scan.
func (d *dispatcher[T]) scanBatch() error {
	p, isFirst := &d.poller, d.poller.scanAfter == Job{}
	n, last, err := d.fetch(normalWork, p.scanAfter)
	p.short = isFirst && n < batchSize
	if err == nil && isFirst && !p.short { // urgent work may be far behind
		err = d.fetchUrgent(Job{})
	}
	if err != nil {
		return err
	}
	p.scanAfter = last
	if n < batchSize {
		p.scanning = false
		p.nextScanAt = pauseUntil(p.scanBegan, pauseScan)
		if soonest := time.Now().Add(pollEvery); p.nextScanAt.Before(soonest) {
			p.nextScanAt = soonest
		}
	}
	return nil
}

// fetchAll fetches everything that fits into memory, and returns how much was new.
func (d *dispatcher[T]) fetchAll() (found int, err error) {
	for after := (Job{}); ; {
		before := d.waiting.len()
		n, last, err := d.fetch(normalWork, after)
		found += d.waiting.len() - before
		if err != nil || n < batchSize {
			return found, err
		}
		after = last
	}
}

// fetch reads a batch of work after a job, or of its urgent part, and returns its
// size and its last job.
func (d *dispatcher[T]) fetch(urgent bool, after Job) (n int, last Job, err error) {
	all, err := d.queue.Fetch(d.ctx, urgent, after, batchSize)
	if err != nil {
		return 0, after, err
	}
	d.poller.rows += len(all)
	last = after
	for _, work := range all {
		last = d.queue.Job(work)
		if d.running[last.ID] != nil {
			continue
		}
		if !d.waiting.add(work, last, d.hosts.isSlow(last)) {
			d.poller.incomplete = true
		}
	}
	return len(all), last, nil
}

// pauseUntil returns the end of the pause after work that began at an instant and has ended
// now. The pause is a multiple of the work's duration.
func pauseUntil(began time.Time, factor int) time.Time {
	now := time.Now()
	return now.Add(time.Duration(factor) * now.Sub(began))
}

// wake requests a recent poll.
func (p *poller) wake() { p.urgent.wanted, p.normal.wanted = true, true }

// tick requests a recent poll if scans take so long that they don't find in time what is new.
func (p *poller) tick() {
	if !p.short {
		p.wake()
	}
}

// nextPoll returns a channel that gets a value when the next poll or batch is due.
func (d *dispatcher[T]) nextPoll() <-chan time.Time {
	p := &d.poller
	at := p.nextScanAt
	if p.scanning || p.incomplete && d.waiting.len() < lowWater {
		at = p.nextBatchAt
	}
	for _, r := range []pollState{p.urgent, p.normal} {
		if r.wanted && r.notBefore.Before(at) {
			at = r.notBefore
		}
	}
	if at.Before(d.pausedUntil) {
		at = d.pausedUntil
	}
	if p.timer == nil {
		p.timer = time.NewTimer(time.Until(at))
	} else {
		p.timer.Reset(time.Until(at))
	}
	return p.timer.C
}

func (p *poller) end() {
	if p.timer != nil {
		p.timer.Stop()
	}
}
