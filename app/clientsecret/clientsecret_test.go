package clientsecret_test

import (
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/clientsecret"
	"github.com/doorward/doorward/app/connection"
)

// TestTwoSecrets: a connection has two secrets, which are shown by their ends, if they are long, and are in no row.
func TestTwoSecrets(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		c := f.Create(owner, connection.Draft{Type: "oidc", Name: new("x")})
		add := func(s clientsecret.Typed) error {
			return apptest.ErrorOf(f.Node(0).ClientSecrets.Add(f.Context(), owner.Caller, c.ID, s))
		}
		f.WantField(add(clientsecret.Typed{}), "/clientSecret", "required")
		past := f.DB.Now().Add(-time.Hour)
		f.WantField(add(clientsecret.Typed{Secret: apptest.ClientSecret, ExpiresAt: &past}), "/expiresAt", "out_of_range")
		f.NoError(add(clientsecret.Typed{Secret: "short"}))
		if err := add(clientsecret.Typed{Secret: apptest.ClientSecret}); apptest.Code(err) != doorward.CodeTooManySecrets {
			t.Errorf("a third secret: %v", err)
		}
		got, err := f.Node(0).Connections.Connection(f.Context(), owner.Caller, c.ID)
		f.NoError(err)
		if got.Secrets[0].Hint != "" || got.Secrets[1].Hint != "ient" {
			t.Errorf("the hints are %+v", got.Secrets)
		}
		for _, row := range f.AllRows() {
			if strings.Contains(row, apptest.ClientSecret) {
				t.Errorf("the secret is in a row: %s", row)
			}
		}
	})
}
