package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/store"
)

const password = "four quiet green llamas"

// token returns the token of the n-th session.
func token(n int) [32]byte { return sha256.Sum256(fmt.Appendf(nil, "bench session %d", n)) }

// checkRequest returns a check with the n-th session.
func checkRequest(n int) []byte {
	t := token(n)
	return fmt.Appendf(nil, "GET /api/v2/access/check?action=message.read HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: bench\r\nCookie: JSESSIONID=%s\r\n\r\n",
		base64.RawURLEncoding.EncodeToString(t[:]))
}

// checkRequests returns checks of up to limit sessions, in an order that defeats caches.
func checkRequests(sessions, limit int) [][]byte {
	all := make([][]byte, min(sessions, limit))
	for i := range all {
		all[i] = checkRequest(i * 7919 % sessions)
	}
	return all
}

func email(n int) string { return fmt.Sprintf("user%08d@bench.example", n) }

// populate adds users and their sessions to a database, those with the numbers from <= n < to:
// one session per user, in a hundred tenants.
func populate(dsn string, from, to int, params argon.Params) error {
	return populateBy(doorward.OwnIssuer, dsn, from, to, params)
}

// populateBy is populate with sessions that the issuer vouches for.
func populateBy(issuer doorward.Issuer, dsn string, from, to int, params argon.Params) error {
	ctx := context.Background()
	db, err := store.Open(ctx, dsn, time.Now)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Migrate(ctx); err != nil {
		return err
	}
	hash, err := argon.NewPool(params, argon.Options{}).Hash(ctx, password)
	if err != nil {
		return err
	}
	const batch = 20_000
	for ; from < to; from += batch {
		_, err := db.Write(ctx, func(tx *store.Tx) error { return insert(ctx, tx, issuer, from, min(from+batch, to), hash) })
		if err != nil {
			return err
		}
	}
	return nil
}

const tenants = 100

func insert(ctx context.Context, tx *store.Tx, issuer doorward.Issuer, from, to int, hash string) error {
	for n := from; n < to; n++ {
		tenant := fmt.Sprintf("tnt_%026d", n%tenants)
		if n < tenants {
			if err := tx.InsertTenant(ctx, doorward.Tenant{ID: tenant, Name: "Bench", Status: doorward.TenantActive, CreatedAt: tx.Now}); err != nil {
				return err
			}
		}
		u := doorward.User{ID: fmt.Sprintf("usr_%026d", n), TenantID: tenant, Role: doorward.RoleUser, Status: doorward.UserActive, CreatedAt: tx.Now}
		if _, err := tx.InsertAccount(ctx, doorward.Account{ID: u.ID, Email: email(n), PasswordHash: hash, CreatedAt: tx.Now}); err != nil {
			return err
		}
		if _, err := tx.InsertMembership(ctx, u); err != nil {
			return err
		}
		t := token(n)
		digest := sha256.Sum256(t[:])
		s := doorward.Session{
			ID: fmt.Sprintf("ses_%026d", n), UserID: u.ID, TenantID: tenant, CreatedAt: tx.Now, LastSeenAt: tx.Now, IP: "127.0.0.1",
			UserAgent: "bench", Assurance: doorward.Assurance{Issuer: issuer},
		}
		if err := tx.InsertSession(ctx, s, digest[:]); err != nil {
			return err
		}
	}
	return nil
}
