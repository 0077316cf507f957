package console

import (
	"context"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/web/ui"
)

// saidOfPerson is what a directory holds of a person, as the page shows it.
type saidOfPerson struct {
	directory.Said
	Connection string // its name
}

// attribute is an attribute with its value. Names are those of SCIM, which are the same in each language.
type attribute struct{ Name, Value string }

// Attributes are those that have a value.
func (s saidOfPerson) Attributes() (all []attribute) {
	u := s.User
	var emails []string
	for _, e := range u.Emails {
		emails = append(emails, e.Value)
	}
	for _, a := range []attribute{
		{"userName", s.UserName},
		{"externalId", s.ExternalID},
		{"displayName", u.DisplayName},
		{"name.formatted", u.Name.Formatted},
		{"name.givenName", u.Name.GivenName},
		{"name.familyName", u.Name.FamilyName},
		{"emails", strings.Join(emails, ", ")},
		{"employeeNumber", u.Enterprise.EmployeeNumber},
		{"department", u.Enterprise.Department},
		{"division", u.Enterprise.Division},
		{"organization", u.Enterprise.Organization},
		{"costCenter", u.Enterprise.CostCenter},
		{"manager", u.Enterprise.Manager.Value},
	} {
		if a.Value != "" {
			all = append(all, a)
		}
	}
	return all
}

// fillSaid reads what directories hold of the person, for those who may manage them.
func (h *console) fillSaid(ctx context.Context, c *ui.Call, p *person) error {
	if !p.CanManage && !p.IsCaller {
		return nil
	}
	said, hand, err := h.app.Directories.SaidOf(ctx, c.Caller, p.User.ID)
	if err != nil || len(said) == 0 {
		return err
	}
	p.Floor = hand
	connections, err := h.app.Connections.Of(ctx, c.Caller.TenantID)
	for _, one := range said {
		p.Said = append(p.Said, saidOfPerson{one, nameOfConnection(connections, one.ConnectionID)})
	}
	return err
}

// LeavesRole reports whether the caller may leave the role to the directory, which an OWNER has given by hand.
func (p person) LeavesRole() bool {
	return p.MayOverride && p.CanManage && p.Floor.Role != "" && p.User.Role != doorward.RoleOwner
}

// KeepsRole reports whether the caller may hold the role by hand that the person has by the directory.
func (p person) KeepsRole() bool {
	return p.MayOverride && p.CanManage && p.Floor.Role != p.User.Role && !p.User.Rules.Rank(p.User.Role).Outranks(doorward.RoleAdmin)
}

// HeldByDirectory reports whether a directory has switched the member off.
func (m member) HeldByDirectory() bool {
	return slices.ContainsFunc(m.Suspensions(), func(reason string) bool { return reason != doorward.ByAdministrator })
}

// IsManaged reports whether a connection of the tenant has made the account, which has no password yet.
func (m member) IsManaged() bool { return m.ManagedBy != "" && m.ManagedBy == m.TenantID }

// leaveRole leaves the role of a person to the groups of their directory.
func (h *console) leaveRole(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixUser)
	if err != nil {
		return ui.View{}, err
	}
	target := doorward.User{ID: id, TenantID: c.Caller.TenantID}
	_, _, err = h.app.Users.Edit(ctx, c.Caller, target, user.Edit{FromDirectory: true})
	return redirectDone(c, "/console/people/"+id, "from-directory", nil), err
}

// keepRole holds the role by hand that a person has by the groups of their directory.
func (h *console) keepRole(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixUser)
	if err != nil {
		return ui.View{}, err
	}
	role := doorward.Role(c.Value("role"))
	_, err = edit(ctx, h, c, doorward.User{ID: id, TenantID: c.Caller.TenantID}, user.Edit{Role: &role})
	return redirectDone(c, "/console/people/"+id, "keep-role", nil), err
}
