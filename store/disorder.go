package store

import "context"

// The events of a trail have numbers in the order of their transactions, which is nearly that
// of their times: a refusal is recorded after it happened, and a clock may be set back. A
// chain keeps by how much an event is before an earlier one at most, its disorder. With it a
// binary search over the numbers finds between which ones all events of a time are.

// chainTimes is what a chain knows about the times of its events. Times are in microseconds.
type chainTimes struct {
	upTo     int64 // number of the last event that latest and disorder include
	latest   int64
	disorder int64
}

func timesFields(t *chainTimes) []any { return []any{&t.upTo, &t.latest, &t.disorder} }

// include adds the next event of the chain.
func (t *chainTimes) include(seq, at int64) {
	t.disorder = max(t.disorder, t.latest-at)
	t.upTo, t.latest = seq, max(t.latest, at)
}

const sqlTimesAfter = `SELECT coalesce(max(seq), $2), coalesce(max(latest), $3), coalesce(max(latest - at), 0)
FROM (SELECT seq, at, CASE WHEN latest > $3 THEN latest ELSE $3 END AS latest
  FROM (SELECT seq, at, max(at) OVER (ORDER BY seq) AS latest FROM events WHERE tenant_id = $1 AND seq > $2) e) e`

// includeUpTo adds the events up to last, the last of the chain, that a binary without
// chainTimes has written.
func (tx *Tx) includeUpTo(ctx context.Context, tenantID string, t chainTimes, last int64) (chainTimes, error) {
	if t.upTo == last {
		return t, nil
	}
	now, err := one(ctx, tx.Reader, timesFields, sqlTimesAfter, tenantID, t.upTo, t.latest)
	now.disorder = max(now.disorder, t.disorder)
	return now, err
}

// Each step halves the range between lo, whose event is before the bound, and hi, whose event
// is not; it ends early where an event is missing. The first hi is behind all events.
// While a binary without chainTimes has written the last ones, there is no hi.
const sqlAround = `WITH RECURSIVE b (lo, hi, bound) AS (
  SELECT anchor, timed + 1, $2 + $3 * disorder FROM audit_chains WHERE tenant_id = $1 AND (timed = last OR $3 < 0)
  UNION ALL
  SELECT CASE WHEN e.at < bound THEN e.seq ELSE lo END, CASE WHEN e.at < bound THEN hi ELSE e.seq END, bound
  FROM b CROSS JOIN events e WHERE hi - lo > 1 AND e.tenant_id = $1 AND e.seq = (lo + hi) / 2)
SELECT coalesce(max(lo), 0), coalesce(min(hi), 9223372036854775807) FROM b`

// between is a range of numbers, both exclusive.
type between struct{ lo, hi int64 }

func betweenFields(b *between) []any { return []any{&b.lo, &b.hi} }

// numbersOf returns a range that has all events of the tenant from one time, and before
// another. Events before one that is earlier than from by more than the disorder are earlier
// than from, too, and events after one that is later than to by at least the disorder aren't
// before to.
func (r Reader) numbersOf(ctx context.Context, tenantID string, from, to int64) (between, error) {
	first, err := one(ctx, r, betweenFields, sqlAround, tenantID, from, -1)
	if err != nil {
		return between{}, err
	}
	last, err := one(ctx, r, betweenFields, sqlAround, tenantID, to, 1)
	return between{lo: first.lo, hi: last.hi}, err
}
