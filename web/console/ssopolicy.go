package console

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	demands "github.com/doorward/doorward/app/demand"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// ssoPath is the list of connections, the first of the tabs of sign-on.
const ssoPath = "/console/sso"

// ssoPolicyPath is the page with what the tenant demands of sign-on.
const ssoPolicyPath = ssoPath + "/policy"

// ssoTabs are the tabs of sign-on, each on a path of its own.
func ssoTabs(c *ui.Call, current string) ui.Tabs {
	base := c.Site().BasePath()
	return ui.Tabs{Current: current, Items: []ui.Tab{
		{Name: "connections", Link: base + ssoPath}, {Name: "domains", Link: base + domainsPath}, {Name: "policy", Link: base + ssoPolicyPath},
	}}
}

func (h *console) ssoPolicyRoutes() []front.Route {
	manage := front.Allowed(doorward.SSOManage)
	return []front.Route{
		get(ssoPolicyPath, manage, h.ssoPolicy),
		post(ssoPolicyPath, ssoPolicyPath, front.Allowed(doorward.SSOPolicyChange), h.putSSOPolicy, h.ssoPolicy),
		post(ssoPolicyPath+"/confirm", ssoPolicyPath, front.Allowed(doorward.SSOConfirm), h.confirmSSOPolicy, h.ssoPolicyAfterConfirm),
	}
}

// ssoPolicyPage is the content of the page, and of the one that asks before a change.
type ssoPolicyPage struct {
	pageData
	edited
	Tabs    ui.Tabs
	Policy  doorward.SSOPolicy
	Mode    string // as typed, or as stored
	Guests  string
	Minutes string
	Ready   readiness
	// Doors are the active connections, by which somebody could confirm the policy.
	Doors []door
	// CanConfirm: the session may have been opened by a connection since the change. The feature decides.
	CanConfirm bool
}

// door is an active connection and the address at which a sign-in by it begins.
type door struct{ Name, StartURL string }

// ssoModes and guestChoices are what the form offers, in this order.
var (
	ssoModes     = []string{string(doorward.SSOOff), string(doorward.SSOOptional), string(doorward.SSORequired)}
	guestChoices = []string{doorward.GuestsAllowed, doorward.GuestsRefused}
)

// Modes are the modes of sign-on.
func (ssoPolicyPage) Modes() []string { return ssoModes }

// GuestChoices are what can become of guests.
func (ssoPolicyPage) GuestChoices() []string { return guestChoices }

// MinMinutes and MaxMinutes bound the time to confirm.
func (ssoPolicyPage) MinMinutes() int { return doorward.SSOConfirmMinutesMin }

// MaxMinutes is the longest time to confirm.
func (ssoPolicyPage) MaxMinutes() int { return doorward.SSOConfirmMinutesMax }

// Version returns the version of the policy, for forms.
func (p ssoPolicyPage) Version() string { return p.Policy.Version() }

// Before returns the mode that holds again unless the policy is confirmed.
func (p ssoPolicyPage) Before() doorward.SSOMode {
	mode, _ := p.Policy.Settled()
	return mode
}

// TimeLeft is the rest of the time to confirm, in whole minutes, the last one begun.
func (p ssoPolicyPage) TimeLeft(now time.Time) time.Duration {
	return max((p.Policy.ConfirmBy.Sub(now) + time.Minute - 1).Truncate(time.Minute), time.Minute)
}

// readiness says whom a demand would shut out, by name.
type readiness struct {
	demands.Readiness
	Owners []readyOwner // at most shownOwners
	Barred int          // owners without a way back
}

// readyOwner is an OWNER, and whether they get in without the sign-on.
type readyOwner struct {
	ID, Name   string
	HasWayBack bool
}

// How many people the page shows by name.
const shownOwners, shownUnready = 5, 5

// Shown are the first members who would be shut out.
func (r readiness) Shown() []demands.Unready { return r.Never[:min(len(r.Never), shownUnready)] }

// More counts those who aren't shown.
func (r readiness) More() int { return r.NeverCount - len(r.Shown()) }

func (h *console) ssoPolicy(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	policy, err := h.app.Demands.Get(ctx, c.Caller)
	if err != nil {
		return ui.View{}, err
	}
	body := ssoPolicyPage{pageData: s, Tabs: ssoTabs(c, "policy"), Policy: policy}
	var note string
	body.edited, note = keepTyped(c, policy.Version(), "notice.ssopolicy.precondition_failed", ssoPolicyFields(c, policy))
	body.Mode, body.Guests, body.Minutes = string(policy.Mode), policy.Guests(), strconv.Itoa(doorward.SSOConfirmMinutes)
	if c.Value("mode") != "" { // the form is shown again
		body.Mode, body.Guests, body.Minutes = c.Value("mode"), c.Value("guests"), c.Value("minutes")
	}
	if body.Ready, err = h.readiness(ctx, c); err != nil {
		return ui.View{}, err
	}
	if policy.ConfirmBy != nil {
		body.CanConfirm = c.Caller.Issuer != doorward.OwnIssuer
		body.Doors, err = h.doors(ctx, c)
	}
	return ui.View{Page: "ssopolicy", Note: note, Body: body, Wide: true}, err
}

// ssoPolicyFields are the fields of the form.
func ssoPolicyFields(c *ui.Call, p doorward.SSOPolicy) []editedField {
	return []editedField{
		wordField(c, "mode", "sso.mode", "ssoMode", string(p.Mode), ssoModes), wordField(c, "guests", "sso.guests", "ssoGuests", p.Guests(), guestChoices),
	}
}

// readiness returns whom a demand would shut out.
func (h *console) readiness(ctx context.Context, c *ui.Call) (readiness, error) {
	found, err := h.app.Demands.Readiness(ctx, c.Caller)
	r := readiness{Readiness: found}
	for n, o := range found.Owners {
		if !o.HasWayBack {
			r.Barred++
		}
		if n >= shownOwners || err != nil {
			continue
		}
		one := readyOwner{ID: o.UserID, HasWayBack: o.HasWayBack}
		if one.Name, err = h.memberName(ctx, c, o.UserID); doorward.HasCode(err, doorward.CodeNotFound) {
			one.Name, err = o.UserID, nil // removed since
		}
		r.Owners = append(r.Owners, one)
	}
	return r, err
}

// putSSOPolicy saves the form. What ends or shuts out is asked about first.
func (h *console) putSSOPolicy(ctx context.Context, c *ui.Call) (ui.View, error) {
	minutes, faults := optionalNumber(c, "minutes", nil)
	if len(faults) > 0 {
		return ui.View{}, doorward.InvalidFields(faults...)
	}
	draft := demands.Draft{Mode: c.Value("mode"), Guests: c.Value("guests")}
	if minutes != nil {
		if draft.ConfirmMinutes = int(*minutes); draft.ConfirmMinutes == 0 {
			draft.ConfirmMinutes = -1 // out of range; 0 is the default
		}
	}
	if c.Value("confirmed") == "" {
		policy, err := h.app.Demands.Get(ctx, c.Caller)
		if err != nil {
			return ui.View{}, err
		}
		if needsQuestion(policy, draft) {
			return h.askSSOPolicy(ctx, c)
		}
	}
	changed, err := h.app.Demands.Put(ctx, c.Caller, draft, version(c))
	c.SetRevocation(changed.Ended.Revocation)
	done := "ssopolicy"
	if changed.ConfirmBy != nil {
		done = "ssopolicy-provisional"
	}
	return redirectDone(c, ssoPolicyPath, done, nil), renameFaults(err, map[string]string{"confirmMinutes": "minutes"})
}

// needsQuestion reports whether the change ends sessions or shuts somebody out.
func needsQuestion(was doorward.SSOPolicy, d demands.Draft) bool {
	mode, refused := doorward.SSOMode(d.Mode), d.Guests == doorward.GuestsRefused
	if !slices.Contains(guestChoices, d.Guests) {
		return false // the feature refuses it
	}
	switch mode {
	case doorward.SSOOff:
		return was.SignsIn()
	case doorward.SSORequired:
		return was.Mode != mode || refused != was.GuestsRefused
	}
	return false
}

// askSSOPolicy shows what the change would do. It sends the form again, as confirmed.
func (h *console) askSSOPolicy(ctx context.Context, c *ui.Call) (ui.View, error) {
	v, err := h.ssoPolicy(ctx, c)
	v.Page, v.Title, v.Note, v.Wide = "ssopolicyact", "sso.ask."+c.Value("mode"), "", false
	return v, err
}

func (h *console) confirmSSOPolicy(ctx context.Context, c *ui.Call) (ui.View, error) {
	changed, err := h.app.Demands.Confirm(ctx, c.Caller, version(c))
	c.SetRevocation(changed.Ended.Revocation)
	if err != nil {
		return ui.View{}, err
	}
	counts := endedOf(changed.Ended)
	return redirectDone(c, ssoPolicyPath, "ssopolicy-confirm", &counts), nil
}

// ssoPolicyAfterConfirm is the page after a refused confirmation, without that form's version.
func (h *console) ssoPolicyAfterConfirm(ctx context.Context, c *ui.Call) (ui.View, error) {
	c.KeepOnly()
	return h.ssoPolicy(ctx, c)
}
