package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/pgtest"
)

// The server is killed while anonymous clients are refused and ask for resets, also
// between the commit of the inbox's rows and their processing. Every answered request
// is recorded once, and each requested reset is mailed once.

func TestKilledWithAFullInboxOnSQLite(t *testing.T) {
	killWithFullInbox(t, "sqlite:doorward.db", fulltest.Of(2, 6))
}

func TestKilledWithAFullInboxOnPostgres(t *testing.T) {
	killWithFullInbox(t, pgtest.DSN(t), fulltest.Of(2, 4))
}

func killWithFullInbox(t *testing.T, dsn string, rounds int) {
	if testing.Short() {
		t.Skip("TestKilledOnSQLite kills the server, too")
	}
	t.Parallel()
	s := &anonymousClients{testServer: newTestServer(t, program, dsn)}
	s.runKillTest(killTest{
		rounds: rounds,
		flags:  []string{"--trusted-proxies", "127.0.0.0/8,::1/128"},
		load: func(int) {
			s.send(&s.resets, http.StatusAccepted, "forgot-password", map[string]string{"email": "owner@acme.example"})
			s.killUnder(atOnce, 200*time.Millisecond, s.beRefused)
		},
		check: func() { // the minute of each refusal is over
			s.waitUntil("the inbox is empty", func() bool { return s.count(`SELECT count(*) FROM inbox`) == 0 })
			s.compare()
		},
	})
	t.Logf("of %d refusals %d were answered, of %d resets %d", s.refusals.sent.Load(), s.refusals.answered.Load(), s.resets.sent.Load(), s.resets.answered.Load())
}

// anonymousClients send each request from another network, so that each leaves a row.
type anonymousClients struct {
	*testServer
	networks         atomic.Int64
	refusals, resets requests
}

// requests counts requests of one kind: sent ones may have taken effect, answered ones did.
type requests struct{ sent, answered atomic.Int64 }

// beRefused tries a password of the OWNER or of an unknown account, and asks for a reset after
// every fourth.
func (s *anonymousClients) beRefused(_ context.Context, name string) bool {
	n, email := s.networks.Load(), "owner@acme.example"
	if n%3 == 0 {
		email = name + "@acme.example"
	}
	s.send(&s.refusals, http.StatusUnauthorized, "login", map[string]string{"email": email, "password": "not the password"})
	if n%4 == 0 {
		s.send(&s.resets, http.StatusAccepted, "forgot-password", map[string]string{"email": name + "@globex.example"})
	}
	return true
}

func (s *anonymousClients) send(count *requests, want int, path string, body map[string]string) {
	text, _ := json.Marshal(body) // only strings: can't fail
	req, err := http.NewRequest(http.MethodPost, "http://"+s.addr+"/api/v2/auth/"+path, bytes.NewReader(text))
	if err != nil {
		s.Error(err)
		return
	}
	n := s.networks.Add(1)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255))
	count.sent.Add(1)
	res, err := httpClient.Do(req)
	if err != nil {
		return // killed
	}
	res.Body.Close()
	switch res.StatusCode {
	case want:
		count.answered.Add(1)
	case http.StatusTooManyRequests: // the OWNER's hourly limit of resets
		count.sent.Add(-1)
	case http.StatusServiceUnavailable:
	default:
		s.Errorf("%s: %d, want %d", path, res.StatusCode, want)
	}
}

// compare compares what was sent with what is recorded. The inbox must be empty.
func (s *anonymousClients) compare() {
	s.Helper()
	for action, r := range map[string]*requests{"session.refuse": &s.refusals, "password.forgot": &s.resets} {
		recorded := s.count(`SELECT CAST(coalesce(sum(times), 0) AS BIGINT) FROM events WHERE action = '` + action + `'`)
		if sent, answered := int(r.sent.Load()), int(r.answered.Load()); recorded < answered || recorded > sent {
			s.Errorf("%d of %s are recorded, of %d that were answered and %d that were sent", recorded, action, answered, sent)
		}
	}
	mails := s.count(`SELECT count(*) FROM mails WHERE kind = 'reset'`)
	if events := s.count(`SELECT count(*) FROM events WHERE action = 'password.forgot' AND tenant_id <> ''`); mails != events || mails == 0 {
		s.Errorf("%d resets were mailed, of %d that are recorded", mails, events)
	}
}
