package console

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/web/ui"
)

// linksLookedUp bounds the set-up links whose makers are looked up for one page: the newest of the tenant.
const linksLookedUp = 100

// nameSetupLinks names set-up links that have acted by who made them, as the trail says: a link itself is gone when it
// has ended. One whose maker has no name any more is a set-up link.
func (h *console) nameSetupLinks(ctx context.Context, c *ui.Call, events []doorward.Event, known map[string]identity) error {
	if !slices.ContainsFunc(events, func(e doorward.Event) bool { return e.ActorType == doorward.BySetupLink }) {
		return nil
	}
	made, err := h.app.Audit.List(ctx, c.Caller, audit.Filter{Action: string(doorward.SetupLinkManage), Outcome: string(doorward.Done)}, doorward.Window{Limit: linksLookedUp})
	if err != nil {
		return err
	}
	for _, e := range events {
		if e.ActorType != doorward.BySetupLink || known[e.ActorID].Name != "" {
			continue
		}
		if known[e.ActorID], err = h.setupLinkActor(ctx, c, e.ActorID, made.Items); err != nil {
			return err
		}
	}
	return nil
}

// setupLinkActor returns the set-up link as an actor; made are the events of links that were made.
func (h *console) setupLinkActor(ctx context.Context, c *ui.Call, id string, made []doorward.Event) (identity, error) {
	name, err := c.Text("actor.setup_link")
	for _, e := range made {
		isIts := slices.ContainsFunc(e.Changes, func(ch doorward.Change) bool { return ch.Field == doorward.FieldSetupLink && ch.To == id })
		if err != nil || !isIts || e.ActorType != doorward.ByUser {
			continue
		}
		maker, failed := h.identify(ctx, c, doorward.Object{Type: "user", ID: e.ActorID})
		if failed != nil && !doorward.HasCode(failed, doorward.CodeNotFound) {
			return identity{}, failed
		}
		if by := cmp.Or(maker.Name, e.ActorEmail); by != "" {
			var of string
			of, err = c.Text("actor.setup_link.of")
			name = strings.ReplaceAll(of, "{name}", by)
		}
	}
	return identity{ID: id, Name: name}, err
}
