// Package leak takes reports of leaked keys, such as those of secret scanners. Anybody who
// knows a key can end it by sending it.
package leak

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Kind is a kind of keys that can be reported.
type Kind struct {
	Prefix string // of the key
	// Hash returns the hash under which a key of the prefix is stored. Any error means
	// that the text doesn't have the form of one.
	Hash func(text string) (secret.Hash, error)
	// End ends the key with the hash, records that, and notifies those responsible. It
	// does nothing if there is none, or if it has already ended.
	End func(ctx context.Context, by doorward.Caller, hash secret.Hash) error
}

// Reports is the feature. Make it with New.
type Reports struct {
	writer *access.Writer
	db     *store.DB
	kinds  []Kind
}

// New returns the feature for keys of the kinds.
func New(writer *access.Writer, db *store.DB, kinds ...Kind) *Reports {
	return &Reports{writer, db, kinds}
}

// Limit on the reports of one client network.
const (
	maxReports = 30
	window     = 10 * time.Minute
)

// Report ends the key, on every node. A key that is unknown or has ended is no error: the
// caller learns nothing about it. Errors: validation_failed for a text that doesn't have the
// form of a key, too_many_attempts, unavailable.
func (r *Reports) Report(ctx context.Context, by doorward.Caller, text string) error {
	for _, kind := range r.kinds {
		if !strings.HasPrefix(text, kind.Prefix) {
			continue
		}
		hash, err := kind.Hash(text)
		if err != nil {
			break
		}
		if err := r.count(ctx, by); err != nil {
			return err
		}
		return kind.End(ctx, by, hash)
	}
	return doorward.Invalid("/key", "invalid", "This is no key: its form or its checksum is wrong. Send all of it, from the prefix on.")
}

// count counts the report. Beyond the limit it writes nothing. Errors: too_many_attempts.
func (r *Reports) count(ctx context.Context, by doorward.Caller) error {
	bucket := "report:" + doorward.Network(by.IP)
	t, err := r.db.Read().Throttle(ctx, bucket)
	if err == nil && t.Hits >= maxReports && t.Since.Add(window).After(r.db.Now()) {
		return r.tooMany(t)
	}
	if err != nil && !errors.Is(err, store.ErrNone) {
		return err
	}
	err = r.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
		t, err = tx.HitThrottle(ctx, bucket, window)
		return err
	})
	if err == nil && t.Hits > maxReports {
		err = r.tooMany(t)
	}
	return err
}

func (r *Reports) tooMany(t store.Throttle) error {
	wait := t.Since.Add(window).Sub(r.db.Now())
	return &doorward.Error{Code: doorward.CodeTooManyAttempts, RetryAfter: max(wait, time.Second)}
}
