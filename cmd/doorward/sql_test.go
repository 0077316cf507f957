package main

import (
	"database/sql"
	"path/filepath"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

// openSQL opens a database of the program for the test's SQL; SQLite is a file in the
// folder.
func openSQL(dsn, folder string) (*sql.DB, error) {
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		return sql.Open("sqlite", path+"?_pragma=busy_timeout(10000)") // a server may be writing
	}
	return sql.Open("pgx", dsn)
}
