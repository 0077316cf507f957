package store

import (
	"context"
	"path/filepath"
)

// Space is the room that a database takes and has left, in bytes.
type Space struct {
	Size int64
	// Free is what is left for a SQLite file. HasFree says whether it is known: of a
	// PostgreSQL it isn't, whose disk is another machine's.
	Free    int64
	HasFree bool
}

// Space asks the database and, for SQLite, the file system. Errors: unavailable.
func (db *DB) Space(ctx context.Context) (s Space, err error) {
	size := func(n *int64) []any { return []any{n} }
	if s.Size, err = one(ctx, db.Read(), size, db.engine.size); err != nil || db.engine.path == "" {
		return s, err
	}
	s.Free, s.HasFree = freeBytes(filepath.Dir(db.engine.path))
	return s, nil
}
