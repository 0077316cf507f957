package app_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/demand"
	"github.com/doorward/doorward/app/flow"
	"github.com/doorward/doorward/app/signoff"
	"github.com/doorward/doorward/app/signon"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/internal/samlsp/samltest"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// These tests are about the kill switch. A table has each change of a person's status or
// membership, and says whether sessions, invitations, links and browsers end or stay valid. Once
// the call has returned, both nodes refuse what has ended.

// holder is an ADMIN, ann, with a session, an invitation that ann sent, a reset of the password
// and a known browser.
type holder struct {
	owner, ann, other apptest.Person  // owner and other are members of the same tenant
	elsewhere         *apptest.Person // ann's session in another tenant; nil: ann is in one tenant
	byAnn, byOwner    sentInvitation  // invitations of new people
	reset             string
	device            []byte
	saml              samlSession // ann's, in the tenant
}

// samlSession is a session that came by a response of a SAML provider.
type samlSession struct {
	con, identity string
	person        apptest.Person
}

// samlProvider is one for all holders, since a key takes a while to make.
var samlProvider = sync.OnceValue(func() *samltest.Provider { return samltest.New("https://idp.acme.example/saml") })

// enterBySAML gives the owner's tenant a connection to a SAML provider, whose response signs the person in.
func enterBySAML(f *apptest.Fixture, owner, who apptest.Person) samlSession {
	f.Helper()
	ctx, node := f.Context(), f.Node(0)
	idp := samlProvider()
	con, err := node.Connections.Create(ctx, owner.Caller, connection.Draft{Type: "saml", Name: new("SAML"), Metadata: new(string(idp.Metadata()))})
	f.NoError(err)
	s := samlSession{con: con.ID, identity: doorward.NewID(doorward.PrefixIdentity)}
	_, err = f.DB.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.MarkConnectionTested(ctx, con.ID, false, con.InForce.Revision)
		added, linkErr := tx.InsertIdentity(ctx, doorward.Identity{
			ID: s.identity, ConnectionID: con.ID, TenantID: con.TenantID, Issuer: idp.EntityID, Subject: who.User.ID, UserID: who.User.ID, CreatedAt: tx.Now, LastUsedAt: tx.Now,
		})
		if linkErr == nil && !added {
			linkErr = errors.New("the identity is there already")
		}
		return errors.Join(err, linkErr)
	})
	f.NoError(err)
	_, _, err = node.Connections.Edit(ctx, owner.Caller, con.ID, connection.Change{Draft: connection.Draft{Status: new("active")}})
	f.NoError(err)
	f.SSOMode(owner, doorward.SSOOptional, doorward.GuestsAllowed)
	begun, err := node.SignOn.Start(ctx, apptest.Anonymous(0), con.ID, signon.Ask{})
	f.NoError(err)
	request, err := samltest.Read(begun.URL)
	f.NoError(err)
	a := idp.Answer(request, f.DB.Now())
	a.NameID = who.User.ID
	form, err := idp.Form(a)
	f.NoError(err)
	query, err := f.Node(1).SignOn.Receive(ctx, apptest.Anonymous(1), con.ID, form)
	f.NoError(err)
	result, err := node.SignOn.Finish(ctx, apptest.Anonymous(0), con.ID, query, []flow.Tab{begun.Tab})
	f.NoError(err)
	in, err := apptest.SignedIn(result.Outcome, nil)
	f.NoError(err)
	s.person = apptest.PersonOf(in)
	return s
}

// inBrowser returns ann as a caller in the known browser.
func (h holder) inBrowser() doorward.Caller {
	by := h.ann.Caller
	by.Devices = [][]byte{h.device}
	return by
}

type sentInvitation struct{ id, token string }

// sendInvitation invites a new person.
func sendInvitation(f *apptest.Fixture, by apptest.Person, who string) sentInvitation {
	f.Helper()
	inv, token := f.Invite(by, f.NewEmail(who), doorward.RoleUser)
	return sentInvitation{inv.ID, token}
}

// newHolder returns a holder who is also in another tenant if inTwoTenants is set.
func newHolder(f *apptest.Fixture, inTwoTenants bool) holder {
	f.Helper()
	var c holder
	_, c.owner = f.Tenant()
	c.ann, c.other = f.Join(c.owner, doorward.RoleAdmin), f.Join(c.owner, doorward.RoleUser)
	if inTwoTenants {
		_, otherOwner := f.Tenant()
		invitation, token := f.Invite(otherOwner, c.ann.User.Email, doorward.RoleUser)
		_, err := f.Node(0).Invitations.Accept(f.Context(), c.ann.Caller, token, "")
		f.NoError(err)
		r, err := apptest.SignedIn(f.Node(0).Login.WithPassword(f.Context(), apptest.Anonymous(0), c.ann.User.Email, apptest.FirstPassword, invitation.TenantID))
		f.NoError(err)
		by := apptest.Anonymous(0).As(r.User)
		by.Principal = doorward.PrincipalOf(r.User, r.Session)
		c.elsewhere = &apptest.Person{Caller: by, User: r.User, Token: r.Token}
	}
	c.saml = enterBySAML(f, c.owner, c.ann)
	c.byAnn, c.byOwner = sendInvitation(f, c.ann, "guest"), sendInvitation(f, c.owner, "guest")
	c.reset, c.device = f.ResetToken(c.ann), []byte(c.ann.User.Email)
	_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
		_, err := tx.InsertDevice(f.Context(), c.device, c.ann.User.ID, 20, time.Time{}) // at most 20 browsers, of any age
		return err
	})
	f.NoError(err)
	return c
}

// outcomes returns what happens when each credential of the holder is used, in the order of the
// results below: "valid", followed by the role if that has changed, or the reason of the refusal.
func outcomes(f *apptest.Fixture, c holder) string {
	f.Helper()
	var results []string
	for i := range f.Nodes {
		results = append(results, strings.Join([]string{
			outcomeOfSession(f, i, &c.ann), outcomeOfSession(f, i, c.elsewhere), outcomeOfSession(f, i, &c.other),
			outcomeOfInvitation(f, i, c.byAnn), outcomeOfInvitation(f, i, c.byOwner), outcomeOfReset(f, i, c.reset), outcomeOfDevice(f, c),
		}, " "))
		if results[i] != results[0] {
			f.Errorf("node %d says %q, another %q", i, results[i], results[0])
		}
	}
	return results[0]
}

func outcomeOfSession(f *apptest.Fixture, i int, p *apptest.Person) string {
	if p == nil {
		return "-"
	}
	id, err := f.Node(i).Sessions.Check(f.Context(), p.Token)
	if err == nil && id.Role != p.User.Role {
		return "valid:" + string(id.Role)
	}
	return outcome(err)
}

// outcomeOfInvitation distinguishes a revoked invitation from one whose sender may not invite
// at present. Like outcomeOfReset it sends a password that is too short: the token is checked and
// stays usable.
func outcomeOfInvitation(f *apptest.Fixture, i int, o sentInvitation) string {
	f.Helper()
	inv, err := f.DB.Read().Invitation(f.Context(), o.id)
	f.NoError(err)
	if inv.State != doorward.InvitationPending {
		return string(inv.State)
	}
	_, err = f.Node(i).Invitations.Complete(f.Context(), apptest.Anonymous(i), o.token, "short", "short")
	return outcome(err)
}

func outcomeOfReset(f *apptest.Fixture, i int, token string) string {
	return outcome(apptest.ErrorOf(f.Node(i).Passwords.Reset(f.Context(), apptest.Anonymous(i), token, "short", "short")))
}

func outcomeOfDevice(f *apptest.Fixture, c holder) string {
	f.Helper()
	known, err := f.DB.Read().KnownDevices(f.Context(), c.ann.User.Email, [][]byte{c.device}, time.Time{})
	f.NoError(err)
	return map[bool]string{true: "valid", false: unknownBrowser}[len(known) == 1]
}

func outcome(err error) string {
	if err == nil || apptest.Code(err) == doorward.CodeValidationFailed {
		return "valid"
	}
	return string(apptest.Code(err))
}

// operatorByKey returns the operator as a caller with a key, operatorAtTerminal as one at the
// terminal.
func operatorByKey(f *apptest.Fixture) doorward.Caller {
	text, err := f.Node(0).Keys.CreateOperator(f.Context(), apptest.Operator, "billing")
	f.NoError(err)
	by, err := f.Node(0).Keys.Check(f.Context(), apptest.Anonymous(0), text)
	f.NoError(err)
	return by
}

func operatorAtTerminal(*apptest.Fixture) doorward.Caller { return apptest.Operator }

// edit returns a step that edits the person's membership.
func edit(by func(holder) doorward.Caller, e func() user.Edit) func(*apptest.Fixture, holder) error {
	return func(f *apptest.Fixture, c holder) error {
		_, _, err := f.Node(0).Users.Edit(f.Context(), by(c), c.ann.User, e())
		return err
	}
}

func byOwner(c holder) doorward.Caller  { return c.owner.Caller }
func atTerminal(holder) doorward.Caller { return apptest.Operator }

func suspended() user.Edit {
	to := doorward.UserSuspended
	return user.Edit{Status: &to}
}

func demoted() user.Edit {
	to := doorward.RoleViewer
	return user.Edit{Role: &to}
}

func resumed() user.Edit {
	to := doorward.UserActive
	return user.Edit{Status: &to}
}

func promoted() user.Edit {
	to := doorward.RoleAdmin
	return user.Edit{Role: &to}
}

// rejoin makes the person a member again. The person proves the password, or sets a new one if
// the end of the last membership deleted it.
func rejoin(f *apptest.Fixture, c holder) error {
	_, token := f.Invite(c.owner, c.ann.User.Email, doorward.RoleAdmin)
	var err error
	if f.Account(c.ann).PasswordHash == "" {
		_, err = f.Node(0).Invitations.Complete(f.Context(), apptest.Anonymous(0), token, apptest.FirstPassword, apptest.FirstPassword)
	} else {
		_, err = f.Node(0).Invitations.Accept(f.Context(), apptest.Anonymous(0), token, apptest.FirstPassword)
	}
	return err
}

// endByProvider gives the tenant a connection, and the person another session that it vouches for, which must have ended on
// every node once end has returned.
func endByProvider(f *apptest.Fixture, c holder, end func(p *oidctest.Provider, con string) (doorward.Revocation, error)) error {
	f.Helper()
	p := f.Provider()
	con := f.Active(c.owner, p)
	_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
		_, err := tx.InsertIdentity(f.Context(), doorward.Identity{
			ID: doorward.NewID(doorward.PrefixIdentity), ConnectionID: con.ID, TenantID: con.TenantID, Issuer: p.Issuer(), Subject: c.ann.User.ID,
			UserID: c.ann.User.ID, CreatedAt: tx.Now, LastUsedAt: tx.Now,
		})
		return err
	})
	f.NoError(err)
	vouched := f.ByConnection(c.ann)
	if got := outcomeOfSession(f, 0, &vouched); got != "valid" {
		f.Fatalf("before it the session of the connection is %s", got)
	}
	_, err = end(p, con.ID)
	for i := range f.Nodes {
		if got := outcomeOfSession(f, i, &vouched); got != signedOut {
			f.Errorf("node %d says of the connection's session %q", i, got)
		}
	}
	return err
}

func thaw(f *apptest.Fixture, c holder) error {
	return apptest.ErrorOf(f.Node(0).Tenants.Thaw(f.Context(), apptest.Operator, c.ann.User.TenantID))
}

func restore(f *apptest.Fixture, c holder) error {
	_, err := f.Node(0).Tenants.Restore(f.Context(), f.SignIn(c.owner.User.Email, apptest.FirstPassword).Caller)
	return err
}

func freeze(by func(*apptest.Fixture) doorward.Caller) func(*apptest.Fixture, holder) error {
	return func(f *apptest.Fixture, c holder) error {
		_, err := f.Node(0).Tenants.Freeze(f.Context(), by(f), c.ann.User.TenantID)
		return err
	}
}

// The table below has the results in this order: the person's session in the tenant; the one
// in another tenant, "-" for a person in one tenant only; another member's session; an
// invitation that the person sent; one that the OWNER sent; the person's reset link; the known
// browser.
const (
	signedOut       = "unauthenticated"
	revoked         = "REVOKED"
	senderDemoted   = "invitation_revoked" // its sender may not invite at present
	resetExpired    = "reset_expired"
	unknownBrowser  = "unknown"
	endOfMembership = signedOut + " %s valid " + revoked + " valid %s %s"
)

var killSwitch = []struct {
	name             string
	do               func(*apptest.Fixture, holder) error
	alone, elsewhere string                               // results for a person in one tenant, and in two
	undo             func(*apptest.Fixture, holder) error // nil: nothing to undo
}{
	{"suspended by an OWNER", edit(byOwner, suspended), fmt.Sprintf(endOfMembership, "-", resetExpired, "valid"), fmt.Sprintf(endOfMembership, "valid", "valid", "valid"), edit(byOwner, resumed)},
	{"suspended at the terminal", edit(atTerminal, suspended), fmt.Sprintf(endOfMembership, "-", resetExpired, "valid"), fmt.Sprintf(endOfMembership, "valid", "valid", "valid"), edit(atTerminal, resumed)},
	{"removed", func(f *apptest.Fixture, c holder) error {
		_, err := f.Node(0).Users.Remove(f.Context(), c.owner.Caller, c.ann.User, user.Handover{}, nil)
		return err
	}, fmt.Sprintf(endOfMembership, "-", resetExpired, unknownBrowser), fmt.Sprintf(endOfMembership, "valid", "valid", "valid"), rejoin},
	{"left", func(f *apptest.Fixture, c holder) error {
		_, err := f.Node(0).Users.Leave(f.Context(), c.ann.Caller, c.ann.User.TenantID)
		return err
	}, fmt.Sprintf(endOfMembership, "-", resetExpired, unknownBrowser), fmt.Sprintf(endOfMembership, "valid", "valid", "valid"), rejoin},

	// The tenant's invitations can be accepted once it is active again.
	{
		"frozen by key", freeze(operatorByKey),
		signedOut + " - " + signedOut + " tenant_frozen tenant_frozen " + resetExpired + " valid",
		signedOut + " valid " + signedOut + " tenant_frozen tenant_frozen valid valid", thaw,
	},
	{
		"frozen at the terminal", freeze(operatorAtTerminal),
		signedOut + " - " + signedOut + " tenant_frozen tenant_frozen " + resetExpired + " valid",
		signedOut + " valid " + signedOut + " tenant_frozen tenant_frozen valid valid", thaw,
	},
	{
		"closed", func(f *apptest.Fixture, c holder) error {
			_, _, err := f.Node(0).Tenants.Close(f.Context(), c.owner.Caller, c.owner.User.TenantName)
			return err
		},
		signedOut + " - " + signedOut + " tenant_closing tenant_closing " + resetExpired + " valid",
		signedOut + " valid " + signedOut + " tenant_closing tenant_closing valid valid", restore,
	},

	// No session ends. Invitations by the demoted person can't be accepted.
	{"demoted by an OWNER", edit(byOwner, demoted), "valid:VIEWER - valid " + senderDemoted + " valid valid valid", "valid:VIEWER valid valid " + senderDemoted + " valid valid valid", edit(byOwner, promoted)},
	{"demoted at the terminal", edit(atTerminal, demoted), "valid:VIEWER - valid " + senderDemoted + " valid valid valid", "valid:VIEWER valid valid " + senderDemoted + " valid valid valid", edit(atTerminal, promoted)},

	// Only sessions end.
	{"signed out by an OWNER", func(f *apptest.Fixture, c holder) error {
		_, err := f.Node(0).Users.SignOut(f.Context(), c.owner.Caller, c.ann.User)
		return err
	}, signedOut + " - valid valid valid valid valid", signedOut + " valid valid valid valid valid valid", nil},
	{"signed out", func(f *apptest.Fixture, c holder) error {
		return apptest.ErrorOf(f.Node(0).Sessions.End(f.Context(), apptest.Anonymous(0), []secret.Token{c.ann.Token}))
	}, signedOut + " - valid valid valid valid valid", signedOut + " valid valid valid valid valid valid", nil},

	// The provider of the tenant's connection ends what it means; a logout leaves sessions that it hasn't vouched for.
	{"revoked by the provider", func(f *apptest.Fixture, c holder) error {
		return endByProvider(f, c, func(p *oidctest.Provider, con string) (doorward.Revocation, error) {
			off := f.Node(1).SignOff
			token := p.Revocation(f.Node(0).Connections.RevokeURL(con), nil)
			return off.Revoke(f.Context(), apptest.Anonymous(1), con, token, "", signoff.Subject{Format: signoff.FormatEmail, Email: c.ann.User.Email})
		})
	}, signedOut + " - valid valid valid valid valid", signedOut + " valid valid valid valid valid valid", nil},
	{"logged out by the provider", func(f *apptest.Fixture, c holder) error {
		return endByProvider(f, c, func(p *oidctest.Provider, con string) (doorward.Revocation, error) {
			return f.Node(1).SignOff.Logout(f.Context(), apptest.Anonymous(1), con, p.Logout(apptest.ClientID, map[string]any{"sub": c.ann.User.ID}))
		})
	}, "valid - valid valid valid valid valid", "valid valid valid valid valid valid valid", nil},

	// Nothing ends: the domain of the invited addresses is still allowed.
	{"stricter settings", func(f *apptest.Fixture, c holder) error {
		stricter := map[string]any{"invitationDays": int64(1), doorward.SettingDomains: []string{"example.com"}} // the domain of the invited addresses
		_, err := f.Node(0).Tenants.Edit(f.Context(), c.owner.Caller, tenant.Edit{Settings: stricter})
		return err
	}, "valid - valid valid valid valid valid", "valid valid valid valid valid valid valid", nil},

	// The person's other sessions end, in every tenant, and all known browsers but the caller's.
	{"signed out elsewhere", func(f *apptest.Fixture, c holder) error {
		return apptest.ErrorOf(f.Node(0).Sessions.EndOthers(f.Context(), c.ann.Caller))
	}, "valid - valid valid valid valid " + unknownBrowser, "valid " + signedOut + " valid valid valid valid " + unknownBrowser, nil},
	{"signed out elsewhere, in the known browser", func(f *apptest.Fixture, c holder) error {
		return apptest.ErrorOf(f.Node(0).Sessions.EndOthers(f.Context(), c.inBrowser()))
	}, "valid - valid valid valid valid valid", "valid " + signedOut + " valid valid valid valid valid", nil},

	// A new password ends the person's sessions, links and browsers in every tenant, except the
	// session and the browser that set it.
	{"a new password", func(f *apptest.Fixture, c holder) error {
		return apptest.ErrorOf(f.Node(0).Passwords.Change(f.Context(), c.ann.Caller, apptest.FirstPassword, apptest.Password(1), apptest.Password(1)))
	}, "valid - valid valid valid " + resetExpired + " " + unknownBrowser, "valid " + signedOut + " valid valid valid " + resetExpired + " " + unknownBrowser, nil},
	{"a new password, in the known browser", func(f *apptest.Fixture, c holder) error {
		return apptest.ErrorOf(f.Node(0).Passwords.Change(f.Context(), c.inBrowser(), apptest.FirstPassword, apptest.Password(1), apptest.Password(1)))
	}, "valid - valid valid valid " + resetExpired + " valid", "valid " + signedOut + " valid valid valid " + resetExpired + " valid", nil},
	{"a reset", func(f *apptest.Fixture, c holder) error {
		return apptest.ErrorOf(f.Node(0).Passwords.Reset(f.Context(), apptest.Anonymous(0), c.reset, apptest.Password(1), apptest.Password(1)))
	}, signedOut + " - valid valid valid reset_used " + unknownBrowser, signedOut + " " + signedOut + " valid valid valid reset_used " + unknownBrowser, nil},
}

// offBySAML are the ways to end a session that came by a SAML connection alone: all other sessions of the person stay.
var offBySAML = map[string]func(*apptest.Fixture, holder) error{
	"its connection disabled": func(f *apptest.Fixture, c holder) error {
		change := connection.Change{Draft: connection.Draft{Status: new("disabled")}}
		_, _, err := f.Node(1).Connections.Edit(f.Context(), c.owner.Caller, c.saml.con, change)
		return err
	},
	"its connection deleted": func(f *apptest.Fixture, c holder) error {
		return apptest.ErrorOf(f.Node(1).Connections.Delete(f.Context(), c.owner.Caller, c.saml.con, false))
	},
	"its identity unlinked": func(f *apptest.Fixture, c holder) error {
		return apptest.ErrorOf(f.Node(1).Connections.Unlink(f.Context(), c.owner.Caller, c.saml.identity))
	},
	"sign-on turned off": func(f *apptest.Fixture, c holder) error {
		return apptest.ErrorOf(f.Node(1).Demands.Put(f.Context(), c.owner.Caller, demand.Draft{Mode: string(doorward.SSOOff), Guests: doorward.GuestsAllowed}, nil))
	},
	"sign-on turned off at the terminal": func(f *apptest.Fixture, c holder) error {
		return apptest.ErrorOf(f.Node(1).Demands.Off(f.Context(), apptest.Operator, c.ann.User.TenantID))
	},
	"signed out in its browser": func(f *apptest.Fixture, c holder) error {
		return apptest.ErrorOf(f.Node(1).Sessions.End(f.Context(), apptest.Anonymous(1), []secret.Token{c.saml.person.Token}))
	},
}

// staysBySAML has what becomes of a session that came by SAML where a way of the table doesn't end it.
var staysBySAML = map[string]string{
	"demoted by an OWNER": "valid:VIEWER", "demoted at the terminal": "valid:VIEWER", "stricter settings": "valid",
	"signed out":                 "valid", // in another browser
	"logged out by the provider": "valid", // of another connection
}

// wantBySAML checks on each node what has become of the session that came by SAML.
func wantBySAML(f *apptest.Fixture, c holder, way, want string) {
	f.Helper()
	for i := range f.Nodes {
		if got := outcomeOfSession(f, i, &c.saml.person); got != want {
			f.Errorf("%s: node %d says of the session by SAML %q, want %q", way, i, got, want)
		}
	}
}

// TestKillSwitchOfSAML: what ends by the ways of one connection, and nothing else.
func TestKillSwitchOfSAML(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		for way, end := range offBySAML {
			c := newHolder(f, true)
			before := outcomes(f, c)
			wantBySAML(f, c, "before: "+way, "valid")
			f.NoError(end(f, c))
			wantBySAML(f, c, way, signedOut)
			if got := outcomes(f, c); got != before {
				t.Errorf("%s: %q, before it %q", way, got, before)
			}
		}
	})
}

// afterUndo maps each outcome to the one after the undo. What has ended stays ended, so all other
// outcomes are unchanged.
var afterUndo = strings.NewReplacer("tenant_frozen", "valid", "tenant_closing", "valid", senderDemoted, "valid", "valid:VIEWER", "valid")

func TestKillSwitch(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		for _, k := range killSwitch {
			for elsewhere, want := range map[bool]string{false: k.alone, true: k.elsewhere} {
				c := newHolder(f, elsewhere)
				if got := outcomes(f, c); strings.Count(got, "valid") < 6 {
					t.Fatalf("%s: before it the results are %q", k.name, got)
				}
				wantBySAML(f, c, "before: "+k.name, "valid")
				f.NoError(k.do(f, c))
				bySAML := cmp.Or(staysBySAML[k.name], signedOut)
				wantBySAML(f, c, k.name, bySAML)
				if got := outcomes(f, c); got != want {
					t.Errorf("%s, in another tenant too: %v\n got %q\nwant %q", k.name, elsewhere, got, want)
				}
				if k.undo == nil {
					continue
				}
				f.NoError(k.undo(f, c))
				wantBySAML(f, c, k.name+", and undone", afterUndo.Replace(bySAML))
				if got := outcomes(f, c); got != afterUndo.Replace(want) {
					t.Errorf("%s, and undone, in another tenant too: %v\n got %q\nwant %q", k.name, elsewhere, got, afterUndo.Replace(want))
				}
			}
		}
	})
}
