package console

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/overview"
	"github.com/doorward/doorward/web/ui"
)

// attention is a row of what needs attention on the overview. Its messages are "attention." + Kind, with the
// number if there is one, and the same with ".button".
type attention struct {
	Kind    string
	IsGrave bool   // somebody or something is shut out; else that is near, or may be
	Name    string // of the object; empty for none
	Count   int    // 0: the message has no number
	Of      int
	At      time.Time // when it has happened or will; zero: the message has no time
	Cause   string    // key of a message below it; empty for none
	Last    *attempt  // of a webhook, below it; nil for none
	Role    doorward.Role
	Path    string // of the page on which to act
	List    string // of the list of all such, where there may be more than the overview shows
}

// watched is what the overview looks at: who may see it, and the function that returns what is wrong, the gravest first. One
// more is one more row here and its messages.
var watched = []struct {
	needs doorward.Action
	look  func(h *console, ctx context.Context, c *ui.Call, seen *watch) ([]attention, error)
}{
	{doorward.SSOManage, (*console).watchDemand},
	{doorward.PolicyManage, (*console).watchPolicy},
	{doorward.WebhookManage, (*console).watchWebhooks},
	{doorward.UserInvite, (*console).watchMails},
	{doorward.APIKeyManage, (*console).watchKeys},
	{doorward.SSOManage, (*console).watchSecrets},
	{doorward.SSOManage, (*console).watchProviders},
	{doorward.SSOManage, (*console).watchDomains},
	{doorward.SSOManage, (*console).watchRuns},
	{doorward.SSOManage, (*console).watchRefusals},
	{doorward.UserManage, (*console).watchFactors},
}

// watch is what several of these functions need.
type watch struct {
	tenant      doorward.Tenant
	figures     overview.Tenant
	connections []provider // for those who manage sign-on
}

// attention returns what needs the caller's attention, the gravest first, and whether the caller may see anything
// that could.
func (h *console) attention(ctx context.Context, c *ui.Call, t doorward.Tenant, figures overview.Tenant) (all []attention, watches bool, err error) {
	seen := watch{tenant: t, figures: figures}
	if c.Can(doorward.SSOManage) {
		found, err := h.app.Connections.List(ctx, c.Caller, doorward.Window{Limit: doorward.ConnectionsMax})
		if err != nil {
			return nil, false, err
		}
		for _, one := range found.Items {
			seen.connections = append(seen.connections, provider{one, c.Now()})
		}
	}
	for _, w := range watched {
		if !c.Can(w.needs) {
			continue
		}
		rows, err := w.look(h, ctx, c, &seen)
		if err != nil {
			return nil, false, err
		}
		all, watches = append(all, fewOf(rows)...), true
	}
	slices.SortStableFunc(all, func(a, b attention) int { return rankOfRow(a) - rankOfRow(b) })
	return all, watches, nil
}

func rankOfRow(a attention) int {
	if a.IsGrave {
		return 0
	}
	return 1
}

// maxOfKind is how many rows of one kind the overview shows.
const maxOfKind = 3

// fewOf leaves of more than maxOfKind rows of one kind the first, and a row that counts the others and leads to the
// list of all.
func fewOf(rows []attention) (few []attention) {
	shown, others := map[string]int{}, map[string]int{} // others has the index of the row that counts
	for _, row := range rows {
		i, isCounted := others[row.Kind]
		switch shown[row.Kind]++; {
		case shown[row.Kind] <= maxOfKind:
			few = append(few, row)
		case isCounted:
			few[i].Count++
		default:
			others[row.Kind] = len(few)
			few = append(few, attention{Kind: "more", IsGrave: row.IsGrave, Count: 1, Path: row.List})
		}
	}
	return few
}

func (h *console) watchDemand(ctx context.Context, c *ui.Call, _ *watch) ([]attention, error) {
	p, err := h.app.Demands.Get(ctx, c.Caller)
	if err != nil || p.ConfirmBy == nil {
		return nil, err
	}
	return []attention{{Kind: "provisional", IsGrave: true, At: *p.ConfirmBy, Path: ssoPolicyPath}}, nil
}

func (h *console) watchPolicy(ctx context.Context, c *ui.Call, _ *watch) ([]attention, error) {
	p, err := h.app.Policies.Current(ctx, c.Caller)
	if err != nil || p.ConfirmUntil == nil {
		return nil, err
	}
	return []attention{{Kind: "policy", IsGrave: true, At: *p.ConfirmUntil, Path: policyPath}}, nil
}

// watchWebhooks tells of webhooks that Doorward has disabled, that fail, and that fail often.
func (h *console) watchWebhooks(ctx context.Context, c *ui.Call, _ *watch) (all []attention, err error) {
	hooks, err := h.endpoints(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, w := range hooks {
		row := attention{Kind: "webhook." + w.State(), Name: nameAmong(w, hooks), Path: webhooksPath + "/" + w.ID, List: webhooksPath}
		switch w.State() {
		case "failing":
			row.IsGrave, row.At = true, *w.FailingSince
		case "unreliable":
			row.Count, row.Of = w.FailedToday(), w.TriedToday()
		case "disabled":
			row.IsGrave, row.Cause = true, "hooks.because."+string(w.DisabledReason)
		}
		if row.IsGrave || row.Of > 0 {
			all = append(all, row)
		}
	}
	all = slices.DeleteFunc(all, func(a attention) bool { return a.Cause == "hooks.because." }) // somebody has disabled it
	slices.SortStableFunc(all, func(a, b attention) int {
		return cmp.Or(rankOfRow(a)-rankOfRow(b), cmp.Compare(b.Kind, a.Kind))
	})
	for i := range all[:min(len(all), 2*maxOfKind)] { // of those that are shown
		if all[i].Cause == "" {
			if all[i].Last, err = h.lastFailure(ctx, c, all[i].Path[len(webhooksPath)+1:]); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// nameAmong is the webhook's host, or the rest of its address, too, where another one has the same host.
func nameAmong(w endpoint, all []endpoint) string {
	isAnother := func(o endpoint) bool { return o.ID != w.ID && o.Host() == w.Host() }
	if _, address, found := strings.Cut(w.URL, "://"); found && slices.ContainsFunc(all, isAnother) {
		return address
	}
	return w.Host()
}

// lookedForFailure is how many of the newest deliveries are searched for the last attempt that failed.
const lookedForFailure = 50

// lastFailure returns the last failed attempt of the webhook's newest deliveries; nil for none.
func (h *console) lastFailure(ctx context.Context, c *ui.Call, id string) (last *attempt, err error) {
	newest, err := h.app.Webhooks.Deliveries(ctx, c.Caller, id, "", doorward.Window{Limit: lookedForFailure})
	for _, d := range deliveriesOf(newest.Items) {
		for _, a := range d.Tries {
			if a.Kind != "delivered" && (last == nil || a.At.After(last.At)) {
				last = &a
			}
		}
	}
	return last, err
}

func (h *console) watchMails(_ context.Context, _ *ui.Call, seen *watch) ([]attention, error) {
	if seen.figures.Failed == 0 {
		return nil, nil
	}
	row := attention{Kind: "mails", IsGrave: true, Count: seen.figures.Failed, Cause: "attention.mails.unsent", Path: invitationsPath + "?delivery=failed&status=PENDING"}
	if seen.figures.FailedBy != "" {
		row.Cause = "attention.mails.refused" // with the code
	}
	return []attention{row}, nil
}

// keysEndWithin is how long before its end the overview names a key: about as long as a rotation is planned ahead.
const keysEndWithin = 14 * oneDay

// maxEnding is up to how many such keys are counted.
const maxEnding = 1000

func (h *console) watchKeys(ctx context.Context, c *ui.Call, _ *watch) (all []attention, err error) {
	keys, err := h.app.APIKeys.EndingSoon(ctx, c.Caller, c.Now().Add(keysEndWithin), maxEnding)
	list := "/console/keys?" + url.Values{"status": {string(doorward.APIKeyActive)}, "sort": {"expiresAt"}}.Encode()
	for _, k := range keys {
		all = append(all, attention{Kind: "key", Name: k.Name, At: k.EndsAt(), Path: "/console/keys/" + k.ID, List: list})
	}
	return all, err
}

// watchSecrets tells of secrets and certificates of active connections and of directories that end, have ended, or were all
// taken away.
func (h *console) watchSecrets(_ context.Context, c *ui.Call, seen *watch) (all []attention, err error) {
	for _, p := range seen.connections {
		if !p.IsActive() {
			continue
		}
		all = append(all, p.ends("secret", p.SecretEnds(), "secrets")...)
		all = append(all, p.ends("certificate", p.CertificateEnds(), "certificates")...)
		if p.HasNoCertificate() {
			all = append(all, attention{Kind: "nocertificate", IsGrave: true, Name: p.Name, Path: connectionPath + "/" + p.ID + tabQuery("certificates"), List: ssoPath})
		}
		all = append(all, p.ends("scim", p.DirectoryEnds(), "directory")...)
	}
	return all, nil
}

// ends returns a row about what ends, or has ended, on the tab of the connection; none for nil.
func (p provider) ends(kind string, at *time.Time, tab string) []attention {
	if at == nil {
		return nil
	}
	row := attention{Kind: kind, Name: p.Name, At: *at, Path: connectionPath + "/" + p.ID + tabQuery(tab), List: ssoPath}
	if p.HasEnded(*at) {
		row.Kind, row.IsGrave = kind+".ended", true
	}
	return []attention{row}
}

// watchProviders tells of providers that can't be read for long: what they have changed since, such as a certificate, isn't
// known.
func (h *console) watchProviders(_ context.Context, _ *ui.Call, seen *watch) (all []attention, err error) {
	for _, p := range seen.connections {
		if since := p.Unread(); since != nil {
			all = append(all, attention{Kind: "unread", Name: p.Name, At: *since, Cause: "attention.unread.text", Path: connectionPath + "/" + p.ID + tabQuery("protocol"), List: ssoPath})
		}
	}
	return all, nil
}

func (h *console) watchDomains(ctx context.Context, c *ui.Call, _ *watch) (all []attention, err error) {
	domains, err := h.app.Domains.List(ctx, c.Caller, doorward.Window{Limit: doorward.DomainsMax})
	for _, d := range domains.Items {
		switch {
		case d.Status == doorward.DomainLapsed:
			all = append(all, attention{Kind: "lapsed", IsGrave: true, Name: d.Name, Path: domainsPath + "/" + d.ID, List: domainsPath})
		case d.Status == doorward.DomainVerified && d.MissingSince != nil:
			all = append(all, attention{Kind: "missing", Name: d.Name, At: shownDomain{Domain: d}.LapsesAt(), Path: domainsPath + "/" + d.ID, List: domainsPath})
		}
	}
	return all, err
}

// watchRuns tells of runs of directories that have ended the access of many, while they can be undone.
func (h *console) watchRuns(ctx context.Context, c *ui.Call, seen *watch) (all []attention, err error) {
	runs, err := h.app.DirectoryRuns.Alarmed(ctx, c.Caller, maxOfKind+1)
	for _, r := range runs {
		row := attention{Kind: "run", Count: r.Suspended + r.Removed, At: r.Last, Path: connectionPath + "/" + r.ConnectionID + "/runs/" + r.ID, List: ssoPath}
		row.Name = nameOf(seen.connections, r.ConnectionID)
		all = append(all, row)
	}
	return all, err
}

func nameOf(connections []provider, id string) string {
	for _, p := range connections {
		if p.ID == id {
			return p.Name
		}
	}
	return id
}

// watchRefusals tells of connections that have refused sign-ins in the last 24 hours, or whose provider was out of reach.
func (h *console) watchRefusals(ctx context.Context, c *ui.Call, seen *watch) (all []attention, err error) {
	counts, err := h.app.Connections.UsageOfAll(ctx, c.Caller, c.Now().Add(-oneDay))
	for _, p := range seen.connections {
		if !p.IsActive() {
			continue
		}
		sum := map[doorward.UsageOutcome]int{}
		for _, one := range counts {
			if one.SubjectID == p.ID {
				sum[one.Outcome] += int(one.Times)
			}
		}
		path := connectionPath + "/" + p.ID + tabQuery("protocol")
		if n := sum[doorward.UsageUnavailable]; n > 0 {
			all = append(all, attention{Kind: "unavailable", Name: p.Name, Count: n, Path: path, List: ssoPath})
		}
		if n := sum[doorward.UsageRefused]; n > 0 {
			all = append(all, attention{Kind: "refused", Name: p.Name, Count: n, Path: path, List: ssoPath})
		}
	}
	return all, err
}

// watchFactors tells of active people without the second factor that the tenant demands: of all, or of the roles of whom
// it does.
func (h *console) watchFactors(_ context.Context, c *ui.Call, seen *watch) (all []attention, err error) {
	demand := seen.tenant.Settings.SecondFactor
	row := attention{Kind: "factors.due", At: demand.Since.AddDate(0, 0, demand.GraceDays), List: "/console/settings" + tabQuery("factors")}
	if row.At.After(c.Now()) {
		row.Kind = "factors.soon"
	}
	for _, f := range seen.figures.Factors {
		if !demand.Covers(f.Role) || f.With == f.People {
			continue
		}
		if row.Count += f.People - f.With; len(demand.Roles) > 0 {
			row.Role, row.Count = f.Role, f.People-f.With
			all = append(all, row)
		}
	}
	if len(demand.Roles) == 0 && row.Count > 0 {
		all = []attention{row}
	}
	for i := range all {
		all[i].Path = peoplePath + "?" + url.Values{"factor": {"none"}, "status": {string(doorward.UserActive)}, "role": {string(all[i].Role)}}.Encode()
	}
	return all, nil
}
