package console

import (
	"bufio"
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// auditFilters are the API's filters of the trail. Instants may also be days or the
// values of datetime fields.
var auditFilters = []string{"action", "actor", "target", "from", "to", "outcome", "request", "ip"}

// trail is a part of the audit trail.
type trail struct {
	pageData
	eventTable
	Actions []doorward.Action
	Export  string // link to the file
	Presets []preset
	People  []personFilter
}

// entry is an event as the page shows it.
type entry struct {
	doorward.Event
	MessageKey  string // key of the message about the action; empty for none
	Actor       identity
	Target      identity
	Fields      []change
	ExplainPath string  // of the page that explains the refusal; empty for none
	Others      []entry // of the same request, with the same action and outcome
}

// auditPath is the path of the trail.
const auditPath = "/console/audit"

// identity is who has acted, or what was acted on, as the trail shows both.
type identity struct {
	ID     string
	Name   string // name, address or id; empty if unknown
	Detail string // what tells it from others of that name, such as an address; empty for none
	Page   string // path of the console's page about it; empty for none
}

// Title is the name and the detail, for a place where the name may be cut.
func (i identity) Title() string {
	if i.Detail == "" {
		return i.Name
	}
	return i.Name + ", " + i.Detail
}

// Times is how often it happened: each event counts itself, or the similar refusals that it stands for.
func (e entry) Times() (n int) {
	n = 1
	for _, c := range e.Changes {
		if more, err := strconv.Atoi(c.To); err == nil && c.Field == doorward.FieldCount {
			n = max(n, more)
		}
	}
	for _, o := range e.Others {
		n += o.Times()
	}
	return n
}

// RoleChange is the change of a role, which is shown without opening the details; nil for
// other actions.
func (e entry) RoleChange() *change {
	i := slices.IndexFunc(e.Fields, func(f change) bool { return e.Action == doorward.UserRole && f.Field == "role" && f.Both })
	if i < 0 {
		return nil
	}
	return &e.Fields[i]
}

// OtherTargets counts the objects of the other events that aren't the entry's own.
func (e entry) OtherTargets() int {
	all := map[string]bool{e.Event.Target.ID: true}
	for _, o := range e.Others {
		all[o.Event.Target.ID] = true
	}
	return len(all) - 1
}

// groupByRequest puts the events of one request with the same action and outcome into one
// entry, at the place of the newest, so that a change of many people is one entry.
func groupByRequest(all []entry) (groups []entry) {
	type key struct {
		request string
		action  doorward.Action
		outcome doorward.Outcome
	}
	at := map[key]int{}
	for _, e := range all {
		k := key{e.RequestID, e.Action, e.Outcome}
		if first, known := at[k]; known && e.RequestID != "" {
			groups[first].Others = append(groups[first].Others, e)
			continue
		}
		at[k] = len(groups)
		groups = append(groups, e)
	}
	return groups
}

// ShowsTarget reports whether to show the target of the event. Sessions, the trail's own
// tenant, the actor and an invitation that was never made are left out.
func (e entry) ShowsTarget() bool {
	if e.Event.Target.Type == "invitation" && e.Outcome == doorward.Refused && e.Target.Name == e.Target.ID {
		return false
	}
	return e.Target.Name != "" && e.Target.Name != e.Actor.Name && e.Event.Target.Type != "session" && e.Event.Target.ID != e.Event.Target.TenantID
}

func (h *console) audit(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	pages, window, err := readWindow(ctx, c, auditFilters, sorting{})
	if err != nil {
		return ui.View{}, err
	}
	resolved, people, err := h.resolvePeople(ctx, c, pages.Filter)
	if err != nil {
		return ui.View{}, err
	}
	body := trail{pageData: s, eventTable: eventTable{pager: pages, Label: "title"}, Export: h.exportLink(c, auditPath, pages, trailFile(resolved)), Presets: presets(pages.Filter, c.Now()), People: people}
	for _, v := range doorward.Verbs() {
		if hasMessage(v.Action) && (isInTenantTrail(v) || string(v.Action) == pages.Filter.Get("action")) {
			body.Actions = append(body.Actions, v.Action)
		}
	}
	if slices.ContainsFunc(people, personFilter.IsNobody) {
		return autoRefresh(c, ui.View{Page: "audit", Body: body, Wide: true}), nil
	}
	found, err := h.app.Audit.List(ctx, c.Caller, auditFilter(resolved), window)
	if err == nil {
		err = h.setBars(ctx, &body.eventTable, c.Caller, auditFilter(resolved), c.Now())
	}
	if err == nil {
		var shown []entry
		shown, err = h.entries(ctx, c, found.Items)
		body.setItems(c, shown)
	}
	if err == nil {
		err = body.setLinks(ctx, c, len(found.Items), found.Prev, found.Next)
	}
	return badFilter(autoRefresh(c, ui.View{Page: "audit", Body: body, Wide: true}), err)
}

// maxRecent is how many events the overview shows.
const maxRecent = 6

// recent returns a table of the newest events, most at most, that match one of the filters; an empty one
// unless the caller may read the trail.
func (h *console) recent(ctx context.Context, c *ui.Call, most int, filters ...audit.Filter) (eventTable, error) {
	t := eventTable{Trail: c.Site().BasePath() + auditPath, Label: "recent-title"}
	if !c.Can(doorward.AuditRead) {
		return t, nil
	}
	t.Query = keptQuery(c.R.URL.Query(), ui.TabParameter, "list", "days").Encode()
	var events []doorward.Event
	for _, f := range filters {
		found, err := h.app.Audit.List(ctx, c.Caller, f, doorward.Window{Limit: most})
		if err != nil {
			return t, err
		}
		events = append(events, found.Items...)
	}
	slices.SortFunc(events, func(a, b doorward.Event) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.ID, b.ID)) })
	events = slices.CompactFunc(events, func(a, b doorward.Event) bool { return a.ID == b.ID })
	shown, err := h.entries(ctx, c, events[:min(len(events), most)])
	t.setItems(c, shown)
	return t, err
}

// keptQuery returns the parameters with these names.
func keptQuery(all url.Values, names ...string) url.Values {
	kept := url.Values{}
	for _, name := range names {
		if all.Has(name) {
			kept.Set(name, all.Get(name))
		}
	}
	return kept
}

// isInTenantTrail reports whether the action can be in a tenant's trail. A permission can
// if Doorward checks it and some role lacks it, since refusals use that name. Actions on
// the installation are in its own trail.
func isInTenantTrail(v doorward.Verb) bool {
	switch v.Action {
	case doorward.UserInvite, doorward.UserManage, doorward.APIKeyManage, doorward.WebhookManage, doorward.SSOManage,
		doorward.SettingsManage, doorward.AuditRead, doorward.TenantDestroy:
		return true
	case doorward.KeyCreate, doorward.KeyRevoke, doorward.MasterKeyRotate, doorward.SigningKeyRotate, doorward.InstallationBackup, doorward.InstallationRestore, doorward.InstallationMove,
		doorward.InstallationMaintenance, doorward.ModelApply, doorward.AuditLink, doorward.AuditOpen, doorward.AuditEnd:
		return false
	}
	return !v.Action.IsPermission()
}

func auditFilter(f filters) audit.Filter {
	return audit.Filter{
		Action: f.Get("action"), Actor: f.Get("actor"), Target: f.Get("target"), Outcome: f.Get("outcome"), Request: f.Get("request"), IP: f.Get("ip"),
		From: instant(f.Get("from"), periodStart), To: instant(f.Get("to"), periodEnd),
	}
}

// fieldTime is the format of an instant in a datetime-local field (HTML, section
// 4.10.5.1.7), which has no time zone. The console's fields are in UTC.
const fieldTime = "2006-01-02T15:04:05"

// timeFormats are the formats of a time in a field, and the duration that each covers.
// Browsers leave out zero seconds.
var timeFormats = []struct {
	layout string
	covers time.Duration
}{{time.DateOnly, 24 * time.Hour}, {fieldTime, time.Second}, {"2006-01-02T15:04", time.Minute}}

// Values of the parameter atEnd of instant and typedInstant.
const (
	periodStart = false
	periodEnd   = true
)

// instant returns the beginning or, with atEnd, the end of the typed time, in UTC. Invalid
// text is returned unchanged; the feature refuses it.
func instant(text string, atEnd bool) string {
	for _, f := range timeFormats {
		t, err := time.Parse(f.layout, text)
		if err != nil {
			continue
		}
		if end := t.Add(f.covers); atEnd && end.Year() < 10_000 { // RFC 3339 years have four digits
			t = end
		}
		return t.Format(time.RFC3339)
	}
	return text
}

// trailFile returns the path of the same part of the trail from the API, as a file.
func trailFile(f filters) string {
	a := auditFilter(f)
	q := url.Values{"format": {front.Spreadsheet}}
	for name, value := range map[string]string{
		"action": a.Action, "actor": a.Actor, "target": a.Target, "from": a.From, "to": a.To, "outcome": a.Outcome, "request": a.Request, "ip": a.IP,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return "/api/v2/audit-events?" + q.Encode()
}

// entries returns the events with the names of actors and objects.
func (h *console) entries(ctx context.Context, c *ui.Call, events []doorward.Event) ([]entry, error) {
	known, addresses := map[string]identity{}, map[string]string{}
	for _, e := range events {
		addresses[e.ActorID] = cmp.Or(addresses[e.ActorID], e.ActorEmail)
	}
	for _, on := range objectsOf(events) {
		if _, isKnown := known[on.ID]; isKnown || on.ID == "" {
			continue
		}
		one, err := h.identify(ctx, c, on)
		if err != nil && !doorward.HasCode(err, doorward.CodeNotFound) {
			return nil, err
		}
		one.Name = cmp.Or(one.Name, addresses[on.ID])
		known[on.ID] = one
	}
	if err := h.nameRemoved(ctx, c, events, known); err != nil {
		return nil, err
	}
	if err := h.nameSetupLinks(ctx, c, events, known); err != nil {
		return nil, err
	}
	names := map[string]string{}
	for id, one := range known {
		names[id] = one.Name
	}
	var all []entry
	for _, e := range events {
		all = append(all, entry{
			Event: e, MessageKey: eventKey(e), Fields: describeFields(e, names), ExplainPath: explainLink(c, e),
			Actor: identityOr(known, e.ActorID, cmp.Or(e.ActorEmail, e.ActorID)), Target: identityOr(known, e.Target.ID, e.Target.ID),
		})
	}
	return all, nil
}

// identityOr returns who or what has the id; with the name if it isn't known.
func identityOr(known map[string]identity, id, name string) identity {
	one := known[id]
	one.ID, one.Name = id, cmp.Or(one.Name, name)
	return one
}

// nameRemoved adds the names, as the trail has them, of people who were removed from the tenant, and of
// all for a caller who may not read people.
func (h *console) nameRemoved(ctx context.Context, c *ui.Call, events []doorward.Event, known map[string]identity) error {
	isGone := func(e doorward.Event) bool { return e.Target.Type == "user" && known[e.Target.ID].Name == "" }
	if !slices.ContainsFunc(events, isGone) {
		return nil
	}
	all, err := h.app.Audit.Names(ctx, c.Caller, events)
	for id, n := range all {
		if known[id].Name == "" {
			known[id] = identityOf(doorward.User{ID: id, Name: n.Name, Email: n.Email}, "")
		}
	}
	return err
}

// objectsOf returns the objects of the events, the people and API keys that acted, and the people named
// in the changes.
func objectsOf(events []doorward.Event) (all []doorward.Object) {
	for _, e := range events {
		all = append(all, e.Target)
		switch e.ActorType {
		case doorward.ByKey:
			all = append(all, doorward.Object{Type: "key", ID: e.ActorID})
		case doorward.ByUser:
			all = append(all, doorward.Object{Type: "user", ID: e.ActorID})
		case doorward.ByConnection, doorward.ByDirectory:
			all = append(all, doorward.Object{Type: "connection", ID: e.ActorID})
		}
		for _, ch := range e.Changes {
			if ch.Field == "invitedBy" || ch.Field == "ownerId" {
				all = append(all, doorward.Object{Type: "user", ID: ch.From}, doorward.Object{Type: "user", ID: ch.To})
			}
		}
	}
	return all
}

// identify returns the name of an object and the console's page about it; nothing if the caller may not
// read such objects. Errors: not_found, unavailable.
func (h *console) identify(ctx context.Context, c *ui.Call, on doorward.Object) (identity, error) {
	needed, isNamed := map[string]doorward.Action{
		"user": doorward.UserRead, "invitation": doorward.UserInvite, "key": doorward.APIKeyManage, "webhook": doorward.WebhookManage,
		"role": doorward.RoleManage, "connection": doorward.SSOManage, "domain": doorward.SSOManage,
	}[on.Type]
	if !isNamed || !c.Can(needed) {
		return identity{}, nil
	}
	one, err := h.nameOf(ctx, c, on)
	if err != nil {
		return identity{}, err
	}
	return one, nil
}

// nameOf is identify for an object that the caller may read. Beside an error the identity is of no use.
func (h *console) nameOf(ctx context.Context, c *ui.Call, on doorward.Object) (identity, error) {
	switch on.Type {
	case "user":
		u, err := h.app.Users.Get(ctx, c.Caller, on.ID)
		return identityOf(u, peoplePath+"/"+u.ID), err
	case "invitation":
		inv, err := h.app.Invitations.Get(ctx, c.Caller, on.ID)
		return identity{inv.ID, inv.Email, inv.Name, invitationsPath + "/" + inv.ID}, err
	case "key":
		k, err := h.app.APIKeys.Get(ctx, c.Caller, on.ID)
		return identity{k.ID, k.Name, k.Hint, "/console/keys/" + k.ID}, err
	case "role":
		all, err := h.app.Roles.Uncounted(ctx, c.Caller)
		i := slices.IndexFunc(all, func(r role.Role) bool { return r.ID == on.ID })
		if err != nil || i < 0 {
			return identity{}, cmp.Or(err, error(doorward.Fail(doorward.CodeNotFound, "")))
		}
		name, err := c.RoleName(all[i].Name)
		return identity{all[i].ID, name, all[i].About, rolesPath + "/" + all[i].ID}, err
	case "connection":
		found, err := h.app.Connections.Connection(ctx, c.Caller, on.ID)
		return identity{found.ID, found.Name, ui.ProductName(found.Product), connectionPath + "/" + found.ID}, err
	case "domain":
		d, err := h.app.Domains.Get(ctx, c.Caller, on.ID)
		return identity{d.ID, d.Name, "", domainsPath + "/" + d.ID}, err
	}
	w, err := h.app.Webhooks.Get(ctx, c.Caller, on.ID)
	return identity{w.ID, endpoint{Webhook: w}.Host(), w.URL, webhooksPath + "/" + w.ID}, err
}

// identityOf returns a person as the trail shows people: by name, with the address as the detail.
func identityOf(u doorward.User, page string) identity {
	one := identity{ID: u.ID, Name: displayName(u), Page: page}
	if one.Name != u.Email {
		one.Detail = u.Email
	}
	return one
}

// eventKey returns the key of the message about an event: what Doorward itself has noticed of a client secret changes
// nothing, and a sign-out that names a session has ended that one alone.
func eventKey(e doorward.Event) string {
	switch {
	case e.Action == doorward.ConnectionSecretChange && e.ActorType == doorward.System:
		return "did." + string(e.Action) + "." + noticeOf(e)
	case e.Action == doorward.UserSignOut && slices.ContainsFunc(e.Changes, func(c doorward.Change) bool { return c.Field == "session" }):
		return "did." + string(e.Action) + ".session"
	}
	return messageKeyOf(e.Action, e.Outcome)
}

// messageKeyOf returns the key of the message about an action. A refusal is described as an
// attempt.
func messageKeyOf(a doorward.Action, o doorward.Outcome) string {
	if tried := "tried." + string(a); o == doorward.Refused && messageKeys()[tried] {
		return tried
	}
	if hasMessage(a) {
		return "did." + string(a)
	}
	return ""
}

// noticeOf says what Doorward itself has noticed of a client secret: the provider refuses it, or its end is near.
func noticeOf(e doorward.Event) string {
	if slices.ContainsFunc(e.Changes, func(c doorward.Change) bool { return c.Field == doorward.FieldReason }) {
		return "refused"
	}
	return "ending"
}

// hasMessage reports whether the action has a message; an action of a newer version is
// shown by its name.
func hasMessage(a doorward.Action) bool { return messageKeys()["did."+string(a)] }

// messageKeys returns the keys of all messages of the console.
var messageKeys = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	f, err := files.Open("text/" + ui.Languages[0].Tag + ".txt")
	if err != nil {
		return all // rendering the pages reports the error
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, _, _ := strings.Cut(lines.Text(), " = ")
		all[key] = true
	}
	return all
})
