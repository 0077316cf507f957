package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/freeport"
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

// killRepeatedly kills the server in each round, in every fifth only after a logout.
func killRepeatedly(t *testing.T, dsn string, rounds int) {
	t.Parallel()
	s := newTestServer(t, program, dsn)
	var all acknowledged
	for round := range rounds {
		s.start()
		s.checkConsistent()
		before := s.acked
		s.acked = &acknowledged{}
		s.checkKept(before)
		s.killUnderLoad(round%5 == 2)
		all.add(s.acked)
	}
	s.start()
	s.checkKept(&all)
	s.shutDown()
	s.checkConsistent()
	s.start("--clock-offset", "3m") // expires the mail attempts that the kills interrupted
	s.checkDelivered(all.invited)
	s.shutDown()
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

// testServer is the server, with its tenant and what the test knows of it.
type testServer struct {
	*testing.T
	program        string
	dsn, dir, addr string
	starts         int
	cmd            *exec.Cmd
	log            *bytes.Buffer
	owner          string // token of the OWNER's session
	acked          *acknowledged
}

const password = "four quiet green llamas"

// newTestServer creates the tenant Acme and its OWNER, and leaves the server killed.
func newTestServer(t *testing.T, program, dsn string) *testServer {
	s := &testServer{T: t, program: program, dsn: dsn, dir: t.TempDir(), addr: freeport.AddressOn("localhost"), acked: &acknowledged{}}
	create := s.serverCommand("tenant", "create", "--name", "Acme", "--owner-email", "owner@acme.example")
	out, err := create.Output()
	if err != nil {
		t.Fatalf("tenant create: %v\n%s", err, s.log)
	}
	_, token, _ := strings.Cut(strings.TrimSpace(string(out)), "#token=")
	s.start()
	if !s.register("owner@acme.example", token) {
		t.Fatal("no OWNER")
	}
	if s.owner = s.login("owner@acme.example"); s.owner == "" {
		t.Fatal("the OWNER can't log in")
	}
	s.kill()
	return s
}

func (s *testServer) serverCommand(args ...string) *exec.Cmd {
	s.log = &bytes.Buffer{}
	cmd := exec.Command(s.program, append(args, "--database", s.dsn, "--smtp", "file:"+s.mails(), "--log-level", "error")...)
	cmd.Dir, cmd.Stderr = s.dir, s.log
	return cmd
}

// mails returns a folder that is new after each start, so that finding a mail stays fast.
func (s *testServer) mails() string { return filepath.Join(s.dir, fmt.Sprintf("mail%d", s.starts)) }

func (s *testServer) start(flags ...string) {
	s.Helper()
	s.starts++
	s.cmd = s.serverCommand(append([]string{
		"serve", "--listen", s.addr, "--session-limit", "0", "--limit-login-ip", "0", "--limit-login-account", "0",
		"--password-memory-kib", "1024", "--password-time", "1",
	}, flags...)...)
	if err := s.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { s.cmd.Process.Kill() })
	s.waitUntil("ready", func() bool {
		status, _, err := s.ask("", http.MethodGet, "/readyz", nil)
		return err == nil && status == http.StatusOK
	})
}

func (s *testServer) kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait() // always fails: it was killed
}

func (s *testServer) shutDown() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		s.Fatalf("end: %v\n%s", err, s.log)
	}
}

var httpClient = http.Client{Timeout: waitTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}

// ask sends a request with a JSON body. An error means that the server has died.
func (s *testServer) ask(session, method, path string, body any) (int, []byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequest(method, "http://"+s.addr+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if session != "" {
		req.Header.Set("Cookie", "JSESSIONID="+session)
	}
	res, err := httpClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// post reports whether the server answered with the status. No answer and 503 are
// allowed; any other answer is a failure.
func (s *testServer) post(want int, session, path string, body map[string]string) ([]byte, bool) {
	s.Helper()
	status, answer, err := s.ask(session, http.MethodPost, "/api/v2/auth/"+path, body)
	if err == nil && status != want && status != http.StatusServiceUnavailable {
		s.Errorf("server start %d: %s %v: %d %s, want %d", s.starts, path, body, status, answer, want)
	}
	return answer, err == nil && status == want
}

func (s *testServer) invite(email string) bool {
	_, ok := s.post(http.StatusCreated, s.owner, "invite", map[string]string{"email": email, "role": "USER"})
	return ok
}

func (s *testServer) register(email, token string) bool {
	_, ok := s.post(http.StatusOK, "", "complete-registration", map[string]string{"token": token, "password": password, "confirmPassword": password})
	return ok
}

// login returns the token of the session; none if the server has died or answers 503.
func (s *testServer) login(email string) string {
	s.Helper()
	body, ok := s.post(http.StatusOK, "", "login", map[string]string{"email": email, "password": password})
	var answer struct{ Token string }
	if !ok || json.Unmarshal(body, &answer) != nil {
		return ""
	}
	return answer.Token
}

// killUnderLoad has four people at a time run through all operations, and kills the
// server while they do. A logout waits for the leases of killed nodes, so rounds with
// untilLogout last longer than a lease.
func (s *testServer) killUnderLoad(untilLogout bool) {
	alive, stop := context.WithCancel(context.Background())
	defer stop()
	var people sync.WaitGroup
	for i := range 4 {
		people.Go(func() {
			for n := 0; s.runPerson(alive, &people, fmt.Sprintf("start%d.%d.%d@acme.example", s.starts, i, n)); n++ {
			}
		})
	}
	if untilLogout {
		s.waitUntil("a logout", func() bool { return s.acked.size(&s.acked.closed) > 0 })
	}
	<-time.After(time.Duration(20+rand.IntN(200)) * time.Millisecond)
	s.kill()
	stop()
	people.Wait()
}

// waitUntil polls until isDone returns true. The description is for the error.
func (s *testServer) waitUntil(description string, isDone func() bool) {
	s.Helper()
	s.waitWithin(waitTimeout, description, isDone)
}

func (s *testServer) waitWithin(limit time.Duration, description string, isDone func() bool) {
	s.Helper()
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); !isDone(); <-tick.C {
		if time.Now().After(end) {
			s.kill()
			s.Fatalf("server start %d: %s: not within %v\n%s", s.starts, description, limit, s.log)
		}
	}
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

// inconsistencies count operations that were written in part.
var inconsistencies = map[string]string{
	"accounts without a membership": `SELECT count(*) FROM users WHERE id NOT IN (SELECT user_id FROM memberships)`,
	"accepted invitations without a membership": `SELECT count(*) FROM invitations WHERE state = 'ACCEPTED'
		AND (tenant_id, email) NOT IN (SELECT m.tenant_id, u.email FROM memberships m JOIN users u ON u.id = m.user_id)`,
	"memberships without an accepted invitation": `SELECT count(*) FROM memberships m JOIN users u ON u.id = m.user_id
		WHERE (m.tenant_id, u.email) NOT IN (SELECT tenant_id, email FROM invitations WHERE state = 'ACCEPTED')`,
	"invitations without a mail": `SELECT count(*) FROM invitations WHERE id NOT IN (SELECT subject_id FROM mails)`,
	"notices of what has no record": `SELECT count(*) FROM mails WHERE kind NOT IN ('invitation', 'reset')
		AND subject_id NOT IN (SELECT id FROM events)`,
	"accepted invitations without a record": `SELECT count(*) FROM invitations WHERE state = 'ACCEPTED'
		AND id NOT IN (SELECT target_id FROM events WHERE action = 'invitation.accept' AND outcome = 'done')`,
	"sessions without a record": `SELECT count(*) FROM sessions
		WHERE id NOT IN (SELECT target_id FROM events WHERE action = 'session.open' AND outcome = 'done')`,
	"sessions that are recorded as ended": `SELECT count(*) FROM sessions
		WHERE id IN (SELECT target_id FROM events WHERE action = 'session.end' AND outcome = 'done')`,
}

// checkConsistent checks that nothing is half done.
func (s *testServer) checkConsistent() {
	s.Helper()
	for description, query := range inconsistencies {
		if n := s.count(query); n > 0 {
			s.Errorf("server start %d: %d %s", s.starts, n, description)
		}
	}
	verify := exec.Command(s.program, "audit", "verify", "--database", s.dsn)
	verify.Dir = s.dir
	if out, err := verify.CombinedOutput(); err != nil {
		s.Errorf("server start %d: the audit trail: %v\n%s", s.starts, err, out)
	}
}

func (s *testServer) count(query string) (n int) {
	s.Helper()
	db, err := openSQL(s.dsn, s.dir)
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		s.Fatal(err)
	}
	return n
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
