package routetest

import (
	"bytes"
	"image"
	"image/png"

	"github.com/doorward/doorward/internal/secret"
)

// Samples are the rows, those of a route one after the other.
var Samples = []Sample{
	// How people join and sign in.
	{Request: "POST /api/v2/auth/invite", Who: "OWNER", Body: Object{"email": "x@acme.example", "role": "USER"}, Want: "201"},
	{Request: "POST /api/v2/auth/invite", Who: "ADMIN", Body: Object{"email": "y@acme.example", "role": "OWNER"}, Want: "403 forbidden"},
	{Request: "POST /api/v2/auth/invite", Who: "OWNER", Body: Object{"email": "viewer@acme.example", "role": "USER"}, Want: "409 already_member"},
	{Request: "POST /api/v2/auth/invite", Who: "OWNER", Body: Object{"email": "x", "role": "USER"}, Want: "422 validation_failed"},
	{Request: "POST /api/v2/auth/complete-registration", Body: Object{"token": Absent, "password": Password, "confirmPassword": Password}, Want: "404 invitation_not_found"},
	{Request: "POST /api/v2/auth/accept-invitation", Body: Object{"token": Absent, "password": Password}, Want: "404 invitation_not_found"},
	{Request: "POST /api/v2/auth/accept-invitation", Body: Object{"token": Absent}, Want: "401 unauthenticated"},
	{Request: "POST /api/v2/auth/accept-invitation", Who: "USER", Body: Object{"token": Absent}, Want: "404 invitation_not_found"},
	{Request: "POST /api/v2/auth/accept-invitation/second", Body: Object{"token": Absent, "challenge": Absent, "code": "123456"}, Want: "404 invitation_not_found"},
	{Request: "POST /api/v2/auth/accept-invitation/second", Body: Object{"token": Absent, "challenge": Absent}, Want: "422 validation_failed"},
	{Request: "POST /api/v2/auth/login", Body: Object{"email": "nobody@acme.example", "password": Password}, Want: "401 invalid_credentials"},
	{Request: "POST /api/v2/auth/login", Body: Object{"email": "owner@acme.example"}, Want: "422 validation_failed"},
	{Request: "POST /api/v2/auth/login/second", Body: Object{"challenge": Absent, "code": "123456"}, Want: "410 challenge_over"},
	{Request: "POST /api/v2/auth/login/second", Body: Object{"challenge": Absent}, Want: "422 validation_failed"},
	{Request: "POST /api/v2/auth/login/second", Body: Object{"challenge": Absent, "code": "123456", "recoveryCode": "x"}, Want: "422 validation_failed"},
	{Request: "POST /api/v2/auth/passkey/begin", Want: "200"},
	{Request: "POST /api/v2/auth/passkey/finish", Body: Object{"challenge": Absent, "credential": Object{"id": "x"}}, Want: "410 challenge_over"},
	{Request: "POST /api/v2/auth/passkey/finish", Body: Object{"challenge": Absent}, Want: "422 validation_failed"},
	{Request: "POST /api/v2/auth/logout", Want: "204"},
	{Request: "GET /api/v2/auth/session", Who: "OWNER", Want: "200"},
	{Request: "GET /api/v2/auth/memberships", Who: "OWNER", Want: "200"},
	{Request: "DELETE /api/v2/auth/memberships/tnt_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "POST /api/v2/auth/switch-tenant", Who: "OWNER", Body: Object{"tenantId": "tnt_absent"}, Want: "404 not_found", Twice: "opens a session, as a login does"},

	// Second factors.
	{Request: "GET /api/v2/auth/factors", Who: "OWNER", Want: "200"},
	{Request: "POST /api/v2/auth/factors/totp", Body: Object{"challenge": Absent}, Want: "410 challenge_over"},
	{Request: "POST /api/v2/auth/factors/totp", Body: Object{}, Want: "401 unauthenticated"},
	{Request: "POST /api/v2/auth/factors/totp/confirm", Body: Object{"id": "mfa_absent", "code": "123456", "challenge": Absent}, Want: "410 challenge_over"},
	{Request: "POST /api/v2/auth/factors/totp/confirm", Body: Object{"id": "mfa_absent", "code": "123456"}, Want: "401 unauthenticated"},
	{Request: "POST /api/v2/auth/factors/totp/confirm", Who: "USER", Body: Object{"id": "mfa_absent", "code": "123456"}, Want: "404 not_found"},
	{Request: "POST /api/v2/auth/factors/passkey/begin", Body: Object{"challenge": Absent}, Want: "410 challenge_over"},
	{Request: "POST /api/v2/auth/factors/passkey/begin", Body: Object{}, Want: "401 unauthenticated"},
	{Request: "POST /api/v2/auth/factors/passkey/finish", Body: Object{"challenge": Absent, "credential": Object{"id": "x"}}, Want: "410 challenge_over"},
	{Request: "POST /api/v2/auth/factors/passkey/finish", Who: "USER", Body: Object{"challenge": Absent, "credential": Object{"id": "x"}}, Want: "410 challenge_over"},
	{Request: "POST /api/v2/auth/factors/passkey/finish", Who: "USER", Body: Object{"challenge": Absent}, Want: "422 validation_failed"},
	{Request: "POST /api/v2/auth/factors/recovery", Who: "OWNER", Want: "404 not_found", Twice: "replaces the previous codes"},
	{Request: "POST /api/v2/auth/factors/reset", Body: Object{"token": Absent, "password": Password}, Want: "404 reset_not_found"},
	{Request: "DELETE /api/v2/auth/factors/reset", Who: "OWNER", Want: "403 step_up_required"},
	{Request: "PATCH /api/v2/auth/factors/mfa_absent", Who: "OWNER", Body: Object{"name": "Phone"}, Want: "404 not_found"},
	{Request: "DELETE /api/v2/auth/factors/mfa_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "POST /api/v2/auth/step-up/begin", Who: "OWNER", Want: "200", Twice: "makes one more challenge, which does no harm"},
	{Request: "POST /api/v2/auth/step-up/finish", Who: "OWNER", Body: Object{"challenge": Absent, "password": "x"}, Want: "410 challenge_over", Twice: "a challenge is answered once"},
	{Request: "POST /api/v2/auth/step-up/finish", Who: "USER", Body: Object{"challenge": Absent}, Want: "422 validation_failed"},
	{Request: "POST /api/v2/auth/step-up/finish", Who: "USER", Body: Object{"challenge": Absent, "password": "x", "code": "123456"}, Want: "422 validation_failed"},

	// One's own sessions, password and account.
	{Request: "GET /api/v2/sessions", Who: "OWNER", Want: "200"},
	{Request: "DELETE /api/v2/sessions", Who: "OWNER", Want: "204"},
	{Request: "DELETE /api/v2/sessions/ses_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "POST /api/v2/auth/forgot-password", Body: Object{"email": "nobody@acme.example"}, Want: "202"},
	{Request: "POST /api/v2/auth/forgot-password", Body: Object{"email": "x"}, Want: "422 validation_failed"},
	{Request: "POST /api/v2/auth/reset-password", Body: Object{"token": Absent, "password": Password, "confirmPassword": Password}, Want: "404 reset_not_found"},
	{Request: "POST /api/v2/auth/change-password", Who: "OWNER", Body: Object{"currentPassword": "x", "password": "three old paper boats", "confirmPassword": "three old paper boats"}, Want: "422 validation_failed", Twice: "the current password is another one by then"},
	{Request: "POST /api/v2/auth/change-email", Who: "OWNER", Body: Object{"email": "new@acme.example"}, Want: "202", Twice: "replaces the request before"},
	{Request: "POST /api/v2/auth/change-email", Who: "USER", Body: Object{"email": "x"}, Want: "422 validation_failed"},
	{Request: "POST /api/v2/auth/change-email/confirm", Who: "OWNER", Body: Object{"token": Absent}, Want: "404 email_change_not_found", Twice: "a code confirms once"},
	{Request: "POST /api/v2/auth/undo-email", Body: Object{"token": Absent}, Want: "404 email_change_not_found"},
	{Request: "GET /api/v2/auth/account/export", Who: "OWNER", Want: "200"},
	{Request: "DELETE /api/v2/auth/account", Who: "OWNER", Body: Object{"confirm": "x@acme.example"}, Want: "422 validation_failed"},

	// Members and invitations.
	{Request: "GET /api/v2/users", Who: "OWNER", Want: "200"},
	{Request: "GET /api/v2/users?role=user", Who: "VIEWER", Want: "422 validation_failed"},
	{Request: "GET /api/v2/users/usr_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "PATCH /api/v2/users/usr_absent", Who: "OWNER", Body: Object{"name": "Ann"}, Want: "404 not_found"},
	{Request: "DELETE /api/v2/users/usr_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "GET /api/v2/users/usr_absent/sessions", Who: "OWNER", Want: "404 not_found"},
	{Request: "DELETE /api/v2/users/usr_absent/sessions", Who: "OWNER", Want: "404 not_found"},
	{Request: "DELETE /api/v2/users/usr_absent/sessions/ses_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "POST /api/v2/users/usr_absent/mfa/reset", Who: "OWNER", Want: "404 not_found", Twice: "gives the word again, and mails again"},
	{Request: "POST /api/v2/users/usr_absent/mfa/reset?dryRun=true", Who: "OWNER", Want: "400 invalid_query"},
	{Request: "POST /api/v2/users/bulk", Who: "OWNER", Body: Object{"ids": []string{"usr_absent"}, "remove": true}, Want: "200", Twice: "changes nothing more"},
	{Request: "POST /api/v2/users/bulk", Who: "ADMIN", Body: Object{"ids": []string{}}, Want: "422 validation_failed"},
	{Request: "GET /api/v2/invitations", Who: "OWNER", Want: "200"},
	{Request: "GET /api/v2/invitations?status=pending", Who: "ADMIN", Want: "422 validation_failed"},
	{Request: "GET /api/v2/invitations?cursor=x", Who: "ADMIN", Want: "400 invalid_cursor"},
	{Request: "GET /api/v2/invitations/inv_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "POST /api/v2/invitations/inv_absent/resend", Who: "OWNER", Want: "404 not_found"},
	{Request: "DELETE /api/v2/invitations/inv_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "POST /api/v2/invitations/resend", Who: "OWNER", Body: Object{"ids": []string{"inv_absent"}}, Want: "200", Twice: "a minute passes between two mails"},
	{Request: "POST /api/v2/invitations/resend", Who: "ADMIN", Body: Object{"ids": []string{}}, Want: "422 validation_failed"},
	{Request: "POST /api/v2/invitations/revoke", Who: "OWNER", Body: Object{"ids": []string{"inv_absent"}}, Want: "200", Twice: "changes nothing more"},
	{Request: "POST /api/v2/invitations/revoke", Who: "ADMIN", Body: Object{"ids": []string{}}, Want: "422 validation_failed"},
	{Request: "POST /api/v2/auth/invite/bulk", Who: "OWNER", Body: Object{"invitations": []Object{{"email": "z@acme.example", "role": "USER"}}}, Want: "200"},
	{Request: "POST /api/v2/auth/invite/bulk", Who: "ADMIN", Body: Object{"invitations": []Object{}}, Want: "422 validation_failed"},
	{Request: "POST /api/v2/auth/invite/bulk", Who: "ADMIN", Body: Object{"invitations": []Object{{"email": 1}}}, Want: "400 invalid_body"},

	// The tenant.
	{Request: "GET /api/v2/tenant", Who: "OWNER", Want: "200"},
	{Request: "PATCH /api/v2/tenant", Who: "OWNER", Body: Object{"name": "Acme"}, Want: "200"},
	{Request: "PATCH /api/v2/tenant", Who: "ADMIN", Body: Object{"settings": Object{"sessionIdleMinutes": 61}}, Want: "422 validation_failed"},
	{Request: "PATCH /api/v2/tenant", Who: "ADMIN", Body: Object{"name": "Acme"}, Header: `If-Match: "x"`, Want: "412 precondition_failed"},
	{Request: "PUT /api/v2/tenant/logo", Who: "OWNER", Body: picture(), Header: "Content-Type: image/png", Want: "200"},
	{Request: "PUT /api/v2/tenant/logo", Who: "ADMIN", Body: "x", Header: "Content-Type: image/png", Want: "422 logo_refused"},
	{Request: "PUT /api/v2/tenant/logo", Who: "ADMIN", Body: "<svg/>", Header: "Content-Type: image/svg+xml", Want: "415 unsupported_media_type"},
	{Request: "DELETE /api/v2/tenant/logo", Who: "OWNER", Want: "204"},
	{Request: "DELETE /api/v2/tenant", Who: "OWNER", Body: Object{"confirm": "acme"}, Want: "422 validation_failed"},
	{Request: "POST /api/v2/tenant/restore", Who: "OWNER", Want: "409 tenant_not_closing", Twice: "changes nothing more"},
	{Request: "GET /api/v2/audit-events", Who: "OWNER", Want: "200"},
	{Request: "GET /api/v2/events", Who: "OWNER", Want: "200"},
	{Request: "GET /api/v2/events?after=9999", Who: "OWNER", Want: "410 events_gone"},

	// API keys and webhooks.
	{Request: "GET /api/v2/auth/key", Who: Key, Want: "200"},
	{Request: "GET /api/v2/auth/key", Who: "OWNER", Want: "403 forbidden"},
	{Request: "POST /api/v2/auth/report-key", Body: Object{"key": secret.NewKey("dwk_").Reveal()}, Want: "204"},
	{Request: "POST /api/v2/auth/report-key", Body: Object{"key": "dwk_x"}, Want: "422 validation_failed"},
	{Request: "GET /api/v2/api-keys", Who: "OWNER", Want: "200"},
	{Request: "GET /api/v2/api-keys?status=ACTIVE", Who: "ADMIN", Want: "422 validation_failed"},
	{Request: "POST /api/v2/api-keys", Who: "OWNER", Body: Object{"name": "Reports", "permissions": []string{"report.read"}}, Want: "201"},
	{Request: "POST /api/v2/api-keys", Who: "OWNER", Body: Object{"name": "x", "permissions": []string{"tenant.destroy"}}, Want: "422 validation_failed"},
	{Request: "POST /api/v2/api-keys", Who: "ADMIN", Body: Object{"name": "x", "permissions": []string{"message.read"}, "role": "OWNER"}, Want: "403 forbidden"},
	{Request: "GET /api/v2/api-keys/key_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "PATCH /api/v2/api-keys/key_absent", Who: "OWNER", Body: Object{"permissions": []string{"report.read"}}, Want: "404 not_found"},
	{Request: "DELETE /api/v2/api-keys/key_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "POST /api/v2/api-keys/key_absent/rotate", Who: "OWNER", Body: Object{"graceHours": 0}, Want: "404 not_found"},
	{Request: "DELETE /api/v2/api-keys/key_absent/previous", Who: "OWNER", Want: "404 not_found"},
	{Request: "GET /api/v2/webhooks", Who: "OWNER", Want: "200"},
	{Request: "GET /api/v2/webhooks?limit=201", Who: "ADMIN", Want: "422 validation_failed"},
	{Request: "POST /api/v2/webhooks", Who: "OWNER", Body: Object{"url": "http://localhost:1/", "events": []string{"*"}}, Want: "201"},
	{Request: "POST /api/v2/webhooks", Who: "ADMIN", Body: Object{"url": "https://10.0.0.1/", "events": []string{"*"}}, Want: "422 validation_failed"},
	{Request: "GET /api/v2/webhooks/whk_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "PATCH /api/v2/webhooks/whk_absent", Who: "OWNER", Body: Object{"about": "x"}, Want: "404 not_found"},
	{Request: "DELETE /api/v2/webhooks/whk_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "POST /api/v2/webhooks/whk_absent/rotate-secret", Who: "OWNER", Body: Object{"graceHours": 0}, Want: "404 not_found"},
	{Request: "POST /api/v2/webhooks/whk_absent/test", Who: "OWNER", Want: "404 not_found", Twice: "sends one more test"},
	{Request: "GET /api/v2/webhooks/whk_absent/deliveries", Who: "OWNER", Want: "404 not_found"},
	{Request: "POST /api/v2/webhooks/whk_absent/replay", Who: "OWNER", Body: Object{"after": 1}, Want: "404 not_found", Twice: "receivers recognise a repetition by its id"},
	{Request: "POST /api/v2/webhooks/deliveries/whd_absent/retry", Who: "OWNER", Want: "404 not_found", Twice: "receivers recognise a repetition by its id"},

	// Connections.
	{Request: "GET /api/v2/sso/connections", Who: "OWNER", Want: "200"},
	{Request: "GET /api/v2/sso/connections?limit=201", Who: "OWNER", Want: "422 validation_failed"},
	{Request: "POST /api/v2/sso/connections", Who: "OWNER", Body: Object{"type": "oidc", "name": "Okta"}, Want: "201"},
	{Request: "POST /api/v2/sso/connections", Who: "ADMIN", Body: Object{"type": "oidc", "name": "Okta"}, Want: "403 forbidden"},
	{Request: "POST /api/v2/sso/connections", Who: "OWNER", Body: Object{"type": "oidc", "name": "Okta", "issuer": "http://idp.example"}, Want: "422 validation_failed"},
	{Request: "GET /api/v2/sso/connections/con_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "PATCH /api/v2/sso/connections/con_absent", Who: "OWNER", Body: Object{"name": "x"}, Want: "404 not_found"},
	{Request: "DELETE /api/v2/sso/connections/con_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "DELETE /api/v2/sso/connections/con_absent?dryRun", Who: "OWNER", Want: "422 validation_failed"},
	{Request: "DELETE /api/v2/sso/connections/con_absent/pending", Who: "OWNER", Want: "404 not_found"},
	{Request: "POST /api/v2/sso/connections/con_absent/switch", Who: "OWNER", Want: "404 not_found", Twice: "nothing is pending any more"},
	{Request: "POST /api/v2/sso/connections/con_absent/secrets", Who: "OWNER", Body: Object{"clientSecret": "x"}, Want: "404 not_found"},
	{Request: "DELETE /api/v2/sso/connections/con_absent/secrets/ccs_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "GET /api/v2/sso/connections/con_absent/attempts", Who: "OWNER", Want: "404 not_found"},
	{Request: "GET /api/v2/sso/connections/con_absent/tests/tst_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "GET /api/v2/sso/connections/con_absent/identities", Who: "OWNER", Want: "404 not_found"},
	{Request: "DELETE /api/v2/sso/identities/idn_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "GET /api/v2/auth/sso/con_absent/jwks", Want: "404 not_found"},

	// Domains.
	{Request: "GET /api/v2/domains", Who: "OWNER", Want: "200"},
	{Request: "GET /api/v2/domains?limit=201", Who: "OWNER", Want: "422 validation_failed"},
	{Request: "POST /api/v2/domains", Who: "OWNER", Body: Object{"domain": "acme.example"}, Want: "201"},
	{Request: "POST /api/v2/domains", Who: "ADMIN", Body: Object{"domain": "acme.example"}, Want: "403 forbidden"},
	{Request: "GET /api/v2/domains/dom_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "PATCH /api/v2/domains/dom_absent", Who: "OWNER", Body: Object{"connectionId": ""}, Want: "404 not_found"},
	{Request: "POST /api/v2/domains/dom_absent/verify", Who: "OWNER", Want: "404 not_found", Twice: "looks at the record once more"},
	{Request: "DELETE /api/v2/domains/dom_absent", Who: "OWNER", Want: "404 not_found"},

	// Roles and policies.
	{Request: "GET /api/v2/roles", Who: "OWNER", Want: "200"},
	{Request: "GET /api/v2/roles?foo=1", Who: "ADMIN", Want: "400 invalid_query"},
	{Request: "POST /api/v2/roles", Who: "OWNER", Body: Object{"name": "DESK", "permissions": []string{"user.read"}}, Want: "201"},
	{Request: "POST /api/v2/roles", Who: "ADMIN", Body: Object{"name": "PAYER", "permissions": []string{"billing.read"}}, Want: "403 forbidden"},
	{Request: "GET /api/v2/roles/rol_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "PATCH /api/v2/roles/rol_absent", Who: "OWNER", Body: Object{"permissions": []string{"user.read"}}, Want: "404 not_found"},
	{Request: "DELETE /api/v2/roles/rol_absent", Who: "OWNER", Want: "404 not_found"},
	{Request: "GET /api/v2/policy", Who: "OWNER", Want: "200"},
	{Request: "PUT /api/v2/policy", Who: "OWNER", Body: Object{"text": ""}, Header: "If-Match: *", Want: "200"},
	{Request: "PUT /api/v2/policy", Who: "OWNER", Body: Object{"text": ""}, Want: "428 precondition_required"},
	{Request: "PUT /api/v2/policy", Who: "OWNER", Body: Object{"text": ""}, Header: `If-Match: "7"`, Want: "412 precondition_failed"},
	{Request: "PUT /api/v2/policy", Who: "OWNER", Body: Object{"text": `@id("a") permit(principal, action, resource);`}, Header: "If-Match: *", Want: "422 validation_failed"},
	{Request: "GET /api/v2/policy/schema", Who: "OWNER", Want: "200"},
	{Request: "GET /api/v2/policy/versions", Who: "OWNER", Want: "200"},
	{Request: "POST /api/v2/policy/versions/9/restore", Who: "OWNER", Want: "404 not_found", Twice: "a version that is in force makes no new one"},
	{Request: "POST /api/v2/policy/confirm", Who: "OWNER", Want: "404 not_found", Twice: "changes nothing more"},
	{Request: "POST /api/v2/policy/plan", Who: "OWNER", Body: Object{"text": ""}, Want: "200", Twice: "changes nothing"},
	{Request: "POST /api/v2/policy/plan", Who: "OWNER", Body: Object{"text": "forbid("}, Want: "422 validation_failed"},
	{Request: "POST /api/v2/policy/plan", Who: "OWNER", Body: Object{"text": "", "hours": 169}, Want: "422 validation_failed"},

	// Access checks.
	{Request: "POST /api/v2/access/explain", Who: "OWNER", Body: Object{"userId": "usr_absent", "action": "message.send"}, Want: "404 not_found", Twice: "changes nothing"},
	{Request: "POST /api/v2/access/explain", Who: "OWNER", Body: Object{"action": "message.send"}, Want: "422 validation_failed"},
	{Request: "GET /api/v2/access/check", Who: "OWNER", Want: "200"},
	{Request: "POST /api/v2/access/introspect", Who: Operator, Body: Object{"credential": Absent}, Want: "200", Twice: "changes nothing"},
	{Request: "POST /api/v2/auth/token", Who: "OWNER", Body: Object{"audience": "none"}, Want: "422 validation_failed", Twice: "signs an assertion and stores nothing"},
	{Request: "GET /.well-known/jwks.json", Want: "200"},
	{Request: "GET /.well-known/authzen-configuration", Want: "200"},
	{Request: "POST /access/v1/evaluation", Who: Operator, Body: question, Want: "200", Twice: "changes nothing"},
	{Request: "POST /access/v1/evaluations", Who: Operator, Body: question, Want: "200", Twice: "changes nothing"},
	{Request: "POST /access/v1/search/action", Who: Operator, Body: question, Want: "200", Twice: "changes nothing"},
	{Request: "POST /access/v1/search/resource", Who: Operator, Body: question, Want: "200", Twice: "changes nothing"},
	{Request: "POST /access/v1/search/subject", Who: Operator, Body: question, Want: "200", Twice: "changes nothing"},

	// The operator. The new model comes last, since it has no actions.
	{Request: "GET /api/v2/installation/audit-events", Who: Operator, Want: "200"},
	{Request: "GET /api/v2/installation/audit-events?limit=201", Who: Operator, Want: "422 validation_failed"},
	{Request: "GET /api/v2/tenants", Who: Operator, Want: "200"},
	{Request: "GET /api/v2/tenants?limit=201", Who: Operator, Want: "422 validation_failed"},
	{Request: "POST /api/v2/tenants", Who: Operator, Body: Object{"name": "Globex", "ownerEmail": "owner@globex.example"}, Want: "201"},
	{Request: "POST /api/v2/tenants", Who: Operator, Body: Object{"ownerEmail": "owner@globex.example"}, Want: "422 validation_failed"},
	{Request: "GET /api/v2/tenants/tnt_absent", Who: Operator, Want: "404 not_found"},
	{Request: "PATCH /api/v2/tenants/tnt_absent", Who: Operator, Body: Object{"status": "frozen"}, Want: "404 not_found"},
	{Request: "GET /api/v2/model", Who: Operator, Want: "200"},
	{Request: "PUT /api/v2/model", Who: Operator, Body: Object{"text": "actions: {}"}, Header: "If-Match: *", Want: "200"},
	{Request: "PUT /api/v2/model", Who: Operator, Body: Object{"text": "actions: {a: {}}"}, Header: "If-Match: *", Want: "422 validation_failed"},
	{Request: "PUT /api/v2/model", Who: Operator, Body: Object{"text": "actions: {}"}, Want: "428 precondition_required"},
	{Request: "PUT /api/v2/model", Who: Operator, Body: Object{"text": "actions: {}"}, Header: `If-Match: "7"`, Want: "412 precondition_failed"},
}

// question asks by AuthZEN what somebody may do, and who may do it.
var question = Object{
	"subject": Object{"type": "user", "id": "usr_absent"}, "action": Object{"name": "message.send"},
	"resource": Object{"type": "tenant", "id": "tnt_absent"},
}

// picture returns a PNG.
func picture() string {
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		panic(err) // a buffer takes everything
	}
	return out.String()
}
