package login_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/internal/passkey/passkeytest"
)

// addPasskey sets up a passkey for the caller, begun on one node and finished on another.
func addPasskey(f *apptest.Fixture, begin, finish int, by doorward.Caller) (*passkeytest.Authenticator, doorward.Factor) {
	f.Helper()
	a := passkeytest.New("http://localhost:8080")
	begun, err := f.Node(begin).Factors.BeginPasskey(f.Context(), by)
	f.NoError(err)
	made, err := a.Create(begun.PublicKey)
	f.NoError(err)
	text, err := json.Marshal(made)
	f.NoError(err)
	done, err := f.Node(finish).Factors.ConfirmPasskey(f.Context(), by, begun.Token.Reveal(), text, "")
	f.NoError(err)
	return a, done.Factor
}

// answerTo returns the authenticator's answer to the challenge.
func answerTo(f *apptest.Fixture, a *passkeytest.Authenticator, b factor.NewChallenge) factor.Answer {
	f.Helper()
	got, err := a.Get(b.PublicKey)
	f.NoError(err)
	text, err := json.Marshal(got)
	f.NoError(err)
	return factor.Answer{Passkey: text}
}

// beginAlone begins a login with a passkey alone.
func beginAlone(f *apptest.Fixture, i int) factor.NewChallenge {
	f.Helper()
	b, err := f.Node(i).Login.BeginPasskey(f.Context(), apptest.Anonymous(i))
	f.NoError(err)
	return b
}

func finishAlone(f *apptest.Fixture, i int, b factor.NewChallenge, a factor.Answer) (login.SignedIn, error) {
	return apptest.SignedIn(f.Node(i).Login.WithPasskey(f.Context(), apptest.Anonymous(i), b.Token.Reveal(), a.Passkey, ""))
}

// TestOnePasskeyAnswerAtOnce: an answer that is sent to all nodes at once is accepted once, and
// the passkey isn't disabled as a copied one.
func TestOnePasskeyAnswerAtOnce(t *testing.T) {
	onThreeNodes(t, func(f *apptest.Fixture, _ *apptest.MovedClock) {
		_, ann := f.Tenant()
		a, _ := addPasskey(f, 1, 2, ann.Caller)
		for range apptest.Rounds(2, 20) {
			alone := beginAlone(f, 0)
			answer := answerTo(f, a, alone)
			wantOnePass(f, "alone", func(i int) error { return apptest.ErrorOf(finishAlone(f, i, alone, answer)) })
			asked := f.Challenge(apptest.Anonymous(1), ann)
			answer = answerTo(f, a, asked)
			wantOnePass(f, "after the password", func(i int) error { return errorOfSecond(f, i, asked, answer) })
		}
		if n := f.Int(`SELECT count(*) FROM factors WHERE disabled_at IS NOT NULL`); n > 0 {
			f.Error("the passkey was disabled as a copied one")
		}
		f.WantNoDeadlocks()
	})
}

// wantOnePass calls finish three times at once, and fails unless exactly one call passes.
func wantOnePass(f *apptest.Fixture, name string, finish func(i int) error) {
	f.Helper()
	got := apptest.CountCodes(apptest.Concurrently(3, finish))
	if got[""] != 1 || got[doorward.CodeChallengeOver]+got[doorward.CodeInvalidCode] != 2 {
		f.Errorf("%s: %v", name, got)
	}
}

func errorOfSecond(f *apptest.Fixture, i int, b factor.NewChallenge, a factor.Answer) error {
	_, err := withSecond(f, i, apptest.Anonymous(i), b, a)
	return err
}

// TestCopyAtAnotherNode: a passkey whose counter another node has already seen is refused as a
// copy, and every node knows at once that it is disabled.
func TestCopyAtAnotherNode(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, _ *apptest.MovedClock) {
		_, ann := f.Tenant()
		a, _ := addPasskey(f, 0, 0, ann.Caller)
		stolen := a.Copy()
		b := beginAlone(f, 0)
		in, err := finishAlone(f, 1, b, answerTo(f, a, b))
		f.NoError(err)
		for i := range f.Nodes {
			if p, err := f.Node(i).Sessions.Check(f.Context(), in.Token); err != nil || !p.HasPasskey || p.AAL != 2 {
				f.Errorf("node %d: %+v, %v", i, p, err)
			}
		}
		b = beginAlone(f, 1)
		wantCode(f, apptest.ErrorOf(finishAlone(f, 2, b, answerTo(f, stolen, b))), doorward.CodeInvalidCode)
		for i := range f.Nodes {
			if p, err := f.Node(i).Sessions.Check(f.Context(), in.Token); err != nil || p.HasPasskey || !p.HasFactor {
				f.Errorf("node %d offers the disabled passkey: %+v, %v", i, p, err)
			}
			b := beginAlone(f, i)
			wantCode(f, apptest.ErrorOf(finishAlone(f, i, b, answerTo(f, a, b))), doorward.CodeInvalidCode)
		}
	})
}

// TestRemovingAPasskeyEndsChallenges: when the removal returns, challenges made on other nodes
// have ended, and no remembered browser stands in for a factor any more, on any node.
func TestRemovingAPasskeyEndsChallenges(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, ann := f.Tenant()
		f.EditTenant(ann, func(s *doorward.TenantSettings) { s.SecondFactor.RememberDays = 2 })
		a, lost := addPasskey(f, 0, 1, ann.Caller)
		other, _ := addPasskey(f, 2, 0, ann.Caller)
		challenge := f.Challenge(apptest.Anonymous(1), ann)
		in, err := apptest.SignedIn(f.Node(2).Login.WithSecond(f.Context(), apptest.Anonymous(1), challenge.Token.Reveal(), answerTo(f, other, challenge), rememberBrowser))
		f.NoError(err)
		known := apptest.Anonymous(1)
		hash := in.Device.Hash()
		known.Devices = [][]byte{hash[:]}
		isAsked := func(i int) bool {
			o, err := f.Node(i).Login.WithPassword(f.Context(), known, ann.User.Email, apptest.FirstPassword, "")
			f.NoError(err)
			_, asked := o.(login.SecondNeeded)
			return asked
		}
		if isAsked(1) {
			f.Error("the browser isn't remembered")
		}
		by := apptest.Anonymous(1).As(in.User)
		by.Principal = doorward.PrincipalOf(in.User, in.Session)
		clock.Move(time.Second)
		atLogin, alone := f.Challenge(apptest.Anonymous(2), ann), beginAlone(f, 2)
		atStepUp, err := f.Node(1).Login.BeginStepUp(f.Context(), by)
		f.NoError(err)
		_, err = f.Node(0).Factors.Remove(f.Context(), by, lost.ID)
		f.NoError(err)

		for i := range f.Nodes { // also with the passkey that is left
			wantCode(f, errorOfSecond(f, i, atLogin, answerTo(f, other, atLogin)), doorward.CodeChallengeOver)
			_, err := stepUp(f, i, by, atStepUp.Token.Reveal(), login.Evidence{Answer: answerTo(f, other, atStepUp)})
			wantCode(f, err, doorward.CodeChallengeOver)
			if !isAsked(i) {
				f.Errorf("the browser still stands in for the factor on node %d", i)
			}
		}
		wantCode(f, apptest.ErrorOf(finishAlone(f, 1, alone, answerTo(f, a, alone))), doorward.CodeInvalidCode)
		alone = beginAlone(f, 0)
		f.NoError(apptest.ErrorOf(finishAlone(f, 1, alone, answerTo(f, other, alone))))
	})
}
