package outbox

// waiting is work that is due and has not been started, in the order in which it
// will be: urgent work first, shares by turns, and in a share its hosts by turns.
type waiting[T any] struct {
	lanes [lanes]lane[T] // by laneOf
	ids   map[string]struct{}
	of    map[string]int // how much of each share
}

// lane is the shares that have work of one urgency to hosts that are slow, or are not.
type lane[T any] struct {
	shares ring[*share[T]]
	byName map[string]*share[T]
}

type share[T any] struct {
	name   string
	lines  ring[*line[T]]
	byHost map[string]*line[T]
}

// line is the work of one share to one host, the longest waiting first.
type line[T any] struct {
	host string
	work []entry[T]
}

type entry[T any] struct {
	id   string
	work T
}

func newWaiting[T any]() *waiting[T] {
	w := &waiting[T]{ids: map[string]struct{}{}, of: map[string]int{}}
	for i := range w.lanes {
		w.lanes[i].byName = map[string]*share[T]{}
	}
	return w
}

// lanes is how many there are: for urgent work or other, to slow hosts or others.
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

// maxWaiting bounds how much work is kept in memory: so much of a single share, half
// of it of each of two, and so on. minOfShare is kept of each, however many.
const (
	maxWaiting = 10000
	minOfShare = 8
)

// add keeps work unless it is there already, and reports whether it was kept or known.
// It isn't when its share has all the memory that is fair.
func (w *waiting[T]) add(work T, job Job, slow bool) (kept bool) {
	if _, known := w.ids[job.ID]; known {
		return true
	}
	others := len(w.of)
	if w.of[job.Share] == 0 {
		others++
	}
	if w.of[job.Share] >= max(minOfShare, maxWaiting/others) {
		return false
	}
	w.ids[job.ID] = struct{}{}
	w.of[job.Share]++
	w.lanes[laneOf(job.Urgent, slow)].line(job.Share, job.Host).push(entry[T]{job.ID, work})
	return true
}

func (w *waiting[T]) len() int { return len(w.ids) }

// take takes the next work of a lane out. May says for a share which hosts it may go
// to, nil for none.
func (w *waiting[T]) take(lane int, may func(share string) func(host string) bool) (work T, found bool) {
	name, e, found := w.lanes[lane].take(may)
	if found {
		delete(w.ids, e.id)
		add(w.of, name, -1)
	}
	return e.work, found
}

// shares calls fn with each share of a lane that has work to a host that may be tried.
func (w *waiting[T]) shares(lane int, may func(host string) bool, fn func(share string)) {
	for _, s := range w.lanes[lane].shares.all {
		if s.has(may) {
			fn(s.name)
		}
	}
}

// move puts the work to a host where it belongs, now that the host is slow or is not
// any more.
func (w *waiting[T]) move(host string, slow bool) {
	for _, urgent := range []bool{true, false} {
		from, to := &w.lanes[laneOf(urgent, !slow)], &w.lanes[laneOf(urgent, slow)]
		for _, s := range append([]*share[T](nil), from.shares.all...) {
			if l := s.byHost[host]; l != nil {
				to.line(s.name, host).push(l.work...)
				s.drop(l)
				from.dropEmpty(s)
			}
		}
	}
}

func (l *lane[T]) line(name, host string) *line[T] {
	s := l.byName[name]
	if s == nil {
		s = &share[T]{name: name, byHost: map[string]*line[T]{}}
		l.byName[name] = s
		l.shares.add(s)
	}
	at := s.byHost[host]
	if at == nil {
		at = &line[T]{host: host}
		s.byHost[host] = at
		s.lines.add(at)
	}
	return at
}

func (l *line[T]) push(work ...entry[T]) { l.work = append(l.work, work...) }

func (l *lane[T]) take(may func(share string) func(host string) bool) (name string, e entry[T], found bool) {
	var s *share[T]
	var from *line[T]
	l.shares.next(func(candidate *share[T]) bool {
		if hosts := may(candidate.name); hosts != nil {
			s = candidate
			from, found = s.lines.next(func(at *line[T]) bool { return hosts(at.host) })
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

func (s *share[T]) has(may func(host string) bool) bool {
	for _, l := range s.lines.all {
		if may(l.host) {
			return true
		}
	}
	return false
}

func (s *share[T]) drop(l *line[T]) {
	delete(s.byHost, l.host)
	s.lines.remove(l)
}

func (l *lane[T]) dropEmpty(s *share[T]) {
	if len(s.lines.all) == 0 {
		delete(l.byName, s.name)
		l.shares.remove(s)
	}
}

// ring is what takes turns.
type ring[E comparable] struct {
	all  []E
	turn int // whose it is next
}

func (r *ring[E]) add(e E) { r.all = append(r.all, e) }

// next returns the first from the turn on that fits, and gives the turn to the one
// behind it.
func (r *ring[E]) next(fits func(E) bool) (e E, found bool) {
	for i := range r.all {
		at := (r.turn + i) % len(r.all)
		if fits(r.all[at]) {
			r.turn = (at + 1) % len(r.all)
			return r.all[at], true
		}
	}
	return e, false
}

func (r *ring[E]) remove(e E) {
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
