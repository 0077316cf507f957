package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const (
	changeEmailPath  = "POST /api/v2/auth/change-email"
	confirmEmailPath = "POST /api/v2/auth/change-email/confirm"
	undoEmailPath    = "POST /api/v2/auth/undo-email"
)

func TestChangeEmail(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		token := ann.Token()
		const fresh = "ann.lee@elsewhere.example"
		d.send(t, changeEmailPath, m{"email": "Ann.Lee@Elsewhere.Example"}, as(token)).ok(http.StatusAccepted)
		code, back := d.code(t, fresh), d.code(t, ann.Email)
		d.login(t, ann.Email, password).ok(http.StatusOK)
		d.send(t, confirmEmailPath, m{"token": back}).fails(http.StatusNotFound, "email_change_not_found")
		d.send(t, confirmEmailPath, m{"token": code}).ok(http.StatusNoContent)
		d.send(t, confirmEmailPath, m{"token": code}).fails(http.StatusGone, "email_change_over")
		if got := d.send(t, "GET /api/v2/auth/session", nil, as(token)).ok(http.StatusOK).text("user.email"); got != fresh {
			t.Errorf("the session has the address %s", got)
		}
		if got := d.send(t, "GET /api/v2/users/"+ann.ID, nil, as(acme.Owner.Token())).ok(http.StatusOK).text("email"); got != fresh {
			t.Errorf("the member has the address %s", got)
		}
		d.send(t, undoEmailPath, m{"token": code}).fails(http.StatusNotFound, "email_change_not_found")
		d.send(t, undoEmailPath, m{"token": back}).ok(http.StatusNoContent)
		d.send(t, undoEmailPath, m{"token": back}).fails(http.StatusGone, "email_change_over")
		d.send(t, "GET /api/v2/auth/session", nil, as(token)).fails(http.StatusUnauthorized, "unauthenticated")
		d.login(t, fresh, password).fails(http.StatusUnauthorized, "invalid_credentials")
		d.reset(t, d.code(t, ann.Email), "four quiet mice").ok(http.StatusNoContent)

		token = d.login(t, ann.Email, "four quiet mice").ok(http.StatusOK).text("token")
		d.send(t, changeEmailPath, m{"email": acme.Owner.Email}, as(token)).ok(http.StatusAccepted)
		d.send(t, confirmEmailPath, m{"token": d.code(t, acme.Owner.Email)}).fails(http.StatusConflict, "account_exists")

		d.send(t, changeEmailPath, m{"email": fresh}, as(token)).ok(http.StatusAccepted)
		code, back = d.code(t, fresh), d.code(t, ann.Email)
		d.send(t, confirmEmailPath, m{"token": code}).ok(http.StatusNoContent)
		acme.Join(ann.Email, "USER") // somebody else, with the old mailbox
		d.send(t, undoEmailPath, m{"token": back}).fails(http.StatusConflict, "account_exists")
	})
}

// The answers for an address with an account, for one without, and for one's own differ
// only in their ids, up to the limit and beyond.
func TestChangeEmailRevealsNothing(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		for _, taken := range []string{acme.Owner.Email, "ann@acme.example"} {
			token := acme.Owner.Token()
			if taken != acme.Owner.Email {
				acme.Join(taken, "USER")
			}
			for n := range 4 {
				known := d.send(t, changeEmailPath, m{"email": taken}, as(token))
				unknown := d.send(t, changeEmailPath, m{"email": "free." + taken}, as(token))
				if known.status != unknown.status || known.blank() != unknown.blank() || len(known.body) != len(unknown.body) {
					t.Errorf("%d: %d %s\nfor the unknown address %d %s", n, known.status, known.body, unknown.status, unknown.body)
				}
				if a, b := fmt.Sprint(headerNames(known)), fmt.Sprint(headerNames(unknown)); a != b {
					t.Errorf("headers %s, for the unknown address %s", a, b)
				}
			}
		}
	})
}

func TestChangeEmailRefusals(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		d.send(t, changeEmailPath, m{"email": "x@acme.example"}).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, changeEmailPath, m{"email": "none"}, as(owner.Token())).invalid("/email", "invalid")
		for _, path := range []string{confirmEmailPath, undoEmailPath} {
			for _, none := range []string{forged, "x", d.forgot(t, owner.Email), owner.Token()} {
				d.send(t, path, m{"token": none}).fails(http.StatusNotFound, "email_change_not_found")
			}
		}
	})
}

// The export has what is held about the person, nothing about others, and no secret.
func TestExportAccount(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		ann := acme.Join("ann@acme.example", "ADMIN")
		d.enrol(t, globex, ann, "USER")
		token := ann.Token()
		d.invite(t, ann, "x@acme.example", "USER")
		d.send(t, "POST /api/v2/api-keys", m{"name": "mine", "permissions": []string{"message.read"}, "expiresInDays": 3}, as(token)).ok(http.StatusCreated)
		d.send(t, changeEmailPath, m{"email": "new@acme.example"}, as(token)).ok(http.StatusAccepted)
		a := d.send(t, "GET /api/v2/auth/account/export", nil, as(token)).ok(http.StatusOK)
		a.is("account.email", ann.Email).is("account.id", ann.ID)
		for _, want := range []string{`"tenantName":"Acme"`, `"tenantName":"Globex"`, `"name":"mine"`, `"to":"new@acme.example"`, `"state":"ACCEPTED"`, `"kind":"email_changing"`, `"action":"user.invite"`, `"current":true`} {
			if !strings.Contains(string(a.body), want) {
				t.Errorf("the export lacks %s", want)
			}
		}
		for _, secret := range []string{token, "$argon2", acme.Owner.Email, acme.Owner.ID} {
			if strings.Contains(string(a.body), secret) {
				t.Errorf("the export has %q", secret)
			}
		}
		if got := d.send(t, "GET /api/v2/auth/account/export", nil, as(acme.Owner.Token())).ok(http.StatusOK); strings.Contains(string(got.body), "mine") {
			t.Error("the export of somebody else has the key")
		}
	})
}
