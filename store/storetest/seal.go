package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

func masterKeys(f *fixture) {
	ctx := f.Context()
	equal(f, f.value(f.Read().MasterKeys(ctx)), []store.MasterKey(nil))
	first := store.MasterKey{ID: "k1", Check: []byte{0, 1}, Current: true, CreatedAt: f.clock.read()}
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.LockMasterKey(ctx, "k1"))
		f.wantChange(tx.AdoptMasterKey(ctx, first.ID, first.Check))
		f.wantChange(tx.AdoptMasterKey(ctx, first.ID, first.Check)) // by another node with the same file
		f.wantNoChange(tx.AdoptMasterKey(ctx, "k2", []byte{2}))
		f.wantChange(tx.LockMasterKey(ctx, "k1"))
	})
	equal(f, f.value(f.Read().MasterKeys(ctx)), []store.MasterKey{first})

	f.clock.move(time.Second)
	next := store.MasterKey{ID: "k0", Check: []byte{2}, Wrapped: []byte{3, 0}, Current: true, CreatedAt: f.clock.read()}
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.ReplaceMasterKey(ctx, "k9", next))
		f.wantChange(tx.ReplaceMasterKey(ctx, first.ID, next))
		f.wantNoChange(tx.ReplaceMasterKey(ctx, first.ID, next))
		f.wantNoChange(tx.LockMasterKey(ctx, first.ID))
		f.wantChange(tx.LockMasterKey(ctx, next.ID))
		noError(f, tx.LockAllMasterKeys(ctx))
	})
	first.Current = false
	equal(f, f.value(f.Read().MasterKeys(ctx)), []store.MasterKey{first, next})

	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.ForgetMasterKeys(ctx, first.ID))
		f.wantChange(tx.ForgetMasterKeys(ctx, next.ID))
	})
	next.Wrapped = nil
	equal(f, f.value(f.Read().MasterKeys(ctx)), []store.MasterKey{next})

	last := store.MasterKey{ID: "k3", Check: []byte{3}, Current: true, CreatedAt: f.clock.read()}
	for range 2 { // the second changes nothing
		f.write(func(tx *store.Tx) { noError(f, tx.AbandonMasterKeys(ctx, last.ID, last.Check)) })
		equal(f, f.value(f.Read().MasterKeys(ctx)), []store.MasterKey{last})
	}
}

// lostValues: what nothing can open any more is emptied, replaced or deleted, and isn't found again.
func lostValues(f *fixture) {
	ctx := f.Context()
	ann := f.account("ann@acme.example")
	app := f.factor(ann, doorward.TOTP)
	hook := f.webhook("", "*")
	acme := f.tenant("Acme")
	c := f.connection(acme, "One")
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertConnectionSecret(ctx, store.SealedConnectionSecret{ConnectionSecret: doorward.ConnectionSecret{ID: "ccs_1", ConnectionID: c.ID, Hint: "last"}, Sealed: []byte("old key 1a")}))
		noError(f, tx.InsertConnectionKey(ctx, store.ConnectionKey{ID: "kid", ConnectionID: c.ID, Sealed: []byte("old key 1b")}))
		f.wantChange(tx.InsertSAMLKey(ctx, store.SAMLKey{ID: "fingerprint", ConnectionID: c.ID, Purpose: store.SAMLSign, Sealed: []byte("old key 1d")}))
		_, err := tx.InsertFactor(ctx, store.Factor{SeedSealed: []byte("old key 1c"), Factor: doorward.Factor{ID: "mfa_begun", UserID: ann.ID, Kind: doorward.TOTP}})
		noError(f, err)
	})
	equal(f, f.value(f.Read().FactorOwner(ctx, app.ID)), ann.ID)
	own, sealed := f.webhook(acme.ID, "*"), f.webhook(acme.ID, "*")
	f.write(func(tx *store.Tx) { // with the new key already
		noError(f, tx.ReplaceWebhookSecrets(ctx, sealed.ID, "whpk_new", store.WebhookSecrets{Secret: []byte("new key 2f"), Private: []byte("new key 2g")}))
	})
	equal(f, f.value(f.Read().SecretTenant(ctx, "ccs_1")), acme.ID)
	_, err := f.Read().SecretTenant(ctx, "none")
	equal(f, errors.Is(err, store.ErrNone), true)
	equal(f, f.value(f.Read().SAMLKeyTenant(ctx, "fingerprint")), acme.ID)
	webhooks, connections, err := f.Read().LostSecrets(ctx, acme.ID, []byte("new key 2"))
	noError(f, err)
	equal(f, [][]string{webhooks, connections}, [][]string{{own.ID}, {c.ID}})
	f.write(func(tx *store.Tx) {
		noError(f, tx.ReplaceWebhookSecrets(ctx, own.ID, "whpk_new", store.WebhookSecrets{Secret: []byte("new key 2h"), Private: []byte("new key 2i")}))
		f.wantChange(tx.ConfirmFactor(ctx, ann.ID, app.ID, 1))
		f.wantChange(tx.LoseSeed(ctx, app.ID))
		f.wantNoChange(tx.LoseSeed(ctx, "mfa_begun"))
		noError(f, tx.ReplaceWebhookSecrets(ctx, hook.ID, "whpk_new", store.WebhookSecrets{Secret: []byte("new key 2d"), Private: []byte("new key 2e")}))
		equal(f, f.value(tx.LoseConnectionSecret(ctx, "ccs_1")), store.SecretPlace{ConnectionID: c.ID, TenantID: acme.ID, Hint: "last"})
		equal(f, f.value(tx.LoseConnectionKey(ctx, "kid")), store.SecretPlace{ConnectionID: c.ID, TenantID: acme.ID})
		equal(f, f.value(tx.LoseSAMLKey(ctx, "fingerprint")), store.SecretPlace{ConnectionID: c.ID, TenantID: acme.ID, Hint: "sign"})
		f.wantNone(tx.LoseSAMLKey(ctx, "fingerprint"))
	})
	equal(f, f.value(f.Read().SealedWithOtherKeys(ctx, []byte("new key 2"), store.SealedValue{}, 10)), []store.SealedValue(nil))
	webhooks, connections, err = f.Read().LostSecrets(ctx, acme.ID, []byte("new key 2"))
	noError(f, err)
	equal(f, len(webhooks)+len(connections), 0)
	factors, err := f.Read().Factors(ctx, ann.ID)
	noError(f, err)
	equal(f, []bool{len(factors) == 1, factors[0].IsLost(), factors[0].Usable()}, []bool{true, true, false})
	lost, err := f.Read().Webhook(ctx, hook.ID)
	noError(f, err)
	equal(f, []any{lost.Enabled, lost.DisabledReason, lost.PublicKey}, []any{false, doorward.DisabledKeyLost, "whpk_new"})
	secrets, err := f.Read().ConnectionSecrets(ctx, c.ID)
	noError(f, err)
	equal(f, []bool{len(secrets) == 1, secrets[0].IsLost}, []bool{true, true})
	f.write(func(tx *store.Tx) {
		noError(f, tx.RotateWebhook(ctx, hook.ID, []byte("was"), f.clock.read(), []byte("is")))
		noError(f, tx.DropLostSecrets(ctx, c.ID))
	})
	equal(f, f.value(f.Read().ConnectionSecrets(ctx, c.ID)), []store.SealedConnectionSecret(nil))
	lost, err = f.Read().Webhook(ctx, hook.ID)
	noError(f, err)
	equal(f, lost.DisabledReason, doorward.DisabledReason(""))
}

// oneMasterKey: of nodes with different files, one makes its key the first.
func oneMasterKey(f *fixture) {
	winner := f.onlyOne(8, func(tx *store.Tx, i int) (bool, error) {
		return tx.AdoptMasterKey(f.Context(), fmt.Sprint("k", i), []byte{byte(i)})
	})
	all, err := f.Read().MasterKeys(f.Context())
	noError(f, err)
	if len(all) != 1 || all[0].ID != fmt.Sprint("k", winner) {
		f.Errorf("the master keys are %v, want only k%d", all, winner)
	}
}

func signingKeys(f *fixture) {
	ctx := f.Context()
	key := func(id string, starts time.Duration) store.SigningKey {
		return store.SigningKey{ID: id, Public: []byte{0, 9}, Sealed: []byte("123456789 " + id), StartsAt: noon.Add(starts), CreatedAt: noon}
	}
	late, early := key("a", day), key("b", 0)
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertSigningKey(ctx, late))
		noError(f, tx.InsertSigningKey(ctx, early))
	})
	equal(f, f.value(f.Read().SigningKeys(ctx)), []store.SigningKey{early, late})
	changed := []store.Change{{Kind: store.ChangeSigning}}
	equal(f, f.changesOf(func(tx *store.Tx) { f.wantNoChange(tx.StartSigningKey(ctx, late.ID, late.StartsAt)) }), []store.Change(nil)) // no earlier
	equal(f, f.changesOf(func(tx *store.Tx) { f.wantChange(tx.StartSigningKey(ctx, late.ID, noon.Add(time.Minute))) }), changed)
	equal(f, f.changesOf(func(tx *store.Tx) { tx.AnnounceSigningKeys() }), changed)
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.StartSigningKey(ctx, "none", noon))
		noError(f, tx.DeleteSigningKey(ctx, early.ID))
		noError(f, tx.DeleteSigningKey(ctx, "none"))
	})
	late.StartsAt = noon.Add(time.Minute)
	equal(f, f.value(f.Read().SigningKeys(ctx)), []store.SigningKey{late})
}

func sealedAgain(f *fixture) {
	ctx := f.Context()
	var all []store.SealedValue
	f.write(func(tx *store.Tx) {
		for i := range 5 {
			k := store.SigningKey{ID: fmt.Sprint("k", i), Public: []byte{1}, Sealed: append([]byte("old key 1"), byte(i)), StartsAt: noon, CreatedAt: noon}
			noError(f, tx.InsertSigningKey(ctx, k))
			all = append(all, store.SealedValue{Table: "signing_keys", ID: k.ID, Column: "private_sealed", Value: k.Sealed})
		}
	})
	other := []byte("new key 2")
	equal(f, f.value(f.Read().SealedWithOtherKeys(ctx, []byte("old key 1"), store.SealedValue{}, 10)), []store.SealedValue(nil))
	equal(f, f.value(f.Read().SealedWithOtherKeys(ctx, other, store.SealedValue{}, 3)), all[:3])
	equal(f, f.value(f.Read().SealedWithOtherKeys(ctx, other, all[2], 3)), all[3:])
	f.write(func(tx *store.Tx) {
		noError(f, tx.Reseal(ctx, all[0], append(other, 0)))
		noError(f, tx.Reseal(ctx, all[0], []byte("changed since"))) // no longer the value that was read
		wantFault(f, "Reseal", tx.Reseal(ctx, store.SealedValue{Table: "users", Column: "email"}, nil))
	})
	equal(f, f.value(f.Read().SealedWithOtherKeys(ctx, other, store.SealedValue{}, 10)), all[1:])

	// Values of the other tables, of which the webhook has three.
	f.factor(f.account("ann@acme.example"), doorward.TOTP)
	hook := f.webhook("", "*")
	c := f.connection(f.tenant("Acme"), "One")
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertConnectionSecret(ctx, store.SealedConnectionSecret{ConnectionSecret: doorward.ConnectionSecret{ID: "ccs_1", ConnectionID: c.ID}, Sealed: []byte("old key 1a")}))
		noError(f, tx.InsertConnectionKey(ctx, store.ConnectionKey{ID: "kid", ConnectionID: c.ID, Sealed: []byte("old key 1b")}))
		f.wantChange(tx.InsertSAMLKey(ctx, store.SAMLKey{ID: "fingerprint", ConnectionID: c.ID, Purpose: store.SAMLSign, Sealed: []byte("old key 1d")}))
		noError(f, tx.RotateWebhook(ctx, hook.ID, []byte("was"), f.clock.read(), []byte("is")))
		for _, v := range f.value(tx.SealedWithOtherKeys(ctx, other, store.SealedValue{}, 20)).([]store.SealedValue)[4:] {
			noError(f, tx.Reseal(ctx, v, append(other, v.Column...)))
		}
	})
	equal(f, f.value(f.Read().SealedWithOtherKeys(ctx, other, store.SealedValue{}, 10)), all[1:])
	keys, err := f.Read().SigningKeys(ctx)
	noError(f, err)
	equal(f, keys[0].Sealed, append(other, 0))
}
