package connection_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
)

const clientSecret = "a secret of the client"

// newProvider returns a provider that knows the client "doorward".
func newProvider(t *testing.T) *oidctest.Provider {
	t.Helper()
	p := oidctest.New("")
	t.Cleanup(p.Close)
	p.Change(func(s *oidctest.Settings) {
		s.Apps = []oidctest.App{{ID: "doorward", Secrets: []string{clientSecret}}}
		s.Person = oidctest.Person{Subject: "7", Email: "ann@acme.example"}
	})
	return p
}

// draftOf is a connection to the provider by a client secret.
func draftOf(p *oidctest.Provider) connection.Draft {
	return connection.Draft{
		Type: "oidc", Name: new("Okta"), Issuer: new(p.Issuer()), ClientID: new("doorward"), ClientAuth: new("secret_basic"),
	}
}

// create makes a connection, and adds a secret where it needs one.
func create(f *apptest.Fixture, by apptest.Person, d connection.Draft) connection.Shown {
	f.Helper()
	f.UseMasterKey()
	made, err := f.Node(0).Connections.Create(f.Context(), by.Caller, d)
	f.NoError(err)
	if made.InForce.ClientAuth != doorward.PrivateKeyJWT {
		_, err := f.Node(0).Connections.AddSecret(f.Context(), by.Caller, made.ID, connection.NewSecret{Secret: clientSecret})
		f.NoError(err)
	}
	return get(f, by, made.ID)
}

func get(f *apptest.Fixture, by apptest.Person, id string) connection.Shown {
	f.Helper()
	c, err := f.Node(1).Connections.Connection(f.Context(), by.Caller, id)
	f.NoError(err)
	return c
}

// pass lets a test pass, with a real sign-in at the provider.
func pass(f *apptest.Fixture, by apptest.Person, id string, p *oidctest.Provider) {
	f.Helper()
	made, err := f.Node(0).Connections.NewTest(f.Context(), by.Caller, id, []byte("browser"))
	f.NoError(err)
	begun, err := f.Node(1).Connections.BeginTest(f.Context(), made.ID, []byte("browser"))
	f.NoError(err)
	asserted := signIn(f, id, begun.Pending, p)
	claims, err := json.Marshal(asserted.Claims)
	f.NoError(err)
	ended, err := f.Node(1).Connections.EndTest(f.Context(), made.ID, claims, []doorward.TestCheck{{Name: "iss", OK: true}})
	f.NoError(err)
	if ended.Status != doorward.TestPassed {
		f.Fatalf("the test ends as %+v", ended)
	}
}

// signIn signs in at the provider by what Ready returns.
func signIn(f *apptest.Fixture, id string, isPending bool, p *oidctest.Provider) oidcrp.Asserted {
	f.Helper()
	asserted, err := trySignIn(f, id, isPending, p)
	f.NoError(err)
	return asserted
}

func trySignIn(f *apptest.Fixture, id string, isPending bool, p *oidctest.Provider) (oidcrp.Asserted, error) {
	f.Helper()
	connections := f.Node(1).Connections
	ready, err := connections.Ready(f.Context(), id, isPending)
	if err != nil {
		return oidcrp.Asserted{}, err
	}
	flow := oidcrp.Begin(f.DB.Now())
	callback, err := p.SignIn(oidcrp.AuthURL(ready.Discovery, ready.Config, flow, ""))
	f.NoError(err)
	asserted, err := connections.Provider().Finish(f.Context(), ready.Discovery, ready.Config, flow, callback.Query())
	if err == nil {
		connections.SecretUsed(f.Context(), ready, asserted.UsedSecret)
	}
	return asserted, err
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

// active makes a connection that signs people in.
func active(f *apptest.Fixture, by apptest.Person, p *oidctest.Provider) connection.Shown {
	f.Helper()
	c := create(f, by, draftOf(p))
	f.SSOMode(by, doorward.SSOOptional, "allowed")
	pass(f, by, c.ID, p)
	return edit(f, by, c.ID, connection.Draft{Status: new("active")})
}

func wantCode(f *apptest.Fixture, err error, code doorward.Code) {
	f.Helper()
	if got := apptest.Code(err); got != code {
		f.Errorf("the error is %v, want %s", err, code)
	}
}

// wantField fails unless the error is one of the field.
func wantField(f *apptest.Fixture, err error, pointer, code string) {
	f.Helper()
	var e *doorward.Error
	if !errors.As(err, &e) || !slices.ContainsFunc(e.Fields, func(x doorward.FieldError) bool { return x.Pointer == pointer && x.Code == code }) {
		f.Errorf("the error is %v %+v, want %s of %s", err, e, code, pointer)
	}
}

// opened offers the sign-on, and opens a session of the person by the word of the connection.
func opened(f *apptest.Fixture, p apptest.Person, id string) apptest.Person {
	f.Helper()
	f.NoError(f.Node(0).Access.Upkeep(f.Context(), func(tx *store.Tx) error {
		return tx.SetSSOPolicy(f.Context(), doorward.SSOPolicy{TenantID: p.User.TenantID, Mode: doorward.SSOOptional, Revision: 1, ChangedAt: tx.Now, BeforeMode: doorward.SSOOff})
	}))
	proved := proof.Proof{Account: f.Account(p), Issuer: doorward.Issuer(id), TenantID: p.User.TenantID, Methods: []string{"fed"}}
	in, err := apptest.SignedIn(f.Node(0).Login.Enter(f.Context(), apptest.Anonymous(0), proved, p.User.TenantID))
	f.NoError(err)
	return apptest.PersonOf(in)
}

// TestOnlyWhatIsTestedSignsIn: a connection is enabled by a passed test of exactly what it has. Each later
// change makes the test void, also one back, and a change of the secrets.
func TestOnlyWhatIsTestedSignsIn(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		p := newProvider(t)
		c := create(f, owner, draftOf(p))
		enable := connection.Draft{Status: new("active")}
		wantCode(f, tryEdit(f, owner, c.ID, enable), doorward.CodeConnectionNotTested)
		pass(f, owner, c.ID, p)

		edit(f, owner, c.ID, connection.Draft{EmailFrom: new("upn")})
		wantCode(f, tryEdit(f, owner, c.ID, enable), doorward.CodeConnectionNotTested)
		edit(f, owner, c.ID, connection.Draft{EmailFrom: new("email")})
		wantCode(f, tryEdit(f, owner, c.ID, enable), doorward.CodeConnectionNotTested)

		test, err := f.Node(0).Connections.NewTest(f.Context(), owner.Caller, c.ID, []byte("browser"))
		f.NoError(err)
		edit(f, owner, c.ID, connection.Draft{EmailFrom: new("upn")})
		_, err = f.Node(0).Connections.BeginTest(f.Context(), test.ID, []byte("browser"))
		wantCode(f, err, doorward.CodeNotFound)
		edit(f, owner, c.ID, connection.Draft{EmailFrom: new("email")})
		ended, err := f.Node(0).Connections.EndTest(f.Context(), test.ID, nil, nil)
		f.NoError(err)
		if ended.Status != doorward.TestFailed {
			t.Error("a test of what was before a change and back has passed")
		}
		wantCode(f, tryEdit(f, owner, c.ID, enable), doorward.CodeConnectionNotTested)

		pass(f, owner, c.ID, p)
		second, err := f.Node(0).Connections.AddSecret(f.Context(), owner.Caller, c.ID, connection.NewSecret{Secret: "another secret of the client"})
		f.NoError(err)
		wantCode(f, tryEdit(f, owner, c.ID, enable), doorward.CodeConnectionNotTested)
		f.NoError(f.Node(0).Connections.DeleteSecret(f.Context(), owner.Caller, c.ID, second.ID))
		wantCode(f, tryEdit(f, owner, c.ID, enable), doorward.CodeConnectionNotTested)

		pass(f, owner, c.ID, p)
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
		p, next := newProvider(t), newProvider(t)
		c := active(f, owner, p)
		connections := f.Node(0).Connections
		_, err := connections.Switch(f.Context(), owner.Caller, c.ID, false)
		wantCode(f, err, doorward.CodeNothingPending)
		wantCode(f, connections.DropPending(f.Context(), owner.Caller, c.ID), doorward.CodeNotFound)

		changed := edit(f, owner, c.ID, connection.Draft{Issuer: new(next.Issuer()), EmailFrom: new("upn")})
		if changed.Pending == nil || changed.Pending.Issuer != next.Issuer() || changed.InForce.Issuer != p.Issuer() || changed.InForce.TestedAt == nil {
			t.Fatalf("after the change it is %+v, pending %+v", changed.InForce, changed.Pending)
		}
		changed = edit(f, owner, c.ID, connection.Draft{EmailFrom: new("email")})
		if changed.Pending.Issuer != next.Issuer() || changed.Pending.EmailFrom != "email" {
			t.Errorf("a second change is pending as %+v", changed.Pending)
		}
		if got := signIn(f, c.ID, false, p); got.Subject != "7" {
			t.Errorf("what is in force signs in %q", got.Subject)
		}
		_, err = connections.Switch(f.Context(), owner.Caller, c.ID, false)
		wantCode(f, err, doorward.CodeConnectionNotTested)
		pass(f, owner, c.ID, next)

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
		wantField(f, tryEdit(f, owner, c.ID, connection.Draft{Issuer: new("")}), "/issuer", "required")
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
		p := newProvider(t)
		c, other := active(f, owner, p), active(f, owner, p)
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
		p := newProvider(t)
		c := create(f, owner, draftOf(p))
		i := link(f, owner, c, p.Issuer())
		connections, by := f.Node(0).Connections, other.Caller
		for name, err := range map[string]error{
			"show":       apptest.ErrorOf(connections.Connection(f.Context(), by, c.ID)),
			"edit":       tryEdit(f, other, c.ID, connection.Draft{Name: new("x")}),
			"delete":     apptest.ErrorOf(connections.Delete(f.Context(), by, c.ID, false)),
			"switch":     apptest.ErrorOf(connections.Switch(f.Context(), by, c.ID, false)),
			"drop":       connections.DropPending(f.Context(), by, c.ID),
			"add secret": apptest.ErrorOf(connections.AddSecret(f.Context(), by, c.ID, connection.NewSecret{Secret: clientSecret})),
			"attempts":   apptest.ErrorOf(connections.Attempts(f.Context(), by, c.ID, doorward.Window{Limit: 1})),
			"identities": apptest.ErrorOf(connections.Identities(f.Context(), by, c.ID, doorward.Window{Limit: 1})),
			"unlink":     apptest.ErrorOf(connections.Unlink(f.Context(), by, i.ID)),
			"test":       apptest.ErrorOf(connections.NewTest(f.Context(), by, c.ID, nil)),
			"show test":  apptest.ErrorOf(connections.Test(f.Context(), by, c.ID, "tst_x")),
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
		p := newProvider(t)
		for issuer, code := range map[string]string{
			"http://idp.example": "invalid", "https://idp.example?x=1": "invalid", "https://ann@idp.example": "invalid",
			"https://login.microsoftonline.com/common/v2.0": "multi_tenant_issuer", "https://10.0.0.1": "address_refused",
			p.Issuer() + "/other": "issuer_mismatch", "https://127.0.0.1:1": "unreachable",
		} {
			d := draftOf(p)
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
			wantField(f, err, "/issuer", code)
		}
		if n := f.CountRows("connections"); n != 0 {
			t.Errorf("%d connections were made", n)
		}
	})
}

// TestLimits: a tenant has ten connections, and a connection two secrets.
func TestLimits(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		f.UseMasterKey()
		var last connection.Shown
		for range doorward.ConnectionsMax {
			last = create(f, owner, connection.Draft{Type: "oidc", Name: new("x")})
		}
		wantCode(f, apptest.ErrorOf(f.Node(0).Connections.Create(f.Context(), owner.Caller, connection.Draft{Type: "oidc", Name: new("x")})), doorward.CodeTooManyConnections)
		add := func(s connection.NewSecret) error {
			return apptest.ErrorOf(f.Node(0).Connections.AddSecret(f.Context(), owner.Caller, last.ID, s))
		}
		wantField(f, add(connection.NewSecret{}), "/clientSecret", "required")
		past := f.DB.Now().Add(-time.Hour)
		wantField(f, add(connection.NewSecret{Secret: clientSecret, ExpiresAt: &past}), "/expiresAt", "out_of_range")
		f.NoError(add(connection.NewSecret{Secret: "short"}))
		wantCode(f, add(connection.NewSecret{Secret: clientSecret}), doorward.CodeTooManySecrets)
		got := get(f, owner, last.ID)
		if got.Secrets[0].Hint != "" || got.Secrets[1].Hint != "ient" {
			t.Errorf("the hints are %+v", got.Secrets)
		}
		for _, row := range f.AllRows() {
			if strings.Contains(row, clientSecret) {
				t.Errorf("the secret is in a row: %s", row)
			}
		}
	})
}

// TestLimitOfRequests: a tenant has providers asked 30 times a minute at most, on all nodes together, by making,
// changing and testing connections. Beyond that nobody is asked.
func TestLimitOfRequests(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		_, other := f.Tenant()
		f.UseMasterKey()
		p := newProvider(t)
		issuer, path := p.Issuer(), p.Issuer()+"/none"
		draft := func(issuer string) connection.Draft {
			return connection.Draft{Type: "oidc", Name: new("x"), Issuer: &issuer, ClientID: new("doorward")}
		}
		c := create(f, owner, draft(issuer))
		_, err := f.Node(0).Connections.AddSecret(f.Context(), owner.Caller, c.ID, connection.NewSecret{Secret: clientSecret})
		f.NoError(err)
		tries := []func(node int) error{
			func(node int) error {
				return apptest.ErrorOf(f.Node(node).Connections.Create(f.Context(), owner.Caller, draft(path)))
			},
			func(node int) error {
				return apptest.ErrorOf(f.Node(node).Connections.NewTest(f.Context(), owner.Caller, c.ID, []byte("browser")))
			},
			func(node int) error {
				_, _, err := f.Node(node).Connections.Edit(f.Context(), owner.Caller, c.ID, connection.Change{Draft: connection.Draft{Issuer: &path}})
				return err
			},
		}
		for i := range 29 { // and c
			if err := tries[i%3](i % 2); apptest.Code(err) == doorward.CodeTooManyAttempts {
				t.Fatalf("request %d is refused", i+2)
			}
		}
		asked := p.Count(oidctest.DiscoveryPath)
		for i, try := range tries {
			wantCode(f, try(i%2), doorward.CodeTooManyAttempts)
		}
		if n := p.Count(oidctest.DiscoveryPath); n != asked {
			t.Errorf("beyond the limit the provider is asked %d times", n-asked)
		}
		create(f, owner, connection.Draft{Type: "oidc", Name: new("without an issuer")})
		create(f, other, draft(issuer))
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
		wantField(f, make("OWNER"), "/mappings/0/role", "out_of_range")
		wantField(f, make("HIGH"), "/mappings/0/role", "out_of_range")
		wantField(f, make("NONE"), "/mappings/0/role", "invalid")
		wantField(f, apptest.ErrorOf(connections.Create(f.Context(), owner.Caller, connection.Draft{Type: "oidc", Name: new("x"), JITRole: new("OWNER")})), "/jitRole", "out_of_range")
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

// TestProtocol: equal faults in a row are one entry with the last ten requests; others are entries of their
// own. A provider that refuses the client is told to OWNERs once a day.
func TestProtocol(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		c := create(f, owner, connection.Draft{Type: "oidc", Name: new("x")})
		fault := doorward.Attempt{ConnectionID: c.ID, Kind: doorward.AttemptSignIn, Outcome: doorward.AttemptRefused, Check: "client", Seen: "a\x00b" + strings.Repeat("ß", 300)}
		record := func(a doorward.Attempt, request string) {
			a.RequestIDs = []string{request}
			f.Node(0).Connections.Record(f.Context(), a)
			clock.Move(time.Second)
		}
		for i := range 12 {
			record(fault, fmt.Sprint("req_", i))
		}
		other := fault
		other.Check = "aud"
		record(other, "req_x")
		record(doorward.Attempt{ConnectionID: c.ID, Kind: doorward.AttemptSignIn, Outcome: doorward.AttemptSignedIn, Subject: "7"}, "req_y")
		record(doorward.Attempt{ConnectionID: c.ID, Kind: doorward.AttemptSignIn, Outcome: doorward.AttemptSignedIn, Subject: "7"}, "req_z")
		record(doorward.Attempt{ConnectionID: "con_none", Kind: doorward.AttemptSignIn, Outcome: doorward.AttemptRefused}, "req_w")
		page, err := f.Node(0).Connections.Attempts(f.Context(), owner.Caller, c.ID, doorward.Window{Limit: 50})
		f.NoError(err)
		first := page.Items[len(page.Items)-1]
		if len(page.Items) != 4 || first.Count != 12 || len(first.RequestIDs) != 10 || first.RequestIDs[9] != "req_11" {
			t.Errorf("the protocol is %+v", page.Items)
		}
		if !strings.HasPrefix(first.Seen, "abß") || len([]rune(first.Seen)) > 255 {
			t.Errorf("seen is %q", first.Seen)
		}
		f.NoError(f.Node(0).Mail.Deliver(f.Context()))
		if got := count(f.Subjects(owner.User.Email), "refuses"); got != 1 {
			t.Errorf("the OWNER got %d mails", got)
		}
		clock.Move(24 * time.Hour)
		record(fault, "req_1")
		f.NoError(f.Node(0).Mail.Deliver(f.Context()))
		if got := count(f.Subjects(owner.User.Email), "refuses"); got != 2 {
			t.Errorf("a day later the OWNER has got %d mails", got)
		}
		clock.Move(30 * 24 * time.Hour)
		f.NoError(f.Node(0).Connections.Sweep(f.Context()))
		if n := f.CountRows("connection_attempts"); n != 0 {
			t.Errorf("%d entries are left", n)
		}
	})
}

func count(texts []string, part string) (n int) {
	for _, text := range texts {
		if strings.Contains(text, part) {
			n++
		}
	}
	return n
}

// TestSecretsEnd: OWNERs are told 30 days, 7 days and a day before, once each, whoever sweeps; then it is
// still tried.
func TestSecretsEnd(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		p := newProvider(t)
		p.Change(func(s *oidctest.Settings) { s.Now = clock.Now })
		f.UseMasterKey()
		c, err := f.Node(0).Connections.Create(f.Context(), owner.Caller, draftOf(p))
		f.NoError(err)
		ends := clock.Now().Add(40 * 24 * time.Hour)
		_, err = f.Node(0).Connections.AddSecret(f.Context(), owner.Caller, c.ID, connection.NewSecret{Secret: clientSecret, ExpiresAt: &ends})
		f.NoError(err)
		for _, step := range []struct {
			days, mails int
		}{{9, 0}, {1, 1}, {22, 1}, {1, 2}, {6, 3}, {3, 3}} {
			clock.Move(time.Duration(step.days) * 24 * time.Hour)
			for i := range 2 {
				f.NoError(f.Node(i).Connections.Sweep(f.Context()))
			}
			f.NoError(f.Node(0).Mail.Deliver(f.Context()))
			if got := count(f.Subjects(owner.User.Email), "ends on"); got != step.mails {
				t.Errorf("after %d more days the OWNER has got %d mails, want %d", step.days, got, step.mails)
			}
		}
		if got := signIn(f, c.ID, false, p); got.UsedSecret != 0 {
			t.Errorf("the secret used is %d", got.UsedSecret)
		}
	})
}

// TestSecondSecret: the newest secret is tried first, and the other one when the provider refuses it; what
// is used is recorded.
func TestSecondSecret(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		p := newProvider(t)
		c := create(f, owner, draftOf(p))
		_, err := f.Node(0).Connections.AddSecret(f.Context(), owner.Caller, c.ID, connection.NewSecret{Secret: "not yet known there"})
		f.NoError(err)
		signIn(f, c.ID, false, p)
		got := get(f, owner, c.ID)
		if got.Secrets[0].LastUsedAt != nil || got.Secrets[1].LastUsedAt == nil {
			t.Errorf("the secrets are %+v", got.Secrets)
		}
	})
}

// TestKeysRotate: each connection has a key of its own. The next one is published a day before it signs,
// and the last one for a day, on whichever node the sweep runs.
func TestKeysRotate(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		p := newProvider(t)
		d := draftOf(p)
		d.ClientAuth = new("private_key_jwt")
		c, other := create(f, owner, d), create(f, owner, d)
		keys := func(id string) (all [][]byte) {
			raw, err := f.Node(1).Connections.Keys(f.Context(), id)
			f.NoError(err)
			for _, k := range raw {
				all = append(all, k)
			}
			return all
		}
		p.Change(func(s *oidctest.Settings) {
			s.Now = clock.Now
			s.Apps = []oidctest.App{{ID: "doorward", Auth: "private_key_jwt", Keys: func() [][]byte { return keys(c.ID) }}}
		})
		kid := func() string {
			ready, err := f.Node(0).Connections.Ready(f.Context(), c.ID, false)
			f.NoError(err)
			return ready.Config.Key.ID
		}
		signIn(f, c.ID, false, p)
		if len(keys(c.ID)) != 1 || string(keys(c.ID)[0]) == string(keys(other.ID)[0]) {
			t.Error("the connections have one key in common")
		}
		wantCode(f, apptest.ErrorOf(f.Node(0).Connections.Keys(f.Context(), "con_none")), doorward.CodeNotFound)
		first := kid()
		for _, step := range []struct {
			days, published int
			isFirst         bool
		}{{88, 1, true}, {1, 2, true}, {1, 2, false}, {1, 1, false}} {
			clock.Move(time.Duration(step.days) * 24 * time.Hour)
			for i := range 2 {
				f.NoError(f.Node(i).Connections.Sweep(f.Context()))
			}
			if got := len(keys(c.ID)); got != step.published || (kid() == first) != step.isFirst {
				t.Errorf("after %d more days %d keys are published, and the first one signs: %t", step.days, got, kid() == first)
			}
			signIn(f, c.ID, false, p)
		}
	})
}

// TestDiscoveryIsReadDaily: one node reads it, a fault changes nothing and is in the protocol, and what is
// kept serves.
func TestDiscoveryIsReadDaily(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		p := newProvider(t)
		p.Change(func(s *oidctest.Settings) { s.Now = clock.Now })
		c := active(f, owner, p)
		reads := func() int { return p.Count(oidctest.DiscoveryPath) }
		before := reads()
		readDue := func() {
			for i := range 2 {
				f.NoError(f.Node(i).Connections.ReadDue(f.Context()))
			}
		}
		readDue()
		clock.Move(24 * time.Hour)
		readDue()
		if got := reads() - before; got != 1 {
			t.Errorf("it was read %d times, want once", got)
		}
		clock.Move(24 * time.Hour)
		p.Change(func(s *oidctest.Settings) {
			s.Lies.Answer = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, oidctest.DiscoveryPath) {
					w.WriteHeader(http.StatusBadGateway)
					return true
				}
				return false
			}
		})
		readDue()
		signIn(f, c.ID, false, p) // by what is kept
		page, err := f.Node(0).Connections.Attempts(f.Context(), owner.Caller, c.ID, doorward.Window{Limit: 1})
		f.NoError(err)
		if got := page.Items[0]; got.Kind != doorward.AttemptMetadata || got.Outcome != doorward.AttemptUnavailable || got.Seen != oidcrp.CodeUnreachable {
			t.Errorf("the protocol has %+v", got)
		}
		if got := get(f, owner, c.ID); got.InForce.TestedAt == nil || got.Status != doorward.ConnectionActive {
			t.Errorf("after the fault it is %+v", got)
		}
		wantCode(f, apptest.ErrorOf(f.Node(0).Connections.NewTest(f.Context(), owner.Caller, c.ID, nil)), doorward.CodeProviderUnavailable)
	})
}

// TestMissing: a connection may be made before the customer's IT has issuer and client; a test says what is
// missing.
func TestMissing(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		p := newProvider(t)
		f.UseMasterKey()
		c, err := f.Node(0).Connections.Create(f.Context(), owner.Caller, connection.Draft{Type: "oidc", Name: new("x")})
		f.NoError(err)
		try := func() error {
			return apptest.ErrorOf(f.Node(0).Connections.NewTest(f.Context(), owner.Caller, c.ID, nil))
		}
		wantField(f, try(), "/issuer", "required")
		edit(f, owner, c.ID, connection.Draft{Issuer: new(p.Issuer())})
		wantField(f, try(), "/clientId", "required")
		edit(f, owner, c.ID, connection.Draft{ClientID: new("doorward")})
		wantField(f, try(), "/secrets", "required")
		_, err = f.Node(0).Connections.AddSecret(f.Context(), owner.Caller, c.ID, connection.NewSecret{Secret: clientSecret})
		f.NoError(err)
		pass(f, owner, c.ID, p)
	})
}

// TestTests: a test begins once, in the browser that has asked, within ten minutes; its claims are there
// for a day.
func TestTests(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		p := newProvider(t)
		p.Change(func(s *oidctest.Settings) { s.Now = clock.Now })
		c := create(f, owner, draftOf(p))
		connections := f.Node(0).Connections
		test, err := connections.NewTest(f.Context(), owner.Caller, c.ID, []byte("browser"))
		f.NoError(err)
		begin := func(browser string) error {
			return apptest.ErrorOf(connections.BeginTest(f.Context(), test.ID, []byte(browser)))
		}
		wantCode(f, begin("another"), doorward.CodeNotFound)
		f.NoError(begin("browser"))
		wantCode(f, begin("browser"), doorward.CodeNotFound)
		clock.Move(10 * time.Minute)
		wantCode(f, apptest.ErrorOf(connections.EndTest(f.Context(), test.ID, nil, nil)), doorward.CodeNotFound)
		show := func() (doorward.ConnectionTest, error) {
			return connections.Test(f.Context(), owner.Caller, c.ID, test.ID)
		}
		got, err := show()
		f.NoError(err)
		if got.Status != doorward.TestFailed {
			t.Errorf("a test that nobody has ended is %s", got.Status)
		}
		clock.Move(24 * time.Hour)
		wantCode(f, apptest.ErrorOf(show()), doorward.CodeNotFound)
		f.NoError(connections.Sweep(f.Context()))
		if n := f.CountRows("connection_tests"); n != 0 {
			t.Errorf("%d tests are left", n)
		}
	})
}

// TestSecretsAreSealed: secrets and keys are readable in their place only.
func TestSecretsAreSealed(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		p := newProvider(t)
		c := create(f, owner, draftOf(p))
		all, err := f.DB.Read().ConnectionSecrets(f.Context(), c.ID)
		f.NoError(err)
		elsewhere := seal.Place{Table: "connection_secrets", ID: "ccs_other", Column: "secret_sealed"}
		if _, err := f.Node(0).MasterKey.Open(f.Context(), elsewhere, all[0].Sealed); err == nil {
			t.Error("a secret opens in the place of another one")
		}
	})
}
