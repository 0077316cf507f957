// Package lograte limits log lines about repeated events, such as thousands of
// failed checks a second during a database outage. A line for each would fill the
// disk and hide other lines.
//
//	if leftOut, ok := limiter.Allow(err.Error(), time.Now()); ok {
//		log.Error("request failed", "err", err, "leftOut", leftOut)
//	}
package lograte

import (
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"
)

// Limiter allows each cause one line per interval, and a limited number of causes.
// The zero value allows one a second. It may be used by several goroutines.
type Limiter struct {
	// Quiet is the least time between two lines of a cause; 0 is a second.
	Quiet time.Duration

	mu      sync.Mutex
	lines   map[string]time.Time // by cause: when it had a line
	leftOut int                  // since the last line of any cause
}

// maxCauses bounds the memory, and the lines per interval.
const maxCauses = 8

// Allow reports whether to log an event of a cause at a time, and how many were left
// out since the previous line. Digits in the cause are ignored.
func (l *Limiter) Allow(cause string, now time.Time) (leftOut int, ok bool) {
	cause = strings.Map(withoutDigits, cause)
	quiet := l.Quiet
	if quiet == 0 {
		quiet = time.Second
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.lines, func(_ string, at time.Time) bool { return now.Sub(at) >= quiet })
	if _, isQuiet := l.lines[cause]; isQuiet || len(l.lines) >= maxCauses {
		l.leftOut++
		return 0, false
	}
	if l.lines == nil {
		l.lines = map[string]time.Time{}
	}
	l.lines[cause] = now
	leftOut, l.leftOut = l.leftOut, 0
	return leftOut, true
}

// Warnings returns a function that logs the errors of retried work under one message: a
// line a minute for each cause, so that a long outage doesn't flood the log.
func Warnings(log *slog.Logger, msg string) func(error) {
	limit := &Limiter{Quiet: time.Minute}
	return func(err error) {
		if leftOut, ok := limit.Allow(err.Error(), time.Now()); ok {
			log.Warn(msg, "err", err, "leftOut", leftOut)
		}
	}
}

// withoutDigits gives errors that differ only in a port the same cause.
func withoutDigits(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}
