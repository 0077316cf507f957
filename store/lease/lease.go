// Package lease keeps the memory of this process true to the database: a session that
// was ended passes nowhere once the call that ended it is answered. docs/lease.md has
// the argument and the models; the rules are
//
//  1. Every statement that can end or change what a session may do writes a row to
//     changes in the same transaction (store).
//  2. Each node follows changes, woken by notifications where there are such, and by
//     polling at a quarter of the lease anyway.
//  3. Memory is good until the instant before the last successful poll was sent, plus
//     the lease, by this process's monotonic clock ([Lease.Valid]): less a margin, for
//     clocks that run at different rates. Where the DSN names several servers, one of
//     them may have been replaced without noticing: there only a poll counts that has
//     committed something.
//  4. A revoking call answers when every node has applied its change, or when the
//     longest lease has passed since its commit ([Lease.Settle]).
//  5. A value loaded while a change arrives must not be kept over it; that is for the
//     memory to do, which is given every change ([Lease.Follow]).
//
// A Lease is made with [New], given what follows changes ([Lease.Follow]), and run until
// the process ends. It belongs to one process and is safe for concurrent use.
package lease

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/internal/cluster"
	"github.com/doorward/doorward/store/internal/rows"
)

// The bounds of the lease. A revoking call may have to wait for a whole one, and
// every request is answered within 3 s.
const (
	MinLease = cluster.MinLease
	MaxLease = cluster.MaxLease
)

const (
	// skewMargin: memory is trusted for this part of the lease less, because a revoker
	// measures the lease by a clock of its own, and time services correct clocks by
	// running them faster or slower: chrony by up to 8.3 % (maxslewrate). The slowest and
	// the fastest differ by 15.4 %.
	skewMargin = 6
	// deadAfter is after how many leases without a heartbeat a node's row is removed.
	// Its memory has long ceased to be good by then.
	deadAfter = 3
	// changesKept is how long changes are kept for nodes that are cut off; one that
	// comes back later starts with an empty memory.
	changesKept = 10 * time.Minute
)

// Lease is the lease of this process.
type Lease struct {
	db     *store.DB
	id     string
	length time.Duration
	epoch  time.Time // monotonic origin of validUntil
	apply  func(context.Context, []store.Change) error
	reset  func()
	wake   chan struct{}
	begun  sync.Once

	validUntil atomic.Int64 // since epoch, nanoseconds
	applied    atomic.Int64 // the number of position, for metrics
	full       atomic.Bool  // the lease wasn't renewed for want of disk space

	mu            sync.Mutex // one poll at a time
	registered    bool
	position      loggedChange // the last change that is applied
	acked         int64        // the last that this node's row says is applied,
	maxAcked      int64        // or may say, where no answer came
	lastHeartbeat time.Time
	peersSeenAt   time.Time // when the heartbeats of the other nodes were last read
	peers         map[string]peer
	clockReadAt   time.Time // when the database's clock was last measured

	settings    []Setting
	force       bool
	differences atomic.Pointer[[]Difference]
	notices     notices
}

// New returns the lease of this process, which lasts from MinLease to MaxLease. Until
// Run its memory is never good, and Settle waits for the nodes that run.
func New(db *store.DB, length time.Duration) *Lease {
	return &Lease{
		db: db, id: doorward.NewID("nod_"), length: length, epoch: time.Now(),
		apply: func(context.Context, []store.Change) error { return nil }, reset: func() {},
		wake: make(chan struct{}, 1), peers: map[string]peer{},
		notices: notices{report: func(Notice) {}, clock: ClockRight},
	}
}

// Follow sets what is given the changes: apply each batch, from any goroutine and of some
// batches twice; and reset when some were missed, so that all memory must go. A change is
// applied when apply has returned nil; until then the lease isn't renewed, so apply
// queries the database with its context, which needs no lease. Call it before Run.
func (l *Lease) Follow(apply func(context.Context, []store.Change) error, reset func()) {
	l.apply, l.reset = apply, reset
}

// ID is the id of this process among the nodes.
func (l *Lease) ID() string { return l.id }

// Valid reports whether memory may be answered from. It costs one reading of the clock.
func (l *Lease) Valid() bool { return int64(time.Since(l.epoch)) < l.validUntil.Load() }

// Age is how long ago the last successful poll was sent, for metrics.
func (l *Lease) Age() time.Duration {
	return time.Since(l.epoch) - time.Duration(l.validUntil.Load()) + l.length - l.length/skewMargin
}

// Lost reports whether the last successful poll is so long ago that other nodes take
// this one for dead: it is cut off. A full disk doesn't count with one server: all that
// the database says is right, so checks can be answered, and no other node could do
// more. With several servers it may be one that was replaced.
func (l *Lease) Lost() bool {
	return l.Age() > deadAfter*l.length && (!l.full.Load() || l.db.Servers() != nil)
}

// Applied is the number of the last change that this process has applied, for metrics.
func (l *Lease) Applied() int64 { return l.applied.Load() }

// Begin polls for the first time. From here to the end of Run, several servers are read
// only while the lease is valid.
func (l *Lease) Begin(ctx context.Context) {
	l.begun.Do(func() {
		l.db.Servers().Gate(l.Valid)
		l.poll(ctx)
	})
}

// Run follows changes until ctx ends, then gives the lease back. It is called once.
func (l *Lease) Run(ctx context.Context) {
	l.Begin(ctx)
	var listening sync.WaitGroup
	listening.Go(func() { l.listen(ctx) })
	tick := time.NewTicker(l.length / 4)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			l.poll(ctx)
		case <-l.wake:
			l.poll(ctx)
		}
	}
	listening.Wait()
	l.giveBack(cluster.Renewal(context.WithoutCancel(ctx)))
	l.db.Servers().Gate(nil)
}

// listen only wakes the poll; nothing rests on a notification arriving. A broken
// connection shows in the polls.
func (l *Lease) listen(ctx context.Context) {
	for ctx.Err() == nil {
		if err := l.db.Listen(ctx, l.wakePoll); errors.Is(err, store.ErrNone) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(l.length):
		}
	}
}

func (l *Lease) wakePoll() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Leave gives back the lease of a process that joined and never ran. After Run it does
// nothing.
func (l *Lease) Leave(ctx context.Context) {
	l.mu.Lock()
	registered := l.registered
	l.mu.Unlock()
	if registered {
		l.giveBack(cluster.Renewal(ctx))
	}
}

// giveBack ends the lease before its row goes, so that no revoker waits for this node
// and nothing is answered from memory without the row.
func (l *Lease) giveBack(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.validUntil.Store(0)
	l.registered = false
	ctx, cancel := context.WithTimeout(ctx, l.length)
	defer cancel()
	_, _ = l.db.Write(ctx, func(tx *store.Tx) error { return deleteNode(ctx, tx, l.id) }) // else the others remove it
}

// poll renews the lease: it makes sure that revokers wait for this node, then reads and
// applies what has changed. On a fault nothing is renewed.
func (l *Lease) poll(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	bounded, cancel := context.WithTimeout(cluster.Renewal(ctx), max(l.length, 500*time.Millisecond))
	defer cancel()
	sent := time.Now() // before everything: rule 3
	l.noteLease()
	err := l.register(bounded, sent)
	l.full.Store(err != nil && l.db.Full(err))
	if err == nil {
		err = l.catchUp(bounded)
	}
	if err == nil && l.position.Seq < l.maxAcked {
		err = l.ack(bounded) // in another history: the row may promise what isn't applied
	}
	if err != nil {
		l.db.Servers().Probe(ctx)
		l.notePoll(ctx, sent, err)
		return
	}
	l.renew(sent)
	l.notePoll(ctx, sent, nil)
	if l.position.Seq != l.acked {
		_ = l.ack(bounded) // else the revoker waits for the lease
	}
	if sent.Sub(l.clockReadAt) >= l.length/8 { // not with each poll that a flood of changes wakes
		l.clockReadAt = sent
		l.db.MeasureClock(bounded)
	}
	l.noteClock()
}

// renew starts the lease at the instant before the poll was sent; of several servers,
// before the last heartbeat that was committed.
func (l *Lease) renew(sent time.Time) {
	if l.db.Servers() != nil {
		sent = l.lastHeartbeat
	}
	l.validUntil.Store(int64(sent.Sub(l.epoch) + l.length - l.length/skewMargin))
	l.db.Servers().Renewed()
}

// heartbeatEvery is how often a heartbeat is due. Of several servers each heartbeat
// renews the lease: so there is one with every tick, or with a poll that was woken
// halfway to it.
func (l *Lease) heartbeatEvery() time.Duration {
	if l.db.Servers() != nil {
		return l.length / 8
	}
	return l.length
}

// register has this node's row committed before changes are read: a revoker that
// committed before the row was there is seen by the read, and one that commits later sees
// the row and waits. now is an instant before the heartbeat is sent: a node that counted
// from after it, and was paused in between, could be removed and not notice for a lease.
func (l *Lease) register(ctx context.Context, now time.Time) error {
	if l.registered && now.Sub(l.lastHeartbeat) < l.heartbeatEvery() {
		return nil
	}
	if exists, err := l.heartbeat(ctx); err != nil {
		return err
	} else if !exists {
		return l.enter(ctx, now, func(tx *store.Tx) error { return l.claimClock(ctx, tx) })
	}
	l.lastHeartbeat = now
	if l.db.Servers() != nil && now.Sub(l.peersSeenAt) < l.length {
		return nil // heartbeats are more frequent than the other nodes have to be looked at
	}
	return l.removeDeadNodes(ctx)
}

// heartbeat shows that the node lives, and reports whether it has a row: not at first,
// and not when it was taken for dead.
func (l *Lease) heartbeat(ctx context.Context) (exists bool, err error) {
	if !l.registered {
		return false, nil
	}
	_, err = l.db.Write(ctx, func(tx *store.Tx) (err error) {
		exists, err = countHeartbeat(ctx, tx, l.id)
		return err
	})
	return exists, err
}

// enter starts from the newest change. Memory is reset after the position was read: what
// was loaded before may rest on changes that this node will never hear of. admit comes
// first in the transaction.
func (l *Lease) enter(ctx context.Context, now time.Time, admit func(*store.Tx) error) error {
	l.validUntil.Store(0) // the row says applied before the memory is reset
	position := int64(0)
	_, err := l.db.Write(ctx, func(tx *store.Tx) (err error) {
		if err := admit(tx); err != nil {
			return err
		}
		if position, err = newestChange(ctx, tx.Reader); err != nil {
			return err
		}
		if err := deleteNode(ctx, tx, l.id); err != nil {
			return err
		}
		return insertNode(ctx, tx, node{id: l.id, lease: l.length.Microseconds(), applied: position, settings: encodeSettings(l.settings)})
	})
	if err == nil {
		l.startAt(position)
		l.acked, l.maxAcked, l.registered, l.lastHeartbeat = position, position, true, now
	}
	return err
}

// startAt forgets everything and follows from a position.
func (l *Lease) startAt(position int64) {
	l.reset()
	l.position = loggedChange{Change: store.Change{Seq: position}}
	l.applied.Store(position)
}

// ack tells revokers how far this node has come. It comes after the read, never before:
// only the read shows that the position is one in the history that the database has now.
// Without a row it does nothing; the next heartbeat makes a new one.
func (l *Lease) ack(ctx context.Context) error {
	exists, seq := false, l.position.Seq
	l.maxAcked = max(l.maxAcked, seq)
	_, err := l.db.Write(ctx, func(tx *store.Tx) (err error) {
		exists, err = ackChange(ctx, tx, l.id, seq)
		return err
	})
	if err == nil && exists {
		l.acked, l.maxAcked = seq, seq
	}
	return err
}

// Sweep deletes changes that no living node can be waiting for.
func (l *Lease) Sweep(ctx context.Context) error {
	_, err := l.db.Write(ctx, func(tx *store.Tx) error { return deleteChanges(ctx, tx, tx.Now.Add(-changesKept)) })
	return err
}

func fault(err error) error { return rows.Fault(err) }
