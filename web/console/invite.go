package console

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
)

// maxInvited is how many people can be invited, or corrected, in one form, as in the API: a request has time for
// that many. More are imported.
const maxInvited = 100

// newInvitation is the form.
type newInvitation struct {
	pageData
	Tabs    ui.Tabs // what is typed or pasted, and a file
	Roles   []doorward.Role
	Locales []ui.Language
	MaxDays int
	Days    int
}

func (h *console) newInvitation(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	maxDays := s.Tenant.Settings.MaxInvitationDays()
	body := newInvitation{pageData: s, Tabs: inviteTabs(c), MaxDays: maxDays, Days: min(doorward.InvitationDaysDefault, maxDays), Locales: ui.LanguagesWith(c.Site().Texts)}
	if c.Value("locale") == "" {
		c.Preset("locale", c.Language.Tag)
	}
	if c.Value("role") == "" {
		c.Preset("role", string(doorward.RoleUser))
	}
	for _, role := range highestFirst(c.Caller.Rules) {
		if c.CanOn(doorward.UserInvite, doorward.Object{TenantID: s.Tenant.ID, Granted: role}) {
			body.Roles = append(body.Roles, role)
		}
	}
	return ui.View{Page: "invite", Body: body, Wide: true}, nil
}

// inviteTabs are the ways to say who is invited.
func inviteTabs(c *ui.Call) ui.Tabs { return c.Tabs("/console/invitations/new", nil, "typed", "file") }

// RolePicker is the field for the role of those who are invited.
func (n newInvitation) RolePicker(f ui.Frame) rolePicker {
	picker := rolePicker{Frame: f, Fault: f.Faults["role"]}
	for _, role := range n.Roles {
		picker.Choices = append(picker.Choices, roleChoice{role, string(role) == f.Form.Get("role")})
	}
	return picker
}

// invite sends invitations to the people in the text. Lines that are wrong or refused are
// shown as a preview, to be corrected; more than a form can correct are shown before anything is sent.
func (h *console) invite(ctx context.Context, c *ui.Call) (ui.View, error) {
	rows, err := readPeople(c)
	if err := checkInvite(c, err); err != nil {
		return ui.View{}, err
	}
	role := doorward.Role(c.Value("role"))
	if len(rows) > maxInvited {
		return h.newImport(ctx, c, withRole(rows, role))
	}
	if err := h.app.Access.Require(ctx, c.Caller, doorward.UserInvite, doorward.Object{TenantID: c.Caller.TenantID, Granted: role}); err != nil {
		return ui.View{}, err
	}
	return h.send(ctx, c, withRole(rows, role))
}

// checkInvite returns the faults of the form: unreadable, the error of its people, and those of the other fields.
func checkInvite(c *ui.Call, unreadable error) error {
	var faults []doorward.FieldError
	if e := (*doorward.Error)(nil); errors.As(unreadable, &e) {
		faults = append(faults, e.Fields...)
	}
	if !c.Caller.Rules.Has(doorward.Role(c.Value("role"))) {
		faults = append(faults, doorward.FieldError{Pointer: "/role", Code: "invalid", Message: "Choose a role."})
	}
	days, err := strconv.ParseInt(c.Value("expiresInDays"), 10, 64)
	if err != nil || days < 1 || days > doorward.InvitationDaysMax {
		faults = append(faults, doorward.FieldError{Pointer: "/expiresInDays", Code: "out_of_range", Message: "An invitation is valid for 1 to 30 days."})
	}
	if len(faults) > 0 {
		return doorward.InvalidFields(faults...)
	}
	return nil
}

// splitPeople cuts pasted text into people, each once: they are separated by line breaks,
// semicolons or commas, as in mail programs.
func splitPeople(text string) []string {
	var all []string
	seen := map[string]bool{}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' || r == ';' }) {
		var parts []string
		if strings.Contains(part, "<") { // a name may have a comma
			parts = strings.SplitAfter(part, ">,")
		} else {
			parts = strings.Split(part, ",")
		}
		for _, p := range parts {
			if p = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(p), ",")); p != "" && !seen[p] {
				seen[p] = true
				all = append(all, p)
			}
		}
	}
	return all
}

// splitNameAndAddress returns the name and the address of "Ann Lee <ann@acme.example>"; for an
// address alone the name is empty.
func splitNameAndAddress(line string) (name, email string) {
	before, rest, named := strings.Cut(line, "<")
	if !named {
		return "", line
	}
	return strings.Trim(before, ` "'`), strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), ">"))
}

// refusalKey returns the key of the message for a refused line.
func refusalKey(err error) string {
	var e *doorward.Error
	if !errors.As(err, &e) {
		return "left.later"
	}
	reason := string(e.Code)
	if e.Quota != "" {
		reason = "quota." + string(e.Quota)
	}
	if len(e.Fields) > 0 {
		reason = strings.TrimPrefix(e.Fields[0].Pointer, "/") + "." + e.Fields[0].Code
	}
	for _, known := range []string{"already_member", "invitation_pending", "resend_too_soon", "quota.people", "quota.eventsPerDay", "email.invalid", "email.required", "email.domain_not_allowed", "expiresInDays.out_of_range", "locale.invalid"} {
		if reason == known {
			return "left." + known
		}
	}
	if strings.HasPrefix(reason, "name.") {
		return "left.name"
	}
	return "left.later"
}
