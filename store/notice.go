package store

import (
	"context"
	"slices"
	"time"
)

// Notice is what a node has noticed of its database, its lease, its clock or another
// node, for the log.
type Notice struct {
	Kind    NoticeKind
	Node    string        // id of the other node
	Lasted  time.Duration // how long it was so, of what is over
	Err     error         // the cause, where one is known
	Drift   time.Duration // of the kinds about the clock: how far it is ahead of the database's
	Setting Difference    // of the kinds about settings
}

// NoticeKind says what happened. It is the text of the line in the log.
type NoticeKind string

// The kinds of notices. A node that left has said so; one that is gone has stopped
// without, and was removed by another node.
const (
	DatabaseLost  NoticeKind = "database lost"
	DatabaseBack  NoticeKind = "database back"
	LeaseLost     NoticeKind = "lease lost"
	LeaseRegained NoticeKind = "lease regained"
	NodeJoined    NoticeKind = "node joined"
	NodeLeft      NoticeKind = "node left"
	NodeGone      NoticeKind = "node gone"

	ClockOff   NoticeKind = "clock off"   // beyond ClockWarning
	ClockWrong NoticeKind = "clock wrong" // beyond ClockTolerance, see Clock
	ClockRight NoticeKind = "clock right" // after either

	SettingDiffers NoticeKind = "setting differs"
	SettingAgrees  NoticeKind = "setting agrees" // or the other node has gone
)

// Report names what is told of notices, under the lock of a poll: it must not
// wait. To be called before Run.
func (w *Watch) Report(to func(Notice)) { w.notices.report = to }

// ID is the id of this process among the nodes.
func (w *Watch) ID() string { return w.id }

// notices is what was noticed last.
type notices struct {
	report   func(Notice)
	failures int       // polls that failed, one after the other
	failing  time.Time // since when
	err      error     // of the last of them
	held     bool      // the lease, when it was looked last
	lapsed   time.Time // when it was found to be over
	clock    NoticeKind
	differ   []Difference
}

// lostAfter is how many polls fail before the database counts as lost. One alone
// may have met a transaction of somebody else.
const lostAfter = 2

// notePoll notes how a poll that began at an instant went. What a node that is
// ending can't do any more says nothing of the database.
func (w *Watch) notePoll(ctx context.Context, began time.Time, err error) {
	n := &w.notices
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		if n.failures >= lostAfter {
			n.report(Notice{Kind: DatabaseBack, Lasted: time.Since(n.failing)})
		}
		n.failures, n.err = 0, nil
	default:
		if n.failures == 0 {
			n.failing = began
		}
		if n.failures, n.err = n.failures+1, err; n.failures == lostAfter {
			n.report(Notice{Kind: DatabaseLost, Err: err})
		}
	}
	w.noteLease()
}

// noteLease is called before a poll, too, which may renew what had been over.
func (w *Watch) noteLease() {
	n, fresh := &w.notices, w.Fresh()
	switch {
	case n.held && !fresh:
		n.lapsed = time.Now()
		n.report(Notice{Kind: LeaseLost, Err: n.err})
	case !n.held && fresh && !n.lapsed.IsZero():
		n.report(Notice{Kind: LeaseRegained, Lasted: time.Since(n.lapsed)})
	}
	n.held = fresh
}

// noteNodes compares the other nodes with those of the look before. A node that
// has been silent for longer than it beats has not left by itself.
func (w *Watch) noteNodes(seen map[string]sighting, now time.Time) {
	if len(w.seen) == 0 {
		return // the first look, or the first after a while
	}
	for id := range seen {
		if _, known := w.seen[id]; !known && id != w.id {
			w.notices.report(Notice{Kind: NodeJoined, Node: id})
		}
	}
	for id, was := range w.seen {
		if _, still := seen[id]; still || id == w.id {
			continue
		}
		kind, silent := NodeLeft, now.Sub(was.at)
		if silent > w.lease*5/2 {
			kind = NodeGone
		}
		w.notices.report(Notice{Kind: kind, Node: id, Lasted: silent})
	}
}

// noteClock takes a difference for over below half of what begins it, so that one at
// the limit is no news with each poll.
func (w *Watch) noteClock() {
	n, drift, is := &w.notices, w.db.clock.Drift(), ClockRight
	switch {
	case w.db.clock.Wrong():
		is = ClockWrong
	case drift.Abs() > ClockWarning, n.clock != ClockRight && drift.Abs() > ClockWarning/2:
		is = ClockOff
	}
	if is != n.clock {
		n.clock = is
		n.report(Notice{Kind: is, Drift: drift})
	}
}

// noteSettings compares what differs with what did at the look before.
func (w *Watch) noteSettings(differ []Difference) {
	for _, d := range differ {
		if !slices.Contains(w.notices.differ, d) {
			w.notices.report(Notice{Kind: SettingDiffers, Node: d.Node, Setting: d})
		}
	}
	for _, d := range w.notices.differ {
		if !slices.Contains(differ, d) {
			w.notices.report(Notice{Kind: SettingAgrees, Node: d.Node, Setting: d})
		}
	}
	w.notices.differ = differ
}
