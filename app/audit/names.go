package audit

import (
	"context"
	"maps"
	"slices"

	"github.com/doorward/doorward"
)

// Name is what an actor or a target is called in its tenant now. It is empty for who has
// left.
type Name struct{ Name, Email string }

// Names returns the names and addresses of the actors and targets of events in the
// caller's tenant, by their ids.
func (t *Trail) Names(ctx context.Context, by doorward.Caller, events []doorward.Event) (map[string]Name, error) {
	ids := map[string]bool{}
	for _, e := range events {
		ids[e.ActorID], ids[e.Target.ID] = true, true
	}
	found, err := t.db.Read().Names(ctx, by.TenantID, slices.Sorted(maps.Keys(ids)))
	all := make(map[string]Name, len(found))
	for id, n := range found {
		all[id] = Name{n.Name, n.Email}
	}
	return all, err
}
