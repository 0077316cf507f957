package audit

import (
	"context"
	"maps"
	"slices"

	"github.com/doorward/doorward"
)

// Name is the current name of an actor or a target in its tenant, or the name when the person was
// removed.
type Name struct{ Name, Email string }

// Names returns the names and addresses of the actors and targets of events in the
// caller's tenant, by their ids.
func (t *Trail) Names(ctx context.Context, by doorward.Caller, events []doorward.Event) (map[string]Name, error) {
	ids := map[string]bool{}
	for _, e := range events {
		ids[e.ActorID], ids[e.Target.ID] = true, true
	}
	found, err := t.db.Read().Names(ctx, by.TenantID, slices.Sorted(maps.Keys(ids)))
	if err != nil {
		return nil, err
	}
	all := make(map[string]Name, len(found))
	for id, n := range found {
		all[id] = Name{n.Name, n.Email}
		delete(ids, id)
	}
	removals, err := t.db.Read().Removals(ctx, by.TenantID, slices.Sorted(maps.Keys(ids)))
	for _, e := range removals {
		all[e.Target.ID] = nameAtRemoval(e)
	}
	return all, err
}

// nameAtRemoval returns the name of the person whom the event removed.
func nameAtRemoval(removal doorward.Event) (n Name) {
	for _, c := range removal.Changes {
		switch c.Field {
		case doorward.FieldEmail:
			n.Email = c.From
		case doorward.FieldName:
			n.Name = c.From
		}
	}
	return n
}
