package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
)

// Files of spreadsheets and mail programs are read; one with too many people is refused at
// its field, before anything is sent.
func TestUploadOfPeople(t *testing.T) {
	s := doorwardtest.Start(t)
	owner := open(t, s, s.Tenant("Acme").Owner)
	send := func(text string, status int, want ...string) {
		t.Helper()
		res, page := owner.upload("/console/invitations/preview/file?tab=file", []part{{"file", "people.csv", text}, {"role", "", "VIEWER"}, {"expiresInDays", "", "3"}, {"locale", "", "de"}})
		owner.shows("the file "+text[:min(len(text), 40)], res, page, status, want)
	}
	ann := []string{`value="ann@x.example"`, `value="Lee, Ann"`}
	send("\ufeffname,email,role\r\n\"Lee, Ann\",ann@x.example,admin\r\n", http.StatusOK, append(ann, `<option value="ADMIN" selected>`)...)
	owner.get("/console/invitations/new", http.StatusOK, `href="/console/invitations/new?tab=file"`, `id="people"`)
	send("ann@x.example", http.StatusOK, `<option value="VIEWER" selected>`, `name="expiresInDays" value="3"`, `name="locale" value="de"`)
	send("", http.StatusUnprocessableEntity, "Choose a file with at least one address.", `id="file"`)
	send("Name\tE-Mail\r\nLee, Ann\tann@x.example\r\n", http.StatusOK, ann...)
	send(`"Lee, Ann" <ann@x.example>`+"\n", http.StatusOK, ann...)
	send("Lee, Ann;ann@x.example\rBob;bob@x.example\r", http.StatusOK, append(ann, `value="bob@x.example"`)...)

	send("PK\x03\x04 a workbook", http.StatusUnprocessableEntity, "This file is no text.")
	send("email,passwordHash\nann@x.example,$argon2id$\n", http.StatusUnprocessableEntity, "Leave the column with passwords out.")
	send(strings.Repeat("Ann,p1@x.example\n", 1000), http.StatusOK, `value="p1@x.example"`)

	send(listOfPeople(1001), http.StatusUnprocessableEntity, "Up to 1,000 people at once.")
	send(listOfPeople(300_000), http.StatusRequestEntityTooLarge, "A file may have 1,000 people and 256 KiB at most.", `id="file"`) // 5 MB
	if mails := s.Mails("p1@x.example"); len(mails) != 0 {
		t.Error("a refused file has sent mails")
	}
}

// listOfPeople returns a text with so many addresses.
func listOfPeople(n int) string {
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "p%d@x.example\n", i)
	}
	return lines.String()
}
