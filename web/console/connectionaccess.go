package console

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/web/ui"
)

// accessForm are the values of the form about who gets in, with which role: as typed or as stored.
type accessForm struct {
	JIT, JITRole, GroupsFrom, FactorACR string
	TrustFactor                         bool
	Ends                                string
	EndsKeys                            bool
}

// Access returns the values of the form.
func (p connectionPage) Access(f ui.Frame) accessForm {
	c := p.Connection
	if f.Form.Has("jitRole") { // the form is shown again
		return accessForm{f.Form.Get("jit"), f.Form.Get("jitRole"), f.Form.Get("groupsFrom"), f.Form.Get("factorAcr"), f.Form.Get("trustFactor") != "", f.Form.Get("ends"), f.Form.Get("endsKeys") != ""}
	}
	return accessForm{string(c.JIT), string(c.JITRole), c.GroupsFrom, strings.Join(c.FactorACR, " "), c.TrustFactor, string(c.Ends), c.EndsKeys}
}

// accessFields are the fields of that form.
func accessFields(c *ui.Call, p provider) []editedField {
	role := textField(c, "jitRole", "field.jitRole", string(p.JITRole))
	role.kind = "role"
	mappings := choiceField(c, "mappings", "sso.mappings", "", linesOf(p.Mappings))
	mappings.typed = sorted(linesOf(typedMappings(c)))
	mappings.set = func([]string) { presetMappings(c, p.Mappings) }
	if p.IsDirectory() {
		return []editedField{role, mappings}
	}
	all := []editedField{
		wordField(c, "jit", "sso.jit", "jit", string(p.JIT), jits), role, textField(c, "groupsFrom", "field.groupsFrom", p.GroupsFrom), mappings,
		choiceField(c, "trustFactor", "sso.trust", "check", checked(p.TrustFactor)), listField(c, "factorAcr", "field.factorAcr", p.FactorACR),
	}
	if p.IsSAML() {
		return all
	}
	return append(all, wordField(c, "ends", "sso.ends", "ends", string(p.Ends), allEnds), choiceField(c, "endsKeys", "sso.ends.keys", "check", checked(p.EndsKeys)))
}

// allEnds are the values of doorward.Ends, the default first.
var allEnds = []string{string(doorward.EndsTenant), string(doorward.EndsConnection)}

// AllEnds are the choices of what a revocation ends.
func (connectionPage) AllEnds() []string { return allEnds }

// checked returns the values of a checkbox.
func checked(isOn bool) []string {
	if isOn {
		return []string{"1"}
	}
	return nil
}

// linesOf returns the mappings as a conflict shows them.
func linesOf(all []doorward.GroupMapping) (lines []string) {
	for _, m := range all {
		lines = append(lines, m.Group+" → "+string(m.Role))
	}
	return lines
}

// The fields of a row of the form: group and role, with the number of the row.
func groupField(n int) string { return "group" + strconv.Itoa(n) }

func roleField(n int) string { return "groupRole" + strconv.Itoa(n) }

// typedMappings returns the rows of the form that have a group: an emptied group ends its mapping.
func typedMappings(c *ui.Call) (all []doorward.GroupMapping) {
	for n := range doorward.MappingsMax + 1 {
		if c.Values(groupField(n)) == nil {
			break
		}
		if group := strings.TrimSpace(c.Value(groupField(n))); group != "" {
			all = append(all, doorward.GroupMapping{Group: group, Role: doorward.Role(c.Value(roleField(n)))})
		}
	}
	return all
}

// presetMappings puts the mappings into the rows of the form.
func presetMappings(c *ui.Call, all []doorward.GroupMapping) {
	for n := range doorward.MappingsMax + 1 {
		switch {
		case n < len(all):
			c.Preset(groupField(n), all[n].Group)
			c.Preset(roleField(n), string(all[n].Role))
		case c.Values(groupField(n)) != nil:
			c.Preset(groupField(n), "")
		}
	}
}

// mappingRow is a row of the form.
type mappingRow struct {
	Group, Role         string
	GroupName, RoleName string // of its fields
}

// emptyRows is how many empty rows the form has, for more mappings.
const emptyRows = 2

// MappingRows are the rows of the form, the last ones empty.
func (p connectionPage) MappingRows() (rows []mappingRow) {
	all := p.Mappings
	for len(all) < min(len(p.Mappings)+emptyRows, doorward.MappingsMax) {
		all = append(all, doorward.GroupMapping{Role: p.Connection.JITRole})
	}
	for n, m := range all {
		rows = append(rows, mappingRow{m.Group, string(m.Role), groupField(n), roleField(n)})
	}
	return rows
}

func (h *console) fillAccess(ctx context.Context, c *ui.Call, body *connectionPage) error {
	rules := body.Tenant.Rules
	body.Roles = slices.DeleteFunc(highestFirst(rules), func(r doorward.Role) bool { return rules.Rank(r).Outranks(doorward.RoleAdmin) })
	if body.Mappings = body.Connection.Mappings; c.Values(groupField(0)) != nil {
		body.Mappings = typedMappings(c)
	}
	domains, err := h.app.Domains.List(ctx, c.Caller, doorward.Window{Limit: doorward.DomainsMax})
	for _, d := range domains.Items {
		if d.ConnectionID == body.Connection.ID {
			body.Domains = append(body.Domains, d.Name)
		}
	}
	return err
}

// editAccess saves who gets in, with which role, whether the provider's second factor counts, and what
// ends when the provider revokes somebody.
func (h *console) editAccess(ctx context.Context, c *ui.Call) (ui.View, error) {
	p, err := h.connectionAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	role, mappings := c.Value("jitRole"), append([]doorward.GroupMapping{}, typedMappings(c)...)
	change := connection.Change{Versions: version(c), Draft: connection.Draft{JITRole: &role, Mappings: &mappings}}
	if !p.IsDirectory() {
		typeSignOn(c, p, &change)
	}
	_, _, err = h.app.Connections.Edit(ctx, c.Caller, p.ID, change)
	return redirectDone(c, connectionPath+"/"+p.ID, "connection", nil), faultsToFormFields(err)
}

// typeSignOn adds what the form has of connections by which people sign in. By SAML no provider ends sessions.
func typeSignOn(c *ui.Call, p provider, change *connection.Change) {
	jit, groups, trusts := c.Value("jit"), strings.TrimSpace(c.Value("groupsFrom")), c.Value("trustFactor") != ""
	acr := strings.Fields(c.Value("factorAcr"))
	change.JIT, change.GroupsFrom, change.TrustFactor, change.FactorACR = &jit, &groups, &trusts, &acr
	if p.IsSAML() {
		return
	}
	ends, endsKeys := c.Value("ends"), c.Value("endsKeys") != ""
	change.Ends, change.EndsKeys = &ends, &endsKeys
}
