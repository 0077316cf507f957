package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Setting is one that has to be the same on all nodes of an installation.
type Setting struct {
	Name, Value string
	// Strict: a node that has it otherwise would end what the others hold valid, or
	// break what they have promised, so it doesn't start beside them.
	Strict bool
}

// Difference is a setting that another living node has otherwise.
type Difference struct {
	Setting Setting // as this node has it
	Theirs  string
	Node    string // one that has it so
}

// DiffersError is why a node doesn't start.
type DiffersError struct{ Differences []Difference }

// Error names every setting with both values.
func (e *DiffersError) Error() string {
	var all []string
	for _, d := range e.Differences {
		all = append(all, fmt.Sprintf("%s is %s here and %s on the running node %s", d.Setting.Name, d.Setting.Value, d.Theirs, d.Node))
	}
	return strings.Join(all, "; ")
}

// Publish names the settings that other nodes compare with their own. With force
// the node starts even where a strict one differs: it is how such a setting is
// changed node by node. To be called before Join.
func (w *Watch) Publish(settings []Setting, force bool) { w.settings, w.force = settings, force }

// Differences are the settings that living nodes had otherwise when this one last
// looked, which it does every lease.
func (w *Watch) Differences() []Difference {
	if d := w.differences.Load(); d != nil {
		return *d
	}
	return nil
}

// published is how settings are stored: a line each, "name=value". What follows an
// equals sign is the value, whatever is in it.
func published(settings []Setting) string {
	var b strings.Builder
	for _, s := range settings {
		fmt.Fprintf(&b, "%s=%s\n", s.Name, strings.ReplaceAll(s.Value, "\n", " "))
	}
	return b.String()
}

// differ compares settings with what another node has published. A name that only
// one of them knows says nothing: the other is of another version.
func differ(own []Setting, node, theirs string) (all []Difference) {
	for line := range strings.Lines(theirs) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		i := slices.IndexFunc(own, func(s Setting) bool { return s.Name == name })
		if i >= 0 && own[i].Value != value {
			all = append(all, Difference{own[i], value, node})
		}
	}
	return all
}

// neighbour is the row of another node, and what it has published.
type neighbour struct {
	peer
	settings string
}

func neighbourColumns(n *neighbour) []any { return append(peerColumns(&n.peer), &n.settings) }

const sqlNeighbours = `SELECT id, lease, applied, beat, settings FROM nodes ORDER BY id`

func (r Reader) neighbours(ctx context.Context) ([]neighbour, error) {
	return list(ctx, r, neighbourColumns, sqlNeighbours)
}

// Differences compares settings with those of the nodes that are registered, for
// whoever is none of them. The row of one that was killed stays for three leases.
func (r Reader) Differences(ctx context.Context, own []Setting) (all []Difference, err error) {
	nodes, err := r.neighbours(ctx)
	for _, n := range nodes {
		all = append(all, differ(own, n.id, n.settings)...)
	}
	return all, err
}

const (
	sqlLockClock = `UPDATE shared_clock SET moved = moved WHERE id = 1 RETURNING moved`
	sqlMoveClock = `UPDATE shared_clock SET moved = $1 WHERE id = 1`
)

// lockClock makes nodes register one after the other, and returns how far the
// installation's clock is moved.
func (tx *Tx) lockClock(ctx context.Context) (time.Duration, error) {
	moved, err := one(ctx, tx.Reader, positionColumn, sqlLockClock)
	return time.Duration(moved) * time.Microsecond, err
}

// admission is how a node judges its neighbours before it starts: each is alive
// once it has beaten or appeared since, and dead after three leases without.
type admission struct {
	w     *Watch
	began time.Time
	first []neighbour // as they were found at first
}

// joinEvery is how often a node that waits to start looks.
const joinEvery = 50 * time.Millisecond

// Join registers this process, before Run. Where a setting differs in which nodes
// have to agree, or this machine's clock is moved otherwise than the installation's,
// it waits until each neighbour has shown that it lives or has been silent for three
// leases, some seconds. Errors: *DiffersError, unavailable.
func (w *Watch) Join(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx = renews(ctx)
	first, err := w.db.Read().neighbours(ctx)
	if err != nil {
		return err
	}
	a := &admission{w: w, began: time.Now(), first: first}
	for {
		err := a.try(ctx)
		if !errors.Is(err, errUndecided) {
			w.db.measureClock(ctx)
			return err
		}
		select {
		case <-ctx.Done():
			return fault(ctx.Err())
		case <-time.After(joinEvery):
		}
	}
}

var errUndecided = errors.New("store: whether other nodes live is not known yet")

// joinWithin bounds a try, as a poll is bounded.
const joinWithin = 2 * time.Second

func (a *admission) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinWithin)
	defer cancel()
	return a.w.enter(ctx, time.Now(), func(tx *Tx) error {
		undecided, err := a.judge(ctx, tx)
		if err == nil && undecided {
			err = errUndecided
		}
		return err
	})
}

// judge reports whether something depends on a neighbour of which it isn't known
// whether it lives. Else the dead are removed, and the first node to live moves the
// installation's clock as its own is moved.
func (a *admission) judge(ctx context.Context, tx *Tx) (undecided bool, err error) {
	moved, err := tx.lockClock(ctx)
	if err != nil {
		return false, err
	}
	nodes, err := tx.neighbours(ctx)
	if err != nil {
		return false, err
	}
	var refused []Difference
	alone, asks := true, a.w.db.clock.moves(moved)
	for _, n := range nodes {
		if n.id == a.w.id {
			continue
		}
		strict := a.w.strictly(n)
		switch alive, known := a.alive(n); {
		case known && !alive:
			err = tx.deleteDeadPeer(ctx, n.id, n.beat)
		case known:
			refused, alone = append(refused, strict...), false
		default:
			undecided, alone = undecided || asks || len(strict) > 0, false
		}
		if err != nil {
			return false, err
		}
	}
	switch {
	case len(refused) > 0:
		return false, &DiffersError{refused}
	case !undecided && alone && asks:
		err = tx.run(ctx, sqlMoveClock, a.w.db.clock.offset.Microseconds())
	}
	return undecided, err
}

// strictly are the differences that keep this node from starting beside another.
func (w *Watch) strictly(n neighbour) []Difference {
	if w.force {
		return nil
	}
	return slices.DeleteFunc(differ(w.settings, n.id, n.settings), func(d Difference) bool { return !d.Setting.Strict })
}

func (a *admission) alive(n neighbour) (alive, known bool) {
	i := slices.IndexFunc(a.first, func(f neighbour) bool { return f.id == n.id })
	if i < 0 || a.first[i].beat != n.beat {
		return true, true
	}
	silent := time.Since(a.began) >= dead*max(a.w.lease, time.Duration(n.lease)*time.Microsecond)
	return false, silent
}

// moves reports whether a node that is alone would move the installation's clock.
func (c *Clock) moves(moved time.Duration) bool { return c.handed == nil && c.offset != moved }

// claimClock is for a node that lost its row and is back: alone it is the first.
func (w *Watch) claimClock(ctx context.Context, tx *Tx) error {
	moved, err := tx.lockClock(ctx)
	if err != nil || !w.db.clock.moves(moved) {
		return err
	}
	others, err := tx.peers(ctx)
	if err != nil || slices.ContainsFunc(others, func(p peer) bool { return p.id != w.id }) {
		return err
	}
	return tx.run(ctx, sqlMoveClock, w.db.clock.offset.Microseconds())
}

// compare notes the settings that other nodes have otherwise.
func (w *Watch) compare(nodes []neighbour) {
	var all []Difference
	for _, n := range nodes {
		if n.id != w.id {
			all = append(all, differ(w.settings, n.id, n.settings)...)
		}
	}
	w.noteSettings(all)
	w.differences.Store(&all)
}
