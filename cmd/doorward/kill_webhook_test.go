package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/pgtest"
)

// The server is killed while people are invited and an endpoint gets the events: between
// the commit and the sending, and between the sending and its record. Every event that is
// in the trail arrives, a repetition has the same id, and nothing else arrives.

func TestKilledWithWebhooksOnSQLite(t *testing.T) { killWithWebhooks(t, "sqlite:doorward.db") }

func TestKilledWithWebhooksOnPostgres(t *testing.T) { killWithWebhooks(t, pgtest.DSN(t)) }

func killWithWebhooks(t *testing.T, dsn string) {
	if testing.Short() {
		t.Skip("TestKilledOnSQLite kills the server, too")
	}
	t.Parallel()
	rounds := fulltest.Of(2, 15)
	s, endpoint := newTestServer(t, program, dsn), newHookReceiver(t)
	var unanswered map[string]bool
	var events []string
	repeated := 0
	s.runKillTest(killTest{
		rounds: rounds + 1,
		flags:  s.masterKeyFlag(),
		started: func(round int) {
			if round == 0 {
				s.createWebhook(endpoint)
			}
		},
		load: func(round int) {
			if round == rounds {
				unanswered = s.killWhileHeld(endpoint)
				return
			}
			s.killUnder(atOnce, 100*time.Millisecond, func(_ context.Context, name string) bool { return s.invite(name + "@x.example") })
		},
		check: func() {
			s.waitUntil("all are delivered", func() bool { return s.count(`SELECT count(*) FROM webhook_deliveries WHERE state = 'pending'`) == 0 })
			events = s.ids(`SELECT id FROM events WHERE action = 'user.invite' AND outcome = 'done' AND id IN (SELECT event_id FROM webhook_deliveries)`)
			if n := s.count(`SELECT count(*) FROM invitations WHERE role = 'USER'`); n != len(events) {
				t.Errorf("there are %d invitations and %d events with a delivery", n, len(events))
			}
			repeated = endpoint.checkAgainst(t, events)
			for id := range unanswered {
				if endpoint.timesReceived(id) < 2 {
					t.Errorf("%s was not answered when the server died, and was not sent again", id)
				}
			}
		},
	})
	t.Logf("%d kills: %d events, all delivered, %d of them more than once; %d were waiting for their answer at a kill", rounds+1, len(events), repeated, len(unanswered))
}

// TestWebhooksOfThreeNodes: three nodes share the deliveries, and two take over what a third
// was sending when it was killed. That takes as long as a claim, half a minute.
func TestWebhooksOfThreeNodes(t *testing.T) {
	fulltest.Only(t, "app/webhook has TestRaceNodesShare and TestRaceTakenOver")
	t.Parallel()
	s, endpoint := newTestServer(t, program, pgtest.DSN(t)), newHookReceiver(t)
	key := s.masterKeyFlag()
	nodes := []*testServer{s}
	for range 2 {
		other := *s
		other.addr = freeport.AddressOn("localhost")
		nodes = append(nodes, &other)
	}
	for _, n := range nodes {
		n.start(key...)
	}
	s.createWebhook(endpoint)
	endpoint.pause.Store(int64(100 * time.Millisecond))
	for n := range 200 {
		s.mustInvite(fmt.Sprintf("shared%d@x.example", n))
	}
	s.waitUntil("all are delivered", func() bool { return s.count(`SELECT count(*) FROM webhook_deliveries WHERE state = 'pending'`) == 0 })
	for i, n := range nodes {
		if n.deliveredCount() == 0 {
			t.Errorf("node %d has delivered nothing", i)
		}
	}
	unanswered := s.killWhileHeld(endpoint)
	began := time.Now()
	s.waitWithin(3*waitTimeout, "the others have taken over", func() bool { return s.count(`SELECT count(*) FROM webhook_deliveries WHERE state = 'pending'`) == 0 })
	events := s.ids(`SELECT event_id FROM webhook_deliveries`)
	repeated := endpoint.checkAgainst(t, events)
	t.Logf("%d events; after a kill with %d unanswered the other nodes had delivered all after %v; %d were sent again", len(events), len(unanswered), time.Since(began).Round(time.Second), repeated)
}

// hookReceiver is an endpoint that counts the messages by id.
type hookReceiver struct {
	*httptest.Server
	mu       sync.Mutex
	received map[string]int
	holding  chan struct{}   // nil: it answers
	held     map[string]bool // ids of messages whose answers were kept back
	pause    atomic.Int64    // before each answer, in nanoseconds
}

func newHookReceiver(t *testing.T) *hookReceiver {
	r := &hookReceiver{received: map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		id := req.Header.Get("Webhook-Id")
		r.mu.Lock()
		r.received[id]++
		wait := r.holding
		if wait != nil {
			r.held[id] = true
		}
		r.mu.Unlock()
		if wait != nil {
			<-wait
		}
		if pause := r.pause.Load(); pause > 0 {
			<-time.After(time.Duration(pause))
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(r.Close)
	return r
}

// hold keeps back all answers until release, which returns the ids that were held.
func (r *hookReceiver) hold() (release func() map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holding, r.held = make(chan struct{}), map[string]bool{}
	return func() map[string]bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		close(r.holding)
		r.holding = nil
		return r.held
	}
}

func (r *hookReceiver) heldCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held)
}

func (r *hookReceiver) timesReceived(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.received[id]
}

// checkAgainst checks that exactly the events were received, and returns how many of them
// more than once.
func (r *hookReceiver) checkAgainst(t *testing.T, events []string) (repeated int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range events {
		switch n := r.received[id]; {
		case n == 0:
			t.Errorf("%s was lost", id)
		case n > 1:
			repeated++
		}
	}
	if len(r.received) != len(events) {
		t.Errorf("%d ids were received, of %d events", len(r.received), len(events))
	}
	return repeated
}

// masterKeyFlag returns the flag that names a new master key; none with SQLite, where the
// server makes one.
func (s *testServer) masterKeyFlag() []string {
	s.Helper()
	if strings.HasPrefix(s.dsn, "sqlite:") {
		return nil
	}
	file := filepath.Join(s.dir, "webhooks.key")
	if out, err := exec.Command(s.program, "key", "create-master", file).CombinedOutput(); err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
	return []string{"--master-key-file=" + file}
}

// createWebhook makes a webhook that gets the events of invitations, and sends a test to it, so
// that the endpoint no longer counts as new.
func (s *testServer) createWebhook(endpoint *hookReceiver) {
	s.Helper()
	status, answer, err := s.ask(s.owner, http.MethodPost, "/api/v2/webhooks", map[string]any{"url": endpoint.URL, "events": []string{"user.invite"}})
	if err != nil || status != http.StatusCreated {
		s.Fatalf("%d %s %v", status, answer, err)
	}
	var created struct{ Webhook struct{ ID string } }
	if err := json.Unmarshal(answer, &created); err != nil {
		s.Fatal(err)
	}
	status, answer, err = s.ask(s.owner, http.MethodPost, "/api/v2/webhooks/"+created.Webhook.ID+"/test", nil)
	if err != nil || status != http.StatusOK {
		s.Fatalf("%d %s %v", status, answer, err)
	}
	endpoint.mu.Lock()
	defer endpoint.mu.Unlock()
	clear(endpoint.received)
}

func (s *testServer) mustInvite(email string) {
	s.Helper()
	if !s.invite(email) {
		s.Fatalf("%s is not invited", email)
	}
}

// killWhileHeld kills the server while some messages wait for their answers and others are not
// sent yet. It returns the ids of those that wait for their answers.
func (s *testServer) killWhileHeld(endpoint *hookReceiver) map[string]bool {
	s.Helper()
	release := endpoint.hold()
	for n := range 12 {
		s.mustInvite(fmt.Sprintf("held%d@x.example", n))
	}
	s.waitUntil("a message waits for its answer", func() bool { return endpoint.heldCount() > 0 })
	s.kill()
	return release()
}

var deliveredMetric = regexp.MustCompile(`(?m)^doorward_webhook_attempts_total\{[^}]*delivered[^}]*\} ([0-9.e+]+)`)

// deliveredCount returns how many messages this node has delivered.
func (s *testServer) deliveredCount() float64 {
	s.Helper()
	_, text, err := s.ask("", http.MethodGet, "/metrics", nil)
	if err != nil {
		s.Fatal(err)
	}
	m := deliveredMetric.FindStringSubmatch(string(text))
	if m == nil {
		s.Fatal("no metric of deliveries: " + strings.Join(regexp.MustCompile(`(?m)^doorward_webhook.*`).FindAllString(string(text), -1), "\n"))
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		s.Fatal(err)
	}
	return n
}
