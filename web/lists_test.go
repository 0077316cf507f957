package web_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/doorwardtest"
)

// outcomesOf returns the status and the code of each item.
func outcomesOf(a answer) (got []string) {
	items, _ := a.at("items").([]any)
	for _, item := range items {
		problem, _ := item.(m)["problem"].(m)
		code, _ := problem["code"].(string)
		got = append(got, strings.TrimSpace(fmt.Sprint(item.(m)["status"], " ", code)))
	}
	return got
}

func wantOutcomes(t *testing.T, a answer, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, outcomesOf(a)); diff != "" {
		t.Errorf("the outcomes:\n%s\n%s", diff, a.body)
	}
}

func TestListsSearchAndSort(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := as(acme.Owner.Token())
		for n, name := range []string{"Zoë Straße", "Jürgen Müller", "Carla Haddad", "Élodie"} {
			p := acme.Join(fmt.Sprintf("p%d@acme.example", n), "USER")
			d.patchUser(t, acme.Owner, p.ID, m{"name": name}).ok(http.StatusOK)
			d.sendInvitation(t, acme.Owner, fmt.Sprintf("i%d@acme.example", n), []string{"USER", "VIEWER"}[n%2], 3)
		}
		for query, want := range map[string][]string{
			"role=USER&sort=name":                 {"Carla Haddad", "Élodie", "Jürgen Müller", "Zoë Straße"},
			"role=USER&sort=-name":                {"Zoë Straße", "Jürgen Müller", "Élodie", "Carla Haddad"},
			"role=USER&sort=-createdAt":           {"Élodie", "Carla Haddad", "Jürgen Müller", "Zoë Straße"},
			"role=USER&sort=email":                {"Zoë Straße", "Jürgen Müller", "Carla Haddad", "Élodie"},
			"q=muller":                            {"Jürgen Müller"},
			"q=strasse":                           {"Zoë Straße"},
			"q=" + url.QueryEscape(" HADDAD car"): {"Carla Haddad"},
			"q=elodie":                            {"Élodie"},
		} {
			got, _ := d.page(t, "/api/v2/users?"+query, "name", owner)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s:\n%s", query, diff)
			}
			if a := d.send(t, "GET /api/v2/users?"+query+"&limit=1", nil, owner).ok(http.StatusOK); a.at("total") != float64(len(want)) || a.at("totalAtLeast") != nil {
				t.Errorf("%s has the total %v, want %d", query, a.at("total"), len(want))
			}
		}
		for _, list := range []string{"users", "invitations", "api-keys", "audit-events", "policy/versions", "sessions", "auth/memberships", "auth/factors", "roles", "users/" + acme.Owner.ID + "/sessions"} {
			d.send(t, "GET /api/v2/"+list+"?sort=size", nil, owner).fails(http.StatusUnprocessableEntity, "validation_failed")
			d.send(t, "GET /api/v2/"+list+"?srot=name", nil, owner).fails(http.StatusBadRequest, "invalid_query")
			if d.send(t, "GET /api/v2/"+list, nil, owner).ok(http.StatusOK).at("total") == nil {
				t.Errorf("%s has no total", list)
			}
		}
		cursor := d.send(t, "GET /api/v2/users?sort=name&limit=1", nil, owner).ok(http.StatusOK).text("nextCursor")
		d.send(t, "GET /api/v2/users?sort=-name&limit=1&cursor="+cursor, nil, owner).fails(http.StatusBadRequest, "invalid_cursor")
		d.send(t, "GET /api/v2/users?limit=1&cursor="+cursor, nil, owner).fails(http.StatusBadRequest, "invalid_cursor")
		if got := d.allPages(t, "/api/v2/users", "name", 1, func(int) {}, owner); len(got) != 5 {
			t.Errorf("%d people in pages of one, want 5", len(got))
		}
		for query, want := range map[string]int{"role=VIEWER": 2, "q=i3": 1, "q=I3&role=USER": 0, "status=PENDING&sort=email": 4} {
			if got, _ := d.page(t, "/api/v2/invitations?"+query, "email", owner); len(got) != want {
				t.Errorf("%s finds %v, want %d", query, got, want)
			}
		}
		d.send(t, "GET /api/v2/invitations?role=NONE", nil, owner).fails(http.StatusUnprocessableEntity, "validation_failed")
	})
}

// Lists that the server reads in full and splits in memory (front.PageOf) have pages like all
// others. No row is skipped when the one before it is deleted between two pages.
func TestShortListsHavePages(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "ADMIN")
		d.addMember(t, d.Tenant("Globex"), ann, "USER")
		ann.Login() // a second session
		by := as(ann.Login())
		hook, _ := d.newHook(t, newEndpoint(t).URL, by, m{"events": []string{"role.*"}})
		d.newHook(t, newEndpoint(t).URL, by, nil)
		for n := range 3 {
			d.send(t, "POST /api/v2/roles", m{"name": fmt.Sprint("ROLE_", n), "permissions": []string{"user.read"}}, by).ok(http.StatusCreated)
		}
		for n := range 2 {
			d.send(t, "POST "+domainsPath, m{"domain": fmt.Sprintf("n%d.example", n)}, as(acme.Owner.Token())).ok(http.StatusCreated)
		}
		d.enrolTOTP(t, ann.Token())
		annsSessions := "/api/v2/users/" + ann.ID + "/sessions"
		for path, rows := range map[string]int{
			"/api/v2/sessions": 3, annsSessions: 3, "/api/v2/auth/factors": 1, "/api/v2/roles": 7, hooksPath: 2, hooksPath + "/" + hook + "/deliveries": 3, domainsPath: 2,
		} {
			who := by
			if path == annsSessions || path == domainsPath {
				who = as(acme.Owner.Token())
			}
			want, _ := d.page(t, path, "id", who)
			if len(want) != rows {
				t.Errorf("%s has %d rows, want %d", path, len(want), rows)
			}
			if diff := cmp.Diff(want, d.allPages(t, path, "id", 1, func(int) {}, who)); diff != "" {
				t.Errorf("%s in pages (-whole +pages):\n%s", path, diff)
			}
			if total := d.send(t, "GET "+path+"?limit=1", nil, who).ok(http.StatusOK).at("total"); total != float64(rows) {
				t.Errorf("%s has the total %v, want %d", path, total, rows)
			}
			d.send(t, "GET "+path+"?sort=size", nil, who).fails(http.StatusUnprocessableEntity, "validation_failed")
			d.send(t, "GET "+path+"?limit=0", nil, who).fails(http.StatusUnprocessableEntity, "validation_failed")
			d.send(t, "GET "+path+"?cursor=none", nil, who).fails(http.StatusBadRequest, "invalid_cursor")
		}
		if got := d.allPages(t, "/api/v2/auth/memberships", "tenantId", 1, func(int) {}, by); len(got) != 2 {
			t.Errorf("the memberships in pages are %q", got)
		}
		d.send(t, "GET /api/v2/auth/memberships?cursor=none", nil, by).fails(http.StatusBadRequest, "invalid_cursor")
		owner := as(acme.Owner.Token())
		want, _ := d.page(t, annsSessions, "id", owner)
		got := d.allPages(t, annsSessions, "id", 1, func(page int) {
			if page == 1 {
				d.send(t, "DELETE "+annsSessions+"/"+want[0], nil, owner).ok(http.StatusNoContent)
			}
		}, owner)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the sessions when the first is deleted after its page (-whole +pages):\n%s", diff)
		}
	})
}

// Invitations of one bulk request are listed in its order, over several pages, too.
func TestListsKeepTheOrderOfABulkRequest(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := as(d.Tenant("Acme").Owner.Token())
		var want []string
		var invitations []m
		for n := range 20 {
			want = append(want, fmt.Sprintf("i%d@acme.example", n))
			invitations = append(invitations, m{"email": want[n], "role": "USER"})
		}
		d.send(t, "POST /api/v2/auth/invite/bulk", m{"invitations": invitations}, owner).ok(http.StatusOK)
		got, next := d.page(t, "/api/v2/invitations?status=PENDING&sort=createdAt&limit=11", "email", owner)
		rest, _ := d.page(t, "/api/v2/invitations?status=PENDING&sort=createdAt&limit=11&cursor="+next, "email", owner)
		if diff := cmp.Diff(want, append(got, rest...)); diff != "" {
			t.Errorf("the order of the invitations (-want +got):\n%s", diff)
		}
	})
}

// TestFaultsOfFilters: all faults are answered, in one order, however often it is asked.
func TestFaultsOfFilters(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := as(d.Tenant("Acme").Owner.Token())
		for range 20 {
			a := d.send(t, "GET /api/v2/users?q=%00&factor=x&factor=y&status=%FF&role=%00", nil, owner).ok(http.StatusUnprocessableEntity)
			if got := fmt.Sprint(parametersOf(a)); got != "[role status factor q]" {
				t.Fatalf("the faults are at %s", got)
			}
		}
	})
}

// parametersOf returns the parameters with a fault.
func parametersOf(a answer) (all []any) {
	for _, fault := range a.at("errors").([]any) {
		all = append(all, fault.(m)["parameter"])
	}
	return all
}

func TestListsAsCSV(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := as(acme.Owner.Token())
		bob := acme.Join("bob@acme.example", "USER")
		d.patchUser(t, acme.Owner, bob.ID, m{"name": "=HYPERLINK(\"x\")"}).ok(http.StatusOK)
		d.sendInvitation(t, acme.Owner, "cat@acme.example", "USER", 3)
		read := func(path string) [][]string {
			a := d.send(t, "GET "+path, nil, owner).ok(http.StatusOK)
			rows, err := csv.NewReader(bytes.NewReader(a.body)).ReadAll()
			if err != nil || !strings.HasPrefix(a.header.Get("Content-Type"), "text/csv") {
				t.Fatalf("%s: %v %v", path, err, a.header)
			}
			return rows
		}
		marked := d.send(t, "GET /api/v2/users?format=spreadsheet&role=USER", nil, owner).ok(http.StatusOK)
		if plain := d.send(t, "GET /api/v2/users?format=csv&role=USER", nil, owner).ok(http.StatusOK); string(marked.body) != "\ufeff"+string(plain.body) {
			t.Errorf("a spreadsheet gets %.20q", marked.body)
		}
		people := read("/api/v2/users?format=csv&role=USER")
		if len(people) != 2 || people[1][0] != bob.ID || people[1][2] != "'=HYPERLINK(\"x\")" {
			t.Errorf("the people are %q", people)
		}
		if invited := read("/api/v2/invitations?format=csv&q=cat"); len(invited) != 2 || invited[1][1] != "cat@acme.example" || invited[1][4] != "PENDING" {
			t.Errorf("the invitations are %q", invited)
		}
		_, key := d.newKey(t, acme.Owner, m{"role": "ADMIN", "permissions": []string{"user.read", "user.invite", "audit.read"}})
		d.Advance(15 * time.Minute)
		for _, list := range []string{"users", "invitations", "audit-events"} {
			d.send(t, "GET /api/v2/"+list, nil, owner).ok(http.StatusOK)
			d.send(t, "GET /api/v2/"+list+"?format=csv", nil, owner).fails(http.StatusForbidden, "step_up_required")
			d.send(t, "GET /api/v2/"+list+"?format=csv", nil, bearer(key)).ok(http.StatusOK)
		}
	})
}

func TestBulkOfPeople(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, foreigner := d.Tenant("Acme"), d.Tenant("Globex").Join("else@globex.example", "USER")
		admin := acme.Join("admin@acme.example", "ADMIN")
		var ids []string
		var people []*doorwardtest.Person
		for n := range 3 {
			people = append(people, acme.Join(fmt.Sprintf("p%d@acme.example", n), "USER"))
			ids = append(ids, people[n].ID)
		}
		token := people[0].Token()
		bulk := func(by *doorwardtest.Person, body m) answer {
			t.Helper()
			return d.send(t, "POST /api/v2/users/bulk", body, as(by.Token()))
		}
		mixed := append(slices.Clone(ids), acme.Owner.ID, foreigner.ID, "none")
		wantOutcomes(t, bulk(admin, m{"ids": mixed, "status": "suspended"}).ok(http.StatusOK),
			"200", "200", "200", "403 forbidden", "404 not_found", "404 not_found")
		d.send(t, "GET /api/v2/auth/session", nil, as(token)).fails(http.StatusUnauthorized, "unauthenticated")
		wantOutcomes(t, bulk(admin, m{"ids": ids, "status": "active"}).ok(http.StatusOK), "200", "200", "200")
		wantOutcomes(t, bulk(admin, m{"ids": ids, "role": "VIEWER"}).ok(http.StatusOK), "200", "200", "200")
		wantOutcomes(t, bulk(acme.Owner, m{"ids": []string{acme.Owner.ID, ids[0]}, "role": "USER"}).ok(http.StatusOK), "409 last_owner", "200")
		wantOutcomes(t, bulk(admin, m{"ids": []string{ids[2], ids[2]}, "remove": true}).ok(http.StatusOK), "200", "404 not_found")
		bulk(admin, m{"ids": ids}).invalid("/role", "required")
		bulk(admin, m{"ids": ids, "role": "USER", "remove": true}).invalid("/role", "invalid")
		bulk(admin, m{"ids": ids, "role": "NONE"}).invalid("/role", "invalid")
		bulk(admin, m{"ids": make([]string, 101), "remove": true}).invalid("/ids", "out_of_range")
		events, _ := d.page(t, "/api/v2/audit-events?action=user.suspend", "outcome", as(acme.Owner.Token()))
		slices.Sort(events)
		if diff := cmp.Diff([]string{"done", "done", "done"}, events); diff != "" {
			t.Errorf("the trail has:\n%s", diff)
		}
	})
}

func TestBulkOfInvitations(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		admin := acme.Join("admin@acme.example", "ADMIN")
		var ids []string
		for n, role := range []string{"USER", "VIEWER", "OWNER"} {
			ids = append(ids, d.sendInvitation(t, acme.Owner, fmt.Sprintf("i%d@acme.example", n), role, 3).text("id"))
		}
		ids = append(ids, "inv_none")
		bulk := func(action string) answer {
			t.Helper()
			return d.send(t, "POST /api/v2/invitations/"+action, m{"ids": ids}, as(admin.Token())).ok(http.StatusOK)
		}
		d.Advance(2 * time.Minute)
		wantOutcomes(t, bulk("resend"), "200", "200", "403 forbidden", "404 not_found")
		wantOutcomes(t, bulk("resend"), "429 resend_too_soon", "429 resend_too_soon", "403 forbidden", "404 not_found")
		wantOutcomes(t, bulk("revoke"), "204", "204", "403 forbidden", "404 not_found")
		wantOutcomes(t, bulk("revoke"), "409 invitation_not_pending", "409 invitation_not_pending", "403 forbidden", "404 not_found")
	})
}

func TestSessionsOfAPerson(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		bob := acme.Join("bob@acme.example", "USER")
		d.addMember(t, globex, bob, "USER")
		admin := as(acme.Join("admin@acme.example", "ADMIN").Token())
		login := func(tenantID string) string {
			return d.send(t, loginPath, m{"email": bob.Email, "password": password, "tenantId": tenantID}).ok(http.StatusOK).text("token")
		}
		first, second := bob.Token(), login(acme.ID)
		elsewhere := login(globex.ID)
		path := "/api/v2/users/" + bob.ID + "/sessions"
		ids, _ := d.page(t, path+"?sort=createdAt", "id", admin)
		if len(ids) < 2 {
			t.Fatalf("the sessions are %v", ids)
		}
		foreign := d.send(t, "GET /api/v2/auth/session", nil, as(elsewhere)).ok(http.StatusOK).text("session.id")
		own := d.send(t, "GET /api/v2/auth/session", nil, as(second)).ok(http.StatusOK).text("session.id")
		if slices.Contains(ids, foreign) || !slices.Contains(ids, own) {
			t.Errorf("the sessions are %v", ids)
		}
		d.send(t, "DELETE "+path+"/"+foreign, nil, admin).fails(http.StatusNotFound, "not_found")
		d.send(t, "DELETE "+path+"/"+own, nil, admin).ok(http.StatusNoContent)
		d.send(t, "DELETE "+path+"/"+own, nil, admin).fails(http.StatusNotFound, "not_found")
		d.send(t, "GET /api/v2/auth/session", nil, as(second)).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, "GET /api/v2/auth/session", nil, as(first)).ok(http.StatusOK)
		d.send(t, "GET /api/v2/users/"+acme.Owner.ID+"/sessions", nil, admin).fails(http.StatusForbidden, "forbidden")
		d.send(t, "GET /api/v2/users/"+acme.Owner.ID+"/sessions?sort=none", nil, as(acme.Owner.Token())).fails(http.StatusUnprocessableEntity, "validation_failed")
		d.send(t, "GET "+path, nil, as(first)).fails(http.StatusForbidden, "forbidden")
		if events, _ := d.page(t, "/api/v2/audit-events?action=user.signout", "id", as(acme.Owner.Token())); len(events) != 1 {
			t.Errorf("%d sign-outs are in the trail, want 1", len(events))
		}
	})
}
