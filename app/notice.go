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
// the time has a line in ten seconds, and its end has one if it had.
type noticeLog struct {
	log   *slog.Logger
	limit lograte.Limiter

	mu   sync.Mutex
	open map[store.NoticeKind]bool // began with a line
}

func newNoticeLog(log *slog.Logger) *noticeLog {
	return &noticeLog{log: log, limit: lograte.Limiter{Quiet: 10 * time.Second}, open: map[store.NoticeKind]bool{}}
}

// levels: what somebody should look at is a warning, and an error when the node
// can't do its work.
var levels = map[store.NoticeKind]slog.Level{
	store.DatabaseLost: slog.LevelError, store.LeaseLost: slog.LevelWarn, store.NodeGone: slog.LevelWarn,
}

// beginningOf is what an end ends.
var beginningOf = map[store.NoticeKind]store.NoticeKind{
	store.DatabaseBack: store.DatabaseLost, store.LeaseRegained: store.LeaseLost,
}

// meanings are for whoever reads the line at night.
var meanings = map[store.NoticeKind]string{
	store.DatabaseLost: "nobody can sign in, and access checks are 503 once the lease is over; see doorward doctor",
	store.LeaseLost:    "access checks ask the database instead of memory",
	store.NodeGone:     "it stopped without saying so, or can't reach the database",
}

func (l *noticeLog) write(n store.Notice) {
	leftOut, ok := l.has(n)
	if !ok {
		return
	}
	var says []slog.Attr
	if n.Node != "" {
		says = append(says, slog.String("node", n.Node))
	}
	if n.Lasted > 0 {
		says = append(says, slog.Duration("lasted", n.Lasted))
	}
	if what := meanings[n.Kind]; what != "" {
		says = append(says, slog.String("effect", what))
	}
	if n.Err != nil {
		says = append(says, slog.Any("err", n.Err))
	}
	if leftOut > 0 {
		says = append(says, slog.Int("leftOut", leftOut))
	}
	l.log.LogAttrs(context.Background(), levels[n.Kind], string(n.Kind), says...)
}

// has reports whether a notice has a line.
func (l *noticeLog) has(n store.Notice) (leftOut int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if began, isEnd := beginningOf[n.Kind]; isEnd {
		ok = l.open[began]
		delete(l.open, began)
		return 0, ok
	}
	leftOut, ok = l.limit.Line(string(n.Kind)+" "+n.Node, time.Now())
	l.open[n.Kind] = ok
	return leftOut, ok
}
