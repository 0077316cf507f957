package doorward_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward"
)

// customRoles returns three roles for each built-in one: without message.read (_LESS), with the
// same permissions (_SAME) and, below OWNER, with a permission of the next role (_MORE). It adds
// MANAGER, which may only manage people, keys and roles.
func customRoles() (all []doorward.CustomRole) {
	extra := map[doorward.Role]doorward.Action{doorward.RoleViewer: doorward.MessageSend, doorward.RoleUser: doorward.AuditRead, doorward.RoleAdmin: doorward.BillingRead}
	for _, r := range doorward.Roles {
		grant := builtIn.Grant(r).Actions
		less := slices.DeleteFunc(slices.Clone(grant), func(a doorward.Action) bool { return a == doorward.MessageRead })
		all = append(all, doorward.CustomRole{Name: r + "_LESS", Permissions: less}, doorward.CustomRole{Name: r + "_SAME", Permissions: grant})
		if a := extra[r]; a != "" {
			all = append(all, doorward.CustomRole{Name: r + "_MORE", Permissions: append(slices.Clone(grant), a)})
		}
	}
	return append(all, doorward.CustomRole{Name: "MANAGER", Permissions: []doorward.Action{doorward.UserManage, doorward.UserInvite, doorward.APIKeyManage, doorward.RoleManage}})
}

// builtIn are the rules of a tenant without roles of its own: nil.
var builtIn *doorward.Rules

// ownRules are the rules of a tenant with customRoles.
var ownRules = doorward.NewRules(doorward.RulesVersion{Tenant: 1}, doorward.BuiltIn(), customRoles())

// holder returns a member who has the role in a tenant with ownRules.
func holder(role doorward.Role) doorward.Caller {
	return doorward.Caller{}.As(doorward.User{ID: "usr_own", TenantID: "tnt_own", Role: role, Status: doorward.UserActive, Rules: ownRules})
}

// columnHead returns the short name of a role: V=, V- and V+ for VIEWER_SAME, VIEWER_LESS and VIEWER_MORE, and the first
// four letters of other roles.
func columnHead(r doorward.Role) string {
	first, last, hasSuffix := strings.Cut(string(r), "_")
	if !hasSuffix {
		return first[:min(4, len(first))]
	}
	return first[:1] + map[string]string{"LESS": "-", "SAME": "=", "MORE": "+"}[last]
}

const ownLegend = `
# Roles that a tenant has made, beside the four: V-, V= and V+ are VIEWER without
# message.read, with the same permissions, and with one more; so are U, A and O.
# MANA has user.manage, user.invite, apikey.manage and role.manage alone.
# "rank" bounds who may give a role and who may act on those who have it; "acts as" is
# the highest of the four roles whose permissions it has all of.
#
# The second column is the object: "own" holds no role, "is" holds the role, "to" is given it,
# "as" is a role made or changed to have its permissions.

`

// whoMayWhatWithOwnRoles returns the part of who-may-what.txt about roles of a tenant.
func whoMayWhatWithOwnRoles(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	line := func(action, object string, cell func(doorward.Role) string) {
		text := fmt.Sprintf("%-18s %-8s", action, object)
		for _, r := range ownRules.Roles() {
			text += fmt.Sprintf(" %-5s", cell(r))
		}
		fmt.Fprintln(&out, strings.TrimRight(text, " "))
	}
	decisions := func(a doorward.Action, object string, on doorward.Object) {
		on.TenantID = "tnt_own"
		line(string(a), object, func(r doorward.Role) string { return verdict(t, holder(r), a, on) })
	}
	out.WriteString(ownLegend)
	line("role", "", columnHead)
	line("rank", "", func(r doorward.Role) string { return columnHead(ownRules.Rank(r)) })
	line("acts as", "", func(r doorward.Role) string { return cmp.Or(columnHead(ownRules.Grant(r).ActsAs), "-") })
	fmt.Fprintln(&out)
	for _, v := range doorward.Verbs() {
		if v.By == doorward.ByRole {
			decisions(v.Action, "own", doorward.Object{})
		}
	}
	for _, v := range doorward.Verbs() {
		for _, r := range ownRules.Roles() {
			if slices.Contains([]doorward.Action{doorward.UserManage, doorward.APIKeyManage, doorward.RoleManage}, v.Permission) {
				decisions(v.Action, "is "+columnHead(r), doorward.Object{Held: r})
			}
			if grants(v.Action) || v.Action == doorward.APIKeyCreate || v.Action == doorward.RoleDelete {
				decisions(v.Action, "to "+columnHead(r), doorward.Object{Granted: r})
			}
			if v.Action == doorward.RoleCreate || v.Action == doorward.RoleUpdate {
				decisions(v.Action, "as "+columnHead(r), doorward.Object{Grant: ownRules.Grant(r)})
			}
		}
	}
	return out.String()
}

// A role can't give or make a role that has a permission which it lacks, nor act on people
// with such a role.
func TestNoRoleGivesMoreThanItHas(t *testing.T) {
	hasAllOf := func(role, other doorward.Role) bool {
		has := ownRules.Grant(role).Actions
		return !slices.ContainsFunc(ownRules.Grant(other).Actions, func(a doorward.Action) bool { return !slices.Contains(has, a) })
	}
	for _, by := range ownRules.Roles() {
		for _, other := range ownRules.Roles() {
			for _, v := range doorward.Verbs() {
				objects := map[string]doorward.Object{
					"give":   {TenantID: "tnt_own", Granted: other},
					"make":   {TenantID: "tnt_own", Grant: ownRules.Grant(other)},
					"act on": {TenantID: "tnt_own", Held: other},
				}
				// Other actions, such as reading, don't compare the caller's role with the object's.
				if !slices.Contains([]doorward.Action{doorward.UserManage, doorward.APIKeyManage, doorward.RoleManage}, v.Permission) {
					delete(objects, "act on")
				}
				for relation, on := range objects {
					if v.By == doorward.ByRole && verdict(t, holder(by), v.Action, on) == "yes" && !hasAllOf(by, other) {
						t.Errorf("%s may %s %s with %s", by, relation, other, v.Action)
					}
				}
			}
		}
	}
}
