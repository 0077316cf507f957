package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// manyPeople is a tenant with so many members, by SQL.
func manyPeople(t *testing.T, db *store.DB, n int) {
	t.Helper()
	write, _ := store.Pools(db)
	series := fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) `, n)
	for _, insert := range []string{
		`INSERT INTO tenants (id, name, status, created_at) VALUES ('tnt_a', 'Acme', 'active', 1)`,
		`INSERT INTO users (id, email, password_hash, created_at) ` + series + `SELECT 'usr_' || i, 'p' || i || '@acme.example', '', i FROM n`,
		`INSERT INTO memberships (tenant_id, user_id, role, status, name, search, name_key, email_key, created_at) ` + series + `
SELECT 'tnt_a', 'usr_' || i, CASE WHEN i % 50 = 0 THEN 'ADMIN' ELSE 'USER' END, CASE WHEN i % 100 = 0 THEN 'suspended' ELSE 'active' END,
  'Person ' || i, ' p' || i || '@acme.example person ' || i, '70' || i, '71' || i, i FROM n`,
		`ANALYZE`,
	} {
		ok(t, execute(t, write, insert))
	}
}

// Rows of a list are counted up to a limit, beyond which only that there are more is known.
func TestManyRowsAreCountedUpToALimit(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			ctx, db := t.Context(), storetest.Migrated(t, dsn(t), time.Now)
			manyPeople(t, db, doorward.MaxTotal+50)
			for text, want := range map[string]int{"": doorward.MaxTotal + 1, "person acme": doorward.MaxTotal + 1, "p1005": 2, "nobody": 0} {
				found, err := db.Read().UserPage(ctx, "tnt_a", store.UserFilter{Text: text}, doorward.Window{Limit: 20, Count: true})
				ok(t, err)
				if found.Total != want || len(found.Items) != min(want, 20) {
					t.Errorf("%q: %d rows in all, %d on the page, want %d", text, found.Total, len(found.Items), want)
				}
			}
		})
	}
}
