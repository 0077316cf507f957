package console

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/overview"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/app/webhook"
	"github.com/doorward/doorward/internal/linediff"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/web/ui"
	"github.com/doorward/doorward/web/ui/uitest"
)

var (
	noon = uitest.Noon
	acme = doorward.Tenant{ID: "tnt_acme", Name: "Acme", Status: doorward.TenantActive, CreatedAt: noon.AddDate(-1, 0, 0)}
	// members has each role, the highest first; the last is suspended and has a long name.
	members = []doorward.User{
		userOf("ann", "Ann Lee", doorward.RoleOwner, doorward.UserActive),
		userOf("ben", "", doorward.RoleAdmin, doorward.UserActive),
		userOf("chen", "陈小明", doorward.RoleUser, doorward.UserActive),
		userOf("dalia", "داليا", doorward.RoleUser, doorward.UserActive),
		userOf("maximiliane-von-und-zu-hohenstein", "Maximiliane Freifrau von und zu Hohenstein-Sigmaringen", longRole, doorward.UserSuspended),
	}
	basePage      = pageData{Tenant: acme}
	logo, logoPNG = uitest.DrawLogo(512, 128)
	// branded has a logo that includes the name, and a colour of its own.
	branded = pageData{Tenant: doorward.Tenant{ID: acme.ID, Name: acme.Name, Status: acme.Status, Brand: doorward.Brand{Accent: "#d63a2f", Logo: logo}}}
	owner   = ui.Frame{Caller: doorward.Caller{Principal: doorward.PrincipalOf(members[0], doorward.Session{ID: "ses_1"})}}
)

// longRole is as long as the name of a role can be.
const longRole doorward.Role = "A_ROLE_WITH_THE_LONGEST_NAME_YET"

func userOf(id, name string, role doorward.Role, status doorward.UserStatus) doorward.User {
	seen := noon.Add(-time.Hour)
	return doorward.User{
		ID: "usr_" + id, Email: id + "@acme.example", Name: name, Role: role, Status: status, TenantID: acme.ID,
		TenantName: acme.Name, TenantStatus: acme.Status, CreatedAt: noon.AddDate(0, -3, 0), LastLoginAt: &seen,
	}
}

func findSamples() []uitest.Sample {
	view := func(body findPage) ui.View { return ui.View{Page: "find", Wide: true, Body: body} }
	return []uitest.Sample{
		{Name: "find", View: view(sampledResults()), Frame: owner},
		{Name: "find-empty", View: view(findPage{pageData: basePage, Groups: sampledResults().Groups[:1]}), Frame: owner},
		{Name: "find-none", View: view(findPage{pageData: basePage, Query: "nothing of that name"}), Frame: owner},
	}
}

// sampledResults has a result of each kind, and long names.
func sampledResults() findPage {
	long := members[4]
	return findPage{basePage, "an", []foundGroup{
		{Name: "pages", Items: []found{{Path: "/console", Name: "Overview", Icon: icons["overview"]}, {Path: "/console/people", Name: "People", Icon: icons["people"]}}},
		{Name: "people", More: listOf(peoplePath, "an"), Items: []found{
			{Path: "/console/people/usr_ann", Name: "Ann Lee", Detail: "ann@acme.example", Person: &ui.Avatar{Name: "Ann Lee", Email: "ann@acme.example", ID: "usr_ann"}},
			{Path: "/console/people/" + long.ID, Name: long.Name, Detail: long.Email, State: "status.suspended", Person: &ui.Avatar{Name: long.Name, Email: long.Email, ID: long.ID}},
		}},
		{Name: "keys", Items: []found{{Path: "/console/keys/key_1", Name: strings.Repeat("nightly export of the warehouse ", 4), State: "status.revoked"}}},
		{Name: "webhooks", Items: []found{{Path: "/console/webhooks/whk_1", Name: "hooks.example.com", Detail: "https://hooks.example.com/" + strings.Repeat("orders-and-invoices/", 9), State: "status.failing"}}},
		{Name: "connections", Items: []found{{Path: "/console/sso/connections/con_1", Name: "Annual Okta", Detail: "Okta", State: "sso.state.draft"}}},
		{Name: "domains", Items: []found{{Path: "/console/sso/domains/dom_1", Name: "annual.example", State: "sso.proof.lapsed"}}},
		{Name: "roles", Items: []found{{Path: "/console/roles/rol_1", Name: "CHIEF-OF-INTERNATIONAL-ANNUAL-AUDITS", Detail: "Reads everything that annual audits need, and nothing else."}}},
	}}
}

func sampledMembers() (all []member) {
	for i, u := range members {
		all = append(all, member{u, i > 0, i > 0 && u.Factors > 0})
	}
	return all
}

// factorDue is a demand of the tenant.
var factorDue = &user.FactorDue{Tenant: "Acme", At: noon.AddDate(0, 0, 7)}

// due returns the view for somebody whom the demand concerns.
func due(v ui.View) ui.View {
	v.FactorDue = factorDue
	return v
}

// concernedSamples are pages with a message above them, one of them inside the page of an error.
func concernedSamples(people ui.View) []uitest.Sample {
	failed := failure{basePage, ui.ErrorPage{Title: uitest.Said("error.forbidden.title"), Text: uitest.Said("error.forbidden.text"), Home: true}}
	return []uitest.Sample{
		{Name: "failure", View: due(ui.View{Page: "error", Body: failed}), Frame: owner},
		{Name: "people-due", View: due(people), Frame: owner},
	}
}

// openedSamples are pages on which a person has chosen or opened something.
func openedSamples(listed ui.View) []uitest.Sample {
	wide := func(page string, body any) ui.View { return ui.View{Page: page, Wide: true, Body: body} }
	row := func(n int) string { return `name="id" value="` + members[n].ID + `"` }
	filtered, period := listed, sampledTrail()
	body, _ := listed.Body.(people)
	body.Filter = filters(url.Values{"q": {"acme"}, "role": {string(doorward.RoleUser)}, "sort": {"-lastLoginAt"}})
	filtered.Body = body
	period.Filter = filters(url.Values{"from": {"2026-11-18"}, "to": {"2026-11-21T12:00:00"}, "outcome": {"refused"}})
	period.Bars, period.Days = period.Bars[26:], period.Days[1:]
	searching := wide("overview", calm())
	searching.Connects = true
	return []uitest.Sample{
		{Name: "people-chosen", View: listed, Frame: owner, Opened: [][2]string{{row(1), row(1) + " checked"}, {row(2), row(2) + " checked"}}},
		{Name: "people-role", View: listed, Frame: owner, Opened: [][2]string{{row(1), row(1) + " checked"}, {`<details class="up-menu"`, `<details class="up-menu" open`}}},
		{Name: "people-filtered", View: filtered, Frame: owner},
		sampledManyRoles(),
		{Name: "audit-period", View: wide("audit", trail{pageData: basePage, eventTable: period, Actions: []doorward.Action{doorward.SessionOpen, doorward.UserInvite}, Export: "?format=spreadsheet", Presets: presets(period.Filter, noon)}), Frame: owner},
		{Name: "palette", View: searching, Frame: owner},
	}
}

// webhookSamples are the pages of webhooks.
func webhookSamples() []uitest.Sample {
	wide := func(page string, body any) ui.View { return ui.View{Page: page, Wide: true, Body: body} }
	return []uitest.Sample{
		{Name: "webhooks", View: wide("webhooks", endpoints{pageData: basePage, Items: sampledHooks()}), Frame: owner},
		{Name: "webhooks-none", View: wide("webhooks", endpoints{pageData: basePage}), Frame: owner},
		{Name: "webhook", View: sampledHookPage(0, "deliveries"), Frame: owner},
		{Name: "webhook-replay", View: sampledHookPage(0, "replay"), Frame: owner},
		{Name: "webhook-signing", View: sampledHookPage(0, "signing"), Frame: owner},
		{Name: "webhook-activity", View: sampledHookPage(2, "activity"), Frame: owner},
		{Name: "webhook-settings", View: sampledHookPage(1, "settings"), Frame: owner},
		{Name: "webhook-failing", View: sampledHookPage(1, "deliveries"), Frame: owner},
		{Name: "webhook-unreliable", View: sampledHookPage(3, "deliveries"), Frame: owner},
		{Name: "webhook-disabled", View: sampledHookPage(2, "deliveries"), Frame: owner},
		{Name: "webhook-keylost", View: withLostKey(sampledHookPage(2, "signing")), Frame: owner},
		{Name: "webhooknew", View: wide("webhooknew", newWebhook{pageData: basePage, Events: eventChoicesOf([]string{"user.*", "invitation.accept"})}), Frame: owner},
		{Name: "webhooknew-refused", View: wide("webhooknew", newWebhook{pageData: basePage, Events: eventChoicesOf(nil)}), Frame: refusedWith("url.address_refused", "events.required")},
		{Name: "webhooksecret", View: ui.View{Page: "webhooksecret", Scripts: []string{"secret.js"}, Body: webhookSecret{pageData: basePage, Hook: sampledHooks()[0], Secret: "whsec_" + strings.Repeat("q83vEjRW", 5) + "q80=", Rotated: true}}, Frame: owner},
		{Name: "webhookact", View: ui.View{Page: "webhookact", Title: "hooks.delete.title", Body: webhookQuestion{pageData: basePage, Hook: sampledHooks()[0], Act: "delete", Danger: true, Waiting: 12}}, Frame: owner},
		{Name: "webhookdelivery", View: wide("webhookdelivery", sampledDelivery()), Frame: owner},
	}
}

// sampledChoice has all roles, none of them chosen.
func sampledChoice(roles []doorward.Role) (all []roleChoice) {
	for _, role := range roles {
		all = append(all, roleChoice{role, false})
	}
	return all
}

// middlePage is neither the first nor the last page of a list.
func middlePage(s sorting) pager {
	return pager{Filter: filters(url.Values{}), sorting: s, First: "?", Prev: "?before=prev", Next: "?cursor=next", From: 51, To: 100, Total: 163}
}

func policySamples() []uitest.Sample {
	wide := func(page string, body any) ui.View { return ui.View{Page: page, Wide: true, Body: body} }
	return []uitest.Sample{
		{Name: "policy", View: sampledPolicy(), Frame: owner},
		{Name: "policy-observes", View: sampledObservingPolicy(), Frame: owner},
		{Name: "policy-none", View: wide("policy", policyPage{pageData: basePage, Examples: policyExampleNames, Modes: policyModes, Mode: policy.Enforces, Minutes: "10", TimeZone: "Europe/Berlin", MaxMinutes: 60, Types: "entity Role;"}), Frame: owner},
		{Name: "policy-refused", View: sampledPolicyFaults(), Frame: refusedWith()},
		{Name: "policy-planned", View: sampledPlan(), Frame: owner},
		{Name: "policyversions", View: wide("policyversions", policyVersions{basePage, middlePage(sorting{}), sampledPolicyVersions()}), Frame: owner},
		{Name: "policyversion", View: sampledPolicyVersion("policyversion"), Frame: owner},
		{Name: "policyrestore", View: sampledPolicyVersion("policyrestore"), Frame: owner},
		{Name: "explain", View: sampledExplanation(policy.Explanation{Role: "ADMIN", GrantedBy: []doorward.Role{"ADMIN"}, Because: []policy.Cause{{Kind: policy.ByPolicy, ID: "office-hours", Line: 3, Reason: "People are invited between 8 and 18 o'clock."}}}), Frame: owner},
		{Name: "explain-allowed", View: sampledExplanation(policy.Explanation{Allowed: true, Role: "ADMIN", GrantedBy: []doorward.Role{"ADMIN"}, Because: []policy.Cause{{Kind: policy.ByRole, ID: "ADMIN"}, {Kind: policy.ByKey, ID: "key_1"}}}), Frame: owner},
	}
}

func samples() []uitest.Sample {
	viewer := ui.Frame{Caller: doorward.Caller{}.As(userOf("eve", "", doorward.RoleViewer, doorward.UserActive))}
	wide := func(page string, body any) ui.View { return ui.View{Page: page, Wide: true, Body: body} }
	suspended := sampledPerson("profile")
	suspended.User.Status = doorward.UserSuspended
	saved := wide("person", suspended)
	saved.Done = "done.suspend"
	inviting := owner
	inviting.Form = url.Values{"role": {string(doorward.RoleUser)}}
	refused := refusedWith("name.required", "allowedEmailDomains.invalid", "accent.invalid", "logo.invalid")
	refusedForm := refused
	refusedForm.Form = url.Values{"name": {""}, "invitationDays": {"30"}, "keepEventsDays": {"0"}, "allowedEmailDomains": {"acme,example"}}
	conflicting := owner
	conflicting.Form = url.Values{"name": {"Acme of mine"}, "invitationDays": {"30"}, "keepEventsDays": {"0"}, "allowedEmailDomains": {"acme.example\nacme.test"}}
	naming := owner
	naming.Form = url.Values{"owner": {members[0].Email}}
	editing := owner
	editing.Form = url.Values{"roleName": {string(sampledRoles()[4].Name)}, "about": {sampledRoles()[4].About}}
	tooSoon := refusedWith()
	tooSoon.Fault = uitest.Said("notice.invitation_not_pending")
	revoked := sampledInvitations()[0]
	revoked.State = doorward.InvitationRevoked
	listed := wide("people", people{basePage, middlePage(peopleSorting), highestFirst(nil), sampledMembers(), "/api/v2/users?format=spreadsheet", sampledChoice(highestFirst(nil))})
	return slices.Concat(importSamples(), concernedSamples(listed), openedSamples(listed), webhookSamples(), policySamples(), operatorSamples(), []uitest.Sample{
		{Name: "overview", View: wide("overview", sampledOverview()), Frame: owner},
		{Name: "overview-viewer", View: wide("overview", overviewPage{pageData: basePage, Figures: overview.Tenant{People: 5213}, Roles: sampledOverview().Roles}), Frame: viewer},
		{Name: "overview-attention", View: wide("overview", withAttention(calm())), Frame: owner},
		{Name: "people", View: listed, Frame: owner},
		{Name: "overview-first", View: wide("overview", overviewPage{pageData: basePage, Figures: overview.Tenant{People: 1}, Roles: roleMeters("", []overview.Role{{Role: doorward.RoleOwner, People: 1}, {Role: doorward.RoleUser}}), Days: 30, Watches: true, Chart: signInChart("", nil, noon, 30), Steps: []step{{"factor", "/account/security", true}, {"invite", "/console/invitations/new", false}}}), Frame: owner},
		{Name: "overview-switcher", View: wide("overview", withData(calm(), pageData{Tenant: acme, Others: members[3:]})), Frame: owner},
		{Name: "overview-brand", View: wide("overview", withData(sampledOverview(), branded)), Frame: owner},
		{Name: "people-none", View: wide("people", people{pageData: basePage, pager: pager{Filter: filters(url.Values{"q": {"nobody"}}), sorting: peopleSorting}, Roles: highestFirst(nil)}), Frame: owner},
		{Name: "person", View: wide("person", sampledPerson("profile")), Frame: owner},
		{Name: "person-sessions", View: wide("person", sampledPerson("sessions")), Frame: owner},
		{Name: "person-directory", View: wide("person", sampledPerson("directory")), Frame: owner},
		{Name: "person-security", View: wide("person", withWord(sampledPerson("security"))), Frame: owner},
		{Name: "person-unusable", View: wide("person", withUnusable(sampledPerson("security"))), Frame: owner},
		{Name: "person-activity", View: wide("person", sampledPerson("activity")), Frame: owner},
		{Name: "person-kept", View: wide("person", withKeptDays(sampledPerson("activity"))), Frame: owner},
		{Name: "person-viewer", View: wide("person", person{pageData: basePage, User: members[0], DisplayName: members[0].Name, Tabs: onTab("profile", "profile")}), Frame: viewer},
		{Name: "person-saved", View: saved, Frame: owner},
		{Name: "invitations", View: wide("invitations", invitations{basePage, middlePage(invitationSorting), invitationStates, mailStates, nil, sampledInvitations(), "/api/v2/invitations?format=spreadsheet"}), Frame: owner},
		{Name: "invitation", View: ui.View{Page: "invitation", Wide: true, Body: invitation{pageData: basePage, Invitation: sampledInvitations()[0], Inviter: "Ann Lee"}}, Frame: owner},
		{Name: "invitation-revoked", View: ui.View{Page: "invitation", Wide: true, Done: "done.revoked", Body: invitation{pageData: basePage, Invitation: revoked, InviterLeft: true}}, Frame: owner},
		{Name: "invitation-refused", View: ui.View{Page: "invitation", Wide: true, Body: invitation{pageData: basePage, Invitation: sampledInvitations()[0], Inviter: "Ann Lee"}}, Frame: tooSoon},
		{Name: "chosen", View: ui.View{Page: "chosen", Title: "chosen.suspend.title", Body: chosen{pageData: basePage, Path: peoplePath, Act: "suspend", Rows: sampledRows()}}, Frame: owner},
		{Name: "outcomes", View: ui.View{Page: "outcomes", Body: chosen{pageData: basePage, Path: peoplePath, Act: "suspend", Rows: sampledRows()}}, Frame: owner},
		{Name: "invite-file", View: wide("invite", newInvitation{pageData: basePage, Tabs: onTab("file", "typed", "file"), Roles: doorward.Roles, Locales: ui.Languages, MaxDays: 30, Days: 7}), Frame: inviting},
		{Name: "invite", View: wide("invite", newInvitation{pageData: basePage, Tabs: onTab("typed", "typed", "file"), Roles: doorward.Roles, Locales: ui.Languages, MaxDays: 30, Days: 7}), Frame: inviting},
		{Name: "preview", View: wide("preview", previewPage{newInvitation: newInvitation{pageData: basePage, Roles: doorward.Roles, Locales: ui.Languages, MaxDays: 30, Days: 7}, Sent: 3, Faults: 1, Rows: []draft{{Email: "ann@", Name: "Ann", Role: "USER", Number: 1, FaultKey: "left.email.invalid"}}}), Frame: inviting},
		{Name: "audit", View: wide("audit", trail{pageData: basePage, eventTable: sampledTrail(), Actions: []doorward.Action{doorward.SessionOpen, doorward.UserInvite}, Export: "?format=spreadsheet", Presets: presets(nil, noon)}), Frame: owner},
		{Name: "audit-open", View: wide("audit", trail{pageData: basePage, eventTable: withOpen(sampledTrail()), Actions: []doorward.Action{doorward.SessionOpen, doorward.UserInvite}, Export: "?format=spreadsheet", Presets: presets(nil, noon)}), Frame: owner},
		{Name: "audit-none", View: wide("audit", trail{pageData: basePage, eventTable: eventTable{pager: pager{Filter: filters(url.Values{"request": {"req_none"}, "ip": {"2001:db8::7f"}})}}, Export: "?format=spreadsheet", Presets: presets(filters(url.Values{"request": {"req_none"}}), noon)}), Frame: owner},
		{Name: "operatorlink", View: ui.View{Page: "operatorlink"}},
		{Name: "operatorlink-over", View: ui.View{Page: "operatorlink", Note: "operatorlink.over"}},
		{Name: "operatorlink-refused", View: ui.View{Page: "operatorlink"}, Frame: ui.Frame{Alert: true, Fault: uitest.Said("notice.operatorlink.invalid_code")}},
		{Name: "settings", View: wide("settings", sampledSettings("general")), Frame: owner},
		{Name: "settings-sessions", View: wide("settings", sampledSettings("sessions")), Frame: owner},
		{Name: "settings-factors", View: wide("settings", sampledSettings("factors")), Frame: owner},
		{Name: "settings-appearance", View: wide("settings", sampledSettings("appearance")), Frame: refused},
		{Name: "settings-danger", View: wide("settings", sampledSettings("danger")), Frame: owner},
		{Name: "settings-refused", View: wide("settings", sampledSettings("general")), Frame: refusedForm},
		{Name: "settings-brand", View: wide("settings", sampledBrandSettings()), Frame: owner},
		{Name: "settings-viewer", View: wide("settings", sampledSettings("general")), Frame: viewer},
		{Name: "settings-conflict", View: wide("settings", sampledConflict()), Frame: conflicting},
		{Name: "demand", View: ui.View{Page: "demand", Body: sampledDemand()}, Frame: owner},
		{Name: "reset-factors", View: ui.View{Page: "act", Title: "act.reset-factors.title", Body: question{person: sampledPerson("profile"), Act: "reset-factors", Danger: true, EndsSessions: true, Affected: ended{Sessions: 2}}}, Frame: owner},
		{Name: "suspend", View: ui.View{Page: "act", Title: "act.suspend.title", Body: question{person: sampledPerson("profile"), Act: "suspend", Danger: true, EndsSessions: true, Affected: ended{Sessions: 2, Invitations: 1}, Webhooks: []doorward.MadeWebhook{{ID: "whk_1", URL: "https://hooks.example.com/people"}}}}, Frame: owner},
		{Name: "role", View: ui.View{Page: "act", Title: "act.role.title", Body: question{person: sampledPerson("profile"), Act: "role", Offers: offeredRoles(sampledPerson("profile"), doorward.RoleAdmin)}}, Frame: owner},
		{Name: "keys", View: wide("keys", apiKeys{basePage, middlePage(keySorting), keyStatuses, highestFirst(nil), sampledKeys()}), Frame: owner},
		{Name: "keys-none", View: wide("keys", apiKeys{pageData: basePage, pager: pager{Filter: filters(url.Values{}), sorting: keySorting}, Statuses: keyStatuses}), Frame: owner},
		{Name: "key", View: sampledKeyPage(0, "about"), Frame: owner},
		{Name: "key-usage", View: sampledKeyPage(0, "usage"), Frame: owner},
		{Name: "key-usage-none", View: sampledKeyPage(3, "usage"), Frame: owner},
		{Name: "key-rotation", View: sampledKeyPage(0, "rotation"), Frame: owner},
		{Name: "key-activity", View: sampledKeyPage(0, "activity"), Frame: owner},
		{Name: "key-settings", View: sampledKeyPage(0, "settings"), Frame: owner},
		{Name: "key-disabled", View: sampledKeyPage(1, "about"), Frame: owner},
		{Name: "key-revoked", View: sampledKeyPage(3, "about"), Frame: owner},
		{Name: "keynew", View: sampledKeyForm(), Frame: naming},
		{Name: "keynew-refused", View: sampledKeyForm(), Frame: refusedWith("name.required", "permissions.required", "allowedIps.invalid")},
		{Name: "keysecret", View: ui.View{Page: "keysecret", Scripts: []string{"secret.js"}, Body: keySecret{pageData: basePage, Key: sampledKeys()[0], Secret: sampledSecret, Rotated: true}}, Frame: owner},
		{Name: "keyact", View: ui.View{Page: "keyact", Title: "keys.revoke.title", Body: keyQuestion{pageData: basePage, Key: sampledKeys()[0], Act: "revoke", Danger: true}}, Frame: owner},
		{Name: "roles", View: wide("roles", roleList{pageData: basePage, Items: sampledRoles()}), Frame: owner},
		{Name: "role-builtin", View: wide("role", sampledRolePage(1, "permissions")), Frame: owner},
		{Name: "role-own", View: wide("role", sampledRolePage(5, "permissions")), Frame: owner},
		{Name: "role-activity", View: wide("role", sampledRolePage(4, "activity")), Frame: owner},
		{Name: "role-members", View: wide("role", sampledRolePage(4, "members")), Frame: owner},
		{Name: "rolenew", View: sampledRoleForm(roleEntry{}), Frame: owner},
		{Name: "rolenew-refused", View: sampledRoleForm(roleEntry{}), Frame: refusedWith("roleName.invalid", "permissions.required")},
		{Name: "roleedit", View: sampledRoleForm(sampledRoles()[4]), Frame: editing},
		{Name: "rolechange", View: ui.View{Page: "rolechange", Body: sampledRoleChange()}, Frame: owner},
		{Name: "roleend", View: ui.View{Page: "roleend", Body: roleEnd{pageData: basePage, Role: sampledRoles()[4], Members: 12, Invitations: 1, Keys: 2, CallerHasRole: true, Replacements: []replacement{
			{Role: doorward.RoleUser, Gains: additionalActions(nil, doorward.RoleUser, doorward.RoleViewer)}, {Role: doorward.RoleViewer, Loses: []ui.Permission{ui.Describe(doorward.BuiltIn(), doorward.MessageSend)}},
		}}}, Frame: owner},
		{Name: "close", View: ui.View{Page: "close", Body: closing{pageData: basePage, People: 5210, Open: 12, Affected: ended{Sessions: 310}, DestroyedAt: noon.AddDate(0, 0, 14), DaysLeft: 14}}, Frame: owner},
		{Name: "close-refused", View: ui.View{Page: "close", Body: closing{pageData: basePage, People: 5210, Open: 12, Affected: ended{Sessions: 310}, DestroyedAt: noon.AddDate(0, 0, 14), DaysLeft: 14}}, Frame: refusedWith("confirm.mismatch")},
		{Name: "closed", View: ui.View{Page: "closed", Body: closing{pageData: basePage, Affected: ended{Sessions: 310}, DestroyedAt: noon.AddDate(0, 0, 14)}}},
	})
}

// refusedWith is the frame of a form that was refused, with a fault for each field and code, such as "name.required".
func refusedWith(faults ...string) ui.Frame {
	f := owner
	f.Posted, f.Alert, f.Faults = true, true, map[string]string{}
	for _, fault := range faults {
		field, _, _ := strings.Cut(fault, ".")
		f.Faults[field] = uitest.Said("fault." + fault)
	}
	return f
}

// sampledRows has a row for each kind of outcome.
func sampledRows() []chosenRow {
	return []chosenRow{
		{ID: members[1].ID, Email: members[1].Email, Affected: ended{Sessions: 2, Invitations: 1, Keys: 1, Webhooks: 1}},
		{ID: members[2].ID, Name: members[2].Name, Email: members[2].Email, Unchanged: true},
		{ID: members[0].ID, Name: members[0].Name, Email: members[0].Email, Protected: true, Fault: uitest.Said("notice.last_owner")},
	}
}

func sampledKeyForm() ui.View {
	return ui.View{Page: "keynew", Wide: true, Body: newKey{
		pageData: basePage, keyLimits: keyLimits{365, 10_000}, Role: defaultKeyRole, Roles: []roleChoice{{doorward.RoleAdmin, false}, {doorward.RoleUser, true}, {doorward.RoleViewer, false}},
		Suggested: suggestions{"/api/v2/users", members}, permissionForm: keyPermissions(nil, defaultKeyRole, func(doorward.Action) bool { return false }),
	}}
}

func sampledOverview() overviewPage {
	figures := overview.Tenant{
		People: 5213, Suspended: 3, Pending: 12, Failed: 1, FailedBy: "550",
		Since:    noon.AddDate(0, 0, -1),
		Refusals: []overview.Refusal{{Action: doorward.SessionRefuse, Times: 41}, {Action: doorward.UserInvite, Times: 2}},
	}
	for n, role := range highestFirst(nil) {
		figures.Roles = append(figures.Roles, overview.Role{Role: role, People: []int{4, 38, 3950, 1221}[n]})
	}
	for n := range 30 {
		for i, times := range []int{n * n % 47, n % 5, n % 4 / 3, n % 11 / 10} {
			figures.SignIns = append(figures.SignIns, doorward.UsageCount{At: noon.AddDate(0, 0, n-29).Truncate(oneDay), Outcome: signInSeries[i].counted, Times: int64(times)})
		}
	}
	for n, role := range highestFirst(nil) {
		figures.Factors = append(figures.Factors, overview.Factors{Role: role, People: figures.Roles[n].People, With: []int{4, 36, 1580, 0}[n]})
	}
	return overviewPage{
		pageData: basePage, Figures: figures, Chart: signInChart("", figures.SignIns, noon, 30), Refused: 43, Days: 30, Recent: sampledRecent(1),
		Watches: true, Attention: sampledAttention()[2:3], Roles: roleMeters("", figures.Roles), Factors: factorMeters("", figures.Factors),
		Quotas: []meter{{Name: "quota.people", Link: "/console/people", Times: 5213, Of: 6000, ShowsOf: true}, {Name: "quota.apiKeys", Link: "/console/keys", Times: 10, Of: 10, ShowsOf: true, IsHigh: true}, {Name: "quota.webhooks", Times: 0, Of: 5, ShowsOf: true}, {Name: "quota.eventsPerDay", Times: 41, Of: 2000, ShowsOf: true}},
	}
}

// sampledAttention has a row of each kind.
func sampledAttention() []attention {
	tried := attemptOf(doorward.DeliveryAttempt{At: noon.Add(-time.Minute), Status: 503, Ms: 312})
	late := attemptOf(doorward.DeliveryAttempt{At: noon.Add(-time.Hour), Error: webhook.Late, Ms: 15_000})
	return []attention{
		{Kind: "provisional", IsGrave: true, At: noon.Add(time.Minute), Path: ssoPolicyPath},
		{Kind: "policy", IsGrave: true, At: noon.Add(time.Minute), Path: policyPath},
		{Kind: "webhook.failing", IsGrave: true, Name: "hooks.example.com", At: noon.Add(-2 * time.Hour), Last: &tried, Path: webhooksPath + "/whk_2"},
		{Kind: "webhook.disabled", IsGrave: true, Name: "old.example.com", Cause: "hooks.because.failing", Path: webhooksPath + "/whk_3"},
		{Kind: "mails", IsGrave: true, Count: 1, Cause: "attention.mails.refused", Path: invitationsPath},
		{Kind: "lapsed", IsGrave: true, Name: "acme.test", Path: domainsPath},
		{Kind: "secret.ended", IsGrave: true, Name: "Acme Ping", At: noon.AddDate(0, 0, -2), Path: connectionPath},
		{Kind: "certificate.ended", IsGrave: true, Name: "Acme SAML", At: noon.AddDate(0, 0, -2), Path: connectionPath},
		{Kind: "scim.ended", IsGrave: true, Name: "Acme Ping", At: noon.AddDate(0, 0, -2), Path: connectionPath},
		{Kind: "nocertificate", IsGrave: true, Name: "Acme SAML", Path: connectionPath},
		{Kind: "webhook.unreliable", Name: "a-very-long-name-of-a-host-of-our-own.hooks.example.com", Count: 41, Of: 96, Last: &late, Path: webhooksPath + "/whk_1"},
		{Kind: "key", Name: "nightly export of the warehouse", At: noon.AddDate(0, 0, 3), Path: "/console/keys/key_1"},
		{Kind: "more", Count: 12, Path: "/console/keys"},
		{Kind: "secret", Name: "Acme Entra", At: noon.AddDate(0, 0, 9), Path: connectionPath},
		{Kind: "certificate", Name: "Acme SAML", At: noon.AddDate(0, 0, 20), Path: connectionPath},
		{Kind: "scim", Name: "Acme Okta", At: noon.AddDate(0, 0, 9), Path: connectionPath},
		{Kind: "missing", Name: "acme.example", At: noon.AddDate(0, 0, 2), Path: domainsPath},
		{Kind: "run", Name: "Acme Okta", Count: 62, At: noon.Add(-time.Hour), Path: connectionPath},
		{Kind: "unread", Name: "Acme Okta", At: noon.AddDate(0, 0, -2), Cause: "attention.unread.text", Path: connectionPath},
		{Kind: "unavailable", Name: "Acme Okta", Count: 3, Path: connectionPath},
		{Kind: "refused", Name: "Acme Okta", Count: 7, Path: connectionPath},
		{Kind: "factors.soon", Role: doorward.RoleAdmin, Count: 2, At: noon.AddDate(0, 0, 6), Path: peoplePath},
		{Kind: "factors.due", Role: doorward.RoleUser, Count: 2370, At: noon.AddDate(0, 0, -6), Path: peoplePath},
	}
}

// sampledUsage has counts of the last days and hours for each of the outcomes.
func sampledUsage(width time.Duration, outcomes ...doorward.UsageOutcome) (all []doorward.UsageCount) {
	for n := range 30 {
		for i, o := range outcomes {
			all = append(all, doorward.UsageCount{At: noon.Truncate(width).Add(-time.Duration(n) * width), Outcome: o, Times: int64((n*n%19 + 3) * 41 / (1 + 40*i) * ((n+i)%(4*i+1)/(3*i+1) + (i+2)/(2*i+2)*(n*7%13+9)/10))})
		}
	}
	return all
}

func withAttention(p overviewPage) overviewPage {
	p.Attention = sampledAttention()
	return p
}

func withData(p overviewPage, data pageData) overviewPage {
	p.pageData = data
	return p
}

// calm is an overview on which nothing needs attention, and with few figures.
func calm() overviewPage {
	p := sampledOverview()
	p.Attention, p.Quotas, p.Factors = nil, nil, nil
	return p
}

// withUnusable is the page of somebody who can't use one of two factors any more.
func withUnusable(p person) person {
	p.User.Factors, p.User.Passkeys, p.User.DisabledApps = 2, 1, 1
	return p
}

func sampledPerson(tab string) person {
	who := members[2]
	p := person{pageData: basePage, User: who, DisplayName: who.Name, CanManage: true, Sessions: []doorward.Session{
		{ID: "ses_2", TenantID: acme.ID, CreatedAt: noon.Add(-26 * time.Hour), LastSeenAt: noon.Add(-time.Minute), IP: "2001:db8::7f", UserAgent: "Mozilla/5.0 (iPhone) Version/18.0 Mobile Safari/604.1", NewBrowser: true},
		{ID: "ses_3", TenantID: acme.ID, CreatedAt: noon.Add(-2 * time.Hour), LastSeenAt: noon.Add(-time.Hour), IP: "192.0.2.7", UserAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", Assurance: doorward.Assurance{Issuer: "con_1"}},
		{ID: "ses_4", TenantID: acme.ID, CreatedAt: noon.Add(-3 * time.Hour), LastSeenAt: noon.Add(-2 * time.Hour), IP: "192.0.2.7", UserAgent: "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"},
		{ID: "ses_5", TenantID: acme.ID, CreatedAt: noon.Add(-5 * time.Hour), LastSeenAt: noon.Add(-4 * time.Hour), IP: "192.0.2.7", UserAgent: "python-requests/2.32.3", NewBrowser: true},
		{ID: "ses_6", TenantID: acme.ID, CreatedAt: noon.Add(-7 * time.Hour), LastSeenAt: noon.Add(-6 * time.Hour), IP: "192.0.2.7", UserAgent: "an app"},
	}}
	p.Connections = []doorward.Connection{{ID: "con_1", Name: "Acme Okta"}}
	p.Identities = []doorward.Identity{{ID: "idn_1", ConnectionID: "con_1", Subject: "00u1b2c3d4e5F6", UserID: who.ID, LastUsedAt: noon.Add(-time.Hour)}}
	p.User.ManagedBy = acme.ID
	if tab == "directory" {
		said := directory.Said{
			DirectoryUser: doorward.DirectoryUser{ConnectionID: "con_1", UserName: who.Email, ExternalID: "00u1b2c3d4e5F6g7H8", ChangedAt: noon.Add(-time.Hour)},
			User:          scim.User{DisplayName: who.Name, Enterprise: scim.Enterprise{Department: "Sales", EmployeeNumber: "26118915"}}, Groups: []doorward.DirectoryGroup{{DisplayName: "Everyone"}, {DisplayName: "Everyone in the department of sales and marketing"}},
		}
		p.Said, p.Floor, p.MayOverride = []saidOfPerson{{said, "Acme Okta"}}, directory.ByHand{Role: doorward.RoleUser, By: members[0].Email, At: noon.Add(-50 * time.Hour)}, true
	}
	p.Activity, p.Tabs = sampledActivity("person", who.ID), onTab(tab, "profile", "sessions", "security", "activity")
	if tab == "activity" {
		p.LastDays = sampledDays(who.ID, shownPersonDays)
	}
	if len(p.Said) > 0 {
		p.Tabs = onTab(tab, "profile", "sessions", "security", "directory", "activity")
	}
	for _, role := range highestFirst(nil) {
		p.Roles = append(p.Roles, roleChoice{role, role == who.Role})
	}
	return p
}

// sampledDays are so many days of a person who came in the middle of them; fewer than are shown are those that are kept.
func sampledDays(id string, days int) *personDays {
	var found audit.PersonDays
	for n := range days {
		d := audit.PersonDay{Day: noon.UTC().Truncate(oneDay).AddDate(0, 0, n-days+1)}
		if n > days/2 && n%7 < 5 {
			d.SignIns, d.Refused = 1+n%3, max(0, n%10-6)
		}
		switch {
		case n == days/2:
			d.SignIns, d.Changes = 1, []audit.DayChange{{Action: doorward.UserInvite, Target: "inv_1", Times: 1}, {Action: doorward.InvitationAccept, Target: "inv_1", Times: 1}}
		case n == days-8:
			d.Refused, d.Changes = 24, []audit.DayChange{{Action: doorward.PasswordReset, Target: id, Times: 1}, {Action: doorward.MFAEnrol, Target: id, Times: 2}}
		case n == days-3:
			d.Changes = []audit.DayChange{{Action: doorward.UserRole, Target: id, Times: 1}}
		}
		found.Days = append(found.Days, d)
	}
	if days < shownPersonDays {
		found.KeptDays, found.IsCapped = days, true
	}
	return newPersonDays("", id, found)
}

// withKeptDays is the page of somebody whose tenant keeps events for 30 days.
func withKeptDays(p person) person {
	p.LastDays = sampledDays(p.User.ID, 30)
	return p
}

// sampledManyRoles is the page that changes a role, of a tenant that has many.
func sampledManyRoles() uitest.Sample {
	var own []doorward.CustomRole
	for n, name := range []doorward.Role{"ACCOUNTING", "AUDIT", "CATALOGUE", "LOGISTICS", "PRESS", "RECEPTION", "SUPPORT", longRole} {
		own = append(own, doorward.CustomRole{ID: fmt.Sprint("rol_", n), Name: name, About: []string{"", "Answers messages and looks people up, but changes nothing"}[n%2], Permissions: []doorward.Action{doorward.MessageRead, doorward.UserRead}})
	}
	by := members[0]
	by.Rules = doorward.NewRules(doorward.RulesVersion{}, doorward.BuiltIn(), own)
	page := sampledPerson("profile")
	page.Roles, page.User.ManagedBy = nil, ""
	for _, r := range highestFirst(by.Rules) {
		page.Roles = append(page.Roles, roleChoice{r, r == page.User.Role})
	}
	frame := ui.Frame{Caller: doorward.Caller{Principal: doorward.PrincipalOf(by, doorward.Session{ID: "ses_1"})}}
	page.User.Rules = by.Rules
	return uitest.Sample{Name: "role-many", View: ui.View{Page: "act", Title: "act.role.title", Body: question{person: page, Act: "role", Offers: offeredRoles(page, "")}}, Frame: frame}
}

func sampledInvitations() (all []listedInvitation) {
	for n, state := range invitationStates {
		inv := doorward.Invitation{
			ID: fmt.Sprint("inv_", n), Email: fmt.Sprintf("guest%d@acme.example", n), Role: doorward.RoleUser, TenantID: acme.ID, InvitedBy: members[0].ID,
			CreatedAt: noon.AddDate(0, 0, -n), ExpiresAt: noon.AddDate(0, 0, 7-n), Delivery: doorward.DeliverySent,
		}
		if n == 1 {
			inv.Email, inv.Name, inv.Role = strings.Repeat("long", 14)+"@"+strings.Repeat("acme-", 10)+"example.org", members[4].Name, longRole
		}
		all = append(all, listedInvitation{inv, state, state == doorward.InvitationPending})
	}
	return all
}

func sampledEntries() (all []entry) {
	for n, e := range []doorward.Event{
		{Action: doorward.SessionOpen, Outcome: doorward.Done, Changes: []doorward.Change{{Field: "userAgent", To: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}}},
		{Action: doorward.SessionRefuse, Outcome: doorward.Refused, Changes: []doorward.Change{{Field: "reason", To: "invalid_credentials"}}},
		{Action: doorward.TenantUpdate, Outcome: doorward.Done, Changes: []doorward.Change{{Field: "sessionIdle", From: "0s", To: "1h30m0s"}, {Field: "allowedEmailDomains", To: "acme.example"}}},
		{Action: doorward.UserInvite, Outcome: doorward.Refused, Changes: []doorward.Change{{Field: "reason", To: "forbidden"}, {Field: "role", To: "OWNER"}}},
	} {
		e.Target = doorward.Object{Type: "user", ID: "usr_guest", TenantID: acme.ID}
		e.ID, e.At, e.RequestID, e.IP = fmt.Sprint("evt_", n), noon.Add(-time.Duration(n)*time.Hour), fmt.Sprint("req_", n), "2001:db8::7f"
		actor, target := "Ann Lee", "guest@acme.example"
		if n == 2 {
			actor, target = members[4].Name, strings.Repeat("guest", 11)+"@"+strings.Repeat("acme-", 10)+"example.org"
		}
		all = append(all, entry{Event: e, MessageKey: eventKey(e), Actor: identity{ID: members[0].ID, Name: actor, Detail: members[0].Email}, Target: identity{ID: "usr_guest", Name: target, Page: "/console/people/usr_guest"}, Fields: describeChanges(e.Changes, nil)})
	}
	all[3].ExplainPath = "/console/explain?action=user.invite"
	grouped := all[1]
	grouped.ID, grouped.Others = "evt_group", []entry{all[1], all[3]}
	return append(all, grouped)
}

// sampledTrail has the sampled entries, of two days, and a histogram.
func sampledTrail() eventTable {
	t := eventTable{pager: pager{Filter: filters(url.Values{}), Next: "?cursor=next", From: 1, To: 50, Total: 564}, Label: "title", Highest: 47}
	for n, e := range sampledEntries() {
		if e.ActorType, e.ActorID = doorward.ByUser, members[0].ID; n == 1 {
			e.ActorType = doorward.ByKey
		}
		if t.Days == nil || n == 3 {
			t.Days = append(t.Days, eventDay{Day: noon.AddDate(0, 0, -n).Truncate(24 * time.Hour)})
		}
		if n >= 3 {
			e.At = noon.AddDate(0, 0, -3).Add(-time.Duration(n) * time.Hour)
		}
		last := &t.Days[len(t.Days)-1]
		last.Items = append(last.Items, e)
	}
	for n := range 30 {
		day := noon.AddDate(0, 0, n-29).Truncate(24 * time.Hour)
		t.Bars = append(t.Bars, newTimeBar(audit.Bar{From: day, To: day.AddDate(0, 0, 1), Count: n * n % 47}, t.Highest, "?from=", noon))
	}
	return t
}

// sampledRecent has the sampled entries of the first days, as a page about something else shows them.
func sampledRecent(days int) eventTable {
	return eventTable{Trail: auditPath, Label: "recent-title", Days: sampledTrail().Days[:days]}
}

// sampledActivity has the sampled entries of an object.
func sampledActivity(kind, id string) activity { return activity{sampledRecent(2), kind, id} }

// withOpen opens the refusal among the entries, and the group.
func withOpen(t eventTable) eventTable {
	last := t.Days[len(t.Days)-1].Items
	t.Open = &last[0]
	return t
}

// sampledSecret has the length of a secret, and a checksum that is wrong.
var sampledSecret = "dwk_" + strings.Repeat("Ab3fK9q", 7)

func sampledKeys() (all []apiKey) {
	used := noon.Add(-time.Hour)
	for n, status := range []doorward.APIKeyStatus{doorward.APIKeyActive, doorward.APIKeyDisabled, doorward.APIKeyExpired, doorward.APIKeyRevoked} {
		k := doorward.APIKey{
			ID: fmt.Sprint("key_", n), TenantID: acme.ID, Name: []string{"Reports of the shop", "Newsletter", "Old gateway with a name that has nearly as many letters as the name of a key may have, 100 of them", "Test"}[n],
			Status: status, Role: doorward.RoleUser, Permissions: []doorward.Action{doorward.MessageSend, doorward.ReportRead}, OwnerID: members[n].ID, OwnerRole: members[n].Role,
			CreatedBy: members[0].ID, CreatedAt: noon.AddDate(0, 0, -n-7), ExpiresAt: noon.AddDate(0, 0, 5+100*n), Hint: "dwk_Ab3f…9xQ2",
		}
		one := apiKey{APIKey: k, State: status, Owner: members[n].Name, Email: members[n].Email, CanManage: true, EndsSoon: n == 0, now: noon}
		if n == 0 {
			one.AllowedIPs, one.PerSecond, one.LastUsedAt, one.LastUsedIP = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, 50, &used, "192.0.2.7"
			one.Earlier = &doorward.PreviousSecret{EndsAt: noon.Add(23*time.Hour + 12*time.Minute), LastUsedAt: &used}
		}
		if n == 2 {
			one.Owner, one.Email, one.ExpiresAt = "", "", noon.AddDate(0, 0, -2)
		}
		all = append(all, one)
	}
	return all
}

func sampledKeyPage(n int, tab string) ui.View {
	k := sampledKeys()[n]
	body := keyPage{
		pageData: basePage, keyLimits: keyLimits{365, 10_000}, Key: k, permissionForm: keyPermissions(nil, k.Role, k.Has), Graces: graces,
		Actions: permissionsForKeys(doorward.BuiltIn()), RoleID: "rol_" + strings.ToLower(string(k.Role)), Suggested: suggestions{"/api/v2/users", members},
	}
	if body.Activity = sampledActivity("keys", k.ID); n != 3 {
		body.Uses = chartOf("uses-title", useSeries(), sampledUsage(oneDay, doorward.UsageUsed), noon, oneDay, usageDays)
	}
	if body.Tabs = onTab(tab, "about", "usage", "activity"); n < 2 {
		body.Tabs = onTab(tab, "about", "usage", "rotation", "activity", "settings")
		body.Try = &trial{"user.read", "192.0.2.7", []string{"keys.try.permission", "keys.try.status"}[n]}
	}
	return ui.View{Page: "key", Title: "keys.title", Body: body, Wide: true}
}

// sampledRoles are the four built-in roles, the highest first, and then two of the tenant's own.
func sampledRoles() (all []roleEntry) {
	var rules *doorward.Rules // of the built-in model
	for n, name := range highestFirst(rules) {
		g := rules.Grant(name)
		all = append(all, roleEntry{Role: role.Role{CustomRole: doorward.CustomRole{ID: "rol_" + strings.ToLower(string(name)), Name: name, Permissions: g.Actions}, Rank: name, BuiltIn: true, Members: int64(n * n * 300)}})
	}
	for _, name := range []doorward.Role{"SUPPORT", longRole} {
		own := roleEntry{CanManage: true, Role: role.Role{CustomRole: doorward.CustomRole{ID: "rol_" + strings.ToLower(string(name)), Name: name, About: "Answers messages and looks people up", Permissions: []doorward.Action{doorward.MessageRead, doorward.MessageSend, doorward.UserRead}}, Rank: doorward.RoleUser, Members: 12}}
		for _, a := range own.Permissions {
			own.May = append(own.May, ui.Describe(rules.Model(), a))
		}
		all = append(all, own)
	}
	return all
}

// sampledChoices are permissions in groups, for a caller who may give all but tenant.destroy.
func sampledChoices(chosen func(doorward.Action) bool) permissionForm {
	return rolePermissions(doorward.BuiltIn(), chosen, func(a doorward.Action) bool { return a != doorward.TenantDestroy })
}

func sampledRolePage(n int, tab string) rolePage {
	r := sampledRoles()[n]
	return rolePage{pageData: basePage, pager: pager{Next: "?cursor=next", From: 1, To: 5, Total: 163}, Tabs: sampledRoleTabs(r, tab), Role: r, Groups: r.Groups(doorward.BuiltIn()), Invitations: 1, Keys: 2, Holders: sampledMembers(), Activity: sampledActivity("roles", r.ID)}
}

// sampledRoleTabs are those of a role; only one that can be changed has settings.
func sampledRoleTabs(r roleEntry, tab string) ui.Tabs {
	tabs := onTab(tab, "permissions", "members", "activity")
	if r.CanManage {
		tabs = onTab(tab, "permissions", "members", "activity", "settings")
	}
	tabs.Items[1].Count = r.Members
	return tabs
}

// sampledRoleForm is the form of a role, or for a new one if r is zero.
func sampledRoleForm(r roleEntry) ui.View {
	body := roleForm{pageData: basePage, Role: r, permissionForm: sampledChoices(hasPermission(r))}
	if r.ID != "" {
		body.Tabs = sampledRoleTabs(r, "settings")
	}
	return ui.View{Page: "roleform", Body: body, Wide: true}
}

func sampledRoleChange() roleChange {
	was := sampledRoles()[4].Role
	is := was
	is.Name, is.About, is.Rank = "FRONT_DESK", "", doorward.RoleAdmin
	return roleChange{
		pageData: basePage, ID: was.ID, Plan: role.Plan{Was: was, Is: is, Use: store.RoleUse{Members: 12, Invitations: 1, Keys: 2}}, CallerHasRole: true,
		Gains: []ui.Permission{ui.Describe(doorward.BuiltIn(), doorward.UserInvite)}, Loses: []ui.Permission{ui.Describe(doorward.BuiltIn(), doorward.MessageSend)},
	}
}

func sampledPolicyVersions() (all []policyVersion) {
	soon, past := noon.Add(8*time.Minute+12*time.Second), noon.Add(-time.Hour)
	for n, until := range []*time.Time{&soon, &past, nil} {
		v := policy.Version{Version: int64(3 - n), Text: policyExamples["hours"] + policyExamples["network"], Mode: "enforce", ConfirmUntil: until, CreatedAt: noon.AddDate(0, 0, -n), CreatedBy: members[n].ID}
		all = append(all, policyVersion{Version: v, By: members[n].Name, Current: n == 0, Refuses: n == 0, now: noon})
	}
	all[2].Text = policyExamples["hours"]
	return all
}

func sampledPolicy() ui.View {
	current := sampledPolicyVersions()[0]
	return ui.View{Page: "policy", Wide: true, Body: policyPage{
		pageData: basePage, Now: current, Refusing: current, Effect: sampledEffect("/console/policy/versions/2#L", "/console/policy/versions/3#L"), Typed: current.Text, Modes: policyModes, Mode: policy.Enforces, Minutes: "10", TimeZone: "Europe/Berlin", MaxMinutes: 60, Types: "entity Role;\nentity Tenant;\n", Actions: policyActions(nil),
	}}
}

func sampledObservingPolicy() ui.View {
	v := sampledPolicy()
	body, _ := v.Body.(policyPage)
	body.Refusing = sampledPolicyVersions()[2]
	body.Refusing.Refuses = true
	body.Now.Mode, body.Now.ConfirmUntil, body.Now.Refuses = policy.Observes, nil, false
	body.Observed, body.Effect = []policy.Observed{{ID: "office-hours", Refused: 41}}, nil
	v.Body = body
	return v
}

func sampledPolicyFaults() ui.View {
	v := sampledPolicy()
	body, _ := v.Body.(policyPage)
	body.Typed += `permit(principal, action, resource);`
	changes := linediff.Compare(body.Now.Text, body.Typed)
	body.Changes = &changes
	body.Faults = []policyFault{{doorward.FieldError{Pointer: "/text", Code: "only_forbid", Line: 11, Column: 1, Message: "a policy of a tenant forbids"}, "permit(principal, action, resource);"}}
	v.Body = body
	return v
}

// sampledEffect is that of a text which refuses something always, something on a condition, and lets go of
// something; reviewers are a role of the tenant's own, for which nothing changes.
func sampledEffect(wasLines, wouldLines string) *effect {
	hours := policy.Cause{Kind: policy.ByPolicy, ID: "office-hours", Line: 1, Reason: "People are invited from Monday to Friday between 8 and 18 o'clock."}
	network, platform := policy.Cause{Kind: policy.ByPolicy, ID: "own-network", Line: 6}, policy.Cause{Kind: policy.ByPolicy, ID: "sanctions", Platform: true}
	is := func(was, would policy.Outcome, before, after policy.Cause) policy.Effect {
		return policy.Effect{Was: was, Would: would, Changes: true, WasBecause: policy.Causes{First: []policy.Cause{before}}, Because: policy.Causes{First: []policy.Cause{after}}}
	}
	granted := policy.Cause{Kind: policy.ByRole}
	changed := map[doorward.Action]policy.Effect{
		doorward.UserInvite:     is(policy.Allowed, policy.Conditional, granted, hours),
		doorward.SettingsManage: is(policy.Conditional, policy.Conditional, network, network),
		doorward.AuditRead:      is(policy.Refused, policy.Allowed, platform, granted),
		doorward.MessageSend:    is(policy.Allowed, policy.Refused, granted, network),
	}
	unnamed := changed[doorward.AuditRead]
	unnamed.WasBecause.First = append(unnamed.WasBecause.First, policy.Cause{Kind: policy.ByPolicy, Platform: true})
	changed[doorward.AuditRead] = unnamed
	s := effectSource{wasLines: wasLines, wouldLines: wouldLines, labels: actionLabels(policyActions(nil))}
	rules := doorward.NewRules(doorward.RulesVersion{}, doorward.BuiltIn(), []doorward.CustomRole{{Name: "REVIEWER", Permissions: []doorward.Action{doorward.UserRead}}})
	for _, role := range rules.Roles() {
		for _, v := range rules.Model().Verbs() {
			if v.By == doorward.ByRole {
				s.cells = append(s.cells, sampledCell(rules, role, v, changed))
			}
		}
	}
	return effectOf(s)
}

func sampledCell(rules *doorward.Rules, role doorward.Role, v doorward.Verb, changed map[doorward.Action]policy.Effect) policy.Cell {
	c := policy.Cell{Role: role, Action: v.Action, Users: policy.Effect{Was: policy.Refused, Would: policy.Refused}}
	if !rules.Grant(role).Permissions.Allow(&v) {
		return c
	}
	c.Users = policy.Effect{Was: policy.Allowed, Would: policy.Allowed}
	keys := c.Users
	if of, ok := changed[v.Action]; ok {
		c.Users = of
		if v.Action != doorward.UserInvite { // the policy is about people
			keys = of
		}
	}
	if !v.NoKeys && role != doorward.RoleOwner {
		c.Keys = &keys
	}
	return c
}

func sampledPlan() ui.View {
	v := sampledPolicy()
	body, _ := v.Body.(policyPage)
	label := policyAction{Action: "user.invite", Key: "can.user.invite"}
	body.Plan = &planned{
		Effect:  sampledEffect("#L", "#T"),
		Checked: 412, Differ: 2,
		Changes: []plannedChange{
			{policy.Change{At: noon, Action: "user.invite", Was: policy.Refused, Would: policy.Allowed, Because: []policy.Cause{{Kind: policy.ByRole, ID: "ADMIN"}}}, members[0].Email, "/console/people/usr_ann", label},
			{policy.Change{At: noon, Action: "user.invite", Was: policy.Allowed, Would: policy.Refused, Because: []policy.Cause{{Kind: policy.ByPolicy, ID: "office-hours", Line: 1, Reason: "People are invited between 8 and 18 o'clock."}}}, "key_1", "/console/keys/key_1", label},
		},
	}
	v.Body = body
	return v
}

func sampledExplanation(e policy.Explanation) ui.View {
	return ui.View{Page: "explain", Wide: true, Body: explainPage{
		pageData: basePage, Actions: policyActions(nil), Who: members[0].Email, Action: "user.invite", Answer: &explained{e, "Ann Lee", "/console/people/usr_ann", policyPath}, Suggested: suggestions{"/api/v2/users", members},
	}}
}

func sampledPolicyVersion(page string) ui.View {
	all := sampledPolicyVersions()
	return ui.View{Page: page, Wide: true, Body: policyVersionPage{
		pageData: basePage, Shown: all[2], Now: all[0], Before: 1, Changes: linediff.Compare("", all[2].Text), RestoreChanges: linediff.Compare(all[0].Text, all[2].Text),
		Effect: sampledEffect("/console/policy/versions/3#L", "/console/policy/versions/1#L"),
	}}
}

func sampledHooks() (all []endpoint) {
	since, earlier := noon.Add(-5*time.Hour), noon.Add(-40*time.Second)
	for n, to := range []string{"https://hooks.example.com/doorward", "https://crm.with-quite-a-long-name.internal.example.org/v1/events/incoming?source=doorward", "https://old.example.net/", "https://often.example.net/hook"} {
		w := doorward.Webhook{
			ID: fmt.Sprint("whk_", n), TenantID: acme.ID, URL: to, About: []string{"Sync of the CRM", "", "Alerts", ""}[n], Enabled: n != 2, CreatedAt: noon.AddDate(0, -2, -n),
			Events: []string{"user.*", "invitation.accept", "session.refuse"}, PublicKey: "whpk_" + strings.Repeat("q83vEjRW", 5) + "q80=", LastSuccessAt: &earlier, PreviousEndsAt: &noon,
		}
		if n == 1 || n == 2 {
			w.FailingSince, w.LastSuccessAt, w.Include = &since, &since, []string{doorward.WebhookIncludesEmail}
		}
		if n == 2 {
			w.DisabledReason, w.LastSuccessAt = doorward.DisabledGone, nil
		}
		all = append(all, endpoint{w, stripOf(deliverySeries(), sampledHours(n), noon)})
	}
	return all
}

// sampledHours are the last hours of the webhook of the number: most attempts succeed, none for some hours, none at all, or a
// half.
func sampledHours(n int) []doorward.UsageCount {
	all := sampledUsage(time.Hour, doorward.UsageDelivered, doorward.UsageRefused, doorward.UsageSilent)
	switch n {
	case 1:
		for i := range all[:15] {
			if all[i].Outcome == doorward.UsageDelivered {
				all[i].Times = 0
			}
		}
	case 2:
		return nil
	case 3:
		for i := range all {
			if all[i].Outcome != doorward.UsageDelivered {
				all[i].Times *= 60
			}
		}
	}
	return all
}

// sampledDeliveries are of an endpoint that is slow or fails now and then. A failing one has
// answered the newest 30 with errors.
func sampledDeliveries(failing bool) (all []doorward.WebhookDelivery) {
	next := noon.Add(7 * time.Minute)
	for n := range 110 {
		d := doorward.WebhookDelivery{ID: fmt.Sprint("whd_", n), EventID: fmt.Sprint("evt_", n), Type: []doorward.Action{doorward.UserRole, doorward.InvitationAccept, doorward.SessionRefuse}[n%3], State: doorward.DeliveryDone, CreatedAt: noon.Add(-time.Duration(n) * time.Minute)}
		made := doorward.DeliveryAttempt{At: d.CreatedAt, Status: 204, Ms: int64(30 + n*n%170)}
		switch {
		case failing && n < 30, n%31 == 5:
			made.Status, made.Answer, d.State, d.NextAt = 500, "upstream <connect> error", doorward.DeliveryPending, &next
		case n%37 == 9:
			made.Status, made.Ms, made.Error, d.State = 0, 15_000, webhook.Late, doorward.DeliveryGivenUp
		}
		if d.Attempts = append(d.Attempts, made); n == 5 {
			d.Attempts = append(d.Attempts, doorward.DeliveryAttempt{At: noon, Ms: 12, Error: webhook.NotTrusted + "x509: certificate has expired"})
		}
		all = append(all, d)
	}
	return all
}

// withLostKey is the page after the master key was lost.
func withLostKey(v ui.View) ui.View {
	body := v.Body.(webhookPage)
	body.Hook.DisabledReason = doorward.DisabledKeyLost
	v.Body = body
	return v
}

func sampledHookPage(n int, tab string) ui.View {
	hook, list := sampledHooks()[n], pager{Filter: filters(url.Values{}), Next: "?cursor=next", From: 1, To: deliveriesPerPage, Total: 1110}
	body := webhookPage{pageData: basePage, pager: list, Tabs: onTab(tab, "deliveries", "replay", "signing", "activity", "settings"), Hook: hook, States: doorward.DeliveryStates, Graces: graces, Events: eventChoicesOf(hook.Events), Email: hook.WithEmail(), Replays: []doorward.Action{doorward.UserRole}}
	body.Activity = activity{eventTable{Trail: auditPath, Label: "recent-title"}, "hooks", hook.ID}
	if n != 2 {
		body.Days = chartOf("days-title", deliverySeries(), sampledUsage(oneDay, doorward.UsageDelivered, doorward.UsageRefused, doorward.UsageSilent), noon, oneDay, usageDays)
		sent := sampledDeliveries(n == 1)
		body.Bars, body.Deliveries = attemptChartOf(sent), deliveriesOf(sent[:deliveriesPerPage])
	}
	if n == 1 {
		tested := attemptOf(doorward.DeliveryAttempt{At: noon, Status: 500, Ms: 87, Answer: "upstream <connect> error"})
		body.Tested = &tested
	}
	v := ui.View{Page: "webhook", Title: "hooks.title", Body: body, Wide: true}
	if tab == "signing" {
		v.Scripts = []string{"secret.js"}
	}
	return v
}

func sampledDelivery() deliveryPage {
	const failing = true
	p := deliveryPage{pageData: basePage, Hook: sampledHooks()[1], Delivery: deliveryOf(sampledDeliveries(failing)[5]), Body: `{"type":"user.role","timestamp":"2026-11-21T12:00:00Z","data":{"id":"evt_5","seq":815}}`}
	p.Readable = readable([]byte(p.Body))
	for i := range p.Delivery.Tries {
		p.Delivery.Tries[i].Headers = []header{{"Webhook-Id", "evt_5"}, {"Webhook-Timestamp", "1795262400"}, {"Webhook-Signature", "v1," + strings.Repeat("mIHAl+aH6di", 4) + " v1a," + strings.Repeat("qalILRNE/Qd", 8)}}
	}
	return p
}

func sampledDemand() demand {
	return demand{pageData: basePage, More: 12, Preview: tenant.DemandPreview{
		ByRole: []store.RoleCount{{Role: doorward.RoleAdmin, Count: 2}, {Role: doorward.RoleUser, Count: 12}},
		People: members[:2], Count: 14, Sessions: 3, At: noon.AddDate(0, 0, 7), GraceDays: 7,
	}}
}

func sampledSettings(tab string) settings {
	return settings{
		pageData: basePage, Tabs: onTab(tab, "general", "sessions", "factors", "appearance", "danger"), Numbers: []number{
			{doorward.Setting{Name: "sessionIdleMinutes", Section: "sessions", Unit: doorward.InMinutes, Max: 60}, 60},
			{doorward.Setting{Name: "sessionAbsoluteMinutes", Section: "sessions", Unit: doorward.InMinutes, Max: 1440}, 1440},
			{doorward.Setting{Name: "invitationDays", Section: "general", Unit: doorward.InDays, Min: 1, Max: 30}, 30},
			{doorward.Setting{Name: "keepEventsDays", Section: "general", Unit: doorward.InDays, Max: 3650}, 365},
			{doorward.Setting{Name: "mfaGraceDays", Section: "factors", Unit: doorward.InDays, Max: 30}, 7},
			{doorward.Setting{Name: "mfaRememberDays", Section: "factors", Unit: doorward.InDays, Max: 30}, 14},
			{doorward.Setting{Name: "stepUpMinutes", Section: "factors", Unit: doorward.InMinutes, Min: 1, Max: 60}, 10},
		},
		Domains: "acme.example", Picked: doorward.DefaultAccent, MaxLogoBytes: doorward.MaxLogoSent,
		Demanded: true, Covered: []coveredRole{{doorward.RoleOwner, true}, {doorward.RoleAdmin, true}, {doorward.RoleUser, false}, {doorward.RoleViewer, false}}, People: 12, Without: 3,
	}
}

func sampledBrandSettings() settings {
	page := sampledSettings("appearance")
	page.pageData, page.Picked = branded, branded.Tenant.Brand.Accent
	return page
}

func sampledConflict() settings {
	page := sampledSettings("general")
	page.Tenant.Name = "Acme of the other"
	page.Conflicts = []conflict{
		{Label: "field.tenant", Typed: []string{"Acme of mine"}, Stored: []string{"Acme of the other"}},
		{Label: "field.allowedEmailDomains", Typed: []string{"acme.example", "acme.test"}, Stored: []string{"acme.example"}},
	}
	return page
}

// onTab are tabs, of which one is shown.
func onTab(current string, names ...string) ui.Tabs {
	all := ui.Tabs{Current: current}
	for _, name := range names {
		all.Items = append(all.Items, ui.Tab{Name: name, Link: "?tab=" + name})
	}
	return all
}

// scripts are those of pages, besides console.js.
var scripts = map[string]string{
	"settings": "settings.js", "operatorlink": "code.js", "operator": "code.js", "operatortenant": "code.js", "operatoract": "code.js",
	"operatortrail": "code.js", "operatornodes": "code.js", "operatormails": "code.js", "operatordeliveries": "code.js",
}

// refreshed are the pages that keep themselves up to date, unless they answer a form.
var refreshed = []string{"overview", "people", "person", "invitations", "audit", "keys", "webhooks", "webhook", "webhookdelivery", "connections", "runs", "run"}

// keepsItselfFresh reports whether the page is refreshed; of one with tabs only one is.
func keepsItselfFresh(v ui.View) bool {
	switch body := v.Body.(type) {
	case person:
		return body.Tabs.Is("sessions")
	case webhookPage:
		return body.Tabs.Is("deliveries")
	}
	return slices.Contains(refreshed, v.Page)
}

// TestPagesRender renders every page with canned data, in every language, without a
// server. With -render it writes them to files.
func TestPagesRender(t *testing.T) {
	all := slices.Concat(samples(), findSamples(), signOnSamples())
	for i := range all {
		v := &all[i].View
		v.Styles, v.Scripts = []string{"console.css"}, append([]string{"console.js"}, v.Scripts...)
		if script := scripts[v.Page]; script != "" {
			v.Scripts = append(v.Scripts, script)
		}
		if keepsItselfFresh(*v) && !all[i].Frame.Posted {
			v.Scripts = append(v.Scripts, "live.js")
		}
		if shown, ok := v.Body.(interface{ tenantShown() doorward.Tenant }); ok {
			v.Tenant = shown.tenantShown()
		}
	}
	accent := branded.Tenant.Brand.Accent
	uitest.Pages(t, set, "console", all, map[string][]byte{logo.Path(): logoPNG, uitest.AccentFile(accent): []byte(ui.AccentSheet(accent))})
}

// withWord adds the tenant's word for a reset of the person's factors.
func withWord(p person) person {
	at := noon
	p.User.ResetAskedAt, p.User.Factors = &at, 1
	return p
}

func importSamples() []uitest.Sample {
	unproved := refusedWith()
	unproved.Fault, unproved.StepUp = uitest.Said("notice.step_up_required"), true
	return []uitest.Sample{
		{Name: "import", View: ui.View{Page: "import", Wide: true, Body: sampledImport(nil)}, Frame: owner},
		{Name: "import-unsent", View: ui.View{Page: "import", Wide: true, Body: sampledImport(nil)}, Frame: unproved},
		{Name: "imported", View: ui.View{Page: "imported", Wide: true, Body: sampledImport(sampledSent())}, Frame: owner},
		{Name: "imported-part", View: ui.View{Page: "imported", Wide: true, Body: sampledPartOfImport()}, Frame: owner},
	}
}

// sampledImport is a list of which the first offers have become what sent says.
func sampledImport(sent []invite.Sent) importPage {
	people := []invite.Planned{
		{Line: 2, Email: "ann@acme.example", Role: "USER", Fault: "left.already_member"},
		{Line: 3, Email: "bob@acme.example", Role: "USER", Fault: "left.invitation_pending"},
		{Line: 4, Email: "nobody", Name: "Cid", Role: "USER", Fault: "left.email.invalid"},
		{Line: 5, Email: "dora@acme.example", Role: "BOSS", Fault: "left.role"},
		{Line: 6, Email: "rainer.maria.von.und.zu.hohenstein@a-very-long-name-of-a-company.example", Name: "Rainer Maria von und zu Hohenstein-Wittelsbach", Role: "ADMIN"},
	}
	for n := range 120 {
		people = append(people, invite.Planned{Line: 7 + n, Email: fmt.Sprintf("person%d@acme.example", n), Role: []string{"USER", "VIEWER"}[n%2]})
	}
	page := newImportPage(basePage, invite.Plan{People: people}, sent)
	page.Plan = "sealed"
	if sent == nil {
		page.Unchecked = 20
	}
	return page
}

// sampledSent is what has become of all of them, but one.
func sampledSent() []invite.Sent {
	all := make([]invite.Sent, 121)
	for n := range all {
		all[n].Invitation.ID = "inv_1"
	}
	all[60].Err = doorward.Fail(doorward.CodeResendTooSoon, "")
	return all
}

func sampledPartOfImport() importPage {
	page := sampledImport(sampledSent()[:50])
	page.Why, page.NeedsProof = uitest.Said("notice.step_up_required"), true
	return page
}
