package console

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/web/ui"
)

// openParameter is the query parameter with the id of the event whose details are shown.
const openParameter = "event"

// eventTable is a part of a trail as a table: a heading for each day, and beside it the details of
// the event that is open.
type eventTable struct {
	pager
	// Trail is the address of the trail, if the table is part of another page; empty on the trail itself.
	Trail string
	Label string // id of the table's heading
	Days  []eventDay
	Open  *entry // nil: none is open
	Bars  []timeBar
	// IsCapped: there are more events than the bars count, so that the oldest ones are too low.
	IsCapped bool
	Highest  int // count of the highest bar
}

// eventDay has the events of a day, in UTC.
type eventDay struct {
	Day   time.Time
	Items []entry
}

// setItems groups the entries, the newest first, by request and by day, and sets the open one.
func (t *eventTable) setItems(c *ui.Call, all []entry) {
	asked := c.R.URL.Query().Get(openParameter)
	for _, e := range groupByRequest(all) {
		day := e.At.UTC().Truncate(24 * time.Hour)
		if n := len(t.Days); n == 0 || !t.Days[n-1].Day.Equal(day) {
			t.Days = append(t.Days, eventDay{Day: day})
		}
		last := &t.Days[len(t.Days)-1]
		if last.Items = append(last.Items, e); e.ID == asked {
			t.Open = &e
		}
	}
}

// IsOpen reports whether the entry is the open one.
func (t eventTable) IsOpen(e entry) bool { return t.Open != nil && t.Open.ID == e.ID }

// OpenLink returns a link to this part of the trail with the event open; with none for an empty id.
func (t eventTable) OpenLink(id string) string {
	q, _ := url.ParseQuery(t.Query) // readWindow encoded it
	if id != "" {
		q.Set(openParameter, id)
	}
	return "?" + q.Encode()
}

// FilterLink returns a link to the trail with the filters of this page and one more.
func (t eventTable) FilterLink(name, value string) string {
	return t.Trail + t.Filter.With(name, value)
}

// activity is the tab "activity" of the page about an object: the last events in which it has acted or
// was acted on.
type activity struct {
	eventTable
	Kind string // of object: the messages of the links to the trail are Kind.did and Kind.done
	ID   string
}

// Acts reports whether such an object can be an actor.
func (a activity) Acts() bool { return messageKeys()[a.Kind+".did"] }

// maxActivity is how many events the tab shows.
const maxActivity = 20

// activity returns the last events by and on the object of the id.
func (h *console) activity(ctx context.Context, c *ui.Call, kind, id string) (activity, error) {
	a, filters := activity{Kind: kind, ID: id}, []audit.Filter{{Target: id}}
	if a.Acts() {
		filters = append(filters, audit.Filter{Actor: id})
	}
	var err error
	a.eventTable, err = h.recent(ctx, c, maxActivity, filters...)
	return a, err
}

// withActivity adds the tab to the names of tabs, unless the caller may not read the trail.
func withActivity(c *ui.Call, names []string) []string {
	if c.Can(doorward.AuditRead) {
		names = append(names, "activity")
	}
	return names
}

// In returns the table with the frame of its page, for templates.
func (t eventTable) In(f ui.Frame) shownTable { return shownTable{f, t} }

// shownTable is a table with the frame of its page, for its template.
type shownTable struct {
	Frame ui.Frame
	Table eventTable
}

// Show returns an entry of the table, for its template.
func (t shownTable) Show(e entry) shownEntry { return shownEntry{t.Frame, t.Table, e} }

// shownEntry is an entry with its table and the frame of its page, for the template.
type shownEntry struct {
	Frame ui.Frame
	Table eventTable
	Entry entry
}

// Another returns another entry of the same table.
func (s shownEntry) Another(e entry) shownEntry { return shownEntry{s.Frame, s.Table, e} }

// Identity returns the identity with the link to the trail of it, by the filter of the name.
func (s shownEntry) Identity(filter string, i identity) shownIdentity {
	return shownIdentity{i, s.Frame.Base, s.Table.FilterLink(filter, i.ID)}
}

// shownIdentity is an identity as the details of an event show it.
type shownIdentity struct {
	Identity   identity
	Base, Link string
}

// timeBar is a bar of the histogram above the table: a link to the events of its time.
type timeBar struct {
	audit.Bar
	Y, Height int // of chartHeight
	Link      string
	ByDay     bool // the bar is a day or longer
	IsNow     bool // its time hasn't ended
}

// Width is the time that the bar covers.
func (b timeBar) Width() time.Duration { return b.To.Sub(b.From) }

// IsDay reports whether the bar covers a day.
func (b timeBar) IsDay() bool { return b.Width() == 24*time.Hour }

// IsHour reports whether the bar covers an hour.
func (b timeBar) IsHour() bool { return b.Width() == time.Hour }

// setBars reads the histogram of the filter, and with it how many events there are. A bar leads to
// its events, with the other filters; the one of now is marked.
func (h *console) setBars(ctx context.Context, t *eventTable, by doorward.Caller, f audit.Filter, now time.Time) error {
	found, err := h.app.Audit.Histogram(ctx, by, f)
	if err != nil {
		return err
	}
	t.IsCapped, t.Highest = found.IsCapped, found.Highest()
	for _, b := range found.Bars {
		t.Total += b.Count
		one := timeBar{Bar: b, Y: chartHeight, ByDay: b.To.Sub(b.From) >= 24*time.Hour, IsNow: !now.Before(b.From) && now.Before(b.To)}
		if b.Count > 0 {
			one.Height = max(4, b.Count*chartHeight/t.Highest)
			one.Y = chartHeight - one.Height
		}
		layout, last := fieldTime, b.To.Add(-time.Second) // "to" covers its second or its day
		if isMidnight(b.From) && isMidnight(b.To) {
			layout, last = time.DateOnly, b.To.AddDate(0, 0, -1)
		}
		q := t.Filter.without()
		q.Set("from", b.From.UTC().Format(layout))
		q.Set("to", last.UTC().Format(layout))
		one.Link = "?" + q.Encode()
		t.Bars = append(t.Bars, one)
	}
	return nil
}

// isMidnight reports whether a day begins then, in UTC.
func isMidnight(at time.Time) bool { return at.Equal(at.Truncate(24 * time.Hour)) }

// LastBar is the last of the bars.
func (t eventTable) LastBar() timeBar { return t.Bars[len(t.Bars)-1] }

// AllTimes is a link without the times of the filter; empty if there are none.
func (t eventTable) AllTimes() string {
	if t.Filter.Count("from", "to") == 0 {
		return ""
	}
	return "?" + t.Filter.without("from", "to").Encode()
}

// Folded counts the filters in use besides the two that are always shown, action and outcome.
func (t eventTable) Folded() int { return t.Filter.Count(foldedTrailFilters...) }

// foldedTrailFilters are the filters of a trail that are folded on every screen.
var foldedTrailFilters = []string{"from", "to", "actor", "target", "request", "ip"}

// usedFilter is a filter in use as the page shows it.
type usedFilter struct {
	Name    string
	Text    string    // as typed, or the name of the person
	At      time.Time // in place of the text if that is a time; zero for none
	IsDay   bool      // the time is a day
	Without string    // link to the list without the filter
}

// UsedFilters returns the folded filters in use.
func (t eventTable) UsedFilters() (all []usedFilter) {
	for _, name := range foldedTrailFilters {
		one := usedFilter{Name: name, Text: t.Filter.Get(name), Without: t.Filter.With(name, "")}
		for _, f := range timeFormats {
			if at, err := time.Parse(f.layout, one.Text); err == nil {
				one.At, one.IsDay = at, f.layout == time.DateOnly
				break
			}
		}
		if one.Text != "" {
			all = append(all, one)
		}
	}
	return all
}

// UsedFilters is eventTable.UsedFilters with people by name.
func (t trail) UsedFilters() []usedFilter {
	all := t.eventTable.UsedFilters()
	for _, p := range t.People {
		i := slices.IndexFunc(all, func(f usedFilter) bool { return f.Name == p.Field })
		if i >= 0 && p.User.ID != "" {
			all[i].Text = p.DisplayName()
		}
	}
	return all
}

// whoFilter is a field of a filter by a person or an object.
type whoFilter struct {
	Name, Value string
	Suggest     string // address that finds people while one types; empty for none
}

// WhoFilter returns the field of the name. The operator's page suggests nobody.
func (t eventTable) WhoFilter(f ui.Frame, name string) whoFilter {
	field := whoFilter{Name: name, Value: t.Filter.Get(name)}
	if f.Page != "operatortrail" {
		field.Suggest = f.Base + "/api/v2/users"
	}
	return field
}

// timeField is a filter by time as its field has it: a day, or a day and a time of day, in UTC.
type timeField struct {
	Name, Value  string
	HasTimeOfDay bool
}

// TimeFields returns the fields "from" and "to". If one of them has a time of day, so has the other:
// the beginning of the first day, the last second of the last.
func (t eventTable) TimeFields() []timeField {
	from, to := t.Filter.Get("from"), t.Filter.Get("to")
	hasTime := strings.Contains(from+to, "T")
	if hasTime {
		from, to = withTimeOfDay(from, "T00:00:00"), withTimeOfDay(to, "T23:59:59")
	}
	return []timeField{{"from", from, hasTime}, {"to", to, hasTime}}
}

// withTimeOfDay returns the value with the time of day, if it is a day alone.
func withTimeOfDay(value, timeOfDay string) string {
	if _, err := time.Parse(time.DateOnly, value); err != nil {
		return value
	}
	return value + timeOfDay
}

// Avatar is shown in place of a picture of the actor, if that is a person.
func (e entry) Avatar() *ui.Avatar {
	if e.ActorType != doorward.ByUser || e.Actor.Name == "" {
		return nil
	}
	return &ui.Avatar{Name: e.Actor.Name, Email: e.ActorEmail, ID: e.ActorID}
}

// MachineIcon is the shape of the icon of an actor that isn't a person.
func (e entry) MachineIcon() string {
	if e.ActorType == doorward.ByKey {
		return icons["keys"]
	}
	return icons["settings"]
}

// eventIcons are the names of icons by the first word of an action.
var eventIcons = map[string]string{
	"user": "people", "invitation": "invitations", "role": "roles", "policy": "policy", "apikey": "keys", "key": "keys",
	"webhook": "webhooks", "tenant": "settings", "settings": "settings", "session": "session", "mfa": "factor", "password": "factor", "account": "people",
	"connection": "sso", "domain": "sso", "identity": "sso", "sso": "sso", "incident": "session", "queue": "webhooks",
}

// tones are the colours of icons by the last word of an action that was done: warm for what ends or is
// taken, good for what begins or is given.
var tones = map[string][]string{
	"warm": {"remove", "revoke", "delete", "end", "close", "suspend", "erase", "disable", "destroy", "reset", "leave", "expire", "freeze", "leak", "sign_out", "force_reset", "drop"},
	"good": {"create", "accept", "invite", "open", "enable", "confirm", "resume", "import", "restore", "enrol", "thaw", "recover"},
}

// Icon is the shape of the icon of what the event is about.
func (e entry) Icon() string {
	word, _, _ := strings.Cut(string(e.Action), ".")
	if icon, known := icons[eventIcons[word]]; known {
		return icon
	}
	return icons["audit"]
}

// Tone is the colour of the icon: bad for a refusal, else that of tones, or empty.
func (e entry) Tone() string {
	if e.Outcome == doorward.Refused {
		return "bad"
	}
	_, verb, _ := strings.Cut(string(e.Action), ".")
	for tone, verbs := range tones {
		if slices.Contains(verbs, verb) {
			return tone
		}
	}
	return ""
}
