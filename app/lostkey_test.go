package app_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/clientsecret"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/app/webhook"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
)

var byRoot = doorward.OperatorAtTerminal(doorward.Terminal{SystemUser: "root@db1", Reason: "disk died"})

// replaceKey lets the operator replace the lost key, and returns the new one, which no node's file has yet.
func replaceKey(f *apptest.Fixture) (seal.Key, masterkey.Lost) {
	f.Helper()
	f.LoseMasterKey()
	next := seal.NewKey()
	lost, err := f.Node(0).MasterKey.Replace(f.Context(), byRoot, next)
	f.NoError(err)
	return next, lost
}

// recorded returns the changes of the only event of the action in the trail.
func recorded(f *apptest.Fixture, tenantID string, action doorward.Action, target string) string {
	f.Helper()
	events, err := f.DB.Read().EventsAfter(f.Context(), tenantID, 0, 1000)
	f.NoError(err)
	var all []string
	for _, e := range events {
		if e.Action != action || e.Target.ID != target {
			continue
		}
		for _, c := range e.Changes {
			all = append(all, c.Field+"="+c.To)
		}
	}
	return strings.Join(all, " ")
}

// TestLostKeyWeakensNobody: after the loss of the master key nobody signs in with the password alone who needed a
// second factor, nobody can get rid of that need, and the ways back remain.
func TestLostKeyWeakensNobody(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		acme, owner := f.Tenant()
		ann, bob := f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleUser)
		app, _ := f.Enrol(&ann), f.Enrol(&bob)
		f.Exec(`DELETE FROM recovery_codes WHERE user_id = '` + bob.User.ID + `'`)
		asked := f.Challenge(apptest.Anonymous(1), ann)
		next, lost := replaceKey(f)
		if n := len(lost.Tables["factors"]); n != 2 {
			t.Errorf("%d apps are lost, want 2", n)
		}

		// The password alone opens nothing, with nodes that have the new key and that have not.
		for range 2 {
			for who, want := range map[string][]string{ann.User.ID: {doorward.ByRecovery}, bob.User.ID: {}} {
				p := map[string]apptest.Person{ann.User.ID: ann, bob.User.ID: bob}[who]
				if got := f.Challenge(apptest.Anonymous(1), p).Methods; !slices.Equal(got, want) {
					t.Errorf("after the password, %v is asked for, want %v", got, want)
				}
			}
			f.PutMasterKey(next)
		}
		if account := f.Account(ann); account.Factors != 1 {
			t.Errorf("the account has %d factors, want 1, which is lost", account.Factors)
		}

		// Neither an old challenge nor the old app does.
		_, err := f.Node(0).Login.WithSecond(f.Context(), apptest.Anonymous(1), asked.Token.Reveal(), factor.Answer{Code: app.Code(f.DB.Now())}, false)
		if apptest.Code(err) != doorward.CodeChallengeOver {
			t.Errorf("the challenge from before: %v", err)
		}
		fresh := f.Challenge(apptest.Anonymous(1), ann)
		_, err = f.Node(0).Login.WithSecond(f.Context(), apptest.Anonymous(1), fresh.Token.Reveal(), factor.Answer{Code: app.Code(f.DB.Now())}, false)
		if apptest.Code(err) != doorward.CodeInvalidCode {
			t.Errorf("the lost app: %v", err)
		}

		clock.Move(11 * time.Minute) // the enrolment was a proof
		wantNoEscape(f, bob)
		if got := recorded(f, acme.ID, doorward.MasterKeyReplace, ann.User.ID); got != "factorsDisabled=1 operatorReason=disk died systemUser=root@db1" {
			t.Errorf("the trail says %q", got)
		}
		wantWaysBack(f, ann, app.Recovery[0], bob)
	})
}

// wantNoEscape checks that a session without a recent factor can't end the need for one, by whatever call.
func wantNoEscape(f *apptest.Fixture, p apptest.Person) {
	f.Helper()
	by := p.Caller
	methods, err := f.Node(0).Login.StepUpMethods(f.Context(), by)
	f.NoError(err)
	if len(methods) != 0 {
		f.Errorf("a step-up offers %v", methods)
	}
	own, err := f.DB.Read().Factors(f.Context(), p.User.ID)
	f.NoError(err)
	for what, err := range map[string]error{
		"removing the app": apptest.ErrorOf(f.Node(1).Factors.Remove(f.Context(), by, own[0].ID)),
		"enrolling":        apptest.ErrorOf(f.Node(1).Factors.Enrol(f.Context(), by, "")),
	} {
		if apptest.Code(err) != doorward.CodeStepUpRequired {
			f.Errorf("%s: %v, want step_up_required", what, err)
		}
	}
}

// wantWaysBack checks that a recovery code lets a person replace the lost app, and that a reset by the
// operator removes it.
func wantWaysBack(f *apptest.Fixture, ann apptest.Person, code string, bob apptest.Person) {
	f.Helper()
	asked := f.Challenge(apptest.Anonymous(0), ann)
	r, err := apptest.SignedIn(f.Node(1).Login.WithSecond(f.Context(), apptest.Anonymous(0), asked.Token.Reveal(), factor.Answer{RecoveryCode: code}, false))
	f.NoError(err)
	ann = apptest.PersonOf(r)
	own, err := f.Node(0).Factors.OfCaller(f.Context(), ann.Caller)
	f.NoError(err)
	if len(own.Factors) != 1 || !own.Factors[0].IsLost || own.Factors[0].Usable() {
		f.Errorf("the person sees %+v", own.Factors)
	}
	lost := own.Factors[0].ID
	again := f.Enrol(&ann)
	ann = f.SignInWith(ann, again)
	f.NoError(apptest.ErrorOf(f.Node(0).Factors.Remove(f.Context(), ann.Caller, lost)))

	f.NoError(apptest.ErrorOf(f.Node(0).Factors.ResetByAddress(f.Context(), byRoot, bob.User.Email)))
	if outcome, err := f.Node(0).Login.WithPassword(f.Context(), apptest.Anonymous(0), bob.User.Email, apptest.FirstPassword, ""); err != nil {
		f.Errorf("after the reset: %v", err)
	} else if _, ok := outcome.(login.SecondNeeded); ok {
		f.Error("after the reset a second factor is still asked for")
	}
}

// TestLostSecrets: webhooks are disabled until their secret is rotated, and connections sign nobody in until it
// is entered again.
func TestLostSecrets(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		f.UseMasterKey()
		url, events := "http://localhost:9/hook", []string{"user.*"}
		made, err := f.Node(0).Webhooks.Create(f.Context(), owner.Caller, webhook.Draft{URL: &url, Events: &events})
		f.NoError(err)
		f.NoError(apptest.ErrorOf(f.Node(0).Webhooks.Create(f.Context(), owner.Caller, webhook.Draft{URL: &url, Events: &events})))
		provider := f.Provider()
		con := f.Active(owner, provider)
		admin := f.Join(owner, doorward.RoleAdmin)
		_, other := f.Tenant() // who has nothing to set again
		next, lost := replaceKey(f)
		if len(lost.Tables["webhooks"]) != 2 || // each with a secret and a key
			len(lost.Tables["connection_secrets"]) != 1 {
			t.Errorf("lost: %v", lost)
		}
		f.PutMasterKey(next)

		hook, err := f.Node(1).Webhooks.Get(f.Context(), owner.Caller, made.Webhook.ID)
		f.NoError(err)
		if hook.Enabled || hook.DisabledReason != doorward.DisabledKeyLost || hook.PublicKey == made.Webhook.PublicKey {
			t.Errorf("the webhook is %+v", hook)
		}
		if got := recorded(f, acme.ID, doorward.WebhookDisable, hook.ID); !strings.Contains(got, "reason=key_lost operatorReason=disk died systemUser=root@db1") {
			t.Errorf("the trail says %q", got)
		}
		all := "masterKey=" + next.ID().String() + " webhookLost=" + lost.Tables["webhooks"][0] + " webhookLost=" + lost.Tables["webhooks"][1] + " connectionLost=" + con.ID +
			" operatorReason=disk died systemUser=root@db1"
		if got := recorded(f, acme.ID, doorward.MasterKeyReplace, acme.ID); got != all {
			t.Errorf("the trail says of the tenant %q, want %q", got, all)
		}
		isOfLoss := func(subject string) bool {
			return strings.Contains(subject, "were lost") || strings.Contains(subject, "was disabled")
		}
		for _, c := range []struct {
			to   doorward.User
			want []string
		}{
			{owner.User, []string{"Secrets of " + acme.Name + " were lost, and must be set again"}},
			{admin.User, []string{"A webhook of " + acme.Name + " was disabled", "A webhook of " + acme.Name + " was disabled"}},
			{other.User, nil},
		} {
			got := slices.DeleteFunc(f.Subjects(c.to.Email), func(subject string) bool { return !isOfLoss(subject) })
			if !slices.Equal(got, c.want) {
				t.Errorf("%s got %q, want %q", c.to.Email, got, c.want)
			}
		}
		enable := func() error {
			on := true
			return apptest.ErrorOf(f.Node(0).Webhooks.Edit(f.Context(), owner.Caller, hook.ID, webhook.Draft{Enabled: &on}, nil))
		}
		f.WantField(enable(), "/enabled", "invalid")
		f.NoError(apptest.ErrorOf(f.Node(1).Webhooks.Rotate(f.Context(), owner.Caller, hook.ID, nil)))
		f.NoError(enable())

		_, err = f.Node(0).Connections.Ready(f.Context(), con.ID, false)
		f.WantField(err, "/secrets", "required")
		shown, err := f.Node(1).Connections.Connection(f.Context(), owner.Caller, con.ID)
		f.NoError(err)
		if len(shown.Secrets) != 1 || !shown.Secrets[0].IsLost || shown.Status != doorward.ConnectionActive {
			t.Errorf("the connection is %+v", shown)
		}
		f.NoError(apptest.ErrorOf(f.Node(0).ClientSecrets.Add(f.Context(), owner.Caller, con.ID, clientsecret.Typed{Secret: apptest.ClientSecret})))
		ready, err := f.Node(0).Connections.Ready(f.Context(), con.ID, false)
		f.NoError(err)
		if len(ready.SecretIDs) != 1 || ready.SecretIDs[0] == shown.Secrets[0].ID {
			t.Errorf("the secrets are %v", ready.SecretIDs)
		}
	})
}

// TestLostSAMLKeys: keys of a connection by SAML are replaced, the same on all nodes, and OWNERs are told that the provider
// has to learn them.
func TestLostSAMLKeys(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		f.UseMasterKey()
		text := apptest.SAMLMetadata("https://idp.example", apptest.SAMLCertificate(f.DB.Now().Add(time.Hour)))
		con, err := f.Node(0).Connections.Create(f.Context(), owner.Caller, connection.Draft{
			Type: "saml", Name: new("SAML"), Metadata: &text, SignRequests: new(true), Encrypt: new(true),
		})
		f.NoError(err)
		before, _, err := f.Node(1).Connections.ReadySAML(f.Context(), con.ID, false)
		f.NoError(err)
		next, lost := replaceKey(f)
		if n := len(lost.Tables["connection_saml_keys"]); n != 2 {
			t.Errorf("%d keys are lost, want 2: %v", n, lost)
		}
		f.PutMasterKey(next)
		want := "masterKey=" + next.ID().String() + " connectionLost=" + con.ID + " operatorReason=disk died systemUser=root@db1"
		if got := recorded(f, acme.ID, doorward.MasterKeyReplace, acme.ID); got != want {
			t.Errorf("the trail says of the tenant %q, want %q", got, want)
		}
		after, _, err := f.Node(0).Connections.ReadySAML(f.Context(), con.ID, false)
		f.NoError(err)
		same, _, err := f.Node(1).Connections.ReadySAML(f.Context(), con.ID, false)
		f.NoError(err)
		if after.Sign.ID == before.Sign.ID || after.Decrypt.ID == before.Decrypt.ID || after.Sign.ID != same.Sign.ID || after.Decrypt.ID != same.Decrypt.ID {
			t.Errorf("the keys are %v %v, on the other node %v %v, before %v %v", after.Sign, after.Decrypt, same.Sign, same.Decrypt, before.Sign, before.Decrypt)
		}
	})
}

// TestKeyIsNotLost: a key that is in the file isn't replaced, and what was done isn't done again.
func TestKeyIsNotLost(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		app := f.Enrol(&owner)
		_, err := f.Node(0).MasterKey.Replace(f.Context(), byRoot, seal.NewKey())
		if notLost := (*masterkey.NotLostError)(nil); !errors.As(err, &notLost) {
			t.Fatalf("replacing a key that isn't lost: %v", err)
		}
		f.SignInWith(owner, app)

		next, _ := replaceKey(f)
		f.PutMasterKey(next)
		lost, err := f.Node(1).MasterKey.Replace(f.Context(), byRoot, next)
		f.NoError(err)
		if lost.Len() != 0 {
			t.Errorf("again: %v", lost)
		}
		events, err := f.DB.Read().EventsAfter(f.Context(), "", 0, 1000)
		f.NoError(err)
		n := len(slices.DeleteFunc(events, func(e doorward.Event) bool { return e.Action != doorward.MasterKeyReplace }))
		if n != 2 { // the key, and the app
			t.Errorf("the installation's trail has %d events, want 2", n)
		}
	})
}

// TestEverySealedColumnIsForgotten: the loss of the key is handled for each table with a sealed column.
func TestEverySealedColumnIsForgotten(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		for _, table := range store.SealedTables() {
			if !f.Node(0).MasterKey.Forgets(table) {
				t.Errorf("nothing is registered with OnLoss for %s: its feature has to say what follows", table)
			}
		}
		if f.Node(0).MasterKey.Forgets("users") {
			t.Error("users counts as handled: this test proves nothing")
		}
	})
}
