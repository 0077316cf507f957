// Package attempt writes the protocols of connections: what was attempted by them, and how it has ended.
//
//	recorder.Record(ctx, entry)            // of a sign-in, a test, a reading of metadata
//	recorder.RecordDirectory(ctx, entry)   // of a directory's request
//
// Equal faults in a row are one entry. What anybody can send to a connection is counted in memory, and has one entry a
// minute. An entry that can't be written fails nothing. Package provider shows the protocols.
package attempt

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/store"
)

const day = 24 * time.Hour

const (
	seenMax = 255 // characters of what an entry shows of the provider
	// recordWait bounds the writing of an entry: the sign-in goes on without it.
	recordWait = 2 * time.Second
	// clientNoticeEvery is how often OWNERs are told that the provider refuses the client.
	clientNoticeEvery = day
)

// Recorder writes the protocols. Make it with New. It is safe for use by several goroutines.
type Recorder struct {
	writer *access.Writer
	db     *store.DB
	warn   func(error) // of what must not fail a sign-in

	directories directoryFaults
}

// New returns the recorder.
func New(writer *access.Writer, db *store.DB, warn func(error)) *Recorder {
	return &Recorder{writer: writer, db: db, warn: warn}
}

// Record adds an entry to the protocol, with the request that it was made by in RequestIDs, and the time
// now. A fault that is the same as the last one of its kind is counted there, and a request of a directory in any that is the same. If the provider refuses the
// client, OWNERs are told once a day, unless that was a test, whose result somebody reads. It never fails a sign-in: an entry that can't be written is left out,
// and logged.
func (r *Recorder) Record(ctx context.Context, a doorward.Attempt) {
	a.ID, a.Count = doorward.NewID(""), max(a.Count, 1)
	a.Seen, a.Subject = bounded(a.Seen), bounded(a.Subject)
	r.Leave(ctx, func(ctx context.Context, tx *store.Tx) error {
		a.At = tx.Now
		last, err := before(ctx, tx, a)
		if err != nil && !errors.Is(err, store.ErrNone) {
			return err
		}
		if err == nil && last.IsSame(a) {
			merged, err := tx.MergeAttemptEntry(ctx, last, a, lastOf(append(last.RequestIDs, a.RequestIDs...)))
			if err != nil || merged {
				return err
			}
		}
		return tx.InsertAttemptEntry(ctx, a)
	})
	if a.Check == oidcrp.CheckClient && a.Outcome == doorward.AttemptRefused && a.Kind != doorward.AttemptTest {
		r.noticeClient(ctx, a.ConnectionID)
	}
}

// before returns the entry in which a may be counted, or store.ErrNone.
func before(ctx context.Context, tx *store.Tx, a doorward.Attempt) (doorward.Attempt, error) {
	if a.Kind == doorward.AttemptSCIM {
		return tx.SameAttempt(ctx, a)
	}
	return tx.LastAttempt(ctx, a.ConnectionID, a.Kind)
}

// Leave writes what a sign-in leaves behind, also if its browser is gone, within two seconds: the sign-in goes on without it.
func (r *Recorder) Leave(ctx context.Context, write func(context.Context, *store.Tx) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWait)
	defer cancel()
	if err := r.writer.Upkeep(ctx, func(tx *store.Tx) error { return write(ctx, tx) }); err != nil {
		r.warn(err)
	}
}

// bounded returns the text without control characters, cut.
func bounded(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > seenMax {
		return string(runes[:seenMax-1]) + "…"
	}
	return text
}

func lastOf(ids []string) []string {
	return ids[max(0, len(ids)-doorward.AttemptRequestsMax):]
}

// noticeClient tells OWNERs that the provider refuses the client, at most once a day.
func (r *Recorder) noticeClient(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWait)
	defer cancel()
	found, err := r.db.Read().Connection(ctx, id)
	if errors.Is(err, store.ErrNone) {
		return
	}
	if err == nil {
		on := doorward.Object{Type: "connection", ID: found.ID, TenantID: found.TenantID, ConnectionID: found.ID}
		_, err = r.writer.Do(ctx, access.System, doorward.ConnectionSecretChange, on, func(tx *access.Tx) error {
			due, err := tx.MarkClientNotice(ctx, id, clientNoticeEvery)
			if err != nil || !due {
				tx.SkipEvent()
				return err
			}
			tx.Changed(doorward.FieldReason, "", oidcrp.CheckClient)
			return tx.NotifyHolders(ctx, store.MailClientRefused, found.TenantID, doorward.RoleOwner)
		})
	}
	if err != nil {
		r.warn(err)
	}
}
