//go:build linux

package node_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/node"
)

// databases has, by engine, a function that makes a database for a test.
var databases = map[string]func(t *testing.T) string{
	"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "doorward.db") },
	"postgres": func(t *testing.T) string { return pgtest.DSN(t) },
}

// forEachDatabase runs the test on each of databases, in parallel.
func forEachDatabase(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Helper()
	t.Parallel()
	for name, dsn := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, dsn(t))
		})
	}
}

// createAcme creates the tenant Acme and stops the server.
func createAcme(t *testing.T, dsn string) *doorwardtest.Tenant {
	t.Helper()
	s := doorwardtest.Start(t, doorwardtest.Database(dsn), func(c *node.Config) { c.Sessions.PerUser = 0 })
	acme := s.Tenant("Acme")
	s.Stop()
	return acme
}

// launch is serve for a node that may not become ready: it returns when the process
// answers, or has ended.
func launch(t *testing.T, dsn string, flags ...string) *process {
	t.Helper()
	dir, address := t.TempDir(), freeport.AddressOn("127.0.0.1")
	p := &process{t: t, program: builtProgram(t), address: address, log: filepath.Join(dir, "log"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(p.program, append([]string{
		"serve", "--listen", address, "--database", dsn, "--smtp", "file:" + filepath.Join(dir, "mail"),
		"--password-memory-kib", "1024", "--password-time", "1", "--session-limit", "0", "--log-format", "json",
	}, flags...)...)
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	t.Cleanup(p.kill)
	for end := waittest.Deadline(); p.ask("/healthz", "").status != http.StatusOK; {
		select {
		case <-p.ended:
			return p
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatalf("the node does not answer:\n%s", p.tail())
		}
	}
	return p
}

// exitCode waits until the process ends by itself, and returns its exit code.
func (p *process) exitCode() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(waittest.Limit):
		p.t.Fatalf("the node is still running:\n%s", p.tail())
		return 0
	}
}

type response struct {
	status int
	body   []byte
}

func (p *process) ask(path, token string) response { return p.send(http.MethodGet, path, token, nil) }

// send returns status 0 if there is no answer.
func (p *process) send(method, path, token string, body any) response {
	p.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	req, err := http.NewRequest(method, p.url()+path, bytes.NewReader(text))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Cookie", "JSESSIONID="+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return response{}
	}
	defer res.Body.Close()
	var out bytes.Buffer
	_, _ = out.ReadFrom(res.Body) // a test that needs a complete body fails on a partial one
	return response{res.StatusCode, out.Bytes()}
}

// sendAgain is send, and again while it is answered 503: on a busy machine a request may run out
// of time, which no counter tells from a database that doesn't answer.
func (p *process) sendAgain(method, path, token string, body any) (r response) {
	p.t.Helper()
	p.waitUntil(p.t, "an answer of "+path+" other than 503", func() bool {
		r = p.send(method, path, token, body)
		return r.status != http.StatusServiceUnavailable
	})
	return r
}

// login returns the token of a new session.
func (p *process) login(email string) string {
	p.t.Helper()
	a := p.sendAgain(http.MethodPost, "/api/v2/auth/login", "", map[string]string{"email": email, "password": doorwardtest.Password})
	var answer struct{ Token string }
	if err := json.Unmarshal(a.body, &answer); err != nil || a.status != http.StatusOK {
		p.t.Fatalf("login: %d %s\n%s", a.status, a.body, p.tail())
	}
	return answer.Token
}

// awaitLog waits for a line of the log that has the words in this order.
func (p *process) awaitLog(words ...string) {
	p.t.Helper()
	p.waitUntil(p.t, "the log says "+strings.Join(words, " … "), func() bool {
		text, _ := os.ReadFile(p.log)
		for line := range strings.Lines(string(text)) {
			rest, all := line, true
			for _, w := range words {
				_, after, found := strings.Cut(rest, w)
				rest, all = after, all && found
			}
			if all {
				return true
			}
		}
		return false
	})
}

const checkPath = "/api/v2/access/check?action=message.read"

// TestOneWrongClock: a node whose clock is 90 minutes ahead ends no session. It reports
// the drift and answers 503; the others are unaffected.
func TestOneWrongClock(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, dsn string) {
		acme := createAcme(t, dsn)
		right := []*process{launch(t, dsn), launch(t, dsn)}
		token := right[0].login(acme.Owner.Email)
		before := right[1].ask("/api/v2/auth/session", token)
		wrong := launch(t, dsn, "--clock-offset", "90m")
		wrong.waitUntil(t, "it is not ready because its clock is wrong", func() bool {
			a := wrong.ask("/readyz", "")
			return a.status == http.StatusServiceUnavailable && bytes.Contains(a.body, []byte("clocks"))
		})
		for range 40 { // more than a lease, with a check each time
			wait(t.Context(), 50*time.Millisecond)
			for i, p := range right {
				if a := p.ask(checkPath, token); a.status != http.StatusOK {
					t.Fatalf("the right node %d answers %d %s", i, a.status, a.body)
				}
			}
			for _, path := range []string{checkPath, "/api/v2/auth/session"} {
				if a := wrong.ask(path, token); a.status != http.StatusServiceUnavailable {
					t.Fatalf("the wrong node answers %s with %d %s", path, a.status, a.body)
				}
			}
		}
		login := map[string]string{"email": acme.Owner.Email, "password": doorwardtest.Password}
		if a := wrong.send(http.MethodPost, "/api/v2/auth/login", "", login); a.status != http.StatusServiceUnavailable {
			t.Errorf("the wrong node answers a login with %d %s", a.status, a.body)
		}
		if before.status != http.StatusOK || right[1].ask("/readyz", "").status != http.StatusOK {
			t.Error("a right node is not ready")
		}
		wrong.awaitLog("clock wrong", `"ahead":"1h`)
		if d := wrong.metric(t, "doorward_clock_drift_seconds"); d < 5390 || d > 5410 {
			t.Errorf("drift %v s, want 90 min", d)
		}
		if d := right[0].metric(t, "doorward_clock_drift_seconds"); d < -2 || d > 2 {
			t.Errorf("drift of a right node: %v s, want none", d)
		}
		wrong.stop()
		if a := right[0].ask(checkPath, token); a.status != http.StatusOK {
			t.Errorf("after the wrong node has gone: %d %s", a.status, a.body)
		}
		for _, p := range right {
			p.stop()
		}
	})
}

// TestOffsetOfALoneNode: the first node to start moves the installation's clock, for itself
// and for commands. Records from a time when the clock was ahead are corrected, so that
// they expire no later than they should.
func TestOffsetOfALoneNode(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, dsn string) {
		acme := createAcme(t, dsn)
		onTime := launch(t, dsn)
		old := onTime.login(acme.Owner.Email)
		onTime.kill() // its row stays, but must not count as another node

		ahead := launch(t, dsn, "--clock-offset", "26h")
		if a := ahead.ask("/readyz", ""); a.status != http.StatusOK {
			t.Fatalf("alone it is not ready: %d %s", a.status, a.body)
		}
		if a := ahead.ask(checkPath, old); a.status != http.StatusUnauthorized {
			t.Errorf("a session of yesterday: %d %s", a.status, a.body)
		}
		ahead.awaitLog("--clock-offset moves this installation's clock", `"moved":"26h0m0s"`)
		fromAhead := ahead.login(acme.Owner.Email)
		ahead.stop()

		cfg := node.Defaults()
		cfg.Database, cfg.Migrate, cfg.Log = dsn, false, slog.New(slog.DiscardHandler)
		n, err := node.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		drift, err := n.DB.ClockDrift(t.Context())
		if off := time.Until(n.DB.Now()); err != nil || drift.Abs() > time.Second || off.Abs() > time.Second {
			t.Errorf("a later command's time is off by %v, with a drift of %v: %v", off, drift, err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}

		onTime = launch(t, dsn)
		var answer struct {
			Session struct{ CreatedAt, LastSeenAt, ExpiresAt, IdleExpiresAt time.Time }
		}
		a := onTime.sendAgain(http.MethodGet, "/api/v2/auth/session", fromAhead, nil)
		if err := json.Unmarshal(a.body, &answer); err != nil || a.status != http.StatusOK {
			t.Fatalf("the session is answered with %d %s", a.status, a.body)
		}
		s, latest := answer.Session, time.Now().Add(2*time.Second)
		if s.ExpiresAt.After(latest.Add(24*time.Hour)) || s.IdleExpiresAt.After(latest.Add(time.Hour)) || s.CreatedAt.After(latest) {
			t.Errorf("a session from a clock that was ahead is %+v at %v", s, time.Now())
		}
		onTime.awaitLog("sessions with a time in the future were corrected", `"sessions":1`)
		onTime.stop()
	})
}

// TestSettingsDiffer: a node whose settings would destroy data or end sessions early
// starts beside others only with --change-shared. The difference is reported.
func TestSettingsDiffer(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, dsn string) {
		acme := createAcme(t, dsn)
		first := launch(t, dsn)
		token := first.login(acme.Owner.Email)
		for flag, value := range map[string]string{"tenant-hold": "0s", "session-idle": "30m0s", "session-absolute": "2h0m0s", "cookie-name": "other"} {
			p := launch(t, dsn, "--"+flag, value)
			if code := p.exitCode(); code != 3 {
				t.Errorf("--%s %s beside a node without it: exit code %d, want 3\n%s", flag, value, code, p.tail())
			}
			if text := p.tail(); !strings.Contains(text, "--"+flag+" is "+value+" here and ") || !strings.Contains(text, "--change-shared") {
				t.Errorf("--%s %s: %s", flag, value, text)
			}
		}

		second := launch(t, dsn, "--tenant-hold", "0s", "--base-url", "http://localhost:1", "--change-shared")
		if a := second.ask("/readyz", ""); a.status != http.StatusOK {
			t.Fatalf("with --change-shared: %d %s", a.status, a.body)
		}
		for _, p := range []*process{first, second} {
			p.awaitLog("setting differs", "tenant-hold")
			p.awaitLog("setting differs", "base-url")
			p.waitUntil(t, "the metric says so", func() bool { return p.metric(t, `doorward_settings_differ{setting="tenant-hold"}`) == 1 })
			if n := p.metric(t, `doorward_settings_differ{setting="session-idle"}`); n != 0 {
				t.Errorf("an equal setting is reported as different on %v nodes", n)
			}
		}
		closed := first.send(http.MethodDelete, "/api/v2/tenant", token, map[string]string{"confirm": "Acme"})
		var promised struct{ DestroyedAt time.Time }
		if err := json.Unmarshal(closed.body, &promised); err != nil || closed.status != http.StatusAccepted {
			t.Fatalf("closing: %d %s", closed.status, closed.body)
		}
		second.stop()
		second = launch(t, dsn, "--tenant-hold", "0s", "--change-shared") // App.Sweep, which destroys tenants, runs at its start
		second.awaitLog("setting differs", "tenant-hold")
		for range 20 { // longer than a lease
			wait(t.Context(), 100*time.Millisecond)
			var tenant struct {
				Status      string
				DestroyedAt time.Time
			}
			owner := first.login(acme.Owner.Email)
			a := second.sendAgain(http.MethodGet, "/api/v2/tenant", owner, nil)
			if err := json.Unmarshal(a.body, &tenant); err != nil || tenant.Status != "closing" || !tenant.DestroyedAt.Equal(promised.DestroyedAt) {
				t.Fatalf("the tenant beside a hold of 0s: %d %s", a.status, a.body)
			}
		}
		first.stop()
		second.waitUntil(t, "nothing differs any more", func() bool { return second.metric(t, `doorward_settings_differ{setting="tenant-hold"}`) == 0 })
		second.awaitLog("setting agrees", "tenant-hold")
		second.kill()

		// The row of a killed node blocks others only for a short time.
		began := time.Now()
		third := launch(t, dsn, "--session-idle", "30m")
		if a := third.ask("/readyz", ""); a.status != http.StatusOK {
			t.Errorf("after a node that was killed: %d %s\n%s", a.status, a.body, third.tail())
		}
		t.Logf("a node whose settings differ from a killed node's started within %v", time.Since(began).Round(time.Millisecond))
		third.stop()
	})
}

// TestDatabaseClockJumps: a database that comes back with another time, as after a
// failover to a machine whose clock is wrong, signs nobody out. While the clocks differ
// the answer is 503; afterwards everything works as before.
func TestDatabaseClockJumps(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, dsn string) {
		acme := createAcme(t, dsn)
		p := launch(t, dsn)
		token := p.login(acme.Owner.Email)
		for _, jump := range []time.Duration{26 * time.Hour, -26 * time.Hour} {
			setClock(t, dsn, jump)
			p.waitUntil(t, "it answers 503", func() bool {
				a := p.ask(checkPath, token)
				if a.status != http.StatusOK && a.status != http.StatusServiceUnavailable {
					t.Fatalf("a valid session is answered with %d %s", a.status, a.body)
				}
				return a.status == http.StatusServiceUnavailable && p.ask("/readyz", "").status == http.StatusServiceUnavailable
			})
			if jump > 0 { // as from a node that trusted that clock
				execWithMicroseconds(t, dsn, `UPDATE sessions SET created_at = created_at + $1`, jump)
			}
			setClock(t, dsn, 0)
			p.waitUntil(t, "it is ready again", func() bool { return p.ask("/readyz", "").status == http.StatusOK })
			if a := p.ask(checkPath, token); a.status != http.StatusOK {
				t.Errorf("after a jump by %v and back: %d %s", jump, a.status, a.body)
			}
			if jump > 0 {
				p.awaitLog("sessions with a time in the future were corrected", `"sessions":2`) // the other one is from createAcme
			}
		}
		p.awaitLog("clock right")
		p.stop()
	})
}

// setClock moves the database's clock for the running nodes.
func setClock(t *testing.T, dsn string, offset time.Duration) {
	t.Helper()
	execWithMicroseconds(t, dsn, `UPDATE shared_clock SET moved = $1`, offset)
}

// execWithMicroseconds executes a statement whose parameter is a number of microseconds.
func execWithMicroseconds(t *testing.T, dsn, query string, offset time.Duration) {
	t.Helper()
	driver := "pgx"
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, dsn = "sqlite", path+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), query, offset.Microseconds()); err != nil {
		t.Fatal(err)
	}
}
