package audit

import (
	"bytes"
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// RecentIntact reports whether the last n events of a trail are unchanged, follow each other, and end
// at the head of the chain. It doesn't check earlier events. Errors: unavailable.
func (t *Trail) RecentIntact(ctx context.Context, tenantID string, n int) (bool, error) {
	end, err := t.db.Read().Chain(ctx, tenantID)
	if errors.Is(err, store.ErrNone) {
		_, faults, err := t.verifyWithoutRow(ctx, tenantID)
		if doorward.HasCode(err, doorward.CodeNotFound) { // it has since been destroyed
			return true, nil
		}
		return len(faults) == 0, err
	}
	if err != nil {
		return false, err
	}
	intact, err := t.endsIn(ctx, end, n)
	if err == nil && !intact {
		current, err := t.db.Read().Chain(ctx, tenantID)
		if errors.Is(err, store.ErrNone) { // destroyed since it was read
			return true, nil
		}
		if err == nil && current.Anchor > end.Anchor { // old events were deleted since
			return t.endsIn(ctx, current, n)
		}
	}
	return intact, err
}

// endsIn reports whether the last n events are unchanged and lead to end. It also reads the event
// before them, for its hash.
func (t *Trail) endsIn(ctx context.Context, end store.Chain, n int) (bool, error) {
	seq, hash := end.Start()
	first := seq + 1
	from := max(first, end.Last-int64(n))
	links, err := t.db.Read().Links(ctx, end.TenantID, doorward.Position{At: from}, n+1)
	if err != nil {
		return false, err
	}
	if from > first && len(links) > 0 { // the event before the first of these is not known
		seq, hash = links[0].Seq-1, nil
	}
	for _, l := range links {
		if l.Seq > end.Last { // added since end was read
			break
		}
		if l.Seq != seq+1 || !l.Intact() || hash != nil && !l.Follows(hash, l.Seq) {
			return false, nil
		}
		seq, hash = l.Seq, l.Hash
	}
	return seq == end.Last && bytes.Equal(hash, end.Head), nil
}
