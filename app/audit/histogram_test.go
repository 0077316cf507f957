package audit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/store"
)

// A histogram counts exactly the events that the list of the same filter has, in bars that leave no
// gap, whatever condition the search is driven by.
func TestHistogram(t *testing.T) {
	onBoth(t, func(r *fixture) {
		begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		_, err := r.db.Write(r.Context(), func(tx *store.Tx) error {
			for n := range 40 {
				e := event("tnt_a", n)
				e.At = begin.Add(time.Duration(n) * 90 * time.Minute)
				if n%4 == 0 {
					e.Outcome, e.Action, e.ActorID, e.ActorEmail = doorward.Refused, doorward.UserInvite, "usr_ben", ""
				}
				tx.InsertPastEvent(e)
			}
			other := event("tnt_b", 99)
			other.At = begin
			tx.InsertPastEvent(other)
			return nil
		})
		r.noError(err)
		by := doorward.Caller{Principal: doorward.Principal{TenantID: "tnt_a"}}
		day := func(n int) string { return begin.AddDate(0, 0, n).Format(time.RFC3339) }
		for name, f := range map[string]audit.Filter{
			"period": {}, "outcome": {Outcome: "refused"}, "action": {Action: "user.invite"}, "actor": {Actor: "usr_ben"},
			"address": {Actor: "ann@acme.example"}, "target": {Target: "usr_0008"}, "request": {Request: "req_0009"},
		} {
			f.From, f.To = day(0), day(2)
			found, err := r.List(r.Context(), by, f, doorward.Window{Limit: 100})
			r.noError(err)
			h, err := r.Histogram(r.Context(), by, f)
			r.noError(err)
			if len(found.Items) == 0 || len(h.Bars) != 48 || h.IsCapped {
				r.Errorf("%s: %d events, %d bars, capped: %v", name, len(found.Items), len(h.Bars), h.IsCapped)
			}
			for i, bar := range h.Bars {
				want := 0
				for _, e := range found.Items {
					if !e.At.Before(bar.From) && e.At.Before(bar.To) {
						want++
					}
				}
				if bar.Count != want || !bar.From.Equal(begin.Add(time.Duration(i)*time.Hour)) {
					r.Errorf("%s: bar %d from %s: %d events, want %d", name, i, bar.From, bar.Count, want)
				}
			}
		}
	})
}

// The period of a histogram is that of the filter; the bars are as narrow as fits.
func TestHistogramPeriods(t *testing.T) {
	onSQLite(t, func(r *fixture) {
		by := doorward.Caller{Principal: doorward.Principal{TenantID: "tnt_a"}}
		for _, c := range []struct {
			from, to string
			bars     int
			width    time.Duration
		}{
			{"", "", 30, 24 * time.Hour},
			{"", "2020-03-31T00:00:00Z", 29, 24 * time.Hour},
			{"2020-03-01T10:30:00Z", "2020-03-01T11:00:00Z", 30, time.Minute},
			{"2020-03-01T00:00:00Z", "2020-03-02T00:00:00Z", 24, time.Hour},
			{"2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z", 53, 7 * 24 * time.Hour},
			{"0001-01-01T00:00:00Z", "2021-01-01T00:00:00Z", 72, 364 * 24 * time.Hour},
			{"2999-01-01T00:00:00Z", "", 0, 0},
		} {
			h, err := r.Histogram(r.Context(), by, audit.Filter{From: c.from, To: c.to})
			r.noError(err)
			if end, err := time.Parse(time.RFC3339, c.to); err == nil && h.Bars[len(h.Bars)-1].To.After(end) {
				r.Errorf("%s to %s: the last bar is beyond the period: %s", c.from, c.to, h.Bars[len(h.Bars)-1].To)
			}
			if len(h.Bars) != c.bars || c.bars > 0 && h.Bars[0].To.Sub(h.Bars[0].From) != c.width {
				r.Errorf("%s to %s: %s", c.from, c.to, fmt.Sprint(len(h.Bars), h.Bars))
			}
		}
		if _, err := r.Histogram(r.Context(), by, audit.Filter{From: "then"}); !doorward.HasCode(err, doorward.CodeValidationFailed) {
			r.Error(err)
		}
	})
}

// A histogram says that there are more events than it counts only if there are more than
// doorward.MaxTotal, which is counted exactly.
func TestHistogramOfManyEvents(t *testing.T) {
	onSQLite(t, func(r *fixture) {
		begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		by := doorward.Caller{Principal: doorward.Principal{TenantID: "tnt_a"}}
		write := func(from, to int) {
			_, err := r.db.Write(r.Context(), func(tx *store.Tx) error {
				for n := from; n < to; n++ {
					e := event("tnt_a", n)
					e.At = begin.Add(time.Duration(n) * time.Second)
					tx.InsertPastEvent(e)
				}
				return nil
			})
			r.noError(err)
		}
		for _, c := range []struct {
			from, to int
			isCapped bool
		}{{0, doorward.MaxTotal, false}, {doorward.MaxTotal, doorward.MaxTotal + 1, true}} {
			write(c.from, c.to)
			h, err := r.Histogram(r.Context(), by, audit.Filter{From: begin.Format(time.RFC3339), To: begin.AddDate(0, 0, 1).Format(time.RFC3339)})
			r.noError(err)
			counted := 0
			for _, b := range h.Bars {
				counted += b.Count
			}
			if h.IsCapped != c.isCapped || counted != c.to {
				r.Errorf("of %d events %d are counted, capped: %v", c.to, counted, h.IsCapped)
			}
		}
	})
}
