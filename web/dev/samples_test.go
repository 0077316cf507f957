package dev

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
	"github.com/doorward/doorward/web/ui/uitest"
)

// TestPagesRender renders every page with canned data, in every language, without a
// server. With -render it writes them to a folder.
func TestPagesRender(t *testing.T) {
	s := &Start{Tenant: "Acme", Password: "open sesame 9042"}
	for _, role := range doorward.Roles {
		s.People = append(s.People, Person{role, string(role) + "@acme.example"})
	}
	letters := []mailView{{To: "ann@acme.example", Subject: "Ann Lee invites you to Acme", Text: "Hello,\n\nopen this link:\n", PagePath: "/dev/mail/0", HTMLPath: "letter.html", LinkPath: "/accept#token=canned"}}
	owner := ui.Frame{Caller: doorward.Caller{Principal: doorward.PrincipalOf(
		doorward.User{Email: "OWNER@acme.example", Role: doorward.RoleOwner, Status: doorward.UserActive}, doorward.Session{ID: "ses_1"})}}
	uitest.Pages(t, set, "dev", []uitest.Sample{
		{Name: "start", View: ui.View{Page: "start", Wide: true, Body: start{Start: s}}},
		{Name: "start-invited", View: ui.View{Page: "start", Wide: true, Done: "done.invited", Body: start{s, "OWNER@acme.example", true, letters}}, Frame: owner},
		{Name: "mail", View: ui.View{Page: "mail", Wide: true, Body: mailPage{Mails: letters}}, Frame: owner},
		{Name: "mail-none", View: ui.View{Page: "mail", Wide: true, Body: mailPage{Query: "nothing"}}},
		{Name: "mail-more", View: ui.View{Page: "mail", Wide: true, Body: mailPage{To: "ann@acme.example", Found: 51, Mails: letters, Older: "?from=50"}}},
		{Name: "letter", View: ui.View{Page: "letter", Wide: true, Body: letters[0]}},
	}, map[string][]byte{"letter.html": []byte("<!doctype html><title>Mail</title><p>Hello")})
}
