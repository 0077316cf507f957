package attempt

import (
	"sync"
	"time"
)

// straysWindow is the time between two entries in the protocol of a connection.
const straysWindow = time.Minute

// Strays counts what anybody can send to a connection, such as callbacks without a cookie of it, in the memory of a
// node: the protocol has one entry a minute for all of them. The zero value has counted nothing.
type Strays struct {
	mu    sync.Mutex
	since map[string]time.Time // when the last entry was made, by connection
	more  map[string]int       // since then
}

// Take counts one. It returns how many the entry to make now stands for; 0: none is due.
func (s *Strays) Take(conID string, now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == nil {
		s.since, s.more = map[string]time.Time{}, map[string]int{}
	}
	s.more[conID]++
	if age := now.Sub(s.since[conID]); age >= 0 && age < straysWindow {
		return 0
	}
	return s.due(conID, now)
}

// due takes what was counted for a connection.
func (s *Strays) due(conID string, now time.Time) (n int) {
	n = s.more[conID]
	s.since[conID] = now
	delete(s.more, conID)
	return n
}

// Overdue takes what was counted more than a minute ago, by connection.
func (s *Strays) Overdue(now time.Time) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]int{}
	for conID, since := range s.since {
		if age := now.Sub(since); age >= 0 && age < straysWindow {
			continue
		}
		if s.more[conID] > 0 {
			all[conID] = s.due(conID, now)
		} else {
			delete(s.since, conID)
		}
	}
	return all
}
