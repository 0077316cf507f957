package directory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/store"
)

// Make makes a User of what the directory says: a managed account with a membership, a membership, or an invitation, by the
// address. Errors: uniqueness, invalidValue, quota_exceeded, and those of write.
func (d *Directories) Make(ctx context.Context, by doorward.Caller, said scim.User) (u User, err error) {
	id := doorward.NewID(doorward.PrefixUser)
	err = d.write(ctx, by, doorward.UserInvite, id, func(w *work) error {
		address, err := w.checkAddress(said.UserName)
		if err != nil {
			return err
		}
		if err := w.checkUnique(id, said.UserName, address, said.ExternalID); err != nil {
			return err
		}
		row := doorward.DirectoryUser{ID: id, ConnectionID: w.con.ID, TenantID: w.con.TenantID, Address: address, Active: said.Active == nil || *said.Active, Made: true, CreatedAt: w.tx.Now}
		if err := fill(&row, said); err != nil {
			return err
		}
		if err := w.on(id, func() error { return w.make(row, said) }); err != nil {
			return err
		}
		u, err = w.shown(id)
		return err
	})
	return u, err
}

// shown returns the person as the transaction has left them.
func (w *work) shown(id string) (User, error) {
	return shown(w.ctx, w.tx.Reader, w.tx.By, id, w.tx.Now)
}

// fill writes what the directory says into the row. Whether somebody is active is no attribute: it is answered from the
// membership.
func fill(row *doorward.DirectoryUser, said scim.User) error {
	said.Active = nil
	text, err := json.Marshal(said)
	row.UserName, row.ExternalID, row.Attributes, row.EmailKeys = said.UserName, said.ExternalID, string(text), nil
	for _, e := range said.Emails {
		row.EmailKeys = append(row.EmailKeys, e.Value)
	}
	return err
}

// make writes the row, and the membership or the invitation that it describes.
func (w *work) make(row doorward.DirectoryUser, said scim.User) error {
	account, joins, err := w.accountFor(row)
	switch {
	case err != nil:
		return err
	case joins:
		return w.join(row, account, NameOf(said))
	}
	if row.Active {
		if row.InvitationID, err = w.invite(row.Address, NameOf(said)); err != nil {
			return err
		}
	}
	return w.tx.InsertDirectoryUser(w.ctx, row)
}

// accountFor returns the account that becomes a member at once, locked: a new one that the tenant manages, or one that is in
// no tenant. Else the person is invited. Nothing tells whether an address outside of the tenant's proved domains has an
// account. Errors: invalidValue where the connection refuses such addresses.
func (w *work) accountFor(row doorward.DirectoryUser) (account doorward.Account, joins bool, err error) {
	proved, err := w.isProved(row.Address)
	if err != nil {
		return account, false, err
	}
	if !proved {
		if w.con.Outside == doorward.OutsideRefuse {
			err = refuse(scim.InvalidValue, AdviceDomain, "The tenant hasn't proved the domain of this address, and its connection refuses others. Prove the domain, or let the connection invite.")
		}
		return account, false, err
	}
	account, err = w.tx.AccountByEmail(w.ctx, row.Address)
	if errors.Is(err, store.ErrNone) {
		account = member.NewAccount(row.Address, "", "")
		account.ID, account.ManagedBy = row.ID, w.con.TenantID
		return account, true, member.Create(w.ctx, w.tx, account)
	}
	if err != nil {
		return account, false, err
	}
	if _, err := w.tx.LockAccount(w.ctx, account.ID); err != nil {
		return account, false, err
	}
	n, err := w.tx.CountMemberships(w.ctx, account.ID)
	return account, n == 0, err
}

// join makes the account a member with the role that the connection gives, and the row what the directory says of it.
func (w *work) join(row doorward.DirectoryUser, account doorward.Account, name string) error {
	if err := invite.EndPending(w.ctx, w.tx, w.con.TenantID, row.Address); err != nil {
		return err
	}
	u := doorward.User{ID: account.ID, Email: account.Email, Name: name, Role: w.con.JITRole, Status: doorward.UserActive, TenantID: w.con.TenantID}
	if err := member.Add(w.ctx, w.tx, u); err != nil {
		return err
	}
	if err := w.tx.SetRoleFloor(w.ctx, u.TenantID, u.ID, ""); err != nil { // no OWNER has given it
		return err
	}
	row.UserID, row.InvitationID = account.ID, ""
	if err := w.tx.InsertDirectoryUser(w.ctx, row); err != nil {
		return err
	}
	err := w.tx.RecordAlso(w.ctx, doorward.UserJoin, doorward.Object{Type: "user", ID: u.ID, TenantID: u.TenantID},
		doorward.Change{Field: doorward.FieldEmail, To: u.Email}, doorward.Change{Field: doorward.FieldRole, To: string(u.Role)})
	if err != nil || row.Active {
		return err
	}
	m, err := w.tx.User(w.ctx, u.TenantID, u.ID)
	if err != nil {
		return err
	}
	return member.SwitchOff(w.ctx, w.tx, w.d.life, w.d.owners, m, w.con.ID)
}

// invite sends an invitation, and returns its id.
func (w *work) invite(address, name string) (string, error) {
	if err := w.checkAllowed(address); err != nil { // it may have been allowed when the person was made
		return "", err
	}
	inv, err := invite.ByDirectory(w.ctx, w.tx, w.con, address, name)
	return inv.ID, err
}

// NameOf returns the name for the membership, as short as names are here; empty: the directory says none.
func NameOf(said scim.User) string {
	name := cmp.Or(said.DisplayName, said.Name.Formatted, strings.TrimSpace(said.Name.GivenName+" "+said.Name.FamilyName))
	if len(doorward.CheckName("/displayName", &name)) > 0 {
		return ""
	}
	return name
}
