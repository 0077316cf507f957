package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/doorward/doorward/internal/lograte"
	"github.com/doorward/doorward/store/lease"
)

// noticeLog logs the notices of the lease. Of notices of one kind about one node, it logs one in
// noticeQuiet; those about settings and the clock it always logs. It logs the end of a condition
// only if it logged the beginning. A condition whose beginning was left out is logged after
// noticeQuiet if it persists.
type noticeLog struct {
	log   *slog.Logger
	limit lograte.Limiter

	mu   sync.Mutex
	open map[lease.NoticeKind]bool // conditions that have begun, and whether that was logged
}

// noticeQuiet is the minimum time between two lines of one kind about one node.
const noticeQuiet = 10 * time.Second

func newNoticeLog(log *slog.Logger) *noticeLog {
	return &noticeLog{log: log, limit: lograte.Limiter{Quiet: noticeQuiet}, open: map[lease.NoticeKind]bool{}}
}

// levels has the levels of notices, INFO for all others. A warning needs attention; an error means
// that the node can't work.
var levels = map[lease.NoticeKind]slog.Level{
	lease.DatabaseLost: slog.LevelError, lease.LeaseLost: slog.LevelWarn, lease.NodeGone: slog.LevelWarn,
	lease.ClockWrong: slog.LevelError, lease.ClockOff: slog.LevelWarn, lease.SettingDiffers: slog.LevelWarn,
}

// beginningOf maps the end of a condition to its beginning.
var beginningOf = map[lease.NoticeKind]lease.NoticeKind{
	lease.DatabaseBack: lease.DatabaseLost, lease.LeaseRegained: lease.LeaseLost,
}

// hasEnd reports whether a notice of another kind ends the condition.
func hasEnd(kind lease.NoticeKind) bool { return kind == lease.DatabaseLost || kind == lease.LeaseLost }

// effects explain a notice to the operator who reads the log.
var effects = map[lease.NoticeKind]string{
	lease.DatabaseLost:   "nobody can sign in, and access checks are 503 once the lease is over; see doorward doctor",
	lease.LeaseLost:      "access checks ask the database instead of memory",
	lease.NodeGone:       "it was killed, or can't reach the database",
	lease.ClockOff:       "none yet; set this machine's clock right, or the database's",
	lease.ClockWrong:     "not ready: expiry can't be determined and checks are 503 until this machine's clock and the database's agree",
	lease.SettingDiffers: "set it alike on all nodes; see doorward doctor",
}

func (l *noticeLog) write(n lease.Notice) {
	if leftOut, ok := l.admit(n); ok {
		l.writeLine(n, leftOut)
	}
}

func (l *noticeLog) writeLine(n lease.Notice, leftOut int) {
	l.log.LogAttrs(context.Background(), levels[n.Kind], string(n.Kind), attributes(n, leftOut)...)
}

func attributes(n lease.Notice, leftOut int) (all []slog.Attr) {
	if d := n.Setting; d.Node != "" {
		all = append(all, slog.String("setting", d.Setting.Name), slog.String("here", d.Setting.Value), slog.String("there", d.OtherValue))
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
	if effect := effects[n.Kind]; effect != "" {
		all = append(all, slog.String("effect", effect))
	}
	if n.Err != nil {
		all = append(all, slog.Any("err", n.Err))
	}
	if leftOut > 0 {
		all = append(all, slog.Int("leftOut", leftOut))
	}
	return all
}

// admit reports whether to log a notice now, and how many like it were left out before.
// Changes of settings and of the clock are always logged: they don't repeat by themselves.
func (l *noticeLog) admit(n lease.Notice) (leftOut int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch n.Kind {
	case lease.ClockOff, lease.ClockWrong, lease.ClockRight, lease.SettingDiffers, lease.SettingAgrees:
		return 0, true
	}
	if beginning, isEnd := beginningOf[n.Kind]; isEnd {
		ok = l.open[beginning]
		delete(l.open, beginning)
		return 0, ok
	}
	leftOut, ok = l.limit.Allow(string(n.Kind)+" "+n.Node, time.Now())
	if hasEnd(n.Kind) {
		l.open[n.Kind] = ok
		if !ok {
			time.AfterFunc(noticeQuiet, func() { l.logIfOpen(n) })
		}
	}
	return leftOut, ok
}

// logIfOpen logs a condition whose beginning was not logged, if it still persists.
func (l *noticeLog) logIfOpen(n lease.Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if logged, open := l.open[n.Kind]; open && !logged {
		l.open[n.Kind] = true
		l.writeLine(n, 0)
	}
}
