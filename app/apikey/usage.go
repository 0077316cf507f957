package apikey

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// Usage returns how many requests a key made since an instant, by day of UTC, the oldest first. A node writes what it has
// counted about once a minute; what it has not when it is killed, or when the key is changed, is lost. Errors: not_found.
func (k *Keys) Usage(ctx context.Context, by doorward.Caller, id string, since time.Time) ([]doorward.UsageCount, error) {
	if _, err := k.Get(ctx, by, id); err != nil {
		return nil, err
	}
	return k.db.Read().Usage(ctx, id, since)
}

// EndingSoon returns active keys of the caller's tenant that end by an instant, the earliest end first, at most limit.
func (k *Keys) EndingSoon(ctx context.Context, by doorward.Caller, until time.Time, limit int) ([]doorward.APIKey, error) {
	return k.db.Read().APIKeysEnding(ctx, by.TenantID, k.db.Now(), until, limit)
}

// usageCounts are uses that are about to be written, by the state of their key.
type usageCounts map[*keyState]int64

// take takes the uses of a key that are not written yet. Those of a key with two secrets are taken once.
func (c usageCounts) take(s *keyState) {
	if n := s.uses.Swap(0); n > 0 {
		c[s] += n
	}
}

// write writes the uses in the order of the keys' ids, so that two nodes don't wait for each other.
func (c usageCounts) write(ctx context.Context, tx *store.Tx) error {
	day := tx.Now.Truncate(24 * time.Hour)
	for _, s := range slices.SortedFunc(maps.Keys(c), func(a, b *keyState) int { return strings.Compare(a.id, b.id) }) {
		err := tx.CountUsage(ctx, doorward.UsageCount{SubjectID: s.id, At: day, Outcome: doorward.UsageUsed, Times: c[s]})
		if err != nil {
			return err
		}
	}
	return nil
}

// giveBack adds uses that could not be written to those of the next time.
func (c usageCounts) giveBack() {
	for s, n := range c {
		s.uses.Add(n)
	}
}
