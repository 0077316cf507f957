// Package lease keeps the memory of this process consistent with the database: once
// the call that ended a session is answered, no node accepts it. docs/lease.md has
// the argument and the models; the rules are
//
//  1. Every statement that can end a session, or change what it may do, writes a row to
//     changes in the same transaction (store).
//  2. Each node follows changes: notifications, where supported, wake it, and it polls
//     four times in a lease in any case.
//  3. Memory is valid for the lease, less a margin for clocks that run at different rates,
//     from the instant before the last successful poll was sent, by this process's
//     monotonic clock ([Lease.Valid]). If the DSN names several servers, one may have
//     been replaced without noticing: then only a poll that has committed something
//     counts.
//  4. A revoking call answers when every node has applied its change, or when the longest
//     lease of those that have not has passed since its commit ([Lease.Settle]).
//  5. A value loaded while a change arrives must not be kept. The memory ensures this:
//     it is given every change ([Lease.Follow]).
//
// A Lease is made with [New], connected to the memory with [Lease.Follow], and run until
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

// The bounds of the lease. A revoking call may wait for a complete one, and every
// request is answered within 3 s.
const (
	MinLease = cluster.MinLease
	MaxLease = cluster.MaxLease
)

const (
	// skewMargin is the part of the lease (1/6) by which memory expires early: a revoker
	// measures the lease by its own clock, and time services correct clocks by running
	// them faster or slower: chrony by up to 8.3 % (maxslewrate). The slowest and the
	// fastest differ by 15.4 %.
	skewMargin = 6
	// clockEvery is the least time between two measurements of the database's clock. Polls are not exactly
	// regular; with this the clock is measured about every half second.
	clockEvery = 400 * time.Millisecond
	// deadAfter is the number of leases without a heartbeat after which a node's row
	// is removed. Its memory is invalid long before.
	deadAfter = 3
	// changesKept is how long changes are kept for nodes that are cut off. A node that
	// returns later starts with an empty memory.
	changesKept = 10 * time.Minute
)

// Lease is the lease of this process.
type Lease struct {
	db        *store.DB
	id        string
	length    time.Duration
	epoch     time.Time // monotonic origin of validUntil
	followers []follower
	wake      chan struct{}
	beginOnce sync.Once

	validUntil atomic.Int64 // since epoch, nanoseconds
	lapsedAt   atomic.Int64 // the last validUntil that was counted as a lapse
	lapses     atomic.Int64
	applied    atomic.Int64 // the number of position, for metrics
	diskFull   atomic.Bool  // the lease wasn't renewed because the disk was full

	mu            sync.Mutex // one poll at a time
	registered    bool
	position      loggedChange // the last applied change
	acked         int64        // number of the last change that this node's row reports as applied
	maxAcked      int64        // the highest number that it may report, if a write wasn't answered
	lastHeartbeat time.Time
	peersSeenAt   time.Time                       // when the heartbeats of the other nodes were last read
	peers         map[string]peer                 // by id; once read, with this node
	peersRead     atomic.Pointer[map[string]peer] // peers, which is replaced and not changed; for Nodes, without mu
	clockReadAt   time.Time                       // when the database's clock was last measured

	shares shares

	settings    []Setting                    // see Publish
	force       bool                         // see Publish
	differences atomic.Pointer[[]Difference] // those of the last read
	notices     notices
}

// New returns the lease of this process, which lasts from MinLease to MaxLease. Until
// Begin or Run its memory is invalid, and Settle waits for the running nodes.
func New(db *store.DB, length time.Duration) *Lease {
	return &Lease{
		db: db, id: doorward.NewID("nod_"), length: length, epoch: time.Now(),
		wake: make(chan struct{}, 1), peers: map[string]peer{},
		notices: notices{report: func(Notice) {}, clock: ClockRight},
	}
}

// follower is a memory that follows changes.
type follower struct {
	apply func(context.Context, []store.Change) error
	reset func()
}

// Follow adds a receiver of changes: apply gets each batch, from any goroutine, some
// twice; reset must clear all memory, since changes were missed. A change is applied when
// every apply has returned nil; until then the lease isn't renewed, so apply must query
// the database with its context, which needs no lease. Call it before Run.
func (l *Lease) Follow(apply func(context.Context, []store.Change) error, reset func()) {
	l.followers = append(l.followers, follower{apply, reset})
}

// apply passes changes to all followers, also after an error of one.
func (l *Lease) apply(ctx context.Context, changes []store.Change) error {
	var errs []error
	for _, f := range l.followers {
		errs = append(errs, f.apply(ctx, changes))
	}
	return errors.Join(errs...)
}

func (l *Lease) reset() {
	for _, f := range l.followers {
		f.reset()
	}
}

// ID returns the id of this process among the nodes.
func (l *Lease) ID() string { return l.id }

// Valid reports whether answers from memory are allowed. It reads the clock once.
func (l *Lease) Valid() bool { return int64(time.Since(l.epoch)) < l.validUntil.Load() }

// Lapses returns how often the lease has ended without being renewed in time or given back. It
// counts a lapse as soon as Valid is false.
func (l *Lease) Lapses() int64 {
	l.countLapse()
	return l.lapses.Load()
}

// countLapse counts the end of each lease once, by the call that notices it first.
func (l *Lease) countLapse() {
	until, counted := l.validUntil.Load(), l.lapsedAt.Load()
	if int64(time.Since(l.epoch)) >= until && until > counted && l.lapsedAt.CompareAndSwap(counted, until) {
		l.lapses.Add(1)
	}
}

// setValid replaces the end of the lease; 0 gives it back.
func (l *Lease) setValid(until int64) {
	l.countLapse()
	l.validUntil.Store(until)
}

// Age returns the time since the last successful poll was sent, for metrics.
func (l *Lease) Age() time.Duration {
	return time.Since(l.epoch) - time.Duration(l.validUntil.Load()) + l.length - l.length/skewMargin
}

// Lost reports whether the node is cut off: its last successful poll is so old that
// other nodes count it as dead. With one server a full disk doesn't count: the database
// can still be read, so checks can be answered, and other nodes can do no more. With
// several servers this one may have been replaced.
func (l *Lease) Lost() bool {
	return l.Age() > deadAfter*l.length && (!l.diskFull.Load() || l.db.Servers() != nil)
}

// Applied returns the number of the last change applied by this process, for metrics.
func (l *Lease) Applied() int64 { return l.applied.Load() }

// Begin polls for the first time. If the DSN names several servers, nothing is read without
// a valid lease from then until Run ends.
func (l *Lease) Begin(ctx context.Context) {
	l.beginOnce.Do(func() {
		l.db.Servers().Gate(l.Valid)
		l.poll(ctx)
	})
}

// Run follows changes until ctx ends, then gives the lease back. Call it once.
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

// listen only wakes the poll; correctness doesn't need notifications. The polls
// notice a broken connection.
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

// Leave gives back the lease of a process that joined but never ran. After Run it does
// nothing.
func (l *Lease) Leave(ctx context.Context) {
	l.mu.Lock()
	registered := l.registered
	l.mu.Unlock()
	if registered {
		l.giveBack(cluster.Renewal(ctx))
	}
}

// giveBack ends the lease before it deletes the row, so that no revoker waits for
// this node and memory answers nothing without the row.
func (l *Lease) giveBack(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setValid(0)
	l.shares.giveUp()
	l.registered = false
	ctx, cancel := context.WithTimeout(ctx, l.length)
	defer cancel()
	_, _ = l.db.Write(ctx, func(tx *store.Tx) error { return deleteNode(ctx, tx, l.id) }) // on an error the others remove it
}

// poll renews the lease: it makes sure that revokers wait for this node, then reads and
// applies changes. On a fault the lease isn't renewed.
func (l *Lease) poll(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	bounded, cancel := context.WithTimeout(cluster.Renewal(ctx), max(l.length, 500*time.Millisecond))
	defer cancel()
	sent := time.Now() // before any query: rule 3
	l.noteLease()
	err := l.register(bounded, sent)
	l.diskFull.Store(err != nil && l.db.IsDiskFull(err))
	if err == nil {
		err = l.catchUp(bounded)
	}
	if err == nil {
		err = l.updateShares(bounded)
	}
	if err == nil && l.position.Seq < l.maxAcked {
		err = l.ack(bounded) // the database was set back: the row may claim changes that aren't applied
	}
	if err != nil {
		l.db.Servers().Probe(ctx)
		l.notePoll(ctx, sent, err)
		return
	}
	l.renew(sent)
	l.notePoll(ctx, sent, nil)
	if l.position.Seq != l.acked {
		_ = l.ack(bounded) // on an error the revoker waits for the lease
	}
	if sent.Sub(l.clockReadAt) >= clockEvery { // on each second poll, and not on each during a flood of changes
		l.clockReadAt = sent
		l.db.MeasureClock(bounded)
	}
	l.noteClock()
}

// renew starts the lease at the instant before the poll was sent; with several
// servers, before the last committed heartbeat.
func (l *Lease) renew(sent time.Time) {
	if l.db.Servers() != nil {
		sent = l.lastHeartbeat
	}
	l.setValid(int64(sent.Sub(l.epoch) + l.length - l.length/skewMargin))
	l.db.Servers().Renewed()
}

// heartbeatInterval returns the least time between two heartbeats. With several servers only
// heartbeats renew the lease: so there is one on every tick, or on a poll woken after half a
// tick.
func (l *Lease) heartbeatInterval() time.Duration {
	if l.db.Servers() != nil {
		return l.length / 8
	}
	return l.length
}

// register commits this node's row before changes are read: a revocation committed before
// the row is seen by the read, and one committed later sees the row and waits. now is an
// instant before the heartbeat is sent: a node that counted from a later one, and was
// paused in between, could be removed and not notice for a lease.
func (l *Lease) register(ctx context.Context, now time.Time) error {
	if l.registered && now.Sub(l.lastHeartbeat) < l.heartbeatInterval() {
		return nil
	}
	// With several servers peers are read less often than heartbeats are sent.
	withPeers := l.db.Servers() == nil || now.Sub(l.peersSeenAt) >= l.length
	exists, nodes, err := l.heartbeat(ctx, withPeers)
	if err != nil {
		return err
	}
	if !exists {
		return l.enter(ctx, now, func(tx *store.Tx) error { return l.claimClock(ctx, tx) })
	}
	l.lastHeartbeat = now
	if !withPeers {
		return nil
	}
	return l.removeDeadNodes(ctx, nodes)
}

// heartbeat counts a heartbeat, and reports whether the node has a row: it has none at
// first, or after it was removed as dead. withPeers: it also returns all nodes, read in the
// same transaction, so that an idle node makes one in place of two.
func (l *Lease) heartbeat(ctx context.Context, withPeers bool) (exists bool, nodes []node, err error) {
	if !l.registered {
		return false, nil, nil
	}
	_, err = l.db.Write(ctx, func(tx *store.Tx) (err error) {
		exists, err = countHeartbeat(ctx, tx, l.id)
		if err == nil && exists && withPeers {
			nodes, err = readNodes(ctx, tx.Reader)
		}
		return err
	})
	return exists, nodes, err
}

// enter registers the node in a transaction, in which admit runs first, and starts from the
// newest change. It resets memory after it has read the position: older entries may depend on
// changes that this node will never receive.
func (l *Lease) enter(ctx context.Context, now time.Time, admit func(*store.Tx) error) error {
	l.setValid(0) // the row reports changes as applied before memory is reset
	l.shares.giveUp()
	position, free := int64(0), false
	_, err := l.db.Write(ctx, func(tx *store.Tx) (err error) {
		if err := admit(tx); err != nil {
			return err
		}
		if position, err = newestChange(ctx, tx.Reader); err != nil {
			return err
		}
		if free, err = l.sharesAreFree(ctx, tx); err != nil {
			return err
		}
		if err := deleteNode(ctx, tx, l.id); err != nil {
			return err
		}
		return insertNode(ctx, tx, node{id: l.id, lease: l.length.Microseconds(), applied: position, settings: encodeSettings(l.settings), version: doorward.Version})
	})
	if err == nil {
		l.shares.isFree = free
		l.startAt(position)
		l.acked, l.maxAcked, l.registered, l.lastHeartbeat = position, position, true, now
	}
	return err
}

// startAt clears the memory and follows from a position.
func (l *Lease) startAt(position int64) {
	l.reset()
	l.shares.isStale = true
	l.position = loggedChange{Change: store.Change{Seq: position}}
	l.applied.Store(position)
}

// ack publishes how far this node has come. It must follow the read: only the read shows
// that the position belongs to the database's present history. Without a row it does
// nothing; the next heartbeat adds a new one.
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

// Sweep deletes changes that no living node can still need, in small transactions, since
// other transactions that write changes wait for them.
func (l *Lease) Sweep(ctx context.Context) error {
	for n := int64(batchSize); n == batchSize; {
		_, err := l.db.Write(ctx, func(tx *store.Tx) (err error) {
			n, err = deleteChanges(ctx, tx, tx.Now.Add(-changesKept), batchSize)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func fault(err error) error { return rows.Fault(err) }
