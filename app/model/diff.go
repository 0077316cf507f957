package model

import (
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/modelfile"
	"github.com/doorward/doorward/app/rules"
	"github.com/doorward/doorward/store"
)

// Plan is what applying a text would change.
type Plan struct {
	Base    Version            // the current one, which the text is compared with
	Changes []modelfile.Change // of actions
	Parts   []PartChange
	Roles   []Holder       // roles of tenants that would gain or lose something
	Keys    []Holder       // API keys that would gain or lose something
	Broken  []BrokenPolicy // policies of tenants that would no longer apply, since the text lacks what they name
}

// Holder is a role of a tenant or an API key, with what it would gain and lose.
type Holder struct {
	TenantID string
	ID, Name string
	Gains    []doorward.Action
	Loses    []doorward.Action
	// Rank and NewRank are those of a role, empty for a key.
	Rank, NewRank doorward.Role
}

// Diff returns what applying the text would change, and writes nothing. It reads the
// roles and keys of all tenants. Errors: validation_failed, unavailable.
func (m *Models) Diff(ctx context.Context, text string) (p Plan, err error) {
	file, err := read(text)
	if err != nil {
		return p, err
	}
	after, err := rules.Model(file)
	if err != nil {
		return p, err
	}
	err = m.db.Snapshot(ctx, func(read store.Reader) error {
		if p.Base, err = current(ctx, read); err != nil {
			return err
		}
		if p.Changes, err = changes(p.Base, file); err != nil {
			return err
		}
		if p.Parts, err = partChanges(p.Base, file, text); err != nil {
			return err
		}
		if p.Broken, err = brokenPolicies(ctx, read, p.Base, text); err != nil {
			return err
		}
		before, err := compile(p.Base)
		if err != nil {
			return err
		}
		return p.addHolders(ctx, read, m.db.Now(), before, after)
	})
	return p, err
}

// addHolders compares what each role of a tenant and each key may do.
func (p *Plan) addHolders(ctx context.Context, read store.Reader, now time.Time, before, after *doorward.Model) error {
	roles := map[string][]doorward.CustomRole{}
	err := read.EachCustomRole(ctx, func(r store.RoleOfTenant) error {
		roles[r.TenantID] = append(roles[r.TenantID], r.CustomRole)
		was, would := before.GrantOf(r.Permissions), after.GrantOf(r.Permissions)
		h := Holder{TenantID: r.TenantID, ID: r.ID, Name: string(r.Name), Rank: was.Rank, NewRank: would.Rank}
		if h.compare(was.Actions, would.Actions) || h.Rank != h.NewRank {
			p.Roles = append(p.Roles, h)
		}
		return nil
	})
	if err != nil {
		return err
	}
	rulesBefore, rulesAfter := rulesWith(before, roles), rulesWith(after, roles)
	return read.EachLiveAPIKey(ctx, now, func(k doorward.APIKey) error {
		h := Holder{TenantID: k.TenantID, ID: k.ID, Name: k.Name}
		k.Rules = rulesBefore(k.TenantID)
		was := k.EffectivePermissions()
		k.Rules = rulesAfter(k.TenantID)
		if h.compare(was, k.EffectivePermissions()) {
			p.Keys = append(p.Keys, h)
		}
		return nil
	})
}

// rulesWith returns a function that returns the rules of a tenant under a model. The function
// caches the rules of one tenant with roles of its own, so call it tenant by tenant.
func rulesWith(m *doorward.Model, roles map[string][]doorward.CustomRole) func(tenantID string) *doorward.Rules {
	plain := doorward.NewRules(doorward.RulesVersion{}, m, nil)
	lastTenant, lastRules := "", plain
	return func(tenantID string) *doorward.Rules {
		switch {
		case len(roles[tenantID]) == 0:
			return plain
		case lastTenant != tenantID:
			lastTenant, lastRules = tenantID, doorward.NewRules(doorward.RulesVersion{}, m, roles[tenantID])
		}
		return lastRules
	}
}

// compare sets Gains and Loses, and reports whether there are any.
func (h *Holder) compare(was, would []doorward.Action) bool {
	h.Gains, h.Loses = without(would, was), without(was, would)
	return len(h.Gains)+len(h.Loses) > 0
}

// without returns the actions that are not among the others.
func without(actions, others []doorward.Action) (all []doorward.Action) {
	for _, a := range actions {
		if !slices.Contains(others, a) {
			all = append(all, a)
		}
	}
	return all
}
