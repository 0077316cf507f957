package connection_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/clientsecret"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/store"
)

func get(f *apptest.Fixture, by apptest.Person, id string) connection.Shown {
	f.Helper()
	c, err := f.Node(1).Connections.Connection(f.Context(), by.Caller, id)
	f.NoError(err)
	return c
}

// edit changes a connection and returns it.
func edit(f *apptest.Fixture, by apptest.Person, id string, d connection.Draft) connection.Shown {
	f.Helper()
	after, _, err := f.Node(0).Connections.Edit(f.Context(), by.Caller, id, connection.Change{Draft: d})
	f.NoError(err)
	return after
}

func tryEdit(f *apptest.Fixture, by apptest.Person, id string, d connection.Draft) error {
	_, _, err := f.Node(0).Connections.Edit(f.Context(), by.Caller, id, connection.Change{Draft: d})
	return err
}

func wantCode(f *apptest.Fixture, err error, code doorward.Code) {
	f.Helper()
	if got := apptest.Code(err); got != code {
		f.Errorf("the error is %v, want %s", err, code)
	}
}

// opened offers the sign-on, and opens a session of the person by the word of the connection.
func opened(f *apptest.Fixture, p apptest.Person, id string) apptest.Person {
	f.Helper()
	f.SSOMode(p, doorward.SSOOptional, doorward.GuestsAllowed)
	proved := proof.Proof{Account: f.Account(p), Issuer: doorward.Issuer(id), TenantID: p.User.TenantID, Methods: []string{"fed"}, BegunAt: f.DB.Now()}
	in, err := apptest.SignedIn(f.Node(0).Login.Enter(f.Context(), apptest.Anonymous(0), proved, p.User.TenantID))
	f.NoError(err)
	return apptest.PersonOf(in)
}

// TestOnlyWhatIsTestedSignsIn: a connection is enabled by a passed test of exactly what it has. Each later
// change makes the test void, also one back, and a change of the secrets.
func TestOnlyWhatIsTestedSignsIn(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		p := f.Provider()
		c := f.Create(owner, apptest.DraftOf(p))
		enable := connection.Draft{Status: new("active")}
		wantCode(f, tryEdit(f, owner, c.ID, enable), doorward.CodeConnectionNotTested)
		f.PassTest(owner, c.ID, p)

		edit(f, owner, c.ID, connection.Draft{EmailFrom: new("upn")})
		wantCode(f, tryEdit(f, owner, c.ID, enable), doorward.CodeConnectionNotTested)
		edit(f, owner, c.ID, connection.Draft{EmailFrom: new("email")})
		wantCode(f, tryEdit(f, owner, c.ID, enable), doorward.CodeConnectionNotTested)

		test, err := f.Node(0).Tests.Make(f.Context(), owner.Caller, c.ID)
		f.NoError(err)
		edit(f, owner, c.ID, connection.Draft{EmailFrom: new("upn")})
		_, _, err = f.Node(0).Tests.Begin(f.Context(), owner.Caller, c.ID, test.ID, "")
		wantCode(f, err, doorward.CodeNotFound)
		edit(f, owner, c.ID, connection.Draft{EmailFrom: new("email")})
		ended, err := f.Node(0).Tests.End(f.Context(), test.ID, nil, nil)
		f.NoError(err)
		if ended.Status != doorward.TestFailed {
			t.Error("a test of what was before a change and back has passed")
		}
		wantCode(f, tryEdit(f, owner, c.ID, enable), doorward.CodeConnectionNotTested)

		f.PassTest(owner, c.ID, p)
		second, err := f.Node(0).ClientSecrets.Add(f.Context(), owner.Caller, c.ID, clientsecret.Typed{Secret: "another secret of the client"})
		f.NoError(err)
		wantCode(f, tryEdit(f, owner, c.ID, enable), doorward.CodeConnectionNotTested)
		f.NoError(f.Node(0).ClientSecrets.Delete(f.Context(), owner.Caller, c.ID, second.ID))
		wantCode(f, tryEdit(f, owner, c.ID, enable), doorward.CodeConnectionNotTested)

		f.PassTest(owner, c.ID, p)
		edit(f, owner, c.ID, connection.Draft{Name: new("Renamed"), JIT: new("domains")}) // not what it signs in by
		if got := edit(f, owner, c.ID, enable); got.Status != doorward.ConnectionActive {
			t.Errorf("the connection is %s", got.Status)
		}
	})
}

// TestChangesWait: what an active connection signs people in by changes when it is switched, once it has
// passed a test, and signs nobody in before.
func TestChangesWait(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		p, next := f.Provider(), f.Provider()
		c := f.Active(owner, p)
		connections := f.Node(0).Connections
		_, err := connections.Switch(f.Context(), owner.Caller, c.ID, false)
		wantCode(f, err, doorward.CodeNothingPending)
		wantCode(f, connections.DropPending(f.Context(), owner.Caller, c.ID), doorward.CodeNothingPending)

		changed := edit(f, owner, c.ID, connection.Draft{Issuer: new(next.Issuer()), EmailFrom: new("upn")})
		if changed.Pending == nil || changed.Pending.Issuer != next.Issuer() || changed.InForce.Issuer != p.Issuer() || changed.InForce.TestedAt == nil {
			t.Fatalf("after the change it is %+v, pending %+v", changed.InForce, changed.Pending)
		}
		changed = edit(f, owner, c.ID, connection.Draft{EmailFrom: new("email")})
		if changed.Pending.Issuer != next.Issuer() || changed.Pending.EmailFrom != "email" {
			t.Errorf("a second change is pending as %+v", changed.Pending)
		}
		if got, err := f.SignInAt(p, c.ID, false); err != nil || got.Subject != "7" {
			t.Errorf("what is in force signs in %q", got.Subject)
		}
		_, err = connections.Switch(f.Context(), owner.Caller, c.ID, false)
		wantCode(f, err, doorward.CodeConnectionNotTested)
		f.PassTest(owner, c.ID, next)

		link(f, owner, c, p.Issuer())
		would, err := connections.Switch(f.Context(), owner.Caller, c.ID, true)
		f.NoError(err)
		if would.Identities != 1 || len(would.People) != 1 || get(f, owner, c.ID).Pending == nil {
			t.Errorf("the dry run says %+v", would)
		}
		done, err := connections.Switch(f.Context(), owner.Caller, c.ID, false)
		f.NoError(err)
		if done.Pending != nil || done.InForce.Issuer != next.Issuer() || done.InForce.TestedAt == nil || done.SwitchedAt.IsZero() || done.Status != doorward.ConnectionActive {
			t.Errorf("after the switch it is %+v", done)
		}
		edit(f, owner, c.ID, connection.Draft{ClientID: new("x")})
		f.NoError(connections.DropPending(f.Context(), owner.Caller, c.ID))
		if got := get(f, owner, c.ID); got.Pending != nil || got.InForce.TestedAt == nil {
			t.Errorf("after dropping what was pending it is %+v", got)
		}
		f.WantField(tryEdit(f, owner, c.ID, connection.Draft{Issuer: new("")}), "/issuer", "required")
	})
}

// link gives the person an identity at the connection.
func link(f *apptest.Fixture, p apptest.Person, c connection.Shown, issuer string) doorward.Identity {
	f.Helper()
	i := doorward.Identity{
		ID: doorward.NewID(doorward.PrefixIdentity), ConnectionID: c.ID, TenantID: c.TenantID, Issuer: issuer, Subject: p.User.ID, UserID: p.User.ID,
		CreatedAt: f.DB.Now(), LastUsedAt: f.DB.Now(),
	}
	_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
		_, err := tx.InsertIdentity(f.Context(), i)
		return err
	})
	f.NoError(err)
	return i
}

// TestOffMeansOff: disabling, deleting and unlinking end the sessions that the connection has vouched for,
// on every node before the answer, and no others. A dry run says which, and changes nothing.
func TestOffMeansOff(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		p := f.Provider()
		c, other := f.Active(owner, p), f.Active(owner, p)
		ann := f.Join(owner, doorward.RoleUser)
		ours, theirs := opened(f, ann, c.ID), opened(f, ann, other.ID)
		f.Exec(`UPDATE users SET managed_by = $1 WHERE id = $2`, c.TenantID, ann.User.ID)
		identity := link(f, ann, c, p.Issuer())
		for _, s := range []apptest.Person{ours, theirs, ann} {
			if !f.IsValid(s.Token) { // loads it into the memory of every node
				t.Fatal("a session is not valid")
			}
		}
		disable := connection.Change{Draft: connection.Draft{Status: new("disabled")}, DryRun: true}
		_, would, err := f.Node(0).Connections.Edit(f.Context(), owner.Caller, c.ID, disable)
		f.NoError(err)
		if would.Sessions != 1 || would.Managed != 1 || len(would.People) != 1 || would.People[0].UserID != ann.User.ID || !f.IsValid(ours.Token) {
			t.Errorf("the dry run says %+v", would)
		}
		disable.DryRun = false
		after, ended, err := f.Node(0).Connections.Edit(f.Context(), owner.Caller, c.ID, disable)
		f.NoError(err)
		if after.Status != doorward.ConnectionDisabled || ended.Sessions != 1 || ended.Managed != 1 || f.IsValid(ours.Token) {
			t.Errorf("disabled: %+v", ended)
		}
		if !f.IsValid(theirs.Token) || !f.IsValid(ann.Token) {
			t.Error("sessions of others have ended")
		}
		if got := edit(f, owner, c.ID, connection.Draft{Status: new("active")}); got.Status != doorward.ConnectionActive {
			t.Errorf("enabled again it is %s", got.Status)
		}

		again := opened(f, ann, c.ID)
		unlinked, err := f.Node(0).Connections.Unlink(f.Context(), owner.Caller, identity.ID)
		f.NoError(err)
		if unlinked.Sessions != 1 || f.IsValid(again.Token) || !f.IsValid(theirs.Token) {
			t.Errorf("unlinked: %+v", unlinked)
		}
		wantCode(f, apptest.ErrorOf(f.Node(0).Connections.Unlink(f.Context(), owner.Caller, identity.ID)), doorward.CodeNotFound)

		link(f, ann, other, p.Issuer())
		would, err = f.Node(0).Connections.Delete(f.Context(), owner.Caller, other.ID, true)
		f.NoError(err)
		if would.Sessions != 1 || !f.IsValid(theirs.Token) {
			t.Errorf("the dry run of deleting says %+v", would)
		}
		wantCode(f, apptest.ErrorOf(f.Node(0).Connections.Delete(f.Context(), owner.Caller, other.ID, false, "stale")), doorward.CodePreconditionFailed)
		ended, err = f.Node(0).Connections.Delete(f.Context(), owner.Caller, other.ID, false)
		f.NoError(err)
		if ended.Sessions != 1 || f.IsValid(theirs.Token) || !f.IsValid(ann.Token) || f.CountRows("identities") != 0 {
			t.Errorf("deleted: %+v", ended)
		}
	})
}

// TestAnotherTenantSeesNothing: connections of another tenant are not there.
func TestAnotherTenantSeesNothing(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, other := f.Tenant()
		p := f.Provider()
		c := f.Create(owner, apptest.DraftOf(p))
		i := link(f, owner, c, p.Issuer())
		connections, by := f.Node(0).Connections, other.Caller
		for name, err := range map[string]error{
			"show":       apptest.ErrorOf(connections.Connection(f.Context(), by, c.ID)),
			"edit":       tryEdit(f, other, c.ID, connection.Draft{Name: new("x")}),
			"delete":     apptest.ErrorOf(connections.Delete(f.Context(), by, c.ID, false)),
			"switch":     apptest.ErrorOf(connections.Switch(f.Context(), by, c.ID, false)),
			"drop":       connections.DropPending(f.Context(), by, c.ID),
			"add secret": apptest.ErrorOf(f.Node(0).ClientSecrets.Add(f.Context(), by, c.ID, clientsecret.Typed{Secret: apptest.ClientSecret})),
			"attempts":   apptest.ErrorOf(connections.Attempts(f.Context(), by, c.ID, doorward.Window{Limit: 1})),
			"identities": apptest.ErrorOf(connections.Identities(f.Context(), by, c.ID, doorward.Window{Limit: 1})),
			"unlink":     apptest.ErrorOf(connections.Unlink(f.Context(), by, i.ID)),
			"test":       apptest.ErrorOf(f.Node(0).Tests.Make(f.Context(), by, c.ID)),
			"show test":  apptest.ErrorOf(f.Node(0).Tests.Show(f.Context(), by, c.ID, "tst_x")),
		} {
			if apptest.Code(err) != doorward.CodeNotFound {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestIssuerFaults: what is wrong with an issuer is a fault of its field, and nothing is made.
func TestIssuerFaults(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		p := f.Provider()
		for issuer, code := range map[string]string{
			"http://idp.example": "invalid", "https://idp.example?x=1": "invalid", "https://ann@idp.example": "invalid",
			"https://login.microsoftonline.com/common/v2.0": "multi_tenant_issuer", "https://10.0.0.1": "address_refused",
			p.Issuer() + "/other": "issuer_mismatch", "https://127.0.0.1:1": "unreachable",
		} {
			d := apptest.DraftOf(p)
			d.Issuer = new(issuer)
			if u, err := url.Parse(issuer); err == nil && u.Path == "/other" {
				p.Change(func(s *oidctest.Settings) {
					s.Lies.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
						fmt.Fprintf(w, `{"issuer": %q}`, p.Issuer())
						return true
					}
				})
			}
			_, err := f.Node(0).Connections.Create(f.Context(), owner.Caller, d)
			f.WantField(err, "/issuer", code)
		}
		if n := f.CountRows("connections"); n != 0 {
			t.Errorf("%d connections were made", n)
		}
	})
}

// TestIssuerPasted: the address of the document stands for its issuer, in a new connection and in a changed one.
func TestIssuerPasted(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		p := f.Provider()
		pasted := p.Issuer() + "/.well-known/openid-configuration"
		d := apptest.DraftOf(p)
		d.Issuer = &pasted
		if got := f.Create(owner, d).InForce.Issuer; got != p.Issuer() {
			t.Errorf("the new connection has the issuer %s", got)
		}
		c := f.Create(owner, connection.Draft{Type: "oidc", Name: new("x")})
		changed, _, err := f.Node(0).Connections.Edit(f.Context(), owner.Caller, c.ID, connection.Change{Draft: connection.Draft{Issuer: &pasted}})
		f.NoError(err)
		if got := changed.InForce.Issuer; got != p.Issuer() {
			t.Errorf("the changed connection has the issuer %s", got)
		}
	})
}

// TestLimits: a tenant has ten connections.
func TestLimits(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		f.UseMasterKey()
		for range doorward.ConnectionsMax {
			f.Create(owner, connection.Draft{Type: "oidc", Name: new("x")})
		}
		wantCode(f, apptest.ErrorOf(f.Node(0).Connections.Create(f.Context(), owner.Caller, connection.Draft{Type: "oidc", Name: new("x")})), doorward.CodeTooManyConnections)
	})
}

// TestLimitOfRequests: a tenant has providers asked 300 times a minute at most, on all nodes together, by making,
// changing and testing connections. Beyond that nobody is asked.
func TestLimitOfRequests(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		_, other := f.Tenant()
		f.UseMasterKey()
		p := f.Provider()
		issuer, path := p.Issuer(), p.Issuer()+"/none"
		draft := func(issuer string) connection.Draft {
			return connection.Draft{Type: "oidc", Name: new("x"), Issuer: &issuer, ClientID: new("doorward")}
		}
		c := f.Create(owner, draft(issuer))
		tries := []func(node int) error{
			func(node int) error {
				return apptest.ErrorOf(f.Node(node).Connections.Create(f.Context(), owner.Caller, draft(path)))
			},
			func(node int) error {
				return apptest.ErrorOf(f.Node(node).Tests.Make(f.Context(), owner.Caller, c.ID))
			},
			func(node int) error {
				_, _, err := f.Node(node).Connections.Edit(f.Context(), owner.Caller, c.ID, connection.Change{Draft: connection.Draft{Issuer: &path}})
				return err
			},
		}
		f.Exec(`UPDATE throttles SET hits = 297 WHERE bucket = $1 AND hits = 1`, "discover:"+c.TenantID) // as if c were the 297th
		for i, try := range tries {
			if err := try(i % 2); apptest.Code(err) == doorward.CodeTooManyAttempts {
				t.Fatalf("request %d is refused", 298+i)
			}
		}
		asked := p.Count(oidctest.DiscoveryPath)
		for i, try := range tries {
			wantCode(f, try(i%2), doorward.CodeTooManyAttempts)
		}
		if n := p.Count(oidctest.DiscoveryPath); n != asked {
			t.Errorf("beyond the limit the provider is asked %d times", n-asked)
		}
		f.NoError(apptest.ErrorOf(f.Node(0).Connections.Create(f.Context(), owner.Caller, connection.Draft{Type: "oidc", Name: new("without an issuer")})))
		f.NoError(apptest.ErrorOf(f.Node(0).Connections.Create(f.Context(), other.Caller, draft(issuer))))
		clock.Move(time.Minute)
		f.NoError(tries[1](0))
	})
}

// TestNothingIsRaised: a connection gives roles that rank as ADMIN at most, whatever happens to the roles.
func TestNothingIsRaised(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		roles, connections := f.Node(0).Roles, f.Node(0).Connections
		desk := makeRole(f, owner, "DESK", doorward.UserRead)
		high := makeRole(f, owner, "HIGH", doorward.SSOManage)
		make := func(role string) error {
			d := connection.Draft{Type: "oidc", Name: new("x"), Mappings: &[]doorward.GroupMapping{{Group: "g", Role: doorward.Role(role)}}}
			return apptest.ErrorOf(connections.Create(f.Context(), owner.Caller, d))
		}
		f.WantField(make("OWNER"), "/mappings/0/role", "out_of_range")
		f.WantField(make("HIGH"), "/mappings/0/role", "out_of_range")
		f.WantField(make("NONE"), "/mappings/0/role", "invalid")
		f.WantField(apptest.ErrorOf(connections.Create(f.Context(), owner.Caller, connection.Draft{Type: "oidc", Name: new("x"), JITRole: new("OWNER")})), "/jitRole", "out_of_range")
		f.NoError(make("DESK"))

		lifted := []string{string(doorward.SSOManage)}
		_, _, err := roles.Edit(f.Context(), owner.Caller, desk, roleEdit{Permissions: &lifted})
		wantCode(f, err, doorward.CodeRoleInUse)
		wantCode(f, apptest.ErrorOf(roles.Delete(f.Context(), owner.Caller, desk, "")), doorward.CodeRoleInUse)
		wantCode(f, apptest.ErrorOf(roles.Delete(f.Context(), owner.Caller, desk, doorward.RoleOwner)), doorward.CodeRoleInUse)
		_, _, err = roles.Edit(f.Context(), owner.Caller, desk, roleEdit{Name: new("TABLE")})
		f.NoError(err)
		all, err := connections.Of(f.Context(), owner.User.TenantID)
		f.NoError(err)
		if all[0].Mappings[0].Role != "TABLE" {
			t.Errorf("after a change of the role's name the connection gives %s", all[0].Mappings[0].Role)
		}
		if _, err := roles.Delete(f.Context(), owner.Caller, high, ""); err != nil {
			t.Errorf("a role that no connection gives: %v", err)
		}
	})
}
