package tenant_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/app/roster"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/app/webhook"
	"github.com/doorward/doorward/internal/argon"
)

// Values of the arguments hashes of exports and dryRun of Import.
const (
	withHashes, withoutHashes = true, false
	notDry                    = false
)

// TestExportedPeopleAreImported: exported people can be imported into another installation,
// with their passwords.
func TestExportedPeopleAreImported(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		bob := f.Join(owner, doorward.RoleViewer)
		_, err := f.Node(0).Users.Suspend(f.Context(), apptest.Operator, bob.User)
		f.NoError(err)
		cat := f.Join(owner, doorward.RoleUser)
		var file bytes.Buffer
		f.NoError(f.Node(0).Tenants.ExportPeople(f.Context(), apptest.Operator, acme.ID, withHashes, &file))

		other := apptest.New(t, apptest.SQLite, apptest.NoLimits, f.DB.Now)
		list, err := roster.Read(&file, roster.JSONLines)
		f.NoError(err)
		c, err := other.Node(0).Tenants.Create(other.Context(), apptest.Operator, tenant.Draft{Name: "Acme", OwnerEmail: "somebody@example.com"})
		other.NoError(err)
		done, err := other.Node(0).Users.Import(other.Context(), apptest.Operator, c.Tenant.ID, list, notDry)
		other.NoError(err)
		if done.Members != 3 || done.WithoutPassword != 0 {
			f.Errorf("the import returned %+v", done)
		}
		for email, want := range map[string]doorward.Code{owner.User.Email: "", cat.User.Email: "", bob.User.Email: doorward.CodeMembershipSuspended} {
			if got := other.TryLogin(email, apptest.FirstPassword); got != want {
				f.Errorf("%s signs in after the import: %q, want %q", email, got, want)
			}
		}
		if p := other.SignIn(owner.User.Email, apptest.FirstPassword); p.User.Role != doorward.RoleOwner {
			f.Errorf("the OWNER's role after the import is %s", p.User.Role)
		}
	})
}

func TestExport(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		_, token := f.Invite(owner, "bob@acme.example", doorward.RoleUser)
		_, stranger := f.Tenant()
		_, err := f.Node(0).Roles.Create(f.Context(), owner.Caller, role.Draft{Name: "DESK", About: "Answers", Permissions: []string{"user.read", "message.read"}})
		f.NoError(err)
		for n := range 21 { // more than one batch
			text := fmt.Sprintf("// %d\n", n+1)
			if n == 20 {
				text = ""
			}
			_, err := f.Node(0).Policies.Put(f.Context(), owner.Caller, policy.Draft{Text: text}, nil)
			f.NoError(err)
		}
		hookSecret := createWebhook(f, owner)
		domain, err := f.Node(0).Domains.Add(f.Context(), owner.Caller, "acme.example")
		f.NoError(err)
		hash := f.Account(owner).PasswordHash
		for _, hashes := range []bool{false, true} {
			var file bytes.Buffer
			f.NoError(f.Node(0).Tenants.Export(f.Context(), apptest.Operator, acme.ID, hashes, &file))
			if got := strings.Contains(file.String(), hash); got != hashes {
				f.Errorf("hashes requested: %v, exported: %v", hashes, got)
			}
			for _, secret := range []string{token, owner.Token.Reveal(), stranger.User.Email, hookSecret, domain.Token} {
				if strings.Contains(file.String(), secret) {
					f.Errorf("the export contains %q", secret)
				}
			}
			wantComplete(f, file.Bytes(), hashes)
		}
		err = f.Node(0).Tenants.Export(f.Context(), apptest.Operator, "tnt_none", withoutHashes, &bytes.Buffer{})
		if apptest.Code(err) != doorward.CodeNotFound {
			f.Errorf("without a tenant: %v", err)
		}
		err = f.Node(0).Tenants.Export(f.Context(), owner.Caller, acme.ID, withHashes, &bytes.Buffer{})
		if apptest.Code(err) != doorward.CodeForbidden {
			f.Errorf("by an OWNER: %v", err)
		}
		full := errors.New("the disk is full")
		if err := f.Node(0).Tenants.Export(f.Context(), apptest.Operator, acme.ID, withoutHashes, failing{full}); !errors.Is(err, full) {
			f.Errorf("to a writer that fails: %v", err)
		}
	})
}

// createWebhook creates a webhook and returns its secret.
func createWebhook(f *apptest.Fixture, owner apptest.Person) string {
	f.Helper()
	f.NoError(f.Node(0).MasterKey.Load(f.Context()))
	url, events := "http://localhost:9/hook", []string{"user.*"}
	made, err := f.Node(0).Webhooks.Create(f.Context(), owner.Caller, webhook.Draft{URL: &url, Events: &events})
	f.NoError(err)
	return made.Secret.Reveal()
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

type exportedRole struct {
	ID, Name, About string
	Permissions     []string
}

// wantComplete fails unless the document has all parts, including the record of the export.
func wantComplete(f *apptest.Fixture, text []byte, hashes bool) {
	f.Helper()
	var doc struct {
		Format int
		Tenant struct{ ID, Name, Status string }
		People []struct {
			Email, Role  string
			HasPassword  bool
			PasswordHash string
		}
		Roles    []exportedRole
		Policies []struct {
			Version    int
			Text, Mode string
		}
		Invitations []struct{ Email, Status string }
		Webhooks    []struct{ URL, PublicKey string }
		Domains     []struct{ ID, Domain, Status string }
		AuditEvents []struct {
			Action  string
			Changes []doorward.Change
		}
	}
	f.NoError(json.Unmarshal(text, &doc))
	if doc.Format != 1 || doc.Tenant.ID == "" || len(doc.People) != 1 || len(doc.Invitations) != 2 || len(doc.AuditEvents) < 4 {
		f.Fatalf("the document is\n%s", text)
	}
	if len(doc.Roles) != 1 || doc.Roles[0].ID == "" || doc.Roles[0].Name != "DESK" || doc.Roles[0].About != "Answers" || !slices.Equal(doc.Roles[0].Permissions, []string{"message.read", "user.read"}) {
		f.Errorf("the roles are %+v", doc.Roles)
	}
	if n := len(doc.Policies); n != 21 || doc.Policies[0].Text != "" || doc.Policies[20].Text != "// 1\n" || doc.Policies[20].Version != 1 || doc.Policies[0].Mode != "enforce" {
		f.Errorf("there are %d policies: %+v", n, doc.Policies)
	}
	if len(doc.Webhooks) != 1 || doc.Webhooks[0].URL == "" || doc.Webhooks[0].PublicKey == "" {
		f.Errorf("the webhooks are %+v", doc.Webhooks)
	}
	if len(doc.Domains) != 1 || doc.Domains[0].ID == "" || doc.Domains[0].Domain != "acme.example" || doc.Domains[0].Status != "pending" {
		f.Errorf("the domains are %+v", doc.Domains)
	}
	if p := doc.People[0]; p.Role != "OWNER" || !p.HasPassword || hashes && argon.CheckHash(p.PasswordHash) != nil {
		f.Errorf("the OWNER is %+v", p)
	}
	last := doc.AuditEvents[len(doc.AuditEvents)-1]
	if last.Action != "tenant.export" || (len(last.Changes) == 1) != hashes {
		f.Errorf("the last record is %+v", last)
	}
}
