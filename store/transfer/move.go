package transfer

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

	"github.com/doorward/doorward/internal/progress"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/internal/rows"
	"github.com/doorward/doorward/store/internal/sqlitefile"
)

// ErrNotEmpty says that a database has rows other than those of the migrations.
var ErrNotEmpty = errors.New("store: the database is not empty")

// MovedTable is a table that was copied and verified.
type MovedTable struct {
	Table  string
	Rows   int64
	Digest Digest
}

// Move copies every row of one database, as of one instant, into another that has only the
// rows of the migrations, and compares number and content, in one transaction. Both must
// have the schema of this binary. Later writes aren't copied, so no server should run on the
// source (see lease.Alive). Errors: ErrNotEmpty, store.ErrSchema, unavailable.
func Move(ctx context.Context, from, to *store.DB) (moved []MovedTable, err error) {
	if err := errors.Join(from.CheckOwnSchema(ctx), to.CheckOwnSchema(ctx)); err != nil {
		return nil, err
	}
	plan, err := planOf(ctx)
	if err != nil {
		return nil, err
	}
	progress.Step(ctx, "waiting for the new database", 0, nil)
	err = to.Fill(ctx, func(dst *store.Tx) error {
		return from.Snapshot(ctx, func(src store.Reader) error {
			moved, err = plan.move(ctx, src.Conn, dst.Conn)
			return err
		})
	})
	return moved, err
}

// Digest is a sum over rows in any order, since two databases sort text differently: each
// row's SHA-256, added up modulo 2^256. It detects accidental loss and changes, not
// forgery.
type Digest [4]uint64

func (d *Digest) add(row []byte) {
	sum := sha256.Sum256(row)
	carry := uint64(0)
	for i := range d {
		d[i], carry = bits.Add64(d[i], binary.LittleEndian.Uint64(sum[8*i:]), carry)
	}
}

// String returns a short form for people to compare.
func (d Digest) String() string { return fmt.Sprintf("%016x", d[0]^d[1]^d[2]^d[3]) }

// table describes a table as made by the migrations.
type table struct {
	name       string
	columns    []string
	kinds      []string // the declared types of the columns
	references []string // the tables that its rows refer to
	count      int64    // of the rows inserted by migrations
	digest     Digest   // of these rows
}

// plan lists the tables so that no row refers to a later table.
type plan []table

// planOf migrates a new, empty database and reads its tables.
func planOf(ctx context.Context) (plan, error) {
	folder, err := os.MkdirTemp("", "doorward-plan-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "empty.db")
	if err := migrateNew(ctx, path); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", sqlitefile.DSN(path, "mode=ro"))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	empty := rows.NewConn(db)
	names, err := texts(ctx, empty, `SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' AND name <> 'goose_db_version'`)
	if err != nil {
		return nil, err
	}
	var all plan
	for _, name := range names {
		t, err := tableOf(ctx, empty, name)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all.sorted()
}

func migrateNew(ctx context.Context, path string) error {
	db, err := store.Open(ctx, "sqlite:"+path, time.Now)
	if err != nil {
		return err
	}
	return errors.Join(db.Migrate(ctx), db.Close())
}

func tableOf(ctx context.Context, c rows.Conn, name string) (t table, err error) {
	t.name = name
	if t.columns, err = texts(ctx, c, `SELECT name FROM pragma_table_info($1)`, name); err != nil {
		return t, err
	}
	if t.kinds, err = texts(ctx, c, `SELECT type FROM pragma_table_info($1)`, name); err != nil {
		return t, err
	}
	if t.references, err = texts(ctx, c, `SELECT "table" FROM pragma_foreign_key_list($1)`, name); err != nil {
		return t, err
	}
	t.count, t.digest, err = t.measure(ctx, c)
	return t, err
}

func texts(ctx context.Context, c rows.Conn, query string, args ...any) ([]string, error) {
	return rows.List(ctx, c, func(s *string) []any { return []any{s} }, query, args...)
}

// sorted puts each table after those that it refers to.
func (p plan) sorted() (plan, error) {
	var done plan
	placed := func(name string) bool {
		return slices.ContainsFunc(done, func(t table) bool { return t.name == name })
	}
	for len(done) < len(p) {
		before := len(done)
		for _, t := range p {
			if !placed(t.name) && !slices.ContainsFunc(t.references, func(to string) bool { return !placed(to) }) {
				done = append(done, t)
			}
		}
		if len(done) == before {
			return nil, errors.New("store: tables refer to each other in a cycle")
		}
	}
	return done, nil
}

func (p plan) move(ctx context.Context, src, dst rows.Conn) (moved []MovedTable, err error) {
	if err := p.clear(ctx, dst); err != nil {
		return nil, err
	}
	total, err := p.count(ctx, src)
	if err != nil {
		return nil, err
	}
	progress.Step(ctx, "copying and comparing rows", 2*total, nil) // each is read from both databases
	for _, t := range p {
		m, err := t.move(ctx, src, dst)
		if err != nil {
			return nil, fmt.Errorf("store: move: table %s: %w", t.name, err)
		}
		moved = append(moved, m)
	}
	return moved, nil
}

// count counts the rows of all tables.
func (p plan) count(ctx context.Context, src rows.Conn) (total int64, err error) {
	progress.Step(ctx, "counting rows", 0, nil)
	for _, t := range p {
		n, err := rows.One(ctx, src, func(n *int64) []any { return []any{n} }, `SELECT count(*) FROM `+quoted(t.name))
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// clear deletes the rows inserted by migrations. Errors: ErrNotEmpty if there are others, or
// these have changed.
func (p plan) clear(ctx context.Context, dst rows.Conn) error {
	for _, t := range slices.Backward(p) {
		count, digest, err := t.measure(ctx, dst)
		if err != nil {
			return err
		}
		if count != t.count || digest != t.digest {
			return fmt.Errorf("%w: %s", ErrNotEmpty, describeContent(ctx, dst))
		}
		if _, err := rows.Exec(ctx, dst, `DELETE FROM `+quoted(t.name)); err != nil {
			return err
		}
	}
	return nil
}

const (
	countedPeople  = `SELECT count(*), coalesce(min(created_at), 0) FROM users`
	countedTenants = `SELECT count(*), coalesce(min(created_at), 0) FROM tenants`
)

// describeContent says what a database has, so that an operator sees whether it is the result of an earlier move. It
// must have the schema.
func describeContent(ctx context.Context, db rows.Conn) string {
	type counted struct{ count, oldest int64 }
	fields := func(c *counted) []any { return []any{&c.count, &c.oldest} }
	people, err := rows.One(ctx, db, fields, countedPeople)
	tenants, tenantsErr := rows.One(ctx, db, fields, countedTenants)
	if err = errors.Join(err, tenantsErr); err != nil || people.count+tenants.count == 0 {
		return "it has no people and no tenants, but was in use"
	}
	first := people.oldest
	if people.count == 0 || tenants.count > 0 && tenants.oldest < first {
		first = tenants.oldest
	}
	return fmt.Sprintf("it has %d people and %d tenants, the first since %s", people.count, tenants.count, time.UnixMicro(first).UTC().Format(time.RFC3339))
}

// move copies one table and compares the rows.
func (t table) move(ctx context.Context, src, dst rows.Conn) (MovedTable, error) {
	m := MovedTable{Table: t.name}
	w := &inserter{dst: dst, table: t}
	err := t.read(ctx, src, func(row []any) error {
		m.Rows++
		m.Digest.add(encode(row))
		return w.insert(ctx, row)
	})
	if err == nil {
		err = w.flush(ctx)
	}
	if err != nil {
		return m, err
	}
	return m, t.compare(ctx, dst, m)
}

func (t table) compare(ctx context.Context, dst rows.Conn, m MovedTable) error {
	count, digest, err := t.measure(ctx, dst)
	if err == nil && (count != m.Rows || digest != m.Digest) {
		err = fmt.Errorf("%d rows were read and %d were written, or their contents differ: nothing was moved", m.Rows, count)
	}
	return err
}

func (t table) measure(ctx context.Context, c rows.Conn) (count int64, d Digest, err error) {
	err = t.read(ctx, c, func(row []any) error {
		count++
		d.add(encode(row))
		return nil
	})
	return count, d, err
}

// read calls fn for each row, with the values in the order of the columns: nil, int64,
// bool, string or []byte. The slice is reused.
func (t table) read(ctx context.Context, c rows.Conn, fn func(row []any) error) error {
	all, err := rows.Query(ctx, c, `SELECT `+t.columnList()+` FROM `+quoted(t.name))
	if err != nil {
		return err
	}
	defer all.Close()
	row, dest := make([]any, len(t.columns)), make([]any, len(t.columns))
	for i := range row {
		dest[i] = &row[i]
	}
	for all.Next() {
		if err := all.Scan(dest...); err != nil {
			return rows.Fault(err)
		}
		if err := t.normalize(row); err != nil {
			return err
		}
		if err := fn(row); err != nil {
			return err
		}
		progress.Add(ctx, 1)
	}
	return rows.Fault(all.Err())
}

// normalize makes the values of both drivers equal, and refuses types that they might return
// differently. SQLite's returns an empty byte value as nil, which would be stored as NULL,
// and a boolean as a number.
func (t table) normalize(row []any) error {
	for i, v := range row {
		switch v := v.(type) {
		case nil, bool, string:
		case int64:
			if t.kinds[i] == "BOOLEAN" {
				row[i] = v != 0
			}
		case []byte:
			if v == nil {
				row[i] = []byte{}
			}
		default:
			return fmt.Errorf("a value of the Go type %T, which the databases may store differently", v)
		}
	}
	return nil
}

// encode writes kind, length and content of each value, so that different rows never give the
// same bytes.
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

func (t table) columnList() string {
	var names []string
	for _, c := range t.columns {
		names = append(names, quoted(c))
	}
	return strings.Join(names, ", ")
}

// quoted is for names from our own migrations only.
func quoted(name string) string { return `"` + name + `"` }

// inserter writes many rows with one statement.
type inserter struct {
	dst rows.Conn
	table
	values []any
	bytes  int // of the binary values among them
}

const (
	// maxValues is below the limit of a statement: 32766 in SQLite, 65535 in PostgreSQL.
	maxValues = 5_000
	// maxBytes bounds the memory of a statement: some rows are images.
	maxBytes = 4 << 20
)

func (w *inserter) insert(ctx context.Context, row []any) error {
	w.values = append(w.values, row...)
	for _, v := range row {
		if b, ok := v.([]byte); ok {
			w.bytes += len(b)
		}
	}
	if len(w.values)+len(row) <= maxValues && w.bytes < maxBytes {
		return nil
	}
	return w.flush(ctx)
}

func (w *inserter) flush(ctx context.Context) error {
	if len(w.values) == 0 {
		return nil
	}
	var query strings.Builder
	fmt.Fprintf(&query, `INSERT INTO %s (%s) VALUES `, quoted(w.name), w.columnList())
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
	_, err := rows.Exec(ctx, w.dst, query.String(), w.values...)
	w.values, w.bytes = w.values[:0], 0
	return err
}
