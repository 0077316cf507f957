package store

import (
	"context"
	"path/filepath"
)

// Space is the free space of a SQLite database's file system.
type Space struct {
	Folder     string
	Free       int64 // bytes, for users other than root
	Files      int64 // that can be created
	FilesKnown bool  // some file systems don't count them
}

// Space returns the free space. Errors: that of statfs(2); ErrNone for PostgreSQL, whose
// disk is on another machine, and on systems other than Linux.
func (db *DB) Space() (Space, error) {
	if db.engine.path == "" {
		return Space{}, ErrNone
	}
	return spaceOf(filepath.Dir(db.engine.path))
}

// Size returns the size of the database in bytes. Errors: unavailable.
func (db *DB) Size(ctx context.Context) (int64, error) {
	return one(ctx, db.Read(), func(n *int64) []any { return []any{n} }, db.engine.size)
}
