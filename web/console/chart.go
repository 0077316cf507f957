package console

import (
	"slices"
	"time"

	"github.com/doorward/doorward"
)

// The height of a bar's view box. chart, strip and the histogram of a trail draw their bars in it.
const chartHeight = 100

// part is a part of a bar: what happened so often within its time.
type part struct {
	Key       string // of the message about the number: Key.one and so on
	Tone      string // class of its colour
	Times     int
	Link      string // to the list of these; empty for none
	Y, Height int    // of chartHeight
	// The part of the bar's column that is the link: from the lower edge of the part to that of the next one.
	AreaY, AreaHeight int
}

// bar is what happened within an hour, a day or another time: its parts are stacked.
type bar struct {
	From  time.Time
	ByDay bool // the time is a day or longer
	IsNow bool // the time hasn't ended
	Parts []part
}

// HasLinks reports whether parts of the bar lead anywhere.
func (b bar) HasLinks() bool {
	return slices.ContainsFunc(b.Parts, func(p part) bool { return p.Link != "" })
}

// Find returns the part with the key; nil if there is none.
func (b bar) Find(key string) *part {
	i := slices.IndexFunc(b.Parts, func(p part) bool { return p.Key == key })
	if i < 0 {
		return nil
	}
	return &b.Parts[i]
}

// barText is a part of a bar, for the template with the words about it.
type barText struct {
	bar
	Part part
}

// Text returns what the words about a part of the bar need.
func (b bar) Text(p part) barText { return barText{b, p} }

// stack sets where the parts are drawn, for a scale that ends at top, and leaves out those of nothing. Each that happened
// is high enough to be seen.
func (b *bar) stack(top int) {
	b.Parts = slices.DeleteFunc(b.Parts, func(p part) bool { return p.Times == 0 })
	ground := chartHeight
	for i := range b.Parts {
		p := &b.Parts[i]
		p.Height = min(ground, max(4, p.Times*chartHeight/top))
		p.Y, p.AreaY, p.AreaHeight = ground-p.Height, ground-p.Height, p.Height
		ground = p.Y
	}
	if n := len(b.Parts); n > 0 { // above the bar is the link of its last part
		last := &b.Parts[n-1]
		last.AreaY, last.AreaHeight = 0, last.AreaY+last.AreaHeight
	}
}

// series is what a chart counts, from the ground up.
type series struct {
	Outcome doorward.UsageOutcome
	Key     string // as of part
	Tone    string
	Total   int
	Link    string // to the list of all of it; empty for none
}

// chart has bars over time, with a scale, a legend and a table of the same numbers. Its template is "chart".
type chart struct {
	ID     string // of the heading of the chart
	Series []series
	Bars   []bar
	Top    int // value of the upper line of the scale
}

// Half is the value of the middle line of the scale.
func (c chart) Half() int { return c.Top / 2 }

// Any reports whether anything happened.
func (c chart) Any() bool {
	return slices.ContainsFunc(c.Series, func(s series) bool { return s.Total > 0 })
}

// Last is the last bar.
func (c chart) Last() bar { return c.Bars[len(c.Bars)-1] }

// finish counts the totals, sets the scale, and then where the bars' parts are drawn. Each bar has a part for each series.
func (c *chart) finish() {
	highest := 0
	for _, b := range c.Bars {
		sum := 0
		for i, p := range b.Parts {
			c.Series[i].Total += p.Times
			sum += p.Times
		}
		highest = max(highest, sum)
	}
	c.Top = topOf(highest)
	for i := range c.Bars {
		c.Bars[i].stack(c.Top)
	}
}

// topOf returns where a scale for the number ends: an even number of one digit followed by zeros, or 10, 100 and so on.
func topOf(highest int) int {
	for unit := 1; ; unit *= 10 {
		for _, digit := range []int{2, 4, 6, 8, 10} {
			if digit*unit >= highest {
				return digit * unit
			}
		}
	}
}

const oneDay = 24 * time.Hour

// chartOf returns the chart of the counts, with a bar for each of the last n times of the width, the last of which is now.
func chartOf(id string, all []series, counts []doorward.UsageCount, now time.Time, width time.Duration, n int) chart {
	c := chart{ID: id, Series: all}
	for i := range n {
		from := now.UTC().Truncate(width).Add(-time.Duration(n-1-i) * width)
		b := bar{From: from, ByDay: width >= oneDay, IsNow: i == n-1}
		for _, s := range all {
			b.Parts = append(b.Parts, part{Key: s.Key, Tone: s.Tone, Times: timesIn(counts, s.Outcome, from, width)})
		}
		c.Bars = append(c.Bars, b)
	}
	c.finish()
	return c
}

// timesIn adds up the counts of the outcome within a time.
func timesIn(counts []doorward.UsageCount, outcome doorward.UsageOutcome, from time.Time, width time.Duration) (n int) {
	for _, c := range counts {
		if c.Outcome == outcome && !c.At.Before(from) && c.At.Before(from.Add(width)) {
			n += int(c.Times)
		}
	}
	return n
}

// strip is a chart without a scale, for a row of a list: each bar shows the shares of its parts. Its template is "strip".
type strip struct {
	Series []series // with totals
	Bars   []bar
}

// stripBarWidth is the width of a bar in the view box of a strip.
const stripBarWidth = 10

// X is where the bar of the number is drawn.
func (strip) X(n int) int { return n * stripBarWidth }

// Any reports whether anything happened.
func (s strip) Any() bool { return chart{Series: s.Series}.Any() }

// Width is the width of the view box.
func (s strip) Width() int { return len(s.Bars) * stripBarWidth }

// stripOf is chartOf for the last 24 hours.
func stripOf(all []series, counts []doorward.UsageCount, now time.Time) strip {
	c := chartOf("", all, counts, now, time.Hour, 24)
	for i := range c.Bars {
		sum := 0
		for _, p := range c.Bars[i].Parts {
			sum += p.Times
		}
		c.Bars[i].stack(max(sum, 1))
	}
	return strip{c.Series, c.Bars}
}

// meter is a number as a horizontal bar, beside others of a list. The template of such a list is "meters".
type meter struct {
	Name    string // of its message
	IsRole  bool   // the name is a role's
	Link    string // empty for none
	Times   int
	Of      int  // the number of a full bar
	ShowsOf bool // the text has both numbers
	IsHigh  bool // almost or quite full, where that is a limit
}

// Width is how much of the bar is full, in percent. What there is can be seen, and what is missing, too.
func (m meter) Width() int {
	switch {
	case m.Times >= m.Of && (m.Times > 0 || m.ShowsOf):
		return 100
	case m.Times == 0:
		return 0
	}
	return min(99, max(1, m.Times*100/m.Of))
}
