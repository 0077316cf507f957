package web_test

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/key"
)

// limitedKey creates an operator key with the listed permissions, or with all if none is listed.
// It expires after the duration, or never if that is 0.
func (s *server) limitedKey(t *testing.T, expires time.Duration, may ...string) opt {
	t.Helper()
	made, err := s.Node.App.Keys.CreateLimitedOperator(t.Context(), doorward.OperatorAtTerminal(), key.OperatorDraft{Name: "limited", Expires: expires, May: may})
	if err != nil {
		t.Fatal(err)
	}
	return bearer(made)
}

// A limited operator key may do what its permissions allow and nothing else. An expired key is
// answered 401.
func TestLimitedOperatorKeys(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		tenant := "PATCH /api/v2/tenants/" + acme.ID
		requests := []struct {
			may, route string
			body       any
		}{
			{"tenant.list", "GET /api/v2/tenants", nil},
			{"tenant.create", "POST /api/v2/tenants", m{"name": "Zeta", "ownerEmail": "zoe@zeta.example"}},
			{"tenant.quota", tenant, m{"quotas": m{"people": 9}}},
			{"tenant.status", tenant, m{"status": "frozen"}},
			{"tenant.close", tenant, m{"status": "closing"}},
			{"access.introspect", "POST /api/v2/access/introspect", m{"credential": "none"}},
			{"access.evaluate", evaluationPath, question(entity("user", acme.Owner.ID), "message.read", entity("tenant", acme.ID))},
			{"model.read", "GET /api/v2/model", nil},
			{"webhook.manage", "GET /api/v2/webhooks", nil},
			{"audit.read", installationTrail, nil},
		}
		for _, allowed := range requests {
			k := d.limitedKey(t, 0, allowed.may)
			for _, r := range requests {
				a := d.send(t, r.route, r.body, k)
				if refused := a.status == http.StatusForbidden; refused == (r.may == allowed.may) {
					t.Errorf("a key for %s asks %s: %d %s", allowed.may, r.route, a.status, a.body)
				}
			}
		}
		d.send(t, "PUT /api/v2/model", m{"text": "actions: {}"}, d.limitedKey(t, 0, "model.read"), with("If-Match", `"0"`)).fails(http.StatusForbidden, "forbidden")

		expiring := d.limitedKey(t, time.Hour)
		d.send(t, "GET /api/v2/tenants", nil, expiring).ok(http.StatusOK)
		d.Advance(time.Hour)
		d.send(t, "GET /api/v2/tenants", nil, expiring).fails(http.StatusUnauthorized, "unauthenticated")
	})
}

const installationTrail = "GET /api/v2/installation/audit-events"

// An operator key reads the installation's own trail, as a list and as a file, and no
// tenant's. A service key can't.
func TestTrailOfInstallation(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		operator := d.limitedKey(t, 0, "audit.read")
		d.send(t, "GET /api/v2/tenants", nil, operator).fails(http.StatusForbidden, "forbidden")
		d.send(t, "GET /api/v2/audit-events", nil, operator).fails(http.StatusForbidden, "forbidden")
		service := bearer(d.serviceKey(t, []doorward.Action{doorward.AuditRead}))
		d.send(t, installationTrail, nil, service).fails(http.StatusForbidden, "forbidden")
		page := d.send(t, installationTrail+"?action=key.create", nil, operator).ok(http.StatusOK)
		events, _ := page.at("items").([]any)
		if len(events) != 2 || events[0].(m)["tenantId"] != "" || events[0].(m)["actor"].(m)["type"] != "operator" {
			t.Fatalf("the trail has %v", events)
		}
		target := events[0].(m)["target"].(m)["id"].(string)
		file := d.send(t, installationTrail+"?target="+target+"&format=csv", nil, operator).ok(http.StatusOK)
		if lines := bytes.Count(file.body, []byte("\n")); lines != 2 {
			t.Errorf("the file has %d lines: %s", lines, file.body)
		}
		if all := d.send(t, installationTrail, nil, operator, inTenant(acme.ID)).ok(http.StatusOK); bytes.Contains(all.body, []byte(acme.Owner.ID)) {
			t.Errorf("it shows a tenant's trail: %s", all.body)
		}
		d.send(t, installationTrail+"?outcome=perhaps", nil, operator).fails(http.StatusUnprocessableEntity, "validation_failed")
		d.send(t, installationTrail+"?cursor=x", nil, operator).fails(http.StatusBadRequest, "invalid_cursor")
	})
}

// TestTrailOfAllTenants: an operator key reads the trails of all tenants, a limited one with events.read, by time
// and by the address of the client. A tenant finds an address in its own trail alone.
func TestTrailOfAllTenants(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme, zeta := d.Tenant("Acme"), d.Tenant("Zeta")
		limited := d.limitedKey(t, 0, "events.read")
		d.send(t, installationTrail, nil, limited).fails(http.StatusForbidden, "forbidden")
		ids := func(query string, opts ...opt) (ids []string) {
			path := "GET /api/v2/audit-events?limit=1" + query
			for cursor := ""; ; {
				page := d.send(t, path+cursor, nil, opts...).ok(http.StatusOK)
				items, _ := page.at("items").([]any)
				for _, item := range items {
					ids = append(ids, item.(m)["id"].(string))
				}
				next, _ := page.at("nextCursor").(string)
				if next == "" {
					return ids
				}
				cursor = "&cursor=" + url.QueryEscape(next)
			}
		}
		for _, operator := range []opt{limited, bearer(d.operatorKey(t))} {
			own, other := ids("&action=session.open", as(acme.Owner.Token())), ids("&action=session.open", as(zeta.Owner.Token()))
			all := ids("&action=session.open", operator)
			if len(own) == 0 || len(other) == 0 || len(all) != len(own)+len(other) || !slices.Contains(all, own[0]) || !slices.Contains(all, other[0]) {
				t.Errorf("all %q, of the tenants %q and %q", all, own, other)
			}
			if byAddress := ids("&action=session.open&actor="+url.QueryEscape(acme.Owner.Email), operator); !slices.Equal(byAddress, own) {
				t.Errorf("by an address %q, want %q", byAddress, own)
			}
			if byIP := ids("&action=session.open&ip=127.0.0.1", operator); !slices.Equal(byIP, all) {
				t.Errorf("by the IP %q, want %q", byIP, all)
			}
			if byIP := ids("&action=session.open&ip=::ffff:127.0.0.1", as(acme.Owner.Token())); !slices.Equal(byIP, own) {
				t.Errorf("by the IP in one tenant %q, want %q", byIP, own)
			}
			if none := append(ids("&ip=192.0.2.9", operator), ids("&ip=192.0.2.9", as(acme.Owner.Token()))...); len(none) > 0 {
				t.Errorf("by another IP %q", none)
			}
		}
		file := d.send(t, "GET /api/v2/audit-events?action=session.open&format=csv", nil, limited).ok(http.StatusOK)
		if !bytes.Contains(file.body, []byte(acme.ID)) || !bytes.Contains(file.body, []byte(zeta.ID)) {
			t.Errorf("the file is %s", file.body)
		}
	})
}

// The operator closes a tenant as its OWNER would. Closing and freezing are independent.
func TestOperatorClosesTenant(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, operator, tenant := acme.Owner, bearer(d.operatorKey(t)), "PATCH /api/v2/tenants/"+acme.ID
		_, secret := d.newKey(t, ann, m{})
		d.send(t, tenant, m{"status": "closing"}, bearer(d.serviceKey(t, []doorward.Action{doorward.ServiceTenantStatus}))).fails(http.StatusForbidden, "forbidden")
		closed := d.send(t, tenant, m{"status": "closing"}, operator).ok(http.StatusOK).is("status", "closing")
		if closed.instant("destroyedAt").Before(d.clock.now().Add(13 * 24 * time.Hour)) {
			t.Errorf("destroyed at %v", closed.instant("destroyedAt"))
		}
		d.send(t, "GET /api/v2/access/check", nil, as(ann.Token())).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, "GET /api/v2/access/check", nil, bearer(secret)).fails(http.StatusForbidden, "tenant_closing")
		again := d.send(t, tenant, m{"status": "closing"}, operator).ok(http.StatusOK)
		if !again.instant("destroyedAt").Equal(closed.instant("destroyedAt")) {
			t.Error("a second closing moved the deadline")
		}

		d.send(t, tenant, m{"status": "frozen"}, operator).ok(http.StatusOK).is("status", "frozen")
		if _, err := d.Node.App.Tenants.RestoreFor(t.Context(), doorward.OperatorAtTerminal(), acme.ID); err != nil {
			t.Fatal(err)
		}
		d.send(t, "GET /api/v2/access/check", nil, bearer(secret)).fails(http.StatusForbidden, "tenant_frozen")
		d.send(t, tenant, m{"status": "active"}, operator).ok(http.StatusOK).is("status", "active")
		d.send(t, "GET /api/v2/access/check", nil, bearer(secret)).ok(http.StatusOK)
		if _, err := d.Node.App.Tenants.RestoreFor(t.Context(), doorward.OperatorAtTerminal(), acme.ID); !doorward.HasCode(err, doorward.CodeTenantNotClosing) {
			t.Errorf("restored once more: %v", err)
		}
	})
}
