package app

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/store/lease"
)

// MasterKeySetting is the name under which each node publishes the id of the master key
// in its file. All nodes should have the same one.
const MasterKeySetting = "master-key-file"

// loadMasterKey reads the key before this process registers as a node: a process with a wrong
// key must not register.
func (a *App) loadMasterKey(ctx context.Context) error {
	err := a.MasterKey.Load(ctx)
	if err != nil && !doorward.HasCode(err, doorward.CodeUnavailable) {
		return err
	}
	if a.MasterKey.Ready() != nil && a.Assertions.Enabled() {
		return &masterkey.NeededError{Setting: "assertion-audience"}
	}
	if a.MasterKey.Ready() != nil {
		a.log.Warn("there is no master key: what needs one is refused with master_key_missing, and all else works; see doorward doctor")
	}
	return errors.Join(err, a.Lease.Update(ctx, MasterKeySetting, a.MasterKey.FileID()))
}

// sweepMasterKey handles a replacement of the master key. It reads the operator's new key file,
// publishes the id of the key to the other nodes, and forgets the old key when all nodes have the
// new one.
func (a *App) sweepMasterKey(ctx context.Context) error {
	replaced, err := a.MasterKey.Refresh(ctx)
	if err != nil {
		return err
	}
	if err := a.Lease.Update(ctx, MasterKeySetting, a.MasterKey.FileID()); err != nil || !replaced {
		return err
	}
	live, err := lease.PublishedValues(ctx, a.db, MasterKeySetting)
	if err == nil {
		_, err = a.MasterKey.Forget(ctx, live)
	}
	return err
}
