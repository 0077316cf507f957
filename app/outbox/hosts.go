package outbox

import (
	"slices"
	"time"
)

// hosts scores hosts by their tries: down for a slow one, up for a quick answer. Below
// zero a host is slow. So one slow answer makes an unknown host slow, but not one that
// has answered quickly before. Of endpoints only the last try counts.
type hosts struct {
	endpoints bool           // the hosts are webhook endpoints of customers, not mail servers
	known     map[string]int // score by host
	slow      int            // how many of the known hosts are slow
	// took has the durations of the newest successes, of all hosts.
	took []time.Duration
	next int // index of the oldest of them, once there are maxSamples
}

const (
	maxScore, minScore = 3, -1
	// maxHosts bounds the memory. A host that is forgotten is unknown again.
	maxHosts = 20000
)

func (h *hosts) isSlow(job Job) bool {
	score, known := h.known[job.Host]
	if h.endpoints && !known {
		return !job.LastTryWasQuick
	}
	return score < 0
}

// score records a try and reports whether that has made the host slow or fast.
func (h *hosts) score(host string, isQuick bool) (changed bool) {
	before, known := h.known[host]
	if h.endpoints {
		after := minScore
		if isQuick {
			after = 1
		}
		h.set(host, after)
		return !known || before != after
	}
	after := max(before-1, minScore)
	if isQuick {
		after = min(before+1, maxScore)
	}
	h.set(host, after)
	return (before < 0) != (after < 0)
}

func (h *hosts) set(host string, to int) {
	if _, found := h.known[host]; !found && len(h.known) >= maxHosts {
		for other := range h.known { // whichever comes first
			h.forget(other)
			break
		}
	}
	h.forget(host)
	if h.known == nil {
		h.known = map[string]int{}
	}
	h.known[host] = to
	if to < 0 {
		h.slow++
	}
}

func (h *hosts) forget(host string) {
	if h.known[host] < 0 {
		h.slow--
	}
	delete(h.known, host)
}

// A try to a mail host is slow when it takes twice as long as the fastest of the newest
// successes: if all hosts are slow, our own mail server is the cause. The threshold has bounds,
// because an attacker may choose the hosts. For endpoints it is minSlowAfter.
const (
	minSlowAfter     = time.Second
	defaultSlowAfter = 1500 * time.Millisecond
	maxSlowAfter     = 8 * time.Second
	maxSamples       = 32
)

func (h *hosts) succeeded(took time.Duration) {
	if len(h.took) < maxSamples {
		h.took = append(h.took, took)
		return
	}
	h.took[h.next] = took
	h.next = (h.next + 1) % maxSamples
}

// slowAfter returns how long a try may take before it counts as slow.
func (h *hosts) slowAfter() time.Duration {
	if h.endpoints {
		return minSlowAfter
	}
	if len(h.took) == 0 {
		return defaultSlowAfter
	}
	return min(max(2*slices.Min(h.took), minSlowAfter), maxSlowAfter)
}
