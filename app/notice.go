package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/doorward/doorward/internal/lograte"
	"github.com/doorward/doorward/store"
)

// noticeLog writes what the watch notices, one line each. What comes and goes all
// the time has a line in a while, and its end has one if it had. What then stays has
// its line when the while is over.
type noticeLog struct {
	log   *slog.Logger
	limit lograte.Limiter

	mu   sync.Mutex
	open map[store.NoticeKind]bool // what has begun, and whether it had a line
}

// noticeQuiet is that while.
const noticeQuiet = 10 * time.Second

func newNoticeLog(log *slog.Logger) *noticeLog {
	return &noticeLog{log: log, limit: lograte.Limiter{Quiet: noticeQuiet}, open: map[store.NoticeKind]bool{}}
}

// levels: what somebody should look at is a warning, and an error when the node
// can't do its work.
var levels = map[store.NoticeKind]slog.Level{
	store.DatabaseLost: slog.LevelError, store.LeaseLost: slog.LevelWarn, store.NodeGone: slog.LevelWarn,
	store.ClockWrong: slog.LevelError, store.ClockOff: slog.LevelWarn, store.SettingDiffers: slog.LevelWarn,
}

// beginningOf is what an end ends.
var beginningOf = map[store.NoticeKind]store.NoticeKind{
	store.DatabaseBack: store.DatabaseLost, store.LeaseRegained: store.LeaseLost,
}

// ends reports whether the kind has one.
func ends(kind store.NoticeKind) bool { return kind == store.DatabaseLost || kind == store.LeaseLost }

// meanings are for whoever reads the line at night.
var meanings = map[store.NoticeKind]string{
	store.DatabaseLost:   "nobody can sign in, and access checks are 503 once the lease is over; see doorward doctor",
	store.LeaseLost:      "access checks ask the database instead of memory",
	store.NodeGone:       "it stopped without saying so, or can't reach the database",
	store.ClockOff:       "none yet; set this machine's clock right, or the database's",
	store.ClockWrong:     "not ready: nothing is judged by time here, and checks are 503, until this machine's clock and the database's agree",
	store.SettingDiffers: "set it alike on all nodes; see doorward doctor",
}

func (l *noticeLog) write(n store.Notice) {
	if leftOut, ok := l.has(n); ok {
		l.line(n, leftOut)
	}
}

func (l *noticeLog) line(n store.Notice, leftOut int) {
	l.log.LogAttrs(context.Background(), levels[n.Kind], string(n.Kind), says(n, leftOut)...)
}

func says(n store.Notice, leftOut int) (all []slog.Attr) {
	if d := n.Setting; d.Node != "" {
		all = append(all, slog.String("setting", d.Setting.Name), slog.String("here", d.Setting.Value), slog.String("there", d.Theirs))
	}
	switch n.Kind {
	case store.ClockOff, store.ClockWrong, store.ClockRight:
		all = append(all, slog.String("ahead", n.Drift.Round(time.Millisecond).String()))
	}
	if n.Node != "" {
		all = append(all, slog.String("node", n.Node))
	}
	if n.Lasted > 0 {
		all = append(all, slog.Duration("lasted", n.Lasted))
	}
	if what := meanings[n.Kind]; what != "" {
		all = append(all, slog.String("effect", what))
	}
	if n.Err != nil {
		all = append(all, slog.Any("err", n.Err))
	}
	if leftOut > 0 {
		all = append(all, slog.Int("leftOut", leftOut))
	}
	return all
}

// has reports whether a notice has a line now. A change of settings or of the clock
// always has: it is nothing that comes and goes by itself.
func (l *noticeLog) has(n store.Notice) (leftOut int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch n.Kind {
	case store.ClockOff, store.ClockWrong, store.ClockRight, store.SettingDiffers, store.SettingAgrees:
		return 0, true
	}
	if began, isEnd := beginningOf[n.Kind]; isEnd {
		ok = l.open[began]
		delete(l.open, began)
		return 0, ok
	}
	leftOut, ok = l.limit.Line(string(n.Kind)+" "+n.Node, time.Now())
	if ends(n.Kind) {
		l.open[n.Kind] = ok
		if !ok {
			time.AfterFunc(noticeQuiet, func() { l.late(n) })
		}
	}
	return leftOut, ok
}

// late writes down what had no line when it began, and is so still.
func (l *noticeLog) late(n store.Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if said, is := l.open[n.Kind]; is && !said {
		l.open[n.Kind] = true
		l.line(n, 0)
	}
}
