package apptest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// SuspendByRun writes a member whom the run of a directory has suspended, straight into the tables; i is its number in the run.
func SuspendByRun(ctx context.Context, tx *store.Tx, run doorward.DirectoryRun, i int) error {
	account := doorward.Account{ID: doorward.NewID(doorward.PrefixUser), Email: fmt.Sprintf("p%d@acme.example", i), ManagedBy: run.TenantID, CreatedAt: tx.Now}
	if _, err := tx.InsertAccount(ctx, account); err != nil {
		return err
	}
	m := doorward.User{ID: account.ID, Email: account.Email, Role: doorward.RoleUser, Status: doorward.UserActive, TenantID: run.TenantID, CreatedAt: tx.Now}
	if _, err := tx.InsertMembership(ctx, m); err != nil {
		return err
	}
	if _, err := tx.SetSuspensions(ctx, run.TenantID, m.ID, []string{run.ConnectionID}); err != nil {
		return err
	}
	before := doorward.DirectoryPerson{UserID: m.ID, Address: m.Email, Role: m.Role, Floor: m.Role, Since: tx.Now}
	after := before
	after.SuspendedBy = []string{run.ConnectionID}
	e := doorward.DirectoryEffect{
		ID: fmt.Sprintf("%s.%08d", run.ID, i), RunID: run.ID, ConnectionID: run.ConnectionID, TenantID: run.TenantID, Kind: doorward.DirectorySuspended,
		SubjectID: m.ID, UserID: m.ID, Address: m.Email,
	}
	for into, state := range map[*string]doorward.DirectoryPerson{&e.Before: before, &e.After: after} {
		text, err := json.Marshal(state)
		if err != nil {
			return err
		}
		*into = string(text)
	}
	return tx.InsertDirectoryEffect(ctx, e)
}
