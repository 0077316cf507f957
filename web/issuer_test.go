package web_test

import (
	"net/http"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/doorwardtest"
)

// takesOwnIssuer has the routes that act on the account, or on what it is in other tenants. A session that
// a tenant's own sign-on vouches for counts in that tenant alone.
var takesOwnIssuer = map[string]bool{
	"POST /api/v2/auth/change-password": true,
}

// enterFrom signs the person in by the word of another issuer, and returns the session's token.
func (s *server) enterFrom(t *testing.T, who *doorwardtest.Person, tenantID string, issuer doorward.Issuer) string {
	t.Helper()
	account, err := s.Node.DB.Read().AccountByEmail(t.Context(), who.Email)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := s.Node.App.Login.Enter(t.Context(), doorward.Caller{IP: "127.0.0.1"}, proof.Proof{Account: account, Issuer: issuer, TenantID: tenantID, Methods: []string{"fed"}}, tenantID)
	if err != nil {
		t.Fatal(err)
	}
	return outcome.(login.SignedIn).Token.Reveal()
}

// TestAnotherIssuer: what belongs to the account takes a session for which Doorward vouches, and says so;
// everything else is as in other sessions.
func TestAnotherIssuer(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex, ann := d.inTwoTenants(t, "OWNER", "OWNER")
		_ = globex
		for _, e := range d.operations(t, checkPath) {
			if e.Who != "OWNER" {
				continue
			}
			token := d.enterFrom(t, ann, acme.ID, "con_acme")
			a := d.try(t, e, e.Body, as(token))
			got := a.status == http.StatusForbidden && a.text("code") == "sign_in_required"
			t.Logf("%v %s %d %s", got, e.Request, a.status, a.text("code"))
		}
	})
}
