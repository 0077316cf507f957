package console

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/connection"
	demands "github.com/doorward/doorward/app/demand"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/app/directoryrun"
	"github.com/doorward/doorward/app/setuplink"
	"github.com/doorward/doorward/web/ui"
	"github.com/doorward/doorward/web/ui/uitest"
)

// signOnSamples are the pages of sign-on.
func signOnSamples() []uitest.Sample {
	wide := func(page string, body any) ui.View { return ui.View{Page: page, Wide: true, Body: body} }
	act := func(name string, q connectionQuestion) ui.View {
		q.IsCounted, q.pageData, q.Connection, q.Act, q.Danger, q.Back = true, basePage, sampledProviders()[1], name, connectionActions[name].danger, connectionPath+"/con_1"
		return ui.View{Page: "connectionact", Title: "sso." + name + ".title", Body: q}
	}
	untested := act("enable", connectionQuestion{Idle: true})
	body, _ := untested.Body.(connectionQuestion)
	body.Connection = sampledProviders()[2]
	untested.Body = body
	list := connectionList{pageData: basePage, Tabs: sampledTabs("connections"), Idle: true}
	for n, p := range append(sampledProviders(), sampledSAML(doorward.Okta, doorward.ConnectionActive)) {
		list.Items = append(list.Items, listedConnection{p, []string{"acme.example", "acme.test", "acme.org"}[:2-n%2]})
	}
	confirming := sampledSSOPolicy(true)
	confirming.CanConfirm = true
	unproved := refusedWith()
	unproved.Fault = uitest.Said("notice.domain_not_proved")
	people := []connection.Person{{UserID: "usr_ann", Email: members[0].Email, Sessions: 2}, {UserID: "usr_ben", Email: members[1].Email}}
	return append(samlSamples(), []uitest.Sample{
		{Name: "connections", View: ui.View{Page: "connections", Title: "sso.title", Wide: true, Body: list}, Frame: owner},
		{Name: "connections-none", View: ui.View{Page: "connections", Title: "sso.title", Wide: true, Body: connectionList{pageData: basePage, Tabs: sampledTabs("connections")}}, Frame: owner},
		{Name: "connectionnew", View: ui.View{Page: "connectionnew", Title: "sso.new", Wide: true, Body: newConnection{basePage, "okta", "oidc"}}, Frame: owner},
		{Name: "connectionnew-refused", View: ui.View{Page: "connectionnew", Title: "sso.new", Wide: true, Body: newConnection{basePage, "other", "scim"}}, Frame: refusedWith("name.required")},
		{Name: "connection", View: sampledConnection(1, "setup"), Frame: owner},
		{Name: "connection-draft", View: sampledConnection(2, "setup"), Frame: owner},
		{Name: "connection-pending", View: sampledConnection(0, "setup"), Frame: owner},
		{Name: "connection-refused", View: sampledConnection(2, "setup"), Frame: refusedWith("issuer.multi_tenant_issuer")},
		{Name: "connection-secrets", View: sampledConnection(0, "secrets"), Frame: owner},
		{Name: "connection-keys", View: sampledConnection(1, "keys"), Frame: owner},
		{Name: "connection-test", View: sampledTestPage(1, doorward.TestPassed), Frame: owner},
		{Name: "connection-test-waiting", View: sampledTestPage(0, doorward.TestWaiting), Frame: owner},
		{Name: "connection-test-begun", View: begunTestPage(), Frame: owner},
		{Name: "connection-test-failed", View: sampledTestPage(0, doorward.TestFailed), Frame: owner},
		{Name: "connection-test-missing", View: sampledConnection(2, "test"), Frame: owner},
		{Name: "connection-access", View: sampledConnection(1, "access"), Frame: owner},
		{Name: "connection-identities", View: sampledConnection(1, "identities"), Frame: owner},
		{Name: "connection-directory", View: sampledConnection(0, "directory"), Frame: owner},
		{Name: "directory-draft", View: sampledDirectory(doorward.OtherProduct, "directory"), Frame: refusedWith("name.required")},
		{Name: "directory-okta", View: sampledDirectory(doorward.Okta, "directory"), Frame: owner},
		{Name: "directory-ping", View: sampledDirectory(doorward.Ping, "directory"), Frame: owner},
		{Name: "directory-access", View: sampledDirectory(doorward.Okta, "access"), Frame: owner},
		{Name: "scimsecretmade", View: ui.View{Page: "scimsecretmade", Title: "scim.secret.made", Scripts: []string{"secret.js"}, Body: madeSCIMSecret{basePage, directory.NewSecret{SCIMSecret: sampledDirectorySecrets()[0], Text: "dwc_3f8h2k9qm4x7yh4n6rj7wd2c5tpae7kb6m"}, sampledProviders()[0], scimURL}}, Frame: owner},
		{Name: "connection-protocol", View: sampledConnection(1, "protocol"), Frame: owner},
		{Name: "connection-unread", View: sampledUnread(), Frame: owner},
		{Name: "connection-protocol-none", View: sampledConnection(2, "protocol"), Frame: owner},
		{Name: "connection-activity", View: sampledConnection(1, "activity"), Frame: owner},
		{Name: "connectionact-enable", View: untested, Frame: owner},
		{Name: "connectionact-disable", View: act("disable", connectionQuestion{Ends: connection.Ended{Sessions: 2, Managed: 12, People: people[:1]}}), Frame: owner},
		{Name: "connectionact-switch", View: act("switch", connectionQuestion{Resting: 2, Concerned: people}), Frame: owner},
		{Name: "connectionact-setup-end", View: act("setup-end", connectionQuestion{}), Frame: owner},
		{Name: "setuplink", View: ui.View{Page: "setuplink", Title: "sso.link", Body: setupLinkQuestion{basePage, sampledProviders()[1], sampledSetupLink(), 7, false}}, Frame: owner},
		{Name: "setuplinkmade", View: ui.View{Page: "setuplinkmade", Title: "sso.link.made.title", Scripts: []string{"secret.js"}, Body: madeSetupLink{basePage, setuplink.Made{SetupLink: *sampledSetupLink(), URL: "https://auth.acme.example/setup#token=XJ0Mvz5XtmLcDHXCQ1AFSSSmYyKJGEcjKMoTPcuMgRk"}, sampledProviders()[1]}}, Frame: owner},
		{Name: "runs", View: wide("runs", sampledRuns()), Frame: owner},
		{Name: "runs-none", View: wide("runs", runsPage{pageData: basePage, Connection: sampledProviders()[0]}), Frame: owner},
		{Name: "run", View: wide("run", sampledRun(0)), Frame: owner},
		{Name: "run-undone", View: wide("run", sampledRun(2)), Frame: owner},
		{Name: "runundo", View: ui.View{Page: "runundo", Title: "runs.undo.title", Body: sampledUndo()}, Frame: owner},
		{Name: "runundo-late", View: ui.View{Page: "runundo", Title: "runs.undo.title", Body: undoQuestion{pageData: basePage, Connection: sampledProviders()[0], Run: sampledRuns().Items[3]}}, Frame: owner},
		{Name: "connectionact-scim-secret", View: act("scim-secret", connectionQuestion{Of: "scs_1", Part: "dwc_w0eB…g3VC"}), Frame: owner},
		{Name: "connectionact-secret", View: act("secret", connectionQuestion{Of: "ccs_1", Part: "9xQ2"}), Frame: owner},
		{Name: "domains", View: wide("domains", domainList{pageData: basePage, Tabs: sampledTabs("domains"), Items: sampledDomains()}), Frame: owner},
		{Name: "domains-none", View: wide("domains", domainList{pageData: basePage, Tabs: sampledTabs("domains")}), Frame: refusedWith("domain.invalid")},
		{Name: "domain", View: sampledDomainPage(1, false), Frame: owner},
		{Name: "domain-lapsed", View: sampledDomainPage(2, false), Frame: owner},
		{Name: "domain-unproved", View: sampledDomainPage(1, true), Frame: unproved},
		{Name: "domainend", View: ui.View{Page: "domainend", Title: "sso.domain.delete.title", Body: domainPage{pageData: basePage, Domain: sampledDomains()[0]}}, Frame: owner},
		{Name: "ssopolicy", View: wide("ssopolicy", sampledSSOPolicy(false)), Frame: owner},
		{Name: "ssopolicy-provisional", View: wide("ssopolicy", sampledSSOPolicy(true)), Frame: owner},
		{Name: "ssopolicy-confirm", View: wide("ssopolicy", confirming), Frame: owner},
		{Name: "ssopolicyact", View: ui.View{Page: "ssopolicyact", Title: "sso.ask.required", Body: sampledSSOPolicy(false)}, Frame: owner},
		{Name: "ssopolicyact-off", View: ui.View{Page: "ssopolicyact", Title: "sso.ask.off", Body: ssoPolicyPage{pageData: basePage, Mode: "off", Guests: "allowed", Minutes: "30"}}, Frame: owner},
	}...)
}

func sampledTabs(current string) ui.Tabs { return onTab(current, "connections", "domains", "policy") }

// sampledProviders are an active one with a change that waits and secrets, an active one with keys, and a
// draft with a long name.
func sampledProviders() (all []provider) {
	used, soon := noon.Add(-time.Hour), noon.AddDate(0, 0, 12)
	for n, product := range []doorward.Product{doorward.Entra, doorward.Okta, doorward.OtherProduct} {
		c := doorward.Connection{
			ID: fmt.Sprint("con_", n), TenantID: acme.ID, Type: doorward.OpenIDConnect, Product: product, Name: []string{"Acme Entra", "Acme Okta", strings.Repeat("A provider with a long name ", 3)}[n],
			Status: doorward.ConnectionActive, CreatedAt: noon.AddDate(0, -2, n), LastSignInAt: &used, JIT: doorward.JITDomains, JITRole: doorward.RoleUser, GroupsFrom: "groups", Ends: doorward.EndsTenant,
			InForce:  doorward.ConnectionParameters{Issuer: "https://acme.okta.com", ClientID: "0oa1b2c3d4e5F6g7H8i9", ClientAuth: product.DefaultClientAuth(), EmailFrom: "email", TestedAt: &used},
			Mappings: []doorward.GroupMapping{{Group: "Everyone in the department of sales and marketing", Role: doorward.RoleUser}, {Group: "it-admins", Role: doorward.RoleAdmin}},
		}
		one := provider{connection.Shown{Connection: c}, noon}
		switch n {
		case 0:
			one.InForce.Issuer = "https://login.microsoftonline.com/8f0d2c1e-6a57-4f0e-9a33-2f5a1c9d7e10/v2.0"
			waiting := one.InForce
			waiting.Issuer, waiting.EmailFrom, waiting.TestedAt = "https://login.microsoftonline.com/1b7e4a90-3c55-4c1e-8d21-7e60f2b4a9c3/v2.0", "preferred_username", nil
			one.Pending = &waiting
			one.SCIM, one.Outside = sampledDirectorySecrets(), doorward.OutsideInvite
			one.Secrets = []doorward.ConnectionSecret{{ID: "ccs_1", Hint: "9xQ2", CreatedAt: used, ExpiresAt: &soon}, {ID: "ccs_2", Hint: "Ab3f", CreatedAt: used.AddDate(0, -6, 0), ExpiresAt: &used, LastUsedAt: &used}, {ID: "ccs_3", Hint: "kE7w", CreatedAt: used.AddDate(-1, 0, 0), IsLost: true}}
		case 2:
			one.Status, one.LastSignInAt, one.InForce = doorward.ConnectionDraft, nil, doorward.ConnectionParameters{ClientAuth: doorward.SecretBasic, EmailFrom: "email"}
			one.JIT, one.Mappings = doorward.JITOff, nil
		}
		all = append(all, one)
	}
	return all
}

// sampledUnread is the page of a connection whose provider can't be read for two days.
func sampledUnread() ui.View {
	v := sampledConnection(1, "protocol")
	body, _ := v.Body.(connectionPage)
	body.Connection.UnreadSince = noon.AddDate(0, 0, -2)
	v.Body = body
	return v
}

func sampledConnection(n int, tab string) ui.View {
	p := sampledProviders()[n]
	address := "https://auth.acme.example/api/v2/auth/sso/con_6tqm7x3yh4n6rj7wd2c5tpae7k/"
	body := connectionPage{
		pageData: basePage, Connection: p, Guide: ui.Guide{Product: p.Product, Callback: address + "callback", Start: address + "start", Revoke: address + "revoke", Logout: address + "backchannel-logout"}, Mappings: p.Mappings, Domains: []string{"acme.example"},
		Form: ui.StoredParameters(p.Edited()),
		Keys: []ui.PublishedKey{{ID: "jN3w1p0mQk2r7t", Alg: "ES256"}, {ID: "b8Xc5s9vLz4y6u", Alg: "ES256"}}, Roles: highestFirst(nil)[1:],
		Activity: sampledActivity("connection", p.ID), pager: pager{Filter: filters(url.Values{}), Next: "?cursor=next", From: 1, To: 3, Total: 163},
	}
	names := []string{"setup", "secrets", "test", "access", "identities", "directory", "protocol", "activity"}
	if p.UsesKeys() {
		names[1], body.Guide.KeysURL = "keys", address+"jwks"
	}
	if n == 2 {
		body.SetupLink = sampledSetupLink()
	}
	if body.Tabs = onTab(tab, names...); n == 1 {
		body.Attempts, body.Identities = sampledAttempts(), sampledIdentities()
		body.SignIns = chartOf("days-title", connectionSeries(), sampledUsage(oneDay, doorward.UsageSignedIn, doorward.UsageRefused, doorward.UsageUnavailable), noon, oneDay, usageDays)
	}
	body.Directory = ui.DirectoryGuide{Product: p.Product, URL: scimURL}
	body.State = ui.NewDirectoryState(p.Connection, p.SCIM, sampledDirectoryFaults()[0], "")
	body.LastRun = &sampledRuns().Items[1]
	v := ui.View{Page: "connection", Title: "sso.title", Body: body, Wide: true}
	if tab == "setup" || tab == "keys" || tab == "test" || tab == "access" || tab == "directory" {
		v.Scripts = []string{"secret.js"}
	}
	return v
}

const scimURL = "https://auth.acme.example/scim/v2"

// sampledDirectorySecrets are one that ends soon, and one that has ended.
func sampledDirectorySecrets() []doorward.SCIMSecret {
	used, soon := noon.Add(-time.Minute), noon.AddDate(0, 0, 12)
	return []doorward.SCIMSecret{{ID: "scs_1", Hint: "dwc_w0eB…g3VC", CreatedAt: used, ExpiresAt: &soon, LastUsedAt: &used, BySetupLink: true}, {ID: "scs_2", Hint: "dwc_QLZV…h90D", CreatedAt: used.AddDate(-1, 0, 0), ExpiresAt: &used}}
}

func sampledDirectoryFaults() (all []doorward.Attempt) {
	for n, a := range []doorward.Attempt{
		{Check: "uniqueness", Advice: "scim_uniqueness", Subject: "ann@acme.example", Seen: "POST /Users (active, displayName, emails, externalId, name, schemas, userName) → 409 uniqueness Somebody else has this userName."},
		{Check: "invalidValue", Advice: "scim_domain", Count: 490},
		{Check: "secret", Advice: "scim_secret", Seen: "GET /Users → 401 the secret dwc_QLZV…h90D"},
		{Outcome: doorward.AttemptDone, Check: "groups", Advice: "scim_members", Subject: "Sales", Seen: "members were removed from a group that they aren't in"},
	} {
		if a.Outcome == "" {
			a.Outcome = doorward.AttemptRefused
		}
		a.ID, a.Kind, a.At, a.Count, a.RequestIDs = fmt.Sprint("att_", n), doorward.AttemptSCIM, noon.Add(-time.Duration(n)*time.Hour), max(a.Count, 1), []string{"req_5tqm7x3yh4n6rj7wd2c5tpae7k"}
		all = append(all, a)
	}
	return all
}

// sampledDirectory is the page of a directory alone: of another product a draft, which nobody has asked by.
func sampledDirectory(product doorward.Product, tab string) ui.View {
	v := sampledConnection(2, tab)
	body, _ := v.Body.(connectionPage)
	p := &body.Connection
	p.Type, p.Product, p.JITRole, p.Outside = doorward.SCIMDirectory, product, doorward.RoleUser, doorward.OutsideInvite
	body.Directory.Product, body.State, body.LastRun = product, ui.DirectoryState{}, nil
	if product != doorward.OtherProduct {
		p.Name, p.Status, p.SCIM = "Acme directory", doorward.ConnectionActive, sampledDirectorySecrets()
		body.Mappings = sampledProviders()[0].Mappings
		body.State = ui.NewDirectoryState(p.Connection, p.SCIM, sampledDirectoryFaults()[2], "")
	}
	body.Tabs = onTab(tab, "directory", "access", "protocol", "activity")
	v.Body = body
	return v
}

// sampledRuns are an open one, one whose undo is under way, one that is undone, and one that is too old for that.
func sampledRuns() runsPage {
	body := runsPage{pageData: basePage, Connection: sampledProviders()[0], pager: pager{Filter: filters(url.Values{}), Next: "?cursor=next", From: 1, To: 4, Total: 41}}
	for n, r := range []doorward.DirectoryRun{
		{Made: 12, Changed: 3}, {Suspended: 5213, Undo: doorward.UndoRunning, Undone: 1200, Left: 2}, {Made: 1, Changed: 2, Suspended: 214, Removed: 12, Undo: doorward.UndoDone, Undone: 226, Left: 2}, {Changed: 1},
	} {
		r.ID, r.From = fmt.Sprint("run_", n), noon.Add(-time.Duration(n)*26*time.Hour)
		r.Last = r.From.Add(4 * time.Minute)
		body.Items = append(body.Items, shownRun{directoryrun.Run{DirectoryRun: r, IsOpen: n == 0}, n < 3})
	}
	return body
}

func sampledRun(n int) runPage {
	body := runPage{pageData: basePage, Connection: sampledProviders()[0], Run: sampledRuns().Items[n], pager: pager{Filter: filters(url.Values{}), Next: "?cursor=next", From: 1, To: 6, Total: 229}}
	person := subject{members[0].Name, "/console/people/usr_ann"}
	effect := func(kind doorward.DirectoryEffectKind, id string) directoryrun.Effect {
		return directoryrun.Effect{DirectoryEffect: doorward.DirectoryEffect{ID: fmt.Sprint("eff_", kind, id), At: noon, Kind: kind, SubjectID: id}}
	}
	group := shownEffect{Effect: effect(doorward.DirectoryChanged, "grp_1"), Subject: subject{Name: "Everyone in the department of sales and marketing"}, Changes: []effectChange{{Label: "field.name", Was: "Sales", Is: "Everyone in the department of sales and marketing"}}, Joined: []string{"Ann Lee", members[1].Email}}
	group.JoinedTotal = 214
	body.Effects = []shownEffect{
		{Effect: effect(doorward.DirectoryMade, "usr_1"), Subject: person, Changes: []effectChange{{Label: "field.email", Is: "ann@acme.example"}, {Label: "field.role", Is: "USER", IsRole: true}}},
		{Effect: effect(doorward.DirectorySuspended, "usr_1"), Subject: person},
		{Effect: effect(doorward.DirectoryResumed, "usr_1"), Subject: person},
		{Effect: effect(doorward.DirectoryRemoved, "usr_2"), Subject: subject{Name: strings.Repeat("a-long-name.", 5) + "@acme.example"}, Changes: []effectChange{{Label: "field.role", Was: "ADMIN", IsRole: true}}},
		group,
		{Effect: effect(doorward.DirectoryRemoved, "grp_2"), Subject: subject{Name: "it-admins"}},
	}
	if n == 2 {
		body.Left = []shownLeft{{person, undoneKey(doorward.UndoneChangedSince)}, {subject{Name: "ben@acme.example"}, undoneKey("no_way_back")}}
	}
	return body
}

func sampledUndo() undoQuestion {
	q := undoQuestion{pageData: basePage, Connection: sampledProviders()[0], Run: sampledRuns().Items[0], IsShown: true, BackTotal: 214, LeftTotal: 2, Unlooked: 4213, Left: sampledRun(2).Left}
	for n, u := range members {
		q.Back = append(q.Back, shownBack{subject{u.Email, "/console/people/" + u.ID}, []string{"runs.does.rejoins", "runs.does.role"}[:1+n%2]})
	}
	return q
}

// sampledSetupLink is a link by which somebody has begun.
func sampledSetupLink() *doorward.SetupLink {
	begun := noon.Add(-time.Hour)
	return &doorward.SetupLink{ID: "stl_1", TenantID: acme.ID, ConnectionID: "con_1", MakerEmail: members[0].Email, EndsAt: noon.AddDate(0, 0, 6), BegunAt: &begun}
}

func sampledIdentities() (all []linked) {
	for n, u := range members {
		one := doorward.Identity{ID: fmt.Sprint("idn_", n), ConnectionID: "con_1", Issuer: doorward.ConnectionParameters{Issuer: "https://idp.example", SubjectFrom: []string{"", "objectidentifier"}[n%2]}.IdentityIssuer(), Subject: "00u1b2c3d4" + strings.Repeat("e5F6", 1+n*10), UserID: u.ID, LastUsedAt: noon.Add(-time.Duration(n) * time.Hour)}
		all = append(all, linked{one, u.Email, n != 2})
	}
	return all
}

func sampledAttempts() (all []tried) {
	for n, a := range []doorward.Attempt{
		{Kind: doorward.AttemptSignIn, Outcome: doorward.AttemptSignedIn, UserID: "usr_ann"},
		{Kind: doorward.AttemptSignIn, Outcome: doorward.AttemptRefused, Check: "provider_error", Seen: "access_denied: User is not assigned to the client application.", Advice: "assignment", Count: 7},
		{Kind: doorward.AttemptMetadata, Outcome: doorward.AttemptUnavailable, Check: "of_a_newer_version", Advice: "retry"},
		{Kind: doorward.AttemptTest, Outcome: doorward.AttemptDone, Subject: "00u" + strings.Repeat("1b2c3d4", 6)},
		sampledDirectoryFaults()[0],
		sampledDirectoryFaults()[1],
	} {
		a.ID, a.At, a.Count, a.RequestIDs = fmt.Sprint("att_", n), noon.Add(-time.Duration(n)*time.Hour), max(a.Count, 1), []string{"req_5tqm7x3yh4n6rj7wd2c5tpae7k", "req_7vkq2m5x3yh4n6rj7wd2c5tpae"}
		one := tried{Attempt: ui.Attempt{Attempt: a}}
		if a.UserID != "" {
			one.Person = members[0].Name
		}
		all = append(all, one)
	}
	return all
}

func sampledTestPage(n int, status doorward.TestStatus) ui.View {
	v := sampledConnection(n, "test")
	body, _ := v.Body.(connectionPage)
	checks := []doorward.TestCheck{{Name: "state", OK: true}, {Name: "client", OK: true}, {Name: "iss", OK: true}, {Name: "email", OK: true, Seen: "ann@acme.example", Wanted: "email"}, {Name: "of_a_newer_version", OK: true}}
	if status == doorward.TestPassed {
		checks = append(checks, doorward.TestCheck{Name: "domain", Seen: "acme.example", Advice: "domain"}) // fails no test
	}
	if status == doorward.TestFailed {
		checks = append(checks[:3], doorward.TestCheck{Name: "aud", Seen: "0oaAnotherClient", Wanted: "0oa1b2c3d4e5F6g7H8i9", Advice: "client_id"})
	}
	edited, isPending := body.Connection.ToTest()
	begun := noon.Add(-time.Hour)
	test := doorward.ConnectionTest{ID: "tst_1", Status: status, Pending: isPending, Fingerprint: edited.Fingerprint(), CreatedAt: begun}
	if status != doorward.TestWaiting {
		test.Checks, test.BegunAt, test.EndedAt = checks, &begun, &begun
		body.Claims = readable([]byte(`{"sub":"00u1b2c3d4","email":"ann@acme.example","groups":["it-admins"]}`))
	}
	shown := ui.NewTestResult(test, body.Connection.Connection, body.Guide, "")
	if shown.Waits() {
		shown.URL = body.Guide.Start + "?test=tst_1"
	}
	body.Test = &shown
	v.Body = body
	return v
}

func sampledDomains() (all []shownDomain) {
	gone, looked := noon.Add(-30*time.Hour), noon.Add(-time.Hour)
	for n, status := range []doorward.DomainStatus{doorward.DomainVerified, doorward.DomainPending, doorward.DomainLapsed} {
		d := doorward.Domain{ID: fmt.Sprint("dom_", n), TenantID: acme.ID, Name: []string{"acme.example", "xn--bcher-kva.example", strings.Repeat("a-long-name.", 8) + "example"}[n], Status: status, Token: "k5xr2m7tq4wd6yh3n5j7pae2c9", CreatedAt: noon.AddDate(0, -1, 0)}
		if n != 1 {
			d.VerifiedAt, d.CheckedAt, d.MissingSince, d.ConnectionID = &gone, &looked, &gone, "con_1"
		}
		one := shownDomain{Domain: d}
		if d.ConnectionID != "" {
			one.Connection = "Acme Okta"
		}
		all = append(all, one)
	}
	return all
}

func sampledDomainPage(n int, looked bool) ui.View {
	body := domainPage{pageData: basePage, Domain: sampledDomains()[n], Looked: looked}
	for _, p := range sampledProviders() {
		body.Connections = append(body.Connections, p.Connection)
	}
	if looked {
		body.Seen = []string{"doorward-verification=k5xr2m7tq4wd6yh3n5j7pae2c8"}
	}
	return ui.View{Page: "domain", Title: "sso.domains", Scripts: []string{"secret.js"}, Body: body, Wide: true}
}

func sampledSSOPolicy(provisional bool) ssoPolicyPage {
	p := ssoPolicyPage{
		pageData: basePage, Tabs: sampledTabs("policy"), Mode: "required", Guests: "allowed", Minutes: "30", Policy: doorward.SSOPolicy{Mode: doorward.SSORequired},
		Ready: readiness{
			Readiness: demands.Readiness{Members: 5213, Recently: 4870, Guests: 12, NeverCount: 31, Never: []demands.Unready{
				{UserID: "usr_ben", Email: members[1].Email, Why: demands.NotYet},
				{UserID: "usr_chen", Email: members[2].Email, Why: demands.DomainLapsed},
				{UserID: "usr_dalia", Email: members[3].Email, Why: demands.NoConnection},
				{UserID: "usr_max", Email: members[4].Email, Why: demands.Guest},
			}},
			Owners: []readyOwner{{"usr_ann", "Ann Lee", true}, {"usr_max", members[4].Name, false}}, Barred: 1,
		},
	}
	if provisional {
		until := noon.Add(24*time.Minute + 12*time.Second)
		p.Policy.ConfirmBy, p.Policy.BeforeMode = &until, doorward.SSOOptional
		p.Doors = []door{{"Acme Okta", "/start"}}
	}
	return p
}

// begunTestPage has a test that another browser has begun.
func begunTestPage() ui.View {
	v := sampledTestPage(0, doorward.TestWaiting)
	body, _ := v.Body.(connectionPage)
	body.Test.URL = ""
	return v
}
