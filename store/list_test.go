package store_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// TestListsAreFolded: rows that a node of the previous version has written can be searched and
// sorted without regard to case and accents once FoldLists has folded them, in batches.
func TestListsAreFolded(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			ctx, db := t.Context(), storetest.Migrated(t, dsn(t), time.Now)
			write := func(fn func(tx *store.Tx) error) {
				_, err := db.Write(ctx, fn)
				ok(t, err)
			}
			write(func(tx *store.Tx) error {
				for _, query := range []string{
					`INSERT INTO tenants (id, name, status, created_at) VALUES ('tnt_a', 'Zoë', 'active', 1)`,
					`INSERT INTO users (id, email, password_hash, created_at) VALUES ('usr_a', 'a@acme.example', '', 1), ('usr_b', 'b@acme.example', '', 1)`,
					`INSERT INTO memberships (tenant_id, user_id, role, status, name, search, created_at)
VALUES ('tnt_a', 'usr_a', 'USER', 'active', 'Zoë Müller', 'a@acme.example zoë müller', 1), ('tnt_a', 'usr_b', 'USER', 'active', 'Élodie', 'b@acme.example élodie', 2)`,
					`INSERT INTO invitations (id, tenant_id, email, role, name, locale, state, created_at, expires_at)
VALUES ('inv_a', 'tnt_a', 'c@acme.example', 'USER', 'Jürgen', '', 'PENDING', 1, 2)`,
					`INSERT INTO api_keys (id, tenant_id, name, search, role, permissions, status, owner_id, created_by, created_at, expires_at, ends_at, allowed_ips, per_second, noticed_at)
VALUES ('key_a', 'tnt_a', 'Übung', 'übung', 'USER', '', 'active', 'usr_a', 'usr_a', 1, 2, 2, '', 1, 0)`,
					`INSERT INTO api_key_secrets (hash, key_id, hint, created_at) VALUES ('1', 'key_a', 'dwk_', 1)`,
				} {
					ok(t, store.Execute(ctx, tx, query))
				}
				return nil
			})
			for _, want := range []int{1, 1, 0} { // two memberships, one of each of the others, one of each list at a time
				write(func(tx *store.Tx) error {
					n, err := tx.FoldLists(ctx, 1)
					if n != want {
						t.Errorf("FoldLists found %d rows in one list, want %d", n, want)
					}
					return err
				})
			}
			users, err := db.Read().UserPage(ctx, "tnt_a", store.UserFilter{Text: "muller zoe"}, doorward.Window{Limit: 9})
			ok(t, err)
			sorted, err := db.Read().UserPage(ctx, "tnt_a", store.UserFilter{}, doorward.Window{Limit: 9, Sort: "name"})
			ok(t, err)
			invited, err := db.Read().InvitationPage(ctx, "tnt_a", store.InvitationFilter{Text: "jurgen"}, time.Now(), doorward.Window{Limit: 9})
			ok(t, err)
			keys, err := db.Read().APIKeyPage(ctx, "tnt_a", store.APIKeyFilter{Text: "ubung"}, time.Now(), doorward.Window{Limit: 9})
			ok(t, err)
			if len(users.Items) != 1 || len(invited.Items) != 1 || len(keys.Items) != 1 || sorted.Items[0].ID != "usr_b" {
				t.Errorf("found %v, %v and %v, sorted %v", users.Items, invited.Items, keys.Items, sorted.Items)
			}
		})
	}
}
