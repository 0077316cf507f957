package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/doorward/doorward/store"
)

func TestSameDatabase(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("there.db", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("there.db", "link.db"); err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("none.db")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"sqlite:there.db", "sqlite:there.db", true},
		{"sqlite:there.db", "sqlite:./there.db", true},
		{"sqlite:there.db", "sqlite:link.db", true},
		{"sqlite:none.db", "sqlite:" + here, true},
		{"sqlite:there.db", "sqlite:none.db", false},
		{"sqlite:none.db", "sqlite:other.db", false},
		{"sqlite:there.db", "postgres://localhost/doorward", false},
		{"postgres://ann:secret@localhost/doorward", "postgresql://bob@localhost:5432/doorward?sslmode=disable", true},
		{"postgres://localhost/doorward", "postgres://localhost/other", false},
		{"postgres://localhost/doorward", "postgres://localhost:5433/doorward", false},
		{"postgres://localhost/doorward?search_path=a", "postgres://localhost/doorward?search_path=b", false},
		{"postgres://db1/doorward", "postgres://db2/doorward", false},
	} {
		if got := store.SameDatabase(c.a, c.b); got != c.same {
			t.Errorf("%s and %s: the same database: %v, want %v", c.a, c.b, got, c.same)
		}
		if got := store.SameDatabase(c.b, c.a); got != c.same {
			t.Errorf("%s and %s: the same database: %v, want %v", c.b, c.a, got, c.same)
		}
	}
}
