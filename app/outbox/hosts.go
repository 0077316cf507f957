package outbox

import (
	"slices"
	"time"
)

// hosts is what tries have shown of hosts: a number that falls with each slow try
// and rises with each quick success. Below zero a host is slow. So one slow answer
// makes a slow host of one that nobody knows, but not of one that has proved good.
type hosts struct {
	known map[string]int
	slow  int
	// took is how long the newest successes took, whatever the host.
	took []time.Duration
	next int
}

const (
	best, worst = 3, -1
	// maxHosts bounds the memory. What is forgotten is taken for good again.
	maxHosts = 20000
)

func (h *hosts) isSlow(host string) bool { return h.known[host] < 0 }

// judge notes a try and reports whether that has made the host slow or good.
func (h *hosts) judge(host string, quick bool) (turned bool) {
	before := h.known[host]
	after := max(before-1, worst)
	if quick {
		after = min(before+1, best)
	}
	h.set(host, after)
	return (before < 0) != (after < 0)
}

func (h *hosts) set(host string, to int) {
	if _, found := h.known[host]; !found && len(h.known) >= maxHosts {
		for some := range h.known {
			h.forget(some)
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

// A try is slow when it takes twice as long as the quickest of the newest successes:
// what all hosts take is the mail server's own doing. The bounds are there because
// strangers choose the hosts.
const (
	slowAtLeast = time.Second
	slowUnknown = 1500 * time.Millisecond
	slowAtMost  = 8 * time.Second
	remembered  = 32
)

func (h *hosts) succeeded(took time.Duration) {
	if len(h.took) < remembered {
		h.took = append(h.took, took)
		return
	}
	h.took[h.next] = took
	h.next = (h.next + 1) % remembered
}

// slowAfter is how long a try takes that is slow.
func (h *hosts) slowAfter() time.Duration {
	if len(h.took) == 0 {
		return slowUnknown
	}
	return min(max(2*slices.Min(h.took), slowAtLeast), slowAtMost)
}
