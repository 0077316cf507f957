package tenant_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/internal/scim"
)

// An export has what a tenant's directories have said of people and groups, and nothing that opens anything.
func TestExportOfTheDirectory(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		ctx := f.Context()
		acme, owner := f.Tenant()
		con := f.Connection(owner, "acme.example")
		secret, err := f.Node(0).Directories.AddSecret(ctx, owner.Caller, con, nil)
		f.NoError(err)
		by, err := f.Node(0).Directories.Check(ctx, apptest.Anonymous(0), secret.Text)
		f.NoError(err)
		ann, err := f.Node(0).Directories.Make(ctx, by, scim.User{UserName: "Ann@acme.example", ExternalID: "00u1"})
		f.NoError(err)
		group, err := f.Node(0).Directories.MakeGroup(ctx, by, scim.Group{DisplayName: "Sales", Members: []string{ann.ID}})
		f.NoError(err)

		var text bytes.Buffer
		f.NoError(f.Node(0).Tenants.Export(ctx, apptest.Operator, acme.ID, withHashes, &text))
		if strings.Contains(text.String(), secret.Text) {
			t.Error("the export has the secret")
		}
		var got struct {
			SCIMSecrets    []struct{ ID, ConnectionID, Hint string }
			DirectoryUsers []struct {
				ID, ConnectionID, UserID string
				Active                   bool
				Attributes               scim.User
			}
			DirectoryGroups []struct {
				ID, ConnectionID, DisplayName string
				Members                       []string
			}
		}
		f.NoError(json.Unmarshal(text.Bytes(), &got))
		if s := got.SCIMSecrets; len(s) != 1 || s[0].ID != secret.ID || s[0].Hint != secret.Hint || s[0].ConnectionID != con {
			t.Errorf("the secrets are %+v", s)
		}
		if u := got.DirectoryUsers; len(u) != 1 || u[0].ID != ann.ID || u[0].UserID != ann.ID || !u[0].Active || u[0].Attributes.UserName != "Ann@acme.example" || u[0].Attributes.ExternalID != "00u1" {
			t.Errorf("the people are %+v", u)
		}
		if g := got.DirectoryGroups; len(g) != 1 || g[0].ID != group.ID || g[0].DisplayName != "Sales" || len(g[0].Members) != 1 || g[0].Members[0] != ann.ID {
			t.Errorf("the groups are %+v", g)
		}
	})
}
