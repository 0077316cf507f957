package store

import "context"

// A search of a trail by time uses no index of times. It searches the numbers of the events,
// which are almost in the order of their times. Almost, because an event gets its number when it
// is recorded: a refusal is recorded some time after it happened, and a clock may be set back.
//
// So each chain stores its disorder: the most by which an event's time is before that of an
// event with a lower number. If an event is more than the disorder before an instant, all
// events with lower numbers are before that instant, too. So a binary search that adds the
// disorder finds a range of numbers that has all events of a period, and few others.

// chainTimes is what a chain stores about the times of its events, in microseconds.
type chainTimes struct {
	upTo     int64 // number of the last event that the other two include
	latest   int64 // the latest time
	disorder int64
}

func timesFields(t *chainTimes) []any { return []any{&t.upTo, &t.latest, &t.disorder} }

// include adds the next event of the chain.
func (t *chainTimes) include(seq, at int64) {
	t.disorder = max(t.disorder, t.latest-at)
	t.upTo, t.latest = seq, max(t.latest, at)
}

// sqlBinarySearch is the binary search. $2 is an instant, and $3 the direction in which the disorder
// is added to it: -1 for the first event of a period, 1 for the last. The event lo is before
// this bound, the event hi is not; the first hi is one more than the last event. Each step
// halves the range between them, and where an event is missing the search ends early with the
// range it has.
const sqlBinarySearch = `WITH RECURSIVE b (lo, hi, bound) AS (
  SELECT anchor, timed + 1, $2 + $3 * disorder FROM audit_chains WHERE tenant_id = $1
  UNION ALL
  SELECT CASE WHEN e.at < bound THEN e.seq ELSE lo END, CASE WHEN e.at < bound THEN hi ELSE e.seq END, bound
  FROM b CROSS JOIN events e WHERE hi - lo > 1 AND e.tenant_id = $1 AND e.seq = (lo + hi) / 2)
SELECT coalesce(max(lo), 0), coalesce(min(hi), 9223372036854775807) FROM b`

// openRange is the range of numbers between lo and hi, both exclusive.
type openRange struct{ lo, hi int64 }

func openRangeFields(b *openRange) []any { return []any{&b.lo, &b.hi} }

// numbersOf returns a range of numbers that has all events of the tenant at from or later, and
// before to. An event before lo is earlier than from: the event lo is earlier by more than the
// disorder. An event after hi is not earlier than to: the event hi is later by the disorder or
// more.
func (r Reader) numbersOf(ctx context.Context, tenantID string, from, to int64) (openRange, error) {
	first, err := one(ctx, r, openRangeFields, sqlBinarySearch, tenantID, from, -1)
	if err != nil {
		return openRange{}, err
	}
	last, err := one(ctx, r, openRangeFields, sqlBinarySearch, tenantID, to, 1)
	return openRange{lo: first.lo, hi: last.hi}, err
}
