package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/doorward/doorward/internal/lograte"
	"github.com/doorward/doorward/store/lease"
)

// noticeLog writes what the lease reports, one line each. What comes and goes all
// the time has a line in a while, and its end has one if it had. What then stays has
// its line when the while is over.
type noticeLog struct {
	log   *slog.Logger
	limit lograte.Limiter

	mu   sync.Mutex
	open map[lease.NoticeKind]bool // what has begun, and whether it had a line
}

// noticeQuiet is that while.
const noticeQuiet = 10 * time.Second

func newNoticeLog(log *slog.Logger) *noticeLog {
	return &noticeLog{log: log, limit: lograte.Limiter{Quiet: noticeQuiet}, open: map[lease.NoticeKind]bool{}}
}

// levels: what somebody should look at is a warning, and an error when the node
// can't do its work.
var levels = map[lease.NoticeKind]slog.Level{
	lease.DatabaseLost: slog.LevelError, lease.LeaseLost: slog.LevelWarn, lease.NodeGone: slog.LevelWarn,
	lease.ClockWrong: slog.LevelError, lease.ClockOff: slog.LevelWarn, lease.SettingDiffers: slog.LevelWarn,
}

// beginningOf is what an end ends.
var beginningOf = map[lease.NoticeKind]lease.NoticeKind{
	lease.DatabaseBack: lease.DatabaseLost, lease.LeaseRegained: lease.LeaseLost,
}

// ends reports whether the kind has one.
func ends(kind lease.NoticeKind) bool { return kind == lease.DatabaseLost || kind == lease.LeaseLost }

// meanings are for whoever reads the line at night.
var meanings = map[lease.NoticeKind]string{
	lease.DatabaseLost:   "nobody can sign in, and access checks are 503 once the lease is over; see doorward doctor",
	lease.LeaseLost:      "access checks ask the database instead of memory",
	lease.NodeGone:       "it stopped without saying so, or can't reach the database",
	lease.ClockOff:       "none yet; set this machine's clock right, or the database's",
	lease.ClockWrong:     "not ready: nothing is judged by time here, and checks are 503, until this machine's clock and the database's agree",
	lease.SettingDiffers: "set it alike on all nodes; see doorward doctor",
}

func (l *noticeLog) write(n lease.Notice) {
	if leftOut, ok := l.has(n); ok {
		l.line(n, leftOut)
	}
}

func (l *noticeLog) line(n lease.Notice, leftOut int) {
	l.log.LogAttrs(context.Background(), levels[n.Kind], string(n.Kind), says(n, leftOut)...)
}

func says(n lease.Notice, leftOut int) (all []slog.Attr) {
	if d := n.Setting; d.Node != "" {
		all = append(all, slog.String("setting", d.Setting.Name), slog.String("here", d.Setting.Value), slog.String("there", d.Theirs))
	}
	switch n.Kind {
	case lease.ClockOff, lease.ClockWrong, lease.ClockRight:
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
func (l *noticeLog) has(n lease.Notice) (leftOut int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch n.Kind {
	case lease.ClockOff, lease.ClockWrong, lease.ClockRight, lease.SettingDiffers, lease.SettingAgrees:
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
func (l *noticeLog) late(n lease.Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if said, is := l.open[n.Kind]; is && !said {
		l.open[n.Kind] = true
		l.line(n, 0)
	}
}
