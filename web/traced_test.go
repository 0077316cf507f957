package web_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/logtest"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/internal/trace/tracetest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/store/storetest"
)

// traced returns an option that traces all requests to the collector and writes the log to log.
func traced(collector *tracetest.Collector, log *logtest.Journal) func(*node.Config) {
	return func(c *node.Config) {
		c.Trace = trace.Options{Collector: collector.URL, Sample: 1}
		c.Log = slog.New(slog.NewJSONHandler(log, nil))
	}
}

// outline returns a trace as a tree: the spans in order, each indented below its
// parent, with its attributes.
func outline(spans []tracetest.Span, root tracetest.Span) (lines []string) {
	var draw func(of tracetest.Span, depth string)
	draw = func(of tracetest.Span, depth string) {
		line := depth + of.Name
		for _, key := range []string{"http.response.status_code", "db.system.name", "doorward.nodes", "doorward.mail.kind", "doorward.mail.try", "error.type"} {
			if value, has := of.Attributes[key]; has {
				line += " " + strings.TrimPrefix(value, "int_value:")
			}
		}
		for _, event := range of.Events {
			line += ", " + event
		}
		lines = append(lines, line)
		for _, s := range spans {
			if s.Parent == of.ID {
				draw(s, depth+"  ")
			}
		}
	}
	draw(root, "")
	return lines
}

// lastTrace returns the outline of the last trace whose root span has the name. It skips
// those of a worker whose mail another one had claimed.
func lastTrace(t *testing.T, c *tracetest.Collector, name string) []string {
	t.Helper()
	for _, root := range slices.Backward(c.Named(name)) {
		lines := outline(c.Spans(), root)
		if name != "mail" || slices.Contains(lines, "  mail.send") {
			return lines
		}
	}
	t.Fatalf("there is no span %s", name)
	return nil
}

// A login, a revocation, a refusal and a mail have these traces, and log lines have the id of
// their trace.
func TestTraces(t *testing.T) {
	t.Parallel()
	for system, options := range map[string]func(*testing.T) []doorwardtest.Option{
		"sqlite": func(*testing.T) []doorwardtest.Option { return nil },
		"postgresql": func(t *testing.T) []doorwardtest.Option {
			return []doorwardtest.Option{doorwardtest.Database(dbtest.Postgres(t))}
		},
	} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			collector, log := tracetest.Start(t), &logtest.Journal{}
			runTracedScenario(t, start(t, append(options(t), traced(collector, log))...))
			for name, want := range map[string][]string{
				"POST /api/v2/auth/login": {
					"POST /api/v2/auth/login 200",
					"  attempt.reserve", "    transaction upkeep SYSTEM, begun",
					"  password.wait", "  password.hash",
					"  transaction session.open SYSTEM, begun",
				},
				"DELETE /api/v2/users/{id}/sessions": {
					"DELETE /api/v2/users/{id}/sessions 200", "  transaction user.signout SYSTEM, begun", "  revocation.wait 1",
				},
				"POST /api/v2/auth/invite": {"POST /api/v2/auth/invite 403", "  transaction user.invite SYSTEM, begun"},
				"mail":                     {"mail invitation 1", "  transaction upkeep SYSTEM, begun", "  mail.send", "  transaction upkeep SYSTEM, begun"},
			} {
				for i := range want {
					want[i] = strings.ReplaceAll(want[i], "SYSTEM", system)
				}
				if diff := cmp.Diff(want, lastTrace(t, collector, name)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			for _, s := range collector.Spans() {
				if s.Failed {
					t.Errorf("a span has an error although nothing failed: %+v", s)
				}
			}
			checkLog(t, log, collector.Spans())
		})
	}
}

// A refused login takes two transactions, regardless of whether the address has an
// account and the password was right.
func TestRefusedLoginsTakeTheSameTransactions(t *testing.T) {
	t.Parallel()
	for _, limits := range []doorwardtest.Option{doorwardtest.LoginLimits(5, 30), doorwardtest.LoginLimits(0, 0)} {
		collector := tracetest.Start(t)
		d := start(t, limits, traced(collector, &logtest.Journal{}))
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		d.suspend(t, acme.ID, ann.ID)
		d.login(t, acme.Owner.Email, "not the password").fails(http.StatusUnauthorized, "invalid_credentials")
		d.login(t, "nobody@acme.example", "not the password").fails(http.StatusUnauthorized, "invalid_credentials")
		d.login(t, ann.Email, doorwardtest.Password).fails(http.StatusForbidden, "membership_suspended")
		d.Stop()
		want, seen := []string(nil), 0
		for _, root := range collector.Named("POST /api/v2/auth/login") {
			lines := outline(collector.Spans(), root)
			if strings.HasSuffix(lines[0], " 200") {
				continue
			}
			lines = lines[1:]
			if want == nil {
				want = lines
			}
			if diff := cmp.Diff(want, lines); diff != "" {
				t.Errorf("two refused logins differ (-first +other):\n%s", diff)
			}
			seen++
		}
		transactions := 0
		for _, line := range want {
			if strings.Contains(line, "transaction") {
				transactions++
			}
		}
		if seen != 3 || transactions != 2 {
			t.Errorf("%d refused logins with %d transactions each, want 3 with 2:\n%s", seen, transactions, strings.Join(want, "\n"))
		}
	}
}

// runTracedScenario signs in, ends sessions, is refused and gets mail, and stops the
// server, which flushes all spans.
func runTracedScenario(t *testing.T, d *server) {
	t.Helper()
	acme := d.Tenant("Acme")
	ann := acme.Join("ann@acme.example", "USER")
	token := d.token(t, ann.Email)
	d.send(t, "DELETE /api/v2/users/"+ann.ID+"/sessions", nil, as(acme.Owner.Token())).ok(http.StatusOK)
	d.send(t, "POST /api/v2/auth/invite", m{"email": "y@acme.example", "role": "USER"}, as(acme.Owner.Token())).ok(http.StatusCreated)
	d.awaitWorker(t)
	d.send(t, "POST /api/v2/auth/invite", m{"email": "x@acme.example", "role": "OWNER"}, as(ann.Login())).fails(http.StatusForbidden, "forbidden")
	d.send(t, "GET /no/such/path", nil, as(token)).fails(http.StatusNotFound, "not_found")
	d.Stop()
}

// awaitWorker returns when the server itself has sent all mails. What deliver sends is
// not traced.
func (s *server) awaitWorker(t *testing.T) {
	t.Helper()
	waittest.Until(t, "all mail to be sent", func() bool {
		queued, err := storetest.CountMails(t.Context(), s.Node.DB.Read(), doorward.DeliveryQueued)
		if err != nil {
			t.Fatal(err)
		}
		return queued == 0
	})
}

// checkLog requires that each logged request, unless its path is unknown, has the id of its trace.
func checkLog(t *testing.T, log *logtest.Journal, spans []tracetest.Span) {
	t.Helper()
	byRequest := map[string]string{}
	for _, s := range spans {
		if id := s.Attributes["doorward.request.id"]; id != "" {
			byRequest[id] = s.Trace
		}
		if s.Attributes["http.route"] == "" && s.Kind == "SPAN_KIND_SERVER" {
			t.Errorf("a request without a route is traced: %+v", s)
		}
	}
	found := 0
	for line := range strings.Lines(log.String()) {
		var entry struct{ Msg, Path, RequestID, TraceID string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		switch {
		case entry.Msg != "request":
		case entry.TraceID != byRequest[entry.RequestID]:
			t.Errorf("%s is in the trace %q: %s", entry.RequestID, byRequest[entry.RequestID], line)
		case entry.TraceID != "":
			found++
		case entry.Path != "/no/such/path":
			t.Errorf("not traced: %s", line)
		}
	}
	if found < 5 {
		t.Errorf("only %d lines in the log name a trace", found)
	}
}

// TestLogOfRequests: a request that changes something or fails has one log line, and one that
// only reads has none, whatever its method.
func TestLogOfRequests(t *testing.T) {
	t.Parallel()
	log := &logtest.Journal{}
	d := start(t, doorwardtest.TrustLoopback(), func(c *node.Config) { c.Log = slog.New(slog.NewJSONHandler(log, nil)) })
	acme := d.Tenant("Acme")
	person := acme.Owner.ID + " in " + acme.ID
	token, key := d.token(t, acme.Owner.Email), d.operatorKey(t)
	for _, c := range []struct {
		route  string
		body   any
		as     opt
		lines  int
		caller string // in the log line
	}{
		{"POST /api/v2/auth/invite", m{"email": "x@acme.example", "role": "USER"}, as(token), 1, person},
		{"POST /api/v2/auth/invite", m{"email": "x@acme.example", "role": "USER"}, as(token), 1, person}, // 409
		{"GET /api/v2/users", nil, as(token), 0, ""},
		{"GET /api/v2/users/usr_none", nil, as(token), 1, person},
		{"GET /api/v2/tenants", nil, as(token), 1, person}, // 403
		{"GET /no/such/path", nil, as(token), 1, ""},
		{"POST /api/v2/access/introspect", m{"credential": token}, bearer(key), 0, ""},
		{"POST /api/v2/access/introspect", m{"credential": token}, as(token), 1, person}, // 403
		{"POST /api/v2/tenants", m{"name": "Zeta", "ownerEmail": "z@zeta.example"}, bearer(key), 1, "key"},
		{"GET /api/v2/access/check", nil, as(token), 0, ""},
		{"GET /api/v2/access/check?action=none", nil, as(token), 1, person}, // 403
		{"GET /api/v2/access/check", nil, as(forged), 1, ""},
		{"POST /api/v2/auth/login", m{"email": acme.Owner.Email, "password": password}, from("203.0.113.9"), 1, person},
		{"POST /api/v2/auth/login", m{"email": acme.Owner.Email, "password": "wrong"}, from("2001:db8:1:2:3::4"), 1, ""},
		{"GET /healthz", nil, as(token), 0, ""},
		{"POST /api/v2/auth/logout", nil, as(token), 1, ""},
	} {
		before := strings.Count(log.String(), `"msg":"request"`)
		a := d.send(t, c.route, c.body, c.as)
		if got := strings.Count(log.String(), `"msg":"request"`) - before; got != c.lines {
			t.Errorf("%s, %d: %d lines, want %d", c.route, a.status, got, c.lines)
		}
		if got := callerOf(t, log); c.lines > 0 && got != c.caller {
			t.Errorf("%s, %d: the line names the caller %q, want %q", c.route, a.status, got, c.caller)
		}
	}
	before := strings.Count(log.String(), `"msg":"request"`)
	for range 20 {
		if a := d.send(t, "GET /api/v2/access/check", nil, as(forged)); a.status != 401 {
			t.Fatal(a.status)
		}
	}
	if got := strings.Count(log.String(), `"msg":"request"`) - before; got > 1 { // in another minute than the one above: 1
		t.Errorf("20 refused checks have %d lines: want one a minute", got)
	}
	clients := map[string]bool{}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "@acme.example") && strings.Contains(line, `"msg":"request"`) {
			t.Errorf("the log has a person's e-mail address: %s", line)
		}
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if entry["msg"] != "request" {
			continue
		}
		clients[fmt.Sprint(entry["client"])] = true
		members := []string{"client", "level", "method", "msg", "path", "requestId", "status", "time", "took"}
		for _, of := range []string{"key", "tenant", "user"} {
			if _, has := entry[of]; has {
				members = append(members, of)
			}
		}
		slices.Sort(members)
		if got := slices.Sorted(maps.Keys(entry)); !slices.Equal(got, members) {
			t.Errorf("a line has the members %v, want %v", got, members)
		}
	}
	for _, client := range []string{"127.0.0.1", "203.0.113.9", "2001:db8:1:2::/64"} {
		if !clients[client] {
			t.Errorf("no line is of %s: %v", client, clients)
		}
	}
}

// callerOf returns the caller in the newest log line of a request.
func callerOf(t *testing.T, log *logtest.Journal) string {
	t.Helper()
	newest := ""
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, `"msg":"request"`) {
			newest = line
		}
	}
	var entry struct{ User, Tenant, Key string }
	if err := json.Unmarshal([]byte(newest), &entry); err != nil {
		t.Fatal(err)
	}
	switch {
	case strings.HasPrefix(entry.Key, "key_"):
		return "key"
	case entry.User+entry.Tenant == "":
		return ""
	}
	return entry.User + " in " + entry.Tenant
}
