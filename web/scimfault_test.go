package web_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/doorward/doorward/internal/secret"
)

// scimRequests are those of each kind that reach the database.
func scimRequests(user string) []struct {
	route string
	body  any
} {
	off := m{"Operations": []m{{"op": "replace", "path": "active", "value": false}}}
	return []struct {
		route string
		body  any
	}{
		{"GET " + scimUsers, nil},
		{"GET " + scimUsers + "?filter=" + url.QueryEscape(`userName eq "bob@acme.example"`), nil},
		{"GET " + scimUsers + "/" + user, nil},
		{"POST " + scimUsers, m{"userName": "eve@acme.example"}},
		{"PUT " + scimUsers + "/" + user, m{"userName": "bob@acme.example", "active": false}},
		{"PATCH " + scimUsers + "/" + user, off},
		{"DELETE " + scimUsers + "/" + user, nil},
		{"GET /scim/v2/Groups", nil},
		{"GET /scim/v2/Groups/grp_absent", nil},
		{"POST /scim/v2/Groups", m{"displayName": "Sales"}},
		{"PUT /scim/v2/Groups/grp_absent", m{"displayName": "Sales"}},
		{"PATCH /scim/v2/Groups/grp_absent", off},
		{"DELETE /scim/v2/Groups/grp_absent", nil},
	}
}

// unavailableSCIM checks the answer to a directory that is to try again: a 401 or a 404 would make it give up, or forget
// the person.
func (a answer) unavailableSCIM() {
	a.t.Helper()
	a.refused(http.StatusServiceUnavailable, "")
	a.is("status", "503")
	if a.header.Get("Retry-After") == "" {
		a.t.Errorf("%s: the answer doesn't say when to try again", a.route)
	}
}

// Without a database a directory is answered 503 in the form of SCIM, whether its secret is in memory or isn't known.
func TestSCIMWithoutDatabase(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		_, idp := d.directory(t, acme)
		bob := acme.Join("bob@acme.example", "USER")
		for range 2 { // the secret is in memory then
			d.send(t, "GET "+scimUsers+"/"+bob.ID, nil, idp).ok(http.StatusOK)
		}
		other := secret.NewKey("dwc_")
		unknown := with("Authorization", "Bearer "+other.Reveal())
		if err := d.Node.DB.Close(); err != nil {
			t.Fatal(err)
		}
		for _, r := range scimRequests(bob.ID) {
			for _, by := range []opt{idp, unknown} {
				d.send(t, r.route, r.body, by).unavailableSCIM()
			}
		}
	})
}

// Without a database a provider that ends somebody is answered 503, and tries again: what it was told is true later.
func TestSignOffWithoutDatabase(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.signOnSite(t)
		f.begin()().ok(http.StatusSeeOther)
		revocation, logout := f.provider.Revocation(d.URL+f.signOnPath("revoke"), nil), f.provider.Logout("doorward", m{"sub": "1"})
		if err := d.Node.DB.Close(); err != nil {
			t.Fatal(err)
		}
		d.send(t, "POST "+f.signOnPath("revoke"), m{"sub_id": m{"format": "iss_sub", "iss": f.provider.Issuer(), "sub": "1"}}, with("Authorization", "Bearer "+revocation)).
			fails(http.StatusServiceUnavailable, "unavailable")
		d.send(t, "POST "+f.signOnPath("backchannel-logout"), url.Values{"logout_token": {logout}}.Encode(), typed("application/x-www-form-urlencoded")).
			ok(http.StatusServiceUnavailable)
	}, withProviders())
}
