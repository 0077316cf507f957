package store

import (
	"context"
	"database/sql"
)

// Pools are the connections of db, for tests of SQL itself.
func Pools(db *DB) (write, read *sql.DB) { return db.write, db.read }

// Raw runs an arbitrary statement in the transaction. It isn't a method, since the
// methods of Tx are the contract.
func Raw(ctx context.Context, tx *Tx, query string) error { return tx.run(ctx, query) }

// MigrationLock is the lock in PostgreSQL of a node that migrates.
const MigrationLock = migrationLock

// EveryList are the statements that read lists.
func EveryList() []string { return everyList }

// SchemaNeeded is the schema that this binary needs.
var SchemaNeeded = schemaNeeded

// SealedColumns are the columns that Reseal knows, as table.column.
func SealedColumns() (all []string) {
	for _, c := range sealedIn {
		all = append(all, c.table+"."+c.column)
	}
	return all
}

// EventStatements are the statements of a search in a trail, and their arguments up to the
// position: of its first page, of a next one, and of its count.
func EventStatements(f EventFilter) (first, after, total string, args []any) {
	p := eventPages[f.by()]
	s := p.statements["at"]
	args = []any{"tnt_1", int64(0), int64(1) << 60, string(f.Action), f.Actor, f.Target, string(f.Outcome), f.Request}
	return s.down, s.before, p.total, args
}
