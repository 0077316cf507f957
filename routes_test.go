package doorward_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/goldentest"
	"github.com/doorward/doorward/web/api"
	"github.com/doorward/doorward/web/authzen"
	"github.com/doorward/doorward/web/edge"
	"github.com/doorward/doorward/web/front"
)

// These tests show that each route refuses the requests that it must refuse. derived returns
// the refusals that follow from the route's line in web/api/routes.go (its guard, whether it
// takes a body). refusals lists those of the endpoint itself, at least one for each route.

// refusal is a request that a route refuses.
type refusal struct {
	why    string
	who    string // the caller: a role, "operator", "ended" for a session that has ended, or "" for no credential
	body   string
	query  string
	header [2]string // name and value, besides the usual ones
	status int
	code   doorward.Code
}

const absentToken = `"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"`

// refusals has the refusals of each route. A new route needs a line here.
var refusals = map[string][]refusal{
	"POST /api/v2/auth/invite": {
		{why: "a role above one's own", who: "ADMIN", body: `{"email":"x@acme.example","role":"OWNER"}`, status: 403, code: doorward.CodeForbidden},
		{why: "a member", who: "OWNER", body: `{"email":"viewer@acme.example","role":"USER"}`, status: 409, code: doorward.CodeAlreadyMember},
		{why: "an invalid address", who: "OWNER", body: `{"email":"x","role":"USER"}`, status: 422, code: doorward.CodeValidationFailed},
	},
	"POST /api/v2/auth/complete-registration": {
		{why: "no such token", body: `{"token":` + absentToken + `,"password":"x","confirmPassword":"x"}`, status: 404, code: doorward.CodeInvitationNotFound},
	},
	"POST /api/v2/auth/accept-invitation": {
		{why: "no proof", body: `{"token":` + absentToken + `}`, status: 401, code: doorward.CodeUnauthenticated},
		{why: "no such token", who: "USER", body: `{"token":` + absentToken + `}`, status: 404, code: doorward.CodeInvitationNotFound},
	},
	"POST /api/v2/auth/login": {
		{why: "a wrong password", body: `{"email":"owner@acme.example","password":"x"}`, status: 401, code: doorward.CodeInvalidCredentials},
		{why: "no password", body: `{"email":"owner@acme.example"}`, status: 422, code: doorward.CodeValidationFailed},
	},
	"POST /api/v2/auth/login/second": {
		{why: "no such challenge", body: `{"challenge":` + absentToken + `,"code":"123456"}`, status: 410, code: doorward.CodeChallengeOver},
		{why: "no answer", body: `{"challenge":` + absentToken + `}`, status: 422, code: doorward.CodeValidationFailed},
		{why: "two answers", body: `{"challenge":` + absentToken + `,"code":"123456","recoveryCode":"x"}`, status: 422, code: doorward.CodeValidationFailed},
	},
	"POST /api/v2/auth/step-up/begin": {{why: "not signed in", status: 401, code: doorward.CodeUnauthenticated}},
	"POST /api/v2/auth/step-up/finish": {
		{why: "no such challenge", who: "USER", body: `{"challenge":` + absentToken + `,"password":"x"}`, status: 410, code: doorward.CodeChallengeOver},
		{why: "no answer", who: "USER", body: `{"challenge":` + absentToken + `}`, status: 422, code: doorward.CodeValidationFailed},
		{why: "two answers", who: "USER", body: `{"challenge":` + absentToken + `,"password":"x","code":"123456"}`, status: 422, code: doorward.CodeValidationFailed},
	},
	"GET /api/v2/auth/factors": {
		{why: "an invalid key", header: [2]string{"Authorization", "Bearer dwo_x"}, status: 401, code: doorward.CodeUnauthenticated},
	},
	"POST /api/v2/auth/factors/totp": {
		{why: "not signed in", body: `{}`, status: 401, code: doorward.CodeUnauthenticated},
		{why: "no such challenge", body: `{"challenge":` + absentToken + `}`, status: 410, code: doorward.CodeChallengeOver},
	},
	"POST /api/v2/auth/factors/totp/confirm": {
		{why: "not signed in", body: `{"id":"mfa_x","code":"123456"}`, status: 401, code: doorward.CodeUnauthenticated},
		{why: "no such factor", who: "USER", body: `{"id":"mfa_x","code":"123456"}`, status: 404, code: doorward.CodeNotFound},
		{why: "no such challenge", body: `{"id":"mfa_x","code":"123456","challenge":` + absentToken + `}`, status: 410, code: doorward.CodeChallengeOver},
	},
	"POST /api/v2/auth/passkey/begin": {
		{why: "a frame of another site", header: [2]string{"Sec-Fetch-Site", "same-site"}, status: 403, code: doorward.CodeCrossOrigin},
	},
	"POST /api/v2/auth/passkey/finish": {
		{why: "no such challenge", body: `{"challenge":` + absentToken + `,"credential":{"id":"x"}}`, status: 410, code: doorward.CodeChallengeOver},
		{why: "no answer", body: `{"challenge":` + absentToken + `}`, status: 422, code: doorward.CodeValidationFailed},
	},
	"POST /api/v2/auth/factors/passkey/begin": {
		{why: "not signed in", body: `{}`, status: 401, code: doorward.CodeUnauthenticated},
		{why: "no such challenge", body: `{"challenge":` + absentToken + `}`, status: 410, code: doorward.CodeChallengeOver},
	},
	"POST /api/v2/auth/factors/passkey/finish": {
		{why: "no such challenge", body: `{"challenge":` + absentToken + `,"credential":{"id":"x"}}`, status: 410, code: doorward.CodeChallengeOver},
		{why: "no such challenge in a session", who: "USER", body: `{"challenge":` + absentToken + `,"credential":{"id":"x"}}`, status: 410, code: doorward.CodeChallengeOver},
		{why: "no answer", who: "USER", body: `{"challenge":` + absentToken + `}`, status: 422, code: doorward.CodeValidationFailed},
	},
	"POST /api/v2/auth/factors/recovery": {{why: "no factor", who: "USER", status: 404, code: doorward.CodeNotFound}},
	"POST /api/v2/auth/factors/reset": {
		{why: "no such token", body: `{"token":` + absentToken + `,"password":"x"}`, status: 410, code: doorward.CodeChallengeOver},
	},
	"PATCH /api/v2/auth/factors/{id}":  {{why: "no factor", who: "USER", body: `{"name":"x"}`, status: 404, code: doorward.CodeNotFound}},
	"DELETE /api/v2/auth/factors/{id}": {{why: "no factor", who: "USER", status: 404, code: doorward.CodeNotFound}},
	"POST /api/v2/users/{id}/mfa/reset": {
		{why: "no such user", who: "OWNER", status: 404, code: doorward.CodeNotFound},
		{why: "an unknown parameter", who: "OWNER", query: "dryRun=true", status: 400, code: doorward.CodeInvalidQuery},
	},
	"POST /api/v2/auth/logout": {
		{why: "a frame of another site", header: [2]string{"Sec-Fetch-Site", "same-site"}, status: 403, code: doorward.CodeCrossOrigin},
	},
	"GET /api/v2/auth/session": {
		{why: "an invalid key", header: [2]string{"Authorization", "Bearer dwo_x"}, status: 401, code: doorward.CodeUnauthenticated},
	},
	"GET /api/v2/auth/memberships": {
		{why: "an invalid key", header: [2]string{"Authorization", "Bearer dwo_x"}, status: 401, code: doorward.CodeUnauthenticated},
	},
	"DELETE /api/v2/auth/memberships/{tenantId}": {
		{why: "a tenant that one isn't in", who: "OWNER", status: 404, code: doorward.CodeNotFound},
	},
	"POST /api/v2/auth/switch-tenant": {
		{why: "a tenant that one isn't in", who: "OWNER", body: `{"tenantId":"tnt_absent"}`, status: 404, code: doorward.CodeNotFound},
	},
	"GET /api/v2/sessions": {
		{why: "an invalid key", header: [2]string{"Authorization", "Bearer dwo_x"}, status: 401, code: doorward.CodeUnauthenticated},
	},
	"DELETE /api/v2/sessions": {
		{why: "an invalid key", header: [2]string{"Authorization", "Bearer dwo_x"}, status: 401, code: doorward.CodeUnauthenticated},
	},
	"DELETE /api/v2/sessions/{id}": {
		{why: "no such session", who: "OWNER", status: 404, code: doorward.CodeNotFound},
	},
	"GET /api/v2/tenant": {
		{why: "an invalid key", header: [2]string{"Authorization", "Bearer dwo_x"}, status: 401, code: doorward.CodeUnauthenticated},
	},
	"PATCH /api/v2/tenant": {
		{why: "a limit laxer than the installation's", who: "ADMIN", body: `{"settings":{"sessionIdleMinutes":61}}`, status: 422, code: doorward.CodeValidationFailed},
		{why: "another version", who: "ADMIN", body: `{"name":"Acme"}`, header: [2]string{"If-Match", `"x"`}, status: 412, code: doorward.CodePreconditionFailed},
	},
	"PUT /api/v2/tenant/logo": {
		{why: "no image", who: "ADMIN", body: "x", header: [2]string{"Content-Type", "image/png"}, status: 422, code: doorward.CodeLogoRefused},
		{why: "an SVG", who: "ADMIN", body: "<svg/>", header: [2]string{"Content-Type", "image/svg+xml"}, status: 415, code: doorward.CodeUnsupportedMediaType},
	},
	"DELETE /api/v2/tenant/logo": {
		{why: "an invalid key", header: [2]string{"Authorization", "Bearer dwo_x"}, status: 401, code: doorward.CodeUnauthenticated},
	},
	"DELETE /api/v2/tenant": {
		{why: "another name", who: "OWNER", body: `{"confirm":"acme"}`, status: 422, code: doorward.CodeValidationFailed},
	},
	"POST /api/v2/tenant/restore": {
		{why: "nothing to restore", who: "OWNER", status: 409, code: doorward.CodeTenantNotClosing},
	},
	"GET /api/v2/users":      {{why: "no such role", who: "VIEWER", query: "role=user", status: 422, code: doorward.CodeValidationFailed}},
	"GET /api/v2/users/{id}": {{why: "no such user", who: "VIEWER", status: 404, code: doorward.CodeNotFound}},
	"PATCH /api/v2/users/{id}": {
		{why: "no such user", who: "OWNER", body: `{"name":"x"}`, status: 404, code: doorward.CodeNotFound},
	},
	"DELETE /api/v2/users/{id}":                {{why: "no such user", who: "OWNER", status: 404, code: doorward.CodeNotFound}},
	"DELETE /api/v2/users/{id}/sessions":       {{why: "no such user", who: "OWNER", status: 404, code: doorward.CodeNotFound}},
	"GET /api/v2/users/{id}/sessions":          {{why: "no such user", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"DELETE /api/v2/users/{id}/sessions/{sid}": {{why: "no such user", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"POST /api/v2/users/bulk":                  {{why: "nobody to change", who: "ADMIN", body: `{"ids":[]}`, status: 422, code: doorward.CodeValidationFailed}},
	"POST /api/v2/invitations/resend":          {{why: "no ids", who: "ADMIN", body: `{"ids":[]}`, status: 422, code: doorward.CodeValidationFailed}},
	"POST /api/v2/invitations/revoke":          {{why: "no ids", who: "ADMIN", body: `{"ids":[]}`, status: 422, code: doorward.CodeValidationFailed}},
	"GET /api/v2/invitations": {
		{why: "no such state", who: "ADMIN", query: "status=pending", status: 422, code: doorward.CodeValidationFailed},
		{why: "an invalid cursor", who: "ADMIN", query: "cursor=x", status: 400, code: doorward.CodeInvalidCursor},
	},
	"GET /api/v2/invitations/{id}":         {{why: "no invitation", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"POST /api/v2/invitations/{id}/resend": {{why: "no invitation", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"DELETE /api/v2/invitations/{id}":      {{why: "no invitation", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"POST /api/v2/auth/invite/bulk": {
		{why: "nobody to invite", who: "ADMIN", body: `{"invitations":[]}`, status: 422, code: doorward.CodeValidationFailed},
		{why: "a row of another form", who: "ADMIN", body: `{"invitations":[{"email":1}]}`, status: 400, code: doorward.CodeInvalidBody},
	},
	"GET /api/v2/api-keys":                        {{why: "no such status", who: "ADMIN", query: "status=ACTIVE", status: 422, code: doorward.CodeValidationFailed}},
	"GET /api/v2/api-keys/{id}":                   {{why: "no key", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"PATCH /api/v2/api-keys/{id}":                 {{why: "no key", who: "ADMIN", body: `{"name":"x"}`, status: 404, code: doorward.CodeNotFound}},
	"DELETE /api/v2/api-keys/{id}":                {{why: "no key", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"POST /api/v2/api-keys/{id}/rotate":           {{why: "no key", who: "ADMIN", body: `{}`, status: 404, code: doorward.CodeNotFound}},
	"DELETE /api/v2/api-keys/{id}/previous":       {{why: "no key", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"GET /api/v2/webhooks":                        {{why: "a limit above 200", who: "ADMIN", query: "limit=201", status: 422, code: doorward.CodeValidationFailed}},
	"POST /api/v2/webhooks":                       {{why: "an internal address", who: "ADMIN", body: `{"url":"https://10.0.0.1/","events":["*"]}`, status: 422, code: doorward.CodeValidationFailed}},
	"GET /api/v2/webhooks/{id}":                   {{why: "no webhook", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"PATCH /api/v2/webhooks/{id}":                 {{why: "no webhook", who: "ADMIN", body: `{"about":"x"}`, status: 404, code: doorward.CodeNotFound}},
	"DELETE /api/v2/webhooks/{id}":                {{why: "no webhook", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"POST /api/v2/webhooks/{id}/rotate-secret":    {{why: "no webhook", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"POST /api/v2/webhooks/{id}/test":             {{why: "no webhook", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"GET /api/v2/webhooks/{id}/deliveries":        {{why: "no webhook", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"POST /api/v2/webhooks/deliveries/{id}/retry": {{why: "no delivery", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"POST /api/v2/webhooks/{id}/replay":           {{why: "no webhook", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"GET /api/v2/roles":                           {{why: "an unknown parameter", who: "ADMIN", query: "foo=1", status: 400, code: doorward.CodeInvalidQuery}},
	"POST /api/v2/roles":                          {{why: "a permission that the caller lacks", who: "ADMIN", body: `{"name":"PAYER","permissions":["billing.read"]}`, status: 403, code: doorward.CodeForbidden}},
	"GET /api/v2/roles/{id}":                      {{why: "no role", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"PATCH /api/v2/roles/{id}":                    {{why: "no role", who: "ADMIN", body: `{"about":"x"}`, status: 404, code: doorward.CodeNotFound}},
	"DELETE /api/v2/roles/{id}":                   {{why: "no role", who: "ADMIN", status: 404, code: doorward.CodeNotFound}},
	"POST /api/v2/api-keys": {
		{why: "what no key may do", who: "OWNER", body: `{"name":"x","permissions":["tenant.destroy"]}`, status: 422, code: doorward.CodeValidationFailed},
		{why: "a role above one's own", who: "ADMIN", body: `{"name":"x","permissions":["message.read"],"role":"OWNER"}`, status: 403, code: doorward.CodeForbidden},
	},
	"GET /api/v2/auth/key":         {{why: "a session", who: "OWNER", status: 403, code: doorward.CodeForbidden}},
	"POST /api/v2/auth/report-key": {{why: "no key", body: `{"key":"dwk_x"}`, status: 422, code: doorward.CodeValidationFailed}},
	"POST /api/v2/tenants":         {{why: "no name", who: "operator", body: `{"ownerEmail":"x@x.example"}`, status: 422, code: doorward.CodeValidationFailed}},
	"GET /api/v2/tenants":          {{why: "a limit above 200", who: "operator", query: "limit=201", status: 422, code: doorward.CodeValidationFailed}},
	"GET /api/v2/tenants/{id}":     {{why: "no tenant", who: "operator", status: 404, code: doorward.CodeNotFound}},
	"PATCH /api/v2/tenants/{id}":   {{why: "no tenant", who: "operator", body: `{"status":"frozen"}`, status: 404, code: doorward.CodeNotFound}},
	"GET /api/v2/model": {
		{why: "an invalid key", header: [2]string{"Authorization", "Bearer dwo_x"}, status: 401, code: doorward.CodeUnauthenticated},
	},
	"GET /api/v2/policy": {
		{why: "an invalid key", header: [2]string{"Authorization", "Bearer dwo_x"}, status: 401, code: doorward.CodeUnauthenticated},
	},
	"GET /api/v2/policy/schema": {
		{why: "an invalid key", header: [2]string{"Authorization", "Bearer dwo_x"}, status: 401, code: doorward.CodeUnauthenticated},
	},
	"GET /api/v2/policy/versions": {
		{why: "an invalid key", header: [2]string{"Authorization", "Bearer dwo_x"}, status: 401, code: doorward.CodeUnauthenticated},
	},
	"PUT /api/v2/policy": {
		{why: "no If-Match", who: "OWNER", body: `{"text":""}`, status: 428, code: doorward.CodePreconditionRequired},
		{why: "another version", who: "OWNER", body: `{"text":""}`, header: [2]string{"If-Match", `"7"`}, status: 412, code: doorward.CodePreconditionFailed},
		{why: "a policy that permits", who: "OWNER", body: `{"text":"@id(\"a\") permit(principal, action, resource);"}`, header: [2]string{"If-Match", "*"}, status: 422, code: doorward.CodeValidationFailed},
	},
	"POST /api/v2/access/explain": {
		{why: "nobody named", who: "OWNER", body: `{"action":"message.send"}`, status: 422, code: doorward.CodeValidationFailed},
		{why: "no such user", who: "OWNER", body: `{"userId":"usr_x","action":"message.send"}`, status: 404, code: doorward.CodeNotFound},
	},
	"POST /api/v2/policy/plan": {
		{why: "a fault in the text", who: "OWNER", body: `{"text":"forbid("}`, status: 422, code: doorward.CodeValidationFailed},
		{why: "too many hours", who: "OWNER", body: `{"text":"","hours":169}`, status: 422, code: doorward.CodeValidationFailed},
	},
	"POST /api/v2/policy/confirm": {
		{why: "nothing to confirm", who: "OWNER", status: 404, code: doorward.CodeNotFound},
	},
	"POST /api/v2/policy/versions/{version}/restore": {
		{why: "no such version", who: "OWNER", status: 404, code: doorward.CodeNotFound},
	},
	"PUT /api/v2/model": {
		{why: "no If-Match", who: "operator", body: `{"text":"actions: {}"}`, status: 428, code: doorward.CodePreconditionRequired},
		{why: "another version", who: "operator", body: `{"text":"actions: {}"}`, header: [2]string{"If-Match", `"7"`}, status: 412, code: doorward.CodePreconditionFailed},
		{why: "an action without roles", who: "operator", body: `{"text":"actions: {a: {}}"}`, header: [2]string{"If-Match", "*"}, status: 422, code: doorward.CodeValidationFailed},
	},
	"GET /api/v2/events": {
		{why: "a position that no event has", who: "OWNER", query: "after=9999", status: 410, code: doorward.CodeEventsGone},
	},
	"GET /api/v2/installation/audit-events": {{why: "a limit above 200", who: "operator", query: "limit=201", status: 422, code: doorward.CodeValidationFailed}},
	"GET /api/v2/audit-events": {
		{why: "an invalid key", header: [2]string{"Authorization", "Bearer dwo_x"}, status: 401, code: doorward.CodeUnauthenticated},
	},
	"POST /api/v2/auth/forgot-password": {
		{why: "an invalid address", body: `{"email":"x"}`, status: 422, code: doorward.CodeValidationFailed},
	},
	"POST /api/v2/auth/reset-password": {
		{why: "no such token", body: `{"token":` + absentToken + `,"password":"x","confirmPassword":"x"}`, status: 404, code: doorward.CodeResetNotFound},
	},
	"GET /api/v2/auth/account/export": {
		{why: "not signed in", status: 401, code: doorward.CodeUnauthenticated},
	},
	"POST /api/v2/auth/change-email": {
		{why: "an invalid address", who: "USER", body: `{"email":"x"}`, status: 422, code: doorward.CodeValidationFailed},
	},
	"DELETE /api/v2/auth/account": {
		{why: "another address", who: "USER", body: `{"confirm":"x@acme.example"}`, status: 422, code: doorward.CodeValidationFailed},
	},
	"POST /api/v2/auth/change-email/confirm": {
		{why: "no such token", body: `{"token":` + absentToken + `}`, status: 404, code: doorward.CodeEmailChangeNotFound},
	},
	"POST /api/v2/auth/undo-email": {
		{why: "no such token", body: `{"token":` + absentToken + `}`, status: 404, code: doorward.CodeEmailChangeNotFound},
	},
	"POST /api/v2/auth/change-password": {
		{
			why: "a wrong password", who: "USER", status: 422, code: doorward.CodeValidationFailed,
			body: `{"currentPassword":"x","password":"three old paper boats","confirmPassword":"three old paper boats"}`,
		},
	},
}

func pattern(r front.Route) string { return r.Method + " " + r.Path }

// derived returns the refusals that follow from a route's line in the table.
func derived(r front.Route) []refusal {
	var all []refusal
	add := func(why, who, body string, status int, code doorward.Code) {
		all = append(all, refusal{why: why, who: who, body: body, status: status, code: code})
	}
	caller := ""
	if guard := r.Guard.Name(); guard != front.Public().Name() && guard != front.Optional().Name() {
		add("not signed in", "", "{}", 401, doorward.CodeUnauthenticated)
		add("a session that is over", "ended", "{}", 401, doorward.CodeUnauthenticated)
		caller = "OWNER"
		if guard == front.OperatorOnly().Name() {
			caller = "operator"
		}
		for _, who := range refusedCallers(guard) {
			if who == "operator" && r.Guard.OfInstallation() {
				continue
			}
			add("not allowed", who, "{}", 403, doorward.CodeForbidden)
		}
	}
	if r.Method != http.MethodGet {
		all = append(all, refusal{why: "another origin", header: [2]string{"Origin", "https://evil.example"}, status: 403, code: doorward.CodeCrossOrigin})
	}
	if len(r.Endpoint.Media) > 0 {
		add("a body over the limit", caller, strings.Repeat(" ", doorward.MaxLogoSent+1), 413, doorward.CodeBodyTooLarge)
		add("JSON", caller, "{}", 415, doorward.CodeUnsupportedMediaType)
	}
	if r.Endpoint.In != nil {
		add("half a body", caller, "{", 400, doorward.CodeInvalidBody)
		add("an unknown name", caller, `{"unknown":1}`, 400, doorward.CodeInvalidBody)
		add("a list", caller, `[]`, 400, doorward.CodeInvalidBody)
		add("a body over the limit", caller, strings.Repeat(" ", cmp.Or(r.Endpoint.MaxBody, front.MaxBody)+1), 413, doorward.CodeBodyTooLarge)
		all = append(all, refusal{why: "another media type", who: caller, body: "{}", header: [2]string{"Content-Type", "text/plain"}, status: 415, code: doorward.CodeUnsupportedMediaType})
	}
	return all
}

// refusedCallers returns the callers with a credential that a guard refuses.
func refusedCallers(guard string) []string {
	if guard == front.OperatorOnly().Name() {
		return []string{"VIEWER", "USER", "ADMIN", "OWNER"}
	}
	all := []string{"operator"}
	for _, role := range doorward.Roles {
		if guard != front.SignedIn().Name() && !slices.Contains(doorward.User{Role: role}.Permissions(), doorward.Action(guard)) {
			all = append(all, string(role))
		}
	}
	return all
}

// untested returns a line for each route without an entry in the table, and for each
// entry without a route.
func untested(routes []front.Route, entries map[string][]refusal) (all []string) {
	have := map[string]bool{}
	for _, r := range routes {
		have[pattern(r)] = true
		if len(entries[pattern(r)]) == 0 {
			all = append(all, pattern(r)+": no refusal is tested: add one to refusals in routes_test.go")
		}
	}
	for p := range entries {
		if !have[p] {
			all = append(all, p+": no such route: take it out of refusals in routes_test.go")
		}
	}
	return all
}

func TestEachRouteHasARefusal(t *testing.T) {
	for _, fault := range untested(api.Routes(nil), refusals) {
		t.Error(fault)
	}
}

func TestRoutesWithoutARefusalAreNoticed(t *testing.T) {
	routes := api.Routes(nil)
	planted := front.On("POST /api/v2/planted", front.Public(), front.Endpoint{}, front.Doc{})
	got := append(untested(append(routes, planted), refusals), untested(routes[1:], refusals)...)
	if len(got) != 2 || !strings.HasPrefix(got[0], "POST /api/v2/planted: ") || !strings.HasPrefix(got[1], pattern(routes[0])+": ") {
		t.Errorf("a route without an entry and an entry without a route give %q", got)
	}
}

// withoutKey lists the POST routes that require a credential and take no Idempotency-Key, since
// repeating their requests does no harm.
var withoutKey = []string{
	"POST /access/v1/evaluation",
	"POST /access/v1/evaluations",
	"POST /access/v1/search/action",
	"POST /access/v1/search/resource",
	"POST /access/v1/search/subject",
	"POST /api/v2/access/introspect",
	"POST /api/v2/access/explain",
	"POST /api/v2/auth/change-email", // a newer request takes the place of the one before
	"POST /api/v2/auth/change-password",
	"POST /api/v2/auth/token",         // signs an assertion, stores nothing
	"POST /api/v2/auth/switch-tenant", // opens a session, as a login does
	"POST /api/v2/auth/step-up/begin", // one more challenge does no harm
	"POST /api/v2/auth/step-up/finish",
	"POST /api/v2/auth/factors/recovery", // replaces the previous codes
	"POST /api/v2/users/{id}/mfa/reset",  // mails another code for the same reset
	"POST /api/v2/users/bulk",            // a repetition changes nothing more
	"POST /api/v2/invitations/resend",    // a minute passes between two mails
	"POST /api/v2/invitations/revoke",
	"POST /api/v2/tenant/restore",
	"POST /api/v2/webhooks/{id}/test",
	"POST /api/v2/webhooks/deliveries/{id}/retry", // receivers recognise a repetition by its id
	"POST /api/v2/webhooks/{id}/replay",
	"POST /api/v2/policy/confirm",
	"POST /api/v2/policy/plan",
	"POST /api/v2/policy/versions/{version}/restore", // a version that is in force already makes no new one
}

// keyFaults returns a line for each route that should take an Idempotency-Key and doesn't, or
// takes one and shouldn't. A route should if it is a POST, requires a credential, and isn't in
// withoutKey.
func keyFaults(routes []front.Route) (all []string) {
	for _, r := range routes {
		guard := r.Guard.Name()
		open := guard == front.Public().Name() || guard == front.Optional().Name()
		if creates := r.Method == http.MethodPost && !open && !slices.Contains(withoutKey, pattern(r)); creates != r.Endpoint.Creates {
			all = append(all, fmt.Sprintf("%s takes an Idempotency-Key: %v, want %v: use front.Create for what makes something, or name it in withoutKey", pattern(r), r.Endpoint.Creates, creates))
		}
	}
	return all
}

func TestEachCreationIsRepeatable(t *testing.T) {
	routes := slices.Concat(api.Routes(nil), edge.Routes(nil), authzen.Routes(nil))
	for _, fault := range keyFaults(routes) {
		t.Error(fault)
	}
	none := func(context.Context, *front.Call, front.None) (front.None, error) { return front.None{}, nil }
	view := func(_ *front.Call, made front.None) front.None { return made }
	planted := []front.Route{
		front.On("POST /api/v2/planted", front.SignedIn(), front.JSON(http.StatusCreated, none), front.Doc{}),
		front.On("POST /api/v2/planted", front.Public(), front.Create(http.StatusCreated, none, view), front.Doc{}),
	}
	if got := keyFaults(planted); len(got) != 2 {
		t.Errorf("of two wrong routes these are noticed: %q", got)
	}
}

func TestEachRouteRefuses(t *testing.T) {
	server := doorwardtest.Start(t)
	acme := server.Tenant("Acme")
	credentials := map[string]string{"OWNER": "JSESSIONID=" + acme.Owner.Token(), "operator": operatorKey(t, server)}
	for _, role := range []string{"ADMIN", "USER", "VIEWER"} {
		credentials[role] = "JSESSIONID=" + acme.Join(strings.ToLower(role)+"@acme.example", role).Token()
	}
	credentials["ended"] = "JSESSIONID=" + acme.Join("gone@acme.example", "OWNER").Token()
	send(t, server, "POST", "/api/v2/auth/logout", refusal{who: "ended"}, credentials)
	for _, r := range api.Routes(nil) {
		for _, want := range append(derived(r), refusals[pattern(r)]...) {
			t.Run(pattern(r)+" "+want.why+" "+want.who, func(t *testing.T) {
				path := strings.NewReplacer("{tenantId}", "tnt_absent", "{id}", absentID(r.Path)).Replace(r.Path)
				status, body := send(t, server, r.Method, path, want, credentials)
				if status != want.status || !strings.Contains(body, fmt.Sprintf("%q:%q", "code", want.code)) {
					t.Errorf("answered %d %s\nwant %d %s", status, body, want.status, want.code)
				}
			})
		}
	}
}

// absentID returns an id of the kind that {id} stands for in the path, of an object that
// doesn't exist.
func absentID(path string) string {
	for part, prefix := range map[string]string{
		"/sessions/{id}": doorward.PrefixSession, "/users/{id}": doorward.PrefixUser,
		"/invitations/{id}": doorward.PrefixInvitation, "/tenants/{id}": doorward.PrefixTenant,
		"/api-keys/{id}": doorward.PrefixKey,
		"/webhooks/{id}": doorward.PrefixWebhook, "/deliveries/{id}": doorward.PrefixDelivery,
		"/roles/{id}": doorward.PrefixRole, "/factors/{id}": doorward.PrefixFactor,
	} {
		if strings.Contains(path, part) {
			return prefix + "absent"
		}
	}
	return ""
}

func operatorKey(t *testing.T, server *doorwardtest.Server) string {
	t.Helper()
	key, err := server.Node.App.Keys.CreateOperator(t.Context(), doorward.OperatorAtTerminal(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return "Bearer " + key
}

// send sends the refusal's request with the credential of its caller.
func send(t *testing.T, server *doorwardtest.Server, method, path string, r refusal, credentials map[string]string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path+"?"+r.query, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	switch {
	case r.who == "operator":
		req.Header.Set("Authorization", credentials[r.who])
	case r.who != "":
		req.Header.Set("Cookie", credentials[r.who])
	}
	if r.header[0] != "" {
		req.Header.Set(r.header[0], r.header[1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, text.String()
}

// callers are the columns of who-may-what.txt.
var callers = []struct {
	name string
	by   doorward.Caller
}{
	{"anonymous", doorward.Caller{Principal: doorward.Principal{Kind: doorward.Anonymous}}},
	{"VIEWER", member(doorward.RoleViewer, doorward.UserActive)},
	{"USER", member(doorward.RoleUser, doorward.UserActive)},
	{"ADMIN", member(doorward.RoleAdmin, doorward.UserActive)},
	{"OWNER", member(doorward.RoleOwner, doorward.UserActive)},
	{"suspended", member(doorward.RoleOwner, doorward.UserSuspended)},
	{"operator", doorward.OperatorAtTerminal()},
	{"service", service()},
}

// service returns a service with every permission, in the tenant tnt_own.
func service() doorward.Caller {
	key := doorward.ServiceKey{ID: "key_own", May: doorward.ServicePermissions()}
	return doorward.Caller{Principal: doorward.PrincipalOfService(key).InTenant(doorward.Tenant{ID: "tnt_own", Status: doorward.TenantActive})}
}

func member(role doorward.Role, status doorward.UserStatus) doorward.Caller {
	return doorward.Caller{}.As(doorward.User{ID: "usr_own", TenantID: "tnt_own", Role: role, Status: status})
}

const legend = `# Who may do what, as access.Can has it. Written by
#   go test -run TestWhoMayWhat -update .
#
# own     an object of the caller's tenant that holds no role
# higher  one that holds, or is given, the role above the caller's; the role
#         VIEWER for callers without one, and nothing for an OWNER
# other   an object of another tenant
#
# yes, or the status of the refusal: 401 no credential, 403 refused, 404 as if
# it weren't there. "suspended" is a suspended OWNER. Actions that everybody may
# do need a proof instead: a password, a code from a mail, the session itself.

`

func TestWhoMayWhat(t *testing.T) {
	var out strings.Builder
	out.WriteString(legend)
	row(&out, "action", "object", func(name string, _ doorward.Caller) string { return name })
	for _, verb := range doorward.Verbs() {
		for _, kind := range []string{"own", "higher", "other"} {
			row(&out, string(verb.Action), kind, func(_ string, by doorward.Caller) string {
				on, exists := object(verb.Action, kind, by.Role)
				if !exists {
					return "-"
				}
				return verdict(t, by, verb.Action, on)
			})
		}
	}
	out.WriteString("\n# People by the role that they hold, and by the role that they are given.\n\n")
	for _, verb := range doorward.Verbs() {
		for _, role := range slices.Backward(doorward.Roles) {
			if verb.Permission == doorward.UserManage {
				decisionRow(t, &out, verb.Action, "is "+string(role), doorward.Object{TenantID: "tnt_own", Held: role})
			}
			if grants(verb.Action) {
				decisionRow(t, &out, verb.Action, "to "+string(role), doorward.Object{TenantID: "tnt_own", Granted: role})
			}
		}
	}
	out.WriteString(whoMayWhatWithOwnRoles(t))
	goldentest.File(t, "testdata/who-may-what.txt", out.String())
}

// object returns an object of the kind for a caller with the role, and whether there is one.
func object(action doorward.Action, kind string, role doorward.Role) (doorward.Object, bool) {
	on := doorward.Object{TenantID: "tnt_own"}
	switch above := slices.Index(doorward.Roles, role) + 1; {
	case kind == "other":
		on.TenantID = "tnt_other"
	case kind == "higher" && above == len(doorward.Roles):
		return on, false
	case kind == "higher":
		on.Held = doorward.Roles[above]
		if grants(action) {
			on.Granted = on.Held
		}
	}
	return on, true
}

// grants reports whether the action gives somebody a role: at once, or by an
// invitation.
func grants(action doorward.Action) bool {
	verb, _ := doorward.Lookup(action)
	return action == doorward.UserRole || verb.Permission == doorward.UserInvite
}

func decisionRow(t *testing.T, out *strings.Builder, action doorward.Action, object string, on doorward.Object) {
	t.Helper()
	row(out, string(action), object, func(_ string, by doorward.Caller) string { return verdict(t, by, action, on) })
}

func row(out *strings.Builder, action, object string, cell func(name string, by doorward.Caller) string) {
	line := fmt.Sprintf("%-18s %-10s", action, object)
	for _, who := range callers {
		line += fmt.Sprintf(" %-10s", cell(who.name, who.by))
	}
	fmt.Fprintln(out, strings.TrimRight(line, " "))
}

func verdict(t *testing.T, by doorward.Caller, action doorward.Action, on doorward.Object) string {
	t.Helper()
	err := access.Can(&by.Principal, action, on).Err()
	if err == nil {
		return "yes"
	}
	var refused *doorward.Error
	if !errors.As(err, &refused) {
		t.Fatalf("%s: %v is no *doorward.Error", action, err)
	}
	return fmt.Sprint(front.Status(refused.Code))
}
