// Package leak takes reports of leaked keys, such as those of secret scanners. Anybody who
// knows a key can end it by sending it.
package leak

import (
	"context"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
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
	kinds  []Kind
}

// New returns the feature for keys of the kinds.
func New(writer *access.Writer, kinds ...Kind) *Reports {
	return &Reports{writer, kinds}
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
		if err := r.writer.CountWithin(ctx, access.ClientCounters("report", by, maxReports, window)); err != nil {
			return err
		}
		return kind.End(ctx, by, hash)
	}
	return doorward.Invalid("/key", "invalid", "This is no key: its form or its checksum is wrong. Send all of it, from the prefix on.")
}
