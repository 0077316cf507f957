package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/waittest"
)

// memoryQueue is a queue in memory, to test the dispatcher alone. app/mail tests it with
// a database and a mail server.
type memoryQueue struct {
	mu   sync.Mutex
	rows []Job // by due, then by id
	err  error
	// reads has the number of rows that each read found.
	reads    []int
	tried    []string
	fails    int  // how many of the next tries fail because of the database
	onlyOnce bool // a row is found only once
}

func (q *memoryQueue) queue() *Queue[Job] {
	return &Queue[Job]{
		Fetch: q.fetch, Job: func(j Job) Job { return j }, Permanent: func(error) bool { return false },
		Now: time.Now, Wake: make(chan struct{}), Warn: func(error) {},
		Try: func(ctx context.Context, j Job, send Send) error {
			if q.failsNow() {
				return errors.New("gone")
			}
			err := send(ctx, func(context.Context) error { return nil })
			q.mu.Lock()
			defer q.mu.Unlock()
			q.tried = append(q.tried, j.ID)
			if i, found := slices.BinarySearchFunc(q.rows, j, byDue); found {
				copy(q.rows[1:i+1], q.rows[:i]) // removes the row by moving those before it, which are few
				q.rows = q.rows[1:]
			}
			return err
		},
	}
}

func (q *memoryQueue) fetch(_ context.Context, urgent bool, after Job, limit int) (found []Job, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	from, exact := slices.BinarySearchFunc(q.rows, after, byDue)
	if exact {
		from++
	}
	for _, row := range q.rows[from:] {
		if len(found) == limit {
			break
		}
		if row.Urgent || !urgent {
			found = append(found, row)
		}
	}
	q.reads = append(q.reads, len(found))
	if q.onlyOnce && len(found) > 0 {
		q.rows = nil
	}
	return found, q.err
}

// byDue is the order of the rows of a memoryQueue.
func byDue(a, b Job) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID)) }

// TestRaceLongQueueIsReadInPieces: a queue that is longer than one read, and doesn't fit into
// memory, is processed completely, each job once.
func TestRaceLongQueueIsReadInPieces(t *testing.T) {
	mem := &memoryQueue{}
	const all = maxWaiting + 3*batchSize
	for i := range all {
		mem.rows = append(mem.rows, Job{ID: fmt.Sprintf("job_%06d", i), Due: time.Unix(int64(i/100), 0), Host: fmt.Sprint(i % 50)})
	}
	if err := mem.queue().Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(mem.tried)
	if len(slices.Compact(mem.tried)) != all || len(mem.rows) > 0 {
		t.Errorf("%d of %d were tried, %d are left", len(mem.tried), all, len(mem.rows))
	}
	if slices.Max(mem.reads) > batchSize {
		t.Errorf("one read returned %d rows", slices.Max(mem.reads))
	}
}

// TestRaceFailingDatabaseIsLeftAlone: while the database fails it is queried, and the
// error reported, about once a second.
func TestRaceFailingDatabaseIsLeftAlone(t *testing.T) {
	mem := &memoryQueue{err: errors.New("gone")}
	q := mem.queue()
	ctx, stop := context.WithCancel(t.Context())
	warned := 0
	q.Warn = func(err error) {
		if !strings.Contains(err.Error(), "gone") {
			t.Errorf("the error reported is %v", err)
		}
		if warned++; warned == 2 {
			stop()
		}
	}
	began := time.Now()
	q.Run(ctx)
	if took := time.Since(began); took < pollEvery || len(mem.reads) > 4 {
		t.Errorf("in %v there were %d queries", took, len(mem.reads))
	}
}

// TestRaceEndDuringQuery: the end of the server cancels a query of the queue. That is not reported:
// a warning at each restart would look like a fault of the database.
func TestRaceEndDuringQuery(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	q := (&memoryQueue{}).queue()
	q.Fetch = func(ctx context.Context, _ bool, _ Job, _ int) ([]Job, error) {
		stop()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	q.Warn = func(err error) { t.Errorf("a warning: %v", err) }
	q.Run(ctx)
}

// failsNow counts down fails, and reports whether this try fails.
func (q *memoryQueue) failsNow() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fails--
	return q.fails >= 0
}

// TestRaceFailedClaimIsNotForgotten: a job whose claim failed is tried again as soon as
// the database answers, not after a complete read of a long queue.
func TestRaceFailedClaimIsNotForgotten(t *testing.T) {
	mem := &memoryQueue{fails: 2, onlyOnce: true, rows: []Job{{ID: "job_1", Due: time.Unix(1, 0)}}}
	ctx, stop := context.WithTimeout(t.Context(), waittest.Limit)
	q := mem.queue()
	try := q.Try
	q.Try = func(ctx context.Context, j Job, send Send) error {
		err := try(ctx, j, send)
		if err == nil {
			stop()
		}
		return err
	}
	q.Run(ctx)
	if len(mem.tried) != 1 {
		t.Errorf("the jobs tried are %q", mem.tried)
	}
}

// TestRaceEndpoints: endpoints whose last try wasn't quick share eight slots, one each, and a quick
// endpoint doesn't wait for them. One quick answer makes an endpoint fast, and one failure makes it slow.
func TestRaceEndpoints(t *testing.T) {
	mem := &memoryQueue{}
	for i := range 40 {
		mem.rows = append(mem.rows, Job{ID: fmt.Sprintf("job_%02d", i), Due: time.Unix(1, 0), Urgent: true, Share: fmt.Sprint(i % 4), Host: fmt.Sprint("dead", i%20)})
	}
	q, wake := mem.queue(), make(chan struct{}, 1)
	q.Endpoints, q.Wake = true, wake
	addLive := func() { // once the others have all slots that they can get
		mem.mu.Lock()
		mem.rows = append(mem.rows, Job{ID: "job_live", Due: time.Now(), Urgent: true, Share: "0", Host: "live", LastTryWasQuick: true})
		mem.mu.Unlock()
		wake <- struct{}{}
	}
	ctx, stop := context.WithTimeout(t.Context(), waittest.Limit)
	defer stop()
	var mu sync.Mutex
	running, most, served := map[string]int{}, 0, false
	q.Try = func(ctx context.Context, j Job, send Send) error {
		return send(ctx, func(ctx context.Context) error {
			mu.Lock()
			if running[j.Host]++; running[j.Host] > 1 {
				t.Errorf("two tries to %s at once", j.Host)
			}
			all := 0
			for _, n := range running {
				all += n
			}
			most = max(most, all)
			switch {
			case j.Host == "live":
				served = true
				stop()
			case all == 8:
				addLive()
			}
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			running[j.Host]--
			mu.Unlock()
			return ctx.Err()
		})
	}
	q.Run(ctx)
	if !served || most > 9 {
		t.Errorf("the quick endpoint was tried: %v; there were %d tries at once", served, most)
	}
	h := hosts{endpoints: true}
	steps := []bool{h.isSlow(Job{Host: "x"}), h.isSlow(Job{Host: "x", LastTryWasQuick: true})}
	for _, isQuick := range []bool{true, true, false, true} {
		h.score("x", isQuick)
		steps = append(steps, h.isSlow(Job{Host: "x", LastTryWasQuick: !isQuick}))
	}
	if want := []bool{true, false, false, false, true, false}; !slices.Equal(steps, want) {
		t.Errorf("slow by step: %v, want %v", steps, want)
	}
}
