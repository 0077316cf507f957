// Package directoryrun shows what a customer's directory has done, run by run, and takes a run back. A run are the writes of
// a connection without a pause; package directory records it.
//
// The undo is a row that asks for it (Undo), and work that any node goes on with (Sweep): transactions of some people each,
// under the lock on the tenant, in which each effect is marked with what has become of it. So one that died is gone on with,
// and nothing is done twice. Memberships, reasons of suspension, roles and places in groups come back where nobody has
// changed them since. What the undo does is done by the person who has asked for it, and belongs to no run.
//
//	run.go      lists
//	undo.go     asking for an undo, its transactions
//	try.go      the dry run: the same, rolled back
//	plan.go     what it does for a person, and whether it may
//	apply.go    doing it
//	role.go     roles that come back, and by whose word
package directoryrun

import (
	"sync/atomic"
	"time"

	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/store"
)

// Runs is the feature. Make it with New.
type Runs struct {
	writer *access.Writer
	db     *store.DB
	life   store.SessionLifetime
	owners member.Owners
	undone atomic.Int64  // people and groups that this node has brought back
	left   atomic.Int64  // and has left as they are
	asked  chan struct{} // has a value when an undo was asked for on this node
	tryFor time.Duration // how long a dry run goes on to further people
}

// New returns the feature.
func New(writer *access.Writer, db *store.DB, life store.SessionLifetime, owners member.Owners) *Runs {
	return &Runs{writer: writer, db: db, life: life, owners: owners, asked: make(chan struct{}, 1), tryFor: tryFor}
}

// Undone returns how many people and groups this node has brought back, and has left as they are.
func (r *Runs) Undone() (done, left int64) { return r.undone.Load(), r.left.Load() }
