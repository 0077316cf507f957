package web_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/roster"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/passkey/passkeytest"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// recorder reads every trail of an installation and remembers its position.
type recorder struct {
	*server
	t     *testing.T
	read  map[string]int
	names map[string]string // of tenants and users, by id
	every []doorward.Event

	acme, zeta             *doorwardtest.Tenant
	owner, other, ann, bob *doorwardtest.Person
	tokens                 map[string]string // of their sessions, by id
	secrets                []string

	// State that one step leaves to the next.
	key, pending, code, session, token string
}

// news returns the events since the last call, in short form and by trail.
func (h *recorder) news() (all []string) {
	h.t.Helper()
	h.Node.App.Inbox.RecordPending(h.t.Context())
	ids, err := h.Node.DB.Read().ChainIDs(h.t.Context())
	slices.SortStableFunc(ids, func(a, b string) int { return strings.Compare(h.name(a), h.name(b)) })
	for _, id := range ids {
		var events []doorward.Event
		if err == nil {
			events, err = storetest.Events(h.t.Context(), h.Node.DB.Read(), id)
		}
		// Refusals are recorded asynchronously.
		slices.SortStableFunc(events[h.read[id]:], func(a, b doorward.Event) int { return a.At.Compare(b.At) })
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

// line returns an event in short form.
func (h *recorder) line(e doorward.Event) string {
	actor := string(e.ActorType)
	if e.ActorEmail != "" {
		actor = h.name(e.ActorID)
	}
	text := fmt.Sprintf("%s: %s %s %s %s %s", h.name(e.Target.TenantID), actor, e.Outcome, e.Action, e.Target.Type, h.name(e.Target.ID))
	for _, c := range e.Changes {
		text += fmt.Sprintf(", %s %q %q", c.Field, c.From, c.To)
	}
	text = hints.ReplaceAllString(ids.ReplaceAllStringFunc(text, h.name), "HINT")
	return strings.TrimSpace(times.ReplaceAllString(text, "TIME"))
}

var (
	ids   = regexp.MustCompile(`[a-z]{3}_[a-z2-7]{26}`)
	hints = regexp.MustCompile(`dwk_\w{4}…\w{4}`)
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
)

// name returns the test's name for the object, or the prefix of its id.
func (h *recorder) name(id string) string {
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

// step is an operation and the events that it must record.
type step struct {
	what string
	do   func()
	want []string
}

// Every change and every refusal records one event in the trail of the tenant
// concerned, with actor, action and the values before and after. Nothing else is
// recorded.
func TestOneEventForEachAct(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		h := settle(t, d)
		for _, s := range slices.Concat(h.atTheDoor(), h.withInvitations(), h.withKeys(), h.withWebhooks(), h.withAcceptances(), h.withSessions(), h.withFactors(),
			h.withPasswords(), h.withMembers(), h.withErasures(), h.withOwners(), h.withTheTenant(), h.withTheEndOfKeys()) {
			s.do()
			if diff := cmp.Diff(s.want, h.news()); diff != "" {
				t.Errorf("%s leaves (-want +got):\n%s", s.what, diff)
			}
		}
		h.keepsSecrets()
		h.keepsTenantsApart()
		h.knowsAllActs()
	}, masterKey(t), hasPasskeys())
}

// settle creates two tenants with people who are signed in.
func settle(t *testing.T, d *server) *recorder {
	t.Helper()
	h := &recorder{server: d, t: t, read: map[string]int{}, tokens: map[string]string{}, secrets: []string{password}}
	h.acme, h.zeta = d.Tenant("Acme"), d.Tenant("Zeta")
	h.owner, h.other = h.acme.Owner, h.zeta.Owner
	h.ann, h.bob = h.acme.Join("ann@acme.example", "ADMIN"), h.acme.Join("bob@acme.example", "USER")
	h.signIn(h.owner, h.other, h.ann, h.bob)
	h.names = map[string]string{
		h.acme.ID: "Acme", h.zeta.ID: "Zeta", h.owner.ID: "OWNER", h.other.ID: "other", h.ann.ID: "ann", h.bob.ID: "bob",
	}
	h.news()
	return h
}

func (h *recorder) signIn(all ...*doorwardtest.Person) {
	h.t.Helper()
	for _, p := range all {
		h.tokens[p.ID] = h.keep(h.server.token(h.t, p.Email))
	}
}

func (h *recorder) as(p *doorwardtest.Person) opt { return as(h.tokens[p.ID]) }

// keep records a secret, to be searched for later.
func (h *recorder) keep(secret string) string {
	h.secrets = append(h.secrets, secret)
	return secret
}

func (h *recorder) ask(route string, body any, opts ...opt) answer {
	h.t.Helper()
	return h.send(h.t, route, body, opts...)
}

// invited returns the id of a new invitation by the OWNER.
func (h *recorder) invited(email string) string {
	h.t.Helper()
	return h.ask("POST /api/v2/auth/invite", m{"email": email, "role": "USER"}, h.as(h.owner)).ok(http.StatusCreated).text("id")
}

// operatorPageComesAndGoes opens the operator's page, is refused another one, and leaves.
func (h *recorder) operatorPageComesAndGoes() {
	installation := h.Node.App.Installation
	by := doorward.Caller{Principal: doorward.Principal{Kind: doorward.Anonymous}, IP: "127.0.0.1", UserAgent: "Go-http-client", RequestID: doorward.NewID(doorward.PrefixRequest)}
	link, _, err := installation.MakeLink(h.t.Context(), doorward.OperatorAtTerminal())
	if err != nil {
		h.t.Fatal(err)
	}
	page, err := installation.OpenPage(h.t.Context(), by, h.keep(link.Reveal()))
	if err != nil {
		h.t.Fatal(err)
	}
	h.keep(page.Reveal())
	if _, err := installation.OpenPage(h.t.Context(), by, link.Reveal()); !doorward.HasCode(err, doorward.CodeInvalidCode) {
		h.t.Errorf("the link opens the page again: %v", err)
	}
	for range 2 {
		if err := installation.LeavePage(h.t.Context(), by, page); err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *recorder) atTheDoor() []step {
	return []step{
		{"reading", func() {
			for _, path := range []string{"users", "users/" + h.ann.ID, "invitations", "tenant", "sessions", "auth/memberships", "audit-events"} {
				h.ask("GET /api/v2/"+path, nil, h.as(h.owner)).ok(200)
			}
		}, nil},
		{"an operator key", func() { h.key = h.keep(h.operatorKey(h.t)) }, []string{
			`-: operator done key.create key key, name "" "test 1"`,
		}},
		{"an operator key taken back", func() {
			spare := h.keep(h.operatorKey(h.t))
			keys := h.Node.App.Keys
			found, err := keys.FindOperators(h.t.Context(), "test 2")
			if err == nil {
				err = keys.RevokeOperator(h.t.Context(), doorward.OperatorAtTerminal(), found[0])
			}
			if err != nil {
				h.t.Fatal(err)
			}
			h.ask("GET /api/v2/tenants", nil, bearer(spare)).fails(401, "unauthenticated")
			if err := keys.RevokeOperator(h.t.Context(), doorward.OperatorAtTerminal(), found[0]); !doorward.HasCode(err, doorward.CodeNotFound) {
				h.t.Errorf("revoked once more: %v", err)
			}
		}, []string{
			`-: operator done key.create key key, name "" "test 2"`,
			`-: operator done key.revoke key key, name "test 2" ""`,
		}},
		{"a quota", func() {
			for range 2 {
				h.setQuotas(h.t, h.zeta.ID, m{"people": 50, "apiKeys": 20, "webhooks": 10, "eventsPerDay": 5000})
			}
		}, []string{`Zeta: operator done tenant.quota tenant Zeta, quota.people "" "50", quota.apiKeys "" "20", quota.webhooks "" "10", quota.eventsPerDay "" "5000"`}},
		{"a pause of changes", func() {
			h.pauseChanges(h.t, "We move.")
			h.pauseChanges(h.t, "We move.")
			for range 2 {
				h.resumeChanges(h.t)
			}
		}, []string{
			`-: operator done installation.maintenance installation -, maintenance "off" "on", pauseReason "" "We move."`,
			`-: operator done installation.maintenance installation -, maintenance "on" "off"`,
		}},
		{"the operator's page", h.operatorPageComesAndGoes, []string{
			`-: operator done audit.link page opg`,
			`-: anonymous done audit.open page opg, userAgent "" "Go-http-client"`,
			`-: anonymous refused audit.open page -, reason "" "invalid_code"`,
			`-: anonymous done audit.end page opg`,
		}},
		{"a tenant by API", func() {
			h.ask("POST /api/v2/tenants", m{"name": "Globex", "ownerEmail": "g@globex.example"}, bearer(h.key)).ok(201)
		}, []string{
			`tnt: operator done tenant.create tenant tnt, name "" "Globex", ownerEmail "" "g@globex.example"`,
		}},
		{"a tenant by a session", func() {
			h.ask("POST /api/v2/tenants", m{"name": "Globex", "ownerEmail": "g@globex.example"}, h.as(h.owner)).fails(403, "forbidden")
		}, []string{
			`Acme: OWNER refused request.refuse endpoint POST /api/v2/tenants, reason "" "forbidden"`,
		}},
		{"people by a key", func() { h.ask("GET /api/v2/users", nil, bearer(h.key)).fails(403, "forbidden") }, []string{
			`-: operator refused request.refuse endpoint GET /api/v2/users, reason "" "forbidden"`,
		}},
		{"models", h.modelsComeAndGo, []string{
			`-: operator done model.apply model -, version "0" "1", actionsAdded "" "invoice.read"`,
			`-: operator done model.apply model -, version "1" "2", actionsChanged "" "invoice.read"`,
			`-: operator done model.apply model -, version "2" "3", actionsRemoved "" "invoice.read"`,
			`-: operator done model.apply model -, version "3" "4", policiesChanged "" "\"a\"", entitiesChanged "" "team::\"b\""`,
			`-: operator done model.apply model -, version "4" "5", policiesChanged "" "\"a\"", entitiesChanged "" "team::\"b\""`,
		}},
		{"roles", h.rolesComeAndGo, []string{
			`Acme: OWNER done role.create role rol, name "" "DESK", permissions "" "user.read"`,
			`Acme: OWNER done role.update role rol, about "" "answers", permissions "user.read" "tenant.read"`,
			`Acme: OWNER done role.delete role rol, name "DESK" ""`,
		}},
		{"policies", h.policiesComeAndGo, []string{
			`Acme: OWNER done policy.update policy -, version "0" "1", confirmUntil "" "TIME"`,
			`Acme: OWNER done policy.confirm policy -, version "" "1"`,
			`Acme: OWNER refused audit.read tenant Acme, reason "" "denied_by_policy", policy "" "a"`,
			`Acme: OWNER done policy.update policy -, version "1" "2"`,
			`Acme: OWNER done policy.restore policy -, restored "" "1", version "2" "3"`,
			`Acme: OWNER done policy.update policy -, version "3" "4"`,
		}},
		{"a service key", h.serviceComesAndGoes, []string{
			`-: operator done key.create key key, name "" "router", may "" "tenant.status user.invite"`,
			`-: service refused request.refuse endpoint GET /api/v2/sessions, reason "" "not_for_keys"`,
			`-: operator done key.enable key key, name "router" "router"`,
			`-: operator done key.revoke key key, name "router" "", invitationsRevoked "" "1"`,
			`-: operator done key.create key key, name "" "router", may "" "user.read", tenants "" "tnt"`,
			`Acme: service done user.invite invitation inv, email "" "of.service@acme.example", role "" "USER"`,
			`Acme: service refused user.invite invitation inv, reason "" "forbidden", role "" "OWNER"`,
			`Acme: operator done key.revoke key key, invitationsRevoked "" "1"`,
		}},
	}
}

func (h *recorder) modelsComeAndGo() {
	first := h.ask("GET /api/v2/model", nil, bearer(h.key)).ok(200)
	apply := func(add string) {
		h.ask("PUT /api/v2/model", m{"text": first.text("text") + add}, bearer(h.key), with("If-Match", "*")).ok(200)
	}
	apply("  invoice.read: {roles: [OWNER]}\n")
	apply("  invoice.read: {roles: [OWNER]}\n") // changes nothing
	apply("  invoice.read: {roles: [OWNER, ADMIN]}\n")
	apply("")
	apply("policies: '@id(\"a\") forbid(principal, action, resource) when { false };'\nentities: [{uid: {type: team, id: b}}]\n")
	apply("")
}

func (h *recorder) rolesComeAndGo() {
	id := h.ask("POST /api/v2/roles", m{"name": "DESK", "permissions": []string{"user.read"}}, h.as(h.owner)).ok(201).text("id")
	h.ask("PATCH /api/v2/roles/"+id, m{"about": "answers", "permissions": []string{"tenant.read"}}, h.as(h.owner)).ok(200)
	h.ask("PATCH /api/v2/roles/"+id, m{"about": "answers"}, h.as(h.owner)).ok(200) // changes nothing
	h.ask("DELETE /api/v2/roles/"+id, nil, h.as(h.owner)).ok(204)
}

func (h *recorder) policiesComeAndGo() {
	put := func(text string, more m) {
		more["text"] = text
		h.ask("PUT /api/v2/policy", more, h.as(h.owner), with("If-Match", "*")).ok(200)
	}
	put(`@id("a") forbid(principal, action == Action::"audit.read", resource);`, m{"confirmMinutes": 1})
	h.ask("POST /api/v2/policy/confirm", nil, h.as(h.owner)).ok(200)
	h.ask("GET /api/v2/audit-events", nil, h.as(h.owner)).fails(403, "denied_by_policy")
	put("", m{})
	put("", m{}) // changes nothing
	h.ask("POST /api/v2/policy/versions/1/restore", nil, h.as(h.owner)).ok(200)
	put("", m{})
}

func (h *recorder) serviceComesAndGoes() {
	key := h.keep(h.serviceKey(h.t, []doorward.Action{doorward.UserInvite, doorward.ServiceTenantStatus}))
	h.ask("POST /api/v2/auth/invite", m{"email": "of.service@acme.example", "role": "USER"}, bearer(key), in(h.acme.ID)).ok(201)
	h.ask("POST /api/v2/auth/invite", m{"email": "x@acme.example", "role": "OWNER"}, bearer(key), in(h.acme.ID)).fails(403, "forbidden")
	h.ask("GET /api/v2/sessions", nil, bearer(key)).fails(403, "not_for_keys")
	err := h.Node.App.Access.Upkeep(h.t.Context(), func(tx *store.Tx) error {
		_, err := tx.DisableAllServiceKeys(h.t.Context())
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.ask("GET /api/v2/users", nil, bearer(key), in(h.acme.ID)).fails(401, "unauthenticated")
	all, err := h.Node.App.Keys.Services(h.t.Context())
	if err == nil {
		err = h.Node.App.Keys.EnableService(h.t.Context(), doorward.OperatorAtTerminal(), all[0])
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.revokeServices(h.t)
	h.ask("GET /api/v2/users", nil, bearer(key), in(h.acme.ID)).fails(401, "unauthenticated")
	globex := h.ask("GET /api/v2/tenants?limit=200", nil, bearer(h.key)).ok(200).at("items").([]any)
	h.keep(h.serviceKey(h.t, []doorward.Action{doorward.UserRead}, globex[len(globex)-1].(m)["id"].(string)))
}

func (h *recorder) withInvitations() []step {
	return []step{
		{"an invitation", func() { h.pending = h.invited("cat@acme.example") }, []string{
			`Acme: OWNER done user.invite invitation inv, email "" "cat@acme.example", role "" "USER"`,
		}},
		{"an invitation by a USER", func() {
			h.ask("POST /api/v2/auth/invite", m{"email": "x@acme.example", "role": "USER"}, h.as(h.bob)).fails(403, "forbidden")
		}, []string{
			`Acme: bob refused user.invite tenant Acme, reason "" "forbidden"`,
		}},
		{"an invitation to a role above", func() {
			h.ask("POST /api/v2/auth/invite", m{"email": "x@acme.example", "role": "OWNER"}, h.as(h.ann)).fails(403, "forbidden")
		}, []string{
			`Acme: ann refused user.invite invitation inv, reason "" "forbidden", role "" "OWNER"`,
		}},
		{"an invitation that is there already", func() {
			h.ask("POST /api/v2/auth/invite", m{"email": "cat@acme.example", "role": "USER"}, h.as(h.ann)).fails(409, "invitation_pending")
		}, nil},
		{"invitations in bulk", func() {
			h.ask("POST /api/v2/auth/invite/bulk", m{"invitations": []m{
				{"email": "dan@acme.example", "role": "USER"}, {"email": "eve@acme.example", "role": "OWNER"}, {"email": "x", "role": "USER"},
			}}, h.as(h.ann)).ok(200)
		}, []string{
			`Acme: ann done user.invite invitation inv, email "" "dan@acme.example", role "" "USER"`,
			`Acme: ann refused user.invite invitation inv, reason "" "forbidden", role "" "OWNER"`,
		}},
		{"sent again", func() {
			h.Advance(2 * time.Minute)
			h.ask("POST /api/v2/invitations/"+h.pending+"/resend", nil, h.as(h.ann)).ok(200)
			h.code = h.keep(h.server.code(h.t, "cat@acme.example"))
		}, []string{
			`Acme: ann done invitation.resend invitation inv, expiresAt "TIME" "TIME"`,
		}},
		{"sent again too soon", func() {
			h.ask("POST /api/v2/invitations/"+h.pending+"/resend", nil, h.as(h.ann)).fails(429, "resend_too_soon")
		}, nil},
	}
}

func (h *recorder) withAcceptances() []step {
	return []step{
		{"accepted by somebody else", func() {
			h.ask("POST /api/v2/auth/accept-invitation", m{"token": h.code}, h.as(h.bob)).fails(403, "wrong_account")
		}, []string{
			`Acme: bob refused invitation.accept invitation inv, reason "" "wrong_account", role "" "USER"`,
		}},
		{"accepted in a frozen tenant", func() {
			h.freeze(h.t, h.acme.ID)
			h.ask("POST /api/v2/auth/complete-registration", m{"token": h.code, "password": h.keep(canary("cat")), "confirmPassword": canary("cat")}).fails(403, "tenant_frozen")
			h.login(h.t, h.bob.Email, password).fails(403, "tenant_frozen")
			if _, err := h.Node.App.Tenants.Thaw(h.t.Context(), doorward.OperatorAtTerminal(), h.acme.ID); err != nil {
				h.t.Fatal(err)
			}
		}, []string{
			`Acme: operator done tenant.freeze tenant Acme, status "active" "frozen", sessionsEnded "" "6"`,
			`Acme: anonymous refused invitation.accept invitation inv, reason "" "tenant_frozen", role "" "USER"`,
			`Acme: anonymous refused session.refuse user bob, reason "" "tenant_frozen"`,
			`Acme: operator done tenant.thaw tenant Acme, status "frozen" "active"`,
		}},
		{"named by oneself", func() {
			by := doorward.Caller{IP: "127.0.0.1", RequestID: "req_test"}.As(doorward.User{ID: h.ann.ID, Email: h.ann.Email, TenantID: h.acme.ID})
			if err := h.Node.App.Users.NameOneself(h.t.Context(), by, "Ann"); err != nil {
				h.t.Fatal(err)
			}
		}, []string{
			`Acme: ann done user.profile user ann, name "" "Ann"`,
		}},
		{"imported", func() {
			list, err := roster.Read(strings.NewReader("email,role\ndan@acme.example,VIEWER\n"), roster.CSV)
			if err == nil {
				_, err = h.Node.App.Users.Import(h.t.Context(), doorward.OperatorAtTerminal(), h.acme.ID, list, false)
			}
			if err != nil {
				h.t.Fatal(err)
			}
		}, []string{
			`Acme: operator done user.import user usr, role "" "VIEWER"`,
			`Acme: operator done user.import tenant Acme, people "" "1"`,
		}},
		{"exported", func() {
			if err := h.Node.App.Tenants.Export(h.t.Context(), doorward.OperatorAtTerminal(), h.acme.ID, false, io.Discard); err != nil {
				h.t.Fatal(err)
			}
		}, []string{
			"Acme: operator done tenant.export tenant Acme",
		}},
		{"signed in again", func() { h.signIn(h.owner, h.ann, h.bob); h.news() }, nil},
		{"registered", func() {
			h.ask("POST /api/v2/auth/complete-registration", m{"token": h.code, "password": canary("cat"), "confirmPassword": canary("cat")}).ok(200)
		}, []string{
			`Acme: usr done invitation.accept invitation inv, status "PENDING" "ACCEPTED", role "" "USER"`,
		}},
		{"registered again", func() {
			h.ask("POST /api/v2/auth/complete-registration", m{"token": h.code, "password": canary("cat"), "confirmPassword": canary("cat")}).fails(410, "invitation_used")
		}, nil},
		{"an account accepts", func() {
			h.ask("POST /api/v2/auth/invite", m{"email": h.bob.Email, "role": "VIEWER"}, h.as(h.other)).ok(201)
			h.ask("POST /api/v2/auth/accept-invitation", m{"token": h.keep(h.server.code(h.t, h.bob.Email)), "password": password}).ok(200)
		}, []string{
			`Zeta: other done user.invite invitation inv, email "" "bob@acme.example", role "" "VIEWER"`,
			`Zeta: bob done invitation.accept invitation inv, status "PENDING" "ACCEPTED", role "" "VIEWER"`,
		}},
		{"withdrawn", func() {
			h.ask("DELETE /api/v2/invitations/"+h.invited("fay@acme.example"), nil, h.as(h.ann)).ok(204)
		}, []string{
			`Acme: OWNER done user.invite invitation inv, email "" "fay@acme.example", role "" "USER"`,
			`Acme: ann done invitation.revoke invitation inv, status "PENDING" "REVOKED"`,
		}},
	}
}

func (h *recorder) withSessions() []step {
	return []step{
		{"a login", func() {
			h.token = h.keep(h.server.token(h.t, h.bob.Email))
			h.session = h.ask("GET /api/v2/auth/session", nil, as(h.token)).text("session.id")
		}, []string{
			`Acme: bob done session.open session ses, userAgent "" "Go-http-client/1.1"`,
		}},
		{"a step-up", func() {
			begun := h.ask("POST /api/v2/auth/step-up/begin", nil, as(h.token)).ok(200)
			h.token = h.keep(h.ask("POST /api/v2/auth/step-up/finish", m{"challenge": h.keep(begun.text("challenge")), "password": password}, as(h.token)).ok(200).text("token"))
		}, []string{
			"Acme: bob done mfa.challenge session ses",
			`Acme: bob done session.step_up session ses, userAgent "" "Go-http-client/1.1"`,
		}},
		{"a wrong password", func() { h.login(h.t, h.bob.Email, h.keep(canary("wrong"))).fails(401, "invalid_credentials") }, []string{
			`Acme: anonymous refused session.refuse user bob, reason "" "invalid_credentials"`,
		}},
		{"no such account", func() {
			h.login(h.t, h.keep("nobody-at-all@acme.example"), canary("wrong")).fails(401, "invalid_credentials")
		}, []string{
			`-: anonymous refused session.refuse user -, reason "" "invalid_credentials"`,
		}},
		{"another tenant", func() {
			h.token = h.keep(h.ask("POST /api/v2/auth/switch-tenant", m{"tenantId": h.zeta.ID}, as(h.token)).ok(200).text("token"))
		}, []string{
			"Acme: bob done session.end session ses",
			`Zeta: bob done session.open session ses, userAgent "" "Go-http-client/1.1"`,
		}},
		{"a tenant of others", func() {
			h.ask("POST /api/v2/auth/switch-tenant", m{"tenantId": h.zeta.ID}, h.as(h.owner)).fails(404, "not_found")
		}, nil},
		{"a session of one's own", func() {
			h.session = h.ask("GET /api/v2/auth/session", nil, as(h.token)).text("session.id")
			bob2 := h.keep(h.server.token(h.t, h.bob.Email))
			h.ask("DELETE /api/v2/sessions/"+h.session, nil, as(bob2)).ok(204)
			h.token = bob2
		}, []string{
			`Zeta: bob done session.open session ses, userAgent "" "Go-http-client/1.1"`,
			"Zeta: bob done session.end session ses",
		}},
		{"all other sessions", func() { h.ask("DELETE /api/v2/sessions", nil, as(h.token)).ok(204) }, []string{
			`Acme: bob done session.end user bob, sessionsEnded "" "1"`,
			"Zeta: bob done session.end user bob",
		}},
		{"the same tenant again", func() {
			h.token = h.keep(h.ask("POST /api/v2/auth/switch-tenant", m{"tenantId": h.zeta.ID}, as(h.token)).ok(200).text("token"))
		}, []string{
			"Zeta: bob done session.end session ses",
			`Zeta: bob done session.open session ses, userAgent "" "Go-http-client/1.1"`,
		}},
	}
}

// enter signs a person in to a tenant; the next step's events don't include this.
func (h *recorder) enter(who *doorwardtest.Person, password string, in *doorwardtest.Tenant) string {
	h.t.Helper()
	token := h.keep(h.ask(loginPath, m{"email": who.Email, "password": password, "tenantId": in.ID}).ok(200).text("token"))
	h.news()
	return token
}

func (h *recorder) withFactors() []step {
	var a *authenticator
	var begun, reset string
	key := passkeytest.New(passkeyOrigin)
	return []step{
		{"a second factor", func() {
			a = h.enrolTOTP(h.t, h.tokens[h.ann.ID])
			h.secrets = append(append(h.secrets, a.secret), a.recovery...)
			h.ask("PATCH /api/v2/auth/factors/"+a.id, m{"name": "Phone"}, h.as(h.ann)).ok(200)
			h.ask("PATCH /api/v2/auth/factors/"+a.id, m{"name": "Phone"}, h.as(h.ann)).ok(200)
		}, []string{
			`Acme: ann done mfa.enrol user ann, factor "" "totp", recoveryCodes "" "10", userAgent "" "Go-http-client/1.1"`,
			`Acme: ann done mfa.enrol user ann, factorRenamed "" "totp", userAgent "" "Go-http-client/1.1"`,
		}},
		{"the password alone", func() {
			begun = h.keep(h.login(h.t, h.ann.Email, password).fails(403, "mfa_required").text("challenge"))
		}, []string{"Acme: ann done mfa.challenge user ann"}},
		{"a wrong code", func() {
			h.ask(secondPath, m{"challenge": begun, "code": "000000"}).fails(401, "invalid_code")
		}, []string{`Acme: anonymous refused mfa.refuse user ann, reason "" "invalid_code", userAgent "" "Go-http-client/1.1"`}},
		{"a recovery code", func() {
			h.tokens[h.ann.ID] = h.keep(h.ask(secondPath, m{"challenge": begun, "recoveryCode": a.recovery[0]}).ok(200).text("token"))
		}, []string{
			`Acme: ann done mfa.recover user ann, recoveryCodes "10" "9", userAgent "" "Go-http-client/1.1"`,
			`Acme: ann done session.open session ses, userAgent "" "Go-http-client/1.1"`,
		}},
		{"a browser that isn't asked, and is again", func() {
			by := doorward.Caller{Principal: doorward.Principal{Kind: doorward.ByUser, ID: h.ann.ID, Email: h.ann.Email, TenantID: h.acme.ID}, IP: "192.0.2.1", RequestID: "req_here"}
			_, err := h.Node.DB.Write(h.t.Context(), func(tx *store.Tx) error {
				if _, err := tx.InsertDevice(h.t.Context(), []byte("a browser"), by.ID, 20, time.Time{}); err != nil {
					return err
				}
				return tx.RememberBrowser(h.t.Context(), []byte("a browser"), "", "")
			})
			if err == nil {
				err = h.Node.App.Factors.Forget(h.t.Context(), by, "")
			}
			if err != nil {
				h.t.Error(err)
			}
		}, []string{`Acme: ann done session.end user ann, rememberedBrowsers "1" "0"`}},
		{"a reset", func() {
			h.ask("POST /api/v2/users/"+h.ann.ID+"/mfa/reset", nil, h.as(h.owner)).ok(202)
			reset = h.keep(h.server.code(h.t, h.ann.Email))
			h.ask("POST /api/v2/users/"+h.owner.ID+"/mfa/reset", nil, h.as(h.owner)).fails(403, "forbidden")
		}, []string{
			`Acme: OWNER done mfa.reset user ann, sessionsEnded "" "2"`,
			`Acme: OWNER refused mfa.reset user OWNER, reason "" "forbidden"`,
		}},
		{"its code", func() { h.ask(resetFactorsPath, m{"token": reset, "password": password}).ok(204) }, []string{
			`Acme: ann done mfa.recover user ann, userAgent "" "Go-http-client/1.1"`,
		}},
		{"and a factor taken back", func() {
			h.tokens[h.ann.ID] = h.keep(h.server.token(h.t, h.ann.Email))
			a = h.enrolTOTP(h.t, h.tokens[h.ann.ID])
			h.news()
			h.ask("DELETE /api/v2/auth/factors/"+a.id, nil, h.as(h.ann)).ok(204)
		}, []string{`Acme: ann done mfa.remove user ann, factor "totp" "", userAgent "" "Go-http-client/1.1"`}},
		{"a passkey", func() {
			h.ask(beginPasskeyPath, nil, h.as(h.ann)).ok(200)
			h.addPasskey(h.t, h.tokens[h.ann.ID], key)
		}, []string{`Acme: ann done mfa.enrol user ann, factor "" "passkey", recoveryCodes "" "10", userAgent "" "Go-http-client/1.1"`}},
		{"a passkey of nobody", func() {
			begun := h.ask(beginAlonePath, nil).ok(200)
			h.ask(finishAlonePath, m{"challenge": begun.text("challenge"), "credential": m{"id": "x"}}).fails(401, "invalid_code")
		}, []string{`-: anonymous refused mfa.refuse user -, reason "" "invalid_code", userAgent "" "Go-http-client/1.1"`}},
		{"the passkey alone", func() { h.tokens[h.ann.ID] = h.keep(h.alone(h.t, key).ok(200).text("token")) }, []string{`Acme: ann done session.open session ses, userAgent "" "Go-http-client/1.1"`}},
		{"a copy of it", func() {
			stolen := key.Copy()
			stolen.Counter--
			h.alone(h.t, stolen).fails(401, "invalid_code")
		}, []string{
			`Acme: anonymous refused mfa.refuse user ann, reason "" "invalid_code", userAgent "" "Go-http-client/1.1"`,
			`Acme: ann done mfa.clone user ann, factor "passkey" "", userAgent "" "Go-http-client/1.1"`,
		}},
	}
}

func (h *recorder) withPasswords() []step {
	return []step{
		{"a wrong password on changing it", func() {
			h.ask(changePath, m{"currentPassword": canary("wrong"), "password": h.keep(canary("bob")), "confirmPassword": canary("bob")}, as(h.token)).ok(422)
		}, []string{
			`Zeta: bob refused session.refuse user bob, reason "" "invalid_credentials"`,
		}},
		{"another password", func() {
			h.enter(h.bob, password, h.acme)
			h.ask(changePath, m{"currentPassword": password, "password": canary("bob"), "confirmPassword": canary("bob")}, as(h.token)).ok(204)
		}, []string{
			`Acme: bob done session.end user bob, sessionsEnded "" "1", cause "" "password.change"`,
			`Zeta: bob done password.change user bob, userAgent "" "Go-http-client/1.1"`,
		}},
		{"forgotten", func() { h.code = h.keep(h.forgot(h.t, h.bob.Email)) }, []string{
			"Acme: anonymous done password.forgot user bob",
		}},
		{"reset", func() {
			h.enter(h.bob, canary("bob"), h.acme)
			h.enter(h.bob, canary("bob"), h.zeta)
			h.reset(h.t, h.code, h.keep(canary("reset"))).ok(204)
		}, []string{
			`Acme: bob done session.end user bob, sessionsEnded "" "1", cause "" "password.reset"`,
			`Zeta: bob done password.reset user bob, sessionsEnded "" "2", userAgent "" "Go-http-client/1.1"`,
		}},
		{"another address", func() {
			h.token = h.enter(h.bob, canary("reset"), h.zeta)
			h.ask(emailPath, m{"email": "robert@acme.example"}, as(h.token)).ok(202)
			h.code = h.keep(h.server.code(h.t, h.bob.Email))
			h.ask(confirmEmailPath, m{"token": h.keep(h.server.code(h.t, "robert@acme.example"))}).ok(204)
		}, []string{
			`Acme: bob done account.email user bob, email "bob@acme.example" "robert@acme.example"`,
			`Zeta: bob done account.email user bob, requestedEmail "" "robert@acme.example", userAgent "" "Go-http-client/1.1"`,
			`Zeta: bob done account.email user bob, email "bob@acme.example" "robert@acme.example", userAgent "" "Go-http-client/1.1"`,
		}},
		{"the old address again", func() {
			h.ask(undoPath, m{"token": h.code}).ok(204)
		}, []string{
			`Acme: bob done account.email user bob, email "robert@acme.example" "bob@acme.example"`,
			`Zeta: bob done account.email user bob, email "robert@acme.example" "bob@acme.example", userAgent "" "Go-http-client/1.1", sessionsEnded "" "1"`,
		}},
		{"a logout", func() {
			h.token = h.keep(h.login(h.t, h.bob.Email, canary("reset")).ok(200).text("token"))
			h.ask("POST /api/v2/auth/logout", nil, as(h.token)).ok(204)
			h.ask("POST /api/v2/auth/logout", nil, as(h.token)).ok(204)
		}, []string{
			`Zeta: bob done session.open session ses, userAgent "" "Go-http-client/1.1"`, // after a new password
			"Zeta: bob done session.end session ses",
		}},
	}
}

func (h *recorder) withMembers() []step {
	return []step{
		{"role, status and name", func() {
			h.token = h.keep(h.login(h.t, h.bob.Email, canary("reset")).ok(200).text("token"))
			h.news()
			h.ask("PATCH /api/v2/users/"+h.bob.ID, m{"role": "VIEWER", "status": "suspended", "name": "Bob"}, h.as(h.ann)).ok(200)
			h.ask("PATCH /api/v2/users/"+h.bob.ID, m{"role": "VIEWER", "status": "suspended", "name": "Bob"}, h.as(h.ann)).ok(200)
		}, []string{
			`Acme: ann done user.role user bob, role "USER" "VIEWER"`,
			`Acme: ann done user.suspend user bob, status "active" "suspended"`,
			`Acme: ann done user.rename user bob, name "" "Bob"`,
		}},
		{"a login of somebody suspended", func() {
			h.ask("POST /api/v2/auth/login", m{"email": h.bob.Email, "password": canary("reset"), "tenantId": h.acme.ID}).fails(403, "membership_suspended")
		}, []string{
			`Acme: anonymous refused session.refuse user bob, reason "" "membership_suspended"`,
		}},
		{"resumed", func() {
			h.ask("PATCH /api/v2/users/"+h.bob.ID, m{"status": "active"}, h.as(h.ann)).ok(200)
		}, []string{
			`Acme: ann done user.resume user bob, status "suspended" "active"`,
		}},
	}
}

func (h *recorder) withErasures() []step {
	return []step{
		{"an account erased", func() {
			const eve = "eve@acme.example"
			h.invited(eve)
			h.ask("POST /api/v2/auth/complete-registration", m{"token": h.keep(h.server.code(h.t, eve)), "password": password, "confirmPassword": password}).ok(200)
			h.token = h.keep(h.server.token(h.t, eve))
			h.news()
			h.ask(erasePath, m{"confirm": eve}, as(h.token)).ok(204)
		}, []string{
			"-: user done account.erase user usr",
			`Acme: user done account.erase user usr, role "USER" "", sessionsEnded "" "1", blankedInvitation "" "inv"`,
		}},
	}
}

func (h *recorder) withOwners() []step {
	return []step{
		{"an OWNER by an ADMIN", func() {
			h.ask("PATCH /api/v2/users/"+h.owner.ID, m{"role": "USER"}, h.as(h.ann)).fails(403, "forbidden")
			h.ask("DELETE /api/v2/users/"+h.owner.ID, nil, h.as(h.ann)).fails(403, "forbidden")
		}, []string{
			`Acme: ann refused user.manage user OWNER, reason "" "forbidden", role "OWNER" "USER"`,
			`Acme: ann refused user.remove user OWNER, reason "" "forbidden"`,
		}},
		{"the last OWNER", func() {
			h.ask("PATCH /api/v2/users/"+h.owner.ID, m{"role": "USER"}, h.as(h.owner)).fails(409, "last_owner")
			h.ask("DELETE /api/v2/auth/memberships/"+h.acme.ID, nil, h.as(h.owner)).fails(409, "last_owner")
		}, []string{
			`Acme: OWNER refused user.role user OWNER, reason "" "last_owner", role "OWNER" "USER"`,
			`Acme: OWNER refused user.leave user OWNER, reason "" "last_owner"`,
		}},
		{"somebody of another tenant", func() {
			h.ask("PATCH /api/v2/users/"+h.other.ID, m{"role": "USER"}, h.as(h.owner)).fails(404, "not_found")
		}, nil},
		{"signed out", func() {
			h.ask("POST /api/v2/auth/login", m{"email": h.bob.Email, "password": canary("reset"), "tenantId": h.acme.ID}).ok(200)
			h.news()
			h.ask("DELETE /api/v2/users/"+h.bob.ID+"/sessions", nil, h.as(h.ann)).ok(200)
		}, []string{
			`Acme: ann done user.signout user bob, sessionsEnded "" "1"`,
		}},
		{"removed", func() { h.ask("DELETE /api/v2/users/"+h.bob.ID, nil, h.as(h.ann)).ok(200) }, []string{
			`Acme: ann done user.remove user bob, email "bob@acme.example" "", name "Bob" "", role "VIEWER" ""`,
		}},
		{"gone", func() {
			h.token = h.keep(h.login(h.t, h.bob.Email, canary("reset")).ok(200).text("token"))
			h.news()
			h.ask("DELETE /api/v2/auth/memberships/"+h.zeta.ID, nil, as(h.token)).ok(204)
		}, []string{
			`Zeta: bob done user.leave user bob, role "VIEWER" "", sessionsEnded "" "2"`,
		}},
	}
}

func (h *recorder) withTheTenant() []step {
	return []step{
		{"settings", func() {
			h.ask("PATCH /api/v2/tenant", m{"name": "Acme II", "settings": m{"invitationDays": 3}}, h.as(h.owner)).ok(200)
			h.ask("PATCH /api/v2/tenant", m{"name": "Acme II"}, h.as(h.owner)).ok(200)
		}, []string{
			`Acme: OWNER done tenant.update tenant Acme, name "Acme" "Acme II", invitationDays "30" "3"`,
		}},
		{"a colour and a logo", func() {
			h.ask("PATCH /api/v2/tenant", m{"settings": m{"accent": "#FFD400"}}, h.as(h.ann)).ok(200)
			h.ask("PATCH /api/v2/tenant", m{"settings": m{"accent": "#ffd400"}}, h.as(h.ann)).ok(200)
			for range 2 {
				h.ask("PUT /api/v2/tenant/logo", string(dot), h.as(h.ann), typed("image/png")).ok(200)
			}
			for range 2 {
				h.ask("DELETE /api/v2/tenant/logo", nil, h.as(h.ann)).ok(204)
			}
		}, []string{
			`Acme: ann done tenant.update tenant Acme, accent "" "#ffd400"`,
			`Acme: ann done tenant.update tenant Acme, logo "" "` + dotHash + `"`,
			`Acme: ann done tenant.update tenant Acme, logo "` + dotHash + `" ""`,
		}},
		{"closed", func() {
			h.ask("DELETE /api/v2/tenant", m{"confirm": "Acme II"}, h.as(h.ann)).fails(403, "forbidden")
			h.ask("DELETE /api/v2/tenant", m{"confirm": "Acme"}, h.as(h.owner)).ok(422)
			h.closeTenant(h.t, h.owner, h.acme.ID, "Acme II")
		}, []string{
			`Acme: ann refused tenant.destroy tenant Acme, reason "" "forbidden"`,
			`Acme: OWNER done session.open session ses, userAgent "" "Go-http-client/1.1"`,
			`Acme: OWNER done tenant.close tenant Acme, status "active" "closing", sessionsEnded "" "4"`,
		}},
		{"while it is closing", func() {
			h.token = h.keep(h.server.token(h.t, h.owner.Email))
			if status := h.status(h.t, "/api/v2/users", h.token); status != 403 {
				h.t.Errorf("answered %d while the tenant is closing", status)
			}
		}, []string{
			`Acme: OWNER done session.open session ses, userAgent "" "Go-http-client/1.1"`,
			`Acme: OWNER refused request.refuse endpoint GET /api/v2/users, reason "" "tenant_closing"`,
		}},
		{"restored", func() { h.ask("POST /api/v2/tenant/restore", nil, as(h.token)).ok(200) }, []string{
			`Acme: OWNER done tenant.restore tenant Acme, status "closing" "active"`,
		}},
	}
}

// closeTenant signs the person in and closes the tenant.
func (s *server) closeTenant(t *testing.T, who *doorwardtest.Person, tenantID, name string) {
	t.Helper()
	token, err := secret.Parse(s.token(t, who.Email))
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Node.App.Sessions.Check(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	by := doorward.Caller{IP: "127.0.0.1", RequestID: "req_test", Principal: p}
	if _, _, err := s.Node.App.Tenants.Close(t.Context(), by, name); err != nil {
		t.Fatal(err)
	}
}

// status returns the status without checking the answer.
func (s *server) status(t *testing.T, path, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	as(token)(req)
	res, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// keepsTenantsApart requires that no trail has the id of another tenant or of a
// session there: a tenant must not learn of other memberships.
func (h *recorder) keepsTenantsApart() {
	h.t.Helper()
	home := map[string]string{h.acme.ID: h.acme.ID, h.zeta.ID: h.zeta.ID}
	for _, e := range h.every {
		if e.Action == doorward.SessionOpen {
			home[e.Target.ID] = e.Target.TenantID
		}
	}
	for _, e := range h.every {
		for _, id := range ids.FindAllString(fmt.Sprintf("%+v", e), -1) {
			if in, known := home[id]; known && in != e.Target.TenantID {
				h.t.Errorf("%s has %s of %s", h.line(e), id, h.name(in))
			}
		}
	}
}

// keepsSecrets requires that no event has a secret or text typed by a stranger.
func (h *recorder) keepsSecrets() {
	h.t.Helper()
	for _, e := range h.every {
		for _, secret := range h.secrets {
			if strings.Contains(fmt.Sprintf("%+v", e), secret) {
				h.t.Errorf("%+v has %q", e, secret)
			}
		}
		if e.Action != doorward.AccountErase && e.ActorType != doorward.Operator && e.ActorType != doorward.System && (e.IP == "" || e.RequestID == "") {
			h.t.Errorf("%+v has no client address or no request id", e)
		}
	}
}

// knowsAllActs requires an event for each verb that is recorded under its own name,
// so that a new verb is added to the steps above.
func (h *recorder) knowsAllActs() {
	h.t.Helper()
	seen := map[doorward.Action]bool{}
	for _, e := range h.every {
		seen[e.Action] = true
	}
	// Operations on a database have their own tests in cmd/doorward/testdata.
	seen[doorward.MasterKeyRotate], seen[doorward.SigningKeyRotate] = true, true
	seen[doorward.InstallationBackup], seen[doorward.InstallationRestore], seen[doorward.InstallationMove] = true, true, true
	seen[doorward.WebhookFailing], seen[doorward.WebhookDisable] = true, true // tested in app/webhook
	for _, verb := range doorward.Verbs() {
		if !verb.Action.IsPermission() && !seen[verb.Action] {
			h.t.Errorf("no step records %s: add one", verb.Action)
		}
	}
}
