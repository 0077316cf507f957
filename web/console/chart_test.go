package console

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
)

// The parts of a bar lie on each other, each high enough to be seen, and their links cover the whole column.
func TestPartsOfABar(t *testing.T) {
	b := bar{Parts: []part{{Times: 50}, {Times: 0}, {Times: 1}, {Times: 30}}}
	b.stack(200)
	type place struct{ Y, Height, AreaY, AreaHeight int }
	var got []place
	for _, p := range b.Parts {
		got = append(got, place{p.Y, p.Height, p.AreaY, p.AreaHeight})
	}
	want := []place{{75, 25, 75, 25}, {71, 4, 71, 4}, {56, 15, 0, 71}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	many := bar{Parts: []part{{Times: 1000}, {Times: 1}}} // too much for the rest
	many.stack(1001)
	if last := many.Parts[1]; last.Y < 0 || last.Height < 0 || last.AreaHeight <= 0 {
		t.Errorf("the last part is %+v", last)
	}
}

func TestTopOfAScale(t *testing.T) {
	for highest, want := range map[int]int{0: 2, 1: 2, 2: 2, 3: 4, 7: 8, 10: 10, 11: 20, 61: 80, 99: 100, 101: 200, 40_001: 60_000} {
		if got := topOf(highest); got != want || got%2 != 0 {
			t.Errorf("%d: the scale ends at %d, want %d", highest, got, want)
		}
	}
}

// Counts fall into the bar of their time, and into none if they are older; the last bar is now.
func TestChartOfCounts(t *testing.T) {
	now := time.Date(2031, 5, 6, 12, 30, 0, 0, time.UTC)
	count := func(ago time.Duration, o doorward.UsageOutcome, n int64) doorward.UsageCount {
		return doorward.UsageCount{At: now.Truncate(time.Hour).Add(-ago), Outcome: o, Times: n}
	}
	c := chartOf("x", deliverySeries(), []doorward.UsageCount{
		count(0, doorward.UsageDelivered, 3), count(0, doorward.UsageSilent, 1), count(2*time.Hour, doorward.UsageDelivered, 7), count(3*time.Hour, doorward.UsageRefused, 9),
	}, now, time.Hour, 3)
	if len(c.Bars) != 3 || !c.Bars[2].IsNow || c.Bars[0].IsNow || len(c.Bars[1].Parts) != 0 || c.Top != 8 || c.Half() != 4 || c.Bars[0].Parts[0].Times != 7 || len(c.Bars[2].Parts) != 2 {
		t.Errorf("%+v", c)
	}
	if totals := [3]int{c.Series[0].Total, c.Series[1].Total, c.Series[2].Total}; totals != [3]int{10, 0, 1} {
		t.Errorf("totals %v", totals)
	}
	if chartOf("x", useSeries(), nil, now, oneDay, 2).Any() {
		t.Error("an empty chart has something")
	}
}

// A strip shows the shares of each hour.
func TestStrip(t *testing.T) {
	now := time.Date(2031, 5, 6, 12, 30, 0, 0, time.UTC)
	hour := now.Truncate(time.Hour)
	s := stripOf(deliverySeries(), []doorward.UsageCount{{At: hour, Outcome: doorward.UsageDelivered, Times: 30}, {At: hour, Outcome: doorward.UsageRefused, Times: 10}}, now)
	last := s.Bars[len(s.Bars)-1].Parts
	if len(s.Bars) != 24 || s.Width() != 240 || s.X(23) != 230 || last[0].Height != 75 || last[1].Height != 25 {
		t.Errorf("%d bars, %+v", len(s.Bars), last)
	}
}

func TestMeters(t *testing.T) {
	for _, c := range []struct {
		m    meter
		want int
	}{
		{meter{Times: 0, Of: 0}, 0},
		{meter{Times: 0, Of: 0, ShowsOf: true}, 100},
		{meter{Times: 1, Of: 5000}, 1},
		{meter{Times: 4999, Of: 5000}, 99},
		{meter{Times: 5000, Of: 5000}, 100},
		{meter{Times: 7, Of: 5}, 100},
		{meter{Times: 1, Of: 2}, 50},
		{meter{Times: 0, Of: 9}, 0},
	} {
		if got := c.m.Width(); got != c.want {
			t.Errorf("%+v: %d, want %d", c.m, got, c.want)
		}
	}
}

// A webhook of which a third of the attempts fail isn't active, and a few failures among many are no reason.
func TestUnreliableWebhooks(t *testing.T) {
	now := time.Date(2031, 5, 6, 12, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		delivered, refused, silent int64
		want                       string
	}{
		{0, 0, 0, "active"}, {4, 1, 1, "active"}, {6, 2, 1, "unreliable"}, {7, 2, 1, "active"}, {0, 2, 0, "active"}, {0, 3, 0, "unreliable"},
	} {
		count := func(o doorward.UsageOutcome, n int64) doorward.UsageCount {
			return doorward.UsageCount{At: now.Add(-2 * time.Hour).Truncate(time.Hour), Outcome: o, Times: n}
		}
		e := endpoint{doorward.Webhook{Enabled: true}, stripOf(deliverySeries(), []doorward.UsageCount{count(doorward.UsageDelivered, c.delivered), count(doorward.UsageRefused, c.refused), count(doorward.UsageSilent, c.silent)}, now)}
		if got := e.State(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// Each part of the chart of sign-ins has its messages, and leads to its events.
func TestSeriesOfSignIns(t *testing.T) {
	day := time.Date(2031, 5, 6, 0, 0, 0, 0, time.UTC)
	counts := []doorward.UsageCount{{At: day, Outcome: doorward.UsageOutcome(doorward.UserInvite), Times: 100}}
	for i, s := range signInSeries {
		counts = append(counts, doorward.UsageCount{At: day, Outcome: s.counted, Times: int64(i + 1)})
	}
	c := signInChart("/base", counts, day.Add(time.Hour), 1)
	if len(c.Bars[0].Parts) != len(signInSeries) {
		t.Errorf("%d parts", len(c.Bars[0].Parts))
	}
	for i, p := range c.Bars[0].Parts {
		if p.Times != i+1 {
			t.Errorf("%s: %d", p.Key, p.Times)
		}
		for _, key := range []string{p.Key, p.Key + ".one", p.Key + ".other"} {
			if !messageKeys()[key] {
				t.Errorf("no message %q", key)
			}
		}
	}
	if got, want := c.Bars[0].Parts[1].Link, "/base/console/audit?action=session.refuse&from=2031-05-06&outcome=refused&to=2031-05-06"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The overview shows few rows of one kind, and counts the others.
func TestFewOfEachKind(t *testing.T) {
	var rows []attention
	for range 6 {
		rows = append(rows, attention{Kind: "key", Path: "/one", List: "/all"})
	}
	few := fewOf(append(rows, attention{Kind: "lapsed", Path: "/domain"}))
	if len(few) != 5 || few[3].Kind != "more" || few[3].Count != 3 || few[3].Path != "/all" || few[4].Kind != "lapsed" {
		t.Errorf("%+v", few)
	}
}

// Each row that a sample has is in words, in both forms if it has a number.
func TestMessagesOfAttention(t *testing.T) {
	for _, a := range sampledAttention() {
		keys := []string{"attention." + a.Kind, "attention." + a.Kind + ".button"}
		if a.Count > 0 {
			keys = []string{keys[0] + ".one", keys[0] + ".other", keys[1]}
		}
		for _, key := range keys {
			if !messageKeys()[key] {
				t.Errorf("no message %q", key)
			}
		}
	}
}
