package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/freeport"
)

// killTest is a property that must hold however often the server is killed. Its functions use the
// server that they were made for.
type killTest struct {
	rounds  int
	flags   []string        // of each start
	started func(round int) // prepares and checks after each start; may be nil
	load    func(round int) // gives the server something to do, and kills it meanwhile
	check   func()          // checks the server after the last start
}

// runKillTest starts and kills the server in each round. The last start has its clock three minutes
// ahead, so that what the killed servers had claimed is over. At the end nothing is half done.
func (s *testServer) runKillTest(k killTest) {
	s.Helper()
	for round := range k.rounds {
		s.start(k.flags...)
		if k.started != nil {
			k.started(round)
		}
		k.load(round)
	}
	s.start(append(k.flags[:len(k.flags):len(k.flags)], "--clock-offset", "3m")...)
	k.check()
	s.shutDown()
	s.checkConsistent()
}

// atOnce is for killUnder: nothing has to be done before the kill.
func atOnce() bool { return true }

// killUnder has four clients call do until it returns false, and kills the server meanwhile: once
// enough returns true, at a random time after shortest, within a fifth of a second. alive ends with
// the server. name is different in each call.
func (s *testServer) killUnder(enough func() bool, shortest time.Duration, do func(alive context.Context, name string) bool) {
	alive, stop := context.WithCancel(context.Background())
	defer stop()
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for n := 0; alive.Err() == nil && do(alive, fmt.Sprintf("start%d.%d.%d", s.starts, i, n)); n++ {
			}
		})
	}
	s.waitUntil("enough was done", enough)
	<-time.After(shortest + rand.N(200*time.Millisecond))
	s.kill()
	stop()
	clients.Wait()
}

// testServer is the server, with its tenant and what the test knows of it.
type testServer struct {
	*testing.T
	program        string
	dsn, dir, addr string
	starts         int
	cmd            *exec.Cmd
	log            *bytes.Buffer
	owner          string    // token of the OWNER's session
	killedAt       time.Time // the last time
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
	s.killedAt = time.Now()
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
	s.checkTrail()
}

// checkTrail checks that the chains of all trails are whole.
func (s *testServer) checkTrail() {
	s.Helper()
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

func (s *testServer) ids(query string) (all []string) {
	s.Helper()
	db, err := openSQL(s.dsn, s.dir)
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(query)
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			s.Fatal(err)
		}
		all = append(all, id)
	}
	if err := rows.Err(); err != nil {
		s.Fatal(err)
	}
	return all
}
