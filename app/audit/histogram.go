package audit

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

// Histogram has the events of a period by time.
type Histogram struct {
	Bars []Bar
	// IsCapped: there are more events than were counted, so that the oldest bars are too low.
	IsCapped bool
}

// Bar counts the events from a time to another, which is exclusive.
type Bar struct {
	From, To time.Time
	Count    int
}

// Highest is the count of the highest bar.
func (h Histogram) Highest() (most int) {
	for _, b := range h.Bars {
		most = max(most, b.Count)
	}
	return most
}

// histogramDays is the period of a histogram, back from its end, if the filter has no beginning.
const histogramDays = 30

// barWidths are the widths of bars. The narrowest is taken that needs at most maxBars.
var barWidths = []time.Duration{time.Minute, 5 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour, 364 * 24 * time.Hour}

const maxBars = 72

// Histogram counts the events that the filter selects: the newest doorward.MaxTotal+1 of more than
// doorward.MaxTotal. Its period is that of the filter; an open one ends now, and begins 30 days before its
// end. Errors: validation_failed.
func (t *Trail) Histogram(ctx context.Context, by doorward.Caller, f Filter) (Histogram, error) {
	chosen, err := t.choose(ctx, by, f, t.searchIn(by.TenantID))
	if err != nil {
		return Histogram{}, err
	}
	end, width := periodOf(&chosen.From, chosen.To, t.db.Now())
	counted, err := t.db.Read().EventBars(ctx, by.TenantID, chosen, width, doorward.MaxTotal+1)
	if err != nil {
		return Histogram{}, err
	}
	var h Histogram
	for at := *chosen.From; at.Before(end); at = at.Add(width) {
		to := at.Add(width)
		if chosen.To != nil && to.After(*chosen.To) {
			to = *chosen.To
		}
		h.Bars = append(h.Bars, Bar{From: at, To: to})
	}
	var sum int64
	for _, b := range counted {
		if sum += b.Count; b.N >= 0 && b.N < int64(len(h.Bars)) {
			h.Bars[b.N].Count = int(b.Count)
		}
	}
	h.IsCapped = sum > doorward.MaxTotal
	return h, nil
}

// periodOf sets an open beginning, and returns the end of the period and the width of the bars. The
// last bars only are left of a period that is too long.
func periodOf(from **time.Time, to *time.Time, now time.Time) (end time.Time, width time.Duration) {
	if end = now; to != nil && to.Before(now) {
		end = *to
	}
	start := end.AddDate(0, 0, 1-histogramDays).Truncate(24 * time.Hour)
	if *from != nil {
		start = **from
	}
	for _, width = range barWidths {
		if end.Sub(start) <= maxBars*width {
			break
		}
	}
	if end.Sub(start) > maxBars*width {
		start = end.Add(-maxBars * width)
	}
	*from = &start
	return end, width
}
