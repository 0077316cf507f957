package store

import (
	"context"
	"errors"
	"time"
)

// oldLink is what TrimTrail reads of an event to decide on its deletion. seq and hash of the
// last one that it deletes become the anchor.
type oldLink struct {
	at   time.Time
	seq  int64
	hash []byte
}

func oldLinkFields(l *oldLink) []any { return []any{(*storedTime)(&l.at), &l.seq, &l.hash} }

const (
	// The subquery reads one row by an index, so this is quick however long the trails are.
	// Events of the future were written while the clock was ahead. A tenant may keep events for a shorter time
	// than the installation; $4 is now.
	keptSince    = `CASE WHEN t.keep_events_days IS NOT NULL AND $4 - t.keep_events_days * 86400000000 > $1 THEN $4 - t.keep_events_days * 86400000000 ELSE $1 END`
	trailBegins  = `(SELECT at FROM events e WHERE e.tenant_id = c.tenant_id ORDER BY seq LIMIT 1) NOT BETWEEN ` + keptSince + ` AND $2`
	sqlTrailsDue = `SELECT c.tenant_id AS id FROM audit_chains c LEFT JOIN tenants t ON t.id = c.tenant_id
WHERE c.last > c.anchor AND ` + trailBegins + ` ORDER BY c.tenant_id LIMIT $3`
	// For an installation that keeps events for ever: only trails of tenants that don't.
	sqlShortTrailsDue = `SELECT c.tenant_id AS id FROM tenants t JOIN audit_chains c ON c.tenant_id = t.id
WHERE t.keep_events_days IS NOT NULL AND c.last > c.anchor AND ` + trailBegins + ` ORDER BY c.tenant_id LIMIT $3`
	sqlOldestLinks = `SELECT at, seq, hash FROM events WHERE tenant_id = $1 ORDER BY seq LIMIT $2`
	sqlTrimEvents  = `DELETE FROM events WHERE tenant_id = $1 AND seq <= $2`
	sqlSetAnchor   = `UPDATE audit_chains SET anchor = $2, anchor_hash = $3 WHERE tenant_id = $1 AND anchor < $2`
)

// TrailsDue returns tenants whose trail begins with an event from before the instant since which events are kept
// (the installation's, or the tenant's), or from later than now plus ClockTolerance. If the installation keeps
// events for ever, since is zero, and only tenants count that don't.
func (r Reader) TrailsDue(ctx context.Context, since, now time.Time, limit int) ([]string, error) {
	query := sqlTrailsDue
	if since.IsZero() {
		query = sqlShortTrailsDue
	}
	return list(ctx, r, textField, query, microsOrZero(since), micros(now.Add(ClockTolerance)), limit, micros(now))
}

// TrimTrail deletes up to limit events from the beginning of a trail, as long as they are
// from before an instant, or from the future, written while the clock was ahead. It returns
// how many. The last of them becomes the anchor from which the chain is verified. The lock on
// the chain is taken almost last, so nobody waits for the deletion.
func (tx *Tx) TrimTrail(ctx context.Context, tenantID string, before time.Time, limit int) (int64, error) {
	oldest, err := list(ctx, tx.Reader, oldLinkFields, sqlOldestLinks, tenantID, limit)
	if err != nil {
		return 0, err
	}
	n, future := 0, tx.Now.Add(ClockTolerance)
	for n < len(oldest) && (oldest[n].at.Before(before) || oldest[n].at.After(future)) {
		n++
	}
	if n == 0 {
		return 0, nil
	}
	cut := oldest[n-1]
	deleted, err := tx.exec(ctx, sqlTrimEvents, tenantID, cut.seq)
	if err != nil {
		return 0, err
	}
	if err := tx.trimFeed(ctx, tenantID, cut.seq); err != nil {
		return 0, err
	}
	if err := tx.run(ctx, sqlSetAnchor, tenantID, cut.seq, cut.hash); err != nil {
		return 0, err
	}
	return deleted, tx.trimUsage(ctx, tenantID, before)
}

const (
	sqlCountFeedTrim    = `UPDATE feed_state SET trims = trims + 1 WHERE id = 1 AND last > 0 RETURNING epoch, last, trims`
	sqlLastTrimmedPos   = `SELECT coalesce(max(pos), 0) FROM feed WHERE tenant_id = $1 AND after < $2`
	sqlDeleteFeedRows   = `DELETE FROM feed WHERE tenant_id = $1 AND last <= $2`
	sqlShortenFeedRow   = `UPDATE feed SET after = $2 WHERE tenant_id = $1 AND after < $2`
	sqlAdvanceFeedChain = `INSERT INTO feed_chains (tenant_id, last) VALUES ($1, $2)
ON CONFLICT (tenant_id) DO UPDATE SET last = $2 WHERE feed_chains.last < $2`
	sqlForgetFeedTrims = `DELETE FROM feed_trims WHERE pos <= $1`
	sqlInsertFeedTrim  = `INSERT INTO feed_trims (trim, pos) VALUES ($1, $2)`
)

// trimFeed removes events up to seq from the feed, and records the last position that lost
// some: readers before it learn that events are missing. If some had not entered the feed
// yet, every reader learns it. It does nothing until the feed has had a row.
func (tx *Tx) trimFeed(ctx context.Context, tenantID string, seq int64) error {
	state, err := one(ctx, tx.Reader, feedStateFields, sqlCountFeedTrim)
	if errors.Is(err, ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	missed, err := one(ctx, tx.Reader, int64Column, sqlLastTrimmedPos, tenantID, seq)
	if err != nil {
		return err
	}
	if notEntered, err := tx.affected(ctx, sqlAdvanceFeedChain, tenantID, seq); err != nil {
		return err
	} else if notEntered {
		missed = state.last + 1
		if err := tx.run(ctx, sqlSetFeedLast, missed); err != nil {
			return err
		}
	}
	if err := tx.run(ctx, sqlDeleteFeedRows, tenantID, seq); err != nil {
		return err
	}
	if err := tx.run(ctx, sqlShortenFeedRow, tenantID, seq); err != nil || missed == 0 {
		return err
	}
	if err := tx.run(ctx, sqlForgetFeedTrims, missed); err != nil {
		return err
	}
	return tx.run(ctx, sqlInsertFeedTrim, state.trims, missed)
}
