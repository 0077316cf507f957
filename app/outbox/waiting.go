package outbox

// waiting is work that is due and not yet started, in the order in which it will start:
// urgent work first, shares in turn, and in a share its hosts in turn.
type waiting[T any] struct {
	lanes    [lanes]lane[T] // by laneOf
	ids      map[string]struct{}
	perShare map[string]int // how much work of each share
}

// lane is the work of one urgency for hosts of one speed, by share.
type lane[T any] struct {
	shares roundRobin[*share[T]]
	byName map[string]*share[T]
}

// share is the work of one owner in a lane, by host.
type share[T any] struct {
	name   string
	hosts  roundRobin[*hostQueue[T]]
	byHost map[string]*hostQueue[T]
}

// hostQueue is the work of one share for one host, first in, first out.
type hostQueue[T any] struct {
	host string
	work []entry[T]
}

type entry[T any] struct {
	id   string
	work T
}

func newWaiting[T any]() *waiting[T] {
	w := &waiting[T]{ids: map[string]struct{}{}, perShare: map[string]int{}}
	for i := range w.lanes {
		w.lanes[i].byName = map[string]*share[T]{}
	}
	return w
}

// lanes is how many there are: urgent or normal work, fast or slow hosts.
const lanes = 4

func laneOf(urgent, slow bool) int {
	n := 0
	if !urgent {
		n = 1
	}
	if slow {
		n += 2
	}
	return n
}

// maxWaiting bounds how much work is in memory, divided equally between the
// shares. Each share may keep minOfShare, however many there are.
const (
	maxWaiting = 10000
	minOfShare = 8
)

// add adds work, unless it is known already. It returns false if the share has used up its part
// of the memory.
func (w *waiting[T]) add(work T, job Job, slow bool) (ok bool) {
	if _, known := w.ids[job.ID]; known {
		return true
	}
	others := len(w.perShare)
	if w.perShare[job.Share] == 0 {
		others++
	}
	if w.perShare[job.Share] >= max(minOfShare, maxWaiting/others) {
		return false
	}
	w.ids[job.ID] = struct{}{}
	w.perShare[job.Share]++
	w.lanes[laneOf(job.Urgent, slow)].queue(job.Share, job.Host).push(entry[T]{job.ID, work})
	return true
}

func (w *waiting[T]) len() int { return len(w.ids) }

// take removes the next work of a lane and returns it. slotsOf returns a function that reports
// whether a host has a slot for the share; nil: the share itself has none.
func (w *waiting[T]) take(lane int, slotsOf func(share string) func(host string) bool) (work T, found bool) {
	name, e, found := w.lanes[lane].take(slotsOf)
	if found {
		delete(w.ids, e.id)
		add(w.perShare, name, -1)
	}
	return e.work, found
}

// eachShare calls fn with each share of a lane that has work for a host with a slot.
func (w *waiting[T]) eachShare(lane int, hasSlot func(host string) bool, fn func(share string)) {
	for _, s := range w.lanes[lane].shares.all {
		if s.hasWorkFor(hasSlot) {
			fn(s.name)
		}
	}
}

// move moves the work for a host to the lanes of the host's new speed.
func (w *waiting[T]) move(host string, slow bool) {
	for _, urgent := range []bool{urgentWork, normalWork} {
		from, to := &w.lanes[laneOf(urgent, !slow)], &w.lanes[laneOf(urgent, slow)]
		for _, s := range append([]*share[T](nil), from.shares.all...) {
			if q := s.byHost[host]; q != nil {
				to.queue(s.name, host).push(q.work...)
				s.drop(q)
				from.dropEmpty(s)
			}
		}
	}
}

func (l *lane[T]) queue(name, host string) *hostQueue[T] {
	s := l.byName[name]
	if s == nil {
		s = &share[T]{name: name, byHost: map[string]*hostQueue[T]{}}
		l.byName[name] = s
		l.shares.add(s)
	}
	q := s.byHost[host]
	if q == nil {
		q = &hostQueue[T]{host: host}
		s.byHost[host] = q
		s.hosts.add(q)
	}
	return q
}

func (q *hostQueue[T]) push(work ...entry[T]) { q.work = append(q.work, work...) }

func (l *lane[T]) take(slotsOf func(share string) func(host string) bool) (name string, e entry[T], found bool) {
	var s *share[T]
	var from *hostQueue[T]
	l.shares.next(func(candidate *share[T]) bool {
		if hasSlot := slotsOf(candidate.name); hasSlot != nil {
			s = candidate
			from, found = s.hosts.next(func(q *hostQueue[T]) bool { return hasSlot(q.host) })
		}
		return found
	})
	if !found {
		return "", e, false
	}
	e, from.work = from.work[0], from.work[1:]
	if len(from.work) == 0 {
		s.drop(from)
		l.dropEmpty(s)
	}
	return s.name, e, true
}

func (s *share[T]) hasWorkFor(isWanted func(host string) bool) bool {
	for _, q := range s.hosts.all {
		if isWanted(q.host) {
			return true
		}
	}
	return false
}

func (s *share[T]) drop(q *hostQueue[T]) {
	delete(s.byHost, q.host)
	s.hosts.remove(q)
}

func (l *lane[T]) dropEmpty(s *share[T]) {
	if len(s.hosts.all) == 0 {
		delete(l.byName, s.name)
		l.shares.remove(s)
	}
}

// roundRobin has elements that take turns.
type roundRobin[E comparable] struct {
	all  []E
	turn int // index of the next
}

func (r *roundRobin[E]) add(e E) { r.all = append(r.all, e) }

// next returns the first element that fits, starting with the one whose turn it is. The one
// after it is then next.
func (r *roundRobin[E]) next(fits func(E) bool) (e E, found bool) {
	for i := range r.all {
		at := (r.turn + i) % len(r.all)
		if fits(r.all[at]) {
			r.turn = (at + 1) % len(r.all)
			return r.all[at], true
		}
	}
	return e, false
}

func (r *roundRobin[E]) remove(e E) {
	for i, other := range r.all {
		if other != e {
			continue
		}
		r.all = append(r.all[:i], r.all[i+1:]...)
		if i < r.turn {
			r.turn--
		}
		if r.turn >= len(r.all) {
			r.turn = 0
		}
		return
	}
}
