package key_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/key"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// TestKeyIsRevokedOnce: of many concurrent revocations of a key one succeeds.
// Another key with the same name stays valid.
func TestKeyIsRevokedOnce(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		by := doorward.OperatorAtTerminal()
		for range 2 {
			_, err := f.Node(0).Keys.CreateOperator(f.Context(), by, "signup")
			f.NoError(err)
		}
		found, err := f.Node(0).Keys.FindOperators(f.Context(), "signup")
		f.NoError(err)
		const callers = 16
		errs := apptest.Concurrently(callers, func(i int) error {
			return f.Node(i).Keys.RevokeOperator(f.Context(), by, found[0])
		})
		f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeNotFound: callers - 1})
		if remaining, err := f.Node(1).Keys.FindOperators(f.Context(), "signup"); err != nil || len(remaining) != 1 || remaining[0].ID != found[1].ID {
			f.Errorf("the remaining keys are %+v, %v; want only the other one", remaining, err)
		}
	})
}

// TestKeyForms: new keys have the form that scanners find, and keys of the older form stay
// valid. A key with a wrong character is refused by its checksum, without the database.
func TestKeyForms(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		text, err := f.Node(0).Keys.CreateOperator(f.Context(), doorward.OperatorAtTerminal(), "new")
		f.NoError(err)
		if !regexp.MustCompile(`^dwo_[0-9A-Za-z]{49}$`).MatchString(text) {
			f.Errorf("the key has another form, and %d characters", len(text))
		}
		old := secret.New()
		hash := old.Hash()
		_, err = f.DB.Write(f.Context(), func(tx *store.Tx) error {
			return tx.InsertOperatorKey(f.Context(), store.OperatorKey{ID: "key_old", Name: "old", CreatedAt: tx.Now}, hash[:])
		})
		f.NoError(err)
		for _, valid := range []string{text, key.OperatorPrefix + old.Reveal()} {
			by, err := f.Node(1).Keys.Check(f.Context(), apptest.Anonymous(0), valid)
			if f.NoError(err); by.Kind != doorward.Operator {
				f.Errorf("the caller is %+v, want the operator", by)
			}
		}
		for name, invalid := range map[string]string{
			"a wrong checksum": text[:52] + string(text[52]^1), "another prefix": "dwk_" + text[4:], "no prefix": text[4:], "cut off": text[:52],
			"the old key without its prefix": old.Reveal(), "another old key": key.OperatorPrefix + secret.New().Reveal(), "nothing": "",
		} {
			if _, err := f.Node(1).Keys.Check(f.Context(), apptest.Anonymous(0), invalid); !doorward.HasCode(err, doorward.CodeUnauthenticated) {
				f.Errorf("%s: %v, want unauthenticated", name, err)
			}
		}
		if _, err := key.HashOf(text[:51] + string(text[51]^1) + text[52:]); err == nil {
			f.Error("HashOf accepts a key with a wrong character")
		}
	})
}

// TestUnknownKeys: after thirty unknown keys from a client address, over all nodes, further
// unknown ones are too_many_attempts. The answers to valid and disabled keys don't change.
func TestUnknownKeys(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		operator, err := f.Node(0).Keys.CreateOperator(f.Context(), apptest.Operator, "valid")
		f.NoError(err)
		draft := key.ServiceDraft{Name: "router", May: []string{string(doorward.ServiceTenantList)}}
		disabled, err := f.Node(0).Keys.CreateService(f.Context(), apptest.Operator, draft)
		f.NoError(err)
		f.Exec(`UPDATE service_keys SET disabled_at = 1`)
		try := func(i int, text string) doorward.Code {
			return apptest.Code(apptest.ErrorOf(f.Node(i).Keys.Check(f.Context(), apptest.Anonymous(0), text)))
		}
		got := apptest.Codes{}
		for i := range 40 {
			got[try(i, secret.NewKey([]string{key.OperatorPrefix, key.ServicePrefix}[i%2]).Reveal())]++
		}
		if got[doorward.CodeUnauthenticated] != 30 || got[doorward.CodeTooManyAttempts] != 10 {
			t.Errorf("unknown keys answer %v", got)
		}
		if answers := []doorward.Code{try(0, operator), try(0, disabled.Reveal())}; answers[0] != "" || answers[1] != doorward.CodeUnauthenticated {
			t.Errorf("after too many unknown keys, a valid and a disabled one answer %q", answers)
		}
		clock.Move(10 * time.Minute)
		if answer := try(0, secret.NewKey(key.ServicePrefix).Reveal()); answer != doorward.CodeUnauthenticated {
			t.Errorf("ten minutes later an unknown key answers %q", answer)
		}
	})
}

// TestKeyEndsUnderway: an operator or service key that has passed the guard is read again in
// the transaction of its action, since it may have ended or been limited in between.
func TestKeyEndsUnderway(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		keys := f.Node(0).Keys
		acme, _ := f.Tenant()
		operator := func() doorward.Caller {
			text, err := keys.CreateLimitedOperator(f.Context(), apptest.Operator, key.OperatorDraft{Name: "sync", Expires: time.Hour})
			f.NoError(err)
			by, err := keys.Check(f.Context(), apptest.Anonymous(0), text)
			f.NoError(err)
			return by
		}
		quota := func(by doorward.Caller) doorward.Code {
			_, err := f.Node(1).Tenants.SetQuotas(f.Context(), by, acme.ID, map[doorward.Quota]int64{doorward.QuotaPeople: 9})
			return apptest.Code(err)
		}
		revoked := operator()
		if code := quota(revoked); code != "" {
			f.Fatalf("a valid key is refused with %s", code)
		}
		f.NoError(keys.RevokeOperator(f.Context(), apptest.Operator, store.OperatorKey{ID: revoked.ID, Name: "sync"}))
		limited := operator()
		f.Exec(`UPDATE operator_keys SET may = 'tenant.list'`)
		if got := []doorward.Code{quota(revoked), quota(limited)}; got[0] != doorward.CodeUnauthenticated || got[1] != doorward.CodeForbidden {
			f.Errorf("a revoked and a limited key answer %v", got)
		}
		expired := operator()
		clock.Move(time.Hour)
		if code := quota(expired); code != doorward.CodeUnauthenticated {
			f.Errorf("an expired key answers %q", code)
		}

		made, err := keys.CreateService(f.Context(), apptest.Operator, key.ServiceDraft{Name: "router", May: []string{string(doorward.ServiceTenantStatus)}})
		f.NoError(err)
		service, err := keys.Check(f.Context(), apptest.Anonymous(0), made.Reveal())
		f.NoError(err)
		f.Exec(`UPDATE service_keys SET disabled_at = 1`)
		if _, err := f.Node(1).Tenants.Freeze(f.Context(), service, acme.ID); !doorward.HasCode(err, doorward.CodeUnauthenticated) {
			f.Errorf("a disabled service key freezes: %v", err)
		}
	})
}
