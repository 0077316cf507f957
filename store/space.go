package store

import (
	"context"
	"path/filepath"
)

// Space is what is left on the file system of a SQLite database.
type Space struct {
	Folder     string
	Free       int64 // bytes, for those who aren't root
	Files      int64 // that can be made yet
	FilesKnown bool  // some file systems don't count them
}

// Space returns what is left beside a SQLite database. Errors: ErrNone of PostgreSQL,
// whose disk is another machine's, and where the system doesn't tell.
func (db *DB) Space() (Space, error) {
	if db.engine.path == "" {
		return Space{}, ErrNone
	}
	return spaceOf(filepath.Dir(db.engine.path))
}

// Size returns how many bytes the database takes. Errors: unavailable.
func (db *DB) Size(ctx context.Context) (int64, error) {
	return one(ctx, db.Read(), func(n *int64) []any { return []any{n} }, db.engine.size)
}
