package store

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
)

// The feed is the events of all tenants in one order that no late commit changes. The order
// is made after the commits: ExtendFeed appends the events of each trail that the feed
// lacks, under the feed's own lock, which no action takes. docs/feed.md says why.

// feedRange is how many events a row of the feed covers at most. It bounds what a page reads
// beyond its limit.
const feedRange = 500

// FeedPosition is a place in the feed. The zero value is its beginning.
type FeedPosition struct {
	Epoch string // of the database
	Trims int64  // how often the feed was trimmed before the position was read
	Pos   int64  // all events up to the end of this row are read
	Seq   int64  // and those of the next row up to this number; 0: none
}

type feedState struct {
	epoch       string
	last, trims int64
}

func feedStateFields(s *feedState) []any { return []any{&s.epoch, &s.last, &s.trims} }

const sqlFeedState = `SELECT epoch, last, trims FROM feed_state WHERE id = 1`

// trailRange is the events of a trail after one number and up to another.
type trailRange struct {
	tenantID    string
	after, last int64
}

func rangeFields(r *trailRange) []any { return []any{&r.tenantID, &r.after, &r.last} }

const sqlTrailsAhead = `SELECT c.tenant_id, coalesce(f.last, c.anchor), c.last
FROM audit_chains c LEFT JOIN feed_chains f ON f.tenant_id = c.tenant_id
WHERE c.last > coalesce(f.last, c.anchor) ORDER BY c.tenant_id LIMIT $1`

// FeedIsBehind reports whether there are events that are not in the feed yet, or the feed has
// no epoch: it was never extended, or was reset.
func (r Reader) FeedIsBehind(ctx context.Context) (bool, error) {
	state, err := one(ctx, r, feedStateFields, sqlFeedState)
	if err != nil || state.epoch == "" {
		return true, err
	}
	ahead, err := list(ctx, r, rangeFields, sqlTrailsAhead, 1)
	return len(ahead) > 0, err
}

const (
	sqlLockFeed = `UPDATE feed_state SET epoch = CASE WHEN epoch = '' THEN $1 ELSE epoch END WHERE id = 1
RETURNING epoch, last, trims`
	sqlInsertFeed   = `INSERT INTO feed (pos, tenant_id, after, last) VALUES ($1, $2, $3, $4)`
	sqlSetFeedChain = `INSERT INTO feed_chains (tenant_id, last) VALUES ($1, $2)
ON CONFLICT (tenant_id) DO UPDATE SET last = $2`
	sqlSetFeedLast = `UPDATE feed_state SET last = $1 WHERE id = 1`
)

// ExtendFeed appends committed events to the feed, in up to limit rows, and reports
// whether there may be more. epoch becomes that of the feed if it has none.
func (tx *Tx) ExtendFeed(ctx context.Context, epoch string, limit int) (more bool, err error) {
	state, err := one(ctx, tx.Reader, feedStateFields, sqlLockFeed, epoch)
	if err != nil {
		return false, err
	}
	ahead, err := list(ctx, tx.Reader, rangeFields, sqlTrailsAhead, limit)
	if err != nil {
		return false, err
	}
	rows := 0
	for _, t := range ahead {
		for ; t.after < t.last && rows < limit; rows++ {
			state.last++
			last := min(t.last, t.after+feedRange)
			if err := tx.run(ctx, sqlInsertFeed, state.last, t.tenantID, t.after, last); err != nil {
				return false, err
			}
			t.after = last
		}
		if err := tx.run(ctx, sqlSetFeedChain, t.tenantID, t.after); err != nil {
			return false, err
		}
		if rows == limit {
			break
		}
	}
	return rows == limit, tx.run(ctx, sqlSetFeedLast, state.last)
}

// FeedEvent is an event and its row in the feed.
type FeedEvent struct {
	doorward.Event
	Pos int64
}

func feedEventFields(e *FeedEvent) []any { return append(eventFields(&e.Event), &e.Pos) }

// FeedPage is a part of the feed.
type FeedPage struct {
	Events []FeedEvent
	End    FeedPosition // of the feed
	Gone   bool         // events after the position are no longer kept, or it is of another feed
	Read   int64        // the last row that was read, if there are fewer events than the limit
}

const (
	feedRowsAtOnce = 500

	sqlFeedSpan  = `SELECT count(*), coalesce(max(pos), 0) FROM (SELECT pos FROM feed WHERE pos > $1 ORDER BY pos LIMIT $2) next`
	sqlFeedTrims = `SELECT coalesce(max(pos), 0) FROM feed_trims WHERE trim > $1`
	sqlFeedRow   = `SELECT tenant_id, after, last FROM feed WHERE pos = $1`
	sqlFeed      = `SELECT e.id, e.at, e.action, e.outcome, e.actor_type, e.actor_id, e.actor_email,
  e.target_type, e.target_id, e.tenant_id, e.ip, e.request_id, e.changes, e.personal, e.seq, f.pos
FROM feed f JOIN events e ON e.tenant_id = f.tenant_id AND e.seq > f.after AND e.seq <= f.last
WHERE f.pos > $1 AND f.pos <= $2 AND (f.pos > $1 + 1 OR e.seq > $3) ORDER BY f.pos, e.seq LIMIT $4`
)

// feedSpan is how many rows of the feed follow a position, up to a limit, and the last of them.
type feedSpan struct{ rows, last int64 }

func spanFields(s *feedSpan) []any { return []any{&s.rows, &s.last} }

// Feed returns at most limit events after the position. Call it in a snapshot
// (DB.Snapshot), or a deletion in between could go unnoticed.
func (r Reader) Feed(ctx context.Context, after FeedPosition, limit int) (FeedPage, error) {
	state, err := one(ctx, r, feedStateFields, sqlFeedState)
	if err != nil {
		return FeedPage{}, err
	}
	p := FeedPage{End: FeedPosition{Epoch: state.epoch, Trims: state.trims, Pos: state.last}}
	if after != (FeedPosition{}) {
		if p.Gone, err = r.isGone(ctx, after, state); err != nil || p.Gone {
			return p, err
		}
	}
	span, err := one(ctx, r, spanFields, sqlFeedSpan, after.Pos, feedRowsAtOnce)
	if err != nil {
		return p, err
	}
	if p.Read = span.last; span.rows < feedRowsAtOnce {
		p.Read = state.last
	}
	p.Events, err = list(ctx, r, feedEventFields, sqlFeed, after.Pos, p.Read, after.Seq, limit)
	return p, err
}

// isGone reports whether events that follow the position were deleted since it was read, or
// the position is of another database, or of a later state of a database that was restored.
func (r Reader) isGone(ctx context.Context, at FeedPosition, state feedState) (bool, error) {
	if at.Epoch != state.epoch || at.Pos > state.last || at.Trims > state.trims {
		return true, nil
	}
	trimmed, err := one(ctx, r, int64Column, sqlFeedTrims, at.Trims)
	if err != nil || trimmed <= at.Pos {
		return false, err
	}
	if trimmed > at.Pos+1 || at.Seq == 0 {
		return true, nil
	}
	row, err := one(ctx, r, rangeFields, sqlFeedRow, trimmed)
	if errors.Is(err, ErrNone) {
		return true, nil
	}
	return row.after > at.Seq, err
}

const sqlResetFeed = `UPDATE feed_state SET epoch = '' WHERE id = 1`

// ResetFeed makes all positions in the feed invalid.
func (tx *Tx) ResetFeed(ctx context.Context) error { return tx.run(ctx, sqlResetFeed) }

const sqlDeleteFeedOf = `DELETE FROM feed WHERE tenant_id = $1
AND last < (SELECT coalesce(min(seq), $2) FROM events WHERE tenant_id = $1)`

const sqlDeleteFeedChain = `DELETE FROM feed_chains WHERE tenant_id = $1`
