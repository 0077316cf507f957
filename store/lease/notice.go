package lease

import (
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward/store"
)

// Notice is an event of a node for the log: about its database, its lease, its clock or
// another node.
type Notice struct {
	Kind    NoticeKind
	Node    string        // id of the other node
	Lasted  time.Duration // how long the state that has ended lasted, or for how long a lost node was silent
	Err     error         // the cause, if known
	Drift   time.Duration // for kinds about the clock: how far it is ahead of the database's
	Setting Difference    // for kinds about settings
}

// NoticeKind is what happened, as the text of the log line.
type NoticeKind string

// The kinds of notices. "Left" means that the node gave its lease back; "gone" that it
// was killed or cut off, and that its row was removed.
const (
	DatabaseLost  NoticeKind = "database lost"
	DatabaseBack  NoticeKind = "database back"
	LeaseLost     NoticeKind = "lease lost"
	LeaseRegained NoticeKind = "lease regained"
	NodeJoined    NoticeKind = "node joined"
	NodeLeft      NoticeKind = "node left"
	NodeGone      NoticeKind = "node gone"

	ClockOff   NoticeKind = "clock off"   // beyond store.ClockWarning
	ClockWrong NoticeKind = "clock wrong" // beyond store.ClockTolerance, see store.Clock
	ClockRight NoticeKind = "clock right" // after ClockOff or ClockWrong

	SettingDiffers NoticeKind = "setting differs"
	SettingAgrees  NoticeKind = "setting agrees" // or the other node has gone
)

// OnNotice sets the function called with each notice, under the lock of a poll: it
// must not block. Call it before Run.
func (l *Lease) OnNotice(report func(Notice)) { l.notices.report = report }

// notices is the state that the next notice is compared with.
type notices struct {
	report       func(Notice)
	failures     int       // consecutive failed polls
	failingSince time.Time // when the first of them began
	err          error     // of the last failed poll
	wasValid     bool      // whether the lease was valid at the last check
	expiredAt    time.Time // when the lease was found to be over
	clock        NoticeKind
	differences  []Difference
}

// lostAfter is how many polls in a row fail before the database counts as lost. A
// single one may have waited for another transaction's lock.
const lostAfter = 2

// notePoll records the result of a poll. While the node shuts down, a failure says
// nothing about the database.
func (l *Lease) notePoll(ctx context.Context, began time.Time, err error) {
	n := &l.notices
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		if n.failures >= lostAfter {
			n.report(Notice{Kind: DatabaseBack, Lasted: time.Since(n.failingSince)})
		}
		n.failures, n.err = 0, nil
	default:
		if n.failures == 0 {
			n.failingSince = began
		}
		if n.failures, n.err = n.failures+1, err; n.failures == lostAfter {
			n.report(Notice{Kind: DatabaseLost, Err: err})
		}
	}
	l.noteLease()
}

// noteLease reports that the lease was lost or regained. It is also called before a poll,
// which may renew a lost lease.
func (l *Lease) noteLease() {
	n, valid := &l.notices, l.Valid()
	switch {
	case n.wasValid && !valid:
		n.expiredAt = time.Now()
		n.report(Notice{Kind: LeaseLost, Err: n.err})
	case !n.wasValid && valid && !n.expiredAt.IsZero():
		n.report(Notice{Kind: LeaseRegained, Lasted: time.Since(n.expiredAt)})
	}
	n.wasValid = valid
}

// notePeers compares the other nodes with those seen before. A node whose heartbeats had
// stopped for two and a half leases, by the longer lease, has not left by itself.
func (l *Lease) notePeers(seen map[string]peer, now time.Time) {
	if len(l.peers) == 0 {
		return // the first read, or the first after a pause: otherwise it has this node
	}
	for id := range seen {
		if _, known := l.peers[id]; !known && id != l.id {
			l.notices.report(Notice{Kind: NodeJoined, Node: id})
		}
	}
	for id, before := range l.peers {
		if _, known := seen[id]; known || id == l.id {
			continue
		}
		kind, silent := NodeLeft, now.Sub(before.changedAt)
		if silent > before.lease*5/2 {
			kind = NodeGone
		}
		l.notices.report(Notice{Kind: kind, Node: id, Lasted: silent})
	}
}

// noteClock treats a drift as over at half of the limit that begins it, so that a drift
// at the limit isn't reported on each poll.
func (l *Lease) noteClock() {
	n, drift, kind := &l.notices, l.db.Clock().Drift(), ClockRight
	switch {
	case l.db.Clock().Wrong():
		kind = ClockWrong
	case drift.Abs() > store.ClockWarning, n.clock != ClockRight && drift.Abs() > store.ClockWarning/2:
		kind = ClockOff
	}
	if kind != n.clock {
		n.clock = kind
		n.report(Notice{Kind: kind, Drift: drift})
	}
}

// noteSettings compares the differences with those at the last call.
func (l *Lease) noteSettings(differences []Difference) {
	for _, d := range differences {
		if !slices.Contains(l.notices.differences, d) {
			l.notices.report(Notice{Kind: SettingDiffers, Node: d.Node, Setting: d})
		}
	}
	for _, d := range l.notices.differences {
		if !slices.Contains(differences, d) {
			l.notices.report(Notice{Kind: SettingAgrees, Node: d.Node, Setting: d})
		}
	}
	l.notices.differences = differences
}
