package console

import (
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/web/ui"
)

// shownPersonDays is for how many days the page about a person says what has happened.
const shownPersonDays = 90

// personDays are the last days of a person, on the tab "activity". Its template is "personDays".
type personDays struct {
	Chart chart
	Days  int // that are shown
	// KeptDays is for how many days events are kept, if that is why not more are shown; else 0.
	KeptDays int
	IsCapped bool           // as of audit.PersonDays
	Changes  []changesOfDay // the newest day first
}

// changesOfDay is what changed with a person on a day.
type changesOfDay struct {
	Day   time.Time
	Items []changeOfDay
}

// changeOfDay is an action with the link to its events of the day.
type changeOfDay struct {
	Key   string // of the message about the action
	Times int
	Link  string
}

// personDays returns the last days of the person.
func (h *console) personDays(ctx context.Context, c *ui.Call, person doorward.User) (*personDays, error) {
	found, err := h.app.Audit.OfPerson(ctx, c.Caller, person, shownPersonDays)
	if err != nil {
		return nil, err
	}
	return newPersonDays(c.Site().BasePath(), person.ID, found), nil
}

func newPersonDays(base, id string, found audit.PersonDays) *personDays {
	p := &personDays{Chart: personChart(base, id, found.Days), Days: len(found.Days), KeptDays: found.KeptDays, IsCapped: found.IsCapped}
	for _, d := range slices.Backward(found.Days) {
		one := changesOfDay{Day: d.Day}
		for _, change := range d.Changes {
			day := d.Day.Format(time.DateOnly)
			link := trailLink(base, "target", change.Target, "action", string(change.Action), "outcome", string(doorward.Done), "from", day, "to", day)
			one.Items = append(one.Items, changeOfDay{messageKeyOf(change.Action, doorward.Done), change.Times, link})
		}
		if len(one.Items) > 0 {
			p.Changes = append(p.Changes, one)
		}
	}
	return p
}

// personChart returns the chart of the days. Each part leads to the events of its day in the trail.
func personChart(base, id string, days []audit.PersonDay) chart {
	signIns := []string{"actor", id, "action", string(doorward.SessionOpen), "outcome", string(doorward.Done)}
	refused := []string{"target", id, "outcome", string(doorward.Refused)}
	changed := []string{"target", id, "outcome", string(doorward.Done)}
	first := days[0].Day.Format(time.DateOnly)
	c := chart{ID: "days-title", Series: []series{
		{Key: "chart.session.open", Tone: "plain", Link: trailLink(base, append(signIns, "from", first)...)},
		{Key: "chart.changed", Tone: "change", Link: trailLink(base, append(changed, "from", first)...)},
		{Key: "chart.refused", Tone: "refused", Link: trailLink(base, append(refused, "from", first)...)},
	}}
	for n, d := range days {
		day := d.Day.Format(time.DateOnly)
		within := func(filters []string) string {
			return trailLink(base, append(slices.Clip(filters), "from", day, "to", day)...)
		}
		times := 0
		for _, change := range d.Changes {
			times += change.Times
		}
		c.Bars = append(c.Bars, bar{From: d.Day, ByDay: true, IsNow: n == len(days)-1, Parts: []part{
			{Key: c.Series[0].Key, Tone: c.Series[0].Tone, Times: d.SignIns, Link: within(signIns)},
			{Key: c.Series[1].Key, Tone: c.Series[1].Tone, Times: times, Link: within(changesOn(changed, d.Changes))},
			{Key: c.Series[2].Key, Tone: c.Series[2].Tone, Times: d.Refused, Link: within(refused)},
		}})
	}
	c.finish()
	return c
}

// changesOn returns the filters that find the changes of a day: those of the invitation, if nothing else changed.
func changesOn(filters []string, changes []audit.DayChange) []string {
	if len(changes) == 0 || slices.ContainsFunc(changes, func(c audit.DayChange) bool { return c.Target != changes[0].Target }) {
		return filters
	}
	return append([]string{"target", changes[0].Target}, filters[2:]...)
}
