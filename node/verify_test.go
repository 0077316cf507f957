package node_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/doorward/doorward/node"
)

// TestVerifyBackupOfOlderSchema: a backup of each older version can be verified, and a trail
// that was cut off is found in it.
func TestVerifyBackupOfOlderSchema(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "doorward.db")
	newest := migrateTo(t, file, 3)
	verified(t, file, false, 0)
	for schema := int64(4); schema <= newest; schema++ {
		migrateTo(t, file, schema)
		if schema > 4 && schema < 26 {
			continue // each is migrated to the newest: the first and the last are enough
		}
		verified(t, file, true, 0)
		alter(t, file, `INSERT INTO audit_chains (tenant_id, origin, last) VALUES ('tnt_x', 0, 5)`)
		verified(t, file, true, 1)
		alter(t, file, `DELETE FROM audit_chains`)
	}
}

// migrateTo brings the database to a version of the schema, and returns the newest version.
func migrateTo(t *testing.T, file string, schema int64) (newest int64) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	migrations, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS("../store/schema"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = migrations.UpTo(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	sources := migrations.ListSources()
	return sources[len(sources)-1].Version
}

func alter(t *testing.T, file, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err = db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func verified(t *testing.T, file string, hasTrail bool, tampered int) {
	t.Helper()
	v, err := node.VerifyBackup(t.Context(), file)
	if err != nil || v.HasTrail != hasTrail || v.Tampered != tampered {
		t.Errorf("schema %d: %+v, %v; want HasTrail %t, Tampered %d", v.Schema, v, err, hasTrail, tampered)
	}
}
