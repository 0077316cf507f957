package web_test

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
)

const feedPath = "GET /api/v2/events"

// feed returns the events that the query asks for, and the cursor after them.
func (s *server) feed(t *testing.T, query string, opts ...opt) (events []m, next string) {
	t.Helper()
	a := s.send(t, feedPath+query, nil, opts...).ok(http.StatusOK)
	items, _ := a.at("items").([]any)
	for _, item := range items {
		events = append(events, item.(m))
	}
	return events, a.text("nextCursor")
}

func TestFeedWithinATenant(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, zeta := d.Tenant("Acme"), d.Tenant("Zeta")
		ann := acme.Join("ann@acme.example", "ADMIN")
		bob := acme.Join("bob@acme.example", "USER")
		all, next := d.feed(t, "", as(acme.Owner.Token()))
		for i, e := range all {
			if e["seq"] != float64(i+1) || e["tenantId"] != acme.ID {
				t.Fatalf("event %d is %v", i, e)
			}
		}
		if next != strconv.Itoa(len(all)) || all[0]["action"] != "tenant.create" {
			t.Errorf("%d events, the first %v, then %s", len(all), all[0], next)
		}
		d.patchUser(t, ann, bob.ID, m{"role": "VIEWER"}).ok(http.StatusOK)
		_, key := d.newKey(t, acme.Owner, m{"name": "Log", "role": "ADMIN", "permissions": []string{"audit.read"}})
		service := []opt{bearer(d.serviceKey(t, []doorward.Action{doorward.AuditRead})), inTenant(acme.ID)}
		for _, opts := range [][]opt{{as(ann.Token())}, {bearer(key)}, service} {
			got, last := d.feed(t, "?after="+next+"&types=user.*", opts...)
			if len(got) != 1 || got[0]["action"] != "user.role" {
				t.Errorf("after %s: %v", next, got)
			}
			none, end := d.feed(t, "?types=session.refuse&after="+last, opts...)
			if len(none) != 0 || end != last {
				t.Errorf("at the end: %v, then %s, want %s", none, end, last)
			}
		}
		if got, _ := d.feed(t, "?limit=2", as(zeta.Owner.Token())); len(got) != 2 || got[0]["tenantId"] != zeta.ID {
			t.Errorf("Zeta's feed is %v", got)
		}
		d.send(t, feedPath, nil, as(bob.Token())).fails(http.StatusForbidden, "forbidden")
		d.checkFeedRefusals(t, as(ann.Token()))
	})
}

func (s *server) checkFeedRefusals(t *testing.T, who opt) {
	t.Helper()
	for query, parameter := range map[string]string{
		"?after=x": "after", "?after=-1": "after", "?after=1&after=2": "after", "?types=user": "types", "?types=user.*,": "types", "?limit=x": "limit",
	} {
		a := s.send(t, feedPath+query, nil, who).fails(http.StatusUnprocessableEntity, "validation_failed")
		if got := a.at("errors").([]any)[0].(m)["parameter"]; got != parameter {
			t.Errorf("%s: the fault is of %q", query, got)
		}
	}
	s.send(t, feedPath+"?limit=201", nil, who).fails(http.StatusUnprocessableEntity, "validation_failed")
	s.send(t, feedPath+"?cursor=1", nil, who).fails(http.StatusBadRequest, "invalid_query")
	s.send(t, feedPath+"?after=100000", nil, who).fails(http.StatusGone, "events_gone")
}

func TestFeedOfAllTenants(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, zeta := d.Tenant("Acme"), d.Tenant("Zeta")
		permissions := []doorward.Action{doorward.ServiceEventsRead}
		forAll, forZeta := bearer(d.serviceKey(t, permissions)), bearer(d.serviceKey(t, permissions, zeta.ID))
		all, next := d.feed(t, "?limit=200", forAll)
		seen := map[any]int{}
		for _, e := range all {
			seen[e["tenantId"]]++
		}
		if seen[acme.ID] == 0 || seen[zeta.ID] == 0 || seen[""] != 0 {
			t.Errorf("events of tenants: %v", seen)
		}
		some, _ := d.feed(t, "", forZeta)
		for _, e := range some {
			if e["tenantId"] != zeta.ID {
				t.Errorf("a key for Zeta sees %v", e)
			}
		}
		if len(some) != seen[zeta.ID] {
			t.Errorf("a key for Zeta sees %d events, want %d", len(some), seen[zeta.ID])
		}
		ann := acme.Join("ann@acme.example", "USER")
		d.patchUser(t, acme.Owner, ann.ID, m{"role": "VIEWER"}).ok(http.StatusOK)
		got, _ := d.feed(t, "?types=user.role&after="+url.QueryEscape(next), forAll)
		if len(got) != 1 || got[0]["target"].(m)["id"] != ann.ID {
			t.Errorf("after the cursor: %v", got)
		}
		d.send(t, feedPath+"?after="+next[:len(next)-1]+"!", nil, forAll).fails(http.StatusBadRequest, "invalid_cursor")
		d.send(t, feedPath+"?after=1", nil, forAll).fails(http.StatusBadRequest, "invalid_cursor")
		d.send(t, feedPath, nil, forAll, inTenant(acme.ID)).fails(http.StatusForbidden, "forbidden") // the feed of one tenant needs audit.read
		d.send(t, feedPath, nil, bearer(d.operatorKey(t))).fails(http.StatusForbidden, "forbidden")
		d.checkFeedPages(t, forAll, acme)
	})
}

// checkFeedPages requires that pages of one event each add up to the feed, and end at its cursor.
func (s *server) checkFeedPages(t *testing.T, forAll opt, acme *doorwardtest.Tenant) {
	t.Helper()
	all, end := s.feed(t, "?limit=200", forAll)
	next := ""
	for i := range all {
		var one []m
		if one, next = s.feed(t, "?limit=1&after="+next, forAll); len(one) != 1 || one[0]["id"] != all[i]["id"] {
			t.Fatalf("page %d is %v, want %v", i, one, all[i])
		}
	}
	s.patchUser(t, acme.Owner, acme.Owner.ID, m{"name": "Olive"}).ok(http.StatusOK)
	a, _ := s.feed(t, "?after="+next, forAll)
	b, _ := s.feed(t, "?after="+end, forAll)
	if len(a) != 1 || len(b) != 1 || a[0]["id"] != b[0]["id"] {
		t.Errorf("after the last page: %v and %v", a, b)
	}
}
