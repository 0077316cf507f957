package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
)

// Watch keeps the memory of this process true to the database: the revocation
// lease. docs/lease.md has the argument and the model; the rules are
//
//  1. Whatever can end or change what a session may do writes a row to changes
//     in the same transaction (Tx.announce).
//  2. Each node follows changes, woken by a notification where there are such,
//     and by polling at a quarter of the lease anyway.
//  3. Memory is good until the instant before the last successful poll was
//     sent, plus the lease, by this process's monotonic clock (Fresh): less a
//     little, for clocks that run at different rates. Where there are several
//     servers, of which one may have been replaced without noticing, only a
//     poll counts that has committed something (cluster).
//  4. A revoking call answers when every node has applied its change, or when
//     the longest lease has passed since its commit (Settle).
//  5. A value loaded while a change arrives must not be kept over it; that is
//     for the memory to do, which hears of every change (Follow).
type Watch struct {
	db    *DB
	id    string
	lease time.Duration
	epoch time.Time // monotonic origin of freshUntil
	apply func(context.Context, []Change) error
	reset func()
	wake  chan struct{}
	begun sync.Once

	freshUntil atomic.Int64 // since epoch, nanoseconds
	reached    atomic.Int64 // the number of position, for metrics
	full       atomic.Bool  // for want of space the lease wasn't renewed

	mu            sync.Mutex // one poll at a time
	running       bool
	position      logged // the last change that is applied
	acked         int64  // the last that this node's row says is applied,
	maxAcked      int64  // or may say, where no answer came
	lastHeartbeat time.Time
	peersSeenAt   time.Time // at the beats of the other nodes
	seen          map[string]sighting
	measured      time.Time // the database's clock

	settings    []Setting
	force       bool
	differences atomic.Pointer[[]Difference]
	notices     notices
}

// sighting is when the beat of another node was last seen to change.
type sighting struct {
	beat int64
	at   time.Time
}

// Watch returns the watch of this process. Until Run its memory is never
// fresh, and Settle waits for the nodes that run.
func (db *DB) Watch(lease time.Duration) *Watch {
	return &Watch{
		db: db, id: doorward.NewID("nod_"), lease: lease, epoch: time.Now(),
		apply: func(context.Context, []Change) error { return nil }, reset: func() {},
		wake: make(chan struct{}, 1), seen: map[string]sighting{}, notices: notices{report: func(Notice) {}, clock: ClockRight},
	}
}

// Follow names what hears of changes: apply of each batch, from any goroutine
// and some of them twice, and reset when some were missed, so that all memory
// has to go. A change counts as applied when apply has returned nil; until then
// the lease isn't renewed, so what apply asks of the database is asked with its
// context, which may be without one. To be called before Run.
func (w *Watch) Follow(apply func(context.Context, []Change) error, reset func()) {
	w.apply, w.reset = apply, reset
}

// Fresh reports whether memory may be answered from. It costs one reading of
// the clock.
func (w *Watch) Fresh() bool { return int64(time.Since(w.epoch)) < w.freshUntil.Load() }

// Age is how long ago the last successful poll was sent, for metrics.
func (w *Watch) Age() time.Duration {
	return time.Since(w.epoch) - time.Duration(w.freshUntil.Load()) + w.lease - w.lease/rates
}

// Lost reports whether the last successful poll is so long ago that other nodes
// take this one for dead: it isn't late, it is cut off. A database whose disk is
// full doesn't count. It is right in all that it says, so checks can be answered,
// and no other node could do more; but of a cluster it may have been replaced.
func (w *Watch) Lost() bool {
	return w.Age() > dead*w.lease && (!w.full.Load() || w.db.engine.cluster != nil)
}

// Reached is the number of the last change that this process has applied, for
// metrics.
func (w *Watch) Reached() int64 { return w.reached.Load() }

// Begin polls for the first time. From here to the end of Run, the servers of a
// cluster are read while the lease holds.
func (w *Watch) Begin(ctx context.Context) {
	w.begun.Do(func() {
		w.db.engine.cluster.gate(w.Fresh)
		w.poll(ctx)
	})
}

// Run follows changes until ctx ends, then gives the lease back. It is called
// once.
func (w *Watch) Run(ctx context.Context) {
	w.Begin(ctx)
	var listening sync.WaitGroup
	if w.db.engine.listen != nil {
		listening.Go(func() { w.listen(ctx) })
	}
	tick := time.NewTicker(w.lease / 4)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			w.poll(ctx)
		case <-w.wake:
			w.poll(ctx)
		}
	}
	listening.Wait()
	w.leave(renews(context.WithoutCancel(ctx)))
	w.db.engine.cluster.gate(nil)
}

// listen only wakes the poll; nothing rests on a notification arriving.
func (w *Watch) listen(ctx context.Context) {
	for ctx.Err() == nil {
		_ = w.db.engine.listen(ctx, w.poke) // a broken connection shows in the polls
		select {
		case <-ctx.Done():
		case <-time.After(w.lease):
		}
	}
}

func (w *Watch) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Leave gives the lease back of a process that joined and never ran. After Run it
// does nothing.
func (w *Watch) Leave(ctx context.Context) {
	w.mu.Lock()
	joined := w.running
	w.mu.Unlock()
	if joined {
		w.leave(renews(ctx))
	}
}

// leave ends the lease before its row goes, so that nobody waits for it and
// nothing is answered from memory without it.
func (w *Watch) leave(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.freshUntil.Store(0)
	w.running = false
	ctx, cancel := context.WithTimeout(ctx, w.lease)
	defer cancel()
	_, _ = w.db.Write(ctx, func(tx *Tx) error { return tx.deletePeer(ctx, w.id) }) // else the others remove it
}

// rates: memory is trusted for this part of the lease less, because a revoker
// measures the lease by a clock of its own, and time servers make clocks run
// slower or faster until they are right: chrony by 8.3 % unless told otherwise
// (maxslewrate). One at its slowest and one at its fastest differ by 15.4 %.
const rates = 6

// poll renews the lease: it makes sure that revokers wait for this node, then
// reads and applies what has changed. On a fault nothing is renewed.
func (w *Watch) poll(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	asking, cancel := context.WithTimeout(renews(ctx), max(w.lease, 500*time.Millisecond))
	defer cancel()
	sent := time.Now() // before everything: rule 3
	w.noteLease()
	err := w.register(asking, sent)
	w.full.Store(err != nil && w.db.engine.full(err))
	if err == nil {
		err = w.catchUp(asking)
	}
	if err == nil && w.position.Seq < w.maxAcked {
		err = w.acknowledge(asking) // in another history: the row may promise what isn't applied
	}
	if err != nil {
		w.db.engine.cluster.look(ctx)
		w.notePoll(ctx, sent, err)
		return
	}
	w.renew(sent)
	w.notePoll(ctx, sent, nil)
	if w.position.Seq != w.acked {
		_ = w.acknowledge(asking) // else the revoker waits for the lease
	}
	if sent.Sub(w.measured) >= w.lease/8 { // not with each poll of a flood that was woken
		w.measured = sent
		w.db.measureClock(asking)
	}
	w.noteClock()
}

// renew begins the lease at the instant before the poll was sent, or of a cluster
// before the last one that has committed a beat.
func (w *Watch) renew(sent time.Time) {
	if w.db.engine.cluster != nil {
		sent = w.lastHeartbeat
	}
	w.freshUntil.Store(int64(sent.Sub(w.epoch) + w.lease - w.lease/rates))
	w.db.engine.cluster.renewed()
}

// heartbeatEvery is how often a beat is due. Of a cluster each beat renews the lease: so
// there is one with every tick, or with a poll that was woken halfway to it.
func (w *Watch) heartbeatEvery() time.Duration {
	if w.db.engine.cluster != nil {
		return w.lease / 8
	}
	return w.lease
}

// register has this node's row committed before changes are read: a revoker
// that committed before the row was there is seen by the read, and one that
// commits later sees the row and waits. now is an instant before the beat is
// sent: a node that counted from after it, and was paused in between, could be
// removed and not notice for a lease.
func (w *Watch) register(ctx context.Context, now time.Time) error {
	if w.running && now.Sub(w.lastHeartbeat) < w.heartbeatEvery() {
		return nil
	}
	if there, err := w.heartbeat(ctx); err != nil {
		return err
	} else if !there {
		return w.enter(ctx, now, func(tx *Tx) error { return w.claimClock(ctx, tx) })
	}
	w.lastHeartbeat = now
	if w.db.engine.cluster != nil && now.Sub(w.peersSeenAt) < w.lease {
		return nil // it beats more often than the others have to be looked at
	}
	return w.deleteDeadPeers(ctx)
}

// heartbeat shows that the node lives, and reports whether it has a row: not at
// first, and not when it was taken for dead.
func (w *Watch) heartbeat(ctx context.Context) (there bool, err error) {
	if !w.running {
		return false, nil
	}
	_, err = w.db.Write(ctx, func(tx *Tx) (err error) {
		there, err = tx.heartbeat(ctx, w.id)
		return err
	})
	return there, err
}

// enter starts from the newest change. Memory is reset after the position was
// read: what was loaded before may rest on changes that this node will never
// hear of. admit comes first in the transaction.
func (w *Watch) enter(ctx context.Context, now time.Time, admit func(*Tx) error) error {
	w.freshUntil.Store(0) // the row says applied before the memory is reset
	position := int64(0)
	_, err := w.db.Write(ctx, func(tx *Tx) (err error) {
		if err := admit(tx); err != nil {
			return err
		}
		if position, err = tx.position(ctx); err != nil {
			return err
		}
		if err := tx.deletePeer(ctx, w.id); err != nil {
			return err
		}
		return tx.insertPeer(ctx, w.id, w.lease, position, published(w.settings))
	})
	if err == nil {
		w.startAt(position)
		w.acked, w.maxAcked, w.running, w.lastHeartbeat = position, position, true, now
	}
	return err
}

// startAt forgets everything and follows from a position.
func (w *Watch) startAt(position int64) {
	w.reset()
	w.position = logged{Change: Change{Seq: position}}
	w.reached.Store(position)
}

// acknowledge tells revokers how far this node has come. It comes after the
// read, never before: only the read shows that the position is one in the
// history that the database has now. It does nothing without a row, which the
// next beat makes anew.
func (w *Watch) acknowledge(ctx context.Context) error {
	there, seq := false, w.position.Seq
	w.maxAcked = max(w.maxAcked, seq)
	_, err := w.db.Write(ctx, func(tx *Tx) (err error) {
		there, err = tx.applied(ctx, w.id, seq)
		return err
	})
	if err == nil && there {
		w.acked, w.maxAcked = seq, seq
	}
	return err
}

// batchOfChanges is read at once.
const batchOfChanges = 500

// catchUp applies what has changed since the position. A node that was away for
// longer than changes are kept, or whose database was set back to an older
// state, starts anew.
func (w *Watch) catchUp(ctx context.Context) error {
	for {
		h, err := w.db.Read().historyFrom(ctx, w.position.Seq, batchOfChanges)
		if err != nil {
			return err
		}
		news, unbroken := h.after(w.position, batchOfChanges)
		if !unbroken {
			w.startAt(h.last)
			return nil
		}
		if err := w.apply(ctx, news); err != nil {
			return err
		}
		if len(h.rows) > 0 {
			w.position = h.rows[len(h.rows)-1]
			w.reached.Store(w.position.Seq)
		}
		if len(h.rows) < batchOfChanges {
			return nil
		}
	}
}

// dead is after how many leases without a beat a node's row is removed. Its
// memory has been stale for long by then.
const dead = 3

// deleteDeadPeers removes the rows of nodes that were killed, so that revoking
// calls stop waiting for them. Only beats are compared, never clocks. After a
// while in which this node couldn't look, all others get their time anew: it may
// be the database that was away, for all of them.
func (w *Watch) deleteDeadPeers(ctx context.Context) error {
	peers, err := w.db.Read().neighbours(ctx)
	if err != nil {
		return err
	}
	now, seen := time.Now(), make(map[string]sighting, len(peers))
	if now.Sub(w.peersSeenAt) > 2*w.lease {
		clear(w.seen)
	}
	w.peersSeenAt = now
	w.compare(peers)
	for _, p := range peers {
		s, known := w.seen[p.id]
		if !known || s.beat != p.beat {
			s = sighting{p.beat, now}
		}
		seen[p.id] = s
		if p.id == w.id || now.Sub(s.at) < dead*max(w.lease, time.Duration(p.lease)*time.Microsecond) {
			continue
		}
		if _, err := w.db.Write(ctx, func(tx *Tx) error { return tx.deleteDeadPeer(ctx, p.id, p.beat) }); err != nil {
			return err
		}
	}
	w.noteNodes(seen, now)
	w.seen = seen
	return nil
}

// changesKept is how long changes are kept for nodes that are cut off; one
// that comes back later starts with an empty memory.
const changesKept = 10 * time.Minute

// Sweep deletes changes that no living node can be waiting for.
func (w *Watch) Sweep(ctx context.Context) error {
	_, err := w.db.Write(ctx, func(tx *Tx) error { return tx.DeleteOldChanges(ctx, tx.Now.Add(-changesKept)) })
	return err
}

// Settled says how a revocation was made to hold everywhere.
type Settled struct {
	Nodes int           // that have applied it, this one included
	Took  time.Duration // since the commit
}

// Settle returns when no memory anywhere still holds what the changes, just
// committed, have ended: applied here, and by every other node, or the longest
// lease has passed. That is so even when the database can't be asked any more.
//
// A question (ChangeFlush) is settled by answers only: a node that is silent
// for its lease leaves it open. Then, and when ctx ends first, the error is
// unavailable; the changes are committed all the same.
func (w *Watch) Settle(ctx context.Context, changes []Change) (Settled, error) {
	began := time.Now()
	if err := w.apply(ctx, changes); err != nil {
		return Settled{}, err
	}
	settled, silent, err := w.wait(ctx, began, changes[len(changes)-1].Seq, w.id)
	question := slices.ContainsFunc(changes, func(c Change) bool { return c.Kind == ChangeFlush })
	if err == nil && silent && question {
		err = fault(errors.New("a node has not said what it knows"))
	}
	return settled, err
}

// SettleAll is Settle for all that has been committed by anyone so far. Whoever
// finds something ended already, and says so, needs it: whoever ended it may
// still be waiting, or may never have heard whether the commit succeeded. The
// error is unavailable.
func (w *Watch) SettleAll(ctx context.Context) (Settled, error) {
	began := time.Now()
	newest, err := w.db.Read().position(ctx)
	if err != nil {
		return Settled{}, err
	}
	if applied, waiting := w.progress(ctx, newest, ""); waiting == 0 {
		return Settled{applied, time.Since(began)}, nil
	}
	w.poke()
	settled, _, err := w.wait(ctx, began, newest, "")
	return settled, err
}

// wait returns when every node has applied the change (the one named has), or
// when the longest lease of those that haven't has passed since an instant
// after the commit: silent says that it has.
func (w *Watch) wait(ctx context.Context, began time.Time, seq int64, named string) (s Settled, silent bool, err error) {
	asking, cancel := context.WithDeadline(ctx, began.Add(MaxLease))
	defer cancel()
	if w.db.engine.notify != "" {
		_, _ = w.db.write.ExecContext(asking, w.db.engine.notify) // polling finds it too
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 16*time.Millisecond) {
		applied, waiting := w.progress(asking, seq, named)
		took := time.Since(began)
		if waiting <= took {
			return Settled{applied, took}, waiting > 0, nil
		}
		select {
		case <-ctx.Done():
			return Settled{applied, took}, true, fault(ctx.Err())
		case <-time.After(min(pause, waiting-took)):
		}
	}
}

// progress counts the nodes that have applied the change, the one named among
// them, and returns the longest lease of those that haven't: the longest there
// is when the database doesn't say.
func (w *Watch) progress(ctx context.Context, seq int64, named string) (applied int, longest time.Duration) {
	if named != "" {
		applied = 1
	}
	peers, err := w.db.Read().peers(ctx)
	if err != nil {
		return applied, MaxLease
	}
	for _, p := range peers {
		switch {
		case p.id == named:
		case p.applied >= seq:
			applied++
		default:
			longest = max(longest, time.Duration(p.lease)*time.Microsecond)
		}
	}
	return applied, longest
}

// The bounds of the lease. A revoking call may have to wait for a whole one,
// and every request is answered within 3 s.
const (
	MinLease = time.Second
	MaxLease = 2 * time.Second
)
