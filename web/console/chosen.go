package console

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/web/ui"
)

// maxChosen is how many rows can be chosen at once.
const maxChosen = 100

// peopleActs and invitationActs are the values of the field "act": what can be done with the
// chosen rows.
var (
	peopleActs     = []string{"suspend", "resume", "remove", roleAct}
	invitationActs = []string{"resend", "revoke", inviteAct}
)

// roleAct gives the role in the field "role".
const roleAct = "role"

// inviteAct sends a new invitation with the data of one that is over. A revoked one stays
// revoked.
const inviteAct = "invite"

// chosen is the content of the pages before and after an act on the chosen rows.
type chosen struct {
	pageData
	Path string // of the list
	Act  string
	Role doorward.Role // for a change of role
	Rows []chosenRow
}

// Danger reports whether the act takes something away.
func (q chosen) Danger() bool { return slices.Contains([]string{"suspend", "remove", "revoke"}, q.Act) }

// chosenRow is a chosen person or invitation, and the result of the act for it.
type chosenRow struct {
	ID, Name, Email string
	Protected       bool  // the caller may not change it
	Affected        ended // what will end, or has ended
	Unchanged       bool  // it is or was in the wanted state already
	Fault           string
}

// Done reports whether the act has changed the row.
func (r chosenRow) Done() bool { return r.Fault == "" && !r.Unchanged }

// outcomeCount is how many rows have an outcome.
type outcomeCount struct {
	Key  string // of the message about them, after "outcomes." or "chosen."
	Rows int
}

// count returns how many rows are so.
func (q chosen) count(is func(chosenRow) bool) (n int) {
	for _, r := range q.Rows {
		if is(r) {
			n++
		}
	}
	return n
}

// ofSome leaves out what no row has.
func ofSome(all ...outcomeCount) []outcomeCount {
	return slices.DeleteFunc(all, func(o outcomeCount) bool { return o.Rows == 0 })
}

// Sum counts the rows by outcome; those that no row has are left out.
func (q chosen) Sum() []outcomeCount {
	return ofSome(
		outcomeCount{"done." + q.Act, q.count(chosenRow.Done)},
		outcomeCount{"unchanged." + q.Act, q.count(func(r chosenRow) bool { return r.Fault == "" && r.Unchanged })},
		outcomeCount{"refused", q.Refused()},
	)
}

// Plan counts the rows by what the act will do with them; what it does with none is left out.
func (q chosen) Plan() []outcomeCount {
	return ofSome(
		outcomeCount{"changes", q.Changing()},
		outcomeCount{"same", q.count(func(r chosenRow) bool { return !r.Protected && r.Unchanged })},
		outcomeCount{"refusals", q.count(func(r chosenRow) bool { return r.Protected })},
	)
}

// Changing counts the rows that the act will change.
func (q chosen) Changing() int {
	return q.count(func(r chosenRow) bool { return !r.Protected && !r.Unchanged })
}

// Refused counts the rows that were refused.
func (q chosen) Refused() int { return q.count(func(r chosenRow) bool { return r.Fault != "" }) }

const (
	peoplePath      = "/console/people"
	invitationsPath = "/console/invitations"
)

// choosePeople asks to confirm the act on the chosen people.
func (h *console) choosePeople(ctx context.Context, c *ui.Call) (ui.View, error) {
	q, err := h.chosenPeople(ctx, c)
	if err != nil || len(q.Rows) == 0 {
		return redirectToList(c, peoplePath, "none", nil), err
	}
	return ui.View{Page: "chosen", Title: "chosen." + q.Act + ".title", Body: q}, nil
}

// chosenPeople reads the form. People who have since left are skipped. Errors: not_found for an
// unknown act.
func (h *console) chosenPeople(ctx context.Context, c *ui.Call) (q chosen, err error) {
	if q.pageData, err = h.pageData(ctx, c); err != nil {
		return q, err
	}
	q.Path, q.Act = peoplePath, c.Value("act")
	if role := doorward.Role(c.Value("role")); q.Act == roleAct {
		q.Role = role
	}
	if !slices.Contains(peopleActs, q.Act) || q.Act == roleAct && !c.Caller.Rules.Has(q.Role) {
		return q, doorward.Fail(doorward.CodeNotFound, "")
	}
	for _, id := range chosenIDs(c) {
		u, err := h.app.Users.Get(ctx, c.Caller, id)
		if doorward.HasCode(err, doorward.CodeNotFound) {
			continue
		}
		if err != nil {
			return q, err
		}
		row := chosenRow{ID: u.ID, Name: u.Name, Email: u.Email}
		on := doorward.Object{TenantID: u.TenantID, Held: u.Role, Granted: q.Role}
		row.Protected, row.Unchanged = !c.CanOn(doorward.UserManage, on), q.isAlready(u)
		if q.Danger() && !row.Protected && !row.Unchanged {
			affected, err := h.app.Overviews.CountAffected(ctx, c.Caller, u)
			if err != nil {
				return q, err
			}
			row.Affected = endedOf(affected)
		}
		q.Rows = append(q.Rows, row)
	}
	return q, nil
}

// isAlready reports whether the person is in the state that the act leads to.
func (q chosen) isAlready(u doorward.User) bool {
	switch q.Act {
	case "suspend":
		return u.Status == doorward.UserSuspended
	case "resume":
		return u.Status == doorward.UserActive
	case roleAct:
		return u.Role == q.Role
	}
	return false
}

// chosenIDs returns the ids of the first maxChosen chosen rows, each once, in the order of the
// form.
func chosenIDs(c *ui.Call) (all []string) {
	for _, id := range c.Values("id") {
		if len(all) < maxChosen && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}

// changePeople applies the act to the chosen people, and shows the result for each.
func (h *console) changePeople(ctx context.Context, c *ui.Call) (ui.View, error) {
	q, err := h.chosenPeople(ctx, c)
	if err != nil || len(q.Rows) == 0 {
		return redirectToList(c, peoplePath, "none", nil), err
	}
	b := user.Bulk{Remove: q.Act == "remove"}
	status := map[string]doorward.UserStatus{"suspend": doorward.UserSuspended, "resume": doorward.UserActive}
	switch s, ok := status[q.Act]; {
	case q.Role != "":
		b.Role = &q.Role
	case ok:
		b.Status = &s
	}
	outcomes, err := h.app.Users.ChangeAll(ctx, c.Caller, q.ids(), b)
	if err != nil {
		return ui.View{}, err
	}
	for i, o := range outcomes {
		q.Rows[i].Affected, q.Rows[i].Unchanged = endedOf(o.Ended), o.Unchanged
		if q.Rows[i].Fault, err = c.Explain(o.Err); err != nil {
			return ui.View{}, err
		}
	}
	return ui.View{Page: "outcomes", Body: q, OneLanguage: true}, nil
}

func (q chosen) ids() (all []string) {
	for _, row := range q.Rows {
		all = append(all, row.ID)
	}
	return all
}

// Undo is the act that reverses this one for the rows that it has changed; empty if there
// is none.
func (q chosen) Undo() string {
	if !slices.ContainsFunc(q.Rows, chosenRow.Done) {
		return ""
	}
	return map[string]string{"suspend": "resume", "revoke": inviteAct}[q.Act]
}

// chooseInvitations asks to confirm the act on the chosen invitations.
func (h *console) chooseInvitations(ctx context.Context, c *ui.Call) (ui.View, error) {
	q, err := h.chosenInvitations(ctx, c)
	if err != nil || len(q.Rows) == 0 {
		return redirectToList(c, invitationsPath, "none", nil), err
	}
	return ui.View{Page: "chosen", Title: "chosen." + q.Act + ".title", Body: q}, nil
}

func (h *console) chosenInvitations(ctx context.Context, c *ui.Call) (q chosen, err error) {
	if q.pageData, err = h.pageData(ctx, c); err != nil {
		return q, err
	}
	q.Path, q.Act = invitationsPath, c.Value("act")
	if !slices.Contains(invitationActs, q.Act) {
		return q, doorward.Fail(doorward.CodeNotFound, "")
	}
	for _, id := range chosenIDs(c) {
		inv, err := h.app.Invitations.Get(ctx, c.Caller, id)
		if doorward.HasCode(err, doorward.CodeNotFound) {
			continue
		}
		if err != nil {
			return q, err
		}
		q.Rows = append(q.Rows, chosenRow{ID: inv.ID, Name: inv.Name, Email: inv.Email, Protected: !h.listedInvitation(c, inv).CanManage})
	}
	return q, nil
}

// changeInvitations applies the act to the chosen invitations, and shows the result for
// each.
func (h *console) changeInvitations(ctx context.Context, c *ui.Call) (ui.View, error) {
	q, err := h.chosenInvitations(ctx, c)
	if err != nil || len(q.Rows) == 0 {
		return redirectToList(c, invitationsPath, "none", nil), err
	}
	act := h.app.Invitations.ResendAll
	switch q.Act {
	case "revoke":
		act = h.app.Invitations.RevokeAll
	case inviteAct:
		act = h.inviteAgain
	}
	outcomes, err := act(ctx, c.Caller, q.ids())
	for i, o := range outcomes {
		text, explainErr := c.Explain(o.Err)
		q.Rows[i].Fault, err = text, errors.Join(err, explainErr)
	}
	return ui.View{Page: "outcomes", Body: q, OneLanguage: true}, err
}

// inviteAgain sends new invitations with the data of the earlier ones with these ids.
func (h *console) inviteAgain(ctx context.Context, by doorward.Caller, ids []string) ([]invite.Outcome, error) {
	offers := make([]invite.Offer, len(ids))
	for i, id := range ids {
		inv, err := h.app.Invitations.Get(ctx, by, id)
		if err != nil {
			return nil, err
		}
		days := int64(inv.Days)
		offers[i] = invite.Offer{Email: inv.Email, Name: inv.Name, Role: string(inv.Role), Days: &days, Locale: inv.Locale}
	}
	sent, err := h.app.Invitations.SendAll(ctx, by, offers)
	outcomes := make([]invite.Outcome, len(sent))
	for i, one := range sent {
		outcomes[i].Err = one.Err
	}
	return outcomes, err
}

// endSession ends one session of a member.
func (h *console) endSession(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixUser)
	if err != nil {
		return ui.View{}, err
	}
	u, err := h.app.Users.Get(ctx, c.Caller, id)
	if err != nil {
		return ui.View{}, err
	}
	revocation, err := h.app.Sessions.EndOf(ctx, c.Caller, u, c.Value("session"))
	c.SetRevocation(revocation)
	if doorward.HasCode(err, doorward.CodeNotFound) { // it has ended by itself
		err = nil
	}
	return redirectDone(c, peoplePath+"/"+id, "session", nil), err
}
