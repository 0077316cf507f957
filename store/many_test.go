package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// insertPeople adds a tenant with n members, by SQL.
func insertPeople(t testing.TB, db *store.DB, n int) {
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
		_, err := write.ExecContext(t.Context(), insert)
		ok(t, err)
	}
}

// insertInvitations adds n invitations with a mail each to the tenant of insertPeople, by SQL.
func insertInvitations(t testing.TB, db *store.DB, n int) {
	t.Helper()
	write, _ := store.Pools(db)
	series := fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) `, n)
	for _, insert := range []string{
		`INSERT INTO invitations (id, tenant_id, email, role, name, locale, state, created_at, expires_at, search, name_key, email_key) ` + series + `
SELECT 'inv_' || i, 'tnt_a', 'g' || i || '@acme.example', CASE WHEN i % 50 = 0 THEN 'ADMIN' ELSE 'USER' END, 'Guest ' || i, 'en',
  CASE i % 4 WHEN 0 THEN 'PENDING' WHEN 1 THEN 'REVOKED' ELSE 'ACCEPTED' END, i, i + 1000000, ' g' || i || '@acme.example guest ' || i, '70' || i, '71' || i FROM n`,
		`INSERT INTO mails (id, kind, recipient, subject_id, state, tries, next_at, created_at, last_error) ` + series + `
SELECT 'mai_' || i, 'invitation', 'g' || i || '@acme.example', 'inv_' || i, CASE WHEN i % 1000 = 0 THEN 'failed' ELSE 'sent' END, 1, i, i, '' FROM n`,
		`ANALYZE`,
	} {
		_, err := write.ExecContext(t.Context(), insert)
		ok(t, err)
	}
}

// Rows of a list are counted up to one more than doorward.MaxTotal.
func TestManyRowsAreCountedUpToALimit(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			ctx, db := t.Context(), storetest.Migrated(t, dsn(t), time.Now)
			insertPeople(t, db, doorward.MaxTotal+50)
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
