package lease

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/internal/rows"
)

// node is the row of a server process that answers from memory.
type node struct {
	id        string
	lease     int64 // microseconds
	applied   int64 // number of the last change that the node has applied
	heartbeat int64 // a counter
	settings  string
	version   string // of its program; empty: of one that doesn't say so
}

func nodeFields(n *node) []any {
	return []any{&n.id, &n.lease, &n.applied, &n.heartbeat, &n.settings, &n.version}
}

func (n node) length() time.Duration { return time.Duration(n.lease) * time.Microsecond }

const (
	sqlNodes          = `SELECT id, lease, applied, beat, settings, version FROM nodes ORDER BY id`
	sqlInsertNode     = `INSERT INTO nodes (id, lease, applied, beat, settings, version) VALUES ($1, $2, $3, $4, $5, $6)`
	sqlHeartbeat      = `UPDATE nodes SET beat = beat + 1 WHERE id = $1`
	sqlAck            = `UPDATE nodes SET applied = $1 WHERE id = $2`
	sqlSetSettings    = `UPDATE nodes SET settings = $1 WHERE id = $2`
	sqlDeleteNode     = `DELETE FROM nodes WHERE id = $1`
	sqlDeleteDeadNode = `DELETE FROM nodes WHERE id = $1 AND beat = $2`
)

func readNodes(ctx context.Context, r store.Reader) ([]node, error) {
	return rows.List(ctx, r.Conn, nodeFields, sqlNodes)
}

// insertNode announces the node, and begins to count heartbeats at a random number. If it
// began at 0, the new row of a node that was removed and is back could show the count at
// which the old row stopped, and other nodes would remove it at once.
func insertNode(ctx context.Context, tx *store.Tx, n node) error {
	tx.AnnounceNodes()
	_, err := rows.Exec(ctx, tx.Conn, sqlInsertNode, n.id, n.lease, n.applied, rand.Int64N(1<<62), n.settings, n.version)
	return err
}

func countHeartbeat(ctx context.Context, tx *store.Tx, id string) (exists bool, err error) {
	n, err := rows.Exec(ctx, tx.Conn, sqlHeartbeat, id)
	return n > 0, err
}

func ackChange(ctx context.Context, tx *store.Tx, id string, seq int64) (exists bool, err error) {
	n, err := rows.Exec(ctx, tx.Conn, sqlAck, seq, id)
	return n > 0, err
}

func setSettings(ctx context.Context, tx *store.Tx, id, settings string) error {
	_, err := rows.Exec(ctx, tx.Conn, sqlSetSettings, settings, id)
	return err
}

func deleteNode(ctx context.Context, tx *store.Tx, id string) error {
	n, err := rows.Exec(ctx, tx.Conn, sqlDeleteNode, id)
	return announceDeleted(tx, n, err)
}

// deleteDeadNode removes a node without a new heartbeat since n was read.
func deleteDeadNode(ctx context.Context, tx *store.Tx, n node) error {
	deleted, err := rows.Exec(ctx, tx.Conn, sqlDeleteDeadNode, n.id, n.heartbeat)
	return announceDeleted(tx, deleted, err)
}

func announceDeleted(tx *store.Tx, deleted int64, err error) error {
	if deleted > 0 {
		tx.AnnounceNodes()
	}
	return err
}

// peer records when the heartbeat of a node was last seen to change.
type peer struct {
	heartbeat int64
	changedAt time.Time
	lease     time.Duration // the longer of its own and this node's
}

// removeDeadNodes removes the rows of killed nodes, so that revoking calls stop waiting
// for them. nodes are all that have a row now. It compares only heartbeats, never clocks.
// After a pause in which this node couldn't read, it waits the full time for all others
// again: the database may have been unavailable to them, too. It also reports which nodes
// came and went, and compares settings.
func (l *Lease) removeDeadNodes(ctx context.Context, nodes []node) error {
	now, seen := time.Now(), make(map[string]peer, len(nodes))
	if now.Sub(l.peersSeenAt) > 2*l.length {
		l.peers = map[string]peer{} // the former map may be read by Nodes
	}
	l.peersSeenAt = now
	l.compareSettings(nodes)
	for _, n := range nodes {
		p, known := l.peers[n.id]
		if !known || p.heartbeat != n.heartbeat {
			p = peer{n.heartbeat, now, max(l.length, n.length())}
		}
		seen[n.id] = p
		if n.id == l.id || now.Sub(p.changedAt) < deadAfter*p.lease {
			continue
		}
		if _, err := l.db.Write(ctx, func(tx *store.Tx) error { return deleteDeadNode(ctx, tx, n) }); err != nil {
			return err
		}
	}
	l.notePeers(seen, now)
	l.peers = seen
	l.peersRead.Store(&seen)
	return nil
}

// silentAfter is the number of leases without a heartbeat after which Nodes calls a node silent.
const silentAfter = 2

// NodeState is a registered node, as this one sees it.
type NodeState struct {
	ID      string
	Version string // of its program; empty: of one that doesn't say so
	IsThis  bool
	Lease   time.Duration
	// Behind is how many changes the node has not applied yet.
	Behind int64
	// SeenAgo is how long ago this node has seen a new heartbeat, by its own clock: usually up to two leases, since it
	// sends one in a lease and reads those of others once in a lease. Negative: it has seen none yet.
	SeenAgo time.Duration
	// IsSilent reports whether it has seen none for more than two leases: the node answers nothing from memory any
	// more, and after three leases its row is removed.
	IsSilent bool
}

// Nodes returns the registered nodes, by id. Errors: unavailable.
func (l *Lease) Nodes(ctx context.Context) (all []NodeState, err error) {
	err = l.db.Snapshot(ctx, func(r store.Reader) error {
		last, err := newestChange(ctx, r)
		if err != nil {
			return err
		}
		nodes, err := readNodes(ctx, r)
		for _, n := range nodes {
			all = append(all, l.stateOf(n, last))
		}
		return err
	})
	return all, err
}

// stateOf returns the state of a node; last is the number of the last change.
func (l *Lease) stateOf(n node, last int64) NodeState {
	s := NodeState{ID: n.id, Version: n.version, IsThis: n.id == l.id, Lease: n.length(), Behind: max(0, last-n.applied), SeenAgo: -1}
	if peers := l.peersRead.Load(); peers != nil {
		if p, known := (*peers)[n.id]; known {
			s.SeenAgo = time.Since(p.changedAt)
			s.IsSilent = s.SeenAgo > silentAfter*p.lease
		}
	}
	return s
}

// aliveInterval is how often Alive reads the nodes.
const aliveInterval = 50 * time.Millisecond

// Alive reports whether a server runs on the database: whether any registered node shows
// a heartbeat. Without rows it returns at once; if all registered nodes were killed,
// after three leases, some seconds. The error is unavailable.
func Alive(ctx context.Context, db *store.DB) (bool, error) {
	first, err := readNodes(ctx, db.Read())
	if err != nil || len(first) == 0 {
		return false, err
	}
	longest := time.Duration(0)
	for _, n := range first {
		longest = max(longest, n.length())
	}
	tick := time.NewTicker(aliveInterval)
	defer tick.Stop()
	for end := time.Now().Add(deadAfter * longest); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return false, fault(ctx.Err())
		case <-tick.C:
		}
		current, err := readNodes(ctx, db.Read())
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(current, func(n node) bool { return showsLife(first, n) }) {
			return true, nil
		}
	}
	return false, nil
}

// showsLife reports whether a node has sent a heartbeat since the nodes in before were read,
// or is not among them.
func showsLife(before []node, current node) bool {
	return !slices.ContainsFunc(before, func(n node) bool { return n.id == current.id && n.heartbeat == current.heartbeat })
}
