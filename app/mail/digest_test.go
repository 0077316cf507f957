package mail_test

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/smtp"
)

// recipient is a member of two tenants, to whom notices are sent.
type recipient struct {
	apptest.Person
	owners  [2]apptest.Person
	members [2]doorward.User // the recipient in each tenant
}

func newRecipient(f *apptest.Fixture) recipient {
	f.Helper()
	_, owner := f.Tenant()
	_, other := f.Tenant()
	r := recipient{Person: f.Join(owner, doorward.RoleUser), owners: [2]apptest.Person{owner, other}}
	_, token := f.Invite(other, r.User.Email, doorward.RoleUser)
	joined, err := apptest.Accepted(f.Node(0).Invitations.Accept(f.Context(), r.Caller, token, ""))
	f.NoError(err)
	r.members = [2]doorward.User{r.User, joined.User}
	for i := range f.Nodes {
		f.Mails(i, r.User.Email)
	}
	return r
}

// changeRole changes the recipient's role in tenant t n times.
func (r recipient) changeRole(f *apptest.Fixture, t, n int) {
	f.Helper()
	for range n {
		current, err := f.DB.Read().User(f.Context(), r.members[t].TenantID, r.User.ID)
		f.NoError(err)
		next := map[doorward.Role]doorward.Role{doorward.RoleUser: doorward.RoleViewer, doorward.RoleViewer: doorward.RoleUser}[current.Role]
		f.NoError(f.Node(n).Users.SetRole(f.Context(), r.owners[t].Caller, r.members[t], next))
	}
}

// received counts the mails by subject, from the number before on.
func received(all []smtp.Message, before int) map[string]int {
	n := map[string]int{}
	for _, m := range all[before:] {
		n[m.Subject]++
	}
	return n
}

// told returns how many notices the mail tells, by the numbers behind its subjects.
func told(m smtp.Message) (n int) {
	for _, match := range regexp.MustCompile(`\((\d+)×\)`).FindAllStringSubmatch(m.Text, -1) {
		count, _ := strconv.Atoi(match[1])
		n += count
	}
	return n
}

// TestDigest: a recipient gets three mails an hour about changes of roles, in whatever tenants, and at the
// end of the hour one mail about all others. Other nodes, and a restart, make no difference.
func TestDigest(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		r := newRecipient(f)
		email, before := r.User.Email, len(f.Mails(0, r.User.Email))
		r.changeRole(f, 0, 8)
		r.changeRole(f, 1, 5)
		for _, i := range []int{0, 1} {
			if all := f.Mails(i, email); len(all) != before+3 {
				f.Fatalf("the mails are %v, want three", received(all, before))
			}
		}
		f.NoError(apptest.ErrorOf(f.Node(0).Users.Suspend(f.Context(), r.owners[1].Caller, r.members[1]))) // another action
		f.NoError(f.Node(0).Users.Resume(f.Context(), r.owners[1].Caller, r.members[1]))
		if all := f.Mails(0, email); len(all) != before+4 {
			f.Fatalf("after a suspension: %v", received(all, before))
		}
		clock.Move(59 * time.Minute)
		if all := f.Mails(1, email); len(all) != before+4 {
			f.Fatalf("before the end of the hour: %v", received(all, before))
		}
		f.AddNode(apptest.NoLimits, clock.Now)
		clock.Move(time.Minute + time.Second)
		for i := range f.Nodes {
			all := f.Mails(len(f.Nodes)-1-i, email)
			if len(all) != before+5 || all[before+4].Subject != "10 more notices from localhost:8080" || told(all[before+4]) != 10 || strings.Count(all[before+4].Text, "×)") != 2 {
				f.Fatalf("at the end of the hour: %v\n%s", received(all, before), all[len(all)-1].Text)
			}
		}
		r.changeRole(f, 0, 4) // the next hour
		if all := f.Mails(0, email); len(all) != before+8 {
			f.Fatalf("in the next hour: %v", received(all, before))
		}
		clock.Move(time.Hour + time.Second)
		if all := f.Mails(0, email); len(all) != before+9 || all[before+8].Subject != "One more notice from localhost:8080" {
			f.Fatalf("at its end: %v", received(all, before))
		}
	})
}

// TestRaceDigest: two nodes send from one queue. No notice is lost, and none is told twice.
func TestRaceDigest(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		const each = 12
		r := newRecipient(f)
		email, before := r.User.Email, len(f.Mails(0, r.User.Email))
		r.changeRole(f, 0, each)
		r.changeRole(f, 1, each)
		for range each {
			f.NoError(apptest.ErrorOf(f.Node(0).Users.Suspend(f.Context(), r.owners[1].Caller, r.members[1])))
			f.NoError(f.Node(0).Users.Resume(f.Context(), r.owners[1].Caller, r.members[1]))
		}
		deliver := func() []smtp.Message {
			f.WantCodes(apptest.Concurrently(4, func(i int) error { return f.Node(i).Mail.Deliver(f.Context()) }), apptest.Codes{"": 4})
			return f.Mails(0, email)
		}
		if all := deliver(); len(all) != before+6 { // three of each action
			f.Fatalf("the mails are %v", received(all, before))
		}
		clock.Move(time.Hour + time.Second)
		all := deliver()
		if len(all) != before+7 || told(all[before+6]) != 3*each-6 {
			f.Fatalf("the mails are %v; the digest tells %d notices", received(all, before), told(all[len(all)-1]))
		}
		f.WantNoDeadlocks()
	})
}

// TestCodesAreNotHeldBack: whatever one tenant has sent, the mail with the code for a reset of the factors
// goes out at once when the last word is given.
func TestCodesAreNotHeldBack(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		r := newRecipient(f)
		email, before := r.User.Email, len(f.Mails(0, r.User.Email))
		word := func(tenant int) {
			f.NoError(apptest.ErrorOf(f.Node(0).Factors.Reset(f.Context(), r.owners[tenant].Caller, r.members[tenant])))
			f.Mails(0, email)
		}
		for range doorward.FactorMailsPerHour + 2 {
			word(0)
		}
		if all := f.Mails(0, email); len(all) != before+doorward.FactorMailsPerHour {
			f.Fatalf("the mails are %v", received(all, before))
		}
		word(1)
		token := f.MailToken(email)
		f.NoError(apptest.ErrorOf(f.Node(0).Factors.ConfirmReset(f.Context(), apptest.Anonymous(0), token, apptest.FirstPassword)))
	})
}

// TestNothingImportantIsHeldBack: changes of the password and of the factors are told at once, each.
func TestNothingImportantIsHeldBack(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		const changes = 5
		r := newRecipient(f)
		app := f.Enrol(&r.Person)
		before := len(f.Mails(0, r.User.Email))
		for i := range changes {
			old := apptest.FirstPassword
			if i > 0 {
				old = apptest.Password(i)
			}
			f.NoError(apptest.ErrorOf(f.Node(0).Factors.Rename(f.Context(), r.Caller, app.ID, fmt.Sprint("Phone ", i))))
			f.NoError(apptest.ErrorOf(f.Node(0).Factors.NewRecoveryCodes(f.Context(), r.Caller)))
			f.NoError(apptest.ErrorOf(f.Node(0).Passwords.Change(f.Context(), r.Caller, old, apptest.Password(i+1), apptest.Password(i+1))))
		}
		got := received(f.Mails(0, r.User.Email), before)
		if !maps.Equal(got, map[string]int{"A second factor of your account has another name": changes, "New recovery codes for your account": changes, "Your password has been changed": changes}) {
			f.Errorf("the mails are %v", got)
		}
	})
}

// TestDigestOfTheErased: the erasure of an account ends the notices that are held back for it.
func TestDigestOfTheErased(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		r := newRecipient(f)
		r.changeRole(f, 0, 6)
		before := len(f.Mails(0, r.User.Email))
		if f.CountRows("held_notices") != 1 {
			f.Fatal("nothing is held back")
		}
		f.NoError(apptest.ErrorOf(f.Node(0).Users.Erase(f.Context(), r.Caller, r.User.Email)))
		if f.CountRows("held_notices")+f.Int(`SELECT count(*) FROM throttles WHERE bucket LIKE 'notices:%'`) != 0 {
			f.Error("notices or their counters are left")
		}
		clock.Move(2 * time.Hour)
		if all := f.Mails(0, r.User.Email); len(all) != before {
			f.Errorf("mails after the erasure: %v", received(all, before))
		}
	})
}

// TestObsoleteDigest: notices that have become obsolete are not told; without others there is no digest.
func TestObsoleteDigest(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		r := newRecipient(f)
		for range 5 {
			f.NoError(apptest.ErrorOf(f.Node(0).Factors.Reset(f.Context(), r.owners[0].Caller, r.User)))
		}
		f.Mails(0, r.User.Email)
		f.NoError(apptest.ErrorOf(f.Node(0).Users.Remove(f.Context(), r.owners[0].Caller, r.User, user.Handover{}, nil)))
		before := len(f.Mails(0, r.User.Email))
		clock.Move(2 * time.Hour)
		if all := f.Mails(0, r.User.Email); len(all) != before || f.CountRows("held_notices") != 0 {
			f.Errorf("mails about the former membership: %v", received(all, before))
		}
	})
}

// The texts of a digest are exactly these, in both languages.
func TestTextOfADigest(t *testing.T) {
	for locale, want := range map[string]string{
		"": `Hello,

Within an hour localhost:8080 had so many notices for you that not each of
them got a mail of its own. Here are the others. Behind each subject is the
number of its notices, and below it the newest one.

Your role at TENANT has changed (2×)

OWNER has changed your role at TENANT from User to Viewer. The
new role counts at once.

Time: TIME

This mail has no links, and nobody will ask you for your password or a code
by mail.
`,
		"de": `Guten Tag,

localhost:8080 hatte in einer Stunde so viele Nachrichten für Sie, dass
nicht jede eine eigene Mail bekam. Hier sind die übrigen. Hinter jedem
Betreff steht, wie viele es waren, und darunter die neueste.

Ihre Rolle bei TENANT wurde geändert (2×)

OWNER hat Ihre Rolle bei TENANT von Benutzer in Betrachter
geändert. Die neue Rolle gilt sofort.

Zeit: TIME

Diese Mail enthält keine Links, und niemand wird Sie per Mail nach Ihrem
Passwort oder einem Code fragen.
`,
	} {
		t.Run("locale "+locale, func(t *testing.T) {
			apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
				r := newRecipient(f)
				f.Exec(`UPDATE users SET locale = $1 WHERE id = $2`, locale, r.User.ID)
				f.Exec(`UPDATE tenants SET name = 'TENANT'`)
				for range 5 { // sent one after the other, since concurrent deliveries are in no order
					r.changeRole(f, 0, 1)
					f.Mails(0, r.User.Email)
					clock.Move(time.Second)
				}
				clock.Move(time.Hour + time.Second)
				all := f.Mails(0, r.User.Email)
				digest := all[len(all)-1]
				text := regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d UTC`).ReplaceAllString(digest.Text, "TIME")
				text = strings.ReplaceAll(text, r.owners[0].User.Email, "OWNER")
				if text != want {
					t.Errorf("got\n%s\nwant\n%s", text, want)
				}
				if !strings.Contains(digest.HTML, "TENANT") || !strings.Contains(digest.HTML, "(2×)</p>") {
					t.Errorf("the HTML is\n%s", digest.HTML)
				}
			})
		})
	}
}
