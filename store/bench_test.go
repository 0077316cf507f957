package store_test

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// benchSessions opens n sessions of one member and returns the hashes of their
// tokens.
func benchSessions(b testing.TB, db *store.DB, n int) (hashes [][32]byte) {
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
			db := storetest.Migrated(b, storetest.Engines[name](b), time.Now)
			hashes := benchSessions(b, db, 1000)
			for i := 0; b.Loop(); i++ {
				_, err := db.Read().SessionByToken(b.Context(), hashes[i%len(hashes)][:])
				ok(b, err)
			}
		})
	}
}

// BenchmarkTouchSessions writes the uses of two hundred sessions in one
// transaction.
func BenchmarkTouchSessions(b *testing.B) {
	for _, name := range []string{"sqlite", "postgres"} {
		b.Run(name, func(b *testing.B) {
			db := storetest.Migrated(b, storetest.Engines[name](b), time.Now)
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
				_, err := db.Write(b.Context(), func(tx *store.Tx) error { _, err := tx.TouchSessions(b.Context(), uses); return err })
				ok(b, err)
			}
		})
	}
}

// BenchmarkDueMails reads 4,000 mails of a queue of 100,000: from its beginning, and from
// those queued in the last five seconds.
func BenchmarkDueMails(b *testing.B) {
	for _, name := range []string{"sqlite", "postgres"} {
		b.Run(name, func(b *testing.B) {
			start := time.Now()
			var passed time.Duration
			db := storetest.Migrated(b, storetest.Engines[name](b), func() time.Time { return start.Add(passed) })
			for range 100 {
				passed += time.Second
				_, err := db.Write(b.Context(), func(tx *store.Tx) error { return queueThousand(b, tx) })
				ok(b, err)
			}
			for part, after := range map[string]store.Mail{"first": {}, "new": {NextAt: start.Add(passed - 5*time.Second)}} {
				b.Run(part, func(b *testing.B) {
					for b.Loop() {
						_, err := db.Read().DueMails(b.Context(), after, db.Now(), 4000)
						ok(b, err)
					}
				})
			}
		})
	}
}

// queueThousand queues 1,000 mails of 20 shares, each to another domain.
func queueThousand(b *testing.B, tx *store.Tx) error {
	for i := range 1000 {
		tx.MailShare = fmt.Sprint("tnt_", i%20)
		ok(b, tx.QueueMail(b.Context(), store.MailInvitation, fmt.Sprintf("ann@dead%d.example", i), "inv_1"))
	}
	return nil
}

// BenchmarkLists reads a page of a tenant with 100,000 people and as many invitations,
// with the total.
func BenchmarkLists(b *testing.B) {
	for _, engine := range []string{"sqlite", "postgres"} {
		ctx, db := b.Context(), storetest.Migrated(b, storetest.Engines[engine](b), time.Now)
		insertPeople(b, db, 100_000)
		insertInvitations(b, db, 100_000)
		for _, sort := range []string{"createdAt", "name", "email", "role", "status", "-lastLoginAt"} {
			b.Run(engine+"/people/"+sort, func(b *testing.B) { readPeople(b, db, store.UserFilter{}, sort) })
		}
		for name, f := range map[string]store.UserFilter{"found": {Text: "p99999"}, "nobody": {Text: "nobody"}, "role": {Role: doorward.RoleAdmin}} {
			b.Run(engine+"/people/"+name, func(b *testing.B) { readPeople(b, db, f, "") })
		}
		for name, f := range map[string]store.InvitationFilter{
			"all": {}, "found": {Text: "g99999"}, "nobody": {Text: "nobody"}, "pending": {State: doorward.InvitationPending}, "failed": {Delivery: doorward.DeliveryFailed},
		} {
			b.Run(engine+"/invitations/"+name, func(b *testing.B) {
				for b.Loop() {
					_, err := db.Read().InvitationPage(ctx, "tnt_a", f, time.UnixMicro(500), doorward.Window{Limit: 50, Count: true})
					ok(b, err)
				}
			})
		}
	}
}

func readPeople(b *testing.B, db *store.DB, f store.UserFilter, sort string) {
	b.Helper()
	for b.Loop() {
		_, err := db.Read().UserPage(b.Context(), "tnt_a", f, doorward.Window{Limit: 50, Sort: sort, Count: true})
		ok(b, err)
	}
}
