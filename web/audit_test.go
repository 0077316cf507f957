package web_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/store"
)

const trailPath = "GET /api/v2/audit-events"

// trail returns the events that the query matches.
func (s *server) trail(t *testing.T, by *doorwardtest.Person, query string) (events []m) {
	t.Helper()
	a := s.send(t, trailPath+query, nil, as(by.Token())).ok(http.StatusOK)
	for _, e := range a.at("items").([]any) {
		events = append(events, e.(m))
	}
	return events
}

// eventLines returns action, outcome and the actor's address of each event.
func eventLines(events []m) (all []string) {
	for _, e := range events {
		all = append(all, fmt.Sprint(e["action"], " ", e["outcome"], " ", e["actor"].(m)["email"]))
	}
	return all
}

func TestAuditEvents(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, zeta := d.Tenant("Acme"), d.Tenant("Zeta")
		ann := acme.Join("ann@acme.example", "ADMIN")
		bob := acme.Join("bob@acme.example", "USER")
		d.send(t, "PATCH /api/v2/users/"+bob.ID, m{"role": "VIEWER"}, as(ann.Token()), with("X-Request-Id", "mine-1"), with("X-Forwarded-For", "203.0.113.9")).ok(http.StatusOK)
		d.send(t, "PATCH /api/v2/users/"+acme.Owner.ID, m{"role": "USER"}, as(ann.Token())).fails(http.StatusForbidden, "forbidden")
		d.login(t, bob.Email, "not the password").fails(http.StatusUnauthorized, "invalid_credentials")

		// The newest event in full: actor, action, target, source, before and after.
		e := d.trail(t, ann, "?action=user.role&target="+bob.ID)[0]
		for _, name := range []string{"id", "at"} { // they differ in each run
			if s, _ := e[name].(string); s == "" {
				t.Errorf("no %s in %v", name, e)
			}
			delete(e, name)
		}
		want := m{
			"action": "user.role", "outcome": "done", "tenantId": acme.ID, "ip": "127.0.0.1", "requestId": "mine-1",
			"actor":   m{"type": "user", "id": ann.ID, "email": ann.Email},
			"target":  m{"type": "user", "id": bob.ID},
			"changes": []any{m{"field": "role", "from": "USER", "to": "VIEWER"}},
		}
		if diff := cmp.Diff(want, e); diff != "" {
			t.Errorf("the event (-want +got):\n%s", diff)
		}

		got := eventLines(d.trail(t, acme.Owner, "?limit=3"))
		newest := []string{"session.refuse refused <nil>", "user.manage refused ann@acme.example", "user.role done ann@acme.example"}
		if diff := cmp.Diff(newest, got); diff != "" {
			t.Errorf("the newest (-want +got):\n%s", diff)
		}
		refused := d.trail(t, ann, "?action=session.refuse")
		if len(refused) != 1 || refused[0]["target"].(m)["id"] != bob.ID || refused[0]["changes"].([]any)[0].(m)["to"] != "invalid_credentials" {
			t.Errorf("the refused login is %v", refused)
		}
		d.checkFilters(t, acme, ann, bob)

		// Another tenant's trail has none of these events, with any filter.
		for _, e := range append(d.trail(t, zeta.Owner, ""), d.trail(t, zeta.Owner, "?actor="+ann.ID)...) {
			if e["tenantId"] != zeta.ID {
				t.Errorf("Zeta's trail has the foreign event %v", e)
			}
		}

		// Refusals to read the trail are recorded in it.
		for _, who := range []*doorwardtest.Person{bob, acme.Join("cat@acme.example", "USER")} {
			d.send(t, trailPath, nil, as(who.Token())).fails(http.StatusForbidden, "forbidden")
			d.send(t, trailPath+"?format=csv", nil, as(who.Token())).fails(http.StatusForbidden, "forbidden")
		}
		if n := countRefusals(d.trail(t, ann, "?action=audit.read&actor="+bob.ID)); n != 2 {
			t.Errorf("%d refusals to read the trail, want 2", n)
		}
		d.send(t, trailPath, nil).fails(http.StatusUnauthorized, "unauthenticated")
		if n := len(d.trail(t, ann, "?action=audit.read&actor="+ann.ID)); n != 0 {
			t.Errorf("reading is recorded %d times", n)
		}
	})
}

// countRefusals returns how many refusals the events stand for: an event may count several.
func countRefusals(events []m) (sum int) {
	for _, e := range events {
		n := 1
		for _, c := range e["changes"].([]any) {
			if c := c.(m); c["field"] == doorward.FieldCount {
				n, _ = strconv.Atoi(c["to"].(string))
			}
		}
		sum += n
	}
	return sum
}

// checkFilters requires that each filter selects the events it describes, and that invalid
// filters are refused.
func (s *server) checkFilters(t *testing.T, acme *doorwardtest.Tenant, ann, bob *doorwardtest.Person) {
	t.Helper()
	all := s.trail(t, ann, "?limit=200")
	at := all[2]["at"].(string)
	counts := map[string]int{
		"":                                len(all),
		"?actor=" + ann.ID:                0,
		"?actor=ann@acme.example":         0,
		"?target=" + bob.ID:               0,
		"?from=" + url.QueryEscape(at):    3,
		"?to=" + url.QueryEscape(at):      len(all) - 3,
		"?action=tenant.create":           1,
		"?action=tenant.freeze":           0,
		"?from=9999-12-31T00:00:00Z":      0,
		"?from=9999-12-31t23:59:60z":      0,
		"?actor=nobody@acme.example":      0,
		"?target=" + acme.ID + "&from=":   1,
		"?outcome=refused":                0,
		"?outcome=done":                   0,
		"?request=mine-1":                 1,
		"?request=mine-1&outcome=refused": 0,
	}
	for _, e := range all {
		if e["actor"].(m)["id"] == ann.ID {
			counts["?actor="+ann.ID]++
			counts["?actor=ann@acme.example"]++
		}
		if e["target"].(m)["id"] == bob.ID {
			counts["?target="+bob.ID]++
		}
		counts[fmt.Sprint("?outcome=", e["outcome"])]++
	}
	if counts["?actor="+ann.ID] == 0 || counts["?target="+bob.ID] == 0 || counts["?outcome=refused"] == 0 {
		t.Error("the trail has no event by ann, none about bob, or no refusal: the filters select nothing")
	}
	for query, want := range counts {
		limit := "?limit=200"
		if query != "" {
			limit = "&limit=200"
		}
		if got := len(s.trail(t, ann, query+limit)); got != want {
			t.Errorf("%q selects %d events, want %d", query, got, want)
		}
	}
	for query, want := range map[string]string{
		"action=user.fly": "action invalid", "from=yesterday": "from invalid", "to=2031-05-06": "to invalid", "limit=0": "limit out_of_range",
		"limit=201": "limit out_of_range", "limit=ten": "limit invalid", "format=xml": "format invalid", "format=csv&limit=10001": "limit out_of_range",
		"format=csv&format=json": "format invalid", "actor=a&actor=b": "actor invalid", "action=": "",
		"outcome=undone": "outcome invalid", "outcome=": "",
	} {
		a := s.send(t, trailPath+"?"+query, nil, as(ann.Token()))
		if want == "" {
			a.ok(http.StatusOK)
			continue
		}
		faults := a.fails(http.StatusUnprocessableEntity, "validation_failed").at("errors").([]any)
		if f := faults[0].(m); len(faults) != 1 || fmt.Sprint(f["parameter"], " ", f["code"]) != want {
			t.Errorf("the faults of %q are %v, want %s", query, faults, want)
		}
	}
}

// Pages stay complete while events are added between them.
func TestAuditPages(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		for n := range 8 {
			d.login(t, acme.Owner.Email, fmt.Sprint("wrong", n), from("192.0.2.1"))
			d.Advance(20 * time.Minute)
		}
		owner := d.token(t, acme.Owner.Email)
		var whole []string
		for _, e := range d.send(t, trailPath+"?limit=200", nil, as(owner)).ok(http.StatusOK).at("items").([]any) {
			whole = append(whole, e.(m)["id"].(string))
		}
		var paged []string
		path := trailPath + "?limit=3"
		for cursor := ""; ; {
			a := d.send(t, path+cursor, nil, as(owner)).ok(http.StatusOK)
			for _, e := range a.at("items").([]any) {
				paged = append(paged, e.(m)["id"].(string))
			}
			d.send(t, "PATCH /api/v2/tenant", m{"name": fmt.Sprint("Acme ", len(paged))}, as(owner)).ok(http.StatusOK)
			if a.text("nextCursor") == "" {
				break
			}
			cursor = "&cursor=" + a.text("nextCursor")
		}
		if diff := cmp.Diff(whole, paged); diff != "" {
			t.Errorf("page by page (-whole +paged):\n%s", diff)
		}
		next := d.send(t, path, nil, as(owner)).text("nextCursor")
		for _, wrong := range []string{next + "A", next[1:], "x", next + "&action=user.role"} {
			d.send(t, path+"&cursor="+wrong, nil, as(owner)).fails(http.StatusBadRequest, "invalid_cursor")
		}
		zeta := d.Tenant("Zeta")
		d.send(t, path+"&cursor="+next, nil, as(zeta.Owner.Token())).fails(http.StatusBadRequest, "invalid_cursor")
	})
}

// Each page of the CSV has the same content as the JSON, and no cell is a formula
// to a spreadsheet.
func TestAuditAsCSV(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := as(acme.Owner.Token())
		d.send(t, "PATCH /api/v2/tenant", m{"name": `=HYPERLINK("http://evil.example","x"),` + "'"}, owner, with("X-Request-Id", "-1-1")).ok(http.StatusOK)
		hostile := doorward.Event{
			ID: doorward.NewID(doorward.PrefixEvent), Action: doorward.UserRename, Outcome: doorward.Done, ActorType: doorward.ByUser,
			ActorID: "@SUM(1)", ActorEmail: "=1+1@acme.example", IP: "+1", Target: doorward.Object{Type: "\t=1", ID: "a,\"b\"\nc", TenantID: acme.ID},
		}
		err := d.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error { return tx.InsertEvent(t.Context(), hostile) })
		if err != nil {
			t.Fatal(err)
		}
		events := d.trail(t, acme.Owner, "?limit=200")
		var rows [][]string
		link := trailPath + "?format=csv&limit=3&from=2001-01-01T00:00:00%2B01:00"
		for link != "" {
			a := d.send(t, link, nil, owner).ok(http.StatusOK)
			if got := a.header.Get("Content-Type"); got != "text/csv; charset=utf-8" {
				t.Errorf("Content-Type is %q", got)
			}
			if got := a.header.Get("Content-Disposition"); got != `attachment; filename="audit-events.csv"` {
				t.Errorf("Content-Disposition is %q", got)
			}
			rows = append(rows, readCSV(t, a)...)
			link = d.nextLink(t, a)
		}
		if len(rows) != len(events) || len(rows) < 5 {
			t.Fatalf("%d rows for %d events", len(rows), len(events))
		}
		for i, row := range rows {
			if diff := cmp.Diff(cells(t, events[i]), row[:13]); diff != "" {
				t.Errorf("row %d (-json +csv):\n%s", i, diff)
			}
		}
		ofRequest := readCSV(t, d.send(t, trailPath+"?format=csv&outcome=done&request=-1-1", nil, owner).ok(http.StatusOK))
		if len(ofRequest) != 1 || ofRequest[0][2] != "tenant.update" {
			t.Errorf("the file of one request has %v", ofRequest)
		}
		whole := d.send(t, trailPath+"?format=csv", nil, owner).ok(http.StatusOK)
		if diff := cmp.Diff(rows, readCSV(t, whole)); diff != "" || whole.header.Get("Link") != "" {
			t.Errorf("in one piece, link %q:\n%s", whole.header.Get("Link"), diff)
		}
		d.send(t, "HEAD /api/v2/audit-events?format=csv", nil, owner).ok(http.StatusOK)
	})
}

// readCSV checks the format and returns the rows without the header.
func readCSV(t *testing.T, a answer) [][]string {
	t.Helper()
	names := "id,at,action,outcome,actorType,actorId,actorEmail,targetType,targetId,tenantId,ip,requestId,changes,actorName,targetName,targetEmail\r\n"
	if !strings.HasPrefix(string(a.body), names) || !strings.HasSuffix(string(a.body), "\r\n") {
		t.Errorf("the CSV is\n%s", a.body)
	}
	rows, err := csv.NewReader(strings.NewReader(string(a.body))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, cell := range slices.Concat(rows...) {
		if formula.MatchString(cell) {
			t.Errorf("%q is a formula", cell)
		}
	}
	return rows[1:]
}

var formula = regexp.MustCompile("^[=+@\t\r-]")

// nextLink returns the route of the next page, or "".
func (s *server) nextLink(t *testing.T, a answer) string {
	t.Helper()
	header := a.header.Get("Link")
	if header == "" {
		return ""
	}
	link, ok := strings.CutPrefix(header, "<"+s.base)
	link, ok2 := strings.CutSuffix(link, `>; rel="next"`)
	if !ok || !ok2 {
		t.Fatalf("Link is %q", header)
	}
	return "GET " + link
}

// cells returns the expected columns of an event, from id to changes.
func cells(t *testing.T, e m) []string {
	t.Helper()
	actor, target := e["actor"].(m), e["target"].(m)
	text := func(v any) string {
		s, _ := v.(string)
		if formula.MatchString(s) {
			s = "'" + s
		}
		return s
	}
	type change struct {
		Field string `json:"field"`
		From  string `json:"from"`
		To    string `json:"to"`
	}
	changes := []change{}
	all, _ := e["changes"].([]any)
	for _, c := range all {
		c := c.(m)
		changes = append(changes, change{c["field"].(string), c["from"].(string), c["to"].(string)})
	}
	asText, err := json.Marshal(changes)
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		text(e["id"]), text(e["at"]), text(e["action"]), text(e["outcome"]), text(actor["type"]), text(actor["id"]), text(actor["email"]),
		text(target["type"]), text(target["id"]), text(e["tenantId"]), text(e["ip"]), text(e["requestId"]), string(asText),
	}
}

func TestAuditWithoutDatabase(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		token := d.Tenant("Acme").Owner.Token()
		if err := d.Node.DB.Close(); err != nil {
			t.Fatal(err)
		}
		d.send(t, trailPath, nil, as(token)).fails(http.StatusServiceUnavailable, "unavailable")
		d.send(t, trailPath+"?format=csv", nil, as(token)).fails(http.StatusServiceUnavailable, "unavailable")
	})
}

// Repeated guesses, also during a delay, are recorded in few events with a count. With one
// event per attempt, anybody could fill the trail.
func TestAttemptsAreRecordedTogether(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		count := func(reason string) (events, sum int) {
			var some []m
			for _, e := range d.trail(t, acme.Owner, "?limit=200&action=session.refuse&target="+ann.ID) {
				if e["changes"].([]any)[0].(m)["to"] == reason {
					some = append(some, e)
				}
			}
			return len(some), countRefusals(some)
		}
		for range 2 {
			d.login(t, ann.Email, "wrong").fails(http.StatusUnauthorized, "invalid_credentials")
		}
		for range 30 {
			d.login(t, ann.Email, "wrong").fails(http.StatusTooManyRequests, "too_many_attempts")
			d.login(t, "nobody@acme.example", "wrong")
		}
		if events, wrong := count("invalid_credentials"); wrong != 2 {
			t.Errorf("%d wrong passwords are recorded in %d events, want 2", wrong, events)
		}
		if events, limited := count("too_many_attempts"); limited != 30 || events > 4 {
			t.Errorf("%d refusals for the limit are recorded in %d events, want 30 in few", limited, events)
		}
		d.Advance(61 * time.Second)
		d.login(t, ann.Email, "wrong").fails(http.StatusUnauthorized, "invalid_credentials")
		d.login(t, ann.Email, "wrong").fails(http.StatusTooManyRequests, "too_many_attempts")
		if _, limited := count("too_many_attempts"); limited != 31 {
			t.Errorf("a minute later %d refusals for the limit are recorded, want 31", limited)
		}
	}, doorwardtest.LoginLimits(2, 0))
}

// The CSV has the names and addresses of actor and target.
func TestNamesInTheCSVOfTheTrail(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		d.patchUser(t, acme.Owner, acme.Owner.ID, m{"name": "Olive"}).ok(http.StatusOK)
		d.patchUser(t, acme.Owner, ann.ID, m{"name": "Ann", "role": "VIEWER"}).ok(http.StatusOK)
		rows := readCSV(t, d.send(t, trailPath+"?format=csv&action=user.role", nil, as(acme.Owner.Token())).ok(http.StatusOK))
		if diff := cmp.Diff([]string{"Olive", "Ann", ann.Email}, rows[0][13:]); diff != "" || rows[0][6] != acme.Owner.Email {
			t.Errorf("by %s (-want +got):\n%s", rows[0][6], diff)
		}
		// The trail still has the name of a person who was removed.
		d.send(t, "DELETE /api/v2/users/"+ann.ID, nil, as(acme.Owner.Token())).ok(http.StatusOK)
		for _, row := range readCSV(t, d.send(t, trailPath+"?format=csv&target="+ann.ID, nil, as(acme.Owner.Token())).ok(http.StatusOK)) {
			if row[14] != "Ann" || row[15] != ann.Email {
				t.Errorf("%s is about %q, %q", row[2], row[14], row[15])
			}
		}
	})
}
