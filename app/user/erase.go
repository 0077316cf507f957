package user

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// An erased account leaves its tenants and is deleted, with all that is kept about its
// address. Audit events stay, with blanks in place of what is personal. In each trail an
// event account.erase says whose events are blanked; it names the account by its id alone.

// Erasure says what an erasure has ended.
type Erasure struct {
	doorward.Ended
	Tenants []string // names of the tenants that the account was in
}

// Erase deletes the caller's account. The caller confirms by the address of the account.
// Errors: validation_failed, last_owner, step_up_required, unauthenticated, unavailable.
func (u *Users) Erase(ctx context.Context, by doorward.Caller, confirm string) (Erasure, error) {
	erased, err := u.erase(ctx, by, by.ID, func(tx *access.Tx, account doorward.Account) error {
		if err := tx.NeedProofNow(ctx); err != nil {
			return err
		}
		return checkConfirmation(account, confirm)
	})
	if doorward.HasCode(err, doorward.CodeNotFound) { // it was erased while this request waited, and its sessions with it
		err = doorward.Fail(doorward.CodeUnauthenticated, "The session has since ended.")
	}
	return erased, err
}

func checkConfirmation(account doorward.Account, confirm string) error {
	if confirm == "" {
		return doorward.Invalid("/confirm", "required", "Type the address of the account to confirm.")
	}
	if email, err := mailaddr.Parse(confirm); err != nil || email != account.Email {
		return doorward.Invalid("/confirm", "mismatch", "This is not the address of the account.")
	}
	return nil
}

// EraseAddress deletes the account of an address, for an operator, also one in no tenant.
// Errors: validation_failed, not_found, last_owner, unavailable.
func (u *Users) EraseAddress(ctx context.Context, by doorward.Caller, address string) (Erasure, error) {
	account, err := proof.FindAccount(ctx, u.db.Read(), address)
	if err != nil {
		return Erasure{}, err
	}
	return u.erase(ctx, by, account.ID, func(_ *access.Tx, locked doorward.Account) error {
		if locked.Email != account.Email { // it has got another address since
			return errNoAccount()
		}
		return nil
	})
}

func errNoAccount() error {
	return doorward.Fail(doorward.CodeNotFound, "No account has this address.")
}

// erase runs in one transaction over all tenants of the account. It calls check once the
// account is locked, and erases nothing if that returns an error.
func (u *Users) erase(ctx context.Context, by doorward.Caller, id string, check func(*access.Tx, doorward.Account) error) (Erasure, error) {
	var done Erasure
	on := doorward.Object{Type: "user", ID: id}
	revocation, err := u.writer.Do(ctx, by, doorward.AccountErase, on, func(tx *access.Tx) error {
		tx.OmitPersonal()
		tx.Effects.MayEndWaysBack = true // nobody has to stay for the sign-on of a tenant
		memberships, err := lockEverywhere(ctx, tx, id)
		if err != nil {
			return err
		}
		account, err := tx.Account(ctx, id)
		if err != nil {
			return err
		}
		if err := check(tx, account); err != nil {
			return err
		}
		e := erasing{users: u, ctx: ctx, tx: tx, account: account, changes: map[string][]doorward.Change{}}
		if err := e.leave(memberships); err != nil {
			return err
		}
		done = e.done
		return e.delete(memberships)
	})
	if err != nil {
		return Erasure{}, err
	}
	done.Revocation = revocation
	return done, nil
}

// LastOwnerOf returns the caller's memberships in active tenants that have no other active OWNER, so
// that a page can name them before an erasure. Errors: unavailable.
func (u *Users) LastOwnerOf(ctx context.Context, by doorward.Caller) (all []doorward.User, err error) {
	memberships, err := u.db.Read().Memberships(ctx, by.ID)
	for _, m := range memberships {
		if err != nil {
			return nil, err
		}
		if m.Role != doorward.RoleOwner || m.TenantStatus != doorward.TenantActive {
			continue
		}
		owners, failed := u.db.Read().CountActiveOwners(ctx, m.TenantID)
		if m.Status == doorward.UserActive {
			owners--
		}
		if err = failed; err == nil && owners <= 0 {
			all = append(all, m)
		}
	}
	return all, err
}

var errJoined = errors.New("user: the account has joined a tenant since its tenants were locked")

// lockEverywhere locks the tenants whose people or trails change, in the order of their ids,
// and then the account, as other changes of people do. It returns the memberships. Errors:
// not_found, unavailable if the account has joined another tenant before it was locked.
func lockEverywhere(ctx context.Context, tx *access.Tx, id string) ([]doorward.User, error) {
	before, err := tx.Memberships(ctx, id)
	if err != nil {
		return nil, err
	}
	locks, err := tx.TrailsWith(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, m := range before {
		locks = append(locks, m.TenantID)
	}
	slices.Sort(locks)
	for _, tenant := range slices.Compact(locks) {
		if err := tx.LockTenant(ctx, tenant); err != nil {
			return nil, err
		}
	}
	found, err := tx.LockAccount(ctx, id)
	if err == nil && !found {
		err = errNoAccount()
	}
	if err != nil {
		return nil, err
	}
	after, err := tx.Memberships(ctx, id)
	for _, m := range after {
		if !slices.Contains(locks, m.TenantID) {
			return nil, doorward.Unavailable(errJoined)
		}
	}
	return after, err
}

// erasing is one erasure.
type erasing struct {
	users   *Users
	ctx     context.Context
	tx      *access.Tx
	account doorward.Account
	changes map[string][]doorward.Change // of the events, by trail
	told    []string                     // tenants whose OWNERs are told
	done    Erasure
}

// leave ends the memberships. Errors: last_owner, with the tenants that would be left
// without an active OWNER.
func (e *erasing) leave(memberships []doorward.User) error {
	var ownerless []string
	for _, m := range memberships {
		ended, err := e.users.endMembership(e.ctx, e.tx, object(m), Handover{})
		if doorward.HasCode(err, doorward.CodeLastOwner) {
			ownerless = append(ownerless, fmt.Sprintf("%s (%s)", m.TenantName, m.TenantID))
			continue
		}
		if err != nil {
			return err
		}
		e.changes[m.TenantID] = append([]doorward.Change{{Field: doorward.FieldRole, From: string(m.Role)}}, access.EndedChanges(ended)...)
		e.done.Tenants = append(e.done.Tenants, m.TenantName)
		e.done.Sessions += ended.Sessions
		e.done.APIKeys += ended.APIKeys
		e.done.Invitations += ended.Invitations
	}
	if len(ownerless) > 0 {
		return doorward.Fail(doorward.CodeLastOwner, "%s would be left without an active OWNER. Make somebody else OWNER there first, or close the tenant.", strings.Join(ownerless, " and "))
	}
	return nil
}

// blankAtOnce is how many events by the person, and how many about the person, one transaction
// blanks. Their trails are locked for that time; Sweep blanks the others.
const blankAtOnce = 500

// delete deletes the account, blanks invitations and events that are about it, and records that.
func (e *erasing) delete(memberships []doorward.User) error {
	former, err := e.tx.ConfirmedFormerEmails(e.ctx, e.account.ID)
	if err != nil {
		return err
	}
	renamed, err := e.tx.EmailsBeforeDirectories(e.ctx, e.account.ID)
	if err != nil {
		return err
	}
	former = append(former, renamed...)
	trails, err := e.tx.TrailsWith(e.ctx, e.account.ID)
	if err != nil {
		return err
	}
	if err := e.noteLeft(memberships, trails); err != nil {
		return err
	}
	addresses := append([]string{e.account.Email}, former...)
	if err := e.blankInvitations(addresses); err != nil {
		return err
	}
	if err := e.tx.ClearRequestedEmailCounters(e.ctx, e.account.ID); err != nil {
		return err
	}
	if err := e.tx.DeleteDirectoryEffectsOf(e.ctx, e.account.ID, addresses); err != nil {
		return err
	}
	if err := e.tx.DeleteAccount(e.ctx, e.account); err != nil {
		return err
	}
	for _, email := range former {
		if err := e.tx.ForgetAddress(e.ctx, email); err != nil {
			return err
		}
	}
	if _, err := e.tx.BlankEvents(e.ctx, e.account.ID, blankAtOnce); err != nil {
		return err
	}
	if err := e.tx.InsertErasure(e.ctx, e.account.ID); err != nil {
		return err
	}
	return e.record(trails)
}

func (e *erasing) blankInvitations(emails []string) error {
	blanked, err := e.tx.BlankInvitations(e.ctx, e.account.ID, emails)
	for _, inv := range blanked {
		events, err := e.tx.BlankEventsOfInvitation(e.ctx, inv.ID)
		if err != nil {
			return err
		}
		changes := append(e.changes[inv.TenantID], doorward.Change{Field: doorward.FieldBlankedInvitation, To: inv.ID})
		for _, id := range events {
			changes = append(changes, doorward.Change{Field: doorward.FieldBlankedEvent, To: id})
		}
		e.changes[inv.TenantID] = changes
	}
	return err
}

// record puts an event into the installation's trail, and into each other trail with events
// by or about the person, or about the invitations. It queues the mails to OWNERs.
func (e *erasing) record(trails []string) error {
	for tenantID := range e.changes {
		trails = append(trails, tenantID)
	}
	slices.Sort(trails)
	for _, tenantID := range slices.Compact(trails) {
		if tenantID == "" {
			continue // the installation's trail has the action's own event
		}
		var to []string
		if slices.Contains(e.told, tenantID) {
			var err error
			if to, err = access.EmailsOf(e.ctx, e.tx.Reader, tenantID, doorward.RoleOwner); err != nil {
				return err
			}
		}
		on := doorward.Object{Type: "user", ID: e.account.ID, TenantID: tenantID}
		if err := e.tx.NotifyAlso(e.ctx, store.MailAccountErased, to, doorward.AccountErase, on, e.changes[tenantID]...); err != nil {
			return err
		}
	}
	return nil
}

// lateWriteWindow is how long nodes may still write something about an erased account, such as
// counts of refusals that they have in memory.
const lateWriteWindow = time.Hour

// erasuresAtOnce bounds the erasures that one sweep continues.
const erasuresAtOnce = 100

// Sweep blanks the events that erasures have not blanked yet, in batches, and deletes what nodes
// have written about the erased accounts since. If one fails, the others follow, and the result has the
// error with the id.
func (u *Users) Sweep(ctx context.Context) error {
	erasures, err := u.db.Read().Erasures(ctx, erasuresAtOnce)
	for _, erased := range erasures {
		if failed := u.sweepErasure(ctx, erased); failed != nil {
			err = errors.Join(err, fmt.Errorf("erasure of %s: %w", erased.UserID, failed))
		}
	}
	return err
}

func (u *Users) sweepErasure(ctx context.Context, erased store.Erasure) (err error) {
	for more := true; more && err == nil; {
		err = u.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
			more, err = sweep(ctx, tx, erased)
			return err
		})
	}
	return err
}

func sweep(ctx context.Context, tx *store.Tx, erased store.Erasure) (more bool, err error) {
	exists, err := tx.LockErasure(ctx, erased.UserID)
	if err != nil || !exists {
		return false, err
	}
	if err := tx.DeleteLateRows(ctx, erased.UserID); err != nil {
		return false, err
	}
	more, err = tx.BlankEvents(ctx, erased.UserID, blankAtOnce)
	if err == nil && !more && tx.Now.Sub(erased.At) > lateWriteWindow {
		err = tx.DeleteErasure(ctx, erased.UserID)
	}
	return more, err
}
