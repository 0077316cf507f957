package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/pgtest"
)

// The server is killed without warning while people are invited, register, log in and
// log out, and is restarted. Everything it answered must hold; everything else must be
// done completely or not at all.

func TestKilledOnSQLite(t *testing.T) {
	t.Parallel()
	servers, rounds := 2, 3 // in parallel, since a round mostly waits
	switch {
	case fulltest.On():
		servers, rounds = 3, 15
	case testing.Short():
		servers, rounds = 1, 1
	}
	for n := range servers {
		t.Run(fmt.Sprint(n), func(t *testing.T) { killRepeatedly(t, "sqlite:doorward.db", rounds) })
	}
}

func TestKilledOnPostgres(t *testing.T) { killRepeatedly(t, pgtest.DSN(t), 5) }

// killRepeatedly kills the server in each round, in every fifth only after a logout: that waits for
// the leases of killed nodes, so that round lasts longer than a lease.
func killRepeatedly(t *testing.T, dsn string, rounds int) {
	t.Parallel()
	s := newTestServer(t, program, dsn)
	var all acknowledged
	var logouts sync.WaitGroup
	s.runKillTest(killTest{
		rounds: rounds,
		started: func(int) {
			s.checkConsistent()
			before := s.acked
			s.acked = &acknowledged{}
			s.checkKept(before)
		},
		load: func(round int) {
			loggedOut := func() bool { return round%5 != 2 || s.acked.size(&s.acked.closed) > 0 }
			s.killUnder(loggedOut, 20*time.Millisecond, func(alive context.Context, name string) bool {
				return s.runPerson(alive, &logouts, name+"@acme.example")
			})
			logouts.Wait()
			all.add(s.acked)
		},
		check: func() {
			s.checkKept(&all)
			s.checkDelivered(all.invited)
		},
	})
	t.Logf("acknowledged in %d rounds: %d invitations, %d registrations, %d logins, %d logouts",
		rounds, len(all.invited), len(all.registered), len(all.open)+len(all.closed), len(all.closed))
}

// acknowledged is what the server has acknowledged.
type acknowledged struct {
	mu         sync.Mutex
	invited    []string // addresses
	registered []string // addresses
	open       []string // tokens of sessions
	closed     []string // tokens of sessions
}

func (a *acknowledged) note(list *[]string, item string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*list = append(*list, item)
}

func (a *acknowledged) size(list *[]string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(*list)
}

func (a *acknowledged) add(other *acknowledged) {
	a.invited = append(a.invited, other.invited...)
	a.registered = append(a.registered, other.registered...)
	a.open = append(a.open, other.open...)
	a.closed = append(a.closed, other.closed...)
}

// runPerson runs one person's operations; false means that the server has died or answered
// 503. The logout runs in the background, since it may wait for a lease.
func (s *testServer) runPerson(alive context.Context, people *sync.WaitGroup, email string) bool {
	if !s.invite(email) {
		return false
	}
	s.acked.note(&s.acked.invited, email)
	code := s.awaitCode(alive, email)
	if code == "" || !s.register(email, code) {
		return false
	}
	s.acked.note(&s.acked.registered, email)
	open, loggedOut := s.login(email), s.login(email)
	if open != "" {
		s.acked.note(&s.acked.open, open)
	}
	if loggedOut == "" {
		return false
	}
	people.Go(func() {
		if _, ok := s.post(http.StatusNoContent, loggedOut, "logout", nil); ok {
			s.acked.note(&s.acked.closed, loggedOut)
		}
	})
	return true
}

// codeLine matches the code in a mail, alone on its line.
var codeLine = regexp.MustCompile(`(?m)^[A-Za-z0-9_-]{43}$`)

// awaitCode waits for the code that is mailed to the address; it returns none once alive
// has ended.
func (s *testServer) awaitCode(alive context.Context, email string) string {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for alive.Err() == nil {
		if text, ok := mailTo(s.mails(), email); ok {
			return codeLine.FindString(text)
		}
		<-tick.C
	}
	return ""
}

func mailTo(folder, email string) (string, bool) {
	names, _ := filepath.Glob(filepath.Join(folder, "*.eml")) // the pattern is valid
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil && bytes.Contains(text, []byte("To: <"+email+">")) {
			return string(text), true
		}
	}
	return "", false
}

// checkKept checks that everything acknowledged has been kept.
func (s *testServer) checkKept(l *acknowledged) {
	s.Helper()
	registered := map[string]bool{}
	for _, email := range l.registered {
		registered[email] = true
		if token := s.login(email); token == "" {
			s.Errorf("%s has registered and can't log in", email)
		}
	}
	for _, email := range l.invited {
		s.checkInvitedAgain(email, registered[email])
	}
	for _, sessions := range []struct {
		tokens []string
		want   int
	}{{l.open, http.StatusOK}, {l.closed, http.StatusUnauthorized}} {
		for _, token := range sessions.tokens {
			if status, _, err := s.ask(token, http.MethodGet, "/api/v2/auth/session", nil); err != nil || status != sessions.want {
				s.Errorf("a session after the kill: %d %v, want %d", status, err, sessions.want)
			}
		}
	}
}

// checkInvitedAgain checks a second invitation to the same address. A member whose
// registration got no answer must be able to log in.
func (s *testServer) checkInvitedAgain(email string, registered bool) {
	s.Helper()
	answer, _ := s.post(http.StatusConflict, s.owner, "invite", map[string]string{"email": email, "role": "USER"})
	var problem struct{ Code string }
	if err := json.Unmarshal(answer, &problem); err != nil {
		s.Errorf("%s was invited; inviting again: %s", email, answer)
		return
	}
	switch {
	case problem.Code == "already_member" && !registered:
		s.login(email)
	case problem.Code == "already_member", problem.Code == "invitation_pending" && !registered:
	default:
		s.Errorf("%s was invited, and registered is %v: inviting again is %s", email, registered, problem.Code)
	}
}

// checkDelivered waits until the mail queue is empty and checks that everybody invited
// got a mail.
func (s *testServer) checkDelivered(invited []string) {
	s.Helper()
	s.waitUntil("all mails have left", func() bool { return s.count(`SELECT count(*) FROM mails WHERE state = 'queued'`) == 0 })
	for _, email := range invited {
		if _, ok := mailTo(filepath.Join(s.dir, "mail*"), email); !ok {
			s.Errorf("%s was invited and got no mail", email)
		}
	}
}
