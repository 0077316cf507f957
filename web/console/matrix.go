package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/policy"
)

// maxEffectCells bounds a table of roles and actions, so that the page of a large model, or of a tenant with
// many roles, stays of a size that a browser shows at once.
const maxEffectCells = 4000

// effect is what a change of the policies does to each role, and to API keys: a table of those by actions.
type effect struct {
	Columns []holder    // the built-in roles, own roles for which something changes, and API keys
	Rows    []effectRow // the actions that change
	Reasons []effectReason
	Further int        // how many more change
	Alike   []alikeRow // the actions that don't
	More    int        // how many more of these there are
	Spared  []holder   // own roles for which nothing changes, which have no column
	ByRole  []holderChanges
	Quiet   []holder // all for whom nothing changes

	reasonAt map[string]int // the index of a reason, by its holders and causesKey
}

// holder are the people with a role, or all API keys.
type holder struct {
	Role doorward.Role // empty for API keys
}

// effectRow is an action that changes, with a cell for each column.
type effectRow struct {
	policyAction
	Cells []effectCell
}

// effectCell is the outcome before and after.
type effectCell struct {
	policy.Effect
	Reason string // the id of the reason on the page; empty if nothing changes
}

// effectReason is why actions change, for all for whom they do for the same reason.
type effectReason struct {
	ID      string
	Actions []policyAction
	Holders []holder
	policy.Effect
	// WasLines and WouldLines are the addresses of the two texts' lines, without their numbers; empty: not on the page.
	WasLines, WouldLines string
}

// holderChanges are the actions that change for somebody, for narrow screens.
type holderChanges struct {
	holder
	Changes []holderChange
}

type holderChange struct {
	policyAction
	effectCell
}

// alikeRow is an action that doesn't change: who may do it.
type alikeRow struct {
	policyAction
	Allowed, Conditional, Refused []holder
}

// effectSource is what a table is made of: cells as package policy has them, and where the lines of the
// two texts are.
type effectSource struct {
	cells                []policy.Cell
	wasLines, wouldLines string
	labels               map[doorward.Action]policyAction
}

// effectTable is the effect by action.
type effectTable struct {
	columns []holder
	rows    []effectRow // all actions, in the order of their names
}

// effectOf returns what the page shows of a matrix.
func effectOf(s effectSource) *effect {
	table := s.table()
	e := &effect{reasonAt: map[string]int{}}
	changing := table.changing()
	for i, h := range table.columns {
		switch {
		case !changing[i] && h.Role != "" && !h.Role.IsBuiltIn():
			e.Spared = append(e.Spared, h)
		default:
			e.Columns = append(e.Columns, h)
		}
		if !changing[i] {
			e.Quiet = append(e.Quiet, h)
		}
	}
	for _, row := range table.rows {
		if !row.changes() {
			e.addAlike(table.columns, row)
		} else {
			e.addRow(s, table.columns, row)
		}
	}
	e.byRole()
	return e
}

// table turns the cells into rows, with a column for each role and one for API keys.
func (s effectSource) table() (t effectTable) {
	rows, keys := map[doorward.Action]*effectRow{}, map[doorward.Action][]policy.Effect{}
	for i := range s.cells {
		c := &s.cells[i]
		if n := len(t.columns); n == 0 || t.columns[n-1].Role != c.Role {
			t.columns = append(t.columns, holder{c.Role})
		}
		if rows[c.Action] == nil {
			rows[c.Action] = &effectRow{policyAction: s.labels[c.Action]}
		}
		rows[c.Action].Cells = append(rows[c.Action].Cells, effectCell{Effect: c.Users})
		if c.Keys != nil {
			keys[c.Action] = append(keys[c.Action], *c.Keys)
		}
	}
	slices.Reverse(t.columns) // the highest role first
	t.columns = append(t.columns, holder{})
	for action, row := range rows {
		slices.Reverse(row.Cells)
		row.Cells = append(row.Cells, effectCell{Effect: joined(keys[action])})
		t.rows = append(t.rows, *row)
	}
	slices.SortFunc(t.rows, func(a, b effectRow) int { return strings.Compare(string(a.Action), string(b.Action)) })
	return t
}

// joined is the effect on API keys of several roles: it depends on the role where they differ. Without
// any, no API key can have the action.
func joined(all []policy.Effect) policy.Effect {
	if len(all) == 0 {
		return policy.Effect{Was: policy.Refused, Would: policy.Refused}
	}
	sum := all[0]
	for _, e := range all[1:] {
		if e.Was != sum.Was {
			sum.Was = policy.Conditional
		}
		if e.Would != sum.Would {
			sum.Would = policy.Conditional
		}
		sum.Changes = sum.Changes || e.Changes
		sum.WasBecause, sum.Because = joinCauses(sum.WasBecause, e.WasBecause), joinCauses(sum.Because, e.Because)
	}
	return sum
}

// joinCauses joins the causes of two outcomes: policies, if there are any.
func joinCauses(a, b policy.Causes) policy.Causes {
	all := slices.Clone(a.First)
	for _, c := range b.First {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	policies := slices.DeleteFunc(slices.Clone(all), func(c policy.Cause) bool { return c.Kind != policy.ByPolicy })
	if len(policies) > 0 {
		all = policies
	}
	others := max(a.Others, b.Others)
	if n := len(all) - policy.CausesMax; n > 0 {
		all, others = all[:policy.CausesMax], others+n
	}
	return policy.Causes{First: all, Others: others}
}

// changing reports for each column whether something changes there.
func (t effectTable) changing() []bool {
	all := make([]bool, len(t.columns))
	for _, row := range t.rows {
		for i, c := range row.Cells {
			all[i] = all[i] || c.Changes
		}
	}
	return all
}

func (r effectRow) changes() bool {
	return slices.ContainsFunc(r.Cells, func(c effectCell) bool { return c.Changes })
}

// explained reports whether each cell that changes has its causes, see policy.ReasonsMax.
func (r effectRow) explained() bool {
	return !slices.ContainsFunc(r.Cells, func(c effectCell) bool { return c.Changes && c.Because.First == nil })
}

// addRow adds an action that changes, with its reasons, unless the table is full.
func (e *effect) addRow(s effectSource, columns []holder, row effectRow) {
	if e.Further > 0 || !row.explained() || (len(e.Rows)+1)*len(e.Columns) > maxEffectCells {
		e.Further++
		return
	}
	shown := effectRow{policyAction: row.policyAction}
	ids := e.addReasons(s, columns, row)
	for i, c := range row.Cells {
		c.Reason = ids[i]
		if slices.Contains(e.Columns, columns[i]) {
			shown.Cells = append(shown.Cells, c)
		}
	}
	e.Rows = append(e.Rows, shown)
}

// addReasons adds the reasons for which an action changes, and returns the id of each cell's; empty where
// nothing changes. What changes for the same people and for the same reason shares one with other actions.
func (e *effect) addReasons(s effectSource, columns []holder, row effectRow) []string {
	ids, keys := make([]string, len(columns)), make([]string, len(columns))
	holders := map[string][]holder{}
	for i, c := range row.Cells {
		if c.Changes {
			keys[i] = causesKey(c.Effect)
			holders[keys[i]] = append(holders[keys[i]], columns[i])
		}
	}
	for i, key := range keys {
		if key == "" {
			continue
		}
		key = fmt.Sprint(holders[key], key)
		at, known := e.reasonAt[key]
		if !known {
			at, e.reasonAt[key] = len(e.Reasons), len(e.Reasons)
			e.Reasons = append(e.Reasons, effectReason{ID: fmt.Sprint("why-", at+1), Holders: holders[keys[i]], Effect: row.Cells[i].Effect, WasLines: s.wasLines, WouldLines: s.wouldLines})
		}
		reason := &e.Reasons[at]
		if n := len(reason.Actions); n == 0 || reason.Actions[n-1] != row.policyAction {
			reason.Actions = append(reason.Actions, row.policyAction)
		}
		ids[i] = reason.ID
	}
	return ids
}

// causesKey is equal for changes that are shown alike.
func causesKey(e policy.Effect) string {
	return fmt.Sprint(e.Was, e.Would, withoutRole(e.WasBecause), withoutRole(e.Because))
}

// withoutRole leaves out a role among the causes: what several roles grant is the same reason.
func withoutRole(all policy.Causes) policy.Causes {
	all.First = slices.DeleteFunc(slices.Clone(all.First), func(c policy.Cause) bool { return c.Kind == policy.ByRole })
	return all
}

// addAlike adds an action that doesn't change, unless the table is full.
func (e *effect) addAlike(columns []holder, row effectRow) {
	if (len(e.Alike)+1)*len(columns) > maxEffectCells {
		e.More++
		return
	}
	alike := alikeRow{policyAction: row.policyAction}
	for i, c := range row.Cells {
		switch c.Would {
		case policy.Allowed:
			alike.Allowed = append(alike.Allowed, columns[i])
		case policy.Conditional:
			alike.Conditional = append(alike.Conditional, columns[i])
		default:
			alike.Refused = append(alike.Refused, columns[i])
		}
	}
	e.Alike = append(e.Alike, alike)
}

// byRole fills ByRole from the rows.
func (e *effect) byRole() {
	for i, h := range e.Columns {
		one := holderChanges{holder: h}
		for _, row := range e.Rows {
			if c := row.Cells[i]; c.Changes {
				one.Changes = append(one.Changes, holderChange{row.policyAction, c})
			}
		}
		if len(one.Changes) > 0 {
			e.ByRole = append(e.ByRole, one)
		}
	}
}

// Changed is how many actions change.
func (e *effect) Changed() int { return len(e.Rows) + e.Further }

// Same is how many actions don't change.
func (e *effect) Same() int { return len(e.Alike) + e.More }

// OtherConditions reports whether the outcome depends on a condition before and after, on different ones.
func (c effectCell) OtherConditions() bool { return isOtherConditions(c.Effect) }

// OtherConditions is that of a cell, for all to whom the reason applies.
func (r effectReason) OtherConditions() bool { return isOtherConditions(r.Effect) }

func isOtherConditions(e policy.Effect) bool { return e.Changes && e.Was == e.Would }

// Before are the causes of the outcome before, and After those of the one after.
func (r effectReason) Before() effectCauses { return effectCauses{r.WasBecause, r.WasLines} }

// After is as Before.
func (r effectReason) After() effectCauses { return effectCauses{r.Because, r.WouldLines} }

// effectCauses are causes, with where the lines of their text are.
type effectCauses struct {
	policy.Causes
	Lines string
}

// actionLabels are the actions by their names.
func actionLabels(all []policyAction) map[doorward.Action]policyAction {
	labels := map[doorward.Action]policyAction{}
	for _, a := range all {
		labels[a.Action] = a
	}
	return labels
}

// versionLines is the address of the lines of a version; empty for version 0, which has none.
func versionLines(base string, version int64) string {
	if version == 0 {
		return ""
	}
	return fmt.Sprint(base, policyPath, "/versions/", version, "#L")
}

// effectOfVersions is the effect of putting one version in the place of another.
func effectOfVersions(base string, m policy.Matrix, rules *doorward.Rules) *effect {
	if m.Cells == nil {
		return nil
	}
	return effectOf(effectSource{m.Cells, versionLines(base, m.Was), versionLines(base, m.Would), actionLabels(policyActions(rules))})
}
