package modelfile

import (
	"cmp"
	"slices"
)

// Change is what another model changes about an action. Before is nil for an action that
// is new, After for one that is gone.
type Change struct {
	Name          string
	Before, After *Action
}

// Gained returns the roles that grant the action after the change and did not before.
func (c Change) Gained() []string { return missingRoles(c.After, c.Before) }

// Lost returns the roles that granted the action before and don't after.
func (c Change) Lost() []string { return missingRoles(c.Before, c.After) }

// missingRoles returns the roles of one action that another lacks.
func missingRoles(action, other *Action) (roles []string) {
	if action == nil {
		return nil
	}
	for _, role := range action.Roles {
		if other == nil || !slices.Contains(other.Roles, role) {
			roles = append(roles, role)
		}
	}
	return roles
}

// Diff returns how the actions of a model differ from those of an earlier one, sorted by
// name. Their places in the text are ignored.
func Diff(before, after *File) (changes []Change) {
	byName := map[string]Change{}
	for i, a := range before.Actions {
		byName[a.Name] = Change{Name: a.Name, Before: &before.Actions[i]}
	}
	for i, a := range after.Actions {
		c := byName[a.Name]
		c.Name, c.After = a.Name, &after.Actions[i]
		byName[a.Name] = c
	}
	for _, c := range byName {
		if c.Before == nil || c.After == nil || !c.Before.isEqual(c.After) {
			changes = append(changes, c)
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Name, b.Name) })
	return changes
}

func (a *Action) isEqual(b *Action) bool {
	return a.Name == b.Name && a.About == b.About && slices.Equal(a.Roles, b.Roles) &&
		a.Resource == b.Resource && a.StepUp == b.StepUp && a.Keys == b.Keys
}
