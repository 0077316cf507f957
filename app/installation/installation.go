// Package installation records actions on the whole installation: its database was
// backed up, restored from a backup, or moved to another one.
//
// Package node copies the rows through store/transfer. This package does what must
// follow, and records it. It also pauses changes, and opens the operator's page in a
// browser (page.go).
package installation

import (
	"context"
	"errors"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Installation is the feature. Make it with New.
type Installation struct {
	writer   *access.Writer
	db       *store.DB
	lifetime store.SessionLifetime
}

// New returns the feature. lifetime determines which sessions have expired; these are
// left out of the counts of ended sessions.
func New(writer *access.Writer, db *store.DB, lifetime store.SessionLifetime) *Installation {
	return &Installation{writer, db, lifetime}
}

// object is what the events are about.
var object = doorward.Object{Type: "installation"}

// Keep is what stays valid after a restore.
type Keep struct {
	Sessions bool
	Links    bool // in mails: invitations, resets
	Keys     bool // of tenants and services, and webhooks
	// Connections are those of tenants, by which their people sign in.
	Connections bool
}

// Ended is what a restore has ended.
type Ended struct {
	Sessions, Links int64
	Keys            []store.KeyName // of tenants, disabled
	ServiceKeys     []doorward.ServiceKey
	Webhooks        []store.WebhookName // of tenants and of the installation, disabled
	Connections     []store.ConnectionName
}

// Restored prepares a database that was restored from a backup. What has ended since the
// backup would be valid again. So unless keep says otherwise, all sessions and links end, and
// API keys, service keys, webhooks and connections are disabled, to be enabled one by one. Known browsers,
// challenges, answers kept for retries and positions in the feed of events end in any case.
// Before it returns, running nodes have cleared their memory of sessions.
func (i *Installation) Restored(ctx context.Context, by doorward.Caller, keep Keep) (ended Ended, err error) {
	_, err = i.writer.Do(ctx, by, doorward.InstallationRestore, object, func(tx *access.Tx) (err error) {
		if !keep.Sessions {
			if ended.Sessions, err = tx.DeleteAllSessions(ctx, i.lifetime); err != nil {
				return err
			}
		}
		if !keep.Links {
			if ended.Links, err = tx.RetireAllTokens(ctx); err != nil {
				return err
			}
		}
		if !keep.Keys {
			if ended.Keys, err = disableKeys(ctx, tx); err != nil {
				return err
			}
			if ended.ServiceKeys, err = tx.DisableAllServiceKeys(ctx); err != nil {
				return err
			}
			if ended.Webhooks, err = disableWebhooks(ctx, tx); err != nil {
				return err
			}
		}
		if !keep.Connections {
			if ended.Connections, err = i.disableConnections(ctx, tx); err != nil {
				return err
			}
		}
		if err := tx.EndAllTrust(ctx); err != nil {
			return err
		}
		if err := tx.ResetFeed(ctx); err != nil {
			return err
		}
		if err := tx.DeleteAllCalls(ctx); err != nil {
			return err
		}
		tx.Changed("sessionsEnded", "", strconv.FormatInt(ended.Sessions, 10))
		tx.Changed("linksEnded", "", strconv.FormatInt(ended.Links, 10))
		tx.Changed("apiKeysDisabled", "", strconv.Itoa(len(ended.Keys)))
		tx.Changed("serviceKeysDisabled", "", strconv.Itoa(len(ended.ServiceKeys)))
		return tx.InvalidateAll(ctx)
	})
	return ended, err
}

// disableKeys disables all API keys, and records each in its tenant's trail.
func disableKeys(ctx context.Context, tx *access.Tx) ([]store.KeyName, error) {
	keys, err := tx.DisableAllAPIKeys(ctx)
	for _, k := range keys {
		on := doorward.Object{Type: "key", ID: k.ID, TenantID: k.TenantID}
		change := doorward.Change{Field: "status", From: string(doorward.APIKeyActive), To: string(doorward.APIKeyDisabled)}
		err = errors.Join(err, tx.RecordAlso(ctx, doorward.APIKeyUpdate, on, change))
	}
	return keys, err
}

// disableWebhooks disables all webhooks, and records each in its tenant's trail. Deliveries that
// were pending at the backup have been sent since, and some webhooks may have been deleted.
func disableWebhooks(ctx context.Context, tx *access.Tx) ([]store.WebhookName, error) {
	hooks, err := tx.DisableAllWebhooks(ctx)
	for _, h := range hooks {
		on := doorward.Object{Type: "webhook", ID: h.ID, TenantID: h.TenantID}
		change := doorward.Change{Field: doorward.FieldReason, To: string(doorward.DisabledRestored)}
		err = errors.Join(err, tx.RecordAlso(ctx, doorward.WebhookDisable, on, change))
	}
	if len(hooks) > 0 {
		tx.Changed("webhooksDisabled", "", strconv.Itoa(len(hooks)))
	}
	return hooks, err
}

// disableConnections disables all connections with their sessions, and records each in its tenant's trail:
// a provider, or a secret, that was taken away since the backup would sign people in.
func (i *Installation) disableConnections(ctx context.Context, tx *access.Tx) ([]store.ConnectionName, error) {
	all, err := tx.DisableAllConnections(ctx)
	for _, c := range all {
		if fault := tx.EndSignIns(ctx, c.ID, doorward.EndedEverybody); fault != nil {
			return nil, fault
		}
		if _, fault := tx.DeleteIssuerSessions(ctx, i.lifetime, c.TenantID, doorward.Issuer(c.ID)); fault != nil {
			return nil, fault
		}
		on := doorward.Object{Type: "connection", ID: c.ID, TenantID: c.TenantID}
		change := doorward.Change{Field: "status", From: string(doorward.ConnectionActive), To: string(doorward.ConnectionDisabled)}
		err = errors.Join(err, tx.RecordAlso(ctx, doorward.ConnectionDisable, on, change))
	}
	if len(all) > 0 {
		tx.Changed("connectionsDisabled", "", strconv.Itoa(len(all)))
	}
	return all, err
}

// BackedUp records that a backup was completed. The destination is its file, or
// empty if unknown.
func (i *Installation) BackedUp(ctx context.Context, by doorward.Caller, destination string) error {
	_, err := i.writer.Do(ctx, by, doorward.InstallationBackup, object, func(tx *access.Tx) error {
		tx.Changed("destination", "", destination)
		return tx.NoteBackup(ctx, destination)
	})
	return err
}

// Moved records that the installation was moved here from another database.
func (i *Installation) Moved(ctx context.Context, by doorward.Caller, from, to string) error {
	_, err := i.writer.Do(ctx, by, doorward.InstallationMove, object, func(tx *access.Tx) error {
		tx.Changed("database", from, to)
		return nil
	})
	return err
}

// Maintenance returns whether changes are paused, and why. Errors: unavailable.
func (i *Installation) Maintenance(ctx context.Context) (store.Maintenance, error) {
	return i.writer.Maintenance(ctx)
}

// PauseChanges makes every node refuse changes until ResumeChanges. The reason is shown to the
// callers; it may be empty, and replaces that of an earlier pause. Signing in, checks, and
// actions that end access still work. Errors: validation_failed.
func (i *Installation) PauseChanges(ctx context.Context, by doorward.Caller, reason string) error {
	if err := access.CheckReason(&reason); err != nil {
		return err
	}
	_, err := i.writer.Do(ctx, by, doorward.InstallationMaintenance, object, func(tx *access.Tx) error {
		was, err := tx.Maintenance(ctx)
		switch {
		case err != nil:
			return err
		case was.On && was.Reason == reason:
			tx.SkipEvent()
			return nil
		}
		tx.Changed("maintenance", onOff(was.On), onOff(true))
		tx.Changed("pauseReason", was.Reason, reason)
		return tx.StartMaintenance(ctx, reason)
	})
	return err
}

// ResumeChanges ends a pause.
func (i *Installation) ResumeChanges(ctx context.Context, by doorward.Caller) error {
	_, err := i.writer.Do(ctx, by, doorward.InstallationMaintenance, object, func(tx *access.Tx) error {
		ended, err := tx.EndMaintenance(ctx)
		if !ended {
			tx.SkipEvent()
			return err
		}
		tx.Changed("maintenance", onOff(true), onOff(false))
		return err
	})
	return err
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
