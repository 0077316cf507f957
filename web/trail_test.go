package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/secret"
)

// historian reads every trail of an installation, and remembers how far.
type historian struct {
	*door
	t     *testing.T
	read  map[string]int
	names map[string]string // of tenants and users, by id
	every []doorward.Event
}

// news are the events since the last time, in short, and by trail.
func (h *historian) news() (all []string) {
	h.t.Helper()
	ids, err := h.Node.DB.Read().ChainIDs(h.t.Context())
	for _, id := range ids {
		var events []doorward.Event
		if err == nil {
			events, err = h.Node.DB.Read().Events(h.t.Context(), id)
		}
		for _, e := range events[h.read[id]:] {
			h.every = append(h.every, e)
			all = append(all, h.line(e))
		}
		h.read[id] = len(events)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// line is an event as people would tell it.
func (h *historian) line(e doorward.Event) string {
	actor := string(e.ActorType)
	if e.ActorEmail != "" {
		actor = h.name(e.ActorID)
	}
	text := fmt.Sprintf("%s: %s %s %s %s %s", h.name(e.Target.TenantID), actor, e.Outcome, e.Action, e.Target.Type, h.name(e.Target.ID))
	for _, c := range e.Changes {
		text += fmt.Sprintf(", %s %q %q", c.Field, c.From, c.To)
	}
	text = ids.ReplaceAllStringFunc(text, h.name)
	return strings.TrimSpace(times.ReplaceAllString(text, "TIME"))
}

var (
	ids   = regexp.MustCompile(`[a-z]{3}_[a-z2-7]{26}`)
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
)

// name is what the test calls the object, or the prefix of its id.
func (h *historian) name(id string) string {
	if id == "" {
		return "-"
	}
	if name, has := h.names[id]; has {
		return name
	}
	if ids.MatchString(id) {
		return id[:3]
	}
	return id
}

// Every act and every refusal leaves one event, in the trail of those whom it
// concerns, with who and what and the values before and after. What is no act
// leaves none.
func TestOneEventForEachAct(t *testing.T) {
	onBoth(t, func(t *testing.T, d *door) {
		h := &historian{door: d, t: t, read: map[string]int{}, names: map[string]string{}}
		acme, zeta := d.Tenant("Acme"), d.Tenant("Zeta")
		owner, other := acme.Owner, zeta.Owner
		ann := acme.Join("ann@acme.example", "ADMIN")
		bob := acme.Join("bob@acme.example", "USER")
		tokens := map[string]string{}
		signIn := func(all ...*doorwardtest.Person) {
			for _, p := range all {
				tokens[p.ID] = d.token(t, p.Email)
			}
		}
		by := func(p *doorwardtest.Person) opt { return as(tokens[p.ID]) }
		signIn(owner, other, ann, bob)
		h.names = map[string]string{acme.ID: "Acme", zeta.ID: "Zeta", owner.ID: "OWNER", other.ID: "other", ann.ID: "ann", bob.ID: "bob"}
		h.news()
		var secrets []string
		keep := func(secret string) string { secrets = append(secrets, secret); return secret }
		send := func(route string, body any, opts ...opt) answer { return d.send(t, route, body, opts...) }
		key := ""
		invitation := func(email string) string {
			a := send("POST /api/v2/auth/invite", m{"email": email, "role": "USER"}, by(owner)).ok(201)
			return a.text("id")
		}
		pending, code, session, token := "", "", "", ""
		for _, step := range []struct {
			what string
			do   func()
			want []string
		}{
			{"reading", func() {
				for _, path := range []string{"users", "users/" + ann.ID, "invitations", "tenant", "sessions", "auth/memberships", "audit-events"} {
					send("GET /api/v2/"+path, nil, by(owner)).ok(200)
				}
			}, nil},
			{"an operator key", func() { key = keep(d.operatorKey(t)) }, []string{
				`-: operator done key.create key key, name "" "test"`,
			}},
			{"a tenant by API", func() {
				send("POST /api/v2/tenants", m{"name": "Globex", "ownerEmail": "g@globex.example"}, bearer(key)).ok(201)
			}, []string{
				`tnt: operator done tenant.create tenant tnt, name "" "Globex", ownerEmail "" "g@globex.example"`,
			}},
			{"a tenant by a session", func() {
				send("POST /api/v2/tenants", m{"name": "Globex", "ownerEmail": "g@globex.example"}, by(owner)).fails(403, "forbidden")
			}, []string{
				`Acme: OWNER refused request.refuse endpoint POST /api/v2/tenants, reason "" "forbidden"`,
			}},
			{"people by a key", func() { send("GET /api/v2/users", nil, bearer(key)).fails(403, "forbidden") }, []string{
				`-: operator refused request.refuse endpoint GET /api/v2/users, reason "" "forbidden"`,
			}},
			{"an invitation", func() { pending = invitation("cat@acme.example") }, []string{
				`Acme: OWNER done user.invite invitation inv, email "" "cat@acme.example", role "" "USER"`,
			}},
			{"an invitation by a USER", func() {
				send("POST /api/v2/auth/invite", m{"email": "x@acme.example", "role": "USER"}, by(bob)).fails(403, "forbidden")
			}, []string{
				`Acme: bob refused user.invite tenant Acme, reason "" "forbidden"`,
			}},
			{"an invitation to a role above", func() {
				send("POST /api/v2/auth/invite", m{"email": "x@acme.example", "role": "OWNER"}, by(ann)).fails(403, "forbidden")
			}, []string{
				`Acme: ann refused user.invite invitation inv, reason "" "forbidden", role "" "OWNER"`,
			}},
			{"an invitation that is there already", func() {
				send("POST /api/v2/auth/invite", m{"email": "cat@acme.example", "role": "USER"}, by(ann)).fails(409, "invitation_pending")
			}, nil},
			{"invitations in bulk", func() {
				send("POST /api/v2/auth/invite/bulk", m{"invitations": []m{
					{"email": "dan@acme.example", "role": "USER"}, {"email": "eve@acme.example", "role": "OWNER"}, {"email": "x", "role": "USER"},
				}}, by(ann)).ok(200)
			}, []string{
				`Acme: ann done user.invite invitation inv, email "" "dan@acme.example", role "" "USER"`,
				`Acme: ann refused user.invite invitation inv, reason "" "forbidden", role "" "OWNER"`,
			}},
			{"sent again", func() {
				d.Advance(2 * time.Minute)
				send("POST /api/v2/invitations/"+pending+"/resend", nil, by(ann)).ok(200)
				code = keep(d.code(t, "cat@acme.example"))
			}, []string{
				`Acme: ann done invitation.resend invitation inv, expiresAt "TIME" "TIME"`,
			}},
			{"sent again too soon", func() {
				send("POST /api/v2/invitations/"+pending+"/resend", nil, by(ann)).fails(429, "resend_too_soon")
			}, nil},
			{"accepted by somebody else", func() {
				send("POST /api/v2/auth/accept-invitation", m{"token": code}, by(bob)).fails(403, "wrong_account")
			}, []string{
				`Acme: bob refused invitation.accept invitation inv, reason "" "wrong_account", role "" "USER"`,
			}},
			{"accepted in a frozen tenant", func() {
				d.freeze(t, acme.ID)
				send("POST /api/v2/auth/complete-registration", m{"token": code, "password": keep(canary("cat")), "confirmPassword": canary("cat")}).fails(403, "tenant_frozen")
				d.login(t, bob.Email, password).fails(403, "tenant_frozen")
				if err := d.Node.App.Tenants.Thaw(t.Context(), doorward.OperatorAtTerminal(), acme.ID); err != nil {
					t.Fatal(err)
				}
			}, []string{
				`Acme: operator done tenant.freeze tenant Acme, status "active" "frozen", sessionsEnded "" "6"`,
				`Acme: anonymous refused invitation.accept invitation inv, reason "" "tenant_frozen", role "" "USER"`,
				`Acme: anonymous refused session.refuse user bob, reason "" "tenant_frozen"`,
				`Acme: operator done tenant.thaw tenant Acme, status "frozen" "active"`,
			}},
			{"signed in again", func() { signIn(owner, ann, bob); h.news() }, nil},
			{"registered", func() {
				send("POST /api/v2/auth/complete-registration", m{"token": code, "password": canary("cat"), "confirmPassword": canary("cat")}).ok(200)
			}, []string{
				`Acme: usr done invitation.accept invitation inv, status "PENDING" "ACCEPTED", role "" "USER"`,
			}},
			{"registered again", func() {
				send("POST /api/v2/auth/complete-registration", m{"token": code, "password": canary("cat"), "confirmPassword": canary("cat")}).fails(410, "invitation_used")
			}, nil},
			{"an account accepts", func() {
				send("POST /api/v2/auth/invite", m{"email": bob.Email, "role": "VIEWER"}, by(other)).ok(201)
				send("POST /api/v2/auth/accept-invitation", m{"token": keep(d.code(t, bob.Email)), "password": password}).ok(200)
			}, []string{
				`Zeta: other done user.invite invitation inv, email "" "bob@acme.example", role "" "VIEWER"`,
				`Zeta: bob done invitation.accept invitation inv, status "PENDING" "ACCEPTED", role "" "VIEWER"`,
			}},
			{"withdrawn", func() {
				send("DELETE /api/v2/invitations/"+invitation("fay@acme.example"), nil, by(ann)).ok(204)
			}, []string{
				`Acme: OWNER done user.invite invitation inv, email "" "fay@acme.example", role "" "USER"`,
				`Acme: ann done invitation.revoke invitation inv, status "PENDING" "REVOKED"`,
			}},
			{"a login", func() {
				token = keep(d.token(t, bob.Email))
				session = send("GET /api/v2/auth/session", nil, as(token)).text("session.id")
			}, []string{
				"Acme: bob done session.open session ses",
			}},
			{"a wrong password", func() { d.login(t, bob.Email, keep(canary("wrong"))).fails(401, "invalid_credentials") }, []string{
				`Acme: anonymous refused session.refuse user bob, reason "" "invalid_credentials"`,
			}},
			{"no such account", func() {
				d.login(t, keep("nobody-at-all@acme.example"), canary("wrong")).fails(401, "invalid_credentials")
			}, []string{
				`-: anonymous refused session.refuse user -, reason "" "invalid_credentials"`,
			}},
			{"another tenant", func() {
				token = keep(send("POST /api/v2/auth/switch-tenant", m{"tenantId": zeta.ID}, as(token)).ok(200).text("token"))
			}, []string{
				`Zeta: bob done session.open session ses, session "ses" ""`,
			}},
			{"a tenant of others", func() {
				send("POST /api/v2/auth/switch-tenant", m{"tenantId": zeta.ID}, by(owner)).fails(404, "not_found")
			}, nil},
			{"a session of one's own", func() {
				session = send("GET /api/v2/auth/session", nil, as(token)).text("session.id")
				bob2 := keep(d.token(t, bob.Email))
				send("DELETE /api/v2/sessions/"+session, nil, as(bob2)).ok(204)
				token = bob2
			}, []string{
				"Zeta: bob done session.open session ses",
				"Zeta: bob done session.end session ses",
			}},
			{"all other sessions", func() { send("DELETE /api/v2/sessions", nil, as(token)).ok(204) }, []string{
				`Zeta: bob done session.end user bob, sessionsEnded "" "1"`,
			}},
			{"a wrong password on changing it", func() {
				send(changePath, m{"currentPassword": canary("wrong"), "password": keep(canary("bob")), "confirmPassword": canary("bob")}, as(token)).ok(422)
			}, []string{
				`Zeta: bob refused session.refuse user bob, reason "" "invalid_credentials"`,
			}},
			{"another password", func() {
				send(changePath, m{"currentPassword": password, "password": canary("bob"), "confirmPassword": canary("bob")}, as(token)).ok(204)
			}, []string{
				"Zeta: bob done password.change user bob",
			}},
			{"forgotten", func() { code = keep(d.forgot(t, bob.Email)) }, []string{
				"-: anonymous done password.forgot user -",
			}},
			{"reset", func() { d.reset(t, code, keep(canary("reset"))).ok(204) }, []string{
				`Zeta: bob done password.reset user bob, sessionsEnded "" "1"`,
			}},
			{"a logout", func() {
				token = keep(d.login(t, bob.Email, canary("reset")).ok(200).text("token"))
				send("POST /api/v2/auth/logout", nil, as(token)).ok(204)
				send("POST /api/v2/auth/logout", nil, as(token)).ok(204)
			}, []string{
				"Zeta: bob done session.open session ses",
				"Zeta: bob done session.end session ses",
			}},
			{"role, status and name", func() {
				token = keep(d.login(t, bob.Email, canary("reset")).ok(200).text("token"))
				h.news()
				send("PATCH /api/v2/users/"+bob.ID, m{"role": "VIEWER", "status": "suspended", "name": "Bob"}, by(ann)).ok(200)
				send("PATCH /api/v2/users/"+bob.ID, m{"role": "VIEWER", "status": "suspended", "name": "Bob"}, by(ann)).ok(200)
			}, []string{
				`Acme: ann done user.role user bob, role "USER" "VIEWER"`,
				`Acme: ann done user.suspend user bob, status "active" "suspended"`,
				`Acme: ann done user.rename user bob, name "" "Bob"`,
			}},
			{"a login of somebody suspended", func() {
				send("POST /api/v2/auth/login", m{"email": bob.Email, "password": canary("reset"), "tenantId": acme.ID}).fails(403, "membership_suspended")
			}, []string{
				`Acme: anonymous refused session.refuse user bob, reason "" "membership_suspended"`,
			}},
			{"resumed", func() {
				send("PATCH /api/v2/users/"+bob.ID, m{"status": "active"}, by(ann)).ok(200)
			}, []string{
				`Acme: ann done user.resume user bob, status "suspended" "active"`,
			}},
			{"an OWNER by an ADMIN", func() {
				send("PATCH /api/v2/users/"+owner.ID, m{"role": "USER"}, by(ann)).fails(403, "forbidden")
				send("DELETE /api/v2/users/"+owner.ID, nil, by(ann)).fails(403, "forbidden")
			}, []string{
				`Acme: ann refused user.manage user OWNER, reason "" "forbidden"`,
				`Acme: ann refused user.remove user OWNER, reason "" "forbidden"`,
			}},
			{"the last OWNER", func() {
				send("PATCH /api/v2/users/"+owner.ID, m{"role": "USER"}, by(owner)).fails(409, "last_owner")
				send("DELETE /api/v2/auth/memberships/"+acme.ID, nil, by(owner)).fails(409, "last_owner")
			}, []string{
				`Acme: OWNER refused user.role user OWNER, reason "" "last_owner", role "OWNER" "USER"`,
				`Acme: OWNER refused user.leave user OWNER, reason "" "last_owner"`,
			}},
			{"somebody of another tenant", func() {
				send("PATCH /api/v2/users/"+other.ID, m{"role": "USER"}, by(owner)).fails(404, "not_found")
			}, nil},
			{"signed out", func() {
				send("POST /api/v2/auth/login", m{"email": bob.Email, "password": canary("reset"), "tenantId": acme.ID}).ok(200)
				h.news()
				send("DELETE /api/v2/users/"+bob.ID+"/sessions", nil, by(ann)).ok(200)
			}, []string{
				`Acme: ann done user.signout user bob, sessionsEnded "" "1"`,
			}},
			{"removed", func() { send("DELETE /api/v2/users/"+bob.ID, nil, by(ann)).ok(200) }, []string{
				`Acme: ann done user.remove user bob, role "VIEWER" ""`,
			}},
			{"gone", func() {
				token = keep(d.login(t, bob.Email, canary("reset")).ok(200).text("token"))
				h.news()
				send("DELETE /api/v2/auth/memberships/"+zeta.ID, nil, as(token)).ok(204)
			}, []string{
				`Zeta: bob done user.leave user bob, role "VIEWER" "", sessionsEnded "" "2"`,
			}},
			{"settings", func() {
				send("PATCH /api/v2/tenant", m{"name": "Acme II", "settings": m{"invitationDays": 3}}, by(owner)).ok(200)
				send("PATCH /api/v2/tenant", m{"name": "Acme II"}, by(owner)).ok(200)
			}, []string{
				`Acme: OWNER done tenant.update tenant Acme, name "Acme" "Acme II", invitationDays "30" "3"`,
			}},
			{"closed", func() {
				send("DELETE /api/v2/tenant", m{"confirm": "Acme II"}, by(ann)).fails(403, "forbidden")
				send("DELETE /api/v2/tenant", m{"confirm": "Acme"}, by(owner)).ok(422)
				d.closeTenant(t, owner, acme.ID, "Acme II")
			}, []string{
				`Acme: ann refused tenant.destroy tenant Acme, reason "" "forbidden"`,
				"Acme: OWNER done session.open session ses",
				`Acme: OWNER done tenant.close tenant Acme, status "active" "closing", sessionsEnded "" "3"`,
			}},
			{"while it is closing", func() {
				token = keep(d.token(t, owner.Email))
				if status := d.status(t, "/api/v2/users", token); status != 403 {
					t.Errorf("answered %d while the tenant is closing", status)
				}
			}, []string{
				"Acme: OWNER done session.open session ses",
				`Acme: OWNER refused request.refuse endpoint GET /api/v2/users, reason "" "tenant_closing"`,
			}},
			{"restored", func() { send("POST /api/v2/tenant/restore", nil, as(token)).ok(200) }, []string{
				`Acme: OWNER done tenant.restore tenant Acme, status "closing" "active"`,
			}},
		} {
			step.do()
			got := h.news()
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("%s leaves (-want +got):\n%s", step.what, diff)
			}
		}
		h.keepsSecrets(append(secrets, key, password))
		h.knowsAllActs()
	})
}

// closeTenant is done by a person who has just signed in.
func (d *door) closeTenant(t *testing.T, who *doorwardtest.Person, tenantID, name string) {
	t.Helper()
	token, err := secret.Parse(d.token(t, who.Email))
	if err != nil {
		t.Fatal(err)
	}
	id, err := d.Node.App.Sessions.Check(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	by := doorward.Caller{IP: "127.0.0.1", RequestID: "req_test"}.As(doorward.User{
		ID: who.ID, Email: who.Email, Role: doorward.RoleOwner, Status: doorward.UserActive, TenantID: tenantID, TenantStatus: doorward.TenantActive,
	})
	by.Session = doorward.Session{ID: id.SessionID, UserID: who.ID, TenantID: tenantID}
	if _, _, err := d.Node.App.Tenants.Close(t.Context(), by, name); err != nil {
		t.Fatal(err)
	}
}

// status asks without a look at the answer.
func (d *door) status(t *testing.T, path, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", d.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	as(token)(req)
	res, err := d.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// keepsSecrets wants no event to have any of them, nor what a stranger typed.
func (h *historian) keepsSecrets(secrets []string) {
	h.t.Helper()
	for _, e := range h.every {
		for _, secret := range secrets {
			if strings.Contains(fmt.Sprintf("%+v", e), secret) {
				h.t.Errorf("%+v has %q", e, secret)
			}
		}
		if e.ActorType != doorward.Operator && (e.IP == "" || e.RequestID == "") {
			h.t.Errorf("%+v doesn't say where it comes from", e)
		}
	}
}

// knowsAllActs wants each verb that is recorded under its own name to have been
// seen, so that a new one is added to the steps above.
func (h *historian) knowsAllActs() {
	h.t.Helper()
	seen := map[doorward.Action]bool{}
	for _, e := range h.every {
		seen[e.Action] = true
	}
	for _, verb := range doorward.Verbs() {
		if !verb.Action.IsPermission() && !seen[verb.Action] {
			h.t.Errorf("no step leaves %s: add one", verb.Action)
		}
	}
}
