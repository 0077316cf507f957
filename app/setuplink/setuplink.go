// Package setuplink makes and ends links by which a customer's own IT sets one connection up, without an account.
//
// A link is bound to the first browser that begins by it, so that a mail scanner that follows it takes nothing
// away, and a copy of the mail is of no use afterwards. It acts as far as its maker may at that moment (package
// access reads that again in each transaction) and only on its connection (package decide). Each request asks the
// database, so that the end of a link, or of its maker's permission, holds on every node at once.
//
//	setuplink.go   what managers do: making, ending, showing
//	begin.go       what the customer's IT does: looking, beginning, coming back
package setuplink

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Links is the feature. Make it with New. It is safe for use by several goroutines.
type Links struct {
	writer *access.Writer
	db     *store.DB
	base   string
}

// New returns the feature. base is the address of Doorward, without a slash at its end.
func New(writer *access.Writer, db *store.DB, base string) *Links { return &Links{writer, db, base} }

// Path is where a link leads, below the address of Doorward. The token follows as its fragment, "#token=…", so
// that it is in no log and in no Referer.
const Path = "/setup"

// Made is a new link. Its address is shown once.
type Made struct {
	doorward.SetupLink
	URL string
}

// Make makes a link for the connection, good for days (0: doorward.SetupLinkDays), and ends an earlier one. Errors:
// validation_failed, not_found.
func (l *Links) Make(ctx context.Context, by doorward.Caller, conID string, days int) (made Made, err error) {
	if days == 0 {
		days = doorward.SetupLinkDays
	}
	token := secret.New()
	hash := token.Hash()
	made.URL = l.base + Path + "#token=" + token.Reveal()
	_, err = l.writer.Do(ctx, by, doorward.SetupLinkManage, object(by.TenantID, conID), func(tx *access.Tx) error {
		if days < 1 || days > doorward.SetupLinkDaysMax {
			return doorward.Invalid("/days", "out_of_range", "A link is good for 1 to 7 days.")
		}
		earlier, err := end(ctx, tx, conID)
		if err != nil && !errors.Is(err, store.ErrNone) {
			return err
		}
		made.SetupLink = doorward.SetupLink{
			ID: doorward.NewID(doorward.PrefixSetupLink), TenantID: by.TenantID, ConnectionID: conID, MakerID: by.ID,
			CreatedAt: tx.Now, EndsAt: tx.Now.Add(time.Duration(days) * 24 * time.Hour),
		}
		tx.Changed(doorward.FieldSetupLink, earlier, made.ID)
		tx.Changed(doorward.FieldEndsAt, "", made.EndsAt.Format(time.RFC3339))
		if err := tx.InsertSetupLink(ctx, made.SetupLink, hash[:]); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, made)
	})
	return made, err
}

// End ends the link of the connection. Errors: not_found, also if there is none.
func (l *Links) End(ctx context.Context, by doorward.Caller, conID string) error {
	_, err := l.writer.Do(ctx, by, doorward.SetupLinkManage, object(by.TenantID, conID), func(tx *access.Tx) error {
		tx.SkipQuota()
		ended, err := end(ctx, tx, conID)
		if errors.Is(err, store.ErrNone) {
			err = doorward.Fail(doorward.CodeNotFound, "")
		}
		tx.Changed(doorward.FieldSetupLink, ended, "")
		return err
	})
	return err
}

// end ends the link of a connection of the caller's tenant, and returns its id. Errors: not_found for another
// tenant's connection, store.ErrNone if there is no link, or it had ended by itself.
func end(ctx context.Context, tx *access.Tx, conID string) (id string, err error) {
	isOwn, err := tx.ConnectionIn(ctx, tx.By.TenantID, conID)
	if err == nil && !isOwn {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	if err != nil {
		return "", err
	}
	earlier, err := tx.SetupLinkOfConnection(ctx, conID)
	if err != nil {
		return "", err
	}
	_, err = tx.DeleteSetupLink(ctx, earlier.ID)
	if err == nil && !tx.Now.Before(earlier.EndsAt) {
		return "", store.ErrNone
	}
	return earlier.ID, err
}

// Of returns the link of a connection of the caller's tenant, and whether there is one that is good now. Errors:
// not_found.
func (l *Links) Of(ctx context.Context, by doorward.Caller, conID string) (link doorward.SetupLink, isAlive bool, err error) {
	read := l.db.Read()
	isOwn, err := read.ConnectionIn(ctx, by.TenantID, conID)
	if err == nil && !isOwn {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	if err == nil {
		link, err = read.SetupLinkOfConnection(ctx, conID)
	}
	if err == nil {
		_, err = access.SetupLinkPrincipal(ctx, read, link, l.db.Now())
	}
	if errors.Is(err, store.ErrNone) || doorward.HasCode(err, doorward.CodeSetupLinkOver) {
		return doorward.SetupLink{}, false, nil
	}
	return link, err == nil, err
}

func object(tenantID, conID string) doorward.Object {
	return doorward.Object{Type: "connection", ID: conID, TenantID: tenantID, ConnectionID: conID}
}

// Sweep deletes links that have ended by themselves. Several nodes may sweep at the same time.
func (l *Links) Sweep(ctx context.Context) error {
	return l.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) { return tx.DeleteOldSetupLinks(ctx, tx.Now, limit) })
}
