package setuplink_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/clientsecret"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/app/setuplink"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// draft makes a draft of a connection, without an issuer.
func draft(f *apptest.Fixture, by apptest.Person) string {
	f.Helper()
	made, err := f.Node(0).Connections.Create(f.Context(), by.Caller, connection.Draft{Type: "oidc", Name: new("Okta"), ClientID: new("doorward")})
	f.NoError(err)
	return made.ID
}

// makeLink makes a link for the connection and returns its token.
func makeLink(f *apptest.Fixture, by apptest.Person, conID string) (setuplink.Made, string) {
	f.Helper()
	made, err := f.Node(0).SetupLinks.Make(f.Context(), by.Caller, conID, 0)
	f.NoError(err)
	token, found := strings.CutPrefix(made.URL, "http://localhost:8080/setup#token=")
	if !found {
		f.Fatalf("the link is %s", made.URL)
	}
	return made, token
}

// begin begins by the link, and returns the value of the browser's cookie.
func begin(f *apptest.Fixture, token string) string {
	f.Helper()
	browser, err := f.Node(0).SetupLinks.Begin(f.Context(), apptest.Anonymous(0), token)
	f.NoError(err)
	return browser.Reveal()
}

// callerOf returns the caller of a browser that has begun, as another node sees it.
func callerOf(f *apptest.Fixture, browser string) doorward.Caller {
	f.Helper()
	by, _, err := f.Node(1).SetupLinks.Caller(f.Context(), apptest.Anonymous(1), browser)
	f.NoError(err)
	return by
}

// begun makes a link, begins by it and returns its caller.
func begun(f *apptest.Fixture, by apptest.Person, conID string) doorward.Caller {
	f.Helper()
	_, token := makeLink(f, by, conID)
	return callerOf(f, begin(f, token))
}

// change changes what the connection signs in by.
func change(f *apptest.Fixture, by doorward.Caller, conID, clientID string) error {
	_, _, err := f.Node(0).Connections.Edit(f.Context(), by, conID, connection.Change{Draft: connection.Draft{ClientID: &clientID}})
	return err
}

func wantCode(f *apptest.Fixture, what string, err error, code doorward.Code) {
	f.Helper()
	if got := apptest.Code(err); got != code {
		f.Errorf("%s: %v, want %q", what, err, code)
	}
}

// third returns the error of a call with two other results.
func third[A, B any](_ A, _ B, err error) error { return err }

// A link works in the browser that has begun by it, and in no other. Looking binds nothing, however often a mail
// scanner does it.
func TestOneBrowser(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		links := f.Node(0).SetupLinks
		_, owner := f.Tenant()
		conID := draft(f, owner)
		made, token := makeLink(f, owner, conID)
		for range 3 {
			link, con, err := f.Node(1).SetupLinks.Look(f.Context(), token)
			f.NoError(err)
			if link.ID != made.ID || link.BegunAt != nil || link.MakerEmail != owner.User.Email || con.ID != conID {
				t.Fatalf("the link shows %+v of %+v", link, con)
			}
		}
		_, _, err := links.Caller(f.Context(), apptest.Anonymous(0), token) // is no cookie
		wantCode(f, "the token as the cookie", err, doorward.CodeSetupLinkOver)
		browser := begin(f, token)
		for _, node := range f.Nodes {
			_, _, err := node.SetupLinks.Look(f.Context(), token)
			wantCode(f, "a look from another browser", err, doorward.CodeSetupLinkTaken)
			_, err = node.SetupLinks.Begin(f.Context(), apptest.Anonymous(0), token)
			wantCode(f, "another browser", err, doorward.CodeSetupLinkTaken)
		}
		by := callerOf(f, browser)
		if by.Kind != doorward.BySetupLink || by.ID != made.ID || by.OwnerID != owner.User.ID || by.TenantID != owner.User.TenantID || by.ConnectionID != conID || by.SessionID != "" {
			t.Errorf("the principal is %+v", by.Principal)
		}
		f.NoError(change(f, by, conID, "of the customer"))
		for _, wrong := range []string{"", "x", browser[1:], token} {
			_, _, err := links.Caller(f.Context(), apptest.Anonymous(0), wrong)
			wantCode(f, "another cookie", err, doorward.CodeSetupLinkOver)
			if wrong != token {
				_, _, err := links.Look(f.Context(), wrong)
				wantCode(f, "another token", err, doorward.CodeSetupLinkOver)
			}
		}
		_, err = links.Begin(f.Context(), apptest.Anonymous(0), browser)
		wantCode(f, "the cookie as the token", err, doorward.CodeSetupLinkOver)
	})
}

// TestRaceBegin: of browsers that begin at once, on two nodes, one does.
func TestRaceBegin(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		conID := draft(f, owner)
		for range apptest.Rounds(3, 20) {
			_, token := makeLink(f, owner, conID)
			browsers := make([]string, 8)
			errs := apptest.Concurrently(len(browsers), func(i int) error {
				browser, err := f.Node(i).SetupLinks.Begin(f.Context(), apptest.Anonymous(i), token)
				if err == nil {
					browsers[i] = browser.Reveal()
				}
				return err
			})
			winner := f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeSetupLinkTaken: len(browsers) - 1})
			callerOf(f, browsers[winner])
		}
		f.WantNoDeadlocks()
	})
}

// TestRaceEnd: whatever ends a link, nothing is changed by it once that is answered.
func TestRaceEnd(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		maker := f.Join(owner, doorward.RoleOwner)
		conID := draft(f, owner)
		for round := range apptest.Rounds(4, 20) {
			by := begun(f, maker, conID)
			errs := apptest.Concurrently(5, func(i int) error {
				if i > 0 {
					return change(f, by, conID, strings.Repeat("x", 10*round+i))
				}
				if round%2 == 0 {
					return f.Node(1).SetupLinks.End(f.Context(), owner.Caller, conID)
				}
				_, err := f.Node(1).Users.Suspend(f.Context(), owner.Caller, maker.User)
				return err
			})
			f.NoError(errs[0])
			f.WantOnly(errs[1:], "", doorward.CodeSetupLinkOver)
			wantCode(f, "after the end", change(f, by, conID, "late"), doorward.CodeSetupLinkOver)
			if round%2 == 1 {
				f.NoError(f.Node(0).Users.Resume(f.Context(), owner.Caller, maker.User))
				maker = f.SignIn(maker.User.Email, apptest.FirstPassword)
			}
		}
		f.WantNoDeadlocks()
	})
}

// endings end a link, or let it do nothing until undo; nil: it is over for good.
var endings = []struct {
	name string
	end  func(f *apptest.Fixture, e ending) error
	undo func(f *apptest.Fixture, e ending) error
	// again: what undo brings back is the link.
	again bool
}{
	{name: "its days", end: func(_ *apptest.Fixture, e ending) error { e.clock.Move(7 * 24 * time.Hour); return nil }},
	{name: "withdrawn", end: func(f *apptest.Fixture, e ending) error {
		return f.Node(0).SetupLinks.End(f.Context(), e.owner.Caller, e.conID)
	}},
	{name: "a newer one", end: func(f *apptest.Fixture, e ending) error {
		return apptest.ErrorOf(f.Node(0).SetupLinks.Make(f.Context(), e.owner.Caller, e.conID, 1))
	}},
	{
		name: "maker demoted",
		end: func(f *apptest.Fixture, e ending) error {
			return f.Node(0).Users.SetRole(f.Context(), e.owner.Caller, e.maker.User, doorward.RoleAdmin)
		},
		undo: func(f *apptest.Fixture, e ending) error {
			return f.Node(0).Users.SetRole(f.Context(), e.owner.Caller, doorward.User{ID: e.maker.User.ID, TenantID: e.maker.User.TenantID}, doorward.RoleOwner)
		},
		again: true,
	},
	{
		name: "maker suspended",
		end: func(f *apptest.Fixture, e ending) error {
			return apptest.ErrorOf(f.Node(0).Users.Suspend(f.Context(), e.owner.Caller, e.maker.User))
		},
		undo: func(f *apptest.Fixture, e ending) error {
			return f.Node(0).Users.Resume(f.Context(), e.owner.Caller, e.maker.User)
		},
	},
	{name: "maker removed", end: func(f *apptest.Fixture, e ending) error {
		return apptest.ErrorOf(f.Node(0).Users.Remove(f.Context(), e.owner.Caller, e.maker.User, user.Handover{}, nil))
	}},
	{name: "maker gone", end: func(f *apptest.Fixture, e ending) error {
		return apptest.ErrorOf(f.Node(0).Users.Leave(f.Context(), e.maker.Caller, e.maker.User.TenantID))
	}},
	{name: "maker erased", end: func(f *apptest.Fixture, e ending) error {
		return apptest.ErrorOf(f.Node(0).Users.EraseAddress(f.Context(), doorward.OperatorAtTerminal(), e.maker.User.Email))
	}},
	{name: "connection deleted", end: func(f *apptest.Fixture, e ending) error {
		return apptest.ErrorOf(f.Node(0).Connections.Delete(f.Context(), e.owner.Caller, e.conID, false))
	}},
	{
		name: "tenant frozen",
		end: func(f *apptest.Fixture, e ending) error {
			return apptest.ErrorOf(f.Node(0).Tenants.Freeze(f.Context(), doorward.OperatorAtTerminal(), e.owner.User.TenantID))
		},
		undo: func(f *apptest.Fixture, e ending) error {
			return apptest.ErrorOf(f.Node(0).Tenants.Thaw(f.Context(), doorward.OperatorAtTerminal(), e.owner.User.TenantID))
		},
		again: true,
	},
	{
		name: "tenant closing",
		end: func(f *apptest.Fixture, e ending) error {
			return third(f.Node(0).Tenants.Change(f.Context(), doorward.OperatorAtTerminal(), e.owner.User.TenantID, tenant.Change{Status: doorward.TenantClosing}))
		},
	},
}

// ending is a link that is about to end.
type ending struct {
	clock        *apptest.StoppedClock
	owner, maker apptest.Person
	conID        string
}

// Whatever ends a link ends it in the browser that has begun, in that of a request under way, and for those who
// have not begun.
func TestEndings(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		for _, one := range endings {
			t.Log(one.name)
			checkEnding(f, ending{clock: clock}, one.end, one.undo, one.again)
		}
	})
}

func checkEnding(f *apptest.Fixture, e ending, end, undo func(*apptest.Fixture, ending) error, again bool) {
	f.Helper()
	_, e.owner = f.Tenant()
	e.maker = f.Join(e.owner, doorward.RoleOwner)
	e.conID = draft(f, e.owner)
	_, token := makeLink(f, e.maker, e.conID)
	browser := begin(f, token)
	by := callerOf(f, browser)
	f.NoError(change(f, by, e.conID, "before"))
	f.NoError(end(f, e))
	isOver := func(what string) {
		f.Helper()
		_, _, err := f.Node(1).SetupLinks.Caller(f.Context(), apptest.Anonymous(1), browser)
		wantCode(f, what+", the browser", err, doorward.CodeSetupLinkOver)
		_, _, err = f.Node(1).SetupLinks.Look(f.Context(), token)
		wantCode(f, what+", a look", err, doorward.CodeSetupLinkOver)
		_, err = f.Node(1).SetupLinks.Begin(f.Context(), apptest.Anonymous(1), token)
		wantCode(f, what+", a beginning", err, doorward.CodeSetupLinkOver)
		if err := change(f, by, e.conID, "after"); apptest.Code(err) != doorward.CodeSetupLinkOver && apptest.Code(err) != doorward.CodeNotFound {
			f.Errorf("%s, a request under way: %v", what, err)
		}
	}
	isOver("ended")
	if undo == nil {
		return
	}
	f.NoError(undo(f, e))
	if !again {
		isOver("undone")
		return
	}
	f.NoError(change(f, callerOf(f, browser), e.conID, "again"))
}

// A link lasts 1 to 7 days, is shown to managers while it is good, and can be ended while it is.
func TestMaking(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		links := f.Node(0).SetupLinks
		_, owner := f.Tenant()
		_, other := f.Tenant()
		conID := draft(f, owner)
		for _, days := range []int{-1, 8, 1 << 40} {
			wantCode(f, "wrong days", apptest.ErrorOf(links.Make(f.Context(), owner.Caller, conID, days)), doorward.CodeValidationFailed)
		}
		for days, want := range map[int]time.Duration{0: 7 * 24 * time.Hour, 1: 24 * time.Hour, 7: 7 * 24 * time.Hour} {
			made, err := links.Make(f.Context(), owner.Caller, conID, days)
			f.NoError(err)
			if got := made.EndsAt.Sub(f.DB.Now()).Round(time.Second); got != want {
				t.Errorf("%d days: it ends in %s, want %s", days, got, want)
			}
		}
		if n := f.CountRows("setup_links"); n != 1 {
			t.Errorf("%d links are left of one connection", n)
		}
		for _, foreign := range []string{"con_none", conID} {
			wantCode(f, "another tenant's", apptest.ErrorOf(links.Make(f.Context(), other.Caller, foreign, 0)), doorward.CodeNotFound)
			wantCode(f, "another tenant's", links.End(f.Context(), other.Caller, foreign), doorward.CodeNotFound)
			_, _, err := links.Of(f.Context(), other.Caller, foreign)
			wantCode(f, "another tenant's", err, doorward.CodeNotFound)
		}
		admin := f.Join(owner, doorward.RoleAdmin)
		wantCode(f, "an ADMIN's", apptest.ErrorOf(links.Make(f.Context(), admin.Caller, conID, 0)), doorward.CodeForbidden)
		made, err := links.Make(f.Context(), owner.Caller, conID, 1)
		f.NoError(err)
		if is, isAlive, err := links.Of(f.Context(), owner.Caller, conID); err != nil || !isAlive || is.ID != made.ID || is.MakerEmail != owner.User.Email {
			t.Errorf("the link is shown as %+v, %v, %v", is, isAlive, err)
		}
		clock.Move(24 * time.Hour)
		owner = f.SignIn(owner.User.Email, apptest.FirstPassword)
		if _, isAlive, err := links.Of(f.Context(), owner.Caller, conID); err != nil || isAlive {
			t.Errorf("a link that is over is shown: %v", err)
		}
		wantCode(f, "over by itself", links.End(f.Context(), owner.Caller, conID), doorward.CodeNotFound)
		f.NoError(links.Sweep(f.Context()))
		if n := f.CountRows("setup_links"); n != 0 {
			t.Errorf("%d links are left after the sweep", n)
		}
	})
}

// By a link nothing can be done but what is marked for links, to what belongs to its connection.
func TestReach(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		f.UseMasterKey()
		node := f.Node(0)
		_, owner := f.Tenant()
		_, stranger := f.Tenant()
		own, beside, elsewhere := draft(f, owner), draft(f, owner), draft(f, stranger)
		domain := func(p apptest.Person, name, conID string) doorward.Domain {
			made, err := node.Domains.Add(f.Context(), p.Caller, name)
			f.NoError(err)
			f.DNS.TXT(made.Record())
			if conID != "" {
				made, err = node.Domains.SetConnection(f.Context(), p.Caller, made.ID, conID, nil)
				f.NoError(err)
			}
			return made
		}
		ownDomain, besideDomain := domain(owner, "own.example", own), domain(owner, "beside.example", beside)
		noDomain, elsewhereDomain := domain(owner, "none.example", ""), domain(stranger, "other.example", elsewhere)
		by := begun(f, owner, own)
		by.RequestID = "req_test"

		secret, err := node.ClientSecrets.Add(f.Context(), by, own, clientsecret.Typed{Secret: "a secret of the client"})
		f.NoError(err)
		f.NoError(node.ClientSecrets.Delete(f.Context(), by, own, secret.ID))
		f.NoError(apptest.ErrorOf(node.Domains.Verify(f.Context(), by, ownDomain.ID)))
		if all, err := node.Domains.OfConnection(f.Context(), by, own); err != nil || len(all) != 1 || all[0].ID != ownDomain.ID {
			t.Errorf("the link sees the domains %+v, %v", all, err)
		}
		if all, err := node.Domains.OfConnection(f.Context(), by, beside); err != nil || len(all) != 0 {
			t.Errorf("the link sees domains of another connection: %+v, %v", all, err)
		}
		for _, foreign := range []string{beside, elsewhere} {
			wantCode(f, "change", change(f, by, foreign, "x"), doorward.CodeNotFound)
			wantCode(f, "secret", apptest.ErrorOf(node.ClientSecrets.Add(f.Context(), by, foreign, clientsecret.Typed{Secret: "x"})), doorward.CodeNotFound)
			wantCode(f, "test", apptest.ErrorOf(node.Tests.Make(f.Context(), by, foreign)), doorward.CodeNotFound)
			wantCode(f, "reading", apptest.ErrorOf(node.Connections.Connection(f.Context(), by, foreign)), doorward.CodeNotFound)
			wantCode(f, "protocol", apptest.ErrorOf(node.Connections.Attempts(f.Context(), by, foreign, doorward.Window{Limit: 1})), doorward.CodeNotFound)
		}
		for _, foreign := range []doorward.Domain{besideDomain, noDomain, elsewhereDomain} {
			wantCode(f, foreign.Name, apptest.ErrorOf(node.Domains.Verify(f.Context(), by, foreign.ID)), doorward.CodeNotFound)
			wantCode(f, foreign.Name, apptest.ErrorOf(node.Domains.Get(f.Context(), by, foreign.ID)), doorward.CodeNotFound)
		}
		for what, err := range refusals(f, by, own, ownDomain.ID) {
			wantCode(f, what, err, doorward.CodeForbidden)
		}
	})
}

// refusals returns the errors of what a link may not do to its own connection and its domains, and to its tenant.
func refusals(f *apptest.Fixture, by doorward.Caller, conID, domainID string) map[string]error {
	node, ctx := f.Node(0), f.Context()
	setting := func(d connection.Draft) error {
		return third(node.Connections.Edit(ctx, by, conID, connection.Change{Draft: d}))
	}
	return map[string]error{
		"name":        setting(connection.Draft{Name: new("x")}),
		"jit":         setting(connection.Draft{JIT: new("domains")}),
		"jitRole":     setting(connection.Draft{JITRole: new("ADMIN")}),
		"mappings":    setting(connection.Draft{Mappings: &[]doorward.GroupMapping{{Group: "a", Role: doorward.RoleAdmin}}}),
		"groupsFrom":  setting(connection.Draft{GroupsFrom: new("groups")}),
		"factorAcr":   setting(connection.Draft{FactorACR: &[]string{"x"}}),
		"trustFactor": setting(connection.Draft{TrustFactor: new(true)}),
		"both":        setting(connection.Draft{ClientID: new("of both"), TrustFactor: new(true)}),
		"enable":      setting(connection.Draft{Status: new("active")}),
		"disable":     setting(connection.Draft{Status: new("disabled")}),
		"delete":      apptest.ErrorOf(node.Connections.Delete(ctx, by, conID, false)),
		"dry run":     apptest.ErrorOf(node.Connections.Delete(ctx, by, conID, true)),
		"switch":      apptest.ErrorOf(node.Connections.Switch(ctx, by, conID, false)),
		"create":      apptest.ErrorOf(node.Connections.Create(ctx, by, connection.Draft{Type: "oidc", Name: new("x")})),
		"link":        apptest.ErrorOf(node.SetupLinks.Make(ctx, by, conID, 1)),
		"end":         node.SetupLinks.End(ctx, by, conID),
		"add domain":  apptest.ErrorOf(node.Domains.Add(ctx, by, "new.example")),
		"move domain": apptest.ErrorOf(node.Domains.SetConnection(ctx, by, domainID, "", nil)),
		"drop domain": node.Domains.Delete(ctx, by, domainID),
		"policy":      apptest.ErrorOf(node.Policies.Put(ctx, by, policy.Draft{Text: "// x\n"}, nil)),
		"role":        apptest.ErrorOf(node.Roles.Create(ctx, by, role.Draft{Name: "X", Permissions: []string{"user.read"}})),
		"webhooks":    node.Access.Require(ctx, by, doorward.WebhookManage, by.Tenant()),
		"people":      node.Access.Require(ctx, by, doorward.UserRead, by.Tenant()),
		"account":     node.Access.Require(ctx, by, doorward.AccountExport, doorward.Object{Type: "user", ID: by.OwnerID, TenantID: by.TenantID}),
	}
}

// TestRaceMovedDomain: a domain that is given to another connection while a link has it verified isn't verified by
// the link.
func TestRaceMovedDomain(t *testing.T) {
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	_, owner := f.Tenant()
	own, beside := draft(f, owner), draft(f, owner)
	d, err := f.Node(0).Domains.Add(f.Context(), owner.Caller, "own.example")
	f.NoError(err)
	_, err = f.Node(0).Domains.SetConnection(f.Context(), owner.Caller, d.ID, own, nil)
	f.NoError(err)
	by := begun(f, owner, own)
	answered := make(chan error)
	_, value := d.Record()
	f.DNS.TXT("_doorward.own.example", value)
	f.WhileLocked(func(tx *store.Tx) error {
		if err := tx.LockTenant(f.Context(), owner.User.TenantID); err != nil {
			return err
		}
		return tx.SetDomainConnection(f.Context(), d.ID, beside)
	}, func(waitFor func(int, <-chan struct{})) {
		go func() { answered <- apptest.ErrorOf(f.Node(0).Domains.Verify(f.Context(), by, d.ID)) }()
		waitFor(1, nil)
	})
	wantCode(f, "a domain that has moved", <-answered, doorward.CodeNotFound)
}

// What refuses the maker at the moment refuses the link: policies, and permissions of an own role.
func TestMaker(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		conID := draft(f, owner)
		made, err := f.Node(0).Roles.Create(f.Context(), owner.Caller, role.Draft{Name: "IT", Permissions: []string{"sso.manage"}})
		f.NoError(err)
		maker := f.Join(f.SignIn(owner.User.Email, apptest.FirstPassword), "IT")
		_, token := makeLink(f, maker, conID)
		browser := begin(f, token)
		by := callerOf(f, browser)
		f.NoError(change(f, by, conID, "before"))
		put := func(text string) {
			_, err := f.Node(0).Policies.Put(f.Context(), owner.Caller, policy.Draft{Text: text, Mode: store.PolicyEnforces}, nil)
			f.NoError(err)
		}
		put(`@id("office") forbid(principal == User::"` + maker.User.ID + `", action == Action::"connection.update", resource);`)
		wantCode(f, "refused by a policy about the maker", change(f, callerOf(f, browser), conID, "policy"), doorward.CodeDeniedByPolicy)
		wantCode(f, "refused to a request under way", change(f, by, conID, "policy"), doorward.CodeDeniedByPolicy)
		put("// none\n")
		f.NoError(change(f, callerOf(f, browser), conID, "again"))
		f.NoError(third(f.Node(0).Roles.Edit(f.Context(), owner.Caller, made.ID, role.Edit{Permissions: &[]string{"user.read"}})))
		wantCode(f, "the role has lost the permission", change(f, by, conID, "role"), doorward.CodeSetupLinkOver)
	})
}

// A fault of the database is no end of the link.
func TestFault(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		conID := draft(f, owner)
		_, token := makeLink(f, owner, conID)
		browser := begin(f, token)
		gone, cancel := context.WithCancel(f.Context())
		cancel()
		_, _, err := f.Node(0).SetupLinks.Caller(gone, apptest.Anonymous(0), browser)
		wantCode(f, "the browser", err, doorward.CodeUnavailable)
		_, _, err = f.Node(0).SetupLinks.Look(gone, token)
		wantCode(f, "a look", err, doorward.CodeUnavailable)
		_, err = f.Node(0).SetupLinks.Begin(gone, apptest.Anonymous(0), token)
		wantCode(f, "a beginning", err, doorward.CodeUnavailable)
		callerOf(f, browser)
	})
}

// The trail says by which link something was done, and when links began and ended.
func TestTrail(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		maker := f.Join(owner, doorward.RoleOwner)
		conID := draft(f, owner)
		made, token := makeLink(f, maker, conID)
		browser, err := f.Node(0).SetupLinks.Begin(f.Context(), doorward.Caller{Principal: doorward.Principal{Kind: doorward.Anonymous}, IP: "192.0.2.1", UserAgent: "Firefox"}, token)
		f.NoError(err)
		f.NoError(change(f, callerOf(f, browser.Reveal()), conID, "of the customer"))
		_, err = f.Node(0).Users.Suspend(f.Context(), owner.Caller, maker.User)
		f.NoError(err)
		events, err := storetest.Events(f.Context(), f.DB.Read(), owner.User.TenantID)
		f.NoError(err)
		var lines []string
		for _, e := range events {
			if e.Target.Type != "connection" || e.Action == doorward.ConnectionCreate {
				continue
			}
			line := string(e.ActorType) + " " + e.ActorID + " " + string(e.Action)
			for _, c := range e.Changes {
				if c.Field != doorward.FieldEndsAt {
					line += ", " + c.Field + " " + c.From + ">" + c.To
				}
			}
			lines = append(lines, line)
		}
		want := []string{
			"user " + maker.User.ID + " connection.setup_link, setupLink >" + made.ID,
			"setup_link " + made.ID + " connection.setup_begin, userAgent >Firefox",
			"setup_link " + made.ID + " connection.update, clientId doorward>of the customer",
			"user " + owner.User.ID + " connection.setup_link, setupLink " + made.ID + ">",
		}
		slices.Sort(lines)
		slices.Sort(want)
		if !slices.Equal(lines, want) {
			t.Errorf("the trail has\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
	})
}
