package directory

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/store"
)

// work is a write of a directory, in its transaction.
type work struct {
	ctx    context.Context
	tx     *access.Tx
	d      *Directories
	con    doorward.Connection
	tenant doorward.Tenant
	absent int  // members to be removed from a group who weren't in it
	isDue  bool // roles are due after the transaction
	places bool // effects keep places in groups, of people who are about to be removed
	run    *recorder

	gave      []doorward.Role // by mappings, to those who have left the group that is changed
	isDueRole bool            // a role is given that was due: which groups the person has left isn't known any more
}

// MayWrite refuses a directory whose connection is a draft. Its requests are refused before their bodies are read. Errors:
// forbidden.
func MayWrite(by doorward.Caller) error {
	if by.IsDraft {
		return doorward.Fail(doorward.CodeForbidden, "The connection is a draft: its directory changes nothing. An OWNER enables the connection.")
	}
	return nil
}

// write runs do in a transaction, under the lock on the tenant: two writes of directories, on any nodes, come one after the
// other. action is what the request is decided as; what do changes is recorded by RecordAlso. do may run more than once.
// When write returns, what it has ended is accepted on no node. Errors: unauthenticated, forbidden for a draft,
// tenant_frozen, tenant_closing, maintenance, unavailable.
func (d *Directories) write(ctx context.Context, by doorward.Caller, action doorward.Action, id string, do func(*work) error) error {
	if err := MayWrite(by); err != nil {
		return err
	}
	on := doorward.Object{Type: "user", ID: id, TenantID: by.TenantID}
	isDue, alarmed := false, false
	_, err := d.writer.Do(ctx, by, action, on, func(tx *access.Tx) error {
		w, err := d.work(ctx, tx, do)
		isDue, alarmed = w.isDue, w.run.alarmed
		return err
	})
	if err == nil && alarmed {
		d.alarms.Add(1)
	}
	if errors.Is(err, store.ErrTaken) {
		err = conflict("Another account has this address.")
	}
	if err == nil && isDue {
		err = d.finishRoles(ctx, by)
	}
	return notFound(err)
}

// work runs do as a write of the directory that tx.By names, and returns what is left to do after the transaction.
func (d *Directories) work(ctx context.Context, tx *access.Tx, do func(*work) error) (work, error) {
	tx.SkipEvent()
	w := work{ctx: ctx, tx: tx, d: d, run: &recorder{ctx: ctx, tx: tx}}
	var err error
	if w.con, err = tx.Connection(ctx, tx.By.ConnectionID); err == nil {
		w.tenant, err = tx.Tenant(ctx, tx.By.TenantID)
	}
	if err != nil {
		return w, err
	}
	w.run.con = w.con
	if err := do(&w); err != nil {
		return w, err
	}
	return w, w.run.close()
}

// finishRoles gives everybody the role that a change of groups has made due. What a crash leaves, a sweep goes on with.
// Errors: unavailable.
func (d *Directories) finishRoles(ctx context.Context, by doorward.Caller) error {
	on := doorward.Object{Type: "connection", ID: by.ConnectionID, TenantID: by.TenantID}
	err := member.FinishDue(ctx, d.writer, on, func(tx *access.Tx) (more bool, err error) {
		tx.By = by // who has changed the groups
		_, err = d.work(ctx, tx, func(w *work) (err error) {
			more, err = member.MapDueRoles(ctx, tx, w.con, true, func(userID string) error {
				w.isDueRole = true
				return w.mapRoles([]string{userID})
			})
			return err
		})
		return more, err
	})
	if errors.Is(err, store.ErrNone) {
		return nil // the connection is gone, with what was due
	}
	return err
}

// on runs change, which changes the person with the id, and records what it has changed. Each write to a person goes through
// here.
func (w *work) on(id string, change func() error) error {
	before, err := w.state(id)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	after, err := w.state(id)
	if err != nil {
		return err
	}
	return w.effect(id, before, after)
}

// isProved reports whether the tenant has proved the domain of the canonical address. A lapsed one counts for nobody.
func (w *work) isProved(address string) (bool, error) {
	domain, err := w.tx.DomainHolder(w.ctx, mailaddr.Domain(address))
	if errors.Is(err, store.ErrNone) {
		return false, nil
	}
	return domain.TenantID == w.con.TenantID && domain.Status == doorward.DomainVerified, err
}

// checkAddress returns the canonical form of a userName. Errors: invalidValue.
func (w *work) checkAddress(userName string) (string, error) {
	address, err := mailaddr.Parse(userName)
	if err != nil {
		return "", refuse(scim.InvalidValue, AdviceAddress, "Send an e-mail address as userName.")
	}
	return address, w.checkAllowed(address)
}

// checkAllowed refuses an address that the tenant's settings don't allow. Errors: invalidValue.
func (w *work) checkAllowed(address string) error {
	if !invite.IsAllowed(w.tenant.Settings, address) {
		return refuse(scim.InvalidValue, AdviceAllowed, "The settings of the tenant don't allow this address.")
	}
	return nil
}

// checkUnique refuses a userName and an externalId that another person of the tenant, or of the connection, has. id is the
// person's own. Errors: uniqueness.
func (w *work) checkUnique(id, userName, address, externalID string) error {
	for _, name := range []string{userName, address} {
		e, err := findNamed(w.ctx, w.tx.Reader, w.tx.By, name)
		if err == nil && e.ID != id {
			return conflict("Somebody else has this userName.")
		}
		if err != nil && !errors.Is(err, store.ErrNone) {
			return err
		}
		others, err := w.tx.DirectoryUsersNamed(w.ctx, w.con.TenantID, name)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(others, func(o doorward.DirectoryUser) bool { return o.ID != id && (o.UserID == "" || o.UserID != e.Member.ID) }) {
			return conflict("Somebody else has this userName.")
		}
	}
	if externalID == "" {
		return nil
	}
	e, err := w.tx.DirectoryUserByExternalID(w.ctx, w.con.ID, externalID)
	if err == nil && e.ID != id {
		return conflict("Somebody else has this externalId.")
	}
	if errors.Is(err, store.ErrNone) {
		err = nil
	}
	return err
}
