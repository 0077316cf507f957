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
