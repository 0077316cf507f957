package console

import (
	"context"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/overview"
	"github.com/doorward/doorward/web/ui"
)

// home is the content of the overview.
type home struct {
	pageData
	Figures overview.Tenant
	Chart   Chart
	Refused int // of all kinds
}

// Since is the instant from which refusals are counted, for a link to the trail.
func (h home) Since() string { return h.Figures.Since.Format(moment) }

// Tried returns the key of the message about a refused action; empty for none.
func (home) Tried(a doorward.Action) string { return whatOf(a, doorward.Refused) }

func (h *console) overview(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	t, err := h.app.Overviews.Of(ctx, c.Caller)
	if err != nil {
		return ui.View{}, err
	}
	body := home{pageData: s, Figures: t, Chart: chart(t.SignIns)}
	for _, r := range t.Refusals {
		body.Refused += r.Times
	}
	return autoRefresh(c, ui.View{Page: "overview", Body: body, Wide: true}), nil
}

// Grouped writes a number with a narrow space between thousands, as in ISO 80000-1,
// for all languages.
func (home) Grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "\u202f" + text[at:]
	}
	return text
}

// Grouped64 is Grouped for a quota.
func (h home) Grouped64(n *int64) string { return h.Grouped(int(*n)) }

// Chart has the bars of sign-ins by day, in units of its view box.
type Chart struct {
	Bars  []Bar
	Most  int // sign-ins of the busiest day
	Total int
}

// Bar is one day.
type Bar struct {
	overview.Day
	X, Y, Height int
	Today        bool
}

// The height of the view box; a day is ten units wide.
const chartHeight, dayWidth = 100, 10

// From is the first day, for a link to the trail.
func (c Chart) From() string { return c.Bars[0].Day.Day.Format(time.DateOnly) }

func chart(days []overview.Day) Chart {
	var c Chart
	for _, d := range days {
		c.Most, c.Total = max(c.Most, d.SignIns), c.Total+d.SignIns
	}
	for n, d := range days {
		b := Bar{Day: d, X: n * dayWidth, Today: n == len(days)-1}
		if d.SignIns > 0 { // high enough to be seen
			b.Height = max(2, d.SignIns*chartHeight/c.Most)
		}
		b.Y = chartHeight - b.Height
		c.Bars = append(c.Bars, b)
	}
	return c
}
