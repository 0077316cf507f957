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

// recorder reads every trail of an installation, each event once.
type recorder struct {
	*server
	t      *testing.T
	read   map[string]int    // how many events were read, by trail
	names  map[string]string // of objects, by id
	events []doorward.Event  // all that were read

	acme, zeta             *doorwardtest.Tenant
	owner, other, ann, bob *doorwardtest.Person
	tokens                 map[string]string // of sessions, by the id of the person
	secrets                []string

	// State that one step leaves to the next.
	key, pending, code, session, token string
}

// newEvents returns the events since the last call, in short form and by trail.
func (r *recorder) newEvents() (all []string) {
	r.t.Helper()
	r.Node.App.Inbox.RecordPending(r.t.Context())
	trails, err := r.Node.DB.Read().ChainIDs(r.t.Context())
	slices.SortStableFunc(trails, func(a, b string) int { return strings.Compare(r.name(a), r.name(b)) })
	for _, id := range trails {
		var events []doorward.Event
		if err == nil {
			events, err = storetest.Events(r.t.Context(), r.Node.DB.Read(), id)
		}
		// Refusals are recorded asynchronously, perhaps after later events.
		slices.SortStableFunc(events[r.read[id]:], func(a, b doorward.Event) int { return a.At.Compare(b.At) })
		for _, e := range events[r.read[id]:] {
			r.events = append(r.events, e)
			all = append(all, r.line(e))
		}
		r.read[id] = len(events)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// line returns an event in short form.
func (r *recorder) line(e doorward.Event) string {
	actor := string(e.ActorType)
	if e.ActorEmail != "" {
		actor = r.name(e.ActorID)
	}
	text := fmt.Sprintf("%s: %s %s %s %s %s", r.name(e.Target.TenantID), actor, e.Outcome, e.Action, e.Target.Type, r.name(e.Target.ID))
	for _, c := range e.Changes {
		text += fmt.Sprintf(", %s %q %q", c.Field, c.From, c.To)
	}
	text = anyHint.ReplaceAllString(anyID.ReplaceAllStringFunc(text, r.name), "HINT")
	return strings.TrimSpace(anyTime.ReplaceAllString(text, "TIME"))
}

var (
	anyID   = regexp.MustCompile(`[a-z]{3}_[a-z2-7]{26}`)
	anyHint = regexp.MustCompile(`dwk_\w{4}…\w{4}`)
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
)

// name returns the test's name for the object, or the prefix of its id.
func (r *recorder) name(id string) string {
	if id == "" {
		return "-"
	}
	if name, has := r.names[id]; has {
		return name
	}
	if anyID.MatchString(id) {
		return id[:3]
	}
	return id
}

// step is an operation and the events that it must record.
type step struct {
	name string
	do   func()
	want []string
}

// Every change and every refusal records one event in the trail of the tenant
// concerned, with actor, action and the values before and after. Nothing else is
// recorded.
func TestOneEventForEachOperation(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		r := newRecorder(t, d)
		for _, s := range slices.Concat(r.operatorSteps(), r.invitationSteps(), r.keySteps(), r.webhookSteps(), r.connectionSteps(), r.domainSteps(), r.acceptanceSteps(), r.sessionSteps(), r.factorSteps(),
			r.passwordSteps(), r.memberSteps(), r.erasureSteps(), r.ownerSteps(), r.tenantSteps(), r.keyExpirySteps()) {
			s.do()
			if diff := cmp.Diff(s.want, r.newEvents()); diff != "" {
				t.Errorf("the events of the step %q (-want +got):\n%s", s.name, diff)
			}
		}
		r.checkNoSecrets()
		r.checkTenantsApart()
		r.checkAllVerbsRecorded()
	}, masterKey(t), withPasskeys())
}

// newRecorder creates two tenants with people who are signed in, and reads their trails.
func newRecorder(t *testing.T, d *server) *recorder {
	t.Helper()
	r := &recorder{server: d, t: t, read: map[string]int{}, tokens: map[string]string{}, secrets: []string{password}}
	r.acme, r.zeta = d.Tenant("Acme"), d.Tenant("Zeta")
	r.owner, r.other = r.acme.Owner, r.zeta.Owner
	r.ann, r.bob = r.acme.Join("ann@acme.example", "ADMIN"), r.acme.Join("bob@acme.example", "USER")
	r.signIn(r.owner, r.other, r.ann, r.bob)
	r.names = map[string]string{
		r.acme.ID: "Acme", r.zeta.ID: "Zeta", r.owner.ID: "OWNER", r.other.ID: "other", r.ann.ID: "ann", r.bob.ID: "bob",
	}
	r.newEvents()
	return r
}

func (r *recorder) signIn(all ...*doorwardtest.Person) {
	r.t.Helper()
	for _, p := range all {
		r.tokens[p.ID] = r.noteSecret(r.server.token(r.t, p.Email))
	}
}

func (r *recorder) as(p *doorwardtest.Person) opt { return as(r.tokens[p.ID]) }

// noteSecret returns the secret, and has checkNoSecrets search for it.
func (r *recorder) noteSecret(secret string) string {
	r.secrets = append(r.secrets, secret)
	return secret
}

func (r *recorder) ask(route string, body any, opts ...opt) answer {
	r.t.Helper()
	return r.send(r.t, route, body, opts...)
}

// newInvitation sends an invitation as the OWNER and returns its id.
func (r *recorder) newInvitation(email string) string {
	r.t.Helper()
	return r.ask("POST /api/v2/auth/invite", m{"email": email, "role": "USER"}, r.as(r.owner)).ok(http.StatusCreated).text("id")
}

// useOperatorPage opens the operator's page, uses its link a second time, and closes the page.
func (r *recorder) useOperatorPage() {
	installation := r.Node.App.Installation
	by := doorward.Caller{Principal: doorward.Principal{Kind: doorward.Anonymous}, IP: "127.0.0.1", UserAgent: "Go-http-client", RequestID: doorward.NewID(doorward.PrefixRequest)}
	link, _, err := installation.MakeLink(r.t.Context(), doorward.OperatorAtTerminal(), "thaw", "freeze")
	if err != nil {
		r.t.Fatal(err)
	}
	page, err := installation.OpenPage(r.t.Context(), by, r.noteSecret(link.Reveal()))
	if err != nil {
		r.t.Fatal(err)
	}
	r.noteSecret(page.Reveal())
	if _, err := installation.OpenPage(r.t.Context(), by, link.Reveal()); !doorward.HasCode(err, doorward.CodeInvalidCode) {
		r.t.Errorf("the link opens the page again: %v", err)
	}
	for range 2 {
		if err := installation.LeavePage(r.t.Context(), by, page); err != nil {
			r.t.Fatal(err)
		}
	}
}

// operatorSteps are the steps of the operator and its services, and those about roles and policies.
func (r *recorder) operatorSteps() []step {
	return []step{
		{"reading", func() {
			for _, path := range []string{"users", "users/" + r.ann.ID, "invitations", "tenant", "sessions", "auth/memberships", "audit-events"} {
				r.ask("GET /api/v2/"+path, nil, r.as(r.owner)).ok(200)
			}
		}, nil},
		{"an operator key", func() { r.key = r.noteSecret(r.operatorKey(r.t)) }, []string{
			`-: operator done key.create key key, name "" "test 1"`,
		}},
		{"an operator key revoked", func() {
			spare := r.noteSecret(r.operatorKey(r.t))
			keys := r.Node.App.Keys
			found, err := keys.FindOperators(r.t.Context(), "test 2")
			if err == nil {
				err = keys.RevokeOperator(r.t.Context(), doorward.OperatorAtTerminal(), found[0])
			}
			if err != nil {
				r.t.Fatal(err)
			}
			r.ask("GET /api/v2/tenants", nil, bearer(spare)).fails(401, "unauthenticated")
			if err := keys.RevokeOperator(r.t.Context(), doorward.OperatorAtTerminal(), found[0]); !doorward.HasCode(err, doorward.CodeNotFound) {
				r.t.Errorf("revoked once more: %v", err)
			}
		}, []string{
			`-: operator done key.create key key, name "" "test 2"`,
			`-: operator done key.revoke key key, name "test 2" ""`,
		}},
		{"a quota", func() {
			for range 2 {
				r.setQuotas(r.t, r.zeta.ID, m{"people": 50, "apiKeys": 20, "webhooks": 10, "eventsPerDay": 5000})
			}
		}, []string{`Zeta: operator done tenant.quota tenant Zeta, quota.people "" "50", quota.apiKeys "" "20", quota.webhooks "" "10", quota.eventsPerDay "" "5000"`}},
		{"a pause of changes", func() {
			r.pauseChanges(r.t, "We move.")
			r.pauseChanges(r.t, "We move.")
			for range 2 {
				r.resumeChanges(r.t)
			}
		}, []string{
			`-: operator done installation.maintenance installation -, maintenance "off" "on", pauseReason "" "We move."`,
			`-: operator done installation.maintenance installation -, maintenance "on" "off"`,
		}},
		{"the operator's page", r.useOperatorPage, []string{
			`-: operator done audit.link page opg, acts "" "freeze thaw"`,
			`-: anonymous done audit.open page opg, acts "" "freeze thaw", userAgent "" "Go-http-client"`,
			`-: anonymous refused audit.open page -, reason "" "invalid_code"`,
			`-: anonymous done audit.end page opg`,
		}},
		{"a tenant created by API", func() {
			r.ask("POST /api/v2/tenants", m{"name": "Globex", "ownerEmail": "g@globex.example"}, bearer(r.key)).ok(201)
		}, []string{
			`tnt: operator done tenant.create tenant tnt, name "" "Globex", ownerEmail "" "g@globex.example"`,
		}},
		{"a tenant created with a session", func() {
			r.ask("POST /api/v2/tenants", m{"name": "Globex", "ownerEmail": "g@globex.example"}, r.as(r.owner)).fails(403, "forbidden")
		}, []string{
			`Acme: OWNER refused request.refuse endpoint POST /api/v2/tenants, reason "" "forbidden"`,
		}},
		{"people read with an operator key", func() { r.ask("GET /api/v2/users", nil, bearer(r.key)).fails(403, "forbidden") }, []string{
			`-: operator refused request.refuse endpoint GET /api/v2/users, reason "" "forbidden"`,
		}},
		{"models", r.changeModel, []string{
			`-: operator done model.apply model -, version "0" "1", actionsAdded "" "invoice.read"`,
			`-: operator done model.apply model -, version "1" "2", actionsChanged "" "invoice.read"`,
			`-: operator done model.apply model -, version "2" "3", actionsRemoved "" "invoice.read"`,
			`-: operator done model.apply model -, version "3" "4", policiesChanged "" "\"a\"", entitiesChanged "" "team::\"b\""`,
			`-: operator done model.apply model -, version "4" "5", policiesChanged "" "\"a\"", entitiesChanged "" "team::\"b\""`,
		}},
		{"roles", r.changeRoles, []string{
			`Acme: OWNER done role.create role rol, name "" "DESK", permissions "" "user.read"`,
			`Acme: OWNER done role.update role rol, about "" "answers", permissions "user.read" "tenant.read"`,
			`Acme: OWNER done role.delete role rol, name "DESK" ""`,
		}},
		{"policies", r.changePolicies, []string{
			`Acme: OWNER done policy.update policy -, version "0" "1", confirmUntil "" "TIME"`,
			`Acme: OWNER done policy.confirm policy -, version "" "1"`,
			`Acme: OWNER refused audit.read tenant Acme, reason "" "denied_by_policy", policy "" "a"`,
			`Acme: OWNER done policy.update policy -, version "1" "2"`,
			`Acme: OWNER done policy.restore policy -, restored "" "1", version "2" "3"`,
			`Acme: OWNER done policy.update policy -, version "3" "4"`,
		}},
		{"a service key", r.useServiceKeys, []string{
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

func (r *recorder) changeModel() {
	first := r.ask("GET /api/v2/model", nil, bearer(r.key)).ok(200)
	apply := func(add string) {
		r.ask("PUT /api/v2/model", m{"text": first.text("text") + add}, bearer(r.key), with("If-Match", "*")).ok(200)
	}
	apply("  invoice.read: {roles: [OWNER]}\n")
	apply("  invoice.read: {roles: [OWNER]}\n") // changes nothing
	apply("  invoice.read: {roles: [OWNER, ADMIN]}\n")
	apply("")
	apply("policies: '@id(\"a\") forbid(principal, action, resource) when { false };'\nentities: [{uid: {type: team, id: b}}]\n")
	apply("")
}

func (r *recorder) changeRoles() {
	id := r.ask("POST /api/v2/roles", m{"name": "DESK", "permissions": []string{"user.read"}}, r.as(r.owner)).ok(201).text("id")
	r.ask("PATCH /api/v2/roles/"+id, m{"about": "answers", "permissions": []string{"tenant.read"}}, r.as(r.owner)).ok(200)
	r.ask("PATCH /api/v2/roles/"+id, m{"about": "answers"}, r.as(r.owner)).ok(200) // changes nothing
	r.ask("DELETE /api/v2/roles/"+id, nil, r.as(r.owner)).ok(204)
}

func (r *recorder) changePolicies() {
	put := func(text string, more m) {
		more["text"] = text
		r.ask("PUT /api/v2/policy", more, r.as(r.owner), with("If-Match", "*")).ok(200)
	}
	put(`@id("a") forbid(principal, action == Action::"audit.read", resource);`, m{"confirmMinutes": 1})
	r.ask("POST /api/v2/policy/confirm", nil, r.as(r.owner)).ok(200)
	r.ask("GET /api/v2/audit-events", nil, r.as(r.owner)).fails(403, "denied_by_policy")
	put("", m{})
	put("", m{}) // changes nothing
	r.ask("POST /api/v2/policy/versions/1/restore", nil, r.as(r.owner)).ok(200)
	put("", m{})
}

func (r *recorder) useServiceKeys() {
	key := r.noteSecret(r.serviceKey(r.t, []doorward.Action{doorward.UserInvite, doorward.ServiceTenantStatus}))
	r.ask("POST /api/v2/auth/invite", m{"email": "of.service@acme.example", "role": "USER"}, bearer(key), inTenant(r.acme.ID)).ok(201)
	r.ask("POST /api/v2/auth/invite", m{"email": "x@acme.example", "role": "OWNER"}, bearer(key), inTenant(r.acme.ID)).fails(403, "forbidden")
	r.ask("GET /api/v2/sessions", nil, bearer(key)).fails(403, "not_for_keys")
	err := r.Node.App.Access.Upkeep(r.t.Context(), func(tx *store.Tx) error {
		_, err := tx.DisableAllServiceKeys(r.t.Context())
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.ask("GET /api/v2/users", nil, bearer(key), inTenant(r.acme.ID)).fails(401, "unauthenticated")
	all, err := r.Node.App.Keys.Services(r.t.Context())
	if err == nil {
		err = r.Node.App.Keys.EnableService(r.t.Context(), doorward.OperatorAtTerminal(), all[0])
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.revokeServiceKeys(r.t)
	r.ask("GET /api/v2/users", nil, bearer(key), inTenant(r.acme.ID)).fails(401, "unauthenticated")
	globex := r.ask("GET /api/v2/tenants?limit=200", nil, bearer(r.key)).ok(200).at("items").([]any)
	r.noteSecret(r.serviceKey(r.t, []doorward.Action{doorward.UserRead}, globex[len(globex)-1].(m)["id"].(string)))
}

func (r *recorder) invitationSteps() []step {
	return []step{
		{"an invitation", func() { r.pending = r.newInvitation("cat@acme.example") }, []string{
			`Acme: OWNER done user.invite invitation inv, email "" "cat@acme.example", role "" "USER"`,
		}},
		{"an invitation by a USER", func() {
			r.ask("POST /api/v2/auth/invite", m{"email": "x@acme.example", "role": "USER"}, r.as(r.bob)).fails(403, "forbidden")
		}, []string{
			`Acme: bob refused user.invite tenant Acme, reason "" "forbidden"`,
		}},
		{"an invitation to a role above", func() {
			r.ask("POST /api/v2/auth/invite", m{"email": "x@acme.example", "role": "OWNER"}, r.as(r.ann)).fails(403, "forbidden")
		}, []string{
			`Acme: ann refused user.invite invitation inv, reason "" "forbidden", role "" "OWNER"`,
		}},
		{"a second invitation to one address", func() {
			r.ask("POST /api/v2/auth/invite", m{"email": "cat@acme.example", "role": "USER"}, r.as(r.ann)).fails(409, "invitation_pending")
		}, nil},
		{"invitations in bulk", func() {
			r.ask("POST /api/v2/auth/invite/bulk", m{"invitations": []m{
				{"email": "dan@acme.example", "role": "USER"}, {"email": "eve@acme.example", "role": "OWNER"}, {"email": "x", "role": "USER"},
			}}, r.as(r.ann)).ok(200)
		}, []string{
			`Acme: ann done user.invite invitation inv, email "" "dan@acme.example", role "" "USER"`,
			`Acme: ann refused user.invite invitation inv, reason "" "forbidden", role "" "OWNER"`,
		}},
		{"an invitation resent", func() {
			r.Advance(2 * time.Minute)
			r.ask("POST /api/v2/invitations/"+r.pending+"/resend", nil, r.as(r.ann)).ok(200)
			r.code = r.noteSecret(r.server.code(r.t, "cat@acme.example"))
		}, []string{
			`Acme: ann done invitation.resend invitation inv, expiresAt "TIME" "TIME"`,
		}},
		{"an invitation resent too soon", func() {
			r.ask("POST /api/v2/invitations/"+r.pending+"/resend", nil, r.as(r.ann)).fails(429, "resend_too_soon")
		}, nil},
	}
}

func (r *recorder) acceptanceSteps() []step {
	return []step{
		{"an invitation accepted by somebody else", func() {
			r.ask("POST /api/v2/auth/accept-invitation", m{"token": r.code}, r.as(r.bob)).fails(403, "wrong_account")
		}, []string{
			`Acme: bob refused invitation.accept invitation inv, reason "" "wrong_account", role "" "USER"`,
		}},
		{"an invitation accepted, and a login, in a frozen tenant", func() {
			r.freeze(r.t, r.acme.ID)
			r.ask("POST /api/v2/auth/complete-registration", m{"token": r.code, "password": r.noteSecret(canary("cat")), "confirmPassword": canary("cat")}).fails(403, "tenant_frozen")
			r.login(r.t, r.bob.Email, password).fails(403, "tenant_frozen")
			if _, err := r.Node.App.Tenants.Thaw(r.t.Context(), doorward.OperatorAtTerminal(), r.acme.ID); err != nil {
				r.t.Fatal(err)
			}
		}, []string{
			`Acme: operator done tenant.freeze tenant Acme, status "active" "frozen", sessionsEnded "" "6"`,
			`Acme: anonymous refused invitation.accept invitation inv, reason "" "tenant_frozen", role "" "USER"`,
			`Acme: anonymous refused session.refuse user bob, reason "" "tenant_frozen"`,
			`Acme: operator done tenant.thaw tenant Acme, status "frozen" "active"`,
		}},
		{"one's own name", func() {
			by := doorward.Caller{IP: "127.0.0.1", RequestID: "req_test"}.As(doorward.User{ID: r.ann.ID, Email: r.ann.Email, TenantID: r.acme.ID})
			if err := r.Node.App.Users.SetOwnName(r.t.Context(), by, "Ann"); err != nil {
				r.t.Fatal(err)
			}
		}, []string{
			`Acme: ann done user.profile user ann, name "" "Ann"`,
		}},
		{"an import", func() {
			list, err := roster.Read(strings.NewReader("email,role\ndan@acme.example,VIEWER\n"), roster.CSV)
			if err == nil {
				_, err = r.Node.App.Users.Import(r.t.Context(), doorward.OperatorAtTerminal(), r.acme.ID, list, false)
			}
			if err != nil {
				r.t.Fatal(err)
			}
		}, []string{
			`Acme: operator done user.import user usr, role "" "VIEWER"`,
			`Acme: operator done user.import tenant Acme, people "" "1"`,
		}},
		{"an export", func() {
			if err := r.Node.App.Tenants.Export(r.t.Context(), doorward.OperatorAtTerminal(), r.acme.ID, false, io.Discard); err != nil {
				r.t.Fatal(err)
			}
		}, []string{
			"Acme: operator done tenant.export tenant Acme",
		}},
		{"new logins", func() { r.signIn(r.owner, r.ann, r.bob); r.newEvents() }, nil},
		{"a registration", func() {
			r.ask("POST /api/v2/auth/complete-registration", m{"token": r.code, "password": canary("cat"), "confirmPassword": canary("cat")}).ok(200)
		}, []string{
			`Acme: usr done invitation.accept invitation inv, status "PENDING" "ACCEPTED", role "" "USER"`,
		}},
		{"a repeated registration", func() {
			r.ask("POST /api/v2/auth/complete-registration", m{"token": r.code, "password": canary("cat"), "confirmPassword": canary("cat")}).fails(410, "invitation_used")
		}, nil},
		{"an invitation accepted with an account", func() {
			r.ask("POST /api/v2/auth/invite", m{"email": r.bob.Email, "role": "VIEWER"}, r.as(r.other)).ok(201)
			r.ask("POST /api/v2/auth/accept-invitation", m{"token": r.noteSecret(r.server.code(r.t, r.bob.Email)), "password": password}).ok(200)
		}, []string{
			`Zeta: other done user.invite invitation inv, email "" "bob@acme.example", role "" "VIEWER"`,
			`Zeta: bob done invitation.accept invitation inv, status "PENDING" "ACCEPTED", role "" "VIEWER"`,
		}},
		{"an invitation withdrawn", func() {
			r.ask("DELETE /api/v2/invitations/"+r.newInvitation("fay@acme.example"), nil, r.as(r.ann)).ok(204)
		}, []string{
			`Acme: OWNER done user.invite invitation inv, email "" "fay@acme.example", role "" "USER"`,
			`Acme: ann done invitation.revoke invitation inv, status "PENDING" "REVOKED"`,
		}},
	}
}

func (r *recorder) sessionSteps() []step {
	return []step{
		{"a login", func() {
			r.token = r.noteSecret(r.server.token(r.t, r.bob.Email))
			r.session = r.ask("GET /api/v2/auth/session", nil, as(r.token)).text("session.id")
		}, []string{
			`Acme: bob done session.open session ses, userAgent "" "Go-http-client/1.1"`,
		}},
		{"a step-up", func() {
			begun := r.ask("POST /api/v2/auth/step-up/begin", nil, as(r.token)).ok(200)
			r.token = r.noteSecret(r.ask("POST /api/v2/auth/step-up/finish", m{"challenge": r.noteSecret(begun.text("challenge")), "password": password}, as(r.token)).ok(200).text("token"))
		}, []string{
			"Acme: bob done mfa.challenge session ses",
			`Acme: bob done session.step_up session ses, userAgent "" "Go-http-client/1.1"`,
		}},
		{"a wrong password", func() { r.login(r.t, r.bob.Email, r.noteSecret(canary("wrong"))).fails(401, "invalid_credentials") }, []string{
			`Acme: anonymous refused session.refuse user bob, reason "" "invalid_credentials"`,
		}},
		{"no such account", func() {
			r.login(r.t, r.noteSecret("nobody-at-all@acme.example"), canary("wrong")).fails(401, "invalid_credentials")
		}, []string{
			`-: anonymous refused session.refuse user -, reason "" "invalid_credentials"`,
		}},
		{"a switch of tenants", func() {
			r.token = r.noteSecret(r.ask("POST /api/v2/auth/switch-tenant", m{"tenantId": r.zeta.ID}, as(r.token)).ok(200).text("token"))
		}, []string{
			"Acme: bob done session.end session ses",
			`Zeta: bob done session.open session ses, userAgent "" "Go-http-client/1.1"`,
		}},
		{"a switch to a foreign tenant", func() {
			r.ask("POST /api/v2/auth/switch-tenant", m{"tenantId": r.zeta.ID}, r.as(r.owner)).fails(404, "not_found")
		}, nil},
		{"one's own session ended", func() {
			r.session = r.ask("GET /api/v2/auth/session", nil, as(r.token)).text("session.id")
			bob2 := r.noteSecret(r.server.token(r.t, r.bob.Email))
			r.ask("DELETE /api/v2/sessions/"+r.session, nil, as(bob2)).ok(204)
			r.token = bob2
		}, []string{
			`Zeta: bob done session.open session ses, userAgent "" "Go-http-client/1.1"`,
			"Zeta: bob done session.end session ses",
		}},
		{"all other sessions ended", func() { r.ask("DELETE /api/v2/sessions", nil, as(r.token)).ok(204) }, []string{
			`Acme: bob done session.end user bob, sessionsEnded "" "1"`,
			"Zeta: bob done session.end user bob",
		}},
		{"a switch to the same tenant", func() {
			r.token = r.noteSecret(r.ask("POST /api/v2/auth/switch-tenant", m{"tenantId": r.zeta.ID}, as(r.token)).ok(200).text("token"))
		}, []string{
			"Zeta: bob done session.end session ses",
			`Zeta: bob done session.open session ses, userAgent "" "Go-http-client/1.1"`,
		}},
	}
}

// signInTo signs a person in to a tenant; the events of the step don't include this.
func (r *recorder) signInTo(who *doorwardtest.Person, password string, in *doorwardtest.Tenant) string {
	r.t.Helper()
	token := r.noteSecret(r.ask(loginPath, m{"email": who.Email, "password": password, "tenantId": in.ID}).ok(200).text("token"))
	r.newEvents()
	return token
}

func (r *recorder) factorSteps() []step {
	var a *authenticator
	var begun, reset string
	key := passkeytest.New(passkeyOrigin)
	return []step{
		{"a second factor", func() {
			a = r.enrolTOTP(r.t, r.tokens[r.ann.ID])
			r.secrets = append(append(r.secrets, a.secret), a.recovery...)
			r.ask("PATCH /api/v2/auth/factors/"+a.id, m{"name": "Phone"}, r.as(r.ann)).ok(200)
			r.ask("PATCH /api/v2/auth/factors/"+a.id, m{"name": "Phone"}, r.as(r.ann)).ok(200)
		}, []string{
			`Acme: ann done mfa.enrol user ann, factor "" "totp", recoveryCodes "" "10", userAgent "" "Go-http-client/1.1"`,
			`Acme: ann done mfa.enrol user ann, factorRenamed "" "totp", userAgent "" "Go-http-client/1.1"`,
		}},
		{"a password without the second factor", func() {
			begun = r.noteSecret(r.login(r.t, r.ann.Email, password).fails(403, "mfa_required").text("challenge"))
		}, []string{"Acme: ann done mfa.challenge user ann"}},
		{"a wrong code", func() {
			r.ask(secondPath, m{"challenge": begun, "code": "000000"}).fails(401, "invalid_code")
		}, []string{`Acme: anonymous refused mfa.refuse user ann, reason "" "invalid_code", userAgent "" "Go-http-client/1.1"`}},
		{"a recovery code", func() {
			r.tokens[r.ann.ID] = r.noteSecret(r.ask(secondPath, m{"challenge": begun, "recoveryCode": a.recovery[0]}).ok(200).text("token"))
		}, []string{
			`Acme: ann done mfa.recover user ann, recoveryCodes "10" "9", userAgent "" "Go-http-client/1.1"`,
			`Acme: ann done session.open session ses, userAgent "" "Go-http-client/1.1"`,
		}},
		{"a remembered browser forgotten", func() {
			by := doorward.Caller{Principal: doorward.Principal{Kind: doorward.ByUser, ID: r.ann.ID, Email: r.ann.Email, TenantID: r.acme.ID}, IP: "192.0.2.1", RequestID: "req_here"}
			_, err := r.Node.DB.Write(r.t.Context(), func(tx *store.Tx) error {
				if _, err := tx.InsertDevice(r.t.Context(), []byte("a browser"), by.ID, 20, time.Time{}); err != nil {
					return err
				}
				return tx.RememberBrowser(r.t.Context(), []byte("a browser"), "", "")
			})
			if err == nil {
				err = r.Node.App.Factors.ForgetBrowser(r.t.Context(), by, "")
			}
			if err != nil {
				r.t.Error(err)
			}
		}, []string{`Acme: ann done session.end user ann, rememberedBrowsers "1" "0"`}},
		{"a reset of factors requested", func() {
			r.ask("POST /api/v2/users/"+r.ann.ID+"/mfa/reset", nil, r.as(r.owner)).ok(202)
			reset = r.noteSecret(r.server.code(r.t, r.ann.Email))
			r.ask("POST /api/v2/users/"+r.owner.ID+"/mfa/reset", nil, r.as(r.owner)).fails(403, "forbidden")
		}, []string{
			`Acme: OWNER done mfa.reset user ann, sessionsEnded "" "2"`,
			`Acme: OWNER refused mfa.reset user OWNER, reason "" "forbidden"`,
		}},
		{"the code of that reset used", func() { r.ask(resetFactorsPath, m{"token": reset, "password": password}).ok(204) }, []string{
			`Acme: ann done mfa.recover user ann, userAgent "" "Go-http-client/1.1"`,
		}},
		{"a reset refused", func() {
			kept := r.enrolTOTP(r.t, r.noteSecret(r.server.token(r.t, r.ann.Email)))
			r.ask("POST /api/v2/users/"+r.ann.ID+"/mfa/reset", nil, r.as(r.owner)).ok(202)
			asked := r.server.login(r.t, r.ann.Email, password).text("challenge")
			strong := r.noteSecret(r.server.send(r.t, secondPath, m{"challenge": asked, "code": kept.code(r.t)}).ok(200).text("token"))
			r.newEvents()
			r.ask("DELETE /api/v2/auth/factors/reset", nil, as(strong)).ok(204)
			r.ask("DELETE /api/v2/auth/factors/reset", nil, as(strong)).ok(204)
			r.ask("DELETE /api/v2/auth/factors/"+kept.id, nil, as(strong)).ok(204)
		}, []string{
			`Acme: ann done mfa.keep user ann`,
			`Acme: ann done mfa.remove user ann, factor "totp" "", userAgent "" "Go-http-client/1.1"`,
		}},
		{"a factor removed", func() {
			r.tokens[r.ann.ID] = r.noteSecret(r.server.token(r.t, r.ann.Email))
			a = r.enrolTOTP(r.t, r.tokens[r.ann.ID])
			r.newEvents()
			r.ask("DELETE /api/v2/auth/factors/"+a.id, nil, r.as(r.ann)).ok(204)
		}, []string{`Acme: ann done mfa.remove user ann, factor "totp" "", userAgent "" "Go-http-client/1.1"`}},
		{"a passkey", func() {
			r.ask(beginPasskeyPath, nil, r.as(r.ann)).ok(200)
			r.addPasskey(r.t, r.tokens[r.ann.ID], key)
		}, []string{`Acme: ann done mfa.enrol user ann, factor "" "passkey", recoveryCodes "" "10", userAgent "" "Go-http-client/1.1"`}},
		{"an unknown passkey", func() {
			begun := r.ask(beginPasskeyLoginPath, nil).ok(200)
			r.ask(finishPasskeyLoginPath, m{"challenge": begun.text("challenge"), "credential": m{"id": "x"}}).fails(401, "invalid_code")
		}, []string{`-: anonymous refused mfa.refuse user -, reason "" "invalid_code", userAgent "" "Go-http-client/1.1"`}},
		{"a login with the passkey", func() { r.tokens[r.ann.ID] = r.noteSecret(r.signInWithPasskey(r.t, key).ok(200).text("token")) }, []string{`Acme: ann done session.open session ses, userAgent "" "Go-http-client/1.1"`}},
		{"a copy of the passkey", func() {
			stolen := key.Copy()
			stolen.Counter--
			r.signInWithPasskey(r.t, stolen).fails(401, "invalid_code")
		}, []string{
			`Acme: anonymous refused mfa.refuse user ann, reason "" "invalid_code", userAgent "" "Go-http-client/1.1"`,
			`Acme: ann done mfa.clone user ann, factor "passkey" "", userAgent "" "Go-http-client/1.1"`,
		}},
	}
}

func (r *recorder) passwordSteps() []step {
	return []step{
		{"a change with a wrong password", func() {
			r.ask(changePath, m{"currentPassword": canary("wrong"), "password": r.noteSecret(canary("bob")), "confirmPassword": canary("bob")}, as(r.token)).ok(422)
		}, []string{
			`Zeta: bob refused session.refuse user bob, reason "" "invalid_credentials"`,
		}},
		{"a password changed", func() {
			r.signInTo(r.bob, password, r.acme)
			r.ask(changePath, m{"currentPassword": password, "password": canary("bob"), "confirmPassword": canary("bob")}, as(r.token)).ok(204)
		}, []string{
			`Acme: bob done session.end user bob, sessionsEnded "" "1", cause "" "password.change"`,
			`Acme: bob done password.change user bob, userAgent "" "Go-http-client/1.1"`,
			`Zeta: bob done password.change user bob, userAgent "" "Go-http-client/1.1"`,
		}},
		{"an account exported", func() {
			r.ask("GET /api/v2/auth/account/export", nil, as(r.token)).ok(200)
		}, []string{
			`Acme: bob done account.export user bob, userAgent "" "Go-http-client/1.1"`,
			`Zeta: bob done account.export user bob, userAgent "" "Go-http-client/1.1"`,
		}},
		{"a reset requested", func() { r.code = r.noteSecret(r.forgot(r.t, r.bob.Email)) }, []string{
			"Acme: anonymous done password.forgot user bob",
		}},
		{"a password reset", func() {
			r.signInTo(r.bob, canary("bob"), r.acme)
			r.signInTo(r.bob, canary("bob"), r.zeta)
			r.reset(r.t, r.code, r.noteSecret(canary("reset"))).ok(204)
		}, []string{
			`Acme: bob done session.end user bob, sessionsEnded "" "1", cause "" "password.reset"`,
			`Acme: bob done password.reset user bob, userAgent "" "Go-http-client/1.1"`,
			`Zeta: bob done password.reset user bob, sessionsEnded "" "2", userAgent "" "Go-http-client/1.1"`,
		}},
		{"an address changed", func() {
			r.token = r.signInTo(r.bob, canary("reset"), r.zeta)
			r.ask(emailPath, m{"email": "robert@acme.example"}, as(r.token)).ok(202)
			r.code = r.noteSecret(r.server.code(r.t, r.bob.Email))
			r.ask(confirmEmailPath, m{"token": r.noteSecret(r.server.code(r.t, "robert@acme.example"))}, as(r.token)).ok(204)
		}, []string{
			`Acme: bob done account.email user bob, requestedEmail "" "robert@acme.example", userAgent "" "Go-http-client/1.1"`,
			`Acme: bob done account.email user bob, email "bob@acme.example" "robert@acme.example"`,
			`Zeta: bob done account.email user bob, requestedEmail "" "robert@acme.example", userAgent "" "Go-http-client/1.1"`,
			`Zeta: bob done account.email user bob, email "bob@acme.example" "robert@acme.example", userAgent "" "Go-http-client/1.1"`,
		}},
		{"the change of address undone", func() {
			r.ask(undoPath, m{"token": r.code}).ok(204)
		}, []string{
			`Acme: bob done account.email user bob, email "robert@acme.example" "bob@acme.example"`,
			`Zeta: bob done account.email user bob, email "robert@acme.example" "bob@acme.example", sessionsEnded "" "1", userAgent "" "Go-http-client/1.1"`,
		}},
		{"a logout", func() {
			r.token = r.noteSecret(r.login(r.t, r.bob.Email, canary("reset")).ok(200).text("token"))
			r.ask("POST /api/v2/auth/logout", nil, as(r.token)).ok(204)
			r.ask("POST /api/v2/auth/logout", nil, as(r.token)).ok(204)
		}, []string{
			`Zeta: bob done session.open session ses, userAgent "" "Go-http-client/1.1"`, // after a new password
			"Zeta: bob done session.end session ses",
		}},
	}
}

func (r *recorder) memberSteps() []step {
	return []step{
		{"role, status and name changed", func() {
			r.token = r.noteSecret(r.login(r.t, r.bob.Email, canary("reset")).ok(200).text("token"))
			r.newEvents()
			r.ask("PATCH /api/v2/users/"+r.bob.ID, m{"role": "VIEWER", "status": "suspended", "name": "Bob"}, r.as(r.ann)).ok(200)
			r.ask("PATCH /api/v2/users/"+r.bob.ID, m{"role": "VIEWER", "status": "suspended", "name": "Bob"}, r.as(r.ann)).ok(200)
		}, []string{
			`Acme: ann done user.role user bob, role "USER" "VIEWER"`,
			`Acme: ann done user.suspend user bob, status "active" "suspended"`,
			`Acme: ann done user.rename user bob, name "" "Bob"`,
		}},
		{"a login of a suspended member", func() {
			r.ask("POST /api/v2/auth/login", m{"email": r.bob.Email, "password": canary("reset"), "tenantId": r.acme.ID}).fails(403, "membership_suspended")
		}, []string{
			`Acme: anonymous refused session.refuse user bob, reason "" "membership_suspended"`,
		}},
		{"a membership resumed", func() {
			r.ask("PATCH /api/v2/users/"+r.bob.ID, m{"status": "active"}, r.as(r.ann)).ok(200)
		}, []string{
			`Acme: ann done user.resume user bob, status "suspended" "active"`,
		}},
	}
}

func (r *recorder) erasureSteps() []step {
	return []step{
		{"an account erased", func() {
			const eve = "eve@acme.example"
			r.newInvitation(eve)
			r.ask("POST /api/v2/auth/complete-registration", m{"token": r.noteSecret(r.server.code(r.t, eve)), "password": password, "confirmPassword": password}).ok(200)
			r.token = r.noteSecret(r.server.token(r.t, eve))
			r.newEvents()
			r.ask(erasePath, m{"confirm": eve}, as(r.token)).ok(204)
		}, []string{
			"-: user done account.erase user usr",
			`Acme: user done account.erase user usr, role "USER" "", sessionsEnded "" "1", blankedInvitation "" "inv"`,
		}},
	}
}

func (r *recorder) ownerSteps() []step {
	return []step{
		{"an OWNER changed by an ADMIN", func() {
			r.ask("PATCH /api/v2/users/"+r.owner.ID, m{"role": "USER"}, r.as(r.ann)).fails(403, "forbidden")
			r.ask("DELETE /api/v2/users/"+r.owner.ID, nil, r.as(r.ann)).fails(403, "forbidden")
		}, []string{
			`Acme: ann refused user.manage user OWNER, reason "" "forbidden", role "OWNER" "USER"`,
			`Acme: ann refused user.remove user OWNER, reason "" "forbidden"`,
		}},
		{"the last OWNER changed", func() {
			r.ask("PATCH /api/v2/users/"+r.owner.ID, m{"role": "USER"}, r.as(r.owner)).fails(409, "last_owner")
			r.ask("DELETE /api/v2/auth/memberships/"+r.acme.ID, nil, r.as(r.owner)).fails(409, "last_owner")
		}, []string{
			`Acme: OWNER refused user.role user OWNER, reason "" "last_owner", role "OWNER" "USER"`,
			`Acme: OWNER refused user.leave user OWNER, reason "" "last_owner"`,
		}},
		{"sign-on offered, and turned off", func() {
			for _, mode := range []string{"optional", "off", "off"} {
				r.ask("PUT /api/v2/sso/policy", m{"mode": mode, "guests": "allowed"}, r.as(r.owner), with("If-Match", "*")).ok(200)
			}
		}, []string{
			`Acme: OWNER done sso.policy tenant Acme, ssoMode "off" "optional"`,
			`Acme: OWNER done sso.policy tenant Acme, ssoMode "optional" "off"`,
		}},
		{"a foreign person changed", func() {
			r.ask("PATCH /api/v2/users/"+r.other.ID, m{"role": "USER"}, r.as(r.owner)).fails(404, "not_found")
		}, nil},
		{"a person signed out", func() {
			r.ask("POST /api/v2/auth/login", m{"email": r.bob.Email, "password": canary("reset"), "tenantId": r.acme.ID}).ok(200)
			r.newEvents()
			r.ask("DELETE /api/v2/users/"+r.bob.ID+"/sessions", nil, r.as(r.ann)).ok(200)
		}, []string{
			`Acme: ann done user.signout user bob, sessionsEnded "" "1"`,
		}},
		{"a person removed", func() { r.ask("DELETE /api/v2/users/"+r.bob.ID, nil, r.as(r.ann)).ok(200) }, []string{
			`Acme: ann done user.remove user bob, email "bob@acme.example" "", name "Bob" "", role "VIEWER" ""`,
		}},
		{"a tenant left", func() {
			r.token = r.noteSecret(r.login(r.t, r.bob.Email, canary("reset")).ok(200).text("token"))
			r.newEvents()
			r.ask("DELETE /api/v2/auth/memberships/"+r.zeta.ID, nil, as(r.token)).ok(204)
		}, []string{
			`Zeta: bob done user.leave user bob, role "VIEWER" "", sessionsEnded "" "2"`,
		}},
	}
}

func (r *recorder) tenantSteps() []step {
	return []step{
		{"settings changed", func() {
			r.ask("PATCH /api/v2/tenant", m{"name": "Acme II", "settings": m{"invitationDays": 3}}, r.as(r.owner)).ok(200)
			r.ask("PATCH /api/v2/tenant", m{"name": "Acme II"}, r.as(r.owner)).ok(200)
		}, []string{
			`Acme: OWNER done tenant.update tenant Acme, name "Acme" "Acme II", invitationDays "30" "3"`,
		}},
		{"a colour and a logo", func() {
			r.ask("PATCH /api/v2/tenant", m{"settings": m{"accent": "#FFD400"}}, r.as(r.ann)).ok(200)
			r.ask("PATCH /api/v2/tenant", m{"settings": m{"accent": "#ffd400"}}, r.as(r.ann)).ok(200)
			for range 2 {
				r.ask("PUT /api/v2/tenant/logo", string(dot), r.as(r.ann), typed("image/png")).ok(200)
			}
			for range 2 {
				r.ask("DELETE /api/v2/tenant/logo", nil, r.as(r.ann)).ok(204)
			}
		}, []string{
			`Acme: ann done tenant.update tenant Acme, accent "" "#ffd400"`,
			`Acme: ann done tenant.update tenant Acme, logo "" "` + dotHash + `"`,
			`Acme: ann done tenant.update tenant Acme, logo "` + dotHash + `" ""`,
		}},
		{"a tenant closed", func() {
			r.ask("DELETE /api/v2/tenant", m{"confirm": "Acme II"}, r.as(r.ann)).fails(403, "forbidden")
			r.ask("DELETE /api/v2/tenant", m{"confirm": "Acme"}, r.as(r.owner)).ok(422)
			r.closeTenant(r.t, r.owner, r.acme.ID, "Acme II")
		}, []string{
			`Acme: ann refused tenant.close tenant Acme, reason "" "forbidden"`,
			`Acme: OWNER done session.open session ses, userAgent "" "Go-http-client/1.1"`,
			`Acme: OWNER done tenant.close tenant Acme, status "active" "closing", sessionsEnded "" "5"`,
		}},
		{"a request in a closing tenant", func() {
			r.token = r.noteSecret(r.server.token(r.t, r.owner.Email))
			if status := r.getStatus(r.t, "/api/v2/users", r.token); status != 403 {
				r.t.Errorf("answered %d while the tenant is closing", status)
			}
		}, []string{
			`Acme: OWNER done session.open session ses, userAgent "" "Go-http-client/1.1"`,
			`Acme: OWNER refused request.refuse endpoint GET /api/v2/users, reason "" "tenant_closing"`,
		}},
		{"a tenant restored", func() { r.ask("POST /api/v2/tenant/restore", nil, as(r.token)).ok(200) }, []string{
			`Acme: OWNER done tenant.restore tenant Acme, status "closing" "active"`,
		}},
		{"the only OWNER of a frozen tenant suspended", func() {
			r.freeze(r.t, r.zeta.ID)
			r.newEvents()
			if _, err := r.Node.App.Users.Suspend(r.t.Context(), doorward.OperatorAtTerminal(), doorward.User{ID: r.other.ID, TenantID: r.zeta.ID}); err != nil {
				r.t.Error(err)
			}
		}, []string{
			`-: operator done tenant.ownerless tenant Zeta`,
			`Zeta: operator done user.suspend user other, status "active" "suspended"`,
		}},
	}
}

// closeTenant signs the person in and closes the tenant, which has this name, without the API.
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

// checkTenantsApart requires that no trail has the id of another tenant or of a
// session there: a tenant must not learn of other memberships.
func (r *recorder) checkTenantsApart() {
	r.t.Helper()
	tenantOf := map[string]string{r.acme.ID: r.acme.ID, r.zeta.ID: r.zeta.ID}
	for _, e := range r.events {
		if e.Action == doorward.SessionOpen {
			tenantOf[e.Target.ID] = e.Target.TenantID
		}
	}
	for _, e := range r.events {
		for _, id := range anyID.FindAllString(fmt.Sprintf("%+v", e), -1) {
			ofInstallation := e.Action == doorward.TenantOwnerless && id == e.Target.ID // the operator learns of it
			if in, known := tenantOf[id]; known && in != e.Target.TenantID && !ofInstallation {
				r.t.Errorf("%s has %s of %s", r.line(e), id, r.name(in))
			}
		}
	}
}

// checkNoSecrets requires that no event has a secret or a text typed by a stranger. Events of
// requests, except erasures, must have the client's address and the request's id.
func (r *recorder) checkNoSecrets() {
	r.t.Helper()
	for _, e := range r.events {
		for _, secret := range r.secrets {
			if strings.Contains(fmt.Sprintf("%+v", e), secret) {
				r.t.Errorf("%+v has %q", e, secret)
			}
		}
		if e.Action != doorward.AccountErase && e.ActorType != doorward.Operator && e.ActorType != doorward.System && (e.IP == "" || e.RequestID == "") {
			r.t.Errorf("%+v has no client address or no request id", e)
		}
	}
}

// checkAllVerbsRecorded requires an event of each verb that isn't a permission, so that a new
// verb needs a step.
func (r *recorder) checkAllVerbsRecorded() {
	r.t.Helper()
	seen := map[doorward.Action]bool{}
	for _, e := range r.events {
		seen[e.Action] = true
	}
	// Operations on a database have their own tests in cmd/doorward/testdata.
	seen[doorward.MasterKeyRotate], seen[doorward.MasterKeyReplace], seen[doorward.SigningKeyRotate] = true, true, true
	seen[doorward.InstallationBackup], seen[doorward.InstallationRestore], seen[doorward.InstallationMove] = true, true, true
	seen[doorward.WebhookFailing], seen[doorward.WebhookDisable] = true, true                                       // tested in app/webhook
	seen[doorward.ConnectionSwitch], seen[doorward.ConnectionTry], seen[doorward.IdentityUnlink] = true, true, true // tested in app/connection
	seen[doorward.DirectoryAlarm], seen[doorward.DirectoryUndo] = true, true                                        // tested in app/directory and app/directoryrun
	seen[doorward.SetupLinkBegin] = true                                                                            // tested in app/setuplink
	seen[doorward.DomainUpdate], seen[doorward.DomainLapse] = true, true                                            // tested in app/domain
	seen[doorward.SSORefuse], seen[doorward.IdentityLink], seen[doorward.UserJoin] = true, true, true               // tested in app/signon
	seen[doorward.SSOConfirm], seen[doorward.SSORevert], seen[doorward.SSOBypass] = true, true, true                // tested in app/demand
	seen[doorward.AccountUnlock], seen[doorward.PasswordLink] = true, true                                          // tested in app/account
	seen[doorward.IncidentSignOut], seen[doorward.IncidentForceReset] = true, true                                  // tested in app/incident
	seen[doorward.QueueRetry], seen[doorward.QueueDrop], seen[doorward.QueuePause] = true, true, true               // tested in app/queue
	for _, verb := range doorward.Verbs() {
		if !verb.Action.IsPermission() && !seen[verb.Action] {
			r.t.Errorf("no step records %s: add one", verb.Action)
		}
	}
}
