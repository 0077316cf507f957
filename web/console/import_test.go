package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
)

var planField = regexp.MustCompile(`name="plan" value="([^"]+)"`)

// A long list is shown with its faults by line before anything is sent. What is sent is what was shown, once, however
// often the form is sent; the answer says what became of each line.
func TestImport(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	owner := open(t, s, acme.Owner)
	member := acme.Join("member@acme.example", "USER")
	owner.submit("/console/invitations/new", url.Values{"people": {"open@x.example"}, "role": {"USER"}, "expiresInDays": {"3"}})
	var list strings.Builder
	fmt.Fprintf(&list, "\ufeffRolle;E-Mail;Name\r\nUSER;%s;\r\nUSER;open@x.example;\r\nBOSS;boss@x.example;\r\nUSER;nobody;=HYPERLINK(1)\r\n", member.Email)
	for i := range 120 {
		fmt.Fprintf(&list, "VIEWER;p%d@x.example;\"<b>P;%d</b>\"\r\n", i, i)
	}
	list.WriteString("USER;p7@x.example;again\r\n\r\n")
	res, page := owner.upload("/console/invitations/preview/file?tab=file", []part{{"file", "people.csv", list.String()}, {"role", "", "USER"}, {"expiresInDays", "", "3"}, {"locale", "", "de"}})
	owner.shows("the list", res, page, http.StatusOK, []string{
		"120 people can be invited.", "Viewer: 120", "1 is in the organisation already.", "1 has an open invitation already.", "3 lines have a fault.", "Invite 120 people",
		"Line 4", "you can’t give this role", "Line 5", "is not an e-mail address", "Line 126", "is there twice", "&lt;b&gt;P;7&lt;/b&gt;",
	})
	if n := invitationsOf(t, acme.Owner); n != 1 {
		t.Fatalf("%d invitations before the list is confirmed", n)
	}
	form := url.Values{"plan": {owner.findOn(planField, page)}}
	for range 2 {
		owner.post("/console/invitations/import", form, http.StatusOK, "The list is done", "120 invitations are on their way.", "1 is in the organisation already.", "3 lines have a fault.", "Line 126", "120 people are invited")
	}
	if n := invitationsOf(t, acme.Owner); n != 121 {
		t.Errorf("%d invitations", n)
	}
	s.Code("p119@x.example") // waits for the last mail
	if mails := s.Mails("p7@x.example"); len(mails) != 1 {
		t.Errorf("the mails to one of them: %v", mails)
	}
	admin := open(t, s, acme.Join("admin@acme.example", "ADMIN"))
	admin.post("/console/invitations/import", form, http.StatusUnprocessableEntity, "Check it again")
	owner.post("/console/invitations/import", url.Values{}, http.StatusUnprocessableEntity, "Check it again")
	open(t, s, member).post("/console/invitations/import", form, http.StatusForbidden)
}

// An ADMIN's list of OWNERs is refused line by line, before anything is sent; so is one pasted beyond the limit.
func TestImportOfOwners(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	admin := open(t, s, acme.Join("admin@acme.example", "ADMIN"))
	paste := func(text string, status int, want ...string) string {
		t.Helper()
		return admin.post("/console/invitations/new", url.Values{"people": {text}, "role": {"USER"}, "expiresInDays": {"3"}}, status, want...)
	}
	owners := "email,role\n" + strings.ReplaceAll(listOfPeople(101), "\n", ",OWNER\n")
	page := paste(owners, http.StatusOK, "101 lines have a fault.", "you can’t give this role")
	if strings.Contains(page, `class="button">`) {
		t.Error("there is a button to send it")
	}
	admin.post("/console/invitations/import", url.Values{"plan": {admin.findOn(planField, page)}}, http.StatusOK, "0 invitations are on their way.")
	paste(listOfPeople(1001), http.StatusUnprocessableEntity, "Up to 1,000 people at once.")
	if n := invitationsOf(t, acme.Owner); n != 0 {
		t.Errorf("%d invitations", n)
	}
}

// No form invites more people than a list may have: neither one of lines, of which each repeats the same person, nor the rows
// of a preview.
func TestImportOfTooMany(t *testing.T) {
	s := doorwardtest.Start(t)
	owner := open(t, s, s.Tenant("Acme").Owner)
	form := url.Values{"people": {"email,name\n" + strings.Repeat("a@x.example,\"A\n", 10_000)}, "role": {"USER"}, "expiresInDays": {"3"}}
	owner.post("/console/invitations/new", form, http.StatusUnprocessableEntity, "Up to 1,000 people at once.")
	form.Set("people", "email,name\n"+strings.Repeat("a@x.example,\"A\n", 9_999))
	owner.post("/console/invitations/preview", form, http.StatusOK, "a@x.example")
	rows := url.Values{"role": {"USER"}, "expiresInDays": {"3"}}
	for n := range 1001 {
		rows.Add("email", fmt.Sprintf("p%d@x.example", n))
		rows.Add("name", "")
		rows.Add("rowRole", "USER")
	}
	owner.post("/console/invitations/preview", rows, http.StatusUnprocessableEntity, "Up to 1,000 people at once.")
}

// A list as long as a file can be, of what takes the most room, still goes to the browser and back.
func TestLargestImport(t *testing.T) {
	s := doorwardtest.Start(t)
	owner := open(t, s, s.Tenant("Acme").Owner)
	text := "role,email,name\n"
	for n := range 900 {
		text += fmt.Sprintf("%[1]s,%[1]s%[2]d,%[1]s\n", strings.Repeat(`\<`, 46), n)
	}
	res, page := owner.upload("/console/invitations/preview/file?tab=file", []part{{"file", "people.csv", text[:min(len(text), 256<<10)]}, {"role", "", "USER"}, {"expiresInDays", "", "3"}, {"locale", "", "en"}})
	owner.shows("the list", res, page, http.StatusOK, []string{"lines have a fault."})
	owner.post("/console/invitations/import", url.Values{"plan": {owner.findOn(planField, page)}}, http.StatusOK, "The list is done", "0 invitations are on their way.")
}

// invitationsOf returns how many invitations are open in the person's tenant.
func invitationsOf(t *testing.T, p *doorwardtest.Person) (n int) {
	t.Helper()
	var list struct{ Total int }
	status, body := p.Get("/api/v2/invitations?status=PENDING")
	if err := json.Unmarshal(body, &list); err != nil || status != http.StatusOK {
		t.Fatal(status, err)
	}
	return list.Total
}
