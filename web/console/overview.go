package console

import (
	"context"
	"net/url"
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
	Figures   overview.Tenant
	Chart     chart // of sign-ins by day
	Refused   int   // refusals of all kinds
	Days      int   // that the chart of sign-ins shows
	Watches   bool  // the caller may see something that could need attention
	Attention []attention
	Roles     []meter
	Factors   []meter
	Quotas    []meter
	Steps     []step
	Recent    eventTable
}

// daysToChoose are the ranges of the chart; the second is the default.
var daysToChoose = []int{7, 30, 90}

// DaysToChoose is daysToChoose, for templates.
func (overviewPage) DaysToChoose() []int { return daysToChoose }

// SignIns is the chart's series of sign-ins.
func (p overviewPage) SignIns() series { return p.Chart.Series[0] }

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
	base := c.Site().BasePath()
	body := overviewPage{pageData: s, Figures: t, Days: days, Chart: signInChart(base, t.SignIns, c.Now(), days), Roles: roleMeters(base, t.Roles), Factors: factorMeters(base, t.Factors), Quotas: quotaMeters(c, s.Tenant, t)}
	for _, r := range t.Refusals {
		body.Refused += r.Times
	}
	me, err := h.app.Users.Get(ctx, c.Caller, c.Caller.ID)
	if err != nil {
		return ui.View{}, err
	}
	body.Steps = firstSteps(c, s.Tenant, t, me)
	if body.Attention, body.Watches, err = h.attention(ctx, c, s.Tenant, t); err != nil {
		return ui.View{}, err
	}
	body.Recent, err = h.recent(ctx, c, maxRecent, audit.Filter{})
	return autoRefresh(c, ui.View{Page: "overview", Body: body, Wide: true}), err
}

// trailLink returns a link to the trail with the filters, which are names and values in turn.
func trailLink(base string, filters ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(filters); i += 2 {
		q.Set(filters[i], filters[i+1])
	}
	return base + auditPath + "?" + q.Encode()
}

// signInSeries are sign-ins and the actions by which they are refused, with their colours.
var signInSeries = []struct {
	action  doorward.Action
	outcome doorward.Outcome
	counted doorward.UsageOutcome
	tone    string
}{
	{doorward.SessionOpen, doorward.Done, doorward.UsageSignedIn, "plain"},
	{doorward.SessionRefuse, doorward.Refused, doorward.UsageOutcome(doorward.SessionRefuse), "refused"},
	{doorward.MFARefuse, doorward.Refused, doorward.UsageOutcome(doorward.MFARefuse), "silent"},
	{doorward.SSORefuse, doorward.Refused, doorward.UsageOutcome(doorward.SSORefuse), "hollow"},
}

// signInChart returns the chart of the last days. Each part leads to the same events in the trail.
func signInChart(base string, counts []doorward.UsageCount, now time.Time, days int) chart {
	var all []series
	for _, s := range signInSeries {
		all = append(all, series{Outcome: s.counted, Key: "chart." + string(s.action), Tone: s.tone})
	}
	c := chartOf("chart-title", all, counts, now, oneDay, days)
	for i, s := range signInSeries {
		link := func(period ...string) string {
			return trailLink(base, append([]string{"action", string(s.action), "outcome", string(s.outcome)}, period...)...)
		}
		c.Series[i].Link = link("from", c.Bars[0].From.Format(time.DateOnly))
		for _, b := range c.Bars {
			if p := b.Find(c.Series[i].Key); p != nil {
				day := b.From.Format(time.DateOnly)
				p.Link = link("from", day, "to", day)
			}
		}
	}
	return c
}

// roleMeters are the sizes of the roles, the largest of which fills its bar.
func roleMeters(base string, roles []overview.Role) (all []meter) {
	most := 0
	for _, r := range roles {
		most = max(most, r.People)
	}
	for _, r := range roles {
		all = append(all, meter{Name: string(r.Role), IsRole: true, Link: base + peoplePath + "?role=" + url.QueryEscape(string(r.Role)), Times: r.People, Of: most})
	}
	return all
}

// factorMeters are the shares of those with a second factor. Each leads to the others.
func factorMeters(base string, roles []overview.Factors) (all []meter) {
	for _, r := range roles {
		one := meter{Name: string(r.Role), IsRole: true, Times: r.With, Of: r.People, ShowsOf: true}
		if r.With < r.People {
			one.Link = base + peoplePath + "?factor=none&role=" + url.QueryEscape(string(r.Role)) + "&status=active"
		}
		all = append(all, one)
	}
	return all
}

// quotaMeters are the quotas of the tenant of which the caller may see what is used.
func quotaMeters(c *ui.Call, t doorward.Tenant, figures overview.Tenant) (all []meter) {
	base := c.Site().BasePath()
	for _, q := range []struct {
		name  doorward.Quota
		needs doorward.Action
		link  string
		used  int
	}{
		{doorward.QuotaPeople, doorward.UserInvite, base + peoplePath, figures.People + figures.Pending}, // as an invitation counts them
		{doorward.QuotaAPIKeys, doorward.APIKeyManage, base + "/console/keys", figures.APIKeys},
		{doorward.QuotaWebhooks, doorward.WebhookManage, base + webhooksPath, figures.Webhooks},
		{doorward.QuotaEventsPerDay, doorward.AuditRead, trailLink(base, "from", c.Now().UTC().Format(time.DateOnly)), figures.Changes},
	} {
		if most := *t.Quotas.At(q.name); most != nil && c.Can(q.needs) {
			one := meter{Name: "quota." + string(q.name), Link: q.link, Times: q.used, Of: int(*most), ShowsOf: true}
			one.IsHigh = isNear(int64(one.Times), int64(one.Of))
			all = append(all, one)
		}
	}
	return all
}
