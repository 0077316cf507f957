package console

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"unicode"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/web/ui"
)

// Lists of more people than a form can correct are imported: they are shown as they were read, and what is
// confirmed is exactly that (invite.Plan).

const importPath = "/console/invitations/import"

// maxImported is how many people a list may have.
const maxImported = invite.MaxPlanned

// plannedRole is how many people of a list get the role.
type plannedRole struct {
	Role   doorward.Role
	People int
}

// importPage shows what a list would do, or has done so far.
type importPage struct {
	pageData
	Plan   string // sealed, see invite.SealPlan
	People []plannedPerson
	Faults []outcomeCount // of the lines with which nothing is done
	// Unchecked are the people without a fault for whom there was no time to look further.
	Unchecked int
	Why       string // why no more could be sent now; empty: nothing hinders it
	// NeedsProof says that this is a recent proof of identity, which another page takes.
	NeedsProof bool
	CanGoOn    bool // some are not sent yet
}

// plannedPerson is a line of the list, and what became of it.
type plannedPerson struct {
	invite.Planned
	ID      string // of the invitation that was sent
	FaultOf string // why it wasn't, as a key
}

// Wrong are the lines with which nothing is done.
func (p importPage) Wrong() []plannedPerson {
	return p.which(func(o plannedPerson) bool { return o.FaultOf != "" })
}

// Sent are those to whom an invitation was sent.
func (p importPage) Sent() []plannedPerson {
	return p.which(func(o plannedPerson) bool { return o.ID != "" })
}

// Open are those to whom one will be sent.
func (p importPage) Open() []plannedPerson {
	return p.which(func(o plannedPerson) bool { return o.ID == "" && o.FaultOf == "" })
}

func (p importPage) which(is func(plannedPerson) bool) (all []plannedPerson) {
	for _, one := range p.People {
		if is(one) {
			all = append(all, one)
		}
	}
	return all
}

// importList is a folded list of people below a message.
type importList struct {
	Key    string // of the message with their number
	People []plannedPerson
}

// OpenList is Open, folded.
func (p importPage) OpenList() importList { return importList{"import.open", p.Open()} }

// SentList is Sent, folded.
func (p importPage) SentList() importList { return importList{"imported.people", p.Sent()} }

// Done is how many lines were looked at.
func (p importPage) Done() int { return len(p.People) - len(p.Open()) }

// Roles counts those who will be invited by role, in the order of the list.
func (p importPage) Roles() (all []plannedRole) {
	for _, one := range p.Open() {
		role := doorward.Role(one.Role)
		at := slices.IndexFunc(all, func(r plannedRole) bool { return r.Role == role })
		if at < 0 {
			at, all = len(all), append(all, plannedRole{Role: role})
		}
		all[at].People++
	}
	return all
}

// newImport returns the page of a list with the rows.
func (h *console) newImport(ctx context.Context, c *ui.Call, rows []draft) (ui.View, error) {
	v, err := h.newInvitation(ctx, c)
	body, ok := v.Body.(newInvitation)
	if err != nil || !ok {
		return v, err
	}
	checkDrafts(rows, body.Roles)
	unchecked, err := h.checkRows(ctx, c, rows)
	if err != nil {
		return ui.View{}, err
	}
	plan := h.app.Invitations.NewPlan(c.Caller, daysOf(c), c.Value("locale"), planOf(rows))
	sealed, err := h.app.Invitations.SealPlan(ctx, plan)
	page := newImportPage(body.pageData, plan, nil)
	page.Plan, page.Unchecked = sealed, unchecked
	return ui.View{Page: "import", Body: page, Wide: true}, err
}

// checkRows sets the faults of rows that sending would refuse, and returns how many it had no time for.
func (h *console) checkRows(ctx context.Context, c *ui.Call, rows []draft) (unchecked int, err error) {
	var good []*draft
	var drafts []draft
	for i := range rows {
		if rows[i].FaultKey == "" {
			good, drafts = append(good, &rows[i]), append(drafts, rows[i])
		}
	}
	errs, err := h.app.Invitations.CheckPlan(ctx, c.Caller, offers(c, drafts))
	for i, refused := range errs {
		if refused != nil {
			good[i].FaultKey = refusalKey(refused)
		}
	}
	return len(good) - len(errs), err
}

// planOf returns the rows as lines of a plan.
func planOf(rows []draft) []invite.Planned {
	all := make([]invite.Planned, len(rows))
	for i, d := range rows {
		all[i] = invite.Planned{Line: d.Line, Email: d.Email, Name: d.Name, Role: d.Role, Fault: d.FaultKey}
		if d.FaultKey != "" {
			all[i].Email, all[i].Name, all[i].Role = shortened(d.Email), shortened(d.Name), shortened(d.Role)
		}
	}
	return all
}

// maxShown is how many characters are shown of a value with which nothing is done.
const maxShown = 100

// shortened returns the text as it can be shown: a fault may be a whole file in one value.
func shortened(text string) string {
	runes := []rune(text)
	for i, r := range runes[:min(len(runes), maxShown)] {
		if unicode.IsControl(r) {
			runes[i] = unicode.ReplacementChar
		}
	}
	if len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return string(runes)
}

// newImportPage returns the page of the plan, of which the first offers have become what sent says.
func newImportPage(data pageData, plan invite.Plan, sent []invite.Sent) importPage {
	page := importPage{pageData: data}
	var members, pending int
	for _, one := range plan.People {
		p := plannedPerson{Planned: one, FaultOf: one.Fault}
		if one.Fault == "" && len(sent) > 0 {
			if p.ID = sent[0].Invitation.ID; sent[0].Err != nil {
				p.ID, p.FaultOf = "", refusalKey(sent[0].Err)
			}
			sent = sent[1:]
		}
		switch p.FaultOf {
		case "left.already_member":
			members++
		case "left.invitation_pending":
			pending++
		}
		page.People = append(page.People, p)
	}
	page.Faults = ofSome(outcomeCount{"import.members", members}, outcomeCount{"import.pending", pending}, outcomeCount{"import.faults", len(page.Wrong()) - members - pending})
	page.CanGoOn = len(page.Open()) > 0
	return page
}

// openedPlan returns the plan of the form. Errors: validation_failed when it can't be sent any more.
func (h *console) openedPlan(ctx context.Context, c *ui.Call) (invite.Plan, error) {
	plan, ok, err := h.app.Invitations.OpenPlan(ctx, c.Caller, c.Value("plan"))
	if err == nil && !ok {
		err = doorward.Invalid("/people", "plan_over", "Check the list again: it was checked long ago, or in another organisation.")
	}
	return plan, err
}

// sendImport sends what is left of the list, and shows what became of each line.
func (h *console) sendImport(ctx context.Context, c *ui.Call) (ui.View, error) {
	plan, err := h.openedPlan(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	sent, stopped := h.app.Invitations.SendPlan(ctx, c.Caller, plan)
	if len(sent) == 0 && stopped != nil {
		return ui.View{}, stopped
	}
	data, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	page := newImportPage(data, plan, sent)
	page.Plan, page.NeedsProof = c.Value("plan"), doorward.HasCode(stopped, doorward.CodeStepUpRequired)
	if page.Why, err = c.Explain(stopped); err != nil {
		return ui.View{}, err
	}
	return ui.View{Page: "imported", Body: page, Wide: true, OneLanguage: true}, nil
}

// showImportAgain shows the list of a form that was refused, or the form for a new list if it can't be sent any
// more.
func (h *console) showImportAgain(ctx context.Context, c *ui.Call) (ui.View, error) {
	plan, err := h.openedPlan(ctx, c)
	if e := (*doorward.Error)(nil); errors.As(err, &e) && e.Kind() == doorward.KindInvalid {
		return h.newInvitation(ctx, c)
	}
	if err != nil {
		return ui.View{}, err
	}
	data, err := h.pageData(ctx, c)
	page := newImportPage(data, plan, nil)
	page.Plan = c.Value("plan")
	return ui.View{Page: "import", Body: page, Wide: true}, err
}

// daysOf returns the days that the form gives, or the usual number.
func daysOf(c *ui.Call) int64 {
	days, err := strconv.ParseInt(c.Value("expiresInDays"), 10, 64)
	if err != nil {
		return doorward.InvitationDaysDefault
	}
	return days
}
