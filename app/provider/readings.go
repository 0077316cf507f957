package provider

import (
	"context"
	"sync"

	"github.com/doorward/doorward"
)

// readingOf names what is read, and for whose signature.
type readingOf struct {
	conID   string
	pending bool
	signer  string
}

// readings lets callers that need the same reading at the same time share one. The zero value has none.
type readings struct {
	mu      sync.Mutex
	running map[readingOf]*reading
}

type reading struct {
	done    chan struct{}
	isLeft  bool // by the caller that waited or read: what it has come to says nothing
	changed bool
	err     error
}

// do calls read, or waits for the call that is running; if the caller of that goes away, another one calls read. Who has
// waited is told that something has changed unless it is certain that nothing has.
func (r *readings) do(ctx context.Context, of readingOf, read func() (bool, error)) (bool, error) {
	for {
		running, isMine := r.join(of)
		if isMine {
			defer r.leave(of, running)
			running.changed, running.err = read()
			running.isLeft = ctx.Err() != nil
			return running.changed, running.err
		}
		select {
		case <-running.done:
			if !running.isLeft {
				return running.changed, running.err
			}
		case <-ctx.Done():
			return false, doorward.Unavailable(ctx.Err())
		}
	}
}

// join returns the call that is running, or begins one, which is the caller's then.
func (r *readings) join(of readingOf) (running *reading, isMine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if running, found := r.running[of]; found {
		return running, false
	}
	if r.running == nil {
		r.running = map[readingOf]*reading{}
	}
	running = &reading{done: make(chan struct{})}
	r.running[of] = running
	return running, true
}

func (r *readings) leave(of readingOf, running *reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, of)
	close(running.done)
}
