package user_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/store"
)

// againstOwners are the actions of an OWNER against an OWNER, oneself included.
var againstOwners = []func(f *apptest.Fixture, i int, by, target apptest.Person) error{
	func(f *apptest.Fixture, i int, by, target apptest.Person) error {
		return f.Node(i).Users.SetRole(f.Context(), by.Caller, target.User, doorward.RoleAdmin)
	},
	func(f *apptest.Fixture, i int, by, target apptest.Person) error {
		_, err := f.Node(i).Users.Suspend(f.Context(), by.Caller, target.User)
		return err
	},
	func(f *apptest.Fixture, i int, by, target apptest.Person) error {
		_, err := f.Node(i).Users.Remove(f.Context(), by.Caller, target.User, user.Handover{}, nil)
		return err
	},
	func(f *apptest.Fixture, i int, by, _ apptest.Person) error {
		_, err := f.Node(i).Users.Leave(f.Context(), by.Caller, by.TenantID)
		return err
	},
}

// TestOneOwnerIsLeft: two OWNERs demote, suspend and remove each other and
// themselves, and leave, at once. In every order one active OWNER is left, and
// each reported success took effect.
func TestOneOwnerIsLeft(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		bob := f.Join(ann, doorward.RoleOwner)
		two := []apptest.Person{ann, bob}
		ways := len(againstOwners)
		for round := range apptest.Rounds(4*ways*ways, 200) { // each pair of ways with each of the four targets
			way := []int{round % ways, round / ways % ways}
			self := round / ways / ways % 4 // actions on oneself: nobody, the first, the second, both
			errs := apptest.Concurrently(2, func(i int) error {
				target := two[1-i]
				if self>>i&1 == 1 {
					target = two[i]
				}
				return againstOwners[way[i]](f, i, two[i], target)
			})
			f.WantOnly(errs, "", doorward.CodeLastOwner, doorward.CodeForbidden, doorward.CodeNotFound, doorward.CodeUnauthenticated)
			if errs[0] != nil && errs[1] != nil {
				f.Fatalf("round %d: both failed: %v", round, errs)
			}
			checkOneOwnerAndRestore(f, two)
			for i, p := range two { // the end of a membership ends its sessions
				two[i] = f.SignIn(p.User.Email, apptest.FirstPassword)
			}
		}
	})
}

// TestLastOwnerStays: two OWNERs demote each other at once. One is demoted, and the other's
// demotion is refused.
func TestLastOwnerStays(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		bob := f.Join(ann, doorward.RoleOwner)
		two := []apptest.Person{ann, bob}
		for range apptest.Rounds(30, 200) {
			errs := apptest.Concurrently(2, func(i int) error {
				return f.Node(i).Users.SetRole(f.Context(), two[i].Caller, two[1-i].User, doorward.RoleAdmin)
			})
			f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeForbidden: 1}) // the one demoted first is refused
			checkOneOwnerAndRestore(f, two)
		}
	})
}

// TestLastOwnerStaysForEveryCaller is like TestLastOwnerStays, with demotions and suspensions by
// operators, whom no role limits, and with OWNERs who leave.
func TestLastOwnerStaysForEveryCaller(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		bob := f.Join(ann, doorward.RoleOwner)
		two := []apptest.Person{ann, bob}
		ways := []func(i int, p apptest.Person) error{
			func(i int, p apptest.Person) error {
				return f.Node(i).Users.SetRole(f.Context(), apptest.Operator, p.User, doorward.RoleAdmin)
			},
			func(i int, p apptest.Person) error {
				_, err := f.Node(i).Users.Suspend(f.Context(), apptest.Operator, p.User)
				return err
			},
			func(i int, p apptest.Person) error {
				_, err := f.Node(i).Users.Leave(f.Context(), p.Caller, p.User.TenantID)
				return err
			},
		}
		for round := range apptest.Rounds(2, 10) * len(ways) * len(ways) {
			errs := apptest.Concurrently(2, func(i int) error {
				way := []int{round % len(ways), round / len(ways) % len(ways)}[i]
				return ways[way](i, two[i])
			})
			f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeLastOwner: 1})
			checkOneOwnerAndRestore(f, two)
			for i, p := range two { // the end of a membership ends its sessions
				two[i] = f.SignIn(p.User.Email, apptest.FirstPassword)
			}
		}
	})
}

// checkOneOwnerAndRestore fails unless one active owner is left, and makes both owners again.
func checkOneOwnerAndRestore(f *apptest.Fixture, two []apptest.Person) {
	f.Helper()
	page, err := f.DB.Read().UserPage(f.Context(), two[0].User.TenantID, store.UserFilter{}, doorward.Window{Limit: 1000})
	f.NoError(err)
	owners := 0
	for _, u := range page.Items {
		if u.Role == doorward.RoleOwner && u.Status == doorward.UserActive {
			owners++
		}
	}
	if owners != 1 {
		f.Fatalf("%d active owners are left", owners)
	}
	hash := f.Account(two[0]).PasswordHash + f.Account(two[1]).PasswordHash
	hash = hash[strings.LastIndex(hash, "$argon2id$"):] // the end of the last membership deletes the password
	_, err = f.DB.Write(f.Context(), func(tx *store.Tx) error {
		for _, p := range two {
			_, err1 := tx.DeleteMembership(f.Context(), p.User.TenantID, p.User.ID)
			_, err2 := tx.InsertMembership(f.Context(), p.User)
			_, err3 := tx.SetPassword(f.Context(), p.User.ID, "", hash)
			if err := errors.Join(err1, err2, err3); err != nil {
				return err
			}
		}
		return nil
	})
	f.NoError(err)
}

// TestOnlyActiveTenantsKeepTheirOwner: the only OWNER of a tenant that is frozen or closes can leave, be
// erased, removed, suspended and demoted, and the trail of the installation has that. An active tenant
// keeps its last OWNER.
func TestOnlyActiveTenantsKeepTheirOwner(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		users := f.Node(0).Users
		ended := func(_ doorward.Ended, err error) error { return err }
		ways := map[string]func(p apptest.Person, u doorward.User) error{
			"leaving": func(p apptest.Person, u doorward.User) error {
				return ended(users.Leave(f.Context(), p.Caller, u.TenantID))
			},
			"erasing": func(p apptest.Person, _ doorward.User) error {
				return apptest.ErrorOf(users.Erase(f.Context(), p.Caller, p.User.Email))
			},
			"removing": func(_ apptest.Person, u doorward.User) error {
				return ended(users.Remove(f.Context(), apptest.Operator, u, user.Handover{}, nil))
			},
			"suspending": func(_ apptest.Person, u doorward.User) error {
				return ended(users.Suspend(f.Context(), apptest.Operator, u))
			},
			"demoting": func(_ apptest.Person, u doorward.User) error {
				return users.SetRole(f.Context(), apptest.Operator, u, doorward.RoleUser)
			},
		}
		shut := map[string]func(id string){
			"active":  func(string) {},
			"frozen":  func(id string) { f.NoError(ended(f.Node(0).Tenants.Freeze(f.Context(), apptest.Operator, id))) },
			"closing": func(id string) { f.NoError(ended(f.Node(0).Tenants.CloseFor(f.Context(), apptest.Operator, id))) },
		}
		_, elsewhere := f.Tenant()
		for status, shut := range shut {
			for way, do := range ways {
				_, owner := f.Tenant()
				joinBy(f, elsewhere, owner, doorward.RoleUser)
				shut(owner.TenantID)
				p, err := apptest.SignedIn(f.Node(0).Login.WithPassword(f.Context(), apptest.Anonymous(0), owner.User.Email, apptest.FirstPassword, elsewhere.TenantID))
				f.NoError(err)
				person := apptest.PersonOf(p)
				before := f.Int(`SELECT count(*) FROM events WHERE action = $1 AND tenant_id = ''`, doorward.TenantOwnerless)
				want, recorded := doorward.Code(""), 1
				if status == "active" {
					want, recorded = doorward.CodeLastOwner, 0
				}
				if got := apptest.Code(do(person, owner.User)); got != want {
					f.Errorf("%s in a tenant that is %s: %q, want %q", way, status, got, want)
				}
				if n := f.Int(`SELECT count(*) FROM events WHERE action = $1 AND tenant_id = ''`, doorward.TenantOwnerless) - before; n != recorded {
					f.Errorf("%s in a tenant that is %s records %d events tenant.ownerless, want %d", way, status, n, recorded)
				}
			}
		}
	})
}

// TestSessionOfAConnectionLeavesItsTenantOnly: what a connection vouches for ends there.
func TestSessionOfAConnectionLeavesItsTenantOnly(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		zeta, other := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		joinBy(f, other, ann, doorward.RoleUser)
		ann.Issuer = "con_1"
		for _, c := range []struct {
			id   string
			want doorward.Code
		}{{zeta.ID, doorward.CodeSignInRequired}, {acme.ID, ""}} {
			if got := apptest.Code(apptest.ErrorOf(f.Node(0).Users.Leave(f.Context(), ann.Caller, c.id))); got != c.want {
				f.Errorf("leaving %s: %q, want %q", c.id, got, c.want)
			}
		}
	})
}
