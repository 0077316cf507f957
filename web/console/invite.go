package console

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/web/ui"
)

// maxInvited is how many people can be invited at once, as in the API: as many as fit
// into the time limit of a request.
const maxInvited = 100

// newInvitation is the form, with the refused lines if there are any.
type newInvitation struct {
	pageData
	Roles   []doorward.Role
	Locales []ui.Language
	MaxDays int
	Days    int
	Sent    int
	Left    []refusedLine
}

// refusedLine is a refused line of the form.
type refusedLine struct {
	Line string
	Why  string // key of the message
}

func (h *console) newInvitation(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	most := s.Tenant.Settings.MaxInvitationDays()
	body := newInvitation{pageData: s, MaxDays: most, Days: min(doorward.InvitationDaysDefault, most), Locales: ui.Languages}
	for _, role := range c.Caller.Rules.Roles() {
		if access.CanAt(&c.Caller, c.Now(), doorward.UserInvite, doorward.Object{TenantID: s.Tenant.ID, Granted: role}).Allowed {
			body.Roles = append(body.Roles, role)
		}
	}
	if c.Value("locale") == "" {
		c.Preset("locale", c.Language.Tag)
	}
	if c.Value("role") == "" {
		c.Preset("role", string(doorward.RoleUser))
	}
	return ui.View{Page: "invite", Scripts: []string{"draft.js"}, Body: body, Wide: true}, nil
}

// invite sends the invitations one by one, so that a refused one doesn't affect the
// others, and shows the form again with the refused lines.
func (h *console) invite(ctx context.Context, c *ui.Call) (ui.View, error) {
	lines := splitLines(c.Value("people"))
	days, err := checkInvite(c, lines)
	if err != nil {
		return ui.View{}, err
	}
	offers := make([]invite.Offer, len(lines))
	for i, line := range lines {
		offers[i] = invite.Offer{Role: c.Value("role"), Days: &days, Locale: c.Value("locale")}
		offers[i].Name, offers[i].Email = splitLine(line)
	}
	done, err := h.app.Invitations.SendAll(ctx, c.Caller, offers)
	if err != nil {
		return ui.View{}, err
	}
	var left []refusedLine
	sent := 0
	for i, one := range done {
		switch {
		case doorward.HasCode(one.Err, doorward.CodeForbidden):
			return ui.View{}, one.Err // about the role, which is the same for all
		case one.Err != nil:
			left = append(left, refusedLine{lines[i], whyNot(one.Err)})
		default:
			sent++
		}
	}
	if len(left) == 0 {
		return c.To("/console/invitations?status=PENDING&done=invited&count=" + strconv.Itoa(sent)), nil
	}
	return h.inviteAgain(ctx, c, sent, left)
}

// checkInvite returns the values that are the same for all lines, or their faults.
func checkInvite(c *ui.Call, lines []string) (days int64, err error) {
	var faults []doorward.FieldError
	switch {
	case len(lines) == 0:
		faults = append(faults, doorward.FieldError{Pointer: "/people", Code: "required", Message: "Enter the addresses to invite."})
	case len(lines) > maxInvited:
		faults = append(faults, doorward.FieldError{Pointer: "/people", Code: "out_of_range", Message: "Invite 100 people at once at most."})
	}
	if !c.Caller.Rules.Has(doorward.Role(c.Value("role"))) {
		faults = append(faults, doorward.FieldError{Pointer: "/role", Code: "invalid", Message: "Choose a role."})
	}
	days, err = strconv.ParseInt(c.Value("expiresInDays"), 10, 64)
	if err != nil || days < 1 || days > doorward.InvitationDaysMax {
		faults = append(faults, doorward.FieldError{Pointer: "/expiresInDays", Code: "out_of_range", Message: "An invitation is valid for 1 to 30 days."})
	}
	if len(faults) > 0 {
		return 0, doorward.InvalidFields(faults...)
	}
	return days, nil
}

func (h *console) inviteAgain(ctx context.Context, c *ui.Call, sent int, left []refusedLine) (ui.View, error) {
	var again []string
	for _, l := range left {
		again = append(again, l.Line)
	}
	c.Preset("people", strings.Join(again, "\n"))
	v, err := h.newInvitation(ctx, c)
	if body, ok := v.Body.(newInvitation); ok {
		body.Sent, body.Left = sent, left
		v.Body = body
	}
	v.Status = http.StatusUnprocessableEntity
	return v, err
}

// splitLines returns the people in the pasted text: one per line, or separated as
// in mail programs, without duplicates.
func splitLines(text string) []string {
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

// splitLine reads "Ann Lee <ann@acme.example>", or an address alone.
func splitLine(line string) (name, email string) {
	before, rest, named := strings.Cut(line, "<")
	if !named {
		return "", line
	}
	return strings.Trim(before, ` "'`), strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), ">"))
}

// whyNot returns the key of the message for a refused line.
func whyNot(err error) string {
	var e *doorward.Error
	if !errors.As(err, &e) {
		return "left.later"
	}
	what := string(e.Code)
	if len(e.Fields) > 0 {
		what = strings.TrimPrefix(e.Fields[0].Pointer, "/") + "." + e.Fields[0].Code
	}
	for _, known := range []string{"already_member", "invitation_pending", "resend_too_soon", "email.invalid", "email.required", "email.domain_not_allowed", "expiresInDays.out_of_range", "locale.invalid"} {
		if what == known {
			return "left." + known
		}
	}
	if strings.HasPrefix(what, "name.") {
		return "left.name"
	}
	return "left.later"
}
