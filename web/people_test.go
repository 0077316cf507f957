package web_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/store/dbtest"
)

// page requests a page of a list and returns one member of each item, and the cursor
// of the next page.
func (s *server) page(t *testing.T, path, name string, opts ...opt) (values []string, next string) {
	t.Helper()
	a := s.send(t, "GET "+path, nil, opts...).ok(http.StatusOK)
	items, isList := a.at("items").([]any)
	if !isList {
		t.Fatalf("%s has no items: %s", path, a.body)
	}
	for _, item := range items {
		value, _ := item.(m)[name].(string)
		values = append(values, value)
	}
	return values, a.text("nextCursor")
}

// allPages reads all pages of a list and calls between before each page except the
// first.
func (s *server) allPages(t *testing.T, path, name string, limit int, between func(page int), opts ...opt) (values []string) {
	t.Helper()
	for cursor, n := "", 1; ; n++ {
		page, next := s.page(t, fmt.Sprintf("%s?limit=%d&cursor=%s", path, limit, cursor), name, opts...)
		if len(page) > limit || next != "" && len(page) < limit {
			t.Fatalf("page %d of %s has %d rows, with the limit %d and the cursor %q", n, path, len(page), limit, next)
		}
		values = append(values, page...)
		if next == "" {
			return values
		}
		cursor = next
		between(n)
	}
}

func (s *server) patchUser(t *testing.T, by *doorwardtest.Person, id string, body any, opts ...opt) answer {
	t.Helper()
	return s.send(t, "PATCH /api/v2/users/"+id, body, append(opts, as(by.Token()))...)
}

func (s *server) getUser(t *testing.T, by *doorwardtest.Person, id string) answer {
	t.Helper()
	return s.send(t, "GET /api/v2/users/"+id, nil, as(by.Token()))
}

func TestListUsers(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		d.Tenant("Globex").Join("else@globex.example", "USER")
		ann := acme.Join("ann@acme.example", "VIEWER")
		a := d.send(t, "GET /api/v2/users", nil, as(ann.Token())).ok(http.StatusOK).members("", "items", "total")
		items, _ := a.at("items").([]any)
		if len(items) != 2 || items[0].(m)["id"] != acme.Owner.ID || items[1].(m)["id"] != ann.ID {
			t.Fatalf("the people are %s", a.body)
		}
		want := m{"id": ann.ID, "email": ann.Email, "name": "", "role": "VIEWER", "status": "active"}
		got := items[1].(m)
		for _, instant := range []string{"createdAt", "lastLoginAt"} {
			if got[instant] == nil {
				t.Errorf("no %s in %v", instant, got)
			}
			delete(got, instant)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("a person in the list:\n%s", diff)
		}
		one := d.getUser(t, ann, acme.Owner.ID).ok(http.StatusOK).is("email", acme.Owner.Email).is("tenantName", "Acme")
		one.members("", "id", "email", "name", "role", "status", "tenantId", "tenantName", "permissions", "createdAt", "lastLoginAt")
	})
}

func TestUsersAreFiltered(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		people := map[string]*doorwardtest.Person{"owner": acme.Owner}
		for email, role := range map[string]string{"aenne@acme.example": "ADMIN", "bob+x@else.example": "USER", "zoe_100@else.example": "USER"} {
			people[email[:3]] = acme.Join(email, role)
		}
		d.patchUser(t, acme.Owner, people["aen"].ID, m{"name": "ÄNNE Strauß"}).ok(http.StatusOK)
		d.patchUser(t, acme.Owner, people["bob"].ID, m{"name": "Bo\u0308b", "status": "suspended"}).ok(http.StatusOK)
		const refused = "!" // in place of people: the filter is invalid
		for query, want := range map[string][]string{
			"":                           {"owner", "aen", "bob", "zoe"},
			"role=USER":                  {"bob", "zoe"},
			"role=VIEWER":                nil,
			"status=suspended":           {"bob"},
			"status=active&role=USER":    {"zoe"},
			"q=":                         {"owner", "aen", "bob", "zoe"},
			"q=änne":                     {"aen"},
			"q=ÄNNE+strau":               {"aen"},
			"q=BöB":                      {"bob"},
			"q=bo\u0308B":                {"bob"},
			"q=ELSE":                     {"bob", "zoe"},
			"q=%2Bx@":                    {"bob"},
			"q=_":                        {"zoe"},
			"q=%25":                      nil,
			"q=else.example&status=none": {refused},
			"role=owner":                 {refused},
			"role=USER&role=ADMIN":       {refused},
			"q=%00":                      {refused},
			"q=%FF":                      {refused},
		} {
			if slices.Contains(want, refused) {
				d.send(t, "GET /api/v2/users?"+query, nil, as(acme.Owner.Token())).fails(http.StatusUnprocessableEntity, "validation_failed")
				continue
			}
			var wanted []string
			for _, name := range want {
				wanted = append(wanted, people[name].ID)
			}
			got, _ := d.page(t, "/api/v2/users?"+query, "id", as(acme.Owner.Token()))
			slices.Sort(got)
			slices.Sort(wanted)
			if !slices.Equal(got, wanted) {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
	})
}

// While people join and leave, pages of any length show everybody who stays a member, and each
// person at most once.
func TestPagingWhilePeopleJoinAndLeave(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := as(acme.Owner.Token())
		stay := []string{acme.Owner.ID}
		var leave []*doorwardtest.Person
		for i := range 6 {
			p := acme.Join(fmt.Sprintf("p%d@acme.example", i), "VIEWER")
			if i%2 == 0 {
				leave = append(leave, p)
			} else {
				stay = append(stay, p.ID)
			}
		}
		for _, limit := range []int{1, 2, 3, 7, 200} {
			got := d.allPages(t, "/api/v2/users", "id", limit, func(page int) {
				if len(leave) > 0 && page == 1 {
					d.send(t, "DELETE /api/v2/users/"+leave[0].ID, nil, owner).ok(http.StatusOK)
					leave = leave[1:]
					acme.Join(fmt.Sprintf("late%d@acme.example", limit), "VIEWER")
				}
			}, owner)
			for _, id := range stay {
				if !slices.Contains(got, id) {
					t.Errorf("limit %d: %s is missing", limit, id)
				}
			}
			if slices.Sort(got); len(slices.Compact(got)) != len(got) {
				t.Errorf("limit %d: somebody is shown twice in %q", limit, got)
			}
		}
	})
}

// An unreadable filter is an error; it doesn't return the unfiltered list.
func TestMalformedQueries(t *testing.T) {
	t.Parallel()
	d := start(t)
	owner, key := as(d.Tenant("Acme").Owner.Token()), bearer(d.operatorKey(t))
	for path, who := range map[string]opt{
		"/api/v2/users": owner, "/api/v2/invitations": owner, "/api/v2/audit-events": owner, "/api/v2/tenants": key,
	} {
		for _, query := range []string{"q=%zz", "q=a;b", "limit=1&x=%", "%"} {
			d.send(t, "GET "+path+"?"+query, nil, who).fails(http.StatusBadRequest, "invalid_query")
		}
	}
}

// TestUnknownParameters: a misspelt filter doesn't return the unfiltered list, and a
// misspelt dryRun changes nothing.
func TestUnknownParameters(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, key := d.Tenant("Acme"), bearer(d.operatorKey(t))
		owner, bob := as(acme.Owner.Token()), acme.Join("bob@acme.example", "USER")
		for path, who := range map[string]opt{
			"/api/v2/users": owner, "/api/v2/invitations": owner, "/api/v2/audit-events": owner, "/api/v2/tenants": key,
		} {
			for _, query := range []string{"roel=ADMIN", "Role=ADMIN", "limit=1&x", "LIMIT=1", "limit=1&limit =2", "="} {
				query = strings.ReplaceAll(query, " ", "+")
				d.send(t, "GET "+path+"?"+query, nil, who).fails(http.StatusBadRequest, "invalid_query")
			}
			d.send(t, "GET "+path+"?limit=1&&", nil, who).ok(http.StatusOK)
		}
		bobPath := "/api/v2/users/" + bob.ID
		for _, query := range []string{"dryrun=true", "DryRun", "limit=1", "%zz"} {
			d.send(t, "PATCH "+bobPath+"?"+query, m{"status": "suspended"}, owner).fails(http.StatusBadRequest, "invalid_query")
			d.send(t, "DELETE "+bobPath+"/sessions?"+query, nil, owner).fails(http.StatusBadRequest, "invalid_query")
			d.send(t, "DELETE "+bobPath+"?"+query, nil, owner).fails(http.StatusBadRequest, "invalid_query")
		}
		for _, query := range []string{"dryRun", "dryRun=", "dryRun=True", "dryRun=true&dryRun=true"} {
			d.send(t, "PATCH "+bobPath+"?"+query, m{"status": "suspended"}, owner).fails(http.StatusUnprocessableEntity, "validation_failed")
			d.send(t, "DELETE "+bobPath+"?"+query, nil, owner).fails(http.StatusUnprocessableEntity, "validation_failed")
			d.send(t, "DELETE "+bobPath+"/sessions?"+query, nil, owner).fails(http.StatusBadRequest, "invalid_query")
		}
		d.send(t, "DELETE "+bobPath+"?dryRun", nil, as(bob.Token())).fails(http.StatusForbidden, "forbidden")
		d.send(t, "GET "+bobPath+"?x=1", nil, owner).ok(http.StatusOK).is("status", "active")
		d.send(t, "GET /api/v2/auth/session?x", nil, as(bob.Token())).ok(http.StatusOK)
	})
}

func TestLimitsOfPages(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, key := d.Tenant("Acme"), d.operatorKey(t)
		for path, who := range map[string]opt{
			"/api/v2/users": as(acme.Owner.Token()), "/api/v2/invitations": as(acme.Owner.Token()), "/api/v2/api-keys": as(acme.Owner.Token()), "/api/v2/tenants": bearer(key),
			hooksPath: as(acme.Owner.Token()),
		} {
			for limit, code := range map[string]string{
				"0": "out_of_range", "201": "out_of_range", "-1": "out_of_range", "99999999999999999999": "out_of_range", "x": "invalid", "1.5": "invalid", "1&limit=2": "invalid", "%00": "invalid",
			} {
				a := d.send(t, "GET "+path+"?limit="+limit, nil, who).fails(http.StatusUnprocessableEntity, "validation_failed")
				fault := a.at("errors").([]any)[0].(m)
				if fault["parameter"] != "limit" || fault["code"] != code || fault["pointer"] != nil {
					t.Errorf("%s: %v, want %s", a.route, fault, code)
				}
			}
			for _, limit := range []string{"1", "200", ""} {
				d.send(t, "GET "+path+"?limit="+limit, nil, who).ok(http.StatusOK)
			}
		}
	})
}

// A cursor is valid only for its own list with the same filters; the limit and
// unknown parameters may change.
func TestCursorsAreBoundToTheirList(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex, key := d.Tenant("Acme"), d.Tenant("Globex"), d.operatorKey(t)
		for _, tenant := range []*doorwardtest.Tenant{acme, globex} {
			admin := tenant.Join("admin@"+strings.ToLower(tenant.Name)+".example", "ADMIN")
			d.patchUser(t, tenant.Owner, admin.ID, m{"name": "Admin"}).ok(http.StatusOK)
			for i := range 2 {
				d.send(t, invitePath, m{"email": fmt.Sprintf("i%d@x.example", i), "role": "USER"}, as(tenant.Owner.Token())).ok(http.StatusCreated)
			}
		}
		owner, stranger := as(acme.Owner.Token()), as(globex.Owner.Token())
		_, cursor := d.page(t, "/api/v2/users?limit=1&status=active", "id", owner)
		refused := func(path, cursor string, who opt) {
			t.Helper()
			d.send(t, "GET "+path+url.QueryEscape(cursor), nil, who).fails(http.StatusBadRequest, "invalid_cursor")
		}
		for _, good := range []string{"limit=1&status=active", "status=active&limit=200", "q=&status=active&role="} {
			if ids, _ := d.page(t, "/api/v2/users?"+good+"&cursor="+cursor, "id", owner); len(ids) != 1 {
				t.Errorf("with the cursor, %s returns %q", good, ids)
			}
		}
		refused("/api/v2/users?status=active&cursor=", cursor, stranger)
		for _, other := range []string{"/api/v2/users?", "/api/v2/users?status=suspended&", "/api/v2/users?status=active&role=ADMIN&", "/api/v2/users?status=active&q=a&", "/api/v2/invitations?status=PENDING&", "/api/v2/invitations?", "/api/v2/api-keys?"} {
			refused(other+"cursor=", cursor, owner)
		}
		refused("/api/v2/tenants?cursor=", cursor, bearer(key))
		for i := range len(cursor) {
			other := "A"
			if cursor[i] == 'A' {
				other = "B"
			}
			refused("/api/v2/users?status=active&cursor=", cursor[:i]+other+cursor[i+1:], owner)
		}
		for _, malformed := range []string{"x", cursor + "A", cursor[:20], "=", strings.Repeat("A", 22), cursor + "="} {
			refused("/api/v2/users?status=active&cursor=", malformed, owner)
		}
		_, tenants := d.page(t, "/api/v2/tenants?limit=1", "id", bearer(key))
		refused("/api/v2/users?cursor=", tenants, owner)
		refused("/api/v2/tenants?cursor=", tenants[:len(tenants)-1], bearer(key))
	})
}

// An edit is atomic. Its answer has the numbers of sessions, keys and invitations that it ended.
func TestEditUser(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		d.invite(t, acme.Join("admin@acme.example", "ADMIN"), "sent@x.example", "USER")
		nothing := m{"sessions": 0.0, "apiKeys": 0.0, "invitations": 0.0}
		edit := func(body m) answer { t.Helper(); return d.patchUser(t, acme.Owner, ann.ID, body) }
		ended := func(a answer, want m) {
			t.Helper()
			if diff := cmp.Diff(want, a.at("ended")); diff != "" {
				t.Errorf("%s %s has ended:\n%s", a.route, a.sent, diff)
			}
		}
		ended(edit(m{}).ok(http.StatusOK).is("user.role", "USER"), nothing)
		a := edit(m{"role": "ADMIN"}).ok(http.StatusOK).is("user.role", "ADMIN").members("", "user", "ended")
		ended(a, nothing)
		if a.header.Get("X-Revocation-Nodes") != "1" || a.header.Get("X-Revocation-Ms") == "" || len(a.cookies()) > 0 {
			t.Errorf("a change of role is answered with the headers %v", a.header)
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).ok(http.StatusOK).is("user.role", "ADMIN")
		d.send(t, invitePath, m{"email": "by-ann@x.example", "role": "USER"}, as(ann.Token())).ok(http.StatusCreated)
		edit(m{"name": "  Änne  "}).ok(http.StatusOK).is("user.name", "Änne")
		edit(m{"name": ""}).ok(http.StatusOK).is("user.name", "")
		if a := edit(m{"name": ""}).ok(http.StatusOK); a.header.Get("X-Revocation-Nodes") != "" {
			t.Errorf("nothing was changed, and the answer has %v", a.header)
		}

		edit(m{"name": "\u200b"}).invalid("/name", "invalid")
		edit(m{"name": strings.Repeat("x", 101), "role": "VIEWER"}).invalid("/name", "out_of_range")
		edit(m{"name": "x", "role": "NONE", "status": "gone"}).invalid("/role", "invalid", "/status", "invalid")
		edit(m{"name": "x", "role": ""}).invalid("/role", "invalid")
		d.getUser(t, acme.Owner, ann.ID).is("role", "ADMIN").is("name", "")

		all := edit(m{"role": "VIEWER", "status": "suspended", "name": "Ann Lee"}).ok(http.StatusOK)
		all.is("user.role", "VIEWER").is("user.status", "suspended").is("user.name", "Ann Lee")
		ended(all, m{"sessions": 1.0, "apiKeys": 0.0, "invitations": 1.0})
		d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).fails(http.StatusUnauthorized, "unauthenticated")
		d.login(t, ann.Email, password).fails(http.StatusForbidden, "membership_suspended")
		ended(edit(m{"status": "suspended"}).ok(http.StatusOK), nothing)
		edit(m{"status": "active"}).ok(http.StatusOK).is("user.status", "active")
		d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).fails(http.StatusUnauthorized, "unauthenticated")
		ann.Login()
	})
}

// With If-Match, an edit applies only to the version that was read.
func TestEditUserIfMatch(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		etag := d.getUser(t, acme.Owner, ann.ID).ok(http.StatusOK).header.Get("ETag")
		match := func(name string, values ...string) answer {
			t.Helper()
			var opts []opt
			for _, v := range values {
				opts = append(opts, with("If-Match", v))
			}
			return d.patchUser(t, acme.Owner, ann.ID, m{"name": name}, opts...)
		}
		second := match("one", etag).ok(http.StatusOK).header.Get("ETag")
		if second == etag || second != d.getUser(t, acme.Owner, ann.ID).header.Get("ETag") {
			t.Errorf("the versions are %s and %s", etag, second)
		}
		unquoted := strings.Trim(second, `"`)
		for _, stale := range [][]string{{etag}, {"W/" + etag}, {`"` + unquoted + `-other"`}, {"w/" + second}, {unquoted}, {`"` + unquoted}, {""}, {`""`}, {`"x", ` + etag}, {etag, `"y"`}} {
			match("two", stale...).fails(http.StatusPreconditionFailed, "precondition_failed")
		}
		d.getUser(t, acme.Owner, ann.ID).is("name", "one")
		third := match("three", etag+" , "+second).ok(http.StatusOK).header.Get("ETag")
		fourth := match("four", etag, third).ok(http.StatusOK).header.Get("ETag")
		match("four", "*").ok(http.StatusOK)
		match("five", fourth).ok(http.StatusOK)
		// What proxies that compress the answer make of its ETag: nginx, Apache (mod_deflate, mod_brotli), Jetty, Tomcat, LiteSpeed.
		for i, form := range []string{`W/"%s"`, `"%s-gzip"`, `"%s-br"`, `W/"%s-gzip"`, `"%s--gzip"`, `"%s;gzip"`, `"%s;gz"`, `W/"%s+zstd"`} {
			now := strings.Trim(d.getUser(t, acme.Owner, ann.ID).header.Get("ETag"), `"`)
			match(fmt.Sprint("by proxy ", i), fmt.Sprintf(form, now)).ok(http.StatusOK)
		}
		if back := match("one").ok(http.StatusOK).header.Get("ETag"); back != second {
			t.Errorf("one state has the versions %s and %s", second, back)
		}
		d.send(t, "PATCH /api/v2/users/usr_x", m{"name": "x"}, as(acme.Owner.Token()), with("If-Match", "*")).fails(http.StatusNotFound, "not_found")
		remove := func(etag string) answer {
			t.Helper()
			return d.send(t, "DELETE /api/v2/users/"+ann.ID, nil, as(acme.Owner.Token()), with("If-Match", etag))
		}
		remove(etag).fails(http.StatusPreconditionFailed, "precondition_failed")
		remove(second).ok(http.StatusOK)
	})
}

func TestRemoveAndSignOutUser(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex, ann := d.inTwoTenants(t, "ADMIN", "USER")
		there := d.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": globex.ID}).ok(http.StatusOK).text("token")
		d.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": acme.ID}).ok(http.StatusOK)
		sent := d.invite(t, ann, "sent@x.example", "USER")
		end := func(path string, want m) {
			t.Helper()
			a := d.send(t, "DELETE /api/v2/users/"+ann.ID+path, nil, as(acme.Owner.Token())).ok(http.StatusOK).members("", "ended")
			if diff := cmp.Diff(want, a.at("ended")); diff != "" || len(a.cookies()) > 0 || a.header.Get("X-Revocation-Nodes") == "" {
				t.Errorf("%s has ended, with the headers %v:\n%s", a.route, a.header, diff)
			}
		}
		end("/sessions", m{"sessions": 2.0, "apiKeys": 0.0, "invitations": 0.0})
		end("/sessions", m{"sessions": 0.0, "apiKeys": 0.0, "invitations": 0.0})
		d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, "GET /api/v2/auth/session", nil, as(there)).ok(http.StatusOK)
		d.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": acme.ID}).ok(http.StatusOK)
		end("", m{"sessions": 1.0, "apiKeys": 0.0, "invitations": 1.0})
		d.complete(t, sent, password).fails(http.StatusGone, "invitation_revoked")
		d.send(t, "GET /api/v2/auth/session", nil, as(there)).ok(http.StatusOK)
		d.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": acme.ID}).fails(http.StatusUnauthorized, "invalid_credentials")
		d.addMember(t, acme, ann, "VIEWER") // and can be invited again
	})
}

// A dry run answers what would happen and changes nothing. It records no event, and its answer
// has no X-Revocation-Nodes and no cookie.
func TestDryRun(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "ADMIN")
		d.invite(t, ann, "sent@x.example", "USER")
		path := " /api/v2/users/" + ann.ID
		before, member := d.trail(t, acme.Owner, ""), d.send(t, "GET"+path, nil, as(acme.Owner.Token())).ok(http.StatusOK).body
		try := func(method string, body any) answer {
			t.Helper()
			a := d.send(t, method+path+"?dryRun=true", body, as(acme.Owner.Token())).ok(http.StatusOK)
			if len(a.cookies()) > 0 || a.header.Get("X-Revocation-Nodes") != "" {
				t.Errorf("%s changes nothing and answers with the headers %v", a.route, a.header)
			}
			return a
		}
		ends := m{"sessions": 1.0, "apiKeys": 0.0, "invitations": 1.0}
		for _, a := range []answer{try("DELETE", nil), try("PATCH", m{"status": "suspended", "role": "VIEWER", "name": "Gone"})} {
			if diff := cmp.Diff(ends, a.at("ended")); diff != "" {
				t.Errorf("%s would end:\n%s", a.route, diff)
			}
		}
		if got := try("PATCH", m{"role": "VIEWER"}).text("user.role"); got != "VIEWER" {
			t.Errorf("the role would be %q, want VIEWER", got)
		}
		if diff := cmp.Diff(before, d.trail(t, acme.Owner, "")); diff != "" {
			t.Errorf("a dry run is in the trail:\n%s", diff)
		}
		if got := d.send(t, "GET"+path, nil, as(acme.Owner.Token())).ok(http.StatusOK).body; !bytes.Equal(got, member) {
			t.Errorf("after it the member is %s, before it was %s", got, member)
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).ok(http.StatusOK)

		ownerPath := " /api/v2/users/" + acme.Owner.ID
		d.send(t, "DELETE"+ownerPath+"?dryRun=true", nil, as(acme.Owner.Token())).fails(http.StatusConflict, "last_owner")
		d.send(t, "DELETE"+ownerPath+"?dryRun=true", nil, as(ann.Token())).fails(http.StatusForbidden, "forbidden")
		d.send(t, "DELETE"+path+"?dryRun=yes", nil, as(acme.Owner.Token())).fails(http.StatusUnprocessableEntity, "validation_failed")
		d.send(t, "DELETE"+path+"?dryRun=false", nil, as(acme.Owner.Token())).ok(http.StatusOK)
		d.send(t, "GET"+path, nil, as(acme.Owner.Token())).fails(http.StatusNotFound, "not_found")
	})
}

// An operation that ends the caller's own session deletes the cookie.
func TestActingOnOneself(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		const cleared = "JSESSIONID=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"
		for i, action := range []struct {
			method, path string
			body         any
			endsOwn      bool
		}{
			{"DELETE", "/sessions", nil, true},
			{"PATCH", "", m{"status": "suspended"}, true},
			{"PATCH", "", m{"status": "suspended", "role": "VIEWER", "name": "Gone"}, true},
			{"PATCH", "", m{"role": "USER", "name": "Less"}, false},
			{"DELETE", "", nil, true},
		} {
			self := acme.Join(fmt.Sprintf("self%d@acme.example", i), "OWNER")
			a := d.send(t, action.method+" /api/v2/users/"+self.ID+action.path, action.body, as(self.Token())).ok(http.StatusOK)
			if got := cookieNamed(a, "JSESSIONID"); (got == cleared) != action.endsOwn {
				t.Errorf("%s %v: the cookie is %q", a.route, action.body, got)
			}
			want := http.StatusOK
			if action.endsOwn {
				want = http.StatusUnauthorized
			}
			d.send(t, "GET /api/v2/auth/session", nil, as(self.Token())).ok(want)
		}
	})
}

// A person of another tenant gets the answer for an unknown id.
func TestForeignPeopleAreAbsent(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		admin, bob := acme.Join("admin@acme.example", "ADMIN"), globex.Join("bob@globex.example", "OWNER")
		for _, route := range []string{"GET /api/v2/users/%s", "PATCH /api/v2/users/%s", "DELETE /api/v2/users/%s", "DELETE /api/v2/users/%s/sessions"} {
			var body any
			if strings.HasPrefix(route, "PATCH") {
				body = m{"role": "OWNER", "name": strings.Repeat("x", 101)}
			}
			for _, by := range []*doorwardtest.Person{acme.Owner, admin} {
				refusal := func(id string) (string, http.Header) {
					t.Helper()
					a := d.send(t, fmt.Sprintf(route, id), body, as(by.Token()), with("X-Request-Id", "one")).fails(http.StatusNotFound, "not_found")
					a.header.Del("Date")
					a.header.Del("X-Revocation-Ms") // how long it took
					a.header.Del("Content-Length")
					return strings.ReplaceAll(a.withoutIDs(), id, "ID"), a.header
				}
				text, header := refusal("usr_aaaaaaaaaaaaaaaaaaaaaaaaaa")
				for _, id := range []string{bob.ID, "usr_x", "x", "inv_x", "usr_%00"} {
					got, gotHeader := refusal(id)
					if got != text {
						t.Errorf("%s %s: the answers for a foreign and an unknown person differ:\n%s\n%s", route, id, got, text)
					}
					if diff := cmp.Diff(header, gotHeader); id == bob.ID && diff != "" {
						t.Errorf("%s: the headers differ:\n%s", route, diff)
					}
				}
			}
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(bob.Token())).ok(http.StatusOK).is("user.role", "OWNER")
	})
}

// No operation can leave a tenant without an active OWNER.
func TestNoOperationRemovesTheLastOwner(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := acme.Owner
		other := acme.Join("other@acme.example", "OWNER")
		d.suspend(t, acme.ID, other.ID)
		path := "/api/v2/users/" + owner.ID
		for _, body := range []m{{"role": "ADMIN"}, {"status": "suspended"}, {"name": "x", "role": "USER"}, {"role": "VIEWER", "status": "suspended", "name": "x"}} {
			d.send(t, "PATCH "+path, body, as(owner.Token())).fails(http.StatusConflict, "last_owner")
		}
		d.send(t, "DELETE "+path, nil, as(owner.Token())).fails(http.StatusConflict, "last_owner")
		d.send(t, "DELETE /api/v2/auth/memberships/"+acme.ID, nil, as(owner.Token())).fails(http.StatusConflict, "last_owner")
		d.getUser(t, owner, owner.ID).is("role", "OWNER").is("status", "active").is("name", "")
		d.send(t, "DELETE "+path+"/sessions", nil, as(owner.Token())).ok(http.StatusOK) // ending sessions keeps the membership
		owner.Login()
		d.patchUser(t, owner, other.ID, m{"status": "active"}).ok(http.StatusOK)
		d.patchUser(t, owner, owner.ID, m{"role": "VIEWER"}).ok(http.StatusOK)
		other.Login()
		d.patchUser(t, other, other.ID, m{"role": "ADMIN"}).fails(http.StatusConflict, "last_owner")
		d.patchUser(t, owner, other.ID, m{"role": "ADMIN"}).fails(http.StatusForbidden, "forbidden")
	})
}

// A change is effective on the other node when it is answered.
func TestAdministrationHoldsOnTheOtherNode(t *testing.T) {
	t.Parallel()
	here := start(t, doorwardtest.Database(dbtest.Postgres(t)))
	there := start(t, doorwardtest.NodeOf(here.Server))
	acme := here.Tenant("Acme")
	ann := acme.Join("ann@acme.example", "VIEWER")
	check := func(action string) int {
		t.Helper()
		return there.send(t, "GET /api/v2/access/check?action="+action, nil, as(ann.Token())).status
	}
	for range 2 {
		check("message.read") // caches the session on the other node
		a := here.patchUser(t, acme.Owner, ann.ID, m{"role": "USER"}).ok(http.StatusOK)
		if nodes := a.header.Get("X-Revocation-Nodes"); nodes != "2" {
			t.Fatalf("X-Revocation-Nodes is %q", nodes)
		}
		if got := check("message.send"); got != http.StatusOK {
			t.Fatalf("a USER's check is answered %d", got)
		}
		here.patchUser(t, acme.Owner, ann.ID, m{"role": "VIEWER"}).ok(http.StatusOK)
		if got := check("message.send"); got != http.StatusForbidden {
			t.Fatalf("a VIEWER's check is answered %d", got)
		}
		here.send(t, "DELETE /api/v2/users/"+ann.ID+"/sessions", nil, as(acme.Owner.Token())).ok(http.StatusOK)
		if got := check("message.read"); got != http.StatusUnauthorized {
			t.Fatalf("an ended session's check is answered %d", got)
		}
		ann.Login()
		check("message.read")
		here.patchUser(t, acme.Owner, ann.ID, m{"status": "suspended"}).ok(http.StatusOK)
		if got := check("message.read"); got != http.StatusUnauthorized {
			t.Fatalf("a suspended person's check is answered %d", got)
		}
		here.patchUser(t, acme.Owner, ann.ID, m{"status": "active"}).ok(http.StatusOK)
		ann.Login()
	}
	check("message.read")
	here.send(t, "DELETE /api/v2/users/"+ann.ID, nil, as(acme.Owner.Token())).ok(http.StatusOK)
	if got := check("message.read"); got != http.StatusUnauthorized {
		t.Fatalf("a removed person's check is answered %d", got)
	}
}
