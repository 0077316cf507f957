package console

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/web/ui"
)

const previewPath = "/console/invitations/preview"

// maxPeopleFile bounds a file with people, in bytes.
const maxPeopleFile = 256 << 10

// maxPeopleForm bounds a form with the text of such a file, or with the rows read from it, in
// bytes: a browser encodes a byte as up to three.
const maxPeopleForm = 4 * maxPeopleFile

// maxPeopleLines bounds the lines of a list before any is read, those of repeated people and of values with line breaks
// too: half a million short lines would take the time of thousands of requests.
const maxPeopleLines = 10 * maxImported

// previewPage shows what was read of each person, to be corrected and sent.
type previewPage struct {
	newInvitation
	Rows   []draft
	Sent   int // rows of the last preview that were sent
	Faults int // rows with a fault
	Locale string
}

// previewInvitations shows what was read from the text, a file, or the corrected rows: a form to correct, or a list
// to import if there are too many for one.
func (h *console) previewInvitations(ctx context.Context, c *ui.Call) (ui.View, error) {
	rows := correctedRows(c)
	if rows == nil {
		var err error
		if rows, err = readPeople(c); err != nil {
			return ui.View{}, err
		}
	}
	rows = withRole(rows, doorward.Role(cmp.Or(c.Value("role"), string(doorward.RoleUser))))
	switch {
	case len(rows) == 0:
		return ui.View{}, doorward.Invalid("/people", "required", "Enter the addresses to invite.")
	case len(rows) > maxImported:
		return ui.View{}, tooManyPeople("/people")
	case len(rows) > maxInvited:
		return h.newImport(ctx, c, rows)
	}
	v, err := h.showPreview(ctx, c, rows, 0)
	if p, ok := v.Body.(previewPage); err == nil && ok {
		err = h.addRefusals(ctx, c, &p)
		v.Body = p
	}
	return v, err
}

// readPeople returns the people in the form's text or file: at least one. Errors: validation_failed.
func readPeople(c *ui.Call) ([]draft, error) {
	field := "/people"
	if inviteTabs(c).Is("file") {
		field = "/file"
	}
	text := c.Value("people") + decodeText(c.File())
	switch {
	case !isReadable(c.File()):
		return nil, doorward.Invalid(field, "not_text", "This file is no text. Save it as CSV.")
	case len(textLines(text)) > maxPeopleLines:
		return nil, tooManyPeople(field)
	case hasPasswords(text):
		return nil, doorward.Invalid(field, "passwords", "Leave the passwords out: only the operator's command imports them.")
	}
	rows := parsePeople(text, c.Caller.Rules)
	switch {
	case len(rows) == 0:
		return nil, doorward.Invalid(field, "required", "Enter the addresses to invite.")
	case len(rows) > maxImported:
		return nil, tooManyPeople(field)
	}
	return rows, nil
}

func tooManyPeople(field string) error {
	return doorward.Invalid(field, "out_of_range", "Invite 1,000 people at once at most.")
}

// addRefusals adds to the rows without a fault why sending them would be refused.
func (h *console) addRefusals(ctx context.Context, c *ui.Call, p *previewPage) error {
	var rows []*draft
	var drafts []draft
	for i := range p.Rows {
		if p.Rows[i].FaultKey == "" {
			rows, drafts = append(rows, &p.Rows[i]), append(drafts, p.Rows[i])
		}
	}
	errs, err := h.app.Invitations.CheckAll(ctx, c.Caller, offers(c, drafts))
	for i, refused := range errs {
		if refused != nil {
			rows[i].FaultKey = refusalKey(refused)
		}
	}
	p.Faults = countFaults(p.Rows)
	return err
}

// offers returns the offers of the rows, with the days and the language of the form.
func offers(c *ui.Call, rows []draft) []invite.Offer {
	days := daysOf(c)
	all := make([]invite.Offer, len(rows))
	for i, d := range rows {
		all[i] = invite.Offer{Email: d.Email, Name: d.Name, Role: d.Role, Days: &days, Locale: c.Value("locale")}
	}
	return all
}

// withRole gives the role to those without one.
func withRole(rows []draft, role doorward.Role) []draft {
	for i := range rows {
		rows[i].Role = cmp.Or(rows[i].Role, string(role))
	}
	return rows
}

// correctedRows returns the rows of a preview as sent; nil if the form is not a preview. A
// row without address and name was deleted.
func correctedRows(c *ui.Call) []draft {
	emails, names, roles := c.Values("email"), c.Values("name"), c.Values("rowRole")
	if len(emails) == 0 || len(names) != len(emails) || len(roles) != len(emails) {
		return nil
	}
	all := []draft{}
	for i := range emails {
		if emails[i] != "" || names[i] != "" {
			all = append(all, draft{Email: emails[i], Name: names[i], Role: roles[i]})
		}
	}
	return all
}

// showPreview shows the rows with their faults. sent is how many rows of the last preview were
// sent; 0 if none was.
func (h *console) showPreview(ctx context.Context, c *ui.Call, rows []draft, sent int) (ui.View, error) {
	v, err := h.newInvitation(ctx, c)
	body, ok := v.Body.(newInvitation)
	if err != nil || !ok {
		return v, err
	}
	if countFaults(rows) == 0 { // only rows that SendAll has refused have faults already: keep those
		checkDrafts(rows, body.Roles)
	}
	days, _ := strconv.Atoi(c.Value("expiresInDays"))
	body.Days = cmp.Or(days, body.Days)
	for i := range rows {
		rows[i].Number = i + 1
	}
	p := previewPage{newInvitation: body, Rows: rows, Sent: sent, Faults: countFaults(rows), Locale: c.Value("locale")}
	return ui.View{Page: "preview", Body: p, Wide: true}, nil
}

func countFaults(rows []draft) (n int) {
	for _, d := range rows {
		if d.FaultKey != "" {
			n++
		}
	}
	return n
}

// sendPreview sends the rows as corrected.
func (h *console) sendPreview(ctx context.Context, c *ui.Call) (ui.View, error) {
	rows := correctedRows(c)
	if len(rows) == 0 || len(rows) > maxInvited {
		return c.To("/console/invitations/new"), nil
	}
	return h.send(ctx, c, rows)
}

// send sends all rows, or none if one of them is wrong, and shows those that were refused.
func (h *console) send(ctx context.Context, c *ui.Call, rows []draft) (ui.View, error) {
	v, err := h.showPreview(ctx, c, rows, 0)
	if p, ok := v.Body.(previewPage); err != nil || ok && p.Faults > 0 {
		v.Status = http.StatusUnprocessableEntity
		return v, err
	}
	outcomes, err := h.app.Invitations.SendAll(ctx, c.Caller, offers(c, rows))
	if err != nil {
		return ui.View{}, err
	}
	var refused []draft
	for i, o := range outcomes {
		if o.Err != nil {
			rows[i].FaultKey = refusalKey(o.Err)
			refused = append(refused, rows[i])
		}
	}
	if len(refused) == 0 {
		return c.To("/console/invitations?status=PENDING&done=invited&count=" + strconv.Itoa(len(rows))), nil
	}
	v, err = h.showPreview(ctx, c, refused, len(rows)-len(refused))
	v.Status = http.StatusUnprocessableEntity
	return v, err
}
