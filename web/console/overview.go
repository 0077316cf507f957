package console

import (
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/app/overview"
	"github.com/doorward/doorward/web/ui"
)

// overviewPage is the content of the overview.
type overviewPage struct {
	pageData
	Figures overview.Tenant
	Chart   Chart
	Refused int // refusals of all kinds
	Days    int // that the chart of sign-ins shows
	Steps   []step
	Recent  eventTable
	SignOn  []signOnWarning
}

// daysToChoose are the ranges of the chart; the second is the default.
var daysToChoose = []int{7, 30, 90}

// DaysToChoose is daysToChoose, for templates.
func (overviewPage) DaysToChoose() []int { return daysToChoose }

// Width is the width of the chart's view box.
func (p overviewPage) Width() int { return p.Days * dayWidth }

// step is one of the first steps in a new tenant.
type step struct {
	Name   string // of the messages step.Name and step.Name.text
	Path   string
	IsDone bool
}

// showStepsFor is how long a tenant is shown the first steps.
const showStepsFor = 30 * 24 * time.Hour

// firstSteps returns the first steps in a new tenant; none once all are done or after
// showStepsFor, and none for people who may not take them.
func firstSteps(c *ui.Call, t doorward.Tenant, figures overview.Tenant, me doorward.User) []step {
	if !c.Can(doorward.SettingsManage) || !c.Can(doorward.UserInvite) || c.Now().Sub(t.CreatedAt) > showStepsFor {
		return nil
	}
	owners := 0
	for _, r := range figures.Roles {
		if r.Role == doorward.RoleOwner {
			owners = r.People
		}
	}
	isOwn := func(s doorward.Setting) bool { return s.Own(t) != nil }
	isChanged := t.Brand.Logo.Hash != "" || slices.ContainsFunc(doorward.Settings(doorward.SessionLimits{}, 0), isOwn)
	all := []step{
		{"factor", "/account/security", me.Factors > 0},
		{"invite", "/console/invitations/new", figures.People+figures.Pending > 1},
		{"owner", "/console/people", owners > 1},
		{"settings", "/console/settings", isChanged},
	}
	if !c.CanOn(doorward.UserManage, doorward.Object{TenantID: t.ID, Granted: doorward.RoleOwner}) {
		all = slices.DeleteFunc(all, func(s step) bool { return s.Name == "owner" })
	}
	if !slices.ContainsFunc(all, func(s step) bool { return !s.IsDone }) {
		return nil
	}
	return all
}

// Since is the instant from which refusals are counted, 24 hours ago, for a link to the trail.
func (p overviewPage) Since() string { return p.Figures.Since.Format(fieldTime) }

// Today is today in UTC, for a link to the trail. Since is 24 hours ago.
func (p overviewPage) Today() string {
	return p.Figures.Since.Add(24 * time.Hour).Format(time.DateOnly)
}

// Tried returns the key of the message about a refused action; empty for none.
func (overviewPage) Tried(a doorward.Action) string { return messageKeyOf(a, doorward.Refused) }

func (h *console) overview(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	days := queryNumber(c, "days")
	if !slices.Contains(daysToChoose, days) {
		days = daysToChoose[1]
	}
	t, err := h.app.Overviews.Of(ctx, c.Caller, days)
	if err != nil {
		return ui.View{}, err
	}
	body := overviewPage{pageData: s, Figures: t, Chart: chart(t.SignIns), Days: days}
	for _, r := range t.Refusals {
		body.Refused += r.Times
	}
	me, err := h.app.Users.Get(ctx, c.Caller, c.Caller.ID)
	if err != nil {
		return ui.View{}, err
	}
	body.Steps = firstSteps(c, s.Tenant, t, me)
	if body.SignOn, err = h.signOnWarnings(ctx, c); err != nil {
		return ui.View{}, err
	}
	body.Recent, err = h.recent(ctx, c, maxRecent, audit.Filter{})
	return autoRefresh(c, ui.View{Page: "overview", Body: body, Wide: true}), err
}

// Chart has the bars of sign-ins by day, in units of its view box.
type Chart struct {
	Bars  []Bar
	Max   int // sign-ins of the busiest day
	Total int
}

// Bar is one day.
type Bar struct {
	overview.Day
	X, Y, Height int
	Today        bool
}

// The height of the view box, and the width of a day in it.
const chartHeight, dayWidth = 100, 10

// From is the first day, for a link to the trail.
func (c Chart) From() string { return c.Bars[0].Day.Day.Format(time.DateOnly) }

func chart(days []overview.Day) Chart {
	var c Chart
	for _, d := range days {
		c.Max, c.Total = max(c.Max, d.SignIns), c.Total+d.SignIns
	}
	for n, d := range days {
		b := Bar{Day: d, X: n * dayWidth, Today: n == len(days)-1}
		if d.SignIns > 0 { // high enough to be seen
			b.Height = max(2, d.SignIns*chartHeight/c.Max)
		}
		b.Y = chartHeight - b.Height
		c.Bars = append(c.Bars, b)
	}
	return c
}
