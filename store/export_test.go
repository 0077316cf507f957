package store

import (
	"context"
	"database/sql"
)

// Pools are the connections behind db, for tests of what SQL itself does.
func Pools(db *DB) (write, read *sql.DB) { return db.write, db.read }

// Raw runs a statement that no method has, inside the transaction. It is no
// method, since the methods of Tx are the contract.
func Raw(ctx context.Context, tx *Tx, query string) error { return tx.run(ctx, query) }

// MigrationLock is what a migrating node holds in PostgreSQL.
const MigrationLock = migrationLock

// SchemaNeeded is the schema of this binary.
var SchemaNeeded = schemaNeeded
