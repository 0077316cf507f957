package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/key"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/web/front"
)

// serviceKey creates a service key with the permissions. It is limited to the tenants, if any are
// given.
func (s *server) serviceKey(t *testing.T, permissions []doorward.Action, tenants ...string) string {
	t.Helper()
	draft := key.ServiceDraft{Name: "router", Tenants: tenants}
	for _, a := range permissions {
		draft.May = append(draft.May, string(a))
	}
	made, err := s.Node.App.Keys.CreateService(t.Context(), doorward.OperatorAtTerminal(), draft)
	if err != nil {
		t.Fatal(err)
	}
	return made.Reveal()
}

// revokeServiceKeys revokes all service keys and returns how many invitations were revoked with them.
func (s *server) revokeServiceKeys(t *testing.T) (invitations int64) {
	t.Helper()
	all, err := s.Node.App.Keys.Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		n, err := s.Node.App.Keys.RevokeService(t.Context(), doorward.OperatorAtTerminal(), k)
		if err != nil {
			t.Fatal(err)
		}
		invitations += n
	}
	return invitations
}

// inTenant names the tenant in which a service key acts.
func inTenant(tenantID string) opt { return with(front.TenantHeader, tenantID) }

var allServicePermissions = doorward.ServicePermissions()

// Each route refuses a service key that lacks its permission, or names no tenant where one is
// needed, before it reads the body.
func TestServiceKeyOnEachRoute(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, frozen, closing := d.Tenant("Acme"), d.Tenant("Frozen"), d.Tenant("Closing")
		d.setTenantStatus(t, frozen, doorward.TenantFrozen)
		d.setTenantStatus(t, closing, doorward.TenantClosing)
		forAll := bearer(d.serviceKey(t, allServicePermissions))
		forFrozen := bearer(d.serviceKey(t, allServicePermissions, frozen.ID))
		for _, e := range d.operations(t, checkPath, "/access/v1/") {
			route, r := e.Request, e.route
			lacking := bearer(d.serviceKey(t, slices.DeleteFunc(slices.Clone(allServicePermissions), func(a doorward.Action) bool { return a == r.Guard.Service() })))
			switch name := r.Guard.Name(); {
			case name == front.Public().Name() || name == front.Optional().Name():
			case r.Guard.PeopleOnly():
				d.send(t, route, nil, forAll, inTenant(acme.ID)).fails(http.StatusForbidden, "not_for_keys")
			case r.Guard.Service() == "":
				d.send(t, route, nil, forAll, inTenant(acme.ID)).fails(http.StatusForbidden, "forbidden")
			case !r.Guard.InTenant():
				d.send(t, route, nil, lacking).fails(http.StatusForbidden, "forbidden")
			default:
				d.send(t, route, nil, lacking, inTenant(acme.ID)).fails(http.StatusForbidden, "forbidden")
				switch {
				case r.Guard.OfInstallation():
					d.send(t, route, nil, lacking).fails(http.StatusForbidden, "forbidden")
					d.send(t, route, nil, forFrozen).fails(http.StatusBadRequest, "tenant_required")
				case r.Guard.AcrossTenants() == "":
					d.send(t, route, nil, forAll).fails(http.StatusBadRequest, "tenant_required")
				default:
					d.send(t, route, nil, forAll).ok(http.StatusOK)
				}
				d.send(t, route, nil, forAll, inTenant("")).fails(http.StatusBadRequest, "tenant_required")
				d.send(t, route, nil, forAll, inTenant(acme.ID), inTenant(acme.ID)).fails(http.StatusBadRequest, "tenant_required")
				d.send(t, route, nil, forAll, inTenant("tnt_absent")).fails(http.StatusNotFound, "not_found")
				d.send(t, route, nil, forFrozen, inTenant(acme.ID)).fails(http.StatusNotFound, "not_found")
				d.send(t, route, nil, forAll, inTenant(frozen.ID)).fails(http.StatusForbidden, "tenant_frozen")
				d.send(t, route, nil, forAll, inTenant(closing.ID)).fails(http.StatusForbidden, "tenant_closing")
			}
		}
	})
}

// In the tenant named by its request, a service acts as an ADMIN with the permissions of its key.
// The tenant's trail names the service.
func TestServiceInATenant(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		admin, ann := acme.Join("admin@acme.example", "ADMIN"), acme.Join("ann@acme.example", "USER")
		service := bearer(d.serviceKey(t, allServicePermissions))
		bob := m{"email": "bob@x.example", "role": "ADMIN"}
		for _, tenant := range []*doorwardtest.Tenant{acme, globex} {
			d.send(t, invitePath, bob, service, inTenant(tenant.ID), idempotencyKey("one-key")).okFirst(http.StatusCreated).is("invitedBy", nil).is("tenantId", tenant.ID)
		}
		d.send(t, invitePath, m{"email": "eve@x.example", "role": "OWNER"}, service, inTenant(acme.ID)).fails(http.StatusForbidden, "forbidden")
		d.patchUser(t, acme.Owner, ann.ID, m{"name": "Ann"}).ok(http.StatusOK)
		d.send(t, "PATCH /api/v2/users/"+ann.ID, m{"status": "suspended"}, service, inTenant(acme.ID)).ok(http.StatusOK)
		d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, "PATCH /api/v2/users/"+admin.ID, m{"role": "USER"}, service, inTenant(acme.ID)).fails(http.StatusForbidden, "forbidden")
		d.send(t, "PATCH /api/v2/users/"+ann.ID, m{"status": "active"}, service, inTenant(globex.ID)).fails(http.StatusNotFound, "not_found")
		d.send(t, "GET /api/v2/tenant", nil, service, inTenant(globex.ID)).ok(http.StatusOK).is("id", globex.ID)
		for _, unknown := range []string{"tnt_\xff", acme.ID + "\xc3", "tnt_", strings.Repeat("t", 4000)} {
			d.send(t, "GET /api/v2/tenant", nil, service, inTenant(unknown)).fails(http.StatusNotFound, "not_found")
		}
		if people, _ := d.page(t, "/api/v2/users", "id", service, inTenant(acme.ID)); len(people) != 3 {
			t.Errorf("a service finds %q", people)
		}
		d.send(t, "GET /api/v2/tenant", nil, as(acme.Owner.Token()), inTenant(globex.ID)).ok(http.StatusOK).is("id", acme.ID) // no effect

		events := d.trail(t, acme.Owner, "?action=user.suspend")
		if len(events) != 1 || events[0]["actor"].(m)["type"] != "service" || !strings.HasPrefix(events[0]["actor"].(m)["id"].(string), "key_") {
			t.Errorf("the trail has %v", events)
		}
		d.send(t, "GET /api/v2/audit-events", nil, service, inTenant(acme.ID)).ok(http.StatusOK)
		d.complete(t, d.code(t, "bob@x.example"), password).ok(http.StatusOK) // the code of the newest mail, of Globex
	})
}

// A service key acts across all tenants, or those that it is limited to.
func TestServiceAcrossTenants(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		forAll, forAcme := bearer(d.serviceKey(t, allServicePermissions)), bearer(d.serviceKey(t, allServicePermissions, acme.ID))
		d.send(t, tenantsPath, m{"name": "Initech", "ownerEmail": "owner@initech.example"}, forAll).ok(http.StatusCreated)
		d.send(t, tenantsPath, m{"name": "Initech", "ownerEmail": "owner@initech.example"}, forAcme).fails(http.StatusForbidden, "forbidden")
		if all, _ := d.page(t, "/api/v2/tenants", "id", forAll); len(all) != 3 {
			t.Errorf("a service finds %q", all)
		}
		if some, _ := d.page(t, "/api/v2/tenants", "id", forAcme); !slices.Equal(some, []string{acme.ID}) {
			t.Errorf("a service that is limited to one tenant finds %q", some)
		}
		d.send(t, "GET /api/v2/tenants/"+globex.ID, nil, forAll).ok(http.StatusOK)
		d.send(t, "GET /api/v2/tenants/"+globex.ID, nil, forAcme).fails(http.StatusNotFound, "not_found")
		for credential, active := range map[string]bool{acme.Owner.Token(): true, globex.Owner.Token(): false} {
			d.send(t, "POST /api/v2/access/introspect", m{"credential": credential}, forAcme).ok(http.StatusOK).is("active", active)
			d.send(t, "POST /api/v2/access/introspect", m{"credential": credential}, forAll).ok(http.StatusOK).is("active", true)
			refused := d.send(t, "POST /api/v2/access/introspect", m{"credential": credential}, bearer(credential)).fails(http.StatusForbidden, "forbidden")
			if help := refused.text("detail"); !strings.Contains(help, "service key with the permission access.introspect") {
				t.Errorf("the refusal says: %s", help)
			}
		}
		d.send(t, "PATCH /api/v2/tenants/"+globex.ID, m{"status": "frozen"}, forAcme).fails(http.StatusNotFound, "not_found")
		d.send(t, "PATCH /api/v2/tenants/"+globex.ID, m{"status": "frozen"}, forAll).ok(http.StatusOK).is("status", "frozen")
		d.send(t, "PATCH /api/v2/tenants/"+globex.ID, m{"status": "active"}, forAll).ok(http.StatusOK).is("status", "active")
	})
}

// Revoking a service key also revokes the pending invitations sent with it.
func TestServiceKeyIsRevoked(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		text := d.serviceKey(t, allServicePermissions)
		service := bearer(text)
		var codes []string
		for _, tenant := range []*doorwardtest.Tenant{acme, globex} {
			email := "bob@" + tenant.ID[4:20] + ".example"
			d.send(t, invitePath, m{"email": email, "role": "USER"}, service, inTenant(tenant.ID)).ok(http.StatusCreated)
			codes = append(codes, d.code(t, email))
		}
		d.send(t, tenantsPath, m{"name": "Initech", "ownerEmail": "owner@initech.example"}, service).ok(http.StatusCreated)
		codes = append(codes, d.code(t, "owner@initech.example"))
		stays := d.invite(t, acme.Owner, "eve@x.example", "USER")

		d.send(t, "GET /api/v2/access/check", nil, service).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, "POST /api/v2/access/introspect", m{"credential": text}, service).ok(http.StatusOK).is("active", false)
		if n := d.revokeServiceKeys(t); n != 3 {
			t.Errorf("%d invitations were revoked with the key, want 3", n)
		}
		d.send(t, "GET /api/v2/tenants", nil, service).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, "GET /api/v2/users", nil, service, inTenant(acme.ID)).fails(http.StatusUnauthorized, "unauthenticated")
		for _, code := range codes {
			d.complete(t, code, password).fails(http.StatusGone, "invitation_revoked")
		}
		d.complete(t, stays, password).ok(http.StatusOK)
		events := d.trail(t, globex.Owner, "?action=key.revoke")
		if len(events) != 1 {
			t.Errorf("the trail of a tenant says %v of the revocation", events)
		}
	})
}

// A report of a leaked service key revokes it, with the invitations sent with it.
func TestReportServiceKey(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, key := d.Tenant("Acme"), d.serviceKey(t, allServicePermissions)
		d.send(t, invitePath, m{"email": "bob@x.example", "role": "USER"}, bearer(key), inTenant(acme.ID)).ok(http.StatusCreated)
		code, newMails := d.code(t, "bob@x.example"), d.newMails(t, doorwardtest.OperatorAddress)
		for range 2 {
			d.send(t, "POST "+reportPath, m{"key": key}, from203).ok(http.StatusNoContent)
		}
		d.send(t, "GET /api/v2/tenants", nil, bearer(key)).fails(http.StatusUnauthorized, "unauthenticated")
		d.complete(t, code, password).fails(http.StatusGone, "invitation_revoked")
		site := strings.TrimPrefix(d.base, "http://")
		wantOneMail(t, newMails(), "A service key of "+site+" was found and revoked", "the service key router of "+site, "Reported from: 203.0.113.9")
		d.send(t, "POST "+reportPath, m{"key": key[:52]}).invalid("/key", "invalid")
	}, doorwardtest.TrustLoopback())
}

// What looks like a service key but isn't valid is unauthenticated.
func TestInvalidServiceKeys(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		valid := d.serviceKey(t, allServicePermissions)
		wrong := []byte(valid)
		if wrong[10]++; wrong[10] == '9'+1 || wrong[10] == 'z'+1 || wrong[10] == 'Z'+1 {
			wrong[10] = '0'
		}
		for _, text := range []string{string(wrong), "dws_", valid + "x", valid[:len(valid)-1], strings.ToUpper(valid), "dws_" + strings.Repeat("0", 49), "dwk_" + valid[4:]} {
			d.send(t, "GET /api/v2/tenants", nil, bearer(text)).fails(http.StatusUnauthorized, "unauthenticated")
		}
		d.send(t, "GET /api/v2/tenants", nil, bearer(valid)).ok(http.StatusOK)
	})
}
