package doorward_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/doorward/doorward"
)

const linkLegend = `
# Set-up links of the connection con_own, by who has made them, or by the status of the tenant.
#
# own     the connection, or a domain by which its people sign in
# beside  another connection of the tenant, or a domain of it
# none    what belongs to no connection
# other   the connection of another tenant
#
# Actions that are refused with 403 to all of them are left out.

`

// linksOf has set-up links by a short name.
var linksOf = []struct {
	name string
	by   doorward.Caller
}{
	{"OWNER", link(doorward.RoleOwner, doorward.UserActive, doorward.TenantActive)},
	{"ADMIN", link(doorward.RoleAdmin, doorward.UserActive, doorward.TenantActive)},
	{"suspended", link(doorward.RoleOwner, doorward.UserSuspended, doorward.TenantActive)},
	{"frozen", link(doorward.RoleOwner, doorward.UserActive, doorward.TenantFrozen)},
	{"closing", link(doorward.RoleOwner, doorward.UserActive, doorward.TenantClosing)},
}

func link(role doorward.Role, status doorward.UserStatus, tenant doorward.TenantStatus) doorward.Caller {
	maker := doorward.User{ID: "usr_own", TenantID: "tnt_own", TenantStatus: tenant, Role: role, Status: status}
	l := doorward.SetupLink{ID: "stl_own", TenantID: "tnt_own", ConnectionID: "con_own", MakerID: maker.ID}
	return doorward.Caller{Principal: doorward.PrincipalOfSetupLink(l, maker)}
}

// objectsOfLinks are the objects of the rows.
var objectsOfLinks = []struct {
	name string
	on   doorward.Object
}{
	{"own", doorward.Object{TenantID: "tnt_own", ConnectionID: "con_own"}},
	{"beside", doorward.Object{TenantID: "tnt_own", ConnectionID: "con_beside"}},
	{"none", doorward.Object{TenantID: "tnt_own"}},
	{"other", doorward.Object{TenantID: "tnt_other", ConnectionID: "con_own"}},
}

// whoMayWhatByLinks returns the part of who-may-what.txt about set-up links. A verb that isn't marked for them
// must be refused on every object.
func whoMayWhatByLinks(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	out.WriteString(linkLegend)
	line := func(action, object string, cell func(name string, by doorward.Caller) string) {
		text := fmt.Sprintf("%-22s %-8s", action, object)
		for _, l := range linksOf {
			text += fmt.Sprintf(" %-10s", cell(l.name, l.by))
		}
		fmt.Fprintln(&out, strings.TrimRight(text, " "))
	}
	line("action", "object", func(name string, _ doorward.Caller) string { return name })
	for _, verb := range doorward.Verbs() {
		for _, o := range objectsOfLinks {
			judge := func(_ string, by doorward.Caller) string { return verdict(t, by, verb.Action, o.on) }
			if verb.SetupLink {
				line(string(verb.Action), o.name, judge)
				continue
			}
			for _, l := range linksOf {
				if got := judge(l.name, l.by); got != "403" && !(got == "404" && o.name == "other") {
					t.Errorf("%s by a set-up link, maker or tenant %s, on %s: %s; the verb isn't marked for links", verb.Action, l.name, o.name, got)
				}
			}
		}
	}
	return out.String()
}
