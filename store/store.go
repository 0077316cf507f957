// Package store keeps Doorward's rows, in SQLite or PostgreSQL, with one query
// text and one set of migrations for both.
//
// It holds no rule: what may happen is decided above, in app. What it does
// promise is how rows are written: everything inside one Write commits or
// nothing does, an instant is drawn once per transaction, and what may succeed
// only once is a single conditional statement whose row count is reported.
//
// Absent rows are ErrNone. Everything else that goes wrong is a
// *doorward.Error of the code unavailable: a fault of the infrastructure never
// looks like an absent row, so no caller above can turn it into a refusal.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3/database"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/store/internal/cluster"
	"github.com/doorward/doorward/store/internal/rows"
)

// ErrNone is returned when the one row asked for doesn't exist.
var ErrNone = rows.ErrNone

// DB is an open database. It is safe for concurrent use.
type DB struct {
	engine engine
	write  *sql.DB // SQLite: a single connection
	read   *sql.DB
	clock  *Clock
	wake   chan struct{}
	filed  chan struct{}
	close  func() error
	pools  func() []Pool
}

// engine is what differs between the two databases.
type engine struct {
	name      string
	dialect   database.Dialect // what goose calls it
	transient func(error) bool // the transaction may be run again
	locked    func(error) bool // another process is writing
	full      func(error) bool // there is no space for what is to be written
	// exclusive runs do while no other process has its do run.
	exclusive func(ctx context.Context, db *DB, do func() error) error
	// migrator opens what migrations run on, which waits lockWithin for a lock; nil:
	// the writer does. behind reports whether one has failed for want of a lock.
	migrator  func() *sql.DB
	behind    func(error) bool
	path      string           // of a SQLite file; else empty
	servers   *cluster.Servers // of the servers of PostgreSQL, where the DSN names several
	versioned string           // query: whether there is a table of migrations, 1 or 0
	// clock is a query for the engine's own clock in microseconds, and how far the
	// installation's is moved. That of SQLite is this machine's, and not asked for.
	clock string
	// snapshot is how a transaction begins whose queries all see one state, and
	// unhurried a statement that lets it take the time it needs; empty for none.
	snapshot  sql.TxOptions
	noTimeout string
	// listen calls wake for every notification until ctx ends or the connection
	// breaks; nil where there are none. notify sends one.
	listen func(ctx context.Context, wake func()) error
	notify string
	// direct makes a connection outside of the pool, which prepares nothing; nil: there
	// is no server.
	direct func(ctx context.Context) (*pgx.Conn, error)
	// affirm writes to the log alone, for a commit that changes nothing and is to be
	// waited for like one that does (Tx.ForceDurable); empty where no commit can be lost.
	affirm string
	size   string // query: how much room the database takes, in bytes
	// synchronous is a query: whether a commit waits for another server; empty where
	// there is none.
	synchronous string
	commits     string // commits something that leaves no row; empty as above
}

// Open opens the database named by dsn, "sqlite:PATH" or "postgres://…",
// without touching its schema (see Migrate and CheckSchema). The clock is the
// source of every time that is stored: nil for the database's own, see StartClock;
// tests hand in one that they can move.
func Open(ctx context.Context, dsn string, now doorward.Clock) (*DB, error) {
	path, isSQLite := strings.CutPrefix(dsn, "sqlite:")
	var db *DB
	var err error
	switch {
	case isSQLite:
		db, err = openSQLite(path)
	case strings.HasPrefix(dsn, "postgres://"), strings.HasPrefix(dsn, "postgresql://"):
		db, err = openPostgres(ctx, dsn)
	default:
		return nil, fmt.Errorf("store: database must be sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME, not %q", scheme(dsn))
	}
	if err != nil {
		return nil, err
	}
	db.clock, db.wake, db.filed = newClock(now), make(chan struct{}, 1), make(chan struct{}, 1)
	return db, nil
}

// OpenExisting is Open for looking only: it makes no SQLite file.
func OpenExisting(ctx context.Context, dsn string, now doorward.Clock) (*DB, error) {
	if path, isSQLite := strings.CutPrefix(dsn, "sqlite:"); isSQLite {
		if _, err := os.Stat(path); err != nil {
			return nil, fault(err)
		}
	}
	return Open(ctx, dsn, now)
}

// Synchronous reports whether commits wait until another server has them, so that no
// failover undoes what was answered. It goes by what the server does, whatever it is
// that manages it says. ErrNone of SQLite, which has no other server.
func (db *DB) Synchronous(ctx context.Context) (yes bool, err error) {
	if db.engine.synchronous == "" {
		return false, ErrNone
	}
	err = db.read.QueryRowContext(ctx, db.engine.synchronous).Scan(&yes)
	return yes, fault(err)
}

// TryCommit commits something that nobody reads and nothing is left of but a record in
// the log: where commits wait for another server, it returns when that has it. ErrNone
// of SQLite.
func (db *DB) TryCommit(ctx context.Context) error {
	if db.engine.commits == "" {
		return ErrNone
	}
	_, err := db.write.ExecContext(ctx, db.engine.commits)
	return fault(err)
}

// scheme is the part of a DSN that is no secret.
func scheme(dsn string) string {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		return u.Scheme + ":…"
	}
	return "…"
}

// Close closes all connections.
func (db *DB) Close() error { return db.close() }

// Engine is "sqlite" or "postgres".
func (db *DB) Engine() string { return db.engine.name }

// Ping asks the database for an answer.
func (db *DB) Ping(ctx context.Context) error { return fault(db.read.PingContext(ctx)) }

// Servers are those that the DSN names, whose primary the lease follows; nil where it
// names one.
func (db *DB) Servers() *cluster.Servers { return db.engine.servers }

// Listen calls wake for every notification of NotifyNodes until ctx ends or the
// connection breaks, which is the error. ErrNone of SQLite, which has none.
func (db *DB) Listen(ctx context.Context, wake func()) error {
	if db.engine.listen == nil {
		return ErrNone
	}
	return db.engine.listen(ctx, wake)
}

// NotifyNodes wakes all nodes that Listen; it does nothing in SQLite. The error is
// unavailable.
func (db *DB) NotifyNodes(ctx context.Context) error {
	if db.engine.notify == "" {
		return nil
	}
	_, err := db.write.ExecContext(ctx, db.engine.notify)
	return fault(err)
}

// MailQueued receives after a commit that queued mail in this process. Other
// processes' mail is found by polling.
func (db *DB) MailQueued() <-chan struct{} { return db.wake }

// InboxFiled receives after a commit that put something into the inbox in this
// process. What other processes put there is found by polling.
func (db *DB) InboxFiled() <-chan struct{} { return db.filed }

// Read returns the queries, each run on its own.
func (db *DB) Read() Reader { return Reader{rows.On(db.read)} }

// Snapshot runs fn with queries that all see the one state of the database in
// which the first of them finds it, however long fn takes and whatever is
// written meanwhile. Nothing waits for it. An error of fn is returned as it is.
func (db *DB) Snapshot(ctx context.Context, fn func(read Reader) error) error {
	t, err := db.read.BeginTx(ctx, &db.engine.snapshot)
	if err != nil {
		return fault(err)
	}
	defer t.Rollback() //nolint:errcheck // there is nothing to lose
	if db.engine.noTimeout != "" {
		if _, err := t.ExecContext(ctx, db.engine.noTimeout); err != nil {
			return fault(err)
		}
	}
	return fn(Reader{rows.On(t)})
}

// Tx is a write transaction. Now is its one instant.
type Tx struct {
	Reader
	Now time.Time
	// MailShare is whose the mails are that are queued next: a tenant's id, or the
	// client network of whoever asks for them. Mails of one share don't wait for
	// those of others, and only so many of a share are under way at once.
	MailShare    string
	forceDurable bool
	queued       bool
	filed        bool
	changes      []Change
	events       []doorward.Event
}

// Fill runs fn in one transaction that may take as long as it needs, on a database on
// which no process starts or migrates until it is over. Only store/transfer may call it.
// An error of fn is returned as it is, after rollback.
func (db *DB) Fill(ctx context.Context, fn func(tx *Tx) error) error {
	return db.engine.exclusive(ctx, db, func() error {
		t, err := db.begin(ctx)
		if err != nil {
			return fault(err)
		}
		defer t.Rollback() //nolint:errcheck // after Commit it has nothing to do
		if db.engine.noTimeout != "" {
			if _, err := t.ExecContext(ctx, db.engine.noTimeout); err != nil {
				return fault(err)
			}
		}
		if err := fn(&Tx{Reader: Reader{rows.On(t.Tx)}, Now: db.Now()}); err != nil {
			return err
		}
		return db.commit(ctx, t)
	})
}

// maxRuns bounds how often a transaction is run that the database aborted for
// the sake of another one (deadlock, serialization).
const maxRuns = 4

// Write runs fn in a transaction and commits when it returns nil. fn may run
// more than once and must have no effect but on tx. An error of fn is returned
// as it is, after rollback. Only app/access may call this. What is returned are
// the changes for the memory of nodes, to be settled (see store/lease).
func (db *DB) Write(ctx context.Context, fn func(tx *Tx) error) ([]Change, error) {
	for run := 1; ; run++ {
		changes, err := db.writeOnce(ctx, fn)
		if err == nil || run == maxRuns || !db.engine.transient(err) {
			return changes, err
		}
		giveWay(ctx, run)
	}
}

// giveWay lets the other transaction of a deadlock go first. Whoever runs again
// at once takes the row that the other was just given before that one has woken
// up, and the two meet again (seen with PostgreSQL 15, to the fourth run).
func giveWay(ctx context.Context, run int) {
	pause := time.NewTimer(time.Duration(5+rand.IntN(10)) * time.Millisecond << (run - 1))
	defer pause.Stop()
	select {
	case <-ctx.Done():
	case <-pause.C:
	}
}

func (db *DB) writeOnce(ctx context.Context, fn func(tx *Tx) error) ([]Change, error) {
	t, err := db.begin(ctx)
	if err != nil {
		return nil, fault(err)
	}
	defer t.Rollback() //nolint:errcheck // after Commit it has nothing to do
	trace.Note(ctx, "begun")
	tx := &Tx{Reader: Reader{rows.On(t.Tx)}, Now: db.Now()}
	if err := fn(tx); err != nil {
		return nil, err
	}
	if err := tx.record(ctx); err != nil {
		return nil, err
	}
	if err := tx.draw(ctx); err != nil {
		return nil, err
	}
	if tx.forceDurable && db.engine.affirm != "" {
		if err := tx.run(ctx, db.engine.affirm); err != nil {
			return nil, err
		}
	}
	if err := db.commit(ctx, t); err != nil {
		return nil, err
	}
	if tx.queued {
		signal(db.wake)
	}
	if tx.filed {
		signal(db.filed)
	}
	return tx.changes, nil
}

// ForceDurable is for a transaction that finds something so already, and whose caller is
// told. Once it is committed, what it has read can't be lost.
//
// Without it that could be: when a request is over before the standby has confirmed
// a commit, the driver asks PostgreSQL to wait no longer, and from then on everybody
// sees what may be on that server alone. A commit that has written something is
// waited for in its turn, and with it all before it.
func (tx *Tx) ForceDurable() { tx.forceDurable = true }

// ConfirmAbsent returns nil once it can't be lost that something is absent, as fn finds
// again. It is ForceDurable for a transaction that can't be committed: whatever fn writes
// is taken back. The error is unavailable, also when fn finds it there.
func (db *DB) ConfirmAbsent(ctx context.Context, fn func(tx *Tx) (absent bool, err error)) error {
	if db.engine.affirm == "" {
		return nil
	}
	t, err := db.begin(ctx)
	if err != nil {
		return fault(err)
	}
	defer t.Rollback() //nolint:errcheck // after Commit it has nothing to do
	tx := &Tx{Reader: Reader{rows.On(t.Tx)}, Now: db.Now()}
	if err := tx.run(ctx, `SAVEPOINT before`); err != nil {
		return err
	}
	if absent, err := fn(tx); err != nil || !absent {
		return fault(cmp.Or(err, errors.New("what was absent a moment ago is there")))
	}
	if err := tx.run(ctx, `ROLLBACK TO SAVEPOINT before`); err != nil {
		return err
	}
	if err := tx.run(ctx, db.engine.affirm); err != nil {
		return err
	}
	return db.commit(ctx, t)
}

// patience is how long another process's lock on the database is waited for, less
// than the 3 s in which every request is answered.
const patience = 2 * time.Second

// writing is a transaction, and the newest timeline that was met when it began.
type writing struct {
	*sql.Tx
	timeline uint32
}

// begin asks for the lock again and again, because the wait inside of SQLite
// can't be cut short when the request's time is over.
func (db *DB) begin(ctx context.Context) (writing, error) {
	write, servers := db.write, db.engine.servers
	if servers != nil && cluster.IsRenewal(ctx) {
		write = db.read // has a connection also while all writers wait for the lease
	}
	servers.ProbeIfStale(ctx)
	met := servers.Timeline()
	for began := time.Now(); ; {
		t, err := write.BeginTx(ctx, nil)
		if err == nil || !db.engine.locked(err) || ctx.Err() != nil || time.Since(began) > patience {
			return writing{t, cmp.Or(met, servers.Timeline())}, err
		}
	}
}

var errReplaced = errors.New("the primary was replaced while it committed: whether the new one has that is not known")

// commit returns nil when what was written can't be lost.
func (db *DB) commit(ctx context.Context, t writing) error {
	if err := t.Commit(); err != nil {
		return fault(err)
	}
	db.engine.servers.ProbeIfStale(ctx)
	if db.engine.servers.Timeline() > t.timeline {
		return fault(errReplaced)
	}
	return nil
}

func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// fault makes an error of the database one that no caller can mistake.
func fault(err error) error { return rows.Fault(err) }
