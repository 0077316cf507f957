package storetest

import (
	"crypto/sha256"
	"net/netip"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// apiKey adds a key of the owner for a week, with all of its columns.
func (f *fixture) apiKey(owner doorward.User, name string) doorward.APIKey {
	f.Helper()
	k := doorward.APIKey{
		ID: f.id("key_"), TenantID: owner.TenantID, Name: name, Status: doorward.APIKeyActive, Role: doorward.RoleUser,
		Permissions: []doorward.Action{doorward.MessageRead, doorward.MessageSend}, OwnerID: owner.ID, OwnerRole: owner.Role,
		CreatedBy: "usr_maker", CreatedAt: f.clock.read(), ExpiresAt: f.clock.read().Add(7 * day), PerSecond: 20, Hint: "dwk_" + name,
		AllowedIPs: []netip.Prefix{netip.MustParsePrefix("192.0.2.7/32"), netip.MustParsePrefix("2001:db8::/32")},
	}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertAPIKey(f.Context(), k, secretOf(k, "first"))) })
	return k
}

// secretOf is the hash of one of the key's secrets.
func secretOf(k doorward.APIKey, which string) []byte {
	hash := sha256.Sum256([]byte(k.ID + which))
	return hash[:]
}

// secretChanges returns the changes by which nodes forget these secrets of the key.
func secretChanges(k doorward.APIKey, which ...string) (all []store.Change) {
	for _, w := range which {
		all = append(all, store.Change{Kind: store.ChangeSession, Subject: store.SessionSubject(secretOf(k, w))})
	}
	return all
}

func apiKeys(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann, bob := f.member(acme, "ann@acme.example", doorward.RoleAdmin), f.member(acme, "bob@acme.example", doorward.RoleUser)
	first := f.apiKey(ann, "Émile")
	f.clock.move(time.Second)
	second := f.apiKey(bob, "backup")
	foreign := f.apiKey(f.member(zeta, "eve@zeta.example", doorward.RoleOwner), "backup")
	now := f.clock.read()
	bare := doorward.APIKey{
		ID: f.id("key_"), TenantID: acme.ID, Name: "bare", Status: doorward.APIKeyDisabled, Role: doorward.RoleViewer, OwnerID: "usr_none",
		Permissions: []doorward.Action{}, AllowedIPs: []netip.Prefix{}, CreatedAt: now.Add(-time.Hour), ExpiresAt: now, RotateBy: pointerTo(now.Add(time.Hour)),
	}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertAPIKey(ctx, bare, secretOf(bare, "first"))) })

	equal(f, f.value(f.Read().APIKey(ctx, first.ID, now)), first)
	equal(f, f.value(f.Read().APIKey(ctx, bare.ID, now)), bare)
	f.wantNone(f.Read().APIKey(ctx, "key_none", now))
	equal(f, f.value(f.Read().APIKeyBySecret(ctx, secretOf(second, "first"), now)), store.KeyCredential{Key: second, Tenant: doorward.TenantActive})
	f.wantNone(f.Read().APIKeyBySecret(ctx, []byte("none"), now))
	f.wantNone(f.Read().APIKeyBySecret(ctx, nil, now))

	ids := func(filter store.APIKeyFilter) (all []string) {
		p, err := f.Read().APIKeyPage(ctx, acme.ID, filter, now, doorward.Window{Limit: 10})
		noError(f, err)
		for _, k := range p.Items {
			all = append(all, k.ID)
		}
		return all
	}
	equal(f, ids(store.APIKeyFilter{}), []string{second.ID, first.ID, bare.ID})
	equal(f, ids(store.APIKeyFilter{Owner: ann.ID}), []string{first.ID})
	equal(f, ids(store.APIKeyFilter{Role: first.Role}), []string{second.ID, first.ID})
	equal(f, ids(store.APIKeyFilter{Role: doorward.RoleAdmin}), []string(nil))
	equal(f, ids(store.APIKeyFilter{Text: "éMI"}), []string{first.ID})
	equal(f, ids(store.APIKeyFilter{Status: doorward.APIKeyActive}), []string{second.ID, first.ID})
	equal(f, ids(store.APIKeyFilter{Status: doorward.APIKeyExpired}), []string{bare.ID})
	equal(f, ids(store.APIKeyFilter{Status: doorward.APIKeyDisabled}), []string(nil))

	p, err := f.Read().APIKeyPage(ctx, acme.ID, store.APIKeyFilter{}, now, doorward.Window{Limit: 1})
	noError(f, err)
	p, err = f.Read().APIKeyPage(ctx, acme.ID, store.APIKeyFilter{}, now, doorward.Window{Limit: 1, After: *p.Next})
	noError(f, err)
	equal(f, p.Items, []doorward.APIKey{first})
	p, err = f.Read().APIKeyPage(ctx, acme.ID, store.APIKeyFilter{}, now, doorward.Window{Limit: 1, Before: *p.Prev})
	noError(f, err)
	equal(f, p.Items, []doorward.APIKey{second})

	equal(f, f.value(f.Read().CountLiveAPIKeys(ctx, acme.ID, now)), 2)
	equal(f, f.value(f.Read().CountLiveAPIKeysOf(ctx, acme.ID, ann.ID, now)), int64(1))
	equal(f, f.value(gather(func(fn func(doorward.APIKey) error) error { return f.Read().EachAPIKey(ctx, acme.ID, now, fn) })),
		[]doorward.APIKey{bare, first, second})
	live := map[string]bool{}
	noError(f, f.Read().EachLiveAPIKey(ctx, now, func(k doorward.APIKey) error {
		live[k.ID] = true
		return nil
	}))
	equal(f, live, map[string]bool{first.ID: true, second.ID: true, foreign.ID: true})
	equal(f, f.changesOf(func(tx *store.Tx) { noError(f, tx.DeleteAPIKeys(ctx, acme.ID)) }), []store.Change{{Kind: store.ChangeTenant, Subject: acme.ID}})
	f.wantNone(f.Read().APIKeyBySecret(ctx, secretOf(first, "first"), now))
	equal(f, f.value(f.Read().APIKey(ctx, foreign.ID, now)), foreign)
}

func changesOfAPIKeys(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann, bob := f.member(acme, "ann@acme.example", doorward.RoleAdmin), f.member(acme, "bob@acme.example", doorward.RoleViewer)
	k := f.apiKey(ann, "backup")
	k.Name, k.Permissions, k.Status, k.OwnerID, k.OwnerRole = "Nightly", []doorward.Action{doorward.UserRead}, doorward.APIKeyDisabled, bob.ID, bob.Role
	k.ExpiresAt, k.RotateBy, k.AllowedIPs, k.PerSecond = k.ExpiresAt.Add(day), pointerTo(k.ExpiresAt), []netip.Prefix{}, 0
	equal(f, f.changesOf(func(tx *store.Tx) { f.wantChange(tx.UpdateAPIKey(ctx, k)) }), secretChanges(k, "first"))
	equal(f, f.value(f.Read().APIKey(ctx, k.ID, f.clock.read())), k)

	f.clock.move(7 * day) // to rotateBy
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.UpdateAPIKey(ctx, k))
		f.wantNoChange(tx.RotateAPIKey(ctx, k.ID, secretOf(k, "second"), "hint", tx.Now))
		f.wantNoChange(tx.RevokeAPIKey(ctx, k.ID))
		f.wantNoChange(tx.UpdateAPIKey(ctx, doorward.APIKey{ID: "key_none"}))
	})
}

func rotations(f *fixture) {
	ctx := f.Context()
	ann := f.member(f.tenant("Acme"), "ann@acme.example", doorward.RoleAdmin)
	k, other := f.apiKey(ann, "backup"), f.apiKey(ann, "other")
	began, grace := f.clock.read(), f.clock.read().Add(day)
	rotate := func(which string, graceEnds time.Time) []store.Change {
		return f.changesOf(func(tx *store.Tx) {
			f.wantChange(tx.RotateAPIKey(ctx, k.ID, secretOf(k, which), "dwk_"+which, graceEnds))
		})
	}
	ends := func(which string) *time.Time {
		f.Helper()
		return f.value(f.Read().APIKeyBySecret(ctx, secretOf(k, which), f.clock.read())).(store.KeyCredential).SecretEndsAt
	}
	f.write(func(tx *store.Tx) { f.wantNoChange(tx.EndReplacedSecrets(ctx, k.ID)) })
	equal(f, rotate("second", grace), secretChanges(k, "first"))
	k.Hint, k.Previous = "dwk_second", &doorward.PreviousSecret{EndsAt: grace}
	equal(f, f.value(f.Read().APIKey(ctx, k.ID, began)), k)
	equal(f, []*time.Time{ends("first"), ends("second")}, []*time.Time{&grace, nil})

	f.clock.move(time.Hour)
	now := f.clock.read()
	atOnce := now.Add(-2 * store.ClockTolerance) // over on every node, whatever its clock
	if got := rotate("third", grace); len(got) != 2 {
		f.Errorf("a second rotation announces %v, want both secrets", got)
	}
	equal(f, []*time.Time{ends("first"), ends("second"), ends("third")}, []*time.Time{&atOnce, &grace, nil})
	f.write(func(tx *store.Tx) { f.wantChange(tx.EndReplacedSecrets(ctx, k.ID)) })
	equal(f, ends("second"), &atOnce)
	k.Hint, k.Previous = "dwk_third", nil
	equal(f, f.value(f.Read().APIKey(ctx, k.ID, now)), k)
	equal(f, f.value(f.Read().APIKey(ctx, other.ID, now)), other)

	// A rotation clears rotateBy. Without grace, the older secret has ended.
	k.RotateBy = pointerTo(now.Add(time.Hour))
	f.write(func(tx *store.Tx) { f.wantChange(tx.UpdateAPIKey(ctx, k)) })
	rotate("fourth", now)
	k.Hint, k.RotateBy = "dwk_fourth", nil
	equal(f, f.value(f.Read().APIKey(ctx, k.ID, now)), k)
	f.clock.move(2 * time.Hour)
	f.write(func(tx *store.Tx) { f.wantChange(tx.RevokeAPIKey(ctx, k.ID)) })

	f.clock.move(30 * day)
	f.write(func(tx *store.Tx) {
		equal(f, []any{f.value(tx.DeleteEndedSecrets(ctx, 1)), f.value(tx.DeleteEndedSecrets(ctx, 9))}, []any{int64(1), int64(2)})
	})
	f.wantNone(f.Read().APIKeyBySecret(ctx, secretOf(k, "third"), f.clock.read()))
	equal(f, ends("fourth"), (*time.Time)(nil))
}

func endOfAPIKeys(f *fixture) {
	ctx := f.Context()
	ann := f.member(f.tenant("Acme"), "ann@acme.example", doorward.RoleAdmin)
	k, late, other := f.apiKey(ann, "backup"), f.apiKey(ann, "late"), f.apiKey(ann, "other")
	status := func(k doorward.APIKey) doorward.APIKeyStatus {
		f.Helper()
		return f.value(f.Read().APIKey(ctx, k.ID, f.clock.read())).(doorward.APIKey).Status
	}
	equal(f, f.changesOf(func(tx *store.Tx) { f.wantChange(tx.RevokeAPIKey(ctx, k.ID)) }), secretChanges(k, "first"))
	equal(f, f.changesOf(func(tx *store.Tx) {
		f.wantNoChange(tx.RevokeAPIKey(ctx, k.ID))
		f.wantNoChange(tx.UpdateAPIKey(ctx, k))
		f.wantNoChange(tx.ExpireAPIKey(ctx, late.ID))
	}), secretChanges(k, "first"))
	equal(f, f.value(f.Read().APIKeysToExpire(ctx, f.clock.read(), 10)), []doorward.APIKey(nil))
	equal(f, f.changesOf(func(tx *store.Tx) {
		equal(f, f.value(tx.DisableAllAPIKeys(ctx)), []store.KeyName{{ID: late.ID, Name: "late", TenantID: ann.TenantID}, {ID: other.ID, Name: "other", TenantID: ann.TenantID}})
	}), []store.Change{{Kind: store.ChangeAll}})
	equal(f, []doorward.APIKeyStatus{status(k), status(late)}, []doorward.APIKeyStatus{doorward.APIKeyRevoked, doorward.APIKeyDisabled})

	f.clock.move(7 * day)
	expired, err := f.Read().APIKeysToExpire(ctx, f.clock.read(), 1)
	noError(f, err)
	equal(f, expired[0].ID, late.ID)
	equal(f, f.changesOf(func(tx *store.Tx) {
		f.wantChange(tx.ExpireAPIKey(ctx, late.ID))
		f.wantNoChange(tx.ExpireAPIKey(ctx, late.ID))
		f.wantNoChange(tx.ExpireAPIKey(ctx, k.ID))
		equal(f, f.value(tx.DisableAllAPIKeys(ctx)), []store.KeyName(nil))
	}), []store.Change{{Kind: store.ChangeAll}})
	equal(f, status(late), doorward.APIKeyExpired)
}

func ownersOfAPIKeys(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	account := f.account("ann@acme.example")
	ann, bob := f.join(acme, account, doorward.RoleAdmin), f.member(acme, "bob@acme.example", doorward.RoleUser)
	elsewhere := f.apiKey(f.join(zeta, account, doorward.RoleUser), "elsewhere")
	expired := f.apiKey(ann, "over")
	f.clock.move(7 * day)
	k, soon, kept := f.apiKey(ann, "backup"), f.apiKey(ann, "soon"), f.apiKey(bob, "kept")
	now := f.clock.read()
	soon.ExpiresAt = now.Add(time.Hour)
	f.write(func(tx *store.Tx) { f.wantChange(tx.UpdateAPIKey(ctx, soon)) })

	by := now.Add(2 * day)
	equal(f, f.changesOf(func(tx *store.Tx) {
		equal(f, f.value(tx.TransferAPIKeys(ctx, acme.ID, ann.ID, bob.ID, by)), []string{k.ID, soon.ID})
	}), []store.Change{{Kind: store.ChangeUser, Subject: ann.ID}})
	for _, moved := range []*doorward.APIKey{&k, &soon} {
		moved.OwnerID, moved.OwnerRole, moved.RotateBy = bob.ID, bob.Role, &by
		equal(f, f.value(f.Read().APIKey(ctx, moved.ID, now)), *moved)
	}
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.TransferAPIKeys(ctx, acme.ID, bob.ID, ann.ID, by.Add(day))), []string{k.ID, soon.ID, kept.ID})
	})
	k.OwnerID, k.OwnerRole = ann.ID, ann.Role // the earlier rotateBy stays
	equal(f, f.value(f.Read().APIKey(ctx, k.ID, now)), k)

	f.write(func(tx *store.Tx) { f.wantChange(tx.SetUserStatus(ctx, acme.ID, ann.ID, doorward.UserSuspended)) })
	k.OwnerRole = ""
	equal(f, f.value(f.Read().APIKey(ctx, k.ID, now)), k)
	equal(f, f.changesOf(func(tx *store.Tx) {
		equal(f, f.value(tx.RevokeAPIKeysOf(ctx, acme.ID, ann.ID)), []string{k.ID, soon.ID, kept.ID})
		equal(f, f.value(tx.RevokeAPIKeysOf(ctx, acme.ID, ann.ID)), []string(nil))
	}), []store.Change{{Kind: store.ChangeUser, Subject: ann.ID}})
	for _, other := range []doorward.APIKey{expired, elsewhere} {
		equal(f, f.value(f.Read().APIKey(ctx, other.ID, now)).(doorward.APIKey).Status, doorward.APIKeyActive)
	}
}

func noticesOfAPIKeys(f *fixture) {
	ctx := f.Context()
	ann := f.member(f.tenant("Acme"), "ann@acme.example", doorward.RoleAdmin)
	k, disabled := f.apiKey(ann, "backup"), f.apiKey(ann, "disabled") // for a week
	disabled.Status = doorward.APIKeyDisabled
	f.write(func(tx *store.Tx) { f.wantChange(tx.UpdateAPIKey(ctx, disabled)) })
	due := func(within time.Duration) (ids []string) {
		f.Helper()
		all, err := f.Read().APIKeysExpiring(ctx, within, f.clock.read(), 10)
		noError(f, err)
		for _, k := range all {
			ids = append(ids, k.ID)
		}
		return ids
	}
	equal(f, [][]string{due(day), due(7 * day), due(30 * day)}, [][]string{nil, nil, nil}) // the end is a week away, and was never further away
	now := f.clock.read()
	equal(f, f.value(f.Read().APIKeysEnding(ctx, k.TenantID, now, k.EndsAt(), 9)), []doorward.APIKey{k})
	equal(f, f.value(f.Read().APIKeysEnding(ctx, k.TenantID, now, k.EndsAt().Add(-time.Second), 9)), []doorward.APIKey(nil))
	equal(f, f.value(f.Read().APIKeysEnding(ctx, k.TenantID, k.EndsAt(), k.EndsAt().Add(day), 9)), []doorward.APIKey(nil)) // it has ended
	equal(f, f.value(f.Read().APIKeysEnding(ctx, "tnt_other", now, k.EndsAt(), 9)), []doorward.APIKey(nil))
	f.clock.move(6 * day)
	equal(f, [][]string{due(day), due(7 * day)}, [][]string{{k.ID}, nil})
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.MarkAPIKeyNoticeSent(ctx, k.ID, 7*day))
		f.wantNoChange(tx.MarkAPIKeyNoticeSent(ctx, disabled.ID, day))
		f.wantChange(tx.MarkAPIKeyNoticeSent(ctx, k.ID, day))
		f.wantNoChange(tx.MarkAPIKeyNoticeSent(ctx, k.ID, day))
	})
	k.ExpiresAt = f.clock.read().Add(8 * day)
	f.write(func(tx *store.Tx) { f.wantChange(tx.UpdateAPIKey(ctx, k)) })
	f.clock.move(2 * day)
	equal(f, [][]string{due(day), due(7 * day)}, [][]string{nil, {k.ID}})
	f.clock.move(5 * day) // one late notice stands for all that are due
	equal(f, [][]string{due(day), due(7 * day)}, [][]string{{k.ID}, {k.ID}})
	f.write(func(tx *store.Tx) { f.wantChange(tx.MarkAPIKeyNoticeSent(ctx, k.ID, day)) })
	equal(f, [][]string{due(day), due(7 * day)}, [][]string{nil, nil})
	f.clock.move(day)
	equal(f, due(day), []string(nil))
}

func usesOfAPIKeys(f *fixture) {
	ctx := f.Context()
	ann := f.member(f.tenant("Acme"), "ann@acme.example", doorward.RoleAdmin)
	k := f.apiKey(ann, "backup")
	now := f.clock.read()
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.RotateAPIKey(ctx, k.ID, secretOf(k, "second"), "dwk_second", now.Add(day)))
	})
	use := func(which string, when time.Time, ip string) store.KeyUse {
		return store.KeyUse{Use: store.Use{Hash: [32]byte(secretOf(k, which)), At: when}, IP: ip}
	}
	early, late, latest := now.Add(-time.Hour), now.Add(-time.Minute), now.Add(-time.Second)
	f.write(func(tx *store.Tx) {
		noError(f, tx.TouchAPIKeys(ctx, []store.KeyUse{use("second", late, "192.0.2.7"), use("first", early, "192.0.2.8"), use("none", now, "192.0.2.9")}))
		noError(f, tx.TouchAPIKeys(ctx, []store.KeyUse{use("second", early, "192.0.2.9")}))
		noError(f, tx.TouchAPIKeys(ctx, []store.KeyUse{use("second", latest, "")})) // the address stays
	})
	k.Hint, k.LastUsedAt, k.LastUsedIP = "dwk_second", &latest, "192.0.2.7"
	k.Previous = &doorward.PreviousSecret{EndsAt: now.Add(day), LastUsedAt: &early}
	equal(f, f.value(f.Read().APIKey(ctx, k.ID, now)), k)
}
