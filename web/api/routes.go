// Package api is the JSON API under /api/v2. This file lists its routes; the
// handlers are in files named after their features.
//
// A handler turns a request into plain values, calls one feature and turns the
// result into the answer's shape. It decides nothing.
package api

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/web/front"
)

// api has the handlers.
type api struct{ app *app.App }

// Routes returns the routes of the API over the features of a.
func Routes(a *app.App) []front.Route {
	h := &api{a}
	routes := slices.Concat(h.signInRoutes(), h.signOnRoutes(), h.signOffRoutes(), h.adminRoutes(), h.memberRoutes(), h.webhookRoutes(), h.ssoPolicyRoutes(), h.domainRoutes(), h.connectionRoutes(), h.directoryRunRoutes(), h.setupLinkRoutes())
	for i, r := range routes {
		if managesSignOn(r.Path) {
			r = r.StrictQuery()
		}
		r.Endpoint = r.Endpoint.AmendErrors(h.withChallenge)
		routes[i] = r
	}
	return routes
}

// managesSignOn reports whether the route is one by which a tenant manages its sign-on. Addresses that providers and
// browsers are led to are others.
func managesSignOn(path string) bool {
	return strings.HasPrefix(path, "/api/v2/sso/") || path == "/api/v2/domains" || strings.HasPrefix(path, "/api/v2/domains/")
}

// signInRoutes are the routes of people: how they join, sign in, and prove who they are.
func (h *api) signInRoutes() []front.Route {
	return []front.Route{
		front.On("POST /api/v2/auth/invite", front.Allowed(doorward.UserInvite), front.Create(http.StatusCreated, h.invite, viewNewInvitation), docInvite),
		front.On("POST /api/v2/auth/complete-registration", front.Public(), front.JSON(http.StatusOK, h.completeRegistration), docCompleteRegistration),
		front.On("POST /api/v2/auth/accept-invitation", front.Optional(), front.JSON(http.StatusOK, h.acceptInvitation), docAcceptInvitation),
		front.On("POST /api/v2/auth/accept-invitation/second", front.Public(), front.JSON(http.StatusOK, h.acceptInvitationSecond), docAcceptSecond),

		front.On("POST /api/v2/auth/login", front.Public(), front.JSON(http.StatusOK, h.login).OpensSession(), docLogin),
		front.On("POST /api/v2/auth/login/second", front.Public(), front.JSON(http.StatusOK, h.loginSecond).OpensSession(), docSecond),
		front.On("POST /api/v2/auth/passkey/begin", front.Public(), front.JSON(http.StatusOK, h.beginPasskeyLogin), docBeginPasskeyLogin),
		front.On("POST /api/v2/auth/passkey/finish", front.Public(), front.JSON(http.StatusOK, h.finishPasskeyLogin).OpensSession(), docFinishPasskeyLogin),
		front.On("POST /api/v2/auth/logout", front.Public(), front.JSON(http.StatusNoContent, h.logout).EndsSession().Returns(), docLogout),
		front.On("GET /api/v2/auth/session", front.SignedIn().WhileClosing(), front.JSON(http.StatusOK, h.session), docSession),
		front.On("GET /api/v2/auth/memberships", front.SignedIn(), front.JSON(http.StatusOK, h.memberships), docMemberships),
		front.On("DELETE /api/v2/auth/memberships/{tenantId}", front.SignedIn().WhileClosing(), front.JSON(http.StatusNoContent, h.leaveTenant).EndsSession(), docLeaveTenant),
		front.On("POST /api/v2/auth/switch-tenant", front.SignedIn(), front.JSON(http.StatusOK, h.switchTenant).OpensSession(), docSwitchTenant),

		front.On("GET /api/v2/auth/factors", front.SignedIn(), front.JSON(http.StatusOK, h.factors), docFactors),
		front.On("POST /api/v2/auth/factors/totp", front.Optional().ForPeople(), front.JSON(http.StatusCreated, h.enrolTOTP), docEnrolTOTP),
		front.On("POST /api/v2/auth/factors/totp/confirm", front.Optional().ForPeople(), front.JSON(http.StatusOK, h.confirmTOTP).OpensSession(), docConfirmTOTP),
		front.On("POST /api/v2/auth/factors/passkey/begin", front.Optional().ForPeople(), front.JSON(http.StatusOK, h.beginPasskey), docBeginPasskey),
		front.On("POST /api/v2/auth/factors/passkey/finish", front.Optional().ForPeople(), front.JSON(http.StatusOK, h.finishPasskey).OpensSession(), docFinishPasskey),
		front.On("POST /api/v2/auth/factors/recovery", front.SignedIn(), front.JSON(http.StatusOK, h.makeRecoveryCodes), docRecoveryCodes),
		front.On("POST /api/v2/auth/factors/reset", front.Public(), front.JSON(http.StatusNoContent, h.resetFactors), docResetFactors),
		front.On("DELETE /api/v2/auth/factors/reset", front.SignedIn(), front.JSON(http.StatusNoContent, h.keepFactors), docKeepFactors),
		front.On("PATCH /api/v2/auth/factors/{id}", front.SignedIn(), front.JSON(http.StatusOK, h.renameFactor), docRenameFactor),
		front.On("DELETE /api/v2/auth/factors/{id}", front.SignedIn(), front.JSON(http.StatusNoContent, h.removeFactor), docRemoveFactor),

		front.On("POST /api/v2/auth/step-up/begin", front.SignedIn(), front.JSON(http.StatusOK, h.beginStepUp), docBeginStepUp),
		front.On("POST /api/v2/auth/step-up/finish", front.SignedIn(), front.JSON(http.StatusOK, h.finishStepUp).OpensSession(), docFinishStepUp),

		front.On("GET /api/v2/sessions", front.SignedIn(), front.JSON(http.StatusOK, h.sessions), docSessions),
		front.On("DELETE /api/v2/sessions", front.SignedIn(), front.JSON(http.StatusNoContent, h.endOtherSessions), docEndOtherSessions),
		front.On("DELETE /api/v2/sessions/{id}", front.SignedIn(), front.JSON(http.StatusNoContent, h.endSession).EndsSession(), docEndSession),
	}
}

// adminRoutes are the routes of tenants and their keys, roles, policies and events, of the
// operator, and of one's own password and account.
func (h *api) adminRoutes() []front.Route {
	return []front.Route{
		front.On("GET /api/v2/tenant", front.Allowed(doorward.TenantRead), front.JSON(http.StatusOK, h.tenant), docTenant),
		front.On("PATCH /api/v2/tenant", front.Allowed(doorward.TenantUpdate), front.JSON(http.StatusOK, h.editTenant), docEditTenant),
		front.On("PUT /api/v2/tenant/logo", front.Allowed(doorward.TenantUpdate),
			front.Bytes(http.StatusOK, doorward.MaxLogoSent, slices.Sorted(maps.Keys(logoTypes)), h.setLogo), docSetLogo),
		front.On("DELETE /api/v2/tenant/logo", front.Allowed(doorward.TenantUpdate), front.JSON(http.StatusNoContent, h.removeLogo), docRemoveLogo),
		front.On("DELETE /api/v2/tenant", front.Allowed(doorward.TenantClose), front.JSON(http.StatusAccepted, h.closeTenant).EndsSession(), docCloseTenant),
		front.On("POST /api/v2/tenant/restore", front.Allowed(doorward.TenantRestore), front.JSON(http.StatusOK, h.restoreTenant), docRestoreTenant),

		front.On("GET /api/v2/api-keys", front.Allowed(doorward.APIKeyManage), front.JSON(http.StatusOK, h.apiKeys), docAPIKeys),
		front.On("POST /api/v2/api-keys", front.Allowed(doorward.APIKeyCreate), front.Create(http.StatusCreated, h.createAPIKey, h.viewIssued), docCreateAPIKey),
		front.On("GET /api/v2/api-keys/{id}", front.Allowed(doorward.APIKeyManage), front.JSON(http.StatusOK, h.apiKey), docAPIKey),
		front.On("PATCH /api/v2/api-keys/{id}", front.Allowed(doorward.APIKeyUpdate), front.JSON(http.StatusOK, h.editAPIKey), docEditAPIKey),
		front.On("DELETE /api/v2/api-keys/{id}", front.Allowed(doorward.APIKeyRevoke), front.JSON(http.StatusNoContent, h.revokeAPIKey), docRevokeAPIKey),
		front.On("POST /api/v2/api-keys/{id}/rotate", front.Allowed(doorward.APIKeyRotate).AfterProof(), front.Create(http.StatusCreated, h.rotateAPIKey, h.viewIssued), docRotateAPIKey),
		front.On("DELETE /api/v2/api-keys/{id}/previous", front.Allowed(doorward.APIKeyManage), front.JSON(http.StatusNoContent, h.endPreviousSecret), docEndPreviousSecret),
		front.On("GET /api/v2/auth/key", front.KeyOnly(), front.JSON(http.StatusOK, h.selfKey), docSelfKey),
		front.On("POST /api/v2/auth/report-key", front.Public(), front.JSON(http.StatusNoContent, h.reportKey), docReportKey),

		front.On("GET /api/v2/roles", front.Allowed(doorward.RoleManage), front.JSON(http.StatusOK, h.roles), docRoles),
		front.On("POST /api/v2/roles", front.Allowed(doorward.RoleCreate), front.Create(http.StatusCreated, h.createRole, viewNewRole), docCreateRole),
		front.On("GET /api/v2/roles/{id}", front.Allowed(doorward.RoleManage), front.JSON(http.StatusOK, h.role), docRole),
		front.On("PATCH /api/v2/roles/{id}", front.Allowed(doorward.RoleUpdate), front.JSON(http.StatusOK, h.editRole), docEditRole),
		front.On("DELETE /api/v2/roles/{id}", front.Allowed(doorward.RoleDelete), front.JSON(http.StatusNoContent, h.deleteRole), docDeleteRole),

		front.On("GET /api/v2/audit-events", front.Allowed(doorward.AuditRead).OrOperator(doorward.ServiceEventsRead), front.JSON(http.StatusOK, h.auditEvents).OrCSV(h.auditRows), docAuditEvents),
		front.On("GET /api/v2/installation/audit-events", front.Operated(doorward.AuditRead), front.JSON(http.StatusOK, h.installationEvents).OrCSV(h.installationRows), docInstallationEvents()),

		front.On("GET /api/v2/events", front.Allowed(doorward.AuditRead).OrAcrossTenants(doorward.ServiceEventsRead), front.JSON(http.StatusOK, h.events), docEvents),

		front.On("POST /api/v2/tenants", front.Operated(doorward.TenantCreate), front.Create(http.StatusCreated, h.createTenant, h.viewCreated), docCreateTenant),
		front.On("GET /api/v2/tenants", front.Operated(doorward.ServiceTenantList), front.JSON(http.StatusOK, h.tenants), docTenants),
		front.On("GET /api/v2/tenants/{id}", front.Operated(doorward.ServiceTenantList), front.JSON(http.StatusOK, h.tenantByID), docTenantByID),
		front.On("PATCH /api/v2/tenants/{id}", front.Operated(doorward.TenantFreeze, doorward.TenantThaw, doorward.TenantQuota, doorward.TenantClose), front.JSON(http.StatusOK, h.setTenantStatus), docTenantStatus),

		front.On("GET /api/v2/policy", front.Allowed(doorward.PolicyRead), front.JSON(http.StatusOK, h.policy), docPolicy),
		front.On("PUT /api/v2/policy", front.Allowed(doorward.PolicyUpdate), front.JSON(http.StatusOK, h.putPolicy).UpTo(maxPolicyBody), docPutPolicy),
		front.On("POST /api/v2/policy/confirm", front.Allowed(doorward.PolicyConfirm), front.JSON(http.StatusOK, h.confirmPolicy), docConfirmPolicy),
		front.On("POST /api/v2/policy/plan", front.Allowed(doorward.PolicyRead), front.JSON(http.StatusOK, h.planPolicy).UpTo(maxPolicyBody), docPlanPolicy),
		front.On("GET /api/v2/policy/schema", front.Allowed(doorward.PolicyRead), front.JSON(http.StatusOK, h.policySchema), docPolicySchema),
		front.On("GET /api/v2/policy/versions", front.Allowed(doorward.PolicyRead), front.JSON(http.StatusOK, h.policyVersions), docPolicyVersions),
		front.On("POST /api/v2/policy/versions/{version}/restore", front.Allowed(doorward.PolicyRestore), front.JSON(http.StatusOK, h.restorePolicy), docRestorePolicy),

		front.On("POST /api/v2/access/explain", front.Allowed(doorward.PolicyRead), front.JSON(http.StatusOK, h.explain), docExplain).Check(),

		front.On("GET /api/v2/model", front.Operated(doorward.OperatorModelRead, doorward.ModelApply), front.JSON(http.StatusOK, h.model), docModel),
		front.On("PUT /api/v2/model", front.Operated(doorward.ModelApply), front.JSON(http.StatusOK, h.applyModel).UpTo(maxModelBody), docApplyModel),

		front.On("POST /api/v2/auth/forgot-password", front.Public(), front.JSON(http.StatusAccepted, h.forgotPassword), docForgotPassword),
		front.On("POST /api/v2/auth/reset-password", front.Public(), front.JSON(http.StatusNoContent, h.resetPassword), docResetPassword),
		front.On("POST /api/v2/auth/change-email", front.SignedIn(), front.JSON(http.StatusAccepted, h.changeEmail), docChangeEmail),
		front.On("POST /api/v2/auth/change-email/confirm", front.SignedIn(), front.JSON(http.StatusNoContent, h.confirmEmail), docConfirmEmail),
		front.On("POST /api/v2/auth/undo-email", front.Public(), front.JSON(http.StatusNoContent, h.undoEmail), docUndoEmail),
		front.On("DELETE /api/v2/auth/account", front.SignedIn().WhileClosing(), front.JSON(http.StatusNoContent, h.eraseAccount).EndsSession(), docEraseAccount),
		front.On("GET /api/v2/auth/account/export", front.SignedIn(), h.exportAccount(), docExportAccount),
		front.On("POST /api/v2/auth/change-password", front.SignedIn(), front.JSON(http.StatusNoContent, h.changePassword), docChangePassword),
	}
}

// memberRoutes are the routes about the members of a tenant and about invitations.
func (h *api) memberRoutes() []front.Route {
	return []front.Route{
		front.On("GET /api/v2/users", front.Allowed(doorward.UserRead), front.JSON(http.StatusOK, h.users).OrCSV(h.userRows), docUsers),
		front.On("GET /api/v2/users/{id}", front.Allowed(doorward.UserRead), front.JSON(http.StatusOK, h.user), docUser),
		front.On("PATCH /api/v2/users/{id}", front.Allowed(doorward.UserManage), front.JSON(http.StatusOK, h.editUser).EndsSession(), docEditUser),
		front.On("DELETE /api/v2/users/{id}", front.Allowed(doorward.UserRemove), front.JSON(http.StatusOK, h.removeUser).EndsSession(), docRemoveUser),
		front.On("DELETE /api/v2/users/{id}/sessions", front.Allowed(doorward.UserSignOut), front.JSON(http.StatusOK, h.signOutUser).EndsSession(), docSignOutUser),

		front.On("GET /api/v2/users/{id}/sessions", front.Allowed(doorward.UserManage), front.JSON(http.StatusOK, h.userSessions), docUserSessions),
		front.On("DELETE /api/v2/users/{id}/sessions/{sid}", front.Allowed(doorward.UserSignOut), front.JSON(http.StatusNoContent, h.endUserSession).EndsSession(), docEndUserSession),
		front.On("POST /api/v2/users/bulk", front.Allowed(doorward.UserManage), front.JSON(http.StatusOK, h.bulkUsers).EndsSession(), docBulkUsers),

		front.On("POST /api/v2/users/{id}/mfa/reset", front.Allowed(doorward.MFAReset), front.JSON(http.StatusAccepted, h.resetMFA), docResetMFA),

		front.On("GET /api/v2/invitations", front.Allowed(doorward.UserInvite), front.JSON(http.StatusOK, h.invitations).OrCSV(h.invitationRows), docInvitations),
		front.On("GET /api/v2/invitations/{id}", front.Allowed(doorward.UserInvite), front.JSON(http.StatusOK, h.invitation), docInvitation),
		front.On("POST /api/v2/invitations/{id}/resend", front.Allowed(doorward.InvitationResend), front.Create(http.StatusOK, h.resendInvitation, h.viewInvitationNow), docResendInvitation),
		front.On("DELETE /api/v2/invitations/{id}", front.Allowed(doorward.InvitationRevoke), front.JSON(http.StatusNoContent, h.revokeInvitation), docRevokeInvitation),
		front.On("POST /api/v2/invitations/resend", front.Allowed(doorward.InvitationResend), front.JSON(http.StatusOK, h.resendInvitations), docResendAll),
		front.On("POST /api/v2/invitations/revoke", front.Allowed(doorward.InvitationRevoke), front.JSON(http.StatusOK, h.revokeInvitations), docRevokeAll),
		front.On("POST /api/v2/auth/invite/bulk", front.Allowed(doorward.UserInvite), front.Create(http.StatusOK, h.inviteBulk, viewSent), docInviteBulk),
	}
}
