package outbox

// Values of the booleans urgent, slow and isQuick.
const (
	urgentWork, normalWork = true, false
	slowHost, fastHost     = true, false
	quick                  = true
)

// limits bound the tries that a node runs to hosts of one speed.
type limits struct {
	slots    int // in all
	normal   int // of these, for work that isn't urgent
	perShare int
	perHost  int // tries to the host, whatever its speed was when they began
}

// Mail servers allow a client some 50 connections at once
// (smtpd_client_connection_count_limit of Postfix).
var (
	fastLimits = limits{slots: 24, normal: 16, perShare: 8, perHost: 4}
	slowLimits = limits{slots: 8, normal: 6, perShare: 4, perHost: 1}
)

// For endpoints of customers a share gets more slots than for mail: a tenant may have many,
// and perHost bounds each of them.
var (
	fastEndpoints = limits{slots: 24, normal: 20, perShare: 12, perHost: 4}
	slowEndpoints = limits{slots: 8, normal: 6, perShare: 4, perHost: 1}
)

func (l *limiter) limitsOf(slow bool) limits {
	switch {
	case l.endpoints && slow:
		return slowEndpoints
	case l.endpoints:
		return fastEndpoints
	case slow:
		return slowLimits
	}
	return fastLimits
}

// limiter counts the tries that run.
type limiter struct {
	endpoints bool
	lane      [lanes]int
	share     map[shareSpeed]int
	host      map[string]int
}

// shareSpeed is a share and a speed of hosts.
type shareSpeed struct {
	share string
	slow  bool
}

func newLimiter(endpoints bool) limiter {
	return limiter{endpoints: endpoints, share: map[shareSpeed]int{}, host: map[string]int{}}
}

// add counts a try that begins (n is 1) or has ended (-1).
func (l *limiter) add(t *try, n int) {
	l.lane[laneOf(t.Urgent, t.slow)] += n
	add(l.share, shareSpeed{t.Share, t.slow}, n)
	add(l.host, t.Host, n)
}

func add[K comparable](to map[K]int, key K, n int) {
	if to[key] += n; to[key] == 0 {
		delete(to, key)
	}
}

// running returns how many tries there are to hosts of the speed.
func (l *limiter) running(slow bool) int {
	return l.lane[laneOf(urgentWork, slow)] + l.lane[laneOf(normalWork, slow)]
}

// hasSlot reports whether one more try may begin, of whatever share and host.
func (l *limiter) hasSlot(urgent, slow bool) bool {
	limit := l.limitsOf(slow)
	return l.running(slow) < limit.slots && (urgent || l.lane[laneOf(normalWork, slow)] < limit.normal)
}

func (l *limiter) shareHasSlot(share string, slow bool) bool {
	return l.share[shareSpeed{share, slow}] < l.limitsOf(slow).perShare
}

func (l *limiter) hostHasSlot(host string, slow bool) bool {
	return l.host[host] < l.limitsOf(slow).perHost
}
