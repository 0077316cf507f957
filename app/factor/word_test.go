package factor_test

import (
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/store"
)

const (
	askedForReset = "A reset of your second factors was asked for"
	codeForReset  = "Set up your second factor again"
)

// inTwo returns somebody with a factor who is in two tenants, and the owners of these.
func inTwo(f *apptest.Fixture) (ann apptest.Person, app *apptest.Authenticator, owners [2]apptest.Person) {
	f.Helper()
	_, owners[0] = f.Tenant()
	_, owners[1] = f.Tenant()
	ann = f.Join(owners[0], doorward.RoleUser)
	joinAs(f, ann, owners[1])
	return ann, f.Enrol(&ann), owners
}

// joinAs makes the person a member of the owner's tenant, too.
func joinAs(f *apptest.Fixture, p apptest.Person, owner apptest.Person) {
	f.Helper()
	_, token := f.Invite(owner, p.User.Email, doorward.RoleUser)
	f.NoError(apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), p.Caller, token, "")))
}

// giveWord gives the word of the owner's tenant.
func giveWord(f *apptest.Fixture, node int, owner apptest.Person, p apptest.Person) error {
	f.Helper()
	target, err := f.DB.Read().User(f.Context(), owner.User.TenantID, p.User.ID)
	f.NoError(err)
	return apptest.ErrorOf(f.Node(node).Factors.Reset(f.Context(), owner.Caller, target))
}

func confirmReset(f *apptest.Fixture, token string) doorward.Code {
	return apptest.Code(apptest.ErrorOf(f.Node(0).Factors.ConfirmReset(f.Context(), apptest.Anonymous(3), token, apptest.FirstPassword)))
}

// lastSubject returns the subject of the last mail to the person, who must have got as many as count.
func lastSubject(f *apptest.Fixture, p apptest.Person, count int) string {
	f.Helper()
	all := slices.DeleteFunc(f.Subjects(p.User.Email), func(s string) bool { return s != askedForReset && s != codeForReset })
	if len(all) != count {
		f.Fatalf("the mails about a reset are %q, want %d", all, count)
	}
	return all[len(all)-1]
}

// TestWordsAreJudgedAgain: the code is mailed when no word is missing, and over when one is: it has
// lapsed, or the person has joined a tenant since. The words that hold stay. A suspended membership and
// a frozen tenant don't count, and each tenant has the reset in its trail.
func TestWordsAreJudgedAgain(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		ann, _, owners := inTwo(f)
		f.NoError(giveWord(f, 0, owners[0], ann))
		if got := lastSubject(f, ann, 1); got != askedForReset {
			f.Errorf("one of two words: %q", got)
		}
		clock.Move(doorward.FactorWordLife - time.Hour)
		f.NoError(giveWord(f, 0, owners[1], ann))
		if got := lastSubject(f, ann, 2); got != codeForReset {
			f.Errorf("both words: %q", got)
		}
		code := f.MailToken(ann.User.Email)
		clock.Move(2 * time.Hour)
		for range 2 {
			if got := confirmReset(f, code); got != doorward.CodeResetExpired {
				f.Errorf("after one word has lapsed: %q", got)
			}
		}
		f.NoError(giveWord(f, 0, owners[0], ann)) // the other word holds still
		if got := lastSubject(f, ann, 3); got != codeForReset {
			f.Errorf("the lapsed word again: %q", got)
		}
		code = f.MailToken(ann.User.Email)
		_, third := f.Tenant()
		joined, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
			_, err := tx.InsertMembership(f.Context(), doorward.User{ID: ann.User.ID, TenantID: third.User.TenantID, Email: ann.User.Email, Role: doorward.RoleUser, Status: doorward.UserActive, CreatedAt: tx.Now})
			return err
		})
		f.NoError(err)
		_ = joined
		if got := confirmReset(f, code); got != doorward.CodeResetExpired || f.Account(ann).Factors != 1 {
			f.Errorf("after joining a third tenant: %q, %d factors", got, f.Account(ann).Factors)
		}
		f.NoError(giveWord(f, 0, owners[1], ann))
		if got := lastSubject(f, ann, 4); got != askedForReset {
			f.Errorf("with the third word missing: %q", got)
		}
		member, err := f.DB.Read().User(f.Context(), third.User.TenantID, ann.User.ID)
		f.NoError(err)
		f.NoError(apptest.ErrorOf(f.Node(0).Users.Suspend(f.Context(), third.Caller, member)))
		f.NoError(giveWord(f, 0, owners[1], ann))
		code = f.MailToken(ann.User.Email)
		if got := confirmReset(f, code); got != "" || f.Account(ann).Factors != 0 {
			f.Fatalf("with the third membership suspended: %q, %d factors", got, f.Account(ann).Factors)
		}
		for _, tenant := range []string{owners[0].User.TenantID, owners[1].User.TenantID, third.User.TenantID} {
			want := 1
			if tenant == third.User.TenantID {
				want = 0
			}
			if n := f.Int(`SELECT count(*) FROM events WHERE action = 'mfa.recover' AND tenant_id = '` + tenant + `'`); n != want {
				f.Errorf("a trail has %d resets, want %d", n, want)
			}
		}
		if words, err := f.DB.Read().FactorWordsFor(f.Context(), ann.User.ID, f.DB.Now()); err != nil || len(words) != 0 {
			f.Errorf("after the reset the words %v hold, %v", words, err)
		}
	})
}

// TestMailsOfAWord: a tenant that gives its word again sends three mails an hour at most, and takes
// nothing from another tenant's. Beyond that the last code is good.
func TestMailsOfAWord(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		ann, _, owners := inTwo(f)
		for range doorward.FactorMailsPerHour + 2 {
			f.NoError(giveWord(f, 0, owners[0], ann))
		}
		lastSubject(f, ann, doorward.FactorMailsPerHour)
		for range doorward.FactorMailsPerHour + 1 {
			f.NoError(giveWord(f, 0, owners[1], ann))
		}
		lastSubject(f, ann, 2*doorward.FactorMailsPerHour)
		code := f.MailToken(ann.User.Email)
		clock.Move(time.Hour)
		f.NoError(giveWord(f, 0, owners[1], ann))
		lastSubject(f, ann, 2*doorward.FactorMailsPerHour+1)
		if got := confirmReset(f, code); got != doorward.CodeResetExpired {
			f.Errorf("the code that a newer one has replaced: %q", got)
		}
		if got := confirmReset(f, f.MailToken(ann.User.Email)); got != "" {
			f.Errorf("the newest code: %q", got)
		}
	})
}

// TestRefusedReset: a session with the factor makes all words void; a session without it can't, nor one
// of another issuer. The word of a tenant that suspends the person is gone, and the operator needs none.
func TestRefusedReset(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		ann, app, owners := inTwo(f)
		keep := func(by doorward.Caller) doorward.Code {
			return apptest.Code(f.Node(1).Factors.KeepFactors(f.Context(), by))
		}
		signIn := func() doorward.Caller {
			o, err := f.Node(0).Login.WithSecond(f.Context(), apptest.Anonymous(1), f.Challenge(apptest.Anonymous(1), ann).Token.Reveal(), factor.Answer{RecoveryCode: app.Recovery[0]}, false)
			app.Recovery = app.Recovery[1:]
			done, err := apptest.SignedIn(o, err)
			f.NoError(err)
			by := apptest.Anonymous(1).As(done.User)
			by.Principal = doorward.PrincipalOf(done.User, done.Session)
			return by
		}
		f.NoError(giveWord(f, 0, owners[0], ann))
		f.NoError(giveWord(f, 0, owners[1], ann))
		code, by := f.MailToken(ann.User.Email), signIn()
		for _, c := range []struct {
			set  string
			want doorward.Code
		}{{"aal = 1", doorward.CodeStepUpRequired}, {"aal = 2", ""}} {
			f.Exec(`UPDATE sessions SET ` + c.set + ` WHERE id = '` + by.SessionID + `'`)
			if got := keep(by); got != c.want {
				f.Errorf("%s: %q, want %q", c.set, got, c.want)
			}
		}
		other := by
		other.Issuer = "con_other"
		if got := keep(other); got != doorward.CodeSignInRequired {
			f.Errorf("another issuer: %q", got)
		}
		if got := confirmReset(f, code); got != doorward.CodeResetExpired {
			f.Errorf("the code after the refusal: %q", got)
		}
		if n := f.Int(`SELECT count(*) FROM events WHERE action = 'mfa.keep'`); n != 2 {
			f.Errorf("%d trails have the refusal, want two", n)
		}
		if got := keep(by); got != "" {
			f.Errorf("where nothing waits: %q", got)
		}
		f.NoError(giveWord(f, 0, owners[0], ann))
		f.NoError(apptest.ErrorOf(f.Node(0).Factors.ResetByAddress(f.Context(), apptest.Operator, ann.User.Email)))
		f.NoError(apptest.ErrorOf(f.Node(0).Users.Suspend(f.Context(), owners[0].Caller, ann.User)))
		if n := f.CountRows("factor_words"); n != 1 || f.Account(ann).Factors != 0 {
			f.Errorf("%d words are left, and %d factors", n, f.Account(ann).Factors)
		}
	})
}

// TestRaceWordAndReset: of a reset, a refusal and a newly given word at once, the factors are removed or
// kept as a whole: after a refusal that came first the code is over.
func TestRaceWordAndReset(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		for range apptest.Rounds(3, 20) {
			ann, app, owners := inTwo(f)
			f.NoError(giveWord(f, 0, owners[0], ann))
			f.NoError(giveWord(f, 0, owners[1], ann))
			code := f.MailToken(ann.User.Email)
			o, err := f.Node(0).Login.WithSecond(f.Context(), apptest.Anonymous(1), f.Challenge(apptest.Anonymous(1), ann).Token.Reveal(), factor.Answer{RecoveryCode: app.Recovery[0]}, false)
			done, err := apptest.SignedIn(o, err)
			f.NoError(err)
			by := apptest.Anonymous(1).As(done.User)
			by.Principal = doorward.PrincipalOf(done.User, done.Session)
			errs := apptest.Concurrently(4, func(i int) error {
				switch i {
				case 0:
					return f.Node(1).Factors.KeepFactors(f.Context(), by)
				case 1:
					return giveWord(f, 0, owners[1], ann)
				}
				return apptest.ErrorOf(f.Node(i).Factors.ConfirmReset(f.Context(), apptest.Anonymous(i), code, apptest.FirstPassword))
			})
			f.NoError(errs[1])
			f.WantOnly(errs[:1], "", doorward.CodeUnauthenticated) // the reset ends the session
			f.WantOnly(errs[2:], "", doorward.CodeResetExpired, doorward.CodeResetUsed)
			wasReset := apptest.CountCodes(errs[2:])[""] == 1
			if left := f.Account(ann).Factors; (left == 0) != wasReset {
				f.Fatalf("the resets end in %v and %v, and %d factors are left", errs[2], errs[3], left)
			}
			if !wasReset && errs[0] != nil {
				f.Fatalf("neither was the reset refused nor done: %v", errs)
			}
		}
		f.WantNoDeadlocks()
	})
}
