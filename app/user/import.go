package user

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/roster"
	"github.com/doorward/doorward/store"
)

// Imported counts what an import has done, or in a dry run would have.
type Imported struct {
	Members     int // who are in the tenant now
	Accounts    int // those of them who are new to the installation
	Unset       int // accounts without a password, new or of people who were in no tenant
	Kept        []roster.Person
	Invitations int64 // pending ones to these people, which are revoked
}

// Import makes everybody on the list a member of the tenant, as one act: all of
// them or nobody. Who has an account in the installation keeps it, and its
// password, whatever the list says: those who would have got another one are
// Imported.Kept. An account that is in no tenant has no password to keep. Each person has a record of the act, and so has the tenant.
//
// A dry run does all of it and takes it back.
//
// Errors: a *roster.Error with everything that is wrong with the list, with the
// code already_member for people who are in the tenant; not_found,
// tenant_closing, forbidden.
//
// On SQLite nothing else is written meanwhile: see docs/import.md for how long
// that is.
func (u *Users) Import(ctx context.Context, by doorward.Caller, tenantID string, list roster.List, dryRun bool) (Imported, error) {
	on := doorward.Object{Type: "tenant", ID: tenantID, TenantID: tenantID}
	if err := u.door.Require(ctx, by, doorward.UserImport, on); err != nil {
		return Imported{}, err
	}
	if err := u.against(ctx, tenantID, list); err != nil {
		return Imported{}, err
	}
	var done Imported
	_, err := u.door.Do(ctx, by, doorward.UserImport, on, func(tx *access.Tx) (err error) {
		done, err = importAll(ctx, tx, tenantID, list.People)
		if err == nil && dryRun {
			err = errDryRun
		}
		return err
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return Imported{}, err
	}
	return done, nil
}

// errDryRun rolls back what went well.
var errDryRun = errors.New("user: a dry run")

// against returns what the tenant as it is has against the list, with what was
// wrong with the list before. It takes no lock, so that a list with faults,
// which come to light here as a rule, holds nobody up.
func (u *Users) against(ctx context.Context, tenantID string, list roster.List) error {
	if err := takesPeople(ctx, u.db.Read(), tenantID); err != nil {
		return err
	}
	lines := make(map[string]int, len(list.People))
	for _, p := range list.People {
		lines[p.Email] = p.Line
	}
	faults := roster.Faults{Faults: slices.Clone(list.Faults.Faults), More: list.More}
	err := u.db.Read().EachMember(ctx, tenantID, func(m store.Member) error {
		if line, listed := lines[m.Email]; listed {
			alreadyMember(&faults, line)
		}
		return nil
	})
	return cmp.Or(err, faults.Err())
}

func takesPeople(ctx context.Context, read store.Reader, tenantID string) error {
	t, err := read.Tenant(ctx, tenantID)
	switch {
	case errors.Is(err, store.ErrNone):
		return noTenant(tenantID)
	case err == nil && t.ClosedAt != nil:
		return doorward.Fail(doorward.CodeTenantClosing, "The tenant is being closed, and its people with it. Nobody can be added.")
	}
	return err
}

func alreadyMember(faults *roster.Faults, line int) {
	faults.Add(line, "email", string(doorward.CodeAlreadyMember), "This person is in the tenant already. Leave the row out; \"doorward user\" changes role and status.")
}

// importing is an import inside its transaction.
type importing struct {
	ctx      context.Context
	tx       *access.Tx
	tenantID string
	done     Imported
	faults   roster.Faults
}

// importAll goes by address and not by line: two imports at once, into
// different tenants, of people in common would otherwise each wait for an
// account that the other one has just made.
func importAll(ctx context.Context, tx *access.Tx, tenantID string, people []roster.Person) (Imported, error) {
	if err := takesPeople(ctx, tx.Reader, tenantID); err != nil {
		return Imported{}, err
	}
	r := importing{ctx: ctx, tx: tx, tenantID: tenantID}
	byAddress := slices.SortedFunc(slices.Values(people), func(a, b roster.Person) int { return cmp.Compare(a.Email, b.Email) })
	for _, p := range byAddress {
		if err := r.add(p); err != nil {
			return Imported{}, err
		}
	}
	if err := r.faults.Err(); err != nil {
		return Imported{}, err
	}
	return r.done, r.finish()
}

func (r *importing) add(p roster.Person) error {
	account, err := r.account(p)
	if err != nil {
		return err
	}
	added, err := r.tx.InsertMembership(r.ctx, doorward.User{
		ID: account.ID, Email: p.Email, Name: p.Name, Role: p.Role, Status: p.Status, TenantID: r.tenantID, CreatedAt: r.tx.Now,
	})
	if err != nil {
		return err
	}
	if !added { // since the list was held against the tenant
		alreadyMember(&r.faults, p.Line)
		return nil
	}
	r.done.Members++
	return r.tx.RecordAlso(r.ctx, doorward.UserImport, doorward.Object{Type: "user", ID: account.ID, TenantID: r.tenantID}, doorward.Change{Field: "role", To: string(p.Role)})
}

// account returns the one that the address has, or makes it.
func (r *importing) account(p roster.Person) (doorward.Account, error) {
	account := doorward.Account{ID: doorward.NewID(doorward.PrefixUser), Email: p.Email, PasswordHash: p.PasswordHash, CreatedAt: r.tx.Now}
	added, err := r.tx.InsertAccount(r.ctx, account)
	switch {
	case err != nil:
		return account, err
	case !added:
		return r.existing(p)
	}
	r.done.Accounts++
	if p.PasswordHash == "" {
		r.done.Unset++
	}
	return account, nil
}

// existing returns the account that the address has. It is held, so that nobody
// takes its password because of a last membership that has just ended.
func (r *importing) existing(p roster.Person) (doorward.Account, error) {
	account, err := r.tx.AccountByEmail(r.ctx, p.Email)
	if err == nil {
		_, err = r.tx.HoldAccount(r.ctx, account.ID)
	}
	if err == nil { // as it is now that it is held
		account, err = r.tx.Account(r.ctx, account.ID)
	}
	if err != nil {
		return account, err
	}
	memberships, err := r.tx.CountMemberships(r.ctx, account.ID)
	switch {
	case err != nil:
	case account.PasswordHash == "" && memberships == 0 && p.PasswordHash != "":
		_, err = r.tx.SetPassword(r.ctx, account.ID, "", p.PasswordHash)
	case account.PasswordHash == "" && memberships == 0:
		r.done.Unset++
	case p.PasswordHash != "":
		r.done.Kept = append(r.done.Kept, p)
	}
	return account, err
}

// finish revokes invitations that nobody needs any more, and says how many
// people there were in the record of the tenant.
func (r *importing) finish() (err error) {
	slices.SortFunc(r.done.Kept, func(a, b roster.Person) int { return cmp.Compare(a.Line, b.Line) })
	r.done.Invitations, err = r.tx.RevokeNeedlessInvitations(r.ctx, r.tenantID)
	if r.done.Members == 0 {
		r.tx.SkipEvent()
		return err
	}
	r.tx.Changed("people", "", strconv.Itoa(r.done.Members))
	return err
}
