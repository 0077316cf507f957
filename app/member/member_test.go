package member_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/store/lease"
)

// fixture is a database with two tenants, tnt_a and tnt_b.
type fixture struct {
	*testing.T
	writer *access.Writer
	db     *store.DB
}

func onSQLite(t *testing.T, test func(*fixture)) {
	t.Helper()
	test(newFixture(t, dbtest.SQLite(t)))
}

func onEach(t *testing.T, test func(*fixture)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { onSQLite(t, test) })
	t.Run("postgres", func(t *testing.T) { test(newFixture(t, dbtest.Postgres(t))) })
}

func newFixture(t *testing.T, dsn string) *fixture {
	t.Helper()
	db, err := store.Open(t.Context(), dsn, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	f := &fixture{T: t, writer: access.New(db, lease.New(db, lease.MinLease)), db: db}
	f.write(func(tx *access.Tx) error {
		err := tx.InsertTenant(f.Context(), doorward.Tenant{ID: "tnt_a", Name: "A", Status: doorward.TenantActive, CreatedAt: tx.Now})
		if err == nil {
			err = tx.InsertTenant(f.Context(), doorward.Tenant{ID: "tnt_b", Name: "B", Status: doorward.TenantActive, CreatedAt: tx.Now})
		}
		return err
	})
	return f
}

func (f *fixture) try(fn func(*access.Tx) error) error {
	return f.writer.Upkeep(f.Context(), func(tx *store.Tx) error { return fn(&access.Tx{Tx: tx}) })
}

func (f *fixture) write(fn func(*access.Tx) error) {
	f.Helper()
	if err := f.try(fn); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) ensure(email, hash string) (a member.Account) {
	f.Helper()
	f.write(func(tx *access.Tx) (err error) {
		a, err = member.Ensure(f.Context(), tx, member.NewAccount(email, hash, ""))
		return err
	})
	return a
}

func (f *fixture) add(accountID, tenantID string) error {
	return f.try(func(tx *access.Tx) error {
		return member.Add(f.Context(), tx, doorward.User{ID: accountID, Email: "ann@acme.example", TenantID: tenantID, Role: doorward.RoleUser, Status: doorward.UserActive})
	})
}

func (f *fixture) passwordOf(id string) string {
	f.Helper()
	a, err := f.db.Read().Account(f.Context(), id)
	if err != nil {
		f.Fatal(err)
	}
	return a.PasswordHash
}

// An address has one account and each tenant has it once, even if several callers add it.
func TestAccountAndMembershipAreCreatedOnce(t *testing.T) {
	onSQLite(t, func(f *fixture) {
		ann := f.ensure("ann@acme.example", "hash")
		if !ann.Created || ann.Unused {
			f.Errorf("a new account is %+v", ann)
		}
		if again := f.ensure("ann@acme.example", "other"); again.ID != ann.ID || again.Created {
			f.Errorf("the same address has the account %+v, want %s", again, ann.ID)
		}
		err := f.try(func(tx *access.Tx) error {
			return member.Create(f.Context(), tx, member.NewAccount("ann@acme.example", "other", ""))
		})
		if !doorward.HasCode(err, doorward.CodeAccountExists) {
			f.Errorf("a second account was created, error %v", err)
		}
		for _, tenant := range []string{"tnt_a", "tnt_b"} {
			if err := f.add(ann.ID, tenant); err != nil {
				f.Fatal(err)
			}
			if err := f.add(ann.ID, tenant); !doorward.HasCode(err, doorward.CodeAlreadyMember) {
				f.Errorf("a second membership in %s was added, error %v", tenant, err)
			}
		}
	})
}

// A hash from another system is set only on an account without password and
// membership; the owner of the address may set the first password of any account.
func TestOnlyUnusedAccountsTakeAPassword(t *testing.T) {
	onSQLite(t, func(f *fixture) {
		ann := f.ensure("ann@acme.example", "")
		if got := f.ensure("ann@acme.example", "listed"); !got.Unused || f.passwordOf(ann.ID) != "listed" {
			f.Errorf("the unused account is %+v with the password %q", got, f.passwordOf(ann.ID))
		}
		if got := f.ensure("ann@acme.example", "other"); got.Unused || f.passwordOf(ann.ID) != "listed" {
			f.Errorf("an account with a password is %+v and now has %q", got, f.passwordOf(ann.ID))
		}
		bob := f.ensure("bob@acme.example", "")
		if err := f.add(bob.ID, "tnt_a"); err != nil {
			f.Fatal(err)
		}
		if got := f.ensure("bob@acme.example", "listed"); got.Unused || f.passwordOf(bob.ID) != "" {
			f.Errorf("a member without a password is %+v and now has %q", got, f.passwordOf(bob.ID))
		}
		first := func() error {
			return f.try(func(tx *access.Tx) error { return member.SetFirstPassword(f.Context(), tx, bob.Account, "own") })
		}
		if err := first(); err != nil || f.passwordOf(bob.ID) != "own" {
			f.Errorf("the first password is %q, %v", f.passwordOf(bob.ID), err)
		}
		if err := first(); !doorward.HasCode(err, doorward.CodeAccountExists) {
			f.Errorf("a second first password was set, error %v", err)
		}
	})
}

func TestAddressesAreCanonical(t *testing.T) {
	onSQLite(t, func(f *fixture) {
		for _, email := range []string{"", "Ann@acme.example", "ann@ACME.example", " ann@acme.example", "ann@müller.example", "ann"} {
			err := f.try(func(tx *access.Tx) error {
				_, err := member.Ensure(f.Context(), tx, member.NewAccount(email, "", ""))
				return err
			})
			if err == nil {
				f.Errorf("%q is stored", email)
			}
		}
	})
}

// An account that is deleted between lookup and use is created again.
func TestEnsureWhileAnAccountIsDeleted(t *testing.T) {
	onEach(t, func(f *fixture) {
		for range 100 {
			ann := f.ensure("ann@acme.example", "")
			var both sync.WaitGroup
			both.Go(func() {
				if err := f.try(func(tx *access.Tx) error { return remove(f.Context(), tx, ann.Account) }); err != nil {
					f.Error(err)
				}
			})
			both.Go(func() {
				err := f.try(func(tx *access.Tx) error {
					_, err := member.Ensure(f.Context(), tx, member.NewAccount("ann@acme.example", "", ""))
					return err
				})
				if err != nil {
					f.Error(err)
				}
			})
			both.Wait()
		}
	})
}

func remove(ctx context.Context, tx *access.Tx, a doorward.Account) error {
	if _, err := tx.LockAccount(ctx, a.ID); err != nil {
		return err
	}
	return tx.DeleteAccount(ctx, a)
}
