package app_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/evaluation"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/key"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/app/webhook"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// The table is about what somebody leaves at work who is suspended, removed or erased: what ends,
// what goes on, and what administrators are shown. The one who leaves, ann, is an ADMIN with a second
// factor, and a VIEWER in another tenant. The kill switch tests how sessions, links and browsers end in
// more situations.

// leaver is ann at work.
type leaver struct {
	*apptest.Fixture
	owner, ann, bob apptest.Person // bob is a USER of the tenant
	elsewhere       apptest.Person // ann's session in another tenant
	totp            *apptest.Authenticator
	ended           doorward.Ended // by the suspension or removal
}

func newLeaver(f *apptest.Fixture) *leaver {
	f.Helper()
	l := &leaver{Fixture: f}
	_, l.owner = f.Tenant()
	l.ann, l.bob = f.Join(l.owner, doorward.RoleAdmin), f.Join(l.owner, doorward.RoleUser)
	_, otherOwner := f.Tenant()
	_, token := f.Invite(otherOwner, l.ann.User.Email, doorward.RoleViewer)
	joined, err := apptest.Accepted(f.Node(0).Invitations.Accept(f.Context(), l.ann.Caller, token, ""))
	f.NoError(err)
	r, err := apptest.SignedIn(f.Node(0).Login.WithPassword(f.Context(), apptest.Anonymous(0), l.ann.User.Email, apptest.FirstPassword, joined.TenantID))
	f.NoError(err)
	l.elsewhere = apptest.Person{Caller: apptest.Anonymous(0), User: r.User, Token: r.Token}
	l.elsewhere.Principal = doorward.PrincipalOf(r.User, r.Session)
	l.totp = f.Enrol(&l.ann)
	return l
}

// found describes a state: goesOn if it is true.
func found(goesOn bool) string {
	return map[bool]string{true: "goes on", false: "over"}[goesOn]
}

// isTold reports whether the event of the erasure names the id in the field, and a mail to the OWNER
// the name.
func (l *leaver) isTold(field, id, name string) bool {
	l.Helper()
	page, err := l.DB.Read().EventPage(l.Context(), l.owner.User.TenantID, store.EventFilter{Action: doorward.AccountErase}, doorward.Window{Limit: 1})
	l.NoError(err)
	return len(page.Items) == 1 && slices.Contains(page.Items[0].Changes, doorward.Change{Field: field, To: id}) && strings.Contains(l.mailsTo(l.owner), name)
}

// mailsTo returns the text of all mails to the person, on one line.
func (l *leaver) mailsTo(p apptest.Person) string {
	l.Helper()
	return strings.Join(strings.Fields(l.Texts(p.User.Email)), " ")
}

// orTold is found, with what the OWNER is told of something that goes on.
func (l *leaver) orTold(goesOn bool, field, id, name string) string {
	l.Helper()
	if goesOn && l.isTold(field, id, name) {
		return "goes on, told"
	}
	return found(goesOn)
}

func (l *leaver) webhook(url string) doorward.Webhook {
	l.Helper()
	made, err := l.Node(0).Webhooks.Create(l.Context(), l.ann.Caller, webhook.Draft{URL: &url, Events: &[]string{"user.*"}})
	l.NoError(err)
	return made.Webhook
}

func (l *leaver) isShown(w doorward.Webhook) bool {
	return slices.Contains(l.ended.Webhooks, doorward.MadeWebhook{ID: w.ID, URL: w.URL})
}

func (l *leaver) count(query string, args ...any) func() string {
	if l.Int(query, args...) == 0 {
		l.Errorf("nothing is left to be found by %s", query)
	}
	return func() string { return found(l.Int(query, args...) > 0) }
}

func (l *leaver) apiKey(d apikey.Draft) (doorward.APIKey, func() bool) {
	l.Helper()
	d.Name, d.Permissions = "CI of "+d.OwnerID, []string{"user.read"}
	made, text, err := l.Node(0).APIKeys.Create(l.Context(), l.ann.Caller, d)
	l.NoError(err)
	return made, func() bool {
		_, err := l.Node(1).APIKeys.Check(l.Context(), apptest.Anonymous(1), text.Reveal())
		return err == nil
	}
}

// leftAtWork has, for each thing, how ann leaves it, and how it is found after ann was suspended,
// removed, erased.
var leftAtWork = []struct {
	thing string
	begin func(l *leaver) (find func() string)

	suspended, removed, erased string
}{
	{"session in the tenant", func(l *leaver) func() string {
		return func() string { return found(l.IsValid(l.ann.Token)) }
	}, "over", "over", "over"},

	{"session in another tenant", func(l *leaver) func() string {
		return func() string { return found(l.IsValid(l.elsewhere.Token)) }
	}, "goes on", "goes on", "over"},

	{"webhook", func(l *leaver) func() string {
		w := l.webhook("http://localhost:1/made")
		return func() string {
			is, err := l.DB.Read().Webhook(l.Context(), w.ID)
			l.NoError(err)
			if is.Enabled && l.isShown(w) {
				return "goes on, shown"
			}
			return l.orTold(is.Enabled, doorward.FieldWebhookLeft, w.ID, "localhost: 1/made")
		}
	}, "goes on, shown", "goes on, shown", "goes on, told"},

	{"webhook of the owner that ann has given its URL", func(l *leaver) func() string {
		first, second := "http://localhost:1/first", "http://localhost:1/second"
		made, err := l.Node(0).Webhooks.Create(l.Context(), l.owner.Caller, webhook.Draft{URL: &first, Events: &[]string{"*"}})
		l.NoError(err)
		is, err := l.Node(0).Webhooks.Edit(l.Context(), l.ann.Caller, made.Webhook.ID, webhook.Draft{URL: &second}, nil)
		l.NoError(err)
		return func() string {
			if l.isShown(is) {
				return "goes on, shown"
			}
			return l.orTold(true, doorward.FieldWebhookLeft, is.ID, "localhost: 1/second")
		}
	}, "goes on, shown", "goes on, shown", "goes on, told"},

	{"disabled webhook", func(l *leaver) func() string {
		w, off := l.webhook("http://localhost:1/disabled"), false
		_, err := l.Node(0).Webhooks.Edit(l.Context(), l.ann.Caller, w.ID, webhook.Draft{Enabled: &off}, nil)
		l.NoError(err)
		return func() string { return l.orTold(l.isShown(w), doorward.FieldWebhookLeft, w.ID, "") }
	}, "over", "over", "over"},

	{"delivery of an event by ann", func(l *leaver) func() string {
		w := l.webhook("http://localhost:1/delivery")
		l.NoError(l.Node(0).Users.SetRole(l.Context(), l.ann.Caller, l.bob.User, doorward.RoleViewer))
		l.NoError(l.Node(0).Users.SetRole(l.Context(), l.ann.Caller, l.bob.User, doorward.RoleUser))
		return func() string {
			page, err := l.DB.Read().DeliveryPage(l.Context(), w.ID, doorward.DeliveryPending, doorward.Window{Limit: 100})
			l.NoError(err)
			e, err := l.DB.Read().Event(l.Context(), page.Items[len(page.Items)-1].EventID)
			l.NoError(err)
			role := doorward.Change{Field: "role", From: string(doorward.RoleUser), To: string(doorward.RoleViewer)}
			if !slices.Contains(e.Changes, role) {
				return "without values"
			}
			return map[bool]string{true: "with address", false: "without address"}[e.ActorEmail == l.ann.User.Email && e.ActorEmail != ""]
		}
	}, "with address", "with address", "without address"},

	{"role that ann has given", func(l *leaver) func() string {
		raised := l.Join(l.owner, doorward.RoleViewer)
		l.NoError(l.Node(0).Users.SetRole(l.Context(), l.ann.Caller, raised.User, doorward.RoleUser))
		return func() string {
			is, err := l.DB.Read().User(l.Context(), raised.User.TenantID, raised.User.ID)
			l.NoError(err)
			return l.orTold(is.Role == doorward.RoleUser, doorward.FieldPersonRaised, raised.User.ID, raised.User.Email)
		}
	}, "goes on", "goes on", "goes on, told"},

	{"role that the owner has given since", func(l *leaver) func() string {
		raised := l.Join(l.owner, doorward.RoleViewer)
		l.NoError(l.Node(0).Users.SetRole(l.Context(), l.ann.Caller, raised.User, doorward.RoleUser))
		l.NoError(l.Node(0).Users.SetRole(l.Context(), l.owner.Caller, raised.User, doorward.RoleAdmin))
		return func() string { return l.orTold(true, doorward.FieldPersonRaised, raised.User.ID, "") }
	}, "goes on", "goes on", "goes on"},

	{"member whom ann has invited", func(l *leaver) func() string {
		invited := l.Join(l.ann, doorward.RoleUser)
		return func() string {
			return l.orTold(l.IsValid(invited.Token), doorward.FieldPersonInvited, invited.User.ID, invited.User.Email)
		}
	}, "goes on", "goes on", "goes on, told"},

	{"invitation", func(l *leaver) func() string {
		_, token := l.Invite(l.ann, l.NewEmail("guest"), doorward.RoleUser)
		return func() string {
			_, err := l.Node(1).Invitations.Show(l.Context(), token)
			return found(err == nil)
		}
	}, "over", "over", "over"},

	{"API key of ann", func(l *leaver) func() string {
		_, isValid := l.apiKey(apikey.Draft{})
		return func() string { return found(isValid()) }
	}, "over", "over", "over"},

	{"API key that ann has made for bob", func(l *leaver) func() string {
		made, isValid := l.apiKey(apikey.Draft{OwnerID: l.owner.User.ID})
		return func() string { return l.orTold(isValid(), doorward.FieldAPIKeyLeft, made.ID, made.Name) }
	}, "goes on", "goes on", "goes on, told"},

	{"API key that ann has made, and the owner has rotated since", func(l *leaver) func() string {
		made, _ := l.apiKey(apikey.Draft{OwnerID: l.owner.User.ID})
		rotated, err := l.Node(0).APIKeys.Rotate(l.Context(), l.owner.Caller, made.ID, nil)
		l.NoError(err)
		return func() string {
			_, err := l.Node(1).APIKeys.Check(l.Context(), apptest.Anonymous(1), rotated.Secret.Reveal())
			return l.orTold(err == nil, doorward.FieldAPIKeyLeft, made.ID, "")
		}
	}, "goes on", "goes on", "goes on"},

	{"what a service is answered about ann", func(l *leaver) func() string {
		text, err := l.Node(0).Keys.CreateService(l.Context(), apptest.Operator, key.ServiceDraft{Name: "Billing", May: []string{"access.evaluate"}})
		l.NoError(err)
		by, err := l.Node(1).Keys.Check(l.Context(), apptest.Anonymous(1), text.Reveal())
		l.NoError(err)
		q := evaluation.Question{Subject: evaluation.Subject{Type: evaluation.User, ID: l.ann.User.ID, TenantID: l.ann.User.TenantID}, Action: doorward.UserRead, Resource: doorward.Resource{Type: evaluation.Tenant, ID: l.ann.User.TenantID}}
		ask := func() bool {
			d, err := l.Node(1).Evaluations.Decide(l.Context(), by.Service, []evaluation.Question{q})
			l.NoError(err)
			return d[0].Allowed
		}
		if !ask() {
			l.Error("ann may do nothing before the end")
		}
		return func() string { return found(ask()) }
	}, "over", "over", "over"},

	{"second step of a login", func(l *leaver) func() string {
		c := l.Challenge(apptest.Anonymous(0), l.ann)
		return func() string {
			_, err := l.Node(1).Login.WithSecond(l.Context(), apptest.Anonymous(1), c.Token.Reveal(), factor.Answer{Code: l.totp.Code(l.DB.Now())}, false)
			return found(err == nil)
		}
	}, "over", "over", "over"},

	{"challenge of a step-up", func(l *leaver) func() string {
		c, err := l.Node(0).Login.BeginStepUp(l.Context(), l.ann.Caller)
		l.NoError(err)
		return func() string {
			_, err := l.Node(1).Login.Asked(l.Context(), c.Token.Reveal(), factor.ForStepUp)
			return found(err == nil)
		}
	}, "over", "over", "over"},

	{"known browser", func(l *leaver) func() string { // before the next row, which ends all access
		return l.count(`SELECT count(*) FROM devices WHERE user_id = $1`, l.ann.User.ID)
	}, "goes on", "goes on", "over"},

	{"export of ann's own data", func(l *leaver) func() string { // in the other tenant, with a recent proof
		l.Exec(`UPDATE sessions SET aal = 2, factor_at = proved_at WHERE id = $1`, l.elsewhere.SessionID)
		return func() string {
			return found(l.Node(1).Accounts.Export(l.Context(), l.elsewhere.Caller, func() {}, io.Discard) == nil)
		}
	}, "goes on", "goes on", "over"},

	{"code of a reset of factors", func(l *leaver) func() string {
		token := secret.New() // as in the mail; the action itself would end the session
		hash := token.Hash()
		_, err := l.DB.Write(l.Context(), func(tx *store.Tx) error {
			memberships, err := tx.Memberships(l.Context(), l.ann.User.ID)
			for _, m := range memberships {
				_, failed := tx.GiveFactorWord(l.Context(), m.TenantID, m.ID)
				err = errors.Join(err, failed)
			}
			return errors.Join(err, tx.InsertFactorCode(l.Context(), hash[:], l.ann.User.ID, tx.Now.Add(doorward.FactorResetLife)))
		})
		l.NoError(err)
		return func() string { // by the word of the other tenant, which still holds
			_, err := l.Node(1).Factors.ConfirmReset(l.Context(), apptest.Anonymous(1), token.Reveal(), apptest.FirstPassword)
			return found(err == nil)
		}
	}, "goes on", "goes on", "over"},

	{"link that sets a new password", func(l *leaver) func() string { // ann needs it in the other tenant
		token := l.ResetToken(l.ann)
		return func() string { return found(outcomeOfReset(l.Fixture, 1, token) == "valid") }
	}, "goes on", "goes on", "over"},

	{"code of a new address", func(l *leaver) func() string {
		email := l.NewEmail("new")
		l.NoError(l.Node(0).Accounts.ChangeEmail(l.Context(), l.ann.Caller, email, false))
		token := l.MailToken(email)
		return func() string {
			_, err := l.Node(1).Accounts.ShowConfirm(l.Context(), l.ann.Caller, token)
			return found(err == nil)
		}
	}, "goes on", "goes on", "over"},

	{"place in the feed of events", func(l *leaver) func() string { // no right: who reads on needs one
		_, place, err := l.Node(0).Audit.Feed(l.Context(), l.ann.Caller, nil, "", 1)
		l.NoError(err)
		return func() string {
			next, _, err := l.Node(1).Audit.Feed(l.Context(), l.owner.Caller, &place, "", 1)
			return found(err == nil && len(next) == 1 && next[0].Seq == place+1)
		}
	}, "goes on", "goes on", "goes on"},

	{"answer kept for a repeated request", func(l *leaver) func() string { // only the ended session opens it
		_, err := l.DB.Write(l.Context(), func(tx *store.Tx) error {
			_, err := tx.MarkCall(l.Context(), doorward.IdempotentCall{ID: []byte("a call"), TenantID: l.ann.User.TenantID, UserID: l.ann.User.ID, Body: []byte("{}")})
			return err
		})
		l.NoError(err)
		return l.count(`SELECT count(*) FROM idempotency WHERE user_id = $1`, l.ann.User.ID)
	}, "goes on", "goes on", "over"},

	{"address in the trail", func(l *leaver) func() string {
		return l.count(`SELECT count(*) FROM events WHERE actor_id = $1 AND (actor_email <> '' OR ip <> '' OR personal NOT IN ('', '[]'))`, l.ann.User.ID)
	}, "goes on", "goes on", "over"},

	{"values of what ann has changed, in the trail", func(l *leaver) func() string {
		return l.count(`SELECT count(*) FROM events WHERE actor_id = $1 AND action = 'webhook.create' AND changes LIKE '%localhost%'`, l.ann.User.ID)
	}, "goes on", "goes on", "goes on"},

	{"values of what others have changed about ann", func(l *leaver) func() string {
		l.NoError(apptest.ErrorOf(rename(l, "Ann Lee")))
		return l.count(`SELECT count(*) FROM events WHERE target_id = $1 AND action = 'user.rename' AND changes LIKE '%Ann Lee%'`, l.ann.User.ID)
	}, "goes on", "goes on", "over"},

	{"who has changed something about ann", func(l *leaver) func() string {
		return l.count(`SELECT count(*) FROM events WHERE target_id = $1 AND actor_id = $2 AND actor_email = $3 AND ip <> ''`, l.ann.User.ID, l.owner.User.ID, l.owner.User.Email)
	}, "goes on", "goes on", "goes on"},

	// What is queued comes last: rows above send mail.
	{"queued mail of an invitation", func(l *leaver) func() string {
		email := l.NewEmail("guest")
		_, err := l.Node(0).Invitations.Send(l.Context(), l.ann.Caller, apptest.Offer(email, doorward.RoleUser))
		l.NoError(err)
		return func() string { return found(len(l.Subjects(email)) > 0) }
	}, "over", "over", "over"},

	{"queued notice of what ann has done", func(l *leaver) func() string {
		l.NoError(apptest.ErrorOf(l.Node(0).Users.Suspend(l.Context(), l.ann.Caller, l.bob.User)))
		return func() string {
			text := l.mailsTo(l.bob)
			for name, is := range map[string]string{"(" + l.ann.User.Email + ")": "names the address", l.ann.User.Email: "names the address", l.ann.User.ID: "names the id"} {
				if strings.Contains(text, name+" has suspended") {
					return is
				}
			}
			return text
		}
	}, "names the address", "names the address", "names the id"},

	{"queued notice to ann", func(l *leaver) func() string {
		l.NoError(l.Node(0).Users.SetRole(l.Context(), l.owner.Caller, l.ann.User, doorward.RoleUser))
		l.NoError(l.Node(0).Users.SetRole(l.Context(), l.owner.Caller, l.ann.User, doorward.RoleAdmin))
		return func() string { return found(strings.Contains(l.mailsTo(l.ann), "has changed your role")) }
	}, "goes on", "goes on", "over"},
}

func rename(l *leaver, name string) (doorward.User, error) {
	u, _, err := l.Node(0).Users.Edit(l.Context(), l.owner.Caller, l.ann.User, user.Edit{Name: &name})
	return u, err
}

// TestLeftAtWork: each thing of the table ends, goes on, or is shown, as the table says, on a node that
// has not ended it. The trails verify afterwards.
func TestLeftAtWork(t *testing.T) {
	for how, end := range map[string]func(*leaver) error{
		"suspended": func(l *leaver) (err error) {
			l.ended, err = l.Node(0).Users.Suspend(l.Context(), l.owner.Caller, l.ann.User)
			return err
		},
		"removed": func(l *leaver) (err error) {
			l.ended, err = l.Node(0).Users.Remove(l.Context(), l.owner.Caller, l.ann.User, user.Handover{}, nil)
			return err
		},
		"erased": func(l *leaver) error {
			return apptest.ErrorOf(l.Node(0).Users.EraseAddress(l.Context(), apptest.Operator, l.ann.User.Email))
		},
	} {
		t.Run(how, func(t *testing.T) {
			apptest.OnSQLite(t, func(f *apptest.Fixture) {
				l := newLeaver(f)
				var finds []func() string
				for _, row := range leftAtWork {
					finds = append(finds, row.begin(l))
				}
				f.NoError(end(l))
				for i, row := range leftAtWork {
					want := map[string]string{"suspended": row.suspended, "removed": row.removed, "erased": row.erased}[how]
					if got := finds[i](); got != want {
						f.Errorf("%s: %s, want %s", row.thing, got, want)
					}
				}
				faults, err := f.Node(1).Audit.VerifyAll(f.Context())
				f.NoError(err)
				if faults != 0 {
					f.Errorf("the trails have %d faults", faults)
				}
			})
		})
	}
}
