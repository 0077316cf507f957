package user

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/app/roster"
	"github.com/doorward/doorward/internal/progress"
	"github.com/doorward/doorward/store"
)

// Imported counts what an import has done, or in a dry run would do.
type Imported struct {
	Members         int             // people added to the tenant
	Accounts        int             // accounts created for them; the others had one
	WithoutPassword int             // accounts without a password, new or in no other tenant
	PasswordKept    []roster.Person // people whose account keeps its password, not that of the list
	Invitations     int64           // pending invitations of these people, now revoked
}

// Import makes all people on the list members of the tenant, or none of them, and records an
// event for each and for the tenant. An account in use keeps its password. A dry run does the
// same and rolls back. On SQLite nothing else can be written during an import: docs/import.md
// says how long that takes.
//
// Errors: a *roster.Error with all faults of the list, with the code already_member for
// people who are in the tenant; not_found, tenant_closing, quota_exceeded, forbidden.
func (u *Users) Import(ctx context.Context, by doorward.Caller, tenantID string, list roster.List, dryRun bool) (Imported, error) {
	on := doorward.Object{Type: "tenant", ID: tenantID, TenantID: tenantID}
	if err := u.writer.Require(ctx, by, doorward.UserImport, on); err != nil {
		return Imported{}, err
	}
	if err := u.checkList(ctx, tenantID, list); err != nil {
		return Imported{}, err
	}
	var done Imported
	_, err := u.writer.Do(ctx, by, doorward.UserImport, on, func(tx *access.Tx) (err error) {
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

// errDryRun rolls a dry run back.
var errDryRun = errors.New("user: a dry run")

// checkList returns the faults of the list and its conflicts with the tenant as it is. It
// takes no lock, so a list with faults, most of which are found here, blocks nobody.
func (u *Users) checkList(ctx context.Context, tenantID string, list roster.List) error {
	if err := checkNotClosing(ctx, u.db.Read(), tenantID); err != nil {
		return err
	}
	rules, err := u.db.Read().Rules(ctx, tenantID)
	if err != nil {
		return err
	}
	faults := roster.Faults{Listed: slices.Clone(list.Faults.Listed), More: list.More}
	lines := make(map[string]int, len(list.People))
	for _, p := range list.People {
		if lines[p.Email] = p.Line; p.Role != "" && !rules.Has(p.Role) {
			faults.Add(p.Line, "role", "invalid", rules.RolesHelp())
		}
	}
	err = u.db.Read().EachMember(ctx, tenantID, func(m store.Member) error {
		if line, listed := lines[m.Email]; listed {
			addAlreadyMember(&faults, line)
		}
		return nil
	})
	return cmp.Or(err, faults.Err())
}

func checkNotClosing(ctx context.Context, read store.Reader, tenantID string) error {
	t, err := read.Tenant(ctx, tenantID)
	switch {
	case errors.Is(err, store.ErrNone):
		return errNoTenant(tenantID)
	case err == nil && t.ClosedAt != nil:
		return doorward.Fail(doorward.CodeTenantClosing, "The tenant is being closed, and its people with it. Nobody can be added.")
	}
	return err
}

func addAlreadyMember(faults *roster.Faults, line int) {
	faults.Add(line, "email", string(doorward.CodeAlreadyMember), "This person is in the tenant already. Leave the row out; \"doorward user\" changes role and status.")
}

// importing is an import in its transaction.
type importing struct {
	ctx      context.Context
	tx       *access.Tx
	tenantID string
	last     int // line number of the last person in the file
	done     Imported
	faults   roster.Faults
}

// importAll adds people in the order of their addresses: two imports of the same
// people into different tenants would otherwise deadlock.
func importAll(ctx context.Context, tx *access.Tx, tenantID string, people []roster.Person) (Imported, error) {
	if err := checkNotClosing(ctx, tx.Reader, tenantID); err != nil {
		return Imported{}, err
	}
	r := importing{ctx: ctx, tx: tx, tenantID: tenantID}
	byAddress := slices.SortedFunc(slices.Values(people), func(a, b roster.Person) int { return cmp.Compare(a.Email, b.Email) })
	for _, p := range people {
		r.last = max(r.last, p.Line)
	}
	progress.Step(ctx, "importing people", int64(len(people)), nil)
	for _, p := range byAddress {
		progress.Add(ctx, 1)
		if err := r.add(p); err != nil {
			return Imported{}, err
		}
	}
	if err := r.faults.Err(); err != nil {
		return Imported{}, err
	}
	progress.Step(ctx, "recording what was imported", 0, nil)
	return r.done, r.finish()
}

func (r *importing) add(p roster.Person) error {
	account, err := member.Ensure(r.ctx, r.tx, member.NewAccount(p.Email, p.PasswordHash, ""))
	if err != nil {
		return err
	}
	r.count(p, account)
	err = member.Add(r.ctx, r.tx, doorward.User{
		ID: account.ID, Email: p.Email, Name: p.Name, Role: p.Role, Status: p.Status, TenantID: r.tenantID,
		CreatedAt: r.tx.Now.Add(time.Duration(p.Line-r.last) * time.Microsecond), // lists keep the order of the file
	})
	if err == nil {
		err = r.tx.SetRoleFloor(r.ctx, r.tenantID, account.ID, p.Role)
	}
	if doorward.HasCode(err, doorward.CodeAlreadyMember) { // added since checkList
		addAlreadyMember(&r.faults, p.Line)
		return nil
	}
	if err != nil {
		return err
	}
	r.done.Members++
	return r.tx.RecordAlso(r.ctx, doorward.UserImport, doorward.Object{Type: "user", ID: account.ID, TenantID: r.tenantID}, doorward.Change{Field: doorward.FieldRole, To: string(p.Role)})
}

// count counts the account, by whether it is new and which password it has.
func (r *importing) count(p roster.Person, account member.Account) {
	if account.Created {
		r.done.Accounts++
	}
	switch takesPassword := account.Created || account.Unused; {
	case takesPassword && p.PasswordHash == "":
		r.done.WithoutPassword++
	case !takesPassword && p.PasswordHash != "":
		r.done.PasswordKept = append(r.done.PasswordKept, p)
	}
}

// finish revokes the pending invitations of the new members, and records their number
// for the tenant.
func (r *importing) finish() (err error) {
	slices.SortFunc(r.done.PasswordKept, func(a, b roster.Person) int { return cmp.Compare(a.Line, b.Line) })
	r.done.Invitations, err = r.tx.RevokeRedundantInvitations(r.ctx, r.tenantID)
	if r.done.Members == 0 {
		r.tx.SkipEvent()
		return err
	}
	r.tx.Changed("people", "", strconv.Itoa(r.done.Members))
	return err
}
