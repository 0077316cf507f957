// Package store keeps Doorward's rows, in SQLite or PostgreSQL, with one query
// text and one set of migrations for both.
//
// It holds no business rule; those are in app. It guarantees how rows are written:
// a Write commits as a unit, with one time for all its rows. What may succeed only
// once is a single conditional statement, which reports whether it changed a row.
//
// A missing row is ErrNone. A fault of the database is a *doorward.Error with the code
// unavailable: it never looks like a missing row, so no caller can turn it into a
// refusal.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/store/internal/cluster"
	"github.com/doorward/doorward/store/internal/rows"
)

// ErrNone is returned when the one row asked for doesn't exist, and by methods for what the
// database doesn't have.
var ErrNone = rows.ErrNone

// DB is an open database. It is safe for concurrent use.
type DB struct {
	engine engine
	write  *sql.DB // SQLite: a single connection
	read   *sql.DB
	clock  *Clock
	rules  *rulesCache
	close  func() error
	pools  func() []Pool
	log    *slog.Logger       // of migrations
	watch  func(query string) // nil, except in tests: see Watch

	mailQueued, deliveryQueued, inboxFiled chan struct{} // see the methods of these names
	loginRefused                           chan struct{} // nil for SQLite
}

// engine is what differs between the two databases.
type engine struct {
	name      string
	transient func(error) bool // the transaction may be run again
	locked    func(error) bool // another process is writing
	full      func(error) bool // there is no space for what is to be written
	// exclusive runs fn under a lock that one process at a time has on the database. conn is
	// the connection of PostgreSQL that holds it; nil for SQLite.
	exclusive func(ctx context.Context, db *DB, fn func(conn *sql.Conn) error) error
	// lockTimedOut reports whether a migration failed because it did not get a lock.
	lockTimedOut  func(error) bool
	versions      string           // statement: makes the table of migrations
	path          string           // of a SQLite file; else empty
	servers       *cluster.Servers // nil unless a PostgreSQL DSN names several
	tables        string           // query: the names of all tables
	indexes       string           // query: the names of all indexes that can be used
	hasMigrations string           // query: 1 if the table of migrations exists, else 0
	// clock is a query for the engine's clock in microseconds and the installation's
	// offset. The clock of SQLite is this machine's, so its query returns 0.
	clock string
	// snapshot starts a transaction whose queries all see one state. noTimeout, unless
	// empty, is a statement that lets it run for as long as it needs.
	snapshot  sql.TxOptions
	noTimeout string
	// listen is that of DB.Listen; nil without notifications. notify is the statement
	// that sends one.
	listen func(ctx context.Context, wake func()) error
	notify string
	// setPassword is that of DB.SetPassword; nil where there is no login.
	setPassword func(dsn string) error
	// direct opens a connection outside of the pool, without prepared statements; nil
	// for SQLite.
	direct func(ctx context.Context) (*pgx.Conn, error)
	// touch is a statement that records a use of a session, and passes over a row that another transaction
	// has locked. SQLite has no locks on rows.
	touch string
	// lockTenant is a statement that waits for transactions that insert rows which refer to a tenant, and keeps
	// others from doing so; empty for SQLite, which has one writer at a time.
	lockTenant string
	// forceDurable is a statement that writes to the write-ahead log only, so that a
	// commit without changes is waited for like one with changes (Tx.ForceDurable); empty
	// for SQLite, where no commit can be lost.
	forceDurable string
	size         string // query: the size of the database in bytes
	// synchronous is a query: whether a commit waits for another server; empty for
	// SQLite.
	synchronous string
	tryCommit   string // statement of DB.TryCommit; empty for SQLite
}

// Open opens the database named by dsn, "sqlite:PATH" or "postgres://…", without
// touching its schema (see Migrate and CheckSchema). now replaces the database's
// clock in tests; else it is nil, see StartClock.
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
	db.log, db.clock = slog.New(slog.DiscardHandler), newClock(now)
	db.mailQueued, db.deliveryQueued, db.inboxFiled = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	return db, nil
}

// SetPassword makes new connections to PostgreSQL log in with the password that dsn has now, in itself or
// in a password file that it names. All else of dsn is ignored: it stays as it was at Open. Connections that
// are open stay open, since PostgreSQL asks for the password only when one is made. SQLite has none.
func (db *DB) SetPassword(dsn string) error {
	if db.engine.setPassword == nil {
		return nil
	}
	if err := db.engine.setPassword(dsn); err != nil {
		return fmt.Errorf("store: %w", err) // pgx masks the password
	}
	return nil
}

// LoginRefused gets a value after PostgreSQL has refused the password of a new connection. It is nil for
// SQLite.
func (db *DB) LoginRefused() <-chan struct{} { return db.loginRefused }

// OpenExisting is Open, but fails if a SQLite file doesn't exist.
func OpenExisting(ctx context.Context, dsn string, now doorward.Clock) (*DB, error) {
	if path, isSQLite := strings.CutPrefix(dsn, "sqlite:"); isSQLite {
		if _, err := os.Stat(path); err != nil {
			return nil, fault(err)
		}
	}
	return Open(ctx, dsn, now)
}

// Synchronous reports whether commits wait for another server, so that no failover
// loses what was answered. It asks PostgreSQL, not the tool that manages it.
// ErrNone for SQLite.
func (db *DB) Synchronous(ctx context.Context) (yes bool, err error) {
	if db.engine.synchronous == "" {
		return false, ErrNone
	}
	err = db.read.QueryRowContext(ctx, db.engine.synchronous).Scan(&yes)
	return yes, fault(err)
}

// TryCommit commits a record that is in the write-ahead log only. If commits wait for
// another server, it returns when that server has the record. ErrNone for SQLite.
func (db *DB) TryCommit(ctx context.Context) error {
	if db.engine.tryCommit == "" {
		return ErrNone
	}
	_, err := db.write.ExecContext(ctx, db.engine.tryCommit)
	return fault(err)
}

// scheme is the part of a DSN that holds no secret.
func scheme(dsn string) string {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		return u.Scheme + ":…"
	}
	return "…"
}

// LogTo logs the progress of migrations, and what they wait for. Without it nothing is logged.
func (db *DB) LogTo(log *slog.Logger) { db.log = log }

// Close closes all connections.
func (db *DB) Close() error { return db.close() }

// Engine is "sqlite" or "postgres".
func (db *DB) Engine() string { return db.engine.name }

// Ping tests the connection to the database.
func (db *DB) Ping(ctx context.Context) error { return fault(db.read.PingContext(ctx)) }

// Servers are the servers of the DSN, whose primary the lease follows; nil for a
// single one.
func (db *DB) Servers() *cluster.Servers { return db.engine.servers }

// Listen calls wake for every notification of NotifyNodes until ctx ends, the connection
// breaks, or a newer primary is seen. The error is nil only in the last case. ErrNone for
// SQLite.
func (db *DB) Listen(ctx context.Context, wake func()) error {
	if db.engine.listen == nil {
		return ErrNone
	}
	return db.engine.listen(ctx, wake)
}

// NotifyNodes wakes all nodes that Listen; it does nothing for SQLite. The error
// is unavailable.
func (db *DB) NotifyNodes(ctx context.Context) error {
	if db.engine.notify == "" {
		return nil
	}
	_, err := db.write.ExecContext(ctx, db.engine.notify)
	return fault(err)
}

// MailQueued gets a value after a commit of this process that queued mail. Mail of other
// processes is found by polling.
func (db *DB) MailQueued() <-chan struct{} { return db.mailQueued }

// DeliveryQueued gets a value after a commit of this process that queued a delivery to a
// webhook. Those of other processes are found by polling.
func (db *DB) DeliveryQueued() <-chan struct{} { return db.deliveryQueued }

// InboxFiled gets a value after a commit of this process that added to the inbox. Rows of
// other processes are found by polling.
func (db *DB) InboxFiled() <-chan struct{} { return db.inboxFiled }

// Read returns the queries, each run in its own transaction.
func (db *DB) Read() Reader { return db.reader(db.read) }

// Snapshot runs fn with queries that all see one state of the database, however
// long fn takes. It blocks no writer. An error of fn is returned unchanged.
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
	return fn(db.reader(t))
}

// Tx is a write transaction. Now is the time of everything it writes.
type Tx struct {
	Reader
	Now time.Time
	// MailShare is the share in which the mails that are queued next count: the id of a tenant
	// or caller, or the IP address or network of the client. The dispatch of mail is fair between
	// shares and limits each of them.
	MailShare string
	// Effects are what the statements have changed so far of who may do what.
	Effects doorward.Effects

	forceDurable   bool
	mailQueued     bool
	deliveryQueued bool
	inboxFiled     bool
	changes        []Change
	events         []doorward.Event
	counts         map[string]int64 // by tenant: how many of the events count in its quota
}

// Fill runs fn in one transaction without a time limit, while no process starts on
// the database or migrates it. Only store/transfer may call it. An error of fn is
// returned unchanged, after rollback.
func (db *DB) Fill(ctx context.Context, fn func(tx *Tx) error) error {
	return db.engine.exclusive(ctx, db, func(*sql.Conn) error {
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
		if err := fn(&Tx{Reader: db.reader(t.Tx), Now: db.Now()}); err != nil {
			return err
		}
		return db.commit(ctx, t)
	})
}

// maxRuns bounds how often a transaction is run if the database aborts it because of
// another one (deadlock, serialization).
const maxRuns = 4

// Write runs fn in a transaction and commits if it returns nil. fn may run more
// than once and must have no effect except on tx. An error of fn is returned
// unchanged, after rollback. Only app/access may call this. It returns the changes
// that the caller must settle (see store/lease).
func (db *DB) Write(ctx context.Context, fn func(tx *Tx) error) ([]Change, error) {
	for run := 1; ; run++ {
		changes, err := db.writeOnce(ctx, fn)
		if err == nil || run == maxRuns || !db.engine.transient(err) {
			return changes, err
		}
		backOff(ctx, run)
	}
}

// backOff waits before a transaction is run again. Without the wait it would take
// the same lock again before the other transaction of the deadlock wakes up (seen
// with PostgreSQL 15, up to the fourth run).
func backOff(ctx context.Context, run int) {
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
	tx := &Tx{Reader: db.reader(t.Tx), Now: db.Now()}
	if err := fn(tx); err != nil {
		return nil, err
	}
	if err := tx.writeEvents(ctx); err != nil {
		return nil, err
	}
	if err := tx.writeChanges(ctx); err != nil {
		return nil, err
	}
	if tx.forceDurable && db.engine.forceDurable != "" {
		if err := tx.run(ctx, db.engine.forceDurable); err != nil {
			return nil, err
		}
	}
	if err := db.commit(ctx, t); err != nil {
		return nil, err
	}
	if tx.mailQueued {
		signal(db.mailQueued)
	}
	if tx.deliveryQueued {
		signal(db.deliveryQueued)
	}
	if tx.inboxFiled {
		signal(db.inboxFiled)
	}
	return tx.changes, nil
}

// ForceDurable makes the commit wait for the standby although the transaction changes
// nothing. It is for answers that the state is already as requested: another transaction's
// rows can be visible before the standby has them, and a failover would undo them. A commit
// that writes is waited for, and with it all commits before it.
func (tx *Tx) ForceDurable() { tx.forceDurable = true }

// ConfirmAbsent returns nil once fn has found that an object is absent and no failover
// can bring it back. It is ForceDurable for a transaction that must be rolled back: what
// fn writes is undone. The error is unavailable, also when fn finds the object. For SQLite,
// where no failover happens, it returns nil without calling fn.
func (db *DB) ConfirmAbsent(ctx context.Context, fn func(tx *Tx) (absent bool, err error)) error {
	if db.engine.forceDurable == "" {
		return nil
	}
	t, err := db.begin(ctx)
	if err != nil {
		return fault(err)
	}
	defer t.Rollback() //nolint:errcheck // after Commit it has nothing to do
	tx := &Tx{Reader: db.reader(t.Tx), Now: db.Now()}
	if err := tx.run(ctx, `SAVEPOINT before`); err != nil {
		return err
	}
	if absent, err := fn(tx); err != nil || !absent {
		return fault(cmp.Or(err, errors.New("the object exists again")))
	}
	if err := tx.run(ctx, `ROLLBACK TO SAVEPOINT before`); err != nil {
		return err
	}
	if err := tx.run(ctx, db.engine.forceDurable); err != nil {
		return err
	}
	return db.commit(ctx, t)
}

// Nested runs fn, and takes back what it has written if it fails, so that the transaction can go on. It returns the error of
// fn unchanged. It is for transactions that are rolled back in the end: what fn has announced to other nodes stays announced.
func (tx *Tx) Nested(ctx context.Context, fn func() error) error {
	if err := tx.run(ctx, `SAVEPOINT nested`); err != nil {
		return err
	}
	err := fn()
	if err != nil {
		if back := tx.run(ctx, `ROLLBACK TO SAVEPOINT nested`); back != nil {
			return back
		}
	}
	return cmp.Or(tx.run(ctx, `RELEASE SAVEPOINT nested`), err) // else one around it would be taken back to this one
}

// lockTimeout is how long to wait for another process's lock on the database, less
// than the 3 s in which every request is answered.
const lockTimeout = 2 * time.Second

// writeTx is a transaction, and the newest timeline known when it began.
type writeTx struct {
	*sql.Tx
	timeline uint32
}

// begin begins a transaction. While another process has the lock on a SQLite file it
// tries again, for up to lockTimeout: SQLite's own wait can't be cancelled with the request, so
// each try waits only for the busy_timeout of openSQLite.
func (db *DB) begin(ctx context.Context) (writeTx, error) {
	write, servers := db.write, db.engine.servers
	if servers != nil && cluster.IsRenewal(ctx) {
		write = db.read // its pool has a free connection while all writers wait for the lease
	}
	servers.ProbeIfStale(ctx)
	known := servers.Timeline()
	for began := time.Now(); ; {
		t, err := write.BeginTx(ctx, nil)
		if err == nil || !db.engine.locked(err) || ctx.Err() != nil || time.Since(began) > lockTimeout {
			// known is 0 before the first connection, which BeginTx has made.
			return writeTx{t, cmp.Or(known, servers.Timeline())}, err
		}
	}
}

var errReplaced = errors.New("the primary was replaced during the commit: the new primary may lack the commit")

// commit commits, and returns nil only if the commit can't be lost.
func (db *DB) commit(ctx context.Context, t writeTx) error {
	if err := t.Commit(); err != nil {
		return fault(err)
	}
	db.engine.servers.ProbeIfStale(ctx)
	if db.engine.servers.Timeline() > t.timeline {
		return fault(errReplaced)
	}
	return nil
}

// signal puts a value into the channel unless one is waiting there.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// fault turns an error of the database into unavailable.
func fault(err error) error { return rows.Fault(err) }
