package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// patterns select actions: "*", an action, or the first words of actions and ".*".
type patterns []string

// parsePatterns parses patterns that are separated by commas; an empty text selects all actions.
// Errors: validation_failed.
func parsePatterns(text string) (patterns, error) {
	if text == "" {
		return nil, nil
	}
	all := patterns(strings.Split(text, ","))
	for _, pattern := range all {
		known := func(v doorward.Verb) bool { return patterns{pattern}.matches(v.Action) }
		if !slices.ContainsFunc(doorward.Verbs(), known) {
			return nil, doorward.InvalidFields(doorward.FieldError{
				Parameter: "types", Code: "invalid",
				Message: "Write actions, or their first word and .*, separated by commas, such as user.*,session.open. docs/events.md lists all.",
			})
		}
	}
	return all, nil
}

func (t patterns) matches(a doorward.Action) bool {
	for _, pattern := range t {
		group, wild := strings.CutSuffix(pattern, "*")
		if string(a) == pattern || wild && strings.HasPrefix(string(a), group) && (group == "" || strings.HasSuffix(group, ".")) {
			return true
		}
	}
	return len(t) == 0
}

const (
	feedBatch   = 500  // events read at once
	maxFeedScan = 5000 // events read for one page, including those of other types
)

func eventsGone(reason string) error {
	return doorward.Fail(doorward.CodeEventsGone, "%s Begin again without after: the answer then begins with the oldest event that is kept.", reason)
}

// Feed returns at most limit events of the caller's tenant in the order of their numbers, and the
// number of the last event that it has read. It begins after that number, or with the oldest
// event that is kept if after is nil. types selects actions, in the form of parsePatterns.
// Errors: validation_failed, events_gone.
func (t *Trail) Feed(ctx context.Context, by doorward.Caller, after *int64, types string, limit int) (events []doorward.Event, last int64, err error) {
	wanted, err := parsePatterns(types)
	if err != nil {
		return nil, 0, err
	}
	chain, err := t.db.Read().Chain(ctx, by.TenantID)
	if err != nil && !errors.Is(err, store.ErrNone) {
		return nil, 0, err
	}
	last = chain.Anchor
	if after != nil {
		last = *after
	}
	switch {
	case last < chain.Anchor:
		return nil, 0, eventsGone("Events after this one are no longer kept.")
	case last > chain.Last:
		return nil, 0, eventsGone("The trail ends before this number. It was probably restored from a backup.")
	}
	return t.pageOfTrail(ctx, by.TenantID, last, wanted, limit)
}

func (t *Trail) pageOfTrail(ctx context.Context, tenantID string, last int64, wanted patterns, limit int) (events []doorward.Event, _ int64, err error) {
	for scanned := 0; scanned < maxFeedScan && len(events) < limit; {
		read, err := t.db.Read().EventsAfter(ctx, tenantID, last, feedBatch)
		if err != nil {
			return nil, 0, err
		}
		for _, e := range read {
			if e.Seq != last+1 {
				return nil, 0, eventsGone("Events after this one were deleted just now.")
			}
			if last = e.Seq; wanted.matches(e.Action) {
				events = append(events, e)
			}
			if len(events) == limit {
				break
			}
		}
		if scanned += len(read); len(read) < feedBatch {
			break
		}
	}
	return events, last, nil
}

// FeedAll returns at most limit events of the tenants that the service key covers, by number within
// each tenant, and the position after the last event that it has read. It includes the
// installation's events about tenants. No event is ever added before a returned position, even
// if its transaction commits late. types selects actions, in the form of parsePatterns. Errors:
// validation_failed, events_gone.
func (t *Trail) FeedAll(ctx context.Context, by doorward.Caller, after doorward.Position, types string, limit int) ([]doorward.Event, doorward.Position, error) {
	wanted, err := parsePatterns(types)
	if err != nil {
		return nil, after, err
	}
	events, next, err := t.feed(ctx, feedPosition(after), limit, func(e doorward.Event) bool {
		id := e.Target.TenantID
		if id == "" && e.Target.Type == "tenant" {
			id = e.Target.ID
		}
		return id != "" && by.Service.Covers(id) && wanted.matches(e.Action)
	})
	return events, listPosition(next), err
}

// listPosition converts a position to the form that cursors have.
func listPosition(p store.FeedPosition) doorward.Position {
	return doorward.Position{At: p.Pos, ID: fmt.Sprintf("%d %d %s", p.Trims, p.Seq, p.Epoch)}
}

// feedPosition is the inverse of listPosition. It needs no checks, since cursors are signed.
func feedPosition(at doorward.Position) store.FeedPosition {
	p := store.FeedPosition{Pos: at.At}
	_, _ = fmt.Sscanf(at.ID, "%d %d %s", &p.Trims, &p.Seq, &p.Epoch)
	return p
}

// feed returns at most limit events after a position for which wanted is true, and the position
// after the last event that it has read.
func (t *Trail) feed(ctx context.Context, at store.FeedPosition, limit int, wanted func(doorward.Event) bool) (events []doorward.Event, _ store.FeedPosition, err error) {
	if err := t.extendFeed(ctx); err != nil {
		return nil, at, err
	}
	for scanned := 0; scanned < maxFeedScan && len(events) < limit; {
		page, err := t.feedPage(ctx, at, feedBatch)
		if err != nil {
			return nil, at, err
		}
		if page.Gone {
			return nil, at, eventsGone("Events after this cursor are no longer kept.")
		}
		at = page.End
		at.Pos, at.Seq = page.Read, 0 // all rows of the page, unless the loop below ends early
		for i, e := range page.Events {
			if wanted(e.Event) {
				events = append(events, e.Event)
			}
			if i == feedBatch-1 || len(events) == limit {
				at.Pos, at.Seq = e.Pos-1, e.Seq // the row of e is read only up to e
				break
			}
		}
		if scanned += max(len(page.Events), 1); at.Pos == page.End.Pos { // all of the feed is read
			break
		}
	}
	return events, at, nil
}

func (t *Trail) feedPage(ctx context.Context, at store.FeedPosition, limit int) (page store.FeedPage, err error) {
	err = t.db.Snapshot(ctx, func(read store.Reader) (err error) {
		page, err = read.Feed(ctx, at, limit)
		return err
	})
	return page, err
}

// extendRows is how many rows one transaction adds to the feed.
const extendRows = 500

// extendFeed appends the events that were committed since the last call. Its lock makes only other
// readers of the feed wait, not writers of events.
func (t *Trail) extendFeed(ctx context.Context) error {
	behind, err := t.db.Read().FeedIsBehind(ctx)
	for more := behind; more && err == nil; {
		err = t.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
			more, err = tx.ExtendFeed(ctx, doorward.NewID("feed_"), extendRows)
			return err
		})
	}
	return err
}
