package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// letterCase: two texts are equal only if their bytes are. Folding the case of an
// address is its parser's task.
func letterCase(f *fixture) {
	ctx := f.Context()
	lower, upper := f.tenant("acme"), f.tenant("ACME")
	ann, annUp, annWide := f.account("ann@acme.example"), f.account("Ann@acme.example"), f.account("ａnn@acme.example")
	composed, decomposed := f.account("\u00e9@acme.example"), f.account("e\u0301@acme.example")
	for _, a := range []doorward.Account{ann, annUp, annWide, composed, decomposed} {
		equal(f, f.value(f.Read().AccountByEmail(ctx, a.Email)), a)
	}
	f.wantNone(f.Read().AccountByEmail(ctx, "ANN@acme.example"))
	f.wantNone(f.Read().AccountByEmail(ctx, "ann@acme.example "))
	f.wantNone(f.Read().Account(ctx, strings.ToUpper(ann.ID)))
	f.wantNone(f.Read().Tenant(ctx, strings.ToUpper(lower.ID)))
	f.write(func(tx *store.Tx) {
		// The generation -1 is that of no account, so only the hash can match.
		f.wantNoChange(tx.LockAccountIfSamePassword(ctx, doorward.Account{ID: ann.ID, PasswordHash: strings.ToUpper(ann.PasswordHash), Generation: -1}))
		f.wantChange(tx.InsertInvitation(ctx, f.draft(upper, "bob@acme.example")))
		f.wantChange(tx.InsertInvitation(ctx, f.draft(upper, "Bob@acme.example")))
		f.wantNoChange(tx.InsertInvitation(ctx, f.draft(upper, "bob@acme.example")))
		shout := doorward.Tenant{ID: strings.ToUpper(lower.ID), Name: "shout", CreatedAt: noon}
		noError(f, tx.InsertTenant(ctx, shout))
		equal(f, f.value(tx.Tenant(ctx, shout.ID)), shout)
		equal(f, f.value(tx.Tenant(ctx, lower.ID)), lower)
	})
}

// order: lists are ordered by time and then by id, never by text that people
// write, because databases sort text differently.
func order(f *fixture) {
	ctx := f.Context()
	var all []doorward.User
	var names []doorward.Tenant
	for _, name := range []string{"b", "A", "a", "_", "ä", "Z", "-a", "a b", "ab", "", "ß", "10", "9"} {
		t := f.tenant(name)
		names = append(names, t)
		all = append(all, f.member(t, "z"+t.ID, doorward.RoleOwner))
		f.clock.move(time.Second)
	}
	equal(f, f.value(allTenants(ctx, f.Read())), names)
	equal(f, f.value(allUsers(ctx, f.Read())), all)

	// The same microsecond: ids decide. NewID uses lower-case letters and digits,
	// which every collation sorts alike.
	var twins []doorward.User
	for range 50 {
		a := doorward.Account{ID: doorward.NewID(doorward.PrefixUser), CreatedAt: noon}
		a.Email = a.ID + "@acme.example"
		f.write(func(tx *store.Tx) { f.wantChange(tx.InsertAccount(ctx, a)) })
		twins = append(twins, f.join(names[0], a, doorward.RoleUser))
	}
	slices.SortFunc(twins, func(a, b doorward.User) int { return strings.Compare(a.ID, b.ID) })
	equal(f, f.value(allMembers(ctx, f.Read(), names[0].ID)), append(all[:1:1], twins...))
}

func unicodeText(f *fixture) {
	ctx := f.Context()
	for _, text := range []string{
		"Zoë Ångström", "Ξένος", "田中さん", "مرحبا", "🚪🔑👩‍👩‍👧‍👦", "\U0010ffff\ufffd", "a\u0300\u0301", "e\u0301", "\u00e9",
		"'; DROP TABLE users; --", `"quoted" \back\slash %s $1 ?`, "tab\tnew\nline\r", " spaces ", "\x01\x7f", strings.Repeat("𝒳", 5000),
	} {
		t := f.tenant(text)
		equal(f, f.value(f.Read().Tenant(ctx, t.ID)), t)
		a := doorward.Account{ID: text, Email: text + "@", PasswordHash: text, CreatedAt: noon}
		f.write(func(tx *store.Tx) { f.wantChange(tx.InsertAccount(ctx, a)) })
		equal(f, f.value(f.Read().AccountByEmail(ctx, text+"@")), a)
		equal(f, f.value(f.Read().Account(ctx, text)), a)
	}
}

// untrustedText: replies of mail servers are stored whatever bytes they contain;
// one that can't be stored would keep its mail queued for ever.
func untrustedText(f *fixture) {
	ctx := f.Context()
	for sent, stored := range map[string]string{
		"550 nein\x00danke":    "550 neindanke",
		"550 caf\xe9 ferm\xe9": "550 caf\ufffd ferm\ufffd",
		"550 \xf0\x9f\x9a":     "550 \ufffd",
	} {
		f.write(func(tx *store.Tx) { noError(f, tx.QueueMail(ctx, store.MailReset, "ann@acme.example", "")) })
		m := f.due()[0]
		f.write(func(tx *store.Tx) { noError(f, tx.ScheduleMailRetry(ctx, m.ID, f.clock.read(), sent)) })
		equal(f, f.due()[0].LastError, stored)
		f.write(func(tx *store.Tx) { noError(f, tx.MarkMailFailed(ctx, m.ID, sent)) })
	}
	equal(f, f.value(CountMails(ctx, f.Read(), doorward.DeliveryFailed)), 3)
}

func emptyIsNotAbsent(f *fixture) {
	ctx := f.Context()
	acme := doorward.Tenant{ID: "tnt_", CreatedAt: noon} // no name, no status
	ann := doorward.User{ID: "usr_", TenantID: acme.ID, CreatedAt: noon}
	s := doorward.Session{ID: "ses_", UserID: ann.ID, TenantID: acme.ID, CreatedAt: noon, LastSeenAt: noon, JoinedAt: noon, Assurance: doorward.Assurance{AAL: 1, ProvedAt: noon}}
	inv := doorward.Invitation{ID: "inv_", TenantID: acme.ID, CreatedAt: noon, ExpiresAt: noon, Delivery: doorward.DeliveryQueued}
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertTenant(ctx, acme))
		f.wantChange(tx.InsertAccount(ctx, doorward.Account{ID: ann.ID, CreatedAt: noon}))
		f.wantNoChange(tx.InsertAccount(ctx, doorward.Account{ID: "usr_2", CreatedAt: noon})) // an empty address is an address, too
		f.wantChange(tx.InsertMembership(ctx, ann))
		noError(f, tx.InsertSession(ctx, s, []byte{}))
		f.wantChange(tx.InsertInvitation(ctx, inv))
		f.wantChange(tx.LockAccountIfSamePassword(ctx, doorward.Account{ID: ann.ID, Generation: -1})) // an empty hash matches
	})
	equal(f, f.value(f.Read().Tenant(ctx, acme.ID)), acme)
	equal(f, f.value(f.Read().UserByEmail(ctx, acme.ID, "")), ann)
	equal(f, f.value(f.Read().SessionByToken(ctx, []byte{})), store.Credential{Session: s, User: ann})
	f.wantNone(f.Read().SessionByToken(ctx, nil))
	equal(f, f.value(f.Read().Invitation(ctx, inv.ID)), inv)
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.RevokeInvitationsBy(ctx, acme.ID, "")), int64(0)) }) // an empty id, the operator's, matches nobody
}

func times(f *fixture) {
	ctx := f.Context()
	for _, when := range []time.Time{
		{}, // the zero time is the year 1
		time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.UTC),
		time.Unix(0, 0).UTC(),
		time.Date(2038, 1, 19, 3, 14, 8, 0, time.UTC),
		time.Date(2262, 4, 11, 23, 47, 17, 1000, time.UTC), // beyond 64 bits of nanoseconds
		time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC),
		time.Date(294246, 1, 1, 0, 0, 0, 0, time.UTC), // near the last that fits
	} {
		t := doorward.Tenant{ID: f.id("tnt_"), CreatedAt: when}
		f.write(func(tx *store.Tx) { noError(f, tx.InsertTenant(ctx, t)) })
		equal(f, f.value(f.Read().Tenant(ctx, t.ID)), t)
	}

	// Times are truncated to microseconds, before 1970 towards the past, and lose
	// their zone.
	zone := time.FixedZone("", 5*3600+45*60)
	for _, year := range []int{2031, 1931} {
		fine := time.Date(year, 5, 6, 17, 45, 0, 123456999, zone)
		t := doorward.Tenant{ID: f.id("tnt_"), CreatedAt: fine}
		f.write(func(tx *store.Tx) { noError(f, tx.InsertTenant(ctx, t)) })
		t.CreatedAt = time.Date(year, 5, 6, 12, 0, 0, 123456000, time.UTC)
		equal(f, f.value(f.Read().Tenant(ctx, t.ID)), t)
		equal(f, t.CreatedAt, doorward.Instant(fine))
	}
}

func theClock(f *fixture) {
	equal(f, f.Now(), noon)
	f.clock.move(time.Nanosecond)
	equal(f, f.Now(), noon)

	// The engine's own clock is only compared with, never stored.
	f.clock.move(time.Since(noon))
	drift, err := f.ClockDrift(f.Context())
	noError(f, err)
	if drift.Abs() > 10*time.Second {
		f.Errorf("clocks on one machine differ by %v", drift)
	}
	f.clock.move(time.Hour)
	drift, err = f.ClockDrift(f.Context())
	noError(f, err)
	if (drift - time.Hour).Abs() > 10*time.Second {
		f.Errorf("a clock set an hour ahead is %v ahead", drift)
	}
	noError(f, f.Ping(f.Context()))
}
