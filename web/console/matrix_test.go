package console

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/policy"
)

// The table has the built-in roles, own roles for which something changes, and API keys; the others are
// named, and what doesn't change is folded. All for whom it changes for the same reason share it.
func TestEffectTable(t *testing.T) {
	e := sampledEffect("#L", "#T")
	if want := []holder{{"OWNER"}, {"ADMIN"}, {"USER"}, {"VIEWER"}, {}}; !slices.Equal(e.Columns, want) {
		t.Errorf("the columns are %v", e.Columns)
	}
	if !slices.Equal(e.Spared, []holder{{"REVIEWER"}}) || !slices.Equal(e.Quiet, []holder{{"REVIEWER"}, {"VIEWER"}}) {
		t.Errorf("nothing changes for %v, on a phone %v", e.Spared, e.Quiet)
	}
	var got []string
	for _, r := range e.Reasons {
		got = append(got, fmt.Sprintf("%s %d %v%s%s%t", r.Actions[0].Action, len(r.Actions), r.Holders, r.Was, r.Would, r.OtherConditions()))
	}
	for _, row := range e.Rows {
		for i, c := range row.Cells {
			named := slices.ContainsFunc(e.Reasons, func(r effectReason) bool {
				return r.ID == c.Reason && slices.Contains(r.Holders, e.Columns[i]) && slices.Contains(r.Actions, row.policyAction)
			})
			if named != c.Changes {
				t.Errorf("%s of %v changes: %t, and leads to a reason: %t", row.Action, e.Columns[i], c.Changes, named)
			}
		}
	}
	want := []string{
		"audit.read 1 [{OWNER} {ADMIN} {}]refusedallowedfalse",
		"message.send 1 [{OWNER} {ADMIN} {USER} {}]allowedrefusedfalse",
		"settings.manage 1 [{OWNER} {ADMIN} {}]conditionalconditionaltrue",
		"user.invite 1 [{OWNER} {ADMIN}]allowedconditionalfalse",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if e.Changed() != 4 || e.Same() != len(policyActions(nil))-4 {
		t.Errorf("%d change, %d don't", e.Changed(), e.Same())
	}
}

// API keys have one column: where keys of several roles differ, it depends on the key.
func TestEffectOnKeys(t *testing.T) {
	is := func(was, would policy.Outcome, id string) policy.Effect {
		e := policy.Effect{Was: was, Would: would, Changes: was != would}
		if e.Changes {
			e.WasBecause.First = []policy.Cause{{Kind: policy.ByRole, ID: "USER"}}
			e.Because.First = []policy.Cause{{Kind: policy.ByPolicy, ID: id}}
		}
		return e
	}
	none := joined(nil)
	if none.Changes || none.Would != policy.Refused {
		t.Errorf("without a key that can have it: %+v", none)
	}
	some := joined([]policy.Effect{is(policy.Allowed, policy.Allowed, ""), is(policy.Allowed, policy.Refused, "a"), is(policy.Allowed, policy.Conditional, "b")})
	if !some.Changes || some.Was != policy.Allowed || some.Would != policy.Conditional || len(some.Because.First) != 2 {
		t.Errorf("keys of three roles: %+v", some)
	}
}

// A page shows a bounded number of cells, and says how many actions it leaves out.
func TestEffectIsBounded(t *testing.T) {
	const actions = 1500
	s := effectSource{labels: map[doorward.Action]policyAction{}}
	for _, role := range doorward.Roles {
		for i := range actions {
			name := doorward.Action(fmt.Sprintf("doc.a%04d", i))
			s.labels[name] = policyAction{Action: name}
			c := policy.Cell{Role: role, Action: name, Users: policy.Effect{Was: policy.Allowed, Would: policy.Allowed}}
			if i%2 == 0 && role == doorward.RoleOwner {
				c.Users = policy.Effect{Was: policy.Allowed, Would: policy.Refused, Changes: true}
				if i < 400 { // the others have no causes, see policy.ReasonsMax
					c.Users.Because.First = []policy.Cause{{Kind: policy.ByPolicy, ID: "a"}}
				}
			}
			s.cells = append(s.cells, c)
		}
	}
	e := effectOf(s)
	if len(e.Rows) != 200 || e.Further != 550 || len(e.Alike)+e.More != 750 {
		t.Errorf("%d rows and %d further, %d alike and %d more", len(e.Rows), e.Further, len(e.Alike), e.More)
	}
	if (len(e.Rows)+len(e.Alike))*len(e.Columns) > 2*maxEffectCells {
		t.Errorf("%d rows", len(e.Rows)+len(e.Alike))
	}
}
