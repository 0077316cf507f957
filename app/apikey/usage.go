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
// counted about once a minute; what it hasn't when it is killed is lost. Errors: not_found.
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

// use counts a request. It locks and allocates only for the first one since uses were written.
func (s *keyStates) use(k *keyState) {
	if k.uses.Add(1) == 1 {
		s.addUsed(k)
	}
}

func (s *keyStates) addUsed(k *keyState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = append(s.used, k)
}

func (s *keyStates) hasUses() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.used) > 0
}

// usageCounts are uses that are about to be written, by the state of their key.
type usageCounts map[*keyState]int64

// usesAtOnce is of how many keys one transaction writes the uses. As many last uses are written with them.
const usesAtOnce = 200

// takeUses takes the uses of up to usesAtOnce keys. What isn't written must be given back.
func (s *keyStates) takeUses() usageCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts, n := usageCounts{}, min(len(s.used), usesAtOnce)
	for _, k := range s.used[:n] {
		counts[k] = k.uses.Swap(0)
	}
	if s.used = s.used[n:]; len(s.used) == 0 {
		s.used = nil
	}
	return counts
}

// giveBack adds uses that could not be written to those of the next time.
func (s *keyStates) giveBack(counts usageCounts) {
	for k, n := range counts {
		if k.uses.Add(n) == n {
			s.addUsed(k)
		}
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
