package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// letterCase: two texts are equal when their bytes are, and in no other case.
// Folding the case of an address is the business of its parser.
func letterCase(w *world) {
	ctx := w.Context()
	lower, upper := w.tenant("acme"), w.tenant("ACME")
	ann, annUp, annWide := w.account("ann@acme.example"), w.account("Ann@acme.example"), w.account("ａnn@acme.example")
	composed, decomposed := w.account("\u00e9@acme.example"), w.account("e\u0301@acme.example")
	for _, a := range []doorward.Account{ann, annUp, annWide, composed, decomposed} {
		same(w, a)(w.Read().AccountByEmail(ctx, a.Email))
	}
	none(w)(w.Read().AccountByEmail(ctx, "ANN@acme.example"))
	none(w)(w.Read().AccountByEmail(ctx, "ann@acme.example "))
	none(w)(w.Read().Account(ctx, strings.ToUpper(ann.ID)))
	none(w)(w.Read().Tenant(ctx, strings.ToUpper(lower.ID)))
	w.write(func(tx *store.Tx) {
		no(w)(tx.LockAccount(ctx, ann.ID, strings.ToUpper(ann.PasswordHash)))
		yes(w)(tx.InsertInvitation(ctx, w.draft(upper, "bob@acme.example")))
		yes(w)(tx.InsertInvitation(ctx, w.draft(upper, "Bob@acme.example")))
		no(w)(tx.InsertInvitation(ctx, w.draft(upper, "bob@acme.example")))
		shout := doorward.Tenant{ID: strings.ToUpper(lower.ID), Name: "shout", CreatedAt: noon}
		ok(w, tx.InsertTenant(ctx, shout))
		same(w, shout)(tx.Tenant(ctx, shout.ID))
		same(w, lower)(tx.Tenant(ctx, lower.ID))
	})
}

// order: lists are ordered by time and then by id, never by a text that people
// write, because databases disagree about the order of letters.
func order(w *world) {
	ctx := w.Context()
	var all []doorward.User
	var names []doorward.Tenant
	for _, name := range []string{"b", "A", "a", "_", "ä", "Z", "-a", "a b", "ab", "", "ß", "10", "9"} {
		t := w.tenant(name)
		names = append(names, t)
		all = append(all, w.member(t, "z"+t.ID, doorward.RoleOwner))
		w.clock.move(time.Second)
	}
	same(w, names)(w.Read().Tenants(ctx))
	same(w, all)(w.Read().AllUsers(ctx))

	// The same microsecond: ids decide, which NewID makes of lower-case letters
	// and digits, alike in every collation.
	var twins []doorward.User
	for range 50 {
		a := doorward.Account{ID: doorward.NewID(doorward.PrefixUser), CreatedAt: noon}
		a.Email = a.ID + "@acme.example"
		w.write(func(tx *store.Tx) { yes(w)(tx.InsertAccount(ctx, a)) })
		twins = append(twins, w.join(names[0], a, doorward.RoleUser))
	}
	slices.SortFunc(twins, func(a, b doorward.User) int { return strings.Compare(a.ID, b.ID) })
	same(w, append(all[:1:1], twins...))(w.Read().Users(ctx, names[0].ID))
}

func unicodeText(w *world) {
	ctx := w.Context()
	for _, text := range []string{
		"Zoë Ångström", "Ξένος", "田中さん", "مرحبا", "🚪🔑👩‍👩‍👧‍👦", "\U0010ffff\ufffd", "a\u0300\u0301", "e\u0301", "\u00e9",
		"'; DROP TABLE users; --", `"quoted" \back\slash %s $1 ?`, "tab\tnew\nline\r", " spaces ", "\x01\x7f", strings.Repeat("𝒳", 5000),
	} {
		t := w.tenant(text)
		same(w, t)(w.Read().Tenant(ctx, t.ID))
		a := doorward.Account{ID: text, Email: text + "@", PasswordHash: text, CreatedAt: noon}
		w.write(func(tx *store.Tx) { yes(w)(tx.InsertAccount(ctx, a)) })
		same(w, a)(w.Read().AccountByEmail(ctx, text+"@"))
		same(w, a)(w.Read().Account(ctx, text))
	}
}

// textFromStrangers: what mail servers answer is noted whatever it is made of;
// a note that cannot be stored would keep the mail in the queue for ever.
func textFromStrangers(w *world) {
	ctx := w.Context()
	for sent, kept := range map[string]string{
		"550 nein\x00danke":    "550 neindanke",
		"550 caf\xe9 ferm\xe9": "550 caf\ufffd ferm\ufffd",
		"550 \xf0\x9f\x9a":     "550 \ufffd",
	} {
		w.write(func(tx *store.Tx) { ok(w, tx.QueueMail(ctx, store.MailReset, "ann@acme.example", "")) })
		m := w.due()[0]
		w.write(func(tx *store.Tx) { ok(w, tx.MailRetry(ctx, m.ID, w.clock.read(), sent)) })
		same(w, kept)(w.due()[0].LastError, nil)
		w.write(func(tx *store.Tx) { ok(w, tx.MailFailed(ctx, m.ID, sent)) })
	}
	same(w, 3)(CountMails(ctx, w.Read(), doorward.DeliveryFailed))
}

func emptyIsNotAbsent(w *world) {
	ctx := w.Context()
	acme := doorward.Tenant{ID: "tnt_", CreatedAt: noon} // no name, no status
	ann := doorward.User{ID: "usr_", TenantID: acme.ID, CreatedAt: noon}
	s := doorward.Session{ID: "ses_", UserID: ann.ID, TenantID: acme.ID, CreatedAt: noon, LastSeenAt: noon}
	inv := doorward.Invitation{ID: "inv_", TenantID: acme.ID, CreatedAt: noon, ExpiresAt: noon, Delivery: doorward.DeliveryQueued}
	w.write(func(tx *store.Tx) {
		ok(w, tx.InsertTenant(ctx, acme))
		yes(w)(tx.InsertAccount(ctx, doorward.Account{ID: ann.ID, CreatedAt: noon}))
		no(w)(tx.InsertAccount(ctx, doorward.Account{ID: "usr_2", CreatedAt: noon})) // the empty address is one, too
		yes(w)(tx.InsertMembership(ctx, ann))
		ok(w, tx.InsertSession(ctx, s, []byte{}))
		yes(w)(tx.InsertInvitation(ctx, inv))
		yes(w)(tx.LockAccount(ctx, ann.ID, ""))
	})
	same(w, acme)(w.Read().Tenant(ctx, acme.ID))
	same(w, ann)(w.Read().UserByEmail(ctx, acme.ID, ""))
	same(w, store.Credential{Session: s, User: ann})(w.Read().SessionByToken(ctx, []byte{}))
	none(w)(w.Read().SessionByToken(ctx, nil))
	same(w, inv)(w.Read().Invitation(ctx, inv.ID))
	w.write(func(tx *store.Tx) { same(w, int64(0))(tx.RevokeInvitationsBy(ctx, acme.ID, "")) }) // the operator is nobody
}

func times(w *world) {
	ctx := w.Context()
	for _, when := range []time.Time{
		{}, // the zero time is the year 1
		time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.UTC),
		time.Unix(0, 0).UTC(),
		time.Date(2038, 1, 19, 3, 14, 8, 0, time.UTC),
		time.Date(2262, 4, 11, 23, 47, 17, 1000, time.UTC), // beyond 64 bits of nanoseconds
		time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC),
		time.Date(294246, 1, 1, 0, 0, 0, 0, time.UTC), // about the last that fits
	} {
		t := doorward.Tenant{ID: w.id("tnt_"), CreatedAt: when}
		w.write(func(tx *store.Tx) { ok(w, tx.InsertTenant(ctx, t)) })
		same(w, t)(w.Read().Tenant(ctx, t.ID))
	}

	// What is finer than a microsecond is cut off, and zones are left behind:
	// before 1970, too, towards the past.
	zone := time.FixedZone("", 5*3600+45*60)
	for _, year := range []int{2031, 1931} {
		fine := time.Date(year, 5, 6, 17, 45, 0, 123456999, zone)
		t := doorward.Tenant{ID: w.id("tnt_"), CreatedAt: fine}
		w.write(func(tx *store.Tx) { ok(w, tx.InsertTenant(ctx, t)) })
		t.CreatedAt = time.Date(year, 5, 6, 12, 0, 0, 123456000, time.UTC)
		same(w, t)(w.Read().Tenant(ctx, t.ID))
		same(w, doorward.Instant(fine))(t.CreatedAt, nil)
	}
}

func theClock(w *world) {
	same(w, noon)(w.Now(), nil)
	w.clock.move(time.Nanosecond)
	same(w, noon)(w.Now(), nil)

	// The engine's own clock is compared with and never stored.
	w.clock.move(time.Since(noon))
	drift, err := w.ClockDrift(w.Context())
	ok(w, err)
	if drift.Abs() > 10*time.Second {
		w.Errorf("the clocks of one machine are %v apart", drift)
	}
	w.clock.move(time.Hour)
	drift, err = w.ClockDrift(w.Context())
	ok(w, err)
	if (drift - time.Hour).Abs() > 10*time.Second {
		w.Errorf("a clock put an hour ahead is %v ahead", drift)
	}
	ok(w, w.Ping(w.Context()))
}
