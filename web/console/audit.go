package console

import (
	"bufio"
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/web/ui"
)

// auditFilters are the filters of the trail: those of the API, with days, or what
// a field of a form has for an instant, in place of its instants.
var auditFilters = []string{"action", "actor", "target", "from", "to", "outcome", "request"}

// trail is a part of the audit trail.
type trail struct {
	pageData
	pager
	Actions []doorward.Action
	Items   []entry
	Export  string // link to the file
}

// Rest reports whether there are filters besides the two that are always shown.
func (t trail) Rest() bool {
	return slices.ContainsFunc([]string{"actor", "target", "from", "to", "request"}, func(name string) bool { return t.Filter.Get(name) != "" })
}

// entry is an event as it is shown.
type entry struct {
	doorward.Event
	What   string // key of the message about the act; empty for none
	Actor  string // name, address or id; empty when nobody is known
	Target string // likewise
	Page   string // path of the console's page about the target; empty for none
	Fields []change
}

// About reports whether it says something to say what the event is about: not of
// what somebody did in an own session, or to the tenant whose trail it is.
func (e entry) About() bool {
	return e.Target != "" && e.Target != e.Actor && e.Event.Target.Type != "session" && e.Event.Target.ID != e.Event.Target.TenantID
}

func (h *console) audit(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	r, w, err := window(ctx, c, auditFilters)
	if err != nil {
		return ui.View{}, err
	}
	body := trail{pageData: s, pager: r, Export: export(c, r.Filter)}
	for _, v := range doorward.Verbs() {
		if told(v.Action) && (happens(v) || string(v.Action) == r.Filter.Get("action")) {
			body.Actions = append(body.Actions, v.Action)
		}
	}
	found, err := h.app.Audit.List(ctx, c.Caller, auditFilter(r.Filter), w)
	if err == nil {
		body.Items, err = h.entries(ctx, c, found.Items)
	}
	if err == nil {
		err = body.ending(ctx, c, found.Prev, found.Next)
	}
	return badFilter(autoRefresh(c, ui.View{Page: "audit", Body: body, Wide: true}), err)
}

// happens reports whether the action can be in a tenant's trail: of the permissions
// those that Doorward asks for itself and not every role has, since they are
// refused by that name. What is done to the installation is in its own.
func happens(v doorward.Verb) bool {
	switch v.Action {
	case doorward.UserInvite, doorward.UserManage, doorward.SettingsManage, doorward.AuditRead, doorward.TenantDestroy:
		return true
	case doorward.KeyCreate, doorward.KeyRevoke, doorward.MasterKeyRotate, doorward.InstallationBackup, doorward.InstallationRestore, doorward.InstallationMove:
		return false
	}
	return !v.Action.IsPermission()
}

func auditFilter(f filters) audit.Filter {
	return audit.Filter{
		Action: f.Get("action"), Actor: f.Get("actor"), Target: f.Get("target"), Outcome: f.Get("outcome"), Request: f.Get("request"),
		From: instant(f.Get("from"), false), To: instant(f.Get("to"), true),
	}
}

// moment is an instant of UTC as a field of the type datetime-local has it (HTML,
// section 4.10.5.1.7): it knows no zones.
const moment = "2006-01-02T15:04:05"

// typed are the forms of a time that a field sends, and how long one of them lasts.
// Browsers leave out seconds that are none.
var typed = []struct {
	layout string
	lasts  time.Duration
}{{time.DateOnly, 24 * time.Hour}, {moment, time.Second}, {"2006-01-02T15:04", time.Minute}}

// instant is when the time typed begins, in UTC, or has ended. What is none stays
// what it is, to be refused.
func instant(text string, ended bool) string {
	for _, f := range typed {
		t, err := time.Parse(f.layout, text)
		if err != nil {
			continue
		}
		if end := t.Add(f.lasts); ended && end.Year() < 10_000 { // RFC 3339 has no more digits
			t = end
		}
		return t.Format(time.RFC3339)
	}
	return text
}

// Clock reports whether the filter names an instant, and no day: its field shows
// what it is filled with, and is of that type.
func (t trail) Clock(name string) bool { return strings.Contains(t.Filter.Get(name), "T") }

// export is the same part of the trail from the API, as a file.
func export(c *ui.Call, f filters) string {
	a := auditFilter(f)
	q := url.Values{"format": {"csv"}}
	for name, value := range map[string]string{
		"action": a.Action, "actor": a.Actor, "target": a.Target, "from": a.From, "to": a.To, "outcome": a.Outcome, "request": a.Request,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return c.Site().BasePath() + "/api/v2/audit-events?" + q.Encode()
}

// entries says who did what to whom, by name where there is one.
func (h *console) entries(ctx context.Context, c *ui.Call, events []doorward.Event) ([]entry, error) {
	names := map[string]string{}
	for _, e := range events {
		if e.ActorEmail != "" {
			names[e.ActorID] = e.ActorEmail
		}
	}
	pages := map[string]string{}
	for _, on := range subjects(events) {
		if _, looked := pages[on.ID]; looked || on.ID == "" {
			continue
		}
		name, page, err := h.subject(ctx, c, on)
		if err != nil && !doorward.HasCode(err, doorward.CodeNotFound) {
			return nil, err
		}
		if pages[on.ID] = page; name != "" {
			names[on.ID] = name
		}
	}
	var all []entry
	for _, e := range events {
		one := entry{Event: e, What: whatOf(e.Action, e.Outcome), Actor: e.ActorID, Target: e.Target.ID, Page: pages[e.Target.ID], Fields: inWords(e.Changes, names)}
		if name := names[e.ActorID]; name != "" {
			one.Actor = name
		}
		if name := names[e.Target.ID]; name != "" {
			one.Target = name
		}
		all = append(all, one)
	}
	return all, nil
}

// subjects are what the events are about, and who is named in them.
func subjects(events []doorward.Event) (all []doorward.Object) {
	for _, e := range events {
		all = append(all, e.Target)
		for _, ch := range e.Changes {
			if ch.Field == "invitedBy" {
				all = append(all, doorward.Object{Type: "user", ID: ch.From}, doorward.Object{Type: "user", ID: ch.To})
			}
		}
	}
	return all
}

// subject is what people call an object, and the console's page about it: both
// empty for what has none. Errors: not_found.
func (h *console) subject(ctx context.Context, c *ui.Call, on doorward.Object) (name, page string, err error) {
	switch on.Type {
	case "user":
		u, err := h.app.Users.Get(ctx, c.Caller, on.ID)
		if err != nil {
			return "", "", err
		}
		return who(u), "/console/people/" + u.ID, nil
	case "invitation":
		inv, err := h.app.Invitations.Get(ctx, c.Caller, on.ID)
		if err != nil {
			return "", "", err
		}
		return inv.Email, "/console/invitations/" + inv.ID, nil
	}
	return "", "", nil
}

// whatOf is the key of the message about an act. One that was refused is told as
// what somebody wanted to do: nothing of it has happened.
func whatOf(a doorward.Action, o doorward.Outcome) string {
	if tried := "tried." + string(a); o == doorward.Refused && messages()[tried] {
		return tried
	}
	if told(a) {
		return "did." + string(a)
	}
	return ""
}

// told reports whether the action has a message: one that is new, or of a newer
// version, is shown by its own name.
func told(a doorward.Action) bool { return messages()["did."+string(a)] }

// messages are the keys that there are.
var messages = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	f, err := files.Open("text/" + ui.Languages[0].Tag + ".txt")
	if err != nil {
		return all // the pages say so themselves
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, _, _ := strings.Cut(lines.Text(), " = ")
		all[key] = true
	}
	return all
})
