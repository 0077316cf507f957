package app

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doorward/doorward/internal/logtest"
	"github.com/doorward/doorward/store/lease"
)

// TestRepeatedNotices: repeated notices have one line for the first beginning and one for its
// end. The last line shows the current state.
func TestRepeatedNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var journal logtest.Journal
		l := newNoticeLog(slog.New(slog.NewTextHandler(&journal, nil)))
		wantLines := func(lost, back int, when string) {
			t.Helper()
			if a, b := strings.Count(journal.String(), "database lost"), strings.Count(journal.String(), "database back"); a != lost || b != back {
				t.Errorf("%s: %d times lost and %d times back, want %d and %d:\n%s", when, a, b, lost, back, journal.String())
			}
		}
		for range 10 {
			l.write(lease.Notice{Kind: lease.DatabaseLost})
			l.write(lease.Notice{Kind: lease.DatabaseBack, Lasted: time.Second})
		}
		wantLines(1, 1, "after ten losses in a row")
		time.Sleep(2 * noticeQuiet) // fake time of synctest
		wantLines(1, 1, "later, nothing more")

		l.write(lease.Notice{Kind: lease.DatabaseLost})
		l.write(lease.Notice{Kind: lease.DatabaseBack, Lasted: time.Second})
		l.write(lease.Notice{Kind: lease.DatabaseLost})
		wantLines(2, 2, "lost again at once")
		time.Sleep(2 * noticeQuiet)
		wantLines(3, 2, "lost and not back")
		l.write(lease.Notice{Kind: lease.DatabaseBack, Lasted: time.Minute})
		wantLines(3, 3, "back after that")
	})
}

// TestNoticesOfClockAndSettings: each notice has a line that helps to fix the cause.
func TestNoticesOfClockAndSettings(t *testing.T) {
	var journal logtest.Journal
	l := newNoticeLog(slog.New(slog.NewTextHandler(&journal, nil)))
	for range 3 {
		l.write(lease.Notice{Kind: lease.ClockWrong, Drift: -90 * time.Minute})
		l.write(lease.Notice{Kind: lease.ClockRight, Drift: time.Millisecond})
	}
	d := lease.Difference{Setting: lease.Setting{Name: "tenant-hold", Value: "0s"}, OtherValue: "336h0m0s", Node: "nod_2"}
	l.write(lease.Notice{Kind: lease.SettingDiffers, Node: d.Node, Setting: d})
	for text, times := range map[string]int{
		`level=ERROR msg="clock wrong" ahead=-1h30m0s effect="not ready`: 3, `level=INFO msg="clock right" ahead=1ms`: 3,
		`level=WARN msg="setting differs" setting=tenant-hold here=0s there=336h0m0s node=nod_2`: 1,
	} {
		if got := strings.Count(journal.String(), text); got != times {
			t.Errorf("%d lines have %s, want %d:\n%s", got, text, times, journal.String())
		}
	}
}
