package argon

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// ErrBusy is returned when the queue for hashing is full or the wait was too long.
// Nothing was hashed. Callers answer 503 with Retry-After.
var ErrBusy = errors.New("argon: too many passwords are being hashed already")

// slots is a semaphore whose queue is bounded, timed and strictly first come,
// first served: a caller that needs many slots is never overtaken, so it
// cannot starve.
type slots struct {
	queue int           // callers that may wait
	wait  time.Duration // how long each may wait
	total int           // slots there are
	yield func() bool   // whether one slot is to be left to others

	mu      sync.Mutex
	free    int
	waiting list.List // of *waiter, oldest first
	refused uint64    // times ErrBusy was answered
}

type waiter struct {
	need  int
	ready chan struct{} // closed, under the lock, when the slots are the caller's
}

// take returns nil once the caller has need slots; the caller must then call give.
// Otherwise it returns ErrBusy or the context's error. need must not exceed the
// number of slots there are.
func (s *slots) take(ctx context.Context, need int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	place, err := s.join(need)
	if place == nil {
		return err
	}
	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	select {
	case <-place.Value.(*waiter).ready:
		return nil
	case <-ctx.Done():
		return s.leave(place, ctx.Err())
	case <-timer.C:
		return s.leave(place, ErrBusy)
	}
}

// join takes the slots at once (nil, nil), or a place in the queue, or
// neither (nil, ErrBusy).
func (s *slots) join(need int) (*list.Element, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting.Len() == 0 && s.fits(need) {
		s.free -= need
		return nil, nil
	}
	if s.waiting.Len() >= s.queue {
		s.refused++
		return nil, ErrBusy
	}
	return s.waiting.PushBack(&waiter{need: need, ready: make(chan struct{})}), nil
}

// leave removes a caller from the queue for the reason given. Slots granted at the same
// time are returned, and callers behind it may now fit.
func (s *slots) leave(place *list.Element, reason error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := place.Value.(*waiter)
	select {
	case <-w.ready:
		s.free += w.need
	default:
		s.waiting.Remove(place)
	}
	if errors.Is(reason, ErrBusy) {
		s.refused++
	}
	s.grant()
	return reason
}

// give returns the slots of a successful take.
func (s *slots) give(need int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += need
	s.grant()
}

// grant serves the queue from its head as far as the free slots go. The lock
// must be held.
func (s *slots) grant() {
	for place := s.waiting.Front(); place != nil; place = s.waiting.Front() {
		w := place.Value.(*waiter)
		if !s.fits(w.need) {
			return
		}
		s.free -= w.need
		s.waiting.Remove(place)
		close(w.ready)
	}
}

// fits reports whether work that needs that many slots may begin. If nothing runs it
// always may, so that yielding can't starve it; the queue is checked again when work ends.
// The lock must be held.
func (s *slots) fits(need int) bool {
	if s.free == s.total {
		return true
	}
	if s.yield() {
		need++
	}
	return s.free >= need
}

// count returns the slots free, the callers waiting and the refusals so far.
func (s *slots) count() (free, queued int, refused uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free, s.waiting.Len(), s.refused
}
