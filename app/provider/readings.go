package provider

import (
	"context"
	"sync"

	"github.com/doorward/doorward"
)

// readingOf names what is read.
type readingOf struct {
	conID   string
	pending bool
}

// readings lets callers that need the same reading at the same time share one. The zero value has none.
type readings struct {
	mu      sync.Mutex
	running map[readingOf]*reading
}

type reading struct {
	done    chan struct{}
	changed bool
	err     error
}

// do calls read, or waits for the call that is running. Who has waited is told that something has changed unless it is
// certain that nothing has.
func (r *readings) do(ctx context.Context, of readingOf, read func() (bool, error)) (bool, error) {
	r.mu.Lock()
	running, found := r.running[of]
	if !found {
		running = &reading{done: make(chan struct{})}
		if r.running == nil {
			r.running = map[readingOf]*reading{}
		}
		r.running[of] = running
	}
	r.mu.Unlock()
	if found {
		select {
		case <-running.done:
			return running.changed, running.err
		case <-ctx.Done():
			return false, doorward.Unavailable(ctx.Err())
		}
	}
	defer func() {
		r.mu.Lock()
		delete(r.running, of)
		r.mu.Unlock()
		close(running.done)
	}()
	running.changed, running.err = read()
	return running.changed, running.err
}
