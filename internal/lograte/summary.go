package lograte

import (
	"sync"
	"time"
)

// Summary allows each cause some lines in an interval, and reports at its end how many others there were: so
// single events keep their lines, and a storm has one line each interval. Set the fields before the first call.
// It may be used by several goroutines.
type Summary struct {
	// Every is the interval; it begins with the first event of a cause.
	Every time.Duration
	// Report is called at the end of an interval in which leftOut events, at least one, had no line.
	Report func(cause string, leftOut int)

	mu     sync.Mutex
	events map[string]int // by cause, in its current interval
}

// otherCauses stands for all further causes, so that callers who make causes up don't use up the memory.
const otherCauses = "other"

// maxSummaries bounds the causes.
const maxSummaries = 64

// Allow reports whether an event of the cause has a line: whether it is one of the first lines in its interval.
func (s *Summary) Allow(cause string, lines int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.events[cause]; !known && len(s.events) >= maxSummaries {
		cause = otherCauses
	}
	if s.events == nil {
		s.events = map[string]int{}
	}
	if s.events[cause] == 0 {
		time.AfterFunc(s.Every, func() { s.end(cause, lines) })
	}
	s.events[cause]++
	return s.events[cause] <= lines
}

func (s *Summary) end(cause string, lines int) {
	s.mu.Lock()
	n := s.events[cause]
	delete(s.events, cause)
	s.mu.Unlock()
	if n > lines {
		s.Report(cause, n-lines)
	}
}
