package web_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/passkey/passkeytest"
	"github.com/doorward/doorward/store"
)

// demand sets what the tenant demands of sign-on, as if it had been confirmed.
func (s *server) demand(t *testing.T, tenantID string, mode doorward.SSOMode, guestsRefused bool) {
	t.Helper()
	err := s.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error {
		policy, err := tx.SSOPolicy(t.Context(), tenantID, tx.Now)
		if err != nil {
			return err
		}
		return tx.SetSSOPolicy(t.Context(), doorward.SSOPolicy{
			TenantID: tenantID, Mode: mode, GuestsRefused: guestsRefused, Revision: policy.Revision + 1, ChangedAt: tx.Now,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// managed makes a new person, whose account the tenant manages.
func (s *server) managed(t *testing.T, tenantID, email string) *doorwardtest.Person {
	t.Helper()
	p := &doorwardtest.Person{ID: doorward.NewID(doorward.PrefixUser), Email: email}
	err := s.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error {
		_, account := tx.InsertAccount(t.Context(), doorward.Account{ID: p.ID, Email: email, ManagedBy: tenantID, CreatedAt: tx.Now})
		_, membership := tx.InsertMembership(t.Context(), doorward.User{
			ID: p.ID, Email: email, TenantID: tenantID, Role: doorward.RoleUser, Status: doorward.UserActive, CreatedAt: tx.Now,
		})
		return errors.Join(account, membership)
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestNoWayBack: while sign-on is demanded, no request takes the way back of the last OWNER who has one.
func TestNoWayBack(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		second := as(acme.Join("second@acme.example", "OWNER").Token()) // has no factor
		d.connect(t, acme, "acme.example")
		app := d.enrolTOTP(t, acme.Owner.Token())
		owner := as(acme.Owner.Token())
		d.patchTenant(t, acme.Owner.Token(), m{"settings": m{"allowedEmailDomains": []string{"acme.example"}}}).ok(http.StatusOK)
		const away = "owner@away.example"
		d.send(t, emailPath, m{"email": away, "suspend": true}, owner).ok(http.StatusAccepted)
		move := m{"token": d.code(t, away)}
		d.demand(t, acme.ID, doorward.SSORequired, false)
		for _, c := range []struct {
			route string
			body  any
			who   opt
		}{
			{"DELETE /api/v2/auth/factors/" + app.id, nil, owner},
			{"DELETE /api/v2/auth/memberships/" + acme.ID, nil, owner},
			{confirmEmailPath, move, owner},
			{"DELETE /api/v2/users/" + acme.Owner.ID, nil, second},
			{"PATCH /api/v2/users/" + acme.Owner.ID, m{"role": "ADMIN"}, second},
			{"PATCH /api/v2/users/" + acme.Owner.ID, m{"status": "suspended"}, second},
		} {
			d.send(t, c.route, c.body, c.who).fails(http.StatusConflict, "no_way_back")
		}
		d.demand(t, acme.ID, doorward.SSOOptional, false)
		d.send(t, confirmEmailPath, move, owner).ok(http.StatusNoContent)
	})
}

// TestManagedAccountAndInvitations: neither the mail of an invitation nor a session of its sign-on makes a
// managed account a member of another tenant.
func TestManagedAccountAndInvitations(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		ann := d.managed(t, acme.ID, "ann@acme.example")
		code := d.invite(t, globex.Owner, ann.Email, "USER")
		d.complete(t, code, password).fails(http.StatusForbidden, "managed_account")
		d.accept(t, code, m{}, as(d.enterFrom(t, ann, acme.ID, "con_acme"))).fails(http.StatusForbidden, "managed_account")
	})
}

// TestFactorsOfOneWithoutOwnSession: whom no tenant lets in by the password sees their factors after proving the
// password beside the connection's word.
func TestFactorsOfOneWithoutOwnSession(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		con := d.connect(t, acme, "acme.example")
		d.demand(t, acme.ID, doorward.SSORequired, false)
		token := d.enterFrom(t, ann, acme.ID, doorward.Issuer(con))
		asked := d.send(t, "GET /api/v2/auth/factors", nil, as(token)).fails(http.StatusForbidden, "step_up_required")
		token = d.send(t, finishStepUpPath, m{"challenge": asked.text("challenge"), "password": password}, as(token)).ok(http.StatusOK).text("token")
		d.send(t, "GET /api/v2/auth/factors", nil, as(token)).ok(http.StatusOK).is("total", 0.0)
	})
}

// TestConfirmEmailByAConnection: beside the word of a connection, a new address takes what the account itself has.
func TestConfirmEmailByAConnection(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		con := d.connect(t, acme, "acme.example")
		const to = "lee@acme.example"
		d.send(t, emailPath, m{"email": to}, as(ann.Token())).ok(http.StatusAccepted)
		move := m{"token": d.code(t, to)}
		token := d.enterFrom(t, ann, acme.ID, doorward.Issuer(con))
		d.send(t, confirmEmailPath, move, as(token)).fails(http.StatusForbidden, "sign_in_required")
		d.demand(t, acme.ID, doorward.SSORequired, false)
		asked := d.send(t, confirmEmailPath, move, as(token)).fails(http.StatusForbidden, "step_up_required")
		token = d.send(t, finishStepUpPath, m{"challenge": asked.text("challenge"), "password": password}, as(token)).ok(http.StatusOK).text("token")
		d.send(t, confirmEmailPath, move, as(token)).ok(http.StatusNoContent)
	})
}

// TestPasskeyOfAManagedAccount: it is a second factor only, and opens no session by itself.
func TestPasskeyOfAManagedAccount(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := d.managed(t, acme.ID, "ann@acme.example")
		con := d.connect(t, acme, "acme.example")
		key := passkeytest.New(passkeyOrigin)
		d.addPasskey(t, d.enterFrom(t, ann, acme.ID, doorward.Issuer(con)), key)
		d.signInWithPasskey(t, key).fails(http.StatusForbidden, "sso_required").is("connectionId", con)
		d.demand(t, acme.ID, doorward.SSOOff, false)
		d.signInWithPasskey(t, key).fails(http.StatusForbidden, "managed_account")
	}, withPasskeys())
}

// TestDiscoverIsLimited: one client asks 60 times a minute.
func TestDiscoverIsLimited(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		const path = "POST /api/v2/auth/discover"
		for range 60 {
			d.send(t, path, m{"email": "ann@acme.example"}).ok(http.StatusOK)
		}
		if wait := d.send(t, path, m{"email": "ann@acme.example"}).fails(http.StatusTooManyRequests, "too_many_attempts").retryAfter(); wait <= 0 || wait > time.Minute {
			t.Errorf("it can be repeated after %v", wait)
		}
		d.Advance(time.Minute)
		d.send(t, path, m{"email": "ann@acme.example"}).ok(http.StatusOK)
	})
}

// TestDemandRefuses: a demand for sign-on that comes between the steps of a sign-in, or before a switch, refuses
// members whose sign-on it is and, where it says so, guests.
func TestDemandRefuses(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		con := d.connect(t, globex, "globex.example")
		for _, c := range []struct{ email, code string }{{"ann@globex.example", "sso_required"}, {"bob@guest.example", "guests_refused"}} {
			refused := func(a answer) {
				t.Helper()
				a.fails(http.StatusForbidden, c.code)
				if isCovered := c.code == "sso_required"; isCovered {
					a.is("connectionId", con).is("startUrl", passkeyOrigin+"/api/v2/auth/sso/"+con+"/start")
				}
			}
			inGlobex := m{"email": c.email, "password": password, "tenantId": globex.ID}
			d.demand(t, globex.ID, doorward.SSOOptional, false)
			p := acme.Join(c.email, "USER")
			d.addMember(t, globex, p, "USER")
			switched := d.send(t, loginPath, m{"email": c.email, "password": password, "tenantId": acme.ID}).ok(http.StatusOK).text("token")
			firstApp, firstKey := d.beginFirstFactors(t, globex, inGlobex)

			d.demand(t, globex.ID, doorward.SSORequired, true)
			refused(d.send(t, switchPath, m{"tenantId": globex.ID}, as(switched)))
			refused(d.send(t, loginPath, inGlobex))
			refused(firstApp())
			refused(firstKey())

			key := passkeytest.New(passkeyOrigin)
			d.addPasskey(t, p.Token(), key)
			begun := d.send(t, beginPasskeyLoginPath, nil).ok(http.StatusOK)
			refused(d.send(t, finishPasskeyLoginPath, m{"challenge": begun.text("challenge"), "credential": getCredential(t, key, begun), "tenantId": globex.ID}))
			d.demand(t, globex.ID, doorward.SSOOptional, false)
			asked := d.send(t, loginPath, inGlobex).fails(http.StatusForbidden, "mfa_required")
			d.demand(t, globex.ID, doorward.SSORequired, true)
			refused(d.send(t, secondPath, m{"challenge": asked.text("challenge"), "credential": getCredential(t, key, asked)}))
		}
	}, masterKey(t), withPasskeys())
}

// beginFirstFactors signs in twice where the tenant demands a second factor for a while, and returns what sets up
// an authenticator app, or a passkey, with the challenges.
func (s *server) beginFirstFactors(t *testing.T, tenant *doorwardtest.Tenant, credentials m) (app, key func() answer) {
	t.Helper()
	set := func(settings m) {
		t.Helper()
		s.patchTenant(t, tenant.Owner.Login(), m{"settings": settings}).ok(http.StatusOK)
	}
	set(m{"mfa": "required", "mfaRoles": []string{"USER"}})
	begin := func() string {
		t.Helper()
		return s.send(t, loginPath, credentials).fails(http.StatusForbidden, "mfa_enrolment_required").text("challenge")
	}
	forApp, forKey := begin(), begin()
	set(m{"mfa": "optional"})
	e := s.send(t, totpPath, m{"challenge": forApp}).ok(http.StatusCreated)
	a := &authenticator{id: e.text("id"), secret: e.text("secret"), now: s.clock.now}
	begun := s.send(t, beginPasskeyPath, m{"challenge": forKey}).ok(http.StatusOK)
	app = func() answer {
		return s.send(t, confirmPath, m{"challenge": forApp, "id": a.id, "code": a.code(t)})
	}
	key = func() answer {
		made := createCredential(t, passkeytest.New(passkeyOrigin), begun)
		return s.send(t, finishPasskeyPath, m{"challenge": forKey, "credential": made})
	}
	return app, key
}

// TestOwnPagesBySignOn: somebody whose account the tenant manages sees and removes factors on the page, which offers
// neither a password nor another address. Somebody whom no tenant lets in by the password proves it first.
func TestOwnPagesBySignOn(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := as(d.enterFrom(t, d.managed(t, acme.ID, "ann@acme.example"), acme.ID, "con_acme"))
		security := d.pageHTML(t, "/account/security", ann)
		if !strings.Contains(security, `action="/account/security/totp"`) || strings.Contains(security, "/account/password") {
			t.Errorf("security of a managed account:\n%s", security)
		}
		if account := d.pageHTML(t, "/account", ann); strings.Contains(account, `action="/account/email"`) {
			t.Errorf("a managed account can change its address:\n%s", account)
		}
		ben := acme.Join("ben@acme.example", "USER")
		d.connect(t, acme, "acme.example")
		by := as(d.enterFrom(t, ben, acme.ID, "con_acme"))
		d.demand(t, acme.ID, doorward.SSORequired, false)
		to := d.send(t, "GET /account/security", nil, by, with("Accept", "text/html")).ok(http.StatusSeeOther).header.Get("Location")
		if to != "/step-up?return=%2Faccount%2Fsecurity" {
			t.Errorf("the page leads to %s", to)
		}
	})
}
