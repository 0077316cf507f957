// Package hosted has the pages on which people sign in and manage their account, such as
// /login, /forgot, /reset, /accept and /account.
//
// They call the same features as the API and decide nothing. A form is sent to its
// own path; a success redirects with 303, so that a reload sends nothing twice. The
// session's token is in a cookie that scripts can't read.
//
//	login.go    /login, /login/tenant, /logout
//	remembered.go  /login/account: addresses that a browser remembers
//	second.go   /login/second, /login/enrol
//	security.go /account/security, /factors/reset
//	activity.go remembered browsers, and what happened last
//	mail.go     /forgot, /reset
//	email.go    /confirm-email, /undo-email
//	accept.go   /accept
//	account.go  /account, /account/leave, /.well-known/change-password
//	erase.go    /account/erase
//	stepup.go   /step-up, to prove one's identity again
//	sso.go      /sso/{con}, where a sign-in at a tenant's provider begins and asks for more
//	setup.go    /setup, where a link for a customer's own IT begins; its steps (setupsteps.go)
//	passkey.go  passkeys, for signing in and for setting one up
//	closing.go  /closing, for the OWNER of a tenant that is being closed
package hosted

import (
	"embed"

	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/app/sealed"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

//go:embed html text assets
var files embed.FS

var set = ui.NewSet("hosted", files)

// Pages returns the set of the pages, to check and list their texts.
func Pages() *ui.Set { return set }

// hosted has the handlers.
type hosted struct {
	app      *app.App
	accounts *sealed.Texts // see remembered
}

// Routes returns the routes of the pages over the features of a.
func Routes(a *app.App) []front.Route {
	h := &hosted{app: a}
	if a != nil { // nil only lists the routes
		h.accounts = sealed.New(a.Access, "accounts", "remembered accounts")
	}
	page := func(pattern string, g front.Guard, e front.Endpoint) front.Route {
		return front.On(pattern, g, e, front.Doc{})
	}
	return append(h.setupRoutes(), []front.Route{
		page("GET /login", front.Optional(), set.Show(h.showLogin)),
		page("POST /login", front.Public(), set.Take("/login", h.login, h.loginAgain)),
		page("POST /login/account", front.Public(), set.Open("/login", h.chooseAccount, h.loginAgain)),
		page("POST /login/account/forget", front.Public(), set.Take("/login", h.forgetAccount, h.loginAgain)),
		page("GET /login/tenant", ui.SignedIn().WhileClosing(), set.Show(h.showTenants)),
		page("POST /login/tenant", ui.SignedIn().WhileClosing(), set.Take("/login/tenant", h.chooseTenant, h.showTenants)),
		page("GET /login/second", front.Public(), set.Show(h.showSecond)),
		page("POST /login/second", front.Public(), set.Take("/login/second", h.second, h.showSecond)),
		page("GET /login/enrol", front.Public(), set.Show(h.showEnrolment)),
		page("POST /login/enrol", front.Public(), set.Open("/login/enrol", h.beginEnrolment, h.showEnrolment)),
		page("POST /login/enrol/confirm", front.Public(), set.Take("/login/enrol", h.confirmEnrolment, h.pendingEnrolment)),
		page("POST /login/passkey", front.Public(), set.Take("/login", h.loginByPasskey, h.loginPasskeyAgain)),
		page("POST /login/enrol/passkey", front.Public(), set.Open("/login/enrol", h.beginFirstPasskey, h.showEnrolment)),
		page("POST /login/enrol/passkey/finish", front.Public(), set.Take("/login/enrol", h.finishFirstPasskey, h.firstPasskeyAgain)),
		page("POST /logout", front.Public(), set.Take("/login", h.logout, h.loginAgain)),

		page("GET /sso/{con}", front.Optional(), set.Show(h.showSignOn)),
		page("GET /sso/{con}/continue", front.Optional(), set.Show(h.showWaiting)),
		page("POST /sso/{con}/agree", front.Optional(), set.Take("", h.agreeToSignOn, h.showWaiting)),
		page("POST /sso/{con}/prove", front.Optional(), set.Take("", h.proveForSignOn, h.showWaiting)),
		page("POST /sso/{con}/prove/passkey", front.Optional(), set.Take("", h.provePasskeyForSignOn, h.waitingAgain)),
		page("POST /sso/{con}/prove/second", front.Optional(), set.Take("", h.proveSecondForSignOn, h.secondForSignOnAgain)),
		page("GET /sso/{con}/test/{test}", ui.SignedIn(), set.Show(h.showSignOnTest)),

		page("GET /forgot", front.Public(), set.Show(h.showForgot)),
		page("POST /forgot", front.Public(), set.Take("/forgot", h.forgot, h.showForgot)),
		page("GET /forgot/sent", front.Public(), set.Show(h.showSent)),
		page("GET /reset", front.Public(), set.Show(h.askResetCode)),
		page("POST /reset", front.Public(), set.Open("/reset", h.openReset, h.refusedReset)),
		page("POST /reset/password", front.Public(), set.Take("/reset", h.reset, h.openReset)),

		page("GET /confirm-email", front.Public(), set.Show(h.askConfirmCode)),
		page("POST /confirm-email", front.Optional(), set.Open("/confirm-email", h.openConfirm, h.refusedConfirm)),
		page("POST /confirm-email/now", ui.SignedIn(), set.Take("/confirm-email", h.confirmEmail, h.openConfirm)),
		page("GET /undo-email", front.Public(), set.Show(h.askUndoCode)),
		page("POST /undo-email", front.Public(), set.Open("/undo-email", h.openUndo, h.refusedUndo)),
		page("POST /undo-email/now", front.Public(), set.Take("/undo-email", h.undoEmail, h.openUndo)),

		page("GET /accept", front.Public(), set.Show(h.askInvitationCode)),
		page("POST /accept", front.Optional(), set.Open("/accept", h.openInvitation, h.refusedInvitation)),
		page("POST /accept/register", front.Optional(), set.Take("/accept", h.register, h.openInvitation)),
		page("POST /accept/join", front.Optional(), set.Take("/accept", h.join, h.openInvitation)),
		page("POST /accept/second", front.Public(), set.Take("/accept", h.joinSecond, h.joinSecondAgain)),
		page("POST /accept/second/other", front.Public(), set.Open("/accept", h.showJoinSecond, h.openInvitation)),

		page("GET /factors/reset", front.Public(), set.Show(h.askFactorCode)),
		page("POST /factors/reset", front.Public(), set.Open("/factors/reset", h.openFactorReset, h.refusedFactorReset)),
		page("POST /factors/reset/confirm", front.Public(), set.Take("/factors/reset", h.confirmFactorReset, h.openFactorReset)),

		page("GET "+securityPage, ui.SignedIn(), set.Show(h.showSecurity)),
		page("POST /account/security/totp", ui.SignedIn(), set.Open(securityPage, h.beginTOTP, h.showSecurity)),
		page("POST /account/security/totp/confirm", ui.SignedIn(), set.Take(securityPage, h.confirmTOTP, h.pendingTOTP)),
		page("POST /account/security/passkey", ui.SignedIn(), set.Open(securityPage, h.beginPasskey, h.showSecurity)),
		page("POST /account/security/passkey/finish", ui.SignedIn(), set.Take(securityPage, h.finishPasskey, h.pendingPasskey)),
		page("GET "+newCodesPage, ui.SignedIn(), set.Show(h.askNewCodes)),
		page("POST "+newCodesPage, ui.SignedIn(), set.Take(securityPage, h.makeRecoveryCodes, h.askNewCodes)),
		page("POST /account/security/rename", ui.SignedIn(), set.Take(securityPage, h.renameFactor, h.showSecurity)),
		page("GET "+removalPage+"{id}", ui.SignedIn(), set.Show(h.askRemoval)),
		page("POST "+removalPage+"{id}", ui.SignedIn(), set.Take(securityPage, h.removeFactor, h.askRemovalAgain)),
		page("POST /account/security/reset/refuse", ui.SignedIn(), set.Take(securityPage, h.keepFactors, h.showSecurity)),
		page("POST /account/security/browsers/forget", ui.SignedIn(), set.Take(securityPage, h.forgetBrowser, h.showSecurity)),
		page("POST /account/security/browsers/forget-all", ui.SignedIn(), set.Take(securityPage, h.forgetBrowsers, h.showSecurity)),
		page("POST /recovery-codes.txt", front.Public(), front.Raw(recoveryFile)),

		page("GET /account", ui.SignedIn(), set.Show(h.showAccount)),
		page("POST /account/name", ui.SignedIn(), set.Take(accountPage, h.rename, h.showAccount)),
		page("POST /account/email", ui.SignedIn(), set.Take(accountPage, h.changeEmail, h.showAccount)),
		page("POST /account/password", ui.SignedIn(), set.Take(securityPage, h.changePassword, h.showSecurity)),
		page("POST /account/sessions/end", ui.SignedIn(), set.Take(tabPath(sessionsTab), h.endSession, h.showAccount)),
		page("POST /account/sessions/end-others", ui.SignedIn(), set.Take(tabPath(sessionsTab), h.endOthers, h.showAccount)),
		page("GET /account/leave/{tenantId}", ui.SignedIn(), set.Show(h.showLeave)),
		page("POST /account/leave/{tenantId}", ui.SignedIn(), set.Take(tabPath(organisationsTab), h.leave, h.showLeave)),
		page("GET "+erasePage, ui.SignedIn(), set.Show(h.showErase)),
		page("POST "+erasePage, ui.SignedIn(), set.Take(erasePage, h.erase, h.showErase)),
		page("GET /.well-known/change-password", front.Optional(), set.Show(h.toPassword)),

		page("GET /step-up", ui.SignedIn(), set.Show(h.showStepUp)),
		page("POST /step-up", ui.SignedIn(), set.Take("/step-up", h.proveSession, h.showStepUp)),

		page("GET /closing", ui.SignedIn().WhileClosing(), set.Show(h.showClosing)),
		page("POST /closing/restore", ui.SignedIn().WhileClosing(), set.Take("/closing", h.restore, h.showClosing)),

		ui.Asset("passkey.js", "text/javascript; charset=utf-8", files),
		ui.Asset("code.js", "text/javascript; charset=utf-8", files),
	}...)
}
