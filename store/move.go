package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrNotEmpty says that a database isn't as the migrations leave it.
var ErrNotEmpty = errors.New("store: the database is not empty")

// Moved is a table that was copied and compared.
type Moved struct {
	Table  string
	Rows   int64
	Digest Digest
}

// Move copies every row of one database into another, which must be as the
// migrations leave it, and compares what has arrived with what was read, in
// number and content. All of it is there afterwards, or nothing. What is copied
// follows from the migrations and is listed nowhere. Both databases must have the
// schema of this binary. progress, which may be nil, is called now and then.
//
// The source is read as of one instant; what is written there meanwhile is not
// copied, so no server should run on it (see Alive). Errors: ErrNotEmpty,
// ErrSchema, unavailable.
func Move(ctx context.Context, from, to *DB, progress func(table string, rows int64)) ([]Moved, error) {
	if err := errors.Join(from.OwnSchema(ctx), to.OwnSchema(ctx)); err != nil {
		return nil, err
	}
	plan, err := planOf(ctx)
	if err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(string, int64) {}
	}
	var moved []Moved
	err = to.engine.exclusive(ctx, to, func() error { // no node starts on it meanwhile
		moved, err = plan.move(ctx, from, to, progress)
		return err
	})
	return moved, err
}

// Digest is a sum over rows that doesn't depend on their order, since two
// databases sort text differently: the SHA-256 of each, added up modulo 2^256.
// It finds what got lost or changed on the way, not what somebody made to fit.
type Digest [4]uint64

func (d *Digest) add(row []byte) {
	sum := sha256.Sum256(row)
	carry := uint64(0)
	for i := range d {
		d[i], carry = bits.Add64(d[i], binary.LittleEndian.Uint64(sum[8*i:]), carry)
	}
}

// String is short, to be compared by eye.
func (d Digest) String() string { return fmt.Sprintf("%016x", d[0]^d[1]^d[2]^d[3]) }

// shape is a table as the migrations make it.
type shape struct {
	name    string
	columns []string
	refers  []string // to other tables
	rows    int64    // that a migration has put in
	digest  Digest   // of them
}

// plan is the tables in an order in which no row refers to a later table.
type plan []shape

// planOf migrates an empty database of its own and looks at what there is then.
func planOf(ctx context.Context) (plan, error) {
	folder, err := os.MkdirTemp("", "doorward-plan-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	empty, err := Open(ctx, "sqlite:"+filepath.Join(folder, "empty.db"), time.Now)
	if err != nil {
		return nil, err
	}
	defer empty.Close()
	if err := empty.Migrate(ctx); err != nil {
		return nil, err
	}
	names, err := texts(ctx, empty.write, `SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' AND name <> 'goose_db_version'`)
	if err != nil {
		return nil, err
	}
	var all plan
	for _, name := range names {
		s, err := shapeOf(ctx, empty.write, name)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all.sorted()
}

func shapeOf(ctx context.Context, db *sql.DB, name string) (s shape, err error) {
	s.name = name
	if s.columns, err = texts(ctx, db, `SELECT name FROM pragma_table_info($1)`, name); err != nil {
		return s, err
	}
	if s.refers, err = texts(ctx, db, `SELECT "table" FROM pragma_foreign_key_list($1)`, name); err != nil {
		return s, err
	}
	err = s.read(ctx, db, func(row []any) error {
		s.rows++
		s.digest.add(encode(row))
		return nil
	})
	return s, err
}

func texts(ctx context.Context, db querier, query string, args ...any) ([]string, error) {
	return list(ctx, Reader{db}, textColumn, query, args...)
}

func (p plan) sorted() (plan, error) {
	var done plan
	placed := func(name string) bool {
		return slices.ContainsFunc(done, func(s shape) bool { return s.name == name })
	}
	for len(done) < len(p) {
		before := len(done)
		for _, s := range p {
			if !placed(s.name) && !slices.ContainsFunc(s.refers, func(to string) bool { return !placed(to) }) {
				done = append(done, s)
			}
		}
		if len(done) == before {
			return nil, errors.New("store: move: tables refer to each other in a circle")
		}
	}
	return done, nil
}

func (p plan) move(ctx context.Context, from, to *DB, progress func(string, int64)) ([]Moved, error) {
	src, err := from.still(ctx)
	if err != nil {
		return nil, fault(err)
	}
	defer src.Rollback() //nolint:errcheck // it has only read
	dst, err := to.begin(ctx)
	if err != nil {
		return nil, fault(err)
	}
	defer dst.Rollback() //nolint:errcheck // after Commit it has nothing to do
	if err := errors.Join(unhurried(ctx, from, src), unhurried(ctx, to, dst.Tx), p.clear(ctx, dst.Tx)); err != nil {
		return nil, err
	}
	var moved []Moved
	for _, s := range p {
		m, err := s.move(ctx, src, dst.Tx, progress)
		if err != nil {
			return nil, fmt.Errorf("store: move: table %s: %w", s.name, err)
		}
		moved = append(moved, m)
	}
	return moved, to.commit(ctx, dst)
}

// still begins a transaction that sees one instant, however long it takes.
func (db *DB) still(ctx context.Context) (*sql.Tx, error) {
	if db.engine.path != "" {
		return db.read.BeginTx(ctx, nil)
	}
	return db.read.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}

// unhurried lifts the limit on idle transactions: one of the two waits while the
// other one works.
func unhurried(ctx context.Context, db *DB, t *sql.Tx) error {
	if db.engine.path != "" {
		return nil
	}
	_, err := t.ExecContext(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`)
	return fault(err)
}

// clear makes room for the rows of the source, if there is nothing but what
// migrations have put in.
func (p plan) clear(ctx context.Context, dst *sql.Tx) error {
	for _, s := range slices.Backward(p) {
		rows, digest, err := s.measure(ctx, dst)
		if err != nil {
			return err
		}
		if rows != s.rows || digest != s.digest {
			return fmt.Errorf("%w: it has %d rows in %s", ErrNotEmpty, rows, s.name)
		}
		if _, err := dst.ExecContext(ctx, `DELETE FROM `+quoted(s.name)); err != nil {
			return fault(err)
		}
	}
	return nil
}

// move copies one table and compares.
func (s shape) move(ctx context.Context, src, dst *sql.Tx, progress func(string, int64)) (Moved, error) {
	m := Moved{Table: s.name}
	w := &inserter{tx: dst, shape: s}
	err := s.read(ctx, src, func(row []any) error {
		m.Rows++
		m.Digest.add(encode(row))
		if m.Rows%progressEvery == 0 {
			progress(s.name, m.Rows)
		}
		return w.insert(ctx, row)
	})
	if err == nil {
		err = w.flush(ctx)
	}
	if err != nil {
		return m, err
	}
	progress(s.name, m.Rows)
	return m, s.compare(ctx, dst, m)
}

const progressEvery = 10_000

func (s shape) compare(ctx context.Context, dst *sql.Tx, m Moved) error {
	rows, digest, err := s.measure(ctx, dst)
	if err == nil && (rows != m.Rows || digest != m.Digest) {
		err = fmt.Errorf("%d rows were read and %d have arrived, or not as they were: nothing is moved", m.Rows, rows)
	}
	return err
}

func (s shape) measure(ctx context.Context, q querier) (rows int64, d Digest, err error) {
	err = s.read(ctx, q, func(row []any) error {
		rows++
		d.add(encode(row))
		return nil
	})
	return rows, d, err
}

// read calls fn for each row, with the values in the order of the columns: nil,
// int64, bool, string or []byte. The slice is used again.
func (s shape) read(ctx context.Context, q querier, fn func(row []any) error) error {
	rows, err := q.QueryContext(ctx, `SELECT `+s.list()+` FROM `+quoted(s.name))
	if err != nil {
		return fault(err)
	}
	defer rows.Close()
	row, to := make([]any, len(s.columns)), make([]any, len(s.columns))
	for i := range row {
		to[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return fault(err)
		}
		if err := plainValues(row); err != nil {
			return err
		}
		if err := fn(row); err != nil {
			return err
		}
	}
	return fault(rows.Err())
}

// plainValues refuses what the two drivers might hand over differently. An empty
// value of bytes comes as nil from SQLite, and would be stored as NULL.
func plainValues(row []any) error {
	for i, v := range row {
		switch v := v.(type) {
		case nil, int64, bool, string:
		case []byte:
			if v == nil {
				row[i] = []byte{}
			}
		default:
			return fmt.Errorf("a value is a %T, which databases write differently", v)
		}
	}
	return nil
}

// encode is injective: kind, length, content for each value.
func encode(row []any) []byte {
	var b []byte
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			b = append(b, 'n')
		case int64:
			b = binary.BigEndian.AppendUint64(append(b, 'i'), uint64(v))
		case bool:
			b = append(b, 'f')
			if v {
				b[len(b)-1] = 't'
			}
		case string:
			b = append(binary.BigEndian.AppendUint64(append(b, 's'), uint64(len(v))), v...)
		case []byte:
			b = append(binary.BigEndian.AppendUint64(append(b, 'x'), uint64(len(v))), v...)
		}
	}
	return b
}

func (s shape) list() string {
	var names []string
	for _, c := range s.columns {
		names = append(names, quoted(c))
	}
	return strings.Join(names, ", ")
}

// quoted takes names of ours only.
func quoted(name string) string { return `"` + name + `"` }

// inserter writes many rows by one statement.
type inserter struct {
	tx *sql.Tx
	shape
	values []any
	bytes  int // of images and the like among them
}

// batchOfValues is below what a statement may have: 32766 in SQLite, 65535 in
// PostgreSQL.
const batchOfValues = 5_000

// batchOfBytes bounds the memory of a statement: some rows are images.
const batchOfBytes = 4 << 20

func (w *inserter) insert(ctx context.Context, row []any) error {
	w.values = append(w.values, row...)
	for _, v := range row {
		if b, ok := v.([]byte); ok {
			w.bytes += len(b)
		}
	}
	if len(w.values)+len(row) <= batchOfValues && w.bytes < batchOfBytes {
		return nil
	}
	return w.flush(ctx)
}

func (w *inserter) flush(ctx context.Context) error {
	if len(w.values) == 0 {
		return nil
	}
	var query strings.Builder
	fmt.Fprintf(&query, `INSERT INTO %s (%s) VALUES `, quoted(w.name), w.list())
	for i := range w.values {
		switch {
		case i == 0:
			query.WriteString("(")
		case i%len(w.columns) == 0:
			query.WriteString("), (")
		default:
			query.WriteString(", ")
		}
		fmt.Fprintf(&query, "$%d", i+1)
	}
	query.WriteString(")")
	_, err := w.tx.ExecContext(ctx, query.String(), w.values...)
	w.values, w.bytes = w.values[:0], 0
	return fault(err)
}

// aliveEvery is how often Alive looks.
const aliveEvery = 50 * time.Millisecond

// Alive reports whether a server runs on the database: whether any node that is
// registered shows that it lives. Of those that were killed it is sure after
// three leases, some seconds; without rows it is at once. The error is
// unavailable.
func (db *DB) Alive(ctx context.Context) (bool, error) {
	first, err := db.Read().peers(ctx)
	if err != nil || len(first) == 0 {
		return false, err
	}
	longest := time.Duration(0)
	for _, p := range first {
		longest = max(longest, time.Duration(p.lease)*time.Microsecond)
	}
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for end := time.Now().Add(dead * longest); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return false, fault(ctx.Err())
		case <-tick.C:
		}
		now, err := db.Read().peers(ctx)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(now, func(p peer) bool { return beaten(first, p) }) {
			return true, nil
		}
	}
	return false, nil
}

// beaten reports whether a node has shown a sign of life since, or is new.
func beaten(before []peer, now peer) bool {
	return !slices.ContainsFunc(before, func(p peer) bool { return p.id == now.id && p.beat == now.beat })
}
