package store_test

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// benchSessions opens so many sessions of one member and returns the hashes of
// their tokens.
func benchSessions(b *testing.B, db *store.DB, n int) (hashes [][32]byte) {
	b.Helper()
	ctx, now := b.Context(), time.Now()
	_, err := db.Write(ctx, func(tx *store.Tx) error {
		ok(b, tx.InsertTenant(ctx, doorward.Tenant{ID: "tnt_1", Name: "Acme", Status: doorward.TenantActive}))
		_, err := tx.InsertAccount(ctx, doorward.Account{ID: "usr_1", Email: "ann@acme.example"})
		ok(b, err)
		_, err = tx.InsertMembership(ctx, doorward.User{ID: "usr_1", TenantID: "tnt_1", Role: doorward.RoleUser, Status: doorward.UserActive})
		ok(b, err)
		for i := range n {
			h := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
			hashes = append(hashes, h)
			ok(b, tx.InsertSession(ctx, doorward.Session{ID: fmt.Sprint("ses_", i), UserID: "usr_1", TenantID: "tnt_1", CreatedAt: now, LastSeenAt: now}, h[:]))
		}
		return nil
	})
	ok(b, err)
	return hashes
}

// BenchmarkSessionByToken is the query of a check that memory can't answer.
func BenchmarkSessionByToken(b *testing.B) {
	for _, name := range []string{"sqlite", "postgres"} {
		b.Run(name, func(b *testing.B) {
			db := migrated(b, engines[name](b), time.Now)
			hashes := benchSessions(b, db, 1000)
			for i := 0; b.Loop(); i++ {
				_, err := db.Read().SessionByToken(b.Context(), hashes[i%len(hashes)][:])
				ok(b, err)
			}
		})
	}
}

// BenchmarkTouchSessions writes down the uses of two hundred sessions, in one
// transaction.
func BenchmarkTouchSessions(b *testing.B) {
	for _, name := range []string{"sqlite", "postgres"} {
		b.Run(name, func(b *testing.B) {
			db := migrated(b, engines[name](b), time.Now)
			var uses []store.Use
			for _, h := range benchSessions(b, db, 200) {
				uses = append(uses, store.Use{Hash: h})
			}
			now := time.Now()
			for b.Loop() {
				now = now.Add(time.Second)
				for i := range uses {
					uses[i].At = now
				}
				_, err := db.Write(b.Context(), func(tx *store.Tx) error { return tx.TouchSessions(b.Context(), uses) })
				ok(b, err)
			}
		})
	}
}
