// Package installation records what is done to an installation as a whole: its database
// was backed up, restored from a backup, or moved to another one.
//
// Package node has package store copy the rows. Here is what has to be done afterwards,
// and the record of it.
package installation

import (
	"context"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Installation is the feature. Make it with New.
type Installation struct {
	door     *access.Door
	sessions store.Life
}

// New returns the feature. The life of sessions decides which ended ones are counted.
func New(door *access.Door, sessions store.Life) *Installation { return &Installation{door, sessions} }

// object is what the events are about.
var object = doorward.Object{Type: "installation"}

// Keep is what stays valid after a restore.
type Keep struct {
	Sessions bool
	Links    bool // in mails: invitations, resets
}

// Ended counts what a restore has ended.
type Ended struct{ Sessions, Links int64 }

// Restored prepares a database that was restored from a backup to be served. Sessions
// that have ended since the backup, and links used or revoked since, would be valid
// again, so all of them end, unless they are to be kept. Known browsers are forgotten in
// any case, since trust in them may have ended since. Before it returns, running nodes
// have emptied their memory of sessions.
func (i *Installation) Restored(ctx context.Context, by doorward.Caller, keep Keep) (ended Ended, err error) {
	_, err = i.door.Do(ctx, by, doorward.InstallationRestore, object, func(tx *access.Tx) (err error) {
		if !keep.Sessions {
			if ended.Sessions, err = tx.DeleteAllSessions(ctx, i.sessions); err != nil {
				return err
			}
		}
		if !keep.Links {
			if ended.Links, err = tx.RetireAllTokens(ctx); err != nil {
				return err
			}
		}
		if err := tx.EndAllTrust(ctx); err != nil {
			return err
		}
		tx.Changed("sessionsEnded", "", strconv.FormatInt(ended.Sessions, 10))
		tx.Changed("linksEnded", "", strconv.FormatInt(ended.Links, 10))
		return tx.InvalidateAll(ctx)
	})
	return ended, err
}

// BackedUp records that a backup of everything here was completed. The destination
// is its file, empty where that is not known.
func (i *Installation) BackedUp(ctx context.Context, by doorward.Caller, destination string) error {
	_, err := i.door.Do(ctx, by, doorward.InstallationBackup, object, func(tx *access.Tx) error {
		tx.Changed("destination", "", destination)
		return tx.NoteBackup(ctx, destination)
	})
	return err
}

// Moved records that everything here came from a database of another kind, or of
// the same kind elsewhere.
func (i *Installation) Moved(ctx context.Context, by doorward.Caller, from, to string) error {
	_, err := i.door.Do(ctx, by, doorward.InstallationMove, object, func(tx *access.Tx) error {
		tx.Changed("database", from, to)
		return nil
	})
	return err
}
