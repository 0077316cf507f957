package web_test

import (
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// newMails returns a function that delivers all mail and returns the address's mails
// since its last call, the newest first.
func (s *server) newMails(t *testing.T, to string) func() []smtp.Message {
	t.Helper()
	s.deliver(t)
	seen := len(s.Mails(to))
	return func() []smtp.Message {
		t.Helper()
		s.deliver(t)
		all := s.Mails(to)
		fresh := all[:len(all)-seen]
		seen = len(all)
		return fresh
	}
}

// wantOneMail requires one mail with the subject, and the words in its text and its HTML.
func wantOneMail(t *testing.T, got []smtp.Message, subject string, words ...string) {
	t.Helper()
	if len(got) != 1 || got[0].Subject != subject {
		t.Errorf("the mails are %q, want one, %q", subjects(got), subject)
		return
	}
	for _, part := range []string{got[0].Text, html.UnescapeString(tags.Replace(got[0].HTML))} {
		for _, w := range words {
			if !strings.Contains(strings.Join(strings.Fields(part), " "), w) {
				t.Errorf("%q isn't in\n%s", w, part)
			}
		}
	}
}

// tags removes the markup within sentences.
var tags = strings.NewReplacer("<strong>", "", "</strong>", "")

func wantNoMail(t *testing.T, got []smtp.Message) {
	t.Helper()
	if len(got) > 0 {
		t.Errorf("the mails are %q, want none", subjects(got))
	}
}

func subjects(mails []smtp.Message) (all []string) {
	for _, mail := range mails {
		all = append(all, mail.Subject)
	}
	return all
}

const (
	passwordNotice = "Your password has been changed"
	signInNotice   = "New sign-in to your account"
	firefox        = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
	safari         = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15"
)

func agent(name string) opt { return with("User-Agent", name) }

// mailTime returns the server's time in the format of mails.
func (s *server) mailTime() string { return s.clock.now().UTC().Format("2006-01-02 15:04 UTC") }

// A mail about a changed password has time, address and browser. A failed attempt sends none,
// and a reset request sends only its code.
func TestPasswordNotice(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		ann := d.Tenant("Acme").Join("ann@acme.example", "USER")
		newMails := d.newMails(t, ann.Email)
		change := func(current, next string) answer {
			t.Helper()
			return d.send(t, changePath, m{"currentPassword": current, "password": next, "confirmPassword": next},
				as(ann.Token()), agent(firefox), from203)
		}
		change("wrong password", "three old boats").invalid("/currentPassword", "wrong")
		change(password, "short").invalid("/password", "too_short")
		wantNoMail(t, newMails())
		at := d.mailTime()
		change(password, "three old boats").ok(http.StatusNoContent)
		got := newMails()
		wantOneMail(t, got, passwordNotice, "your account ann@acme.example at "+strings.TrimPrefix(d.base, "http://")+" has been changed.",
			"Time: "+at, "Address: 203.0.113.9", "Browser: Firefox, Linux", "If it wasn't you")
		if strings.Contains(got[0].Text, "mailbox") || codeLine.MatchString(got[0].Text) || strings.Contains(got[0].Text+got[0].HTML, "://") {
			t.Errorf("the mail is\n%s", got[0].Text)
		}

		code := d.forgot(t, ann.Email)
		wantOneMail(t, newMails(), "Set a new password")
		d.reset(t, code, "short").invalid("/password", "too_short")
		wantNoMail(t, newMails())
		d.reset(t, code, "four old boats").ok(http.StatusNoContent)
		wantOneMail(t, newMails(), passwordNotice, "has been changed, with a link that was sent to this address", "secure your mailbox first")
		d.reset(t, code, "five old boats").fails(http.StatusGone, "reset_used")
		wantNoMail(t, newMails())
	}, doorwardtest.TrustLoopback())
}

func from203(r *http.Request) { from("203.0.113.9")(r) }

// A login with an unknown browser sends a mail, once a day for similar browsers. The first
// login and failed ones send none.
func TestSignInNotice(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		d.complete(t, d.invite(t, acme.Owner, "ann@acme.example", "USER"), password).ok(http.StatusOK)
		newMails := d.newMails(t, "ann@acme.example")
		login := func(name, ip string, more ...opt) answer {
			t.Helper()
			return d.login(t, "ann@acme.example", password, append(more, agent(name), from(ip))...).ok(http.StatusOK)
		}
		first := login(firefox, "203.0.113.9")
		wantNoMail(t, newMails())
		device, _, _ := strings.Cut(cookieNamed(first, "doorward_device"), ";")

		at := d.mailTime()
		login(firefox, "203.0.113.9")
		wantNoMail(t, newMails()) // same address as the first login
		login(firefox, "203.0.113.8")
		wantOneMail(t, newMails(), signInNotice, "your account ann@acme.example", "Time: "+at, "Address: 203.0.113.8", "Browser: Firefox, Linux", "If it wasn't you")
		login(firefox, "203.0.113.9")
		wantNoMail(t, newMails())
		login(safari, "203.0.113.9", cookie(device))
		login(safari, "203.0.113.77", cookie(device))
		wantNoMail(t, newMails())
		login(safari, "203.0.113.9")
		wantOneMail(t, newMails(), signInNotice, "Browser: Safari, macOS")
		login(safari, "203.0.113.10")
		wantOneMail(t, newMails(), signInNotice, "Address: 203.0.113.10")
		d.Advance(time.Hour) // in which there are three such mails at most
		login("visit http://evil.example", "2001:db8:1:2::3")
		wantOneMail(t, newMails(), signInNotice, "Address: 2001:db8:1:2::3", "Browser: unknown")
		login("visit http://evil.example", "2001:db8:1:2::4")
		wantNoMail(t, newMails())
		d.login(t, "ann@acme.example", "wrong password", agent("another"), from("203.0.113.11")).fails(http.StatusUnauthorized, "invalid_credentials")
		wantNoMail(t, newMails())

		d.Advance(22 * time.Hour)
		login(firefox, "203.0.113.9")
		wantNoMail(t, newMails())
		d.Advance(time.Hour)
		login(firefox, "203.0.113.9")
		wantOneMail(t, newMails(), signInNotice)

		for n := range 12 { // one was sent today already
			login(fmt.Sprint("another ", n), "203.0.113.9")
		}
		if got := newMails(); len(got) != 2 {
			t.Errorf("%d mails, want the two that are left of three an hour", len(got))
		}
		d.Advance(time.Hour)
		wantOneMail(t, newMails(), "7 more notices from "+strings.TrimPrefix(d.base, "http://"), "New sign-in to your account (1×)", "Address: 203.0.113.9") // of ten a day

		d.suspend(t, acme.ID, first.text("user.id"))
		wantOneMail(t, newMails(), "Your access to Acme has been suspended")
		d.login(t, "ann@acme.example", password, agent("another"), from("203.0.113.12")).fails(http.StatusForbidden, "membership_suspended")
		wantNoMail(t, newMails())
	}, doorwardtest.TrustLoopback())
}

// A change of role or status and a removal by somebody else send a mail to the member only.
// Other changes, refused ones and the member's own send none.
func TestMembershipNotices(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := acme.Owner
		ann, admin := acme.Join("ann@acme.example", "USER"), acme.Join("admin@acme.example", "ADMIN")
		newMails, ownersMails, adminsMails := d.newMails(t, ann.Email), d.newMails(t, owner.Email), d.newMails(t, admin.Email)
		edit := func(who, by *doorwardtest.Person, body m, opts ...opt) answer {
			t.Helper()
			return d.send(t, "PATCH /api/v2/users/"+who.ID, body, append(opts, as(by.Token()))...)
		}
		edit(ann, owner, m{"role": "USER", "status": "active"}).ok(http.StatusOK)
		edit(ann, owner, m{"role": "NONE"}).invalid("/role", "invalid")
		edit(ann, owner, m{"name": "Ann Lee"}).ok(http.StatusOK)
		edit(ann, admin, m{"role": "OWNER"}).fails(http.StatusForbidden, "forbidden")
		edit(owner, owner, m{"role": "USER"}).fails(http.StatusConflict, "last_owner")
		wantNoMail(t, newMails())

		at := d.mailTime()
		edit(ann, admin, m{"role": "VIEWER"}).ok(http.StatusOK)
		wantOneMail(t, newMails(), "Your role at Acme has changed", "Hello Ann Lee,",
			"admin@acme.example has changed your role at Acme from User to Viewer.", "Time: "+at)
		edit(admin, owner, m{"name": "<b>Root</b> evil.example"}).ok(http.StatusOK)
		edit(ann, admin, m{"status": "suspended"}).ok(http.StatusOK)
		got := newMails()
		wantOneMail(t, got, "Your access to Acme has been suspended")
		if len(got) == 1 && (!strings.Contains(got[0].Text, "<b>Root</b> evil. example (admin@acme.example) has suspended") || strings.Contains(got[0].HTML, "<b>")) {
			t.Errorf("the mail is\n%s\n%s", got[0].Text, got[0].HTML)
		}
		edit(ann, owner, m{"status": "suspended"}).ok(http.StatusOK)
		edit(ann, owner, m{"status": "active"}).ok(http.StatusOK)
		wantNoMail(t, newMails())
		edit(ann, owner, m{"role": "OWNER", "status": "suspended"}).ok(http.StatusOK)
		if diff := cmp.Diff(map[string]bool{"Your role at Acme has changed": true, "Your access to Acme has been suspended": true}, setOf(subjects(newMails()))); diff != "" {
			t.Errorf("for two changes in one request:\n%s", diff)
		}

		d.send(t, "DELETE /api/v2/users/"+ann.ID, nil, as(admin.Token())).fails(http.StatusForbidden, "forbidden")
		wantNoMail(t, newMails())
		d.send(t, "DELETE /api/v2/users/"+ann.ID, nil, as(owner.Token())).ok(http.StatusOK)
		wantOneMail(t, newMails(), "You have been removed from Acme", "Hello,", "owner@acme.example has removed you from Acme.")
		d.send(t, "DELETE /api/v2/users/"+ann.ID, nil, as(owner.Token())).fails(http.StatusNotFound, "not_found")
		wantNoMail(t, newMails())

		edit(admin, owner, m{"role": "OWNER"}).ok(http.StatusOK)
		wantOneMail(t, adminsMails(), "Your role at Acme has changed")
		edit(owner, owner, m{"role": "USER"}).ok(http.StatusOK)
		d.send(t, "DELETE /api/v2/auth/memberships/"+acme.ID, nil, as(owner.Token())).ok(http.StatusNoContent)
		wantNoMail(t, ownersMails())
		wantNoMail(t, adminsMails())
	})
}

func setOf(all []string) map[string]bool {
	members := map[string]bool{}
	for _, s := range all {
		members[s] = true
	}
	return members
}

// Notices of changes at the command line name the operator.
func TestNoticesOfTheOperator(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		newMails := d.newMails(t, ann.Email)
		target := doorward.User{ID: ann.ID, TenantID: acme.ID}
		if err := d.Node.App.Users.SetRole(t.Context(), doorward.OperatorAtTerminal(), target, doorward.RoleAdmin); err != nil {
			t.Fatal(err)
		}
		wantOneMail(t, newMails(), "Your role at Acme has changed", "The operator has changed your role at Acme from User to Administrator.")
	})
}

// A person invited in German gets all later mails in German.
func TestLanguageOfMails(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		const email = "ann@acme.example"
		d.send(t, invitePath, m{"email": email, "role": "USER", "locale": "de-CH"}, as(acme.Owner.Token())).ok(http.StatusCreated)
		id := d.complete(t, d.code(t, email), password).ok(http.StatusOK).text("user.id")
		newMails := d.newMails(t, email)
		d.token(t, email, agent(firefox))
		own := d.token(t, email, agent(safari))
		wantOneMail(t, newMails(), "Neue Anmeldung an Ihrem Konto", "jemand, vermutlich Sie, hat sich an Ihrem Konto ann@acme.example")
		d.send(t, changePath, m{"currentPassword": password, "password": "drei alte Boote", "confirmPassword": "drei alte Boote"}, as(own)).ok(http.StatusNoContent)
		wantOneMail(t, newMails(), "Ihr Passwort wurde geändert")
		d.send(t, forgotPath, m{"email": email}).ok(http.StatusAccepted)
		wantOneMail(t, newMails(), "Neues Passwort setzen")
		d.send(t, "PATCH /api/v2/users/"+id, m{"role": "VIEWER"}, as(acme.Owner.Token())).ok(http.StatusOK)
		wantOneMail(t, newMails(), "Ihre Rolle bei Acme wurde geändert", "owner@acme.example hat Ihre Rolle bei Acme von Benutzer in Betrachter geändert.")
		d.send(t, invitePath, m{"email": email, "role": "USER"}, as(globex.Owner.Token())).ok(http.StatusCreated)
		wantOneMail(t, newMails(), "owner@globex.example lädt Sie zu Globex ein")
		d.send(t, "DELETE /api/v2/users/"+id, nil, as(acme.Owner.Token())).ok(http.StatusOK)
		wantOneMail(t, newMails(), "Sie wurden aus Acme entfernt")
		toOwner := d.newMails(t, "bea@beta.example")
		d.send(t, "POST /api/v2/tenants", m{"name": "Beta", "ownerEmail": "bea@beta.example", "locale": "de"}, bearer(d.operatorKey(t))).ok(http.StatusCreated)
		wantOneMail(t, toOwner(), "Ihre Einladung zu Beta")
		initech := d.Tenant("Initech")
		d.send(t, invitePath, m{"email": email, "role": "USER", "locale": "en"}, as(initech.Owner.Token())).ok(http.StatusCreated)
		wantOneMail(t, newMails(), "owner@initech.example invites you to Initech")
	})
}

// A notice whose event is gone is dropped, and a sent one is deleted after a day.
func TestNoticesAreDeleted(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		ann := d.Tenant("Acme").Join("ann@acme.example", "USER")
		newMails := d.newMails(t, ann.Email)
		sent, failed := d.countMails(t, doorward.DeliverySent), d.countMails(t, doorward.DeliveryFailed) // invitations
		for _, kind := range []store.MailKind{store.MailPasswordChanged, store.MailSignedIn, store.MailRoleChanged, store.MailSuspended, store.MailRemoved} {
			err := d.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error { return tx.QueueMail(t.Context(), kind, ann.Email, "evt_none") })
			if err != nil {
				t.Fatal(err)
			}
		}
		wantNoMail(t, newMails())
		if got := d.countMails(t, doorward.DeliverySent) + d.countMails(t, doorward.DeliveryFailed); got != sent+failed {
			t.Errorf("%d mails are finished, want %d as before", got, sent+failed)
		}
		d.token(t, ann.Email, agent(firefox))
		wantOneMail(t, newMails(), signInNotice)
		for _, want := range []int{sent + 1, sent} {
			d.Advance(24*time.Hour - time.Minute)
			d.sweepMails(t)
			if got := d.countMails(t, doorward.DeliverySent); got != want {
				t.Errorf("%d mails are left, want %d", got, want)
			}
		}
	})
}

func (s *server) countMails(t *testing.T, state doorward.Delivery) int {
	t.Helper()
	n, err := storetest.CountMails(t.Context(), s.Node.DB.Read(), state)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *server) sweepMails(t *testing.T) {
	t.Helper()
	if err := s.Node.App.Mail.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}
