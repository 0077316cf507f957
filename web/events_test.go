package web_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/goldentest"
)

// moments describe when an event is recorded. A new verb needs a line.
var moments = map[doorward.Action]string{
	doorward.MFAClone:                "a passkey was used whose signature counter has not increased, and is disabled; the use itself was refused",
	doorward.UserInvite:              "somebody is invited",
	doorward.InvitationResend:        "the mail of an invitation is sent again, by a new token",
	doorward.InvitationRevoke:        "an invitation is withdrawn",
	doorward.InvitationAccept:        "an invitation is accepted, by a new account or one that was there",
	doorward.SessionOpen:             "somebody signs in, or goes to another tenant of the own",
	doorward.SessionRefuse:           "refused: a password was wrong, or right and of no use here, or was turned away by the limits",
	doorward.SessionEnd:              "somebody ends own sessions: by signing out, here or elsewhere, by going to another tenant, or by what was done while in another one",
	doorward.RequestRefuse:           "refused: a known caller was turned away before it was known what was to be done",
	doorward.PasswordChange:          "somebody changes the own password",
	doorward.PasswordForgot:          "a reset was asked for; where there is no account, in the trail of the installation, together for each client network and minute",
	doorward.AccountEmail:            "somebody asked for another address of the account, confirmed it, or undid the change; the last two in the trail of each tenant of the person",
	doorward.AccountErase:            "an account was erased, by its person or the operator, who are not named; in every trail that knows the account, with whose events may be blank",
	doorward.PasswordReset:           "a reset was used",
	doorward.SessionStepUp:           "somebody proves a session again, which goes on with another token",
	doorward.MFAEnrol:                "somebody sets up a second factor, renames one, or makes new recovery codes",
	doorward.MFARemove:               "somebody removes an own second factor",
	doorward.MFAChallenge:            "a second factor is asked for after the password, or before going to another tenant; or somebody begins to prove a session again",
	doorward.MFARefuse:               "refused: a second factor was wrong",
	doorward.MFARecover:              "a recovery code stood in for the second factor; or somebody removes all factors with the code of a mail that an administrator has asked for",
	doorward.MFAReset:                "an administrator lets somebody set up second factors again, or the operator removes them",
	doorward.UserRole:                "a role is changed",
	doorward.UserSuspend:             "a membership is suspended",
	doorward.UserResume:              "a suspended membership is resumed",
	doorward.UserRename:              "an administrator changes a name",
	doorward.UserProfile:             "somebody changes the own name",
	doorward.UserSignOut:             "all sessions of somebody in the tenant are ended",
	doorward.UserRemove:              "a membership is ended",
	doorward.UserLeave:               "somebody leaves the tenant",
	doorward.AuditRead:               "refused: one may not read the trail",
	doorward.UserManage:              "refused: one may not change somebody; what is done has the names `user.role`, `user.suspend` …",
	doorward.UserImport:              "a list of people is imported: once for each, and once for the tenant",
	doorward.TenantCreate:            "a tenant is made",
	doorward.TenantUpdate:            "name or settings of a tenant are changed",
	doorward.TenantFreeze:            "a tenant is frozen",
	doorward.TenantThaw:              "a frozen tenant is thawed",
	doorward.TenantClose:             "a tenant is closed, by its OWNER or the operator",
	doorward.TenantRestore:           "a closed tenant is taken back within its hold",
	doorward.TenantDestroy:           "the data of a closed tenant goes when its hold is over; refused: one may not close it",
	doorward.TenantQuota:             "the operator changes what a tenant may have",
	doorward.TenantExport:            "the people of a tenant are exported",
	doorward.APIKeyManage:            "refused: one may not manage API keys; what is done has the names `apikey.create`, `apikey.update` …",
	doorward.APIKeyCreate:            "an API key is created",
	doorward.APIKeyUpdate:            "an API key is changed: name, permissions, addresses, limit, end, owner or status",
	doorward.APIKeyRotate:            "an API key gets a new secret, or the one before is ended",
	doorward.APIKeyRevoke:            "an API key is ended, also with its owner",
	doorward.APIKeyExpiring:          "an API key ends in 30, 7 or 1 days, and its owner was notified",
	doorward.APIKeyExpire:            "an API key has reached its end",
	doorward.APIKeyRefuse:            "an API key was presented that is not valid, or not from that address; the first at once, repetitions counted by the minute",
	doorward.APIKeyLeak:              "somebody has shown a key that was found, which ends it; of an operator key, in the trail of the installation",
	doorward.KeyCreate:               "an operator key or a service key is created",
	doorward.KeyRevoke:               "an operator key or a service key is revoked; in a tenant's trail: with it invitations that the service has sent",
	doorward.KeyEnable:               "a service key works again that a restore has disabled",
	doorward.SigningKeyRotate:        "assertions are signed with the next key",
	doorward.MasterKeyRotate:         "what is sealed is sealed with another master key",
	doorward.InstallationMaintenance: "the operator pauses changes, or resumes them",
	doorward.AuditLink:               "a link is made at the terminal that opens the operator's page",
	doorward.AuditOpen:               "such a link is opened; refused: one that is not valid",
	doorward.AuditEnd:                "the operator's page is closed, or all of them are ended at the terminal",
	doorward.InstallationBackup:      "a backup of the whole database was completed",
	doorward.InstallationRestore:     "the database was set back to a backup",
	doorward.InstallationMove:        "all was moved to another database",
	doorward.RoleCreate:              "a tenant makes a role of its own",
	doorward.RoleUpdate:              "a role that a tenant has made is changed",
	doorward.RoleDelete:              "a role that a tenant has made is deleted, and replaced where it was in use",
	doorward.PolicyUpdate:            "the policies of a tenant are replaced",
	doorward.PolicyConfirm:           "a version of the policies is confirmed, which would have ended by itself",
	doorward.PolicyRestore:           "an earlier version of the policies holds again",
	doorward.ModelApply:              "the platform's model was replaced",
	doorward.WebhookCreate:           "a webhook is created; of the installation's own, in its trail, like all that follow",
	doorward.WebhookUpdate:           "a webhook is changed, disabled or enabled",
	doorward.WebhookDelete:           "a webhook is deleted",
	doorward.WebhookRotate:           "a webhook gets a new secret",
	doorward.WebhookTest:             "a test was sent to a webhook; no webhook gets this event, and the message has an id of its own",
	doorward.WebhookRetry:            "somebody has a delivery tried again",
	doorward.WebhookReplay:           "somebody has events of the past sent again",
	doorward.WebhookFailing:          "nothing could be delivered to a webhook for an hour, and for a day",
	doorward.WebhookDisable:          "Doorward disables a webhook: it is gone (410), nothing could be delivered for five days, or the database came back from a backup",
}

// meanings describe the fields. A new field needs a line.
var meanings = map[string]string{
	"about":               "what a role is for",
	"accent":              "the colour of the tenant",
	"entitiesChanged":     "entities of the model that are new, gone or changed, the first 50",
	"policiesChanged":     "policies of the model that are new, gone or changed, the first 50",
	"actionsAdded":        "actions that the model has and the one before had not, the first 50",
	"actionsChanged":      "actions that the model grants to other roles or describes in another way, the first 50",
	"actionsRemoved":      "actions that the model before had, the first 50",
	"allowedEmailDomains": "the domains of a tenant's setting, a space between them",
	"allowedIps":          "the addresses that a key may be used from, a space between them; empty: all",
	"cause":               "the action to the account that has ended the sessions, where another trail has it; why an API key is not valid: unknown, revoked, expired, rotated, disabled, owner (no active member) or address",
	"count":               "of how many refusals or requests alike the event is the record; absent for one",
	"quota.people":        "how many people the operator allows; empty: any number",
	"quota.apiKeys":       "how many API keys the operator allows; empty: any number",
	"quota.webhooks":      "how many webhooks the operator allows; empty: any number",
	"quota.eventsPerDay":  "how many events of changes in a day the operator allows; empty: any number",
	"maintenance":         "on while changes are paused",
	"pauseReason":         "why the operator has paused changes",
	"database":            "the kind of the database before and after",
	"destination":         "the file that the backup is in, where it is known",
	"email":               "the address that was invited; of an account, its address",
	"endsAt":              "when the key ends",
	"expiresAt":           "when the invitation or the key ends",
	"factor":              "the kind of a second factor that was set up, or removed or disabled: totp or passkey",
	"factorRenamed":       "the kind of a second factor that has another name; the names are not recorded",
	"recoveryCodes":       "how many recovery codes can be used, before and after",
	"mfa":                 "a setting of the tenant",
	"mfaRoles":            "the roles of a tenant's setting, a space between them; empty: all",
	"mfaGraceDays":        "a setting of the tenant",
	"mfaRememberDays":     "a setting of the tenant",
	"stepUp":              "a setting of the tenant",
	"hint":                "first and last characters of the secret of a key, before and after",
	"invitationDays":      "a setting of the tenant",
	"invitationsRevoked":  "how many invitations the action has ended",
	"invitedBy":           "who answers for the invitation, where the one before may no longer invite",
	"linksEnded":          "how many links in mails the action has ended",
	"blankedInvitation":   "an invitation whose events in this trail may be blank, since it was to the person; its address is blank, too",
	"blankedEvent":        "the creation of the tenant, which named the person and may be blank",
	"may":                 "what a service key may do, a space between the permissions",
	"tenants":             "the tenants that a service key is limited to, a space between them; absent: all",
	"masterKey":           "the ids of the master keys",
	"logo":                "the hash of the tenant's logo before and after",
	"name":                "the name of the target",
	"ownerEmail":          "the address of the first OWNER",
	"ownerId":             "the owner of the key",
	"passwordHashes":      "`exported`, when hashes were in the export",
	"people":              "how many people the import has changed",
	"perSecond":           "how many requests a second a key may send; empty: no limit",
	"permissions":         "what the key may do, a space between them",
	"previousEndsAt":      "when the secret ends that a rotation has replaced",
	"reason":              "why it was refused: a problem's code, see [errors.md](errors.md); why a webhook was disabled: gone, failing or restored",
	"confirmUntil":        "when the version of the policies ends unless it is confirmed",
	"policy":              "the id of the policy that refused",
	"restored":            "the version of the policies whose text holds again",
	"rememberedBrowsers":  "in how many browsers the person isn't asked for the second factor, before and after some are asked again",
	"requestedEmail":      "the address that an account is to have, once it is confirmed",
	"role":                "the role; of what was refused, the one it would have been",
	"sessionAbsolute":     "a setting of the tenant",
	"sessionIdle":         "a setting of the tenant",
	"sessionsEnded":       "how many sessions in this tenant the action has ended; of `installation.restore`, in all",
	"signingKey":          "the id of the key that signs",
	"status":              "the state of the target",
	"policiesOff":         "how many policies of tenants are off, since they name what the model took away",
	"deliveryId":          "the delivery that is tried again",
	"enabled":             "whether the webhook gets events",
	"events":              "the patterns of the events that a webhook gets, a space between them",
	"failingSince":        "the first failure since the last success",
	"include":             "what the bodies of a webhook hold besides, a space between the words",
	"queued":              "how many events are sent again",
	"url":                 "where a webhook goes, without the query",
	"userAgent":           "the browser, where the mail about the action names it",
	"version":             "the number of the model, or of the policies, before and after",
}

// elsewhere are the events about a database, tested by the scripts in
// cmd/doorward/testdata, and what app/model and app/user test.
var elsewhere = []doorward.Event{
	{Action: doorward.MasterKeyRotate, Outcome: doorward.Done, Target: doorward.Object{Type: "installation"}, Changes: []doorward.Change{{Field: "masterKey"}}},
	{Action: doorward.SigningKeyRotate, Outcome: doorward.Done, Target: doorward.Object{Type: "installation"}, Changes: []doorward.Change{{Field: "signingKey"}}},
	{Action: doorward.InstallationBackup, Outcome: doorward.Done, Target: doorward.Object{Type: "installation"}, Changes: []doorward.Change{{Field: "destination"}}},
	{Action: doorward.InstallationRestore, Outcome: doorward.Done, Target: doorward.Object{Type: "installation"}, Changes: []doorward.Change{{Field: "sessionsEnded"}, {Field: "linksEnded"}}},
	{Action: doorward.InstallationMove, Outcome: doorward.Done, Target: doorward.Object{Type: "installation"}, Changes: []doorward.Change{{Field: "database"}}},
	{Action: doorward.AccountErase, Outcome: doorward.Done, Target: doorward.Object{Type: "user"}, Changes: []doorward.Change{{Field: doorward.FieldBlankedEvent}}},
	{Action: doorward.ModelApply, Outcome: doorward.Done, Target: doorward.Object{Type: "model"}, Changes: []doorward.Change{{Field: "policiesOff"}}},
	{Action: doorward.WebhookUpdate, Outcome: doorward.Done, Target: doorward.Object{Type: "webhook"}, Changes: []doorward.Change{{Field: "events"}, {Field: "include"}, {Field: "enabled"}}},
	{Action: doorward.WebhookReplay, Outcome: doorward.Done, Target: doorward.Object{Type: "webhook"}, Changes: []doorward.Change{{Field: "queued"}}},
	{Action: doorward.WebhookRetry, Outcome: doorward.Done, Target: doorward.Object{Type: "webhook"}, Changes: []doorward.Change{{Field: "deliveryId"}}},
	{Action: doorward.WebhookFailing, Outcome: doorward.Done, Target: doorward.Object{Type: "webhook"}, Changes: []doorward.Change{{Field: "url"}, {Field: "failingSince"}}},
	{Action: doorward.WebhookDisable, Outcome: doorward.Done, Target: doorward.Object{Type: "webhook"}, Changes: []doorward.Change{{Field: "url"}, {Field: "reason"}}},
}

// TestGoldenEvents: docs/events.md has a row for each event and each of its fields,
// as recorded by the steps of this package. To rewrite it: go test -run Golden ./web
// -update.
func TestGoldenEvents(t *testing.T) {
	t.Parallel()
	d := start(t, masterKey(t), hasPasskeys())
	h := settle(t, d)
	for _, s := range slices.Concat(h.atTheDoor(), h.withInvitations(), h.withKeys(), h.withAcceptances(), h.withSessions(), h.withFactors(),
		h.withPasswords(), h.withMembers(), h.withErasures(), h.withOwners(), h.withTheTenant(), h.withTheEndOfKeys()) {
		s.do()
	}
	h.withMuchToEnd()
	h.news()
	seen := map[doorward.Action][]doorward.Event{}
	for _, e := range append(h.every, elsewhere...) {
		seen[e.Action] = append(seen[e.Action], e)
	}
	reasonsAreRefusals(t, h.every)
	goldentest.Section(t, "../docs/events.md", "events", eventTable(t, seen))
	goldentest.Section(t, "../docs/events.md", "fields", fieldTable(t, seen))
}

// withMuchToEnd repeats the steps with people who have more sessions and invitations.
func (h *recorder) withMuchToEnd() {
	h.t.Helper()
	much := h.Tenant("Much")
	owner := as(much.Owner.Token())
	pending := "" // the last invitation
	inviting := func(email string) string {
		p := much.Join(email, "ADMIN")
		pending = h.ask("POST /api/v2/auth/invite", m{"email": "by-" + email, "role": "USER"}, as(p.Login())).ok(http.StatusCreated).text("id")
		return p.ID
	}
	h.ask("PATCH /api/v2/users/"+inviting("suspended@much.example"), m{"status": "suspended"}, owner).ok(http.StatusOK)
	h.ask("DELETE /api/v2/users/"+inviting("removed@much.example"), nil, owner).ok(http.StatusOK)
	inviting("leaving@much.example")
	h.ask("DELETE /api/v2/auth/memberships/"+much.ID, nil, as(h.server.token(h.t, "leaving@much.example"))).ok(http.StatusNoContent)
	h.ask("PATCH /api/v2/users/"+inviting("demoted@much.example"), m{"role": "VIEWER"}, owner).ok(http.StatusOK)
	h.Advance(2 * time.Minute) // past the minimum interval for resending
	owner = as(much.Owner.Login())
	h.ask("POST /api/v2/invitations/"+pending+"/resend", nil, owner).ok(http.StatusOK)
	h.ask("PATCH /api/v2/tenant", m{"settings": m{
		"sessionIdleMinutes": 5, "sessionAbsoluteMinutes": 60, "allowedEmailDomains": []string{"much.example"},
		"mfa": "required", "mfaRoles": []string{"VIEWER"}, "mfaGraceDays": 1, "mfaRememberDays": 1, "stepUpMinutes": 5,
	}}, owner).ok(http.StatusOK)
	if err := h.Node.App.Tenants.Export(h.t.Context(), doorward.OperatorAtTerminal(), much.ID, true, io.Discard); err != nil {
		h.t.Fatal(err)
	}
	for range 11 { // one more than the limit
		h.server.token(h.t, "demoted@much.example", with("User-Agent", "another browser"))
	}
	viewer := as(h.server.token(h.t, "demoted@much.example"))
	for range 5 { // one event counts several refusals
		h.ask("GET /api/v2/audit-events", nil, viewer).fails(http.StatusForbidden, "forbidden")
	}
	h.ask(changePath, m{"currentPassword": password, "password": canary("more"), "confirmPassword": canary("more")}, as(h.server.token(h.t, "demoted@much.example"))).ok(http.StatusNoContent)
	h.closeTenant(h.t, much.Owner, much.ID, "Much")
	h.news() // destroying the tenant deletes its trail
	h.Advance(15 * 24 * time.Hour)
	if err := h.Node.App.Sweep(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

// reasonsAreRefusals: the console has messages for codes of these kinds, and its own
// test for them.
func reasonsAreRefusals(t *testing.T, events []doorward.Event) {
	t.Helper()
	seen := 0
	for _, e := range events {
		for _, c := range e.Changes {
			if c.Field != "reason" {
				continue
			}
			seen++
			kind := doorward.Code(c.To).Problem().Kind
			if !slices.Contains([]doorward.Kind{doorward.KindForbidden, doorward.KindUnauthenticated, doorward.KindTooMany}, kind) && c.To != string(doorward.CodeLastOwner) {
				t.Errorf("%s was refused for the reason %q: add codes of this kind to refuses in web/console/words_test.go", e.Action, c.To)
			}
		}
	}
	if seen == 0 {
		t.Error("nothing was refused")
	}
}

func eventTable(t *testing.T, seen map[doorward.Action][]doorward.Event) string {
	t.Helper()
	text := "| Event | Recorded when | Target | Fields |\n|---|---|---|---|\n"
	for _, verb := range doorward.Verbs() {
		events := seen[verb.Action]
		if len(events) == 0 {
			continue
		}
		if moments[verb.Action] == "" {
			t.Errorf("%s: describe in moments in events_test.go when it is recorded", verb.Action)
		}
		if done := slices.DeleteFunc(slices.Clone(events), func(e doorward.Event) bool { return e.Outcome != doorward.Done }); len(done) > 0 {
			events = done // the page describes the fields of refusals next to the table
		}
		targets, fields := map[string]bool{}, map[string]bool{}
		for _, e := range events {
			targets[e.Target.Type] = true
			for _, c := range e.Changes {
				fields["`"+c.Field+"`"] = true
			}
		}
		text += fmt.Sprintf("| `%s` | %s | %s | %s |\n", verb.Action, moments[verb.Action], list(targets), list(fields))
	}
	return text
}

func list(words map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(words)), ", ")
}

func fieldTable(t *testing.T, seen map[doorward.Action][]doorward.Event) string {
	t.Helper()
	named := map[string]bool{}
	for _, events := range seen {
		for _, e := range events {
			for _, c := range e.Changes {
				named[c.Field] = true
			}
		}
	}
	text := "| Field | What it is |\n|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if meanings[name] == "" {
			t.Errorf("%s: describe it in meanings in events_test.go", name)
		}
		text += fmt.Sprintf("| `%s` | %s |\n", name, meanings[name])
	}
	for name := range meanings {
		if !named[name] {
			t.Errorf("no event has the field %s: remove it from meanings in events_test.go, or add a step that records it", name)
		}
	}
	return text
}
