package hosted

import (
	"bytes"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	accounts "github.com/doorward/doorward/app/account"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/signon"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
	"github.com/doorward/doorward/web/ui/uitest"
)

var (
	noon = uitest.Noon
	acme = doorward.User{
		ID: "usr_ann", Email: "ann.lee@acme.example", Name: "Ann Lee", Role: doorward.RoleAdmin, Status: doorward.UserActive,
		TenantID: "tnt_acme", TenantName: "Acme", TenantStatus: doorward.TenantActive, CreatedAt: noon.AddDate(0, -7, 0),
	}
	globex = doorward.User{
		ID: "usr_ann", Email: acme.Email, Role: doorward.RoleViewer, Status: doorward.UserActive,
		TenantID: "tnt_globex", TenantName: "Globex Internationale Handelsgesellschaft mbH & Co. KG", TenantStatus: doorward.TenantActive,
		CreatedAt: noon.AddDate(0, -1, 0),
	}
	initech = doorward.User{
		ID: "usr_ann", Email: acme.Email, Role: doorward.RoleUser, Status: doorward.UserSuspended,
		TenantID: "tnt_initech", TenantName: "Initech", TenantStatus: doorward.TenantActive, CreatedAt: noon.AddDate(-1, 0, 0),
	}
	ann   = doorward.Caller{Principal: doorward.PrincipalOf(acme, doorward.Session{ID: "ses_1"})}
	token = "3q2-7wEjRWeJq83vASNFZ4mrze8BI0VniavN7wEjRWc"
)

var (
	wordmark, wordmarkPNG = uitest.DrawLogo(512, 128)
	symbol, symbolPNG     = uitest.DrawLogo(128, 128)
	// withWordmark has a logo that includes the name, withSymbol one beside the name, and a colour that is
	// unreadable as text without adjustment; withColour has that colour and no logo.
	unbranded    = doorward.Tenant{Name: "Acme"}
	withWordmark = doorward.Tenant{Name: "Acme", Brand: doorward.Brand{Accent: "#d63a2f", Logo: wordmark}}
	withColour   = doorward.Tenant{Name: globex.TenantName, Brand: doorward.Brand{Accent: "#ffd400"}}
	withSymbol   = doorward.Tenant{Name: globex.TenantName, Brand: doorward.Brand{Accent: "#ffd400", Logo: symbol}}
)

func samples() []uitest.Sample {
	shown := invite.Shown{
		Invitation: doorward.Invitation{Email: "ben@globex.example", Role: doorward.RoleUser, TenantID: "tnt_acme"},
		TenantName: "Acme", Inviter: "Ann Lee",
	}
	moved := accounts.Shown{Old: acme.Email, New: "ann@globex.example", IsOwn: true}
	othersMove := accounts.Shown{Old: acme.Email, New: "ann@globex.example"}
	newcomer := invited{Shown: shown, Token: token, MinLength: 12, BannedWords: bannedWords(shown.Email, shown.TenantName), RoleWords: ui.DescribeRole(nil, shown.Role)}
	member, self, managed, replacing := newcomer, newcomer, newcomer, newcomer
	managed.IsManaged = true
	member.HasAccount, member.CallerEmail, replacing.CallerEmail = true, "ann.lee@acme.example", "ann.lee@acme.example"
	self.HasAccount, self.IsCaller, self.Inviter = true, true, ""
	refused := ui.Frame{
		Posted: true, Alert: true, Form: url.Values{"email": {"ann.lee@acme.example"}},
		Fault: "Address and password don’t match an account here. Check both and try again.",
	}
	faults := ui.Frame{Posted: true, Alert: true, Faults: map[string]string{
		"password": "The password needs at least 12 characters.", "confirmPassword": "This is not the same as above.",
	}}
	wrongCode := ui.Frame{Caller: ann, Posted: true, Alert: true, Faults: map[string]string{"code": "This code is not right."}}
	const returnAddress = "https://app.example.com/inbox/"
	return append([]uitest.Sample{
		{Name: "login", View: ui.View{Page: "login", Body: signingIn{}}, Frame: ui.Frame{Return: "/docs"}},
		{Name: "login-dropped", View: ui.View{Page: "login", Body: signingIn{}}, Frame: ui.Frame{Dropped: true}},
		{Name: "login-refused", View: ui.View{Page: "login", Body: signingIn{}}, Frame: refused},
		{Name: "login-signon", View: ui.View{Page: "login", Body: signingIn{SignsOn: true, SignOn: "/api/v2/auth/sso/con_5tqm7x3yh4n6rj7wd2c5tpae7k/start", Name: "Okta of Acme"}}, Frame: ui.Frame{Form: refused.Form}},
		{Name: "login-signon-refused", View: ui.View{Page: "login", Body: signingIn{SignsOn: true, SignOn: "/api/v2/auth/sso/con_5tqm7x3yh4n6rj7wd2c5tpae7k/start"}}, Frame: ui.Frame{Posted: true, Alert: true, Form: refused.Form, Fault: "Your organisation wants you to sign in with its own sign-on."}},
		{Name: "login-or-signon", View: ui.View{Page: "login", Body: signingIn{SignsOn: true}}},
		{Name: "login-own", View: ui.View{Page: "login", Body: signingIn{SignsOn: true, Own: true}}},
		{Name: "login-signed-out", View: ui.View{Page: "login", Body: signingIn{}, Done: "done.signed-out"}},
		{Name: "login-registered", View: ui.View{Page: "login", Body: signingIn{}, Done: "done.registered"}, Frame: ui.Frame{Form: refused.Form}},
		{Name: "tenants", View: ui.View{Page: "tenants", Body: tenants{acme.Email, acme.TenantID, []doorward.User{acme, globex}}}},
		{Name: "tenants-joined", View: ui.View{Page: "tenants", Done: "done.choose", Body: tenants{acme.Email, acme.TenantID, []doorward.User{acme, globex}}}, Frame: ui.Frame{Return: returnAddress}},
		{Name: "step-up", View: ui.View{Page: "step-up", Body: stepUp{ByPassword: true}}, Frame: ui.Frame{Caller: ann}},
		{Name: "step-up-code", View: ui.View{Page: "step-up", Body: stepUp{ByCode: true}}, Frame: ui.Frame{Caller: ann, Return: "/docs"}},
		{Name: "step-up-sso", View: ui.View{Page: "step-up", Scripts: passkeyScripts, Body: stepUp{ByCode: true, ByPassword: true, ByPasskey: true, BySSO: true}}, Frame: ui.Frame{Caller: ann, Return: "/docs"}},
		{Name: "step-up-done", View: ui.View{Page: "step-up", Body: stepUp{ByPassword: true}, Done: "done.proved"}, Frame: ui.Frame{Caller: ann}},
		{Name: "forgot", View: ui.View{Page: "forgot"}},
		{Name: "forgot-refused", View: ui.View{Page: "forgot"}, Frame: ui.Frame{Posted: true, Alert: true, Fault: "Too many mails. Try again in 60 minutes."}},
		{Name: "sent", View: ui.View{Page: "sent"}},
		{Name: "code-reset", View: askCode("reset")},
		{Name: "code-refused", View: askCode("reset"), Frame: ui.Frame{Posted: true, Alert: true, Faults: map[string]string{"token": "This code is not valid."}}},
		{Name: "code-accept", View: askCode("accept")},
		{Name: "reset", View: ui.View{Page: "reset", Body: resetForm{token, acme.Email, 12, bannedWords(acme.Email, "Acme")}}},
		{Name: "reset-refused", View: ui.View{Page: "reset", Body: resetForm{token, acme.Email, 12, bannedWords(acme.Email, "Acme")}}, Frame: faults},
		{Name: "code-confirm-email", View: askCode(confirmEmail)},
		{Name: "code-undo-email", View: askCode(undoEmail)},
		{Name: "confirm-email", View: ui.View{Page: confirmEmail, Body: confirming{moved, token, acme.Email}}, Frame: ui.Frame{Caller: ann}},
		{Name: "confirm-email-other", View: ui.View{Page: confirmEmail, Body: confirming{othersMove, token, "ben@globex.example"}}, Frame: ui.Frame{Caller: ann}},
		{Name: "confirm-email-nobody", View: ui.View{Page: confirmEmail, Body: confirming{othersMove, token, ""}}},
		{Name: "undo-email", View: ui.View{Page: undoEmail, Body: undoing{token, acme.Email}}},
		{Name: "accept-new", View: ui.View{Page: "accept", Body: newcomer, Tenant: unbranded}, Frame: ui.Frame{Return: returnAddress}},
		{Name: "accept-new-replacing", View: ui.View{Page: "accept", Body: replacing, Tenant: unbranded}},
		{Name: "accept-new-refused", View: ui.View{Page: "accept", Body: newcomer, Tenant: unbranded}, Frame: faults},
		{Name: "accept-new-typed", View: ui.View{Page: "accept", Body: newcomer, Tenant: unbranded}},
		{Name: "accept-brand", View: ui.View{Page: "accept", Body: newcomer, Tenant: withWordmark}},
		{Name: "accept-brand-symbol", View: ui.View{Page: "accept", Body: newcomer, Tenant: withSymbol}},
		{Name: "accept-member", View: ui.View{Page: "accept", Body: member, Tenant: unbranded}},
		{Name: "accept-managed", View: ui.View{Page: "accept", Body: managed, Tenant: unbranded}},
		{Name: "accept-self", View: ui.View{Page: "accept", Body: self, Tenant: unbranded}},
		{Name: "account", View: sampleAccount(profileTab), Frame: ui.Frame{Caller: ann}},
		{Name: "account-long", View: longAccount(), Frame: ui.Frame{Caller: long, Brand: front.Brand{Name: "Globex Internationale Handelsgesellschaft"}}},
		{Name: "account-affected", View: affected(sampleAccount(profileTab)), Frame: ui.Frame{Caller: ann, Posted: true, Alert: true, Fault: "An organisation that you are in doesn’t allow this address.", Form: url.Values{"email": {"ann@lee.example"}}}},
		{Name: "account-managed", View: managedAccount(), Frame: ui.Frame{Caller: ann}},
		{Name: "account-data-managed", View: managedData(), Frame: ui.Frame{Caller: ann}},
		{Name: "account-saved", View: saved(sampleAccount(profileTab)), Frame: ui.Frame{Caller: ann, Home: returnAddress}},
		{Name: "account-brand", View: branded(sampleAccount(profileTab)), Frame: ui.Frame{Caller: ann}},
		{Name: "account-sessions", View: sampleAccount(sessionsTab), Frame: ui.Frame{Caller: ann}},
		{Name: "account-organisations", View: sampleAccount(organisationsTab), Frame: ui.Frame{Caller: ann}},
		{Name: "account-data", View: sampleAccount(dataTab), Frame: ui.Frame{Caller: ann}},
		{Name: "second", View: ui.View{Page: "second", Body: secondStep{At: "/login/second", Email: acme.Email, App: true, Codes: true, RememberDays: 30}}, Frame: ui.Frame{Return: returnAddress}},
		{Name: "second-refused", View: ui.View{Page: "second", Body: secondStep{At: "/login/second", Email: acme.Email, App: true}}, Frame: ui.Frame{Alert: true, Fault: "This code is not right, or was used before."}},
		{Name: "second-closed", View: ui.View{Page: "second", Body: secondStep{At: "/login/second", Email: acme.Email, App: true, Codes: true}}, Frame: ui.Frame{Alert: true, Faults: map[string]string{"code": "Too many wrong codes were entered in a row."}}},
		{Name: "second-none", View: ui.View{Page: "second", Body: secondStep{At: "/login/second", Email: acme.Email}}},
		{Name: "second-recovery", View: ui.View{Page: "second", Body: secondStep{At: "/login/second", Email: acme.Email, App: true, Codes: true, Recovery: true}}},
		{Name: "second-accept", View: ui.View{Page: "second", Body: secondStep{Email: acme.Email, besideAnswer: besideAnswer{token, token}, At: "/accept/second", Other: "/accept/second/other", App: true, Codes: true}}},
		{Name: "second-accept-recovery", View: ui.View{Page: "second", Scripts: passkeyScripts, Body: secondStep{Email: acme.Email, besideAnswer: besideAnswer{token, token}, At: "/accept/second", Other: "/accept/second/other", App: true, Codes: true, Options: "{}", Recovery: true}}},
		{Name: "enrol", View: ui.View{Page: "enrol", Body: enrolling{Email: acme.Email}}},
		{Name: "enrol-passkey", View: ui.View{Page: "enrol", Body: enrolling{acme.Email, true}}},
		{Name: "passkey", View: passkeyView(factor.NewChallenge{Token: secret.New(), PublicKey: []byte(`{"challenge":"AAAA"}`)}, finishPasskey, securityPage)},
		{Name: "login-passkey", View: ui.View{Page: "login", Scripts: passkeyScripts, Body: signingIn{Passkeys: true, Autofill: true}}},
		{Name: "second-passkey", View: ui.View{Page: "second", Scripts: passkeyScripts, Body: secondStep{At: "/login/second", Email: acme.Email, Codes: true, Options: "{}"}}},
		{Name: "second-both", View: ui.View{Page: "second", Scripts: passkeyScripts, Body: secondStep{At: "/login/second", Email: acme.Email, App: true, Codes: true, Options: "{}", RememberDays: 30}}},
		{Name: "step-up-passkey", View: ui.View{Page: "step-up", Scripts: passkeyScripts, Body: stepUp{ByPasskey: true}}, Frame: ui.Frame{Caller: ann}},
		{Name: "step-up-recovery", View: ui.View{Page: "step-up", Body: stepUp{ByRecovery: true}}, Frame: ui.Frame{Caller: ann}},
		{Name: "totp", View: sampleTOTP()},
		{Name: "totp-refused", View: sampleTOTP(), Frame: wrongCode},
		{Name: "step-up-refused", View: ui.View{Page: "step-up", Body: stepUp{ByCode: true}}, Frame: wrongCode},
		{Name: "codes", View: ui.View{Page: "codes", Body: recovery{slices.Repeat([]string{"MZXW-6YTB-OI4D-Q2LT-NFZX-I5DF"}, 10), "/account/security"}}},
		{Name: "leave", View: ui.View{Page: "leave", Body: leaving{acme, true}}},
		{Name: "leave-prove", View: ui.View{Page: "leave", Body: leaving{acme, false}}, Frame: ui.Frame{Caller: ann}},
		{Name: "leave-refused", View: ui.View{Page: "leave", Body: leaving{acme, true}}, Frame: ui.Frame{Caller: ann, Posted: true, Alert: true, Fault: "The organisation needs an owner."}},
		{Name: "erase", View: ui.View{Page: "erase", Body: erasing{acme.Email, []doorward.User{acme, globex}, nil, true}}, Frame: ui.Frame{Caller: ann}},
		{Name: "erase-refused", View: ui.View{Page: "erase", Body: erasing{acme.Email, []doorward.User{acme}, nil, true}}, Frame: ui.Frame{Caller: ann, Alert: true, Faults: map[string]string{"confirm": "This is not the address of the account."}}},
		{Name: "erase-prove", View: ui.View{Page: "erase", Body: erasing{acme.Email, []doorward.User{acme}, nil, false}}, Frame: ui.Frame{Caller: ann}},
		{Name: "erase-kept", View: ui.View{Page: "erase", Body: erasing{acme.Email, []doorward.User{acme, globex}, []doorward.User{globex}, true}}, Frame: ui.Frame{Caller: ann}},
		{Name: "error", View: ui.View{Page: "error", Title: "error.title", Body: unavailable}, Frame: ui.Frame{RequestID: "req_7d2c5tpae7kq2m5x3yh4n6rj7w"}},
		{Name: "closing", View: ui.View{Page: "closing", Body: closing{unbranded, noon.AddDate(0, 0, 14), true}, Tenant: unbranded}},
	}, slices.Concat(rememberedSamples(), factorSamples(), endedSamples(), signOnSamples(), setupSamples())...)
}

func rememberedSamples() []uitest.Sample {
	return []uitest.Sample{
		{Name: "login-accounts", View: ui.View{Page: "login", Scripts: passkeyScripts, Body: signingIn{Passkeys: true, Autofill: true, Accounts: []remembered{
			{ID: "A", Email: acme.Email}, {ID: "B", Email: "rainer.maria.von.und.zu.hohenstein@a-very-long-name-of-a-company.example", ByPasskey: true},
		}}}},
		{Name: "login-chosen", View: ui.View{Page: "login", Scripts: passkeyScripts, Body: signingIn{Passkeys: true, PasskeyFirst: true, Chosen: true, Keep: true}}, Frame: ui.Frame{Form: url.Values{"email": {acme.Email}}}},
	}
}

func signOnSamples() []uitest.Sample {
	connection := doorward.Connection{ID: "con_1", Name: "Okta"}
	start := signOnStart{Shown: signon.Shown{Connection: connection, Tenant: withWordmark}, Start: "/api/v2/auth/sso/con_1/start"}
	unsolicited := start
	unsolicited.Unsolicited = true
	current := start
	current.Email = acme.Email
	waits := waiting{signon.Waiting{Connection: connection, Tenant: withWordmark, Email: acme.Email, Proves: true, Password: true, Passkey: true}, "", "/sso/con_1"}
	replaces := waiting{signon.Waiting{Connection: connection, Tenant: withWordmark, Email: acme.Email, Replaces: true}, "ben@globex.example", "/sso/con_1"}
	wrong := ui.Frame{Posted: true, Alert: true, Faults: map[string]string{"password": "This is not the password."}}
	failed := doorward.ConnectionTest{Status: doorward.TestFailed, Checks: []doorward.TestCheck{{Name: "aud", Seen: "another", Wanted: "doorward"}}}
	return []uitest.Sample{
		{Name: "sso", View: ui.View{Page: "sso", Tenant: withWordmark, Body: start}},
		{Name: "sso-unsolicited", View: ui.View{Page: "sso", Tenant: withWordmark, Body: unsolicited}},
		{Name: "sso-current", View: ui.View{Page: "sso", Tenant: withWordmark, Body: current}, Frame: ui.Frame{Caller: ann}},
		{Name: "ssocontinue", View: ui.View{Page: "ssocontinue", Scripts: passkeyScripts, Tenant: unbranded, Body: waits}},
		{Name: "ssocontinue-refused", View: ui.View{Page: "ssocontinue", Tenant: unbranded, Body: waits}, Frame: wrong},
		{Name: "ssocontinue-colour", View: ui.View{Page: "ssocontinue", Tenant: withColour, Body: waits}},
		{Name: "ssocontinue-replace", View: ui.View{Page: "ssocontinue", Tenant: unbranded, Body: replaces}, Frame: ui.Frame{Caller: ann}},
		{Name: "ssosecond", View: secondForSignOn("con_1", token, login.Asked{Methods: []string{doorward.ByCode, doorward.ByRecovery}}, false)},
		{Name: "ssosecond-passkey", View: secondForSignOn("con_1", token, login.Asked{Methods: []string{doorward.ByPasskey, doorward.ByRecovery}, PublicKey: []byte("{}")}, false)},
		{Name: "ssosecond-recovery", View: secondForSignOn("con_1", token, login.Asked{Methods: []string{doorward.ByCode, doorward.ByRecovery}}, true)},
		{Name: "ssotest-passed", View: testPage(doorward.ConnectionTest{Status: doorward.TestPassed}), Frame: ui.Frame{Caller: ann}},
		{Name: "ssotest-failed", View: testPage(failed), Frame: ui.Frame{Caller: ann}},
		{Name: "ssotest-waiting", View: testPage(doorward.ConnectionTest{Status: doorward.TestWaiting}), Frame: ui.Frame{Caller: ann}},
	}
}

func factorSamples() []uitest.Sample {
	unprovedForm := ui.Frame{Caller: ann, Posted: true, Alert: true, StepUp: true, Fault: "Prove your identity first."}
	return []uitest.Sample{
		{Name: "security", View: sampleSecurity(sampleFactors()), Frame: ui.Frame{Caller: ann}},
		{Name: "security-blocked", View: sampleSecurity(blockedFactors()), Frame: ui.Frame{Caller: ann}},
		{Name: "security-lost", View: sampleSecurity(lostFactors()), Frame: ui.Frame{Caller: ann}},
		{Name: "security-reset", View: withReset(sampleSecurity(sampleFactors())), Frame: ui.Frame{Caller: ann}},
		{Name: "security-unproved", View: unproved(sampleSecurity(sampleFactors())), Frame: unprovedForm},
		{Name: "security-managed", View: managedSecurity(), Frame: ui.Frame{Caller: ann}},
		{Name: "security-none", View: sampleSecurity(factor.OwnFactors{}), Frame: ui.Frame{Caller: ann}},
		{Name: "security-refused", View: changing(sampleSecurity(factor.OwnFactors{})), Frame: ui.Frame{Caller: ann, Posted: true, Alert: true, Faults: map[string]string{"currentPassword": "This is not the password.", "password": "The password needs at least 12 characters."}}},
		{Name: "factorremove", View: ui.View{Page: "factorremove", Body: removal{blockedFactors().Factors[1], false, true}}, Frame: ui.Frame{Caller: ann}},
		{Name: "factorremove-only", View: ui.View{Page: "factorremove", Body: removal{sampleFactors().Factors[0], true, true}}, Frame: ui.Frame{Caller: ann, Posted: true, Alert: true, Fault: "One of your organisations demands a second factor."}},
		{Name: "factorremove-prove", View: ui.View{Page: "factorremove", Body: removal{sampleFactors().Factors[0], false, false}}, Frame: ui.Frame{Caller: ann}},
		{Name: "newcodes", View: ui.View{Page: "newcodes", Body: newCodes{true}}, Frame: ui.Frame{Caller: ann}},
		{Name: "newcodes-prove", View: ui.View{Page: "newcodes", Body: newCodes{false}}, Frame: ui.Frame{Caller: ann}},
		{Name: "factorreset", View: ui.View{Page: "factorreset", Body: factorReset{token, acme.Email}}},
		{Name: "code-factorreset", View: factorCodePage()},
	}
}

// unavailable is the content of the error page for 503.
var unavailable = ui.ErrorPage{
	Title: "One moment, please", Text: "We can’t answer right now. Load the page again in 1 second.", Again: true, Support: true,
}

func endedSamples() (all []uitest.Sample) {
	for code, next := range map[doorward.Code]string{
		doorward.CodeResetExpired: "/forgot", doorward.CodeResetUsed: "/forgot",
		doorward.CodeChallengeOver:  "/login",
		doorward.CodeInvitationUsed: "/login", doorward.CodeAlreadyMember: "/login",
		doorward.CodeInvitationExpired: "", doorward.CodeInvitationRevoked: "", doorward.CodeTenantFrozen: "", doorward.CodeTenantClosing: "",
		doorward.CodeSetupLinkTaken: "", doorward.CodeSetupLinkOver: "",
	} {
		all = append(all, uitest.Sample{Name: "ended-" + string(code), View: endedPage(code, next)})
	}
	refusals := map[string][]doorward.Code{
		confirmEmail: {doorward.CodeEmailChangeOver, doorward.CodeAccountExists, doorward.CodeMembershipsAffected, doorward.CodeLastOwner},
		undoEmail:    {doorward.CodeEmailChangeOver, doorward.CodeAccountExists},
	}
	for words, codes := range refusals {
		for _, code := range codes {
			all = append(all, uitest.Sample{Name: "ended-" + words + "-" + string(code), View: endedEmailChange(code, words)})
		}
	}
	return all
}

func sampleTOTP() ui.View {
	v, _ := enrolmentView(factor.Enrolment{ID: "mfa_1", Seed: []byte("12345678901234567890"), URI: "otpauth://totp/Acme:ann?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"}, confirmTOTP, "QR")
	return v
}

func sampleFactors() factor.OwnFactors {
	used := noon.Add(-time.Hour)
	return factor.OwnFactors{RecoveryCodes: 9, Factors: []doorward.Factor{
		{ID: "mfa_1", Kind: doorward.TOTP, Name: "Authenticator app", CreatedAt: noon.AddDate(0, -1, 0), LastUsedAt: &used},
		{ID: "mfa_2", Kind: doorward.Passkey, Name: "Telefon", CreatedAt: noon, Synced: true},
	}, Remembered: []factor.Browser{
		{ID: "00f1", Current: true, ProvedAt: noon.Add(-time.Hour), Until: noon.AddDate(0, 0, 30), IP: "203.0.113.9", UserAgent: firefox},
		{ID: "00f2", ProvedAt: noon.AddDate(0, 0, -9), Until: noon.AddDate(0, 0, 21)},
	}}
}

// blockedFactors are the sample factors, with a name each, after Doorward has disabled both.
func blockedFactors() factor.OwnFactors {
	own, since := sampleFactors(), noon.Add(-time.Hour)
	own.Factors[0].Name = "Tablet"
	for i := range own.Factors {
		own.Factors[i].DisabledAt = &since
	}
	return own
}

// lostFactors are the sample factors after the master key was lost.
func lostFactors() factor.OwnFactors {
	own, since := sampleFactors(), noon.Add(-time.Hour)
	own.Factors[0].DisabledAt, own.Factors[0].IsLost = &since, true
	return own
}

// sampleTabs are the tabs of an account, of which one is shown.
func sampleTabs(tab string) ui.Tabs {
	return ui.Tabs{Current: tab, Items: []ui.Tab{
		{Name: profileTab, Link: accountPage},
		{Name: sessionsTab, Link: tabPath(sessionsTab)},
		{Name: securityTab, Link: securityPage},
		{Name: organisationsTab, Link: tabPath(organisationsTab)},
		{Name: dataTab, Link: tabPath(dataTab)},
	}}
}

func sampleSecurity(own factor.OwnFactors) ui.View {
	s := newSecurity(ann, []doorward.User{acme, globex}, own)
	s.User.Factors = len(own.Factors)
	s.Tabs, s.CanAddPasskey, s.Proved, s.MinLength = sampleTabs(securityTab), true, true, 12
	return ui.View{Page: "security", Wide: true, Body: s}
}

// withReset adds a reset of the factors that one of two tenants has asked for.
func withReset(v ui.View) ui.View {
	s := v.Body.(security)
	s.Reset = doorward.FactorReset{Given: []doorward.User{acme}, Missing: []doorward.User{globex}}
	v.Body = s
	return v
}

func changing(v ui.View) ui.View {
	s := v.Body.(security)
	s.ChangesPassword = true
	v.Body = s
	return v
}

// managedSecurity and managedAccount are the pages of somebody whose account the tenant's sign-on has made.
func managedSecurity() ui.View {
	v := sampleSecurity(sampleFactors())
	s := v.Body.(security)
	s.Managed, s.Proved = true, false
	v.Body = s
	return v
}

func managedAccount() ui.View {
	v := sampleAccount(profileTab)
	a := v.Body.(account)
	a.Managed = true
	v.Body = a
	return v
}

func managedData() ui.View {
	v := sampleAccount(dataTab)
	a := v.Body.(account)
	a.Managed, a.KeptBy = true, "data.erase.managed"
	v.Body = a
	return v
}

func unproved(v ui.View) ui.View {
	s := v.Body.(security)
	s.Proved = false
	v.Body = s
	return v
}

const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0"

// sampleRecent has an event of every text.
func sampleRecent() []recentEvent {
	var all []accounts.Recent
	for action, details := range map[doorward.Action][]string{
		doorward.SessionOpen: {""}, doorward.SessionStepUp: {""}, doorward.PasswordChange: {""}, doorward.PasswordReset: {""},
		doorward.AccountEmail: {"", accounts.Confirmed, accounts.Undone}, doorward.MFARefuse: {""}, doorward.MFAClone: {""}, doorward.MasterKeyReplace: {""}, doorward.MFAKeep: {""}, doorward.MFARecover: {"", accounts.Codes},
		doorward.MFAEnrol:  {"", string(doorward.TOTP), string(doorward.Passkey), accounts.Renamed, accounts.Codes},
		doorward.MFARemove: {"", string(doorward.TOTP), string(doorward.Passkey)},
	} {
		for _, detail := range details {
			all = append(all, accounts.Recent{At: noon.Add(-time.Duration(len(all)) * time.Hour), Action: action, Variant: detail, Times: 1 + len(all)%2, IP: "2001:db8:4a1c:12::7f", UserAgent: firefox})
		}
	}
	all = append(all, accounts.Recent{At: noon.AddDate(0, 0, -3), Action: doorward.MFAReset, Times: 1, ByOthers: true})
	return describeAll(all)
}

// Every action that the feature returns has a text in the samples.
func TestEveryRecentEventHasAText(t *testing.T) {
	sampled := map[doorward.Action]bool{}
	for _, e := range sampleRecent() {
		sampled[e.Action] = true
	}
	for _, action := range accounts.RecentActions {
		if !sampled[action] {
			t.Errorf("%s is in no sample: give it a text and a sample", action)
		}
	}
}

func sampleAccount(tab string) ui.View {
	memberships := []doorward.User{acme, globex, initech}
	signedIn := acme
	signedIn.Factors = 2
	a := account{ownPage: ownPage{signedIn, sampleTabs(tab)}, Tenants: tenantRows(ann, memberships), Exports: true, Sessions: sampleSessions(memberships), HasOthers: true, Recent: sampleRecent()}
	return ui.View{Page: "account", Wide: true, Tenant: unbranded, Body: a}
}

var (
	longMember = doorward.User{ID: "usr_long", Email: strings.Repeat("maximiliane.", 9) + "lang@verwaltung.globex-internationale.example", Name: strings.Repeat("Maximiliane ", 7) + "Freifrau", TenantID: "tnt_globex", TenantName: globex.TenantName}
	long       = doorward.Caller{Principal: doorward.PrincipalOf(longMember, doorward.Session{ID: "ses_1"})}
)

func longAccount() ui.View {
	return ui.View{Page: "account", Wide: true, Body: account{ownPage: ownPage{longMember, sampleTabs(profileTab)}}}
}

func affected(v ui.View) ui.View {
	a := v.Body.(account)
	a.Affected = []doorward.TenantName{{ID: acme.TenantID, Name: acme.TenantName}, {ID: globex.TenantID, Name: globex.TenantName}}
	v.Body = a
	return v
}

func saved(v ui.View) ui.View {
	v.Done = "done.name"
	return v
}

func branded(v ui.View) ui.View {
	v.Tenant = withWordmark
	return v
}

func sampleSessions(memberships []doorward.User) []ui.SessionRow {
	connections := map[doorward.Issuer]string{"con_acme": "Okta of Acme"}
	return sessionRows(ann, memberships, connections, []doorward.Session{
		{ID: "ses_2", TenantID: "tnt_globex", CreatedAt: noon.Add(-26 * time.Hour), LastSeenAt: noon.Add(-3 * time.Hour), IP: "2001:db8:4a1c:12::7f", UserAgent: "Mozilla/5.0 (iPhone) Version/18.0 Mobile Safari/604.1", NewBrowser: true},
		{ID: "ses_1", TenantID: "tnt_acme", CreatedAt: noon.Add(-time.Hour), LastSeenAt: noon, IP: "203.0.113.9", UserAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0"},
		{
			ID: "ses_4", TenantID: "tnt_acme", CreatedAt: noon.Add(-5 * time.Hour), LastSeenAt: noon.Add(-4 * time.Hour), IP: "203.0.113.9", UserAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0",
			Assurance: doorward.Assurance{Issuer: "con_acme"},
		},
		{ID: "ses_3", TenantID: "tnt_acme", CreatedAt: noon.Add(-9 * 24 * time.Hour), LastSeenAt: noon.Add(-8 * 24 * time.Hour), IP: "203.0.113.9", UserAgent: ""},
	})
}

// TestPagesRender renders every page with canned data, in every language, without a
// server. With -render it keeps them.
func TestPagesRender(t *testing.T) {
	files := map[string][]byte{wordmark.Path(): wordmarkPNG, symbol.Path(): symbolPNG}
	for _, accent := range []string{withWordmark.Brand.Accent, withSymbol.Brand.Accent} {
		files[uitest.AccentFile(accent)] = []byte(ui.AccentSheet(accent))
	}
	uitest.RequireEachTemplate(t, "../ui/html", samples())
	uitest.Pages(t, set, "hosted", samples(), files)
}

// TestPasswordFields: a password is hidden and may be pasted or filled in by a
// password manager, whose attributes say which password is meant; there is no hint
// and no secret question. Address fields have such attributes, too; a hidden one is
// for the password manager only.
func TestPasswordFields(t *testing.T) {
	input := regexp.MustCompile(`<input [^>]*>`)
	wants := map[string]string{
		`name="password"`: ` type="password"`, `name="confirmPassword"`: ` type="password"`, `name="currentPassword"`: ` type="password"`, `name="email"`: ` type="email"`,
	}
	seen := map[string]int{}
	for _, s := range samples() {
		var page bytes.Buffer
		if err := set.Render(&page, uitest.FrameOf(s, ui.Languages[0])); err != nil {
			t.Fatal(err)
		}
		for _, field := range input.FindAllString(page.String(), -1) {
			for name, kind := range wants {
				if !strings.Contains(field, name) || strings.Contains(field, `type="hidden"`) || strings.Contains(field, "readonly") {
					continue
				}
				seen[name]++
				if !strings.Contains(field, kind) || !strings.Contains(field, ` autocomplete="`) || strings.Contains(field, ` autocomplete="off"`) {
					t.Errorf("%s: %s doesn't work with password managers", s.Name, field)
				}
			}
		}
		if strings.Contains(page.String(), "onpaste") {
			t.Errorf("%s hinders pasting", s.Name)
		}
	}
	if len(seen) < len(wants) {
		t.Errorf("the samples have only the fields %v", seen)
	}
}
