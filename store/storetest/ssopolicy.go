package storetest

import (
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/internal/rows"
)

// verified adds a verified domain with a connection.
func (f *fixture) verified(t doorward.Tenant, name, connectionID string) doorward.Domain {
	f.Helper()
	d := f.domain(t.ID, name)
	f.write(func(tx *store.Tx) {
		noError(f, tx.VerifyDomain(f.Context(), d.ID, f.clock.read()))
		noError(f, tx.SetDomainConnection(f.Context(), d.ID, connectionID))
	})
	return d
}

// active adds an active connection.
func (f *fixture) active(t doorward.Tenant, name string) doorward.Connection {
	f.Helper()
	c := f.connection(t, name)
	f.write(func(tx *store.Tx) { f.wantChange(tx.SetConnectionStatus(f.Context(), c.ID, doorward.ConnectionActive)) })
	return c
}

func (f *fixture) identity(c doorward.Connection, u doorward.User) doorward.Identity {
	f.Helper()
	i := doorward.Identity{ID: f.id(doorward.PrefixIdentity), ConnectionID: c.ID, TenantID: c.TenantID, Issuer: "https://idp.example", UserID: u.ID, CreatedAt: f.clock.read(), LastUsedAt: f.clock.read()}
	i.Subject = i.ID
	f.write(func(tx *store.Tx) { f.wantChange(tx.InsertIdentity(f.Context(), i)) })
	return i
}

// passkey adds a passkey that can be used.
func (f *fixture) passkey(u doorward.User) store.Factor {
	f.Helper()
	x := f.factor(doorward.Account{ID: u.ID}, doorward.Passkey)
	f.write(func(tx *store.Tx) { noError(f, tx.UpdateFactorCounts(f.Context(), u.ID)) })
	return x
}

// ssoPolicies: a demand returns by itself at its end, in what is read and in what is swept.
func ssoPolicies(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	off := doorward.SSOPolicy{TenantID: acme.ID, Mode: doorward.SSOOff}
	read := func() doorward.SSOPolicy {
		f.Helper()
		return f.value(f.Read().SSOPolicy(ctx, acme.ID, f.clock.read())).(doorward.SSOPolicy)
	}
	equal(f, read(), off)
	equal(f, f.value(f.Read().SSOIsUsed(ctx)), false)
	ends := f.clock.read().Add(time.Minute)
	set := doorward.SSOPolicy{
		TenantID: acme.ID, Mode: doorward.SSORequired, Revision: 7, ChangedAt: f.clock.read(), ConfirmBy: &ends,
		BeforeMode: doorward.SSOOptional, BeforeGuestsRefused: true,
	}
	f.write(func(tx *store.Tx) { noError(f, tx.SetSSOPolicy(ctx, set)) })
	equal(f, read(), set)
	equal(f, f.value(f.Read().SSOPolicy(ctx, zeta.ID, f.clock.read())), doorward.SSOPolicy{TenantID: zeta.ID, Mode: doorward.SSOOff})
	equal(f, f.value(f.Read().OverdueSSOPolicies(ctx, f.clock.read(), 10)), []doorward.SSOPolicy(nil))
	f.wantNone(f.Read().OverdueSSOPolicy(ctx, acme.ID, f.clock.read()))
	equal(f, f.value(f.Read().SSOIsUsed(ctx)), true)

	f.clock.move(time.Minute)
	equal(f, read(), doorward.SSOPolicy{TenantID: acme.ID, Mode: doorward.SSOOptional, GuestsRefused: true, Revision: 8, ChangedAt: ends})
	equal(f, f.value(f.Read().OverdueSSOPolicies(ctx, f.clock.read(), 10)), []doorward.SSOPolicy{set})
	equal(f, f.value(f.Read().OverdueSSOPolicy(ctx, acme.ID, f.clock.read())), set)
	f.write(func(tx *store.Tx) { noError(f, tx.SetSSOPolicy(ctx, set.At(tx.Now))) })
	equal(f, read(), set.At(f.clock.read()))
	f.wantNone(f.Read().OverdueSSOPolicy(ctx, acme.ID, f.clock.read()))
}

// ssoMembers: whom a demand covers, and who has a way back.
func ssoMembers(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	con, other, draft := f.active(acme, "Okta"), f.active(acme, "Entra"), f.connection(acme, "Draft")
	f.verified(acme, "acme.example", con.ID)
	lapsed := f.verified(acme, "old.example", draft.ID)
	f.domain(acme.ID, "pending.example")
	f.verified(zeta, "zeta.example", f.active(zeta, "Ping").ID)
	f.write(func(tx *store.Tx) { f.wantChange(tx.ReleaseDomain(ctx, lapsed.ID)) })

	owner := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	sub, old := f.member(acme, "bob@sub.acme.example", doorward.RoleUser), f.member(acme, "cat@old.example", doorward.RoleUser)
	waits, guest := f.member(acme, "dan@pending.example", doorward.RoleUser), f.member(acme, "e@zeta.example", doorward.RoleUser)
	joined := f.member(acme, "fay@elsewhere.example", doorward.RoleOwner)
	f.identity(draft, guest)
	f.identity(con, joined)
	f.clock.move(time.Second)
	used := f.identity(other, joined)
	f.passkey(joined)
	f.passkey(sub)

	want := []doorward.SSOMember{
		{UserID: owner.ID, Email: owner.Email, Role: doorward.RoleOwner, Domain: doorward.DomainVerified, HomeID: con.ID},
		{UserID: sub.ID, Email: sub.Email, Role: doorward.RoleUser},
		{UserID: old.ID, Email: old.Email, Role: doorward.RoleUser, Domain: doorward.DomainLapsed},
		{UserID: waits.ID, Email: waits.Email, Role: doorward.RoleUser},
		{UserID: guest.ID, Email: guest.Email, Role: doorward.RoleUser},
		{UserID: joined.ID, Email: joined.Email, Role: doorward.RoleOwner, IdentityID: other.ID, IdentityUsedAt: used.LastUsedAt, HasWayBack: true},
	}
	equal(f, f.value(f.Read().SSOMembers(ctx, acme.ID, "", 10)), want)
	equal(f, f.value(f.Read().SSOMembers(ctx, acme.ID, old.ID, 2)), want[3:5])
	equal(f, f.value(f.Read().SSOMember(ctx, acme.ID, joined.ID)), want[5])
	f.wantNone(f.Read().SSOMember(ctx, zeta.ID, joined.ID))
	equal(f, f.value(f.Read().SSOBasis(ctx, acme.ID)), doorward.SSOBasis{Connections: 2, Proved: 1, Held: 1, WaysBack: 1})
	equal(f, f.value(f.Read().SSODefaultHome(ctx, acme.ID)), con.ID)
	f.wantNone(f.Read().SSODefaultHome(ctx, "tnt_none"))
	equal(f, f.value(f.Read().ConnectionIsActive(ctx, con.ID, acme.ID)), true)
	equal(f, f.value(f.Read().ConnectionIsActive(ctx, con.ID, zeta.ID)), false)
	equal(f, f.value(f.Read().ConnectionIsActive(ctx, draft.ID, acme.ID)), false)

	f.wantNone(f.Read().SSOHome(ctx, "acme.example", f.clock.read())) // the tenant has never set a mode
	policy := doorward.SSOPolicy{TenantID: acme.ID, Mode: doorward.SSOOptional, Revision: 1, ChangedAt: f.clock.read()}
	f.write(func(tx *store.Tx) { noError(f, tx.SetSSOPolicy(ctx, policy)) })
	equal(f, f.value(f.Read().SSOHome(ctx, "acme.example", f.clock.read())), doorward.SSOHome{ConnectionID: con.ID, ConnectionName: con.Name, Policy: policy})
	f.wantNone(f.Read().SSOHome(ctx, "old.example", f.clock.read()))
	f.wantNone(f.Read().SSOHome(ctx, "", f.clock.read()))
}

// formerDomains: a demand goes on covering a member whose address has left a domain of the tenant, as long as the
// tenant has that domain, unless the change is undone.
func formerDomains(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	con := f.active(acme, "Okta")
	held, second := f.verified(acme, "acme.example", con.ID), f.verified(acme, "b.example", con.ID)
	f.domain(zeta.ID, "acme.example")
	ann := f.member(acme, "ann@acme.example", doorward.RoleUser)
	f.join(zeta, doorward.Account{ID: ann.ID, Email: ann.Email}, doorward.RoleUser)
	life := store.SessionLifetime{SessionLimits: doorward.SessionLimits{Idle: time.Hour, Absolute: day}}
	want := func(tenant doorward.Tenant, domain doorward.DomainStatus, ends bool) {
		f.Helper()
		m := f.value(f.Read().SSOMember(ctx, tenant.ID, ann.ID)).(doorward.SSOMember)
		equal(f, m.Domain, domain)
		equal(f, m.IsCovered(), ends)
		own := f.session(doorward.User{ID: ann.ID, TenantID: tenant.ID, Role: doorward.RoleUser, CreatedAt: ann.CreatedAt})
		f.write(func(tx *store.Tx) { f.value(tx.DeleteShutOutSessions(ctx, life, tenant.ID, false)) })
		equal(f, len(f.live(own)) == 0, ends) // the statement and the function say the same
	}
	move := func(to string) {
		f.Helper()
		f.clock.move(time.Second)
		f.write(func(tx *store.Tx) { noError(f, tx.SetEmail(ctx, ann.ID, to)) })
	}
	want(acme, doorward.DomainVerified, true)
	want(zeta, "", false)
	move("ann@private.example")
	want(acme, doorward.DomainVerified, true)
	want(zeta, "", false) // whose domain was pending
	equal(f, f.value(f.Read().FormerHolder(ctx, acme.ID, "ann@acme.example")), ann.ID)
	f.wantNone(f.Read().FormerHolder(ctx, zeta.ID, "ann@acme.example"))
	f.wantNone(f.Read().FormerHolder(ctx, acme.ID, ""))
	equal(f, f.value(f.Read().AddressLeftAt(ctx, acme.ID, ann.ID, "ann@acme.example")), f.clock.read())
	f.wantNone(f.Read().AddressLeftAt(ctx, acme.ID, ann.ID, "ann@private.example"))
	f.wantNone(f.Read().AddressLeftAt(ctx, zeta.ID, ann.ID, "ann@acme.example"))
	move("ann@b.example")
	asked := f.clock.read()
	move("ann@other.example")
	want(acme, doorward.DomainVerified, true)
	equal(f, f.value(f.Read().FormerDomains(ctx, acme.ID, ann.ID)), []string{"acme.example", "b.example"})
	f.write(func(tx *store.Tx) { f.wantChange(tx.ReleaseDomain(ctx, second.ID)) })
	want(acme, doorward.DomainLapsed, true) // the one that was left last
	f.write(func(tx *store.Tx) { noError(f, tx.DeleteDomain(ctx, held.ID)) })
	want(acme, doorward.DomainLapsed, true)
	f.write(func(tx *store.Tx) { noError(f, tx.ReturnToDomains(ctx, ann.ID, asked)) })
	want(acme, "", false)
	f.verified(acme, "acme.example", con.ID) // proved again
	want(acme, doorward.DomainVerified, true)
	f.write(func(tx *store.Tx) { noError(f, tx.DeleteDomain(ctx, second.ID)) })
	f.write(func(tx *store.Tx) { f.wantChange(tx.DeleteMembership(ctx, acme.ID, ann.ID)) })
	f.join(acme, doorward.Account{ID: ann.ID, Email: "ann@other.example"}, doorward.RoleUser)
	want(acme, "", false)
}

// waysBack: a way back is a password and a factor, or a passkey, that can be used and is the person's own.
func waysBack(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	count := func() int { return f.value(f.Read().SSOBasis(ctx, acme.ID)).(doorward.SSOBasis).WaysBack }
	owner := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	totp := f.factor(doorward.Account{ID: owner.ID}, doorward.TOTP)
	equal(f, count(), 0) // being enrolled
	f.write(func(tx *store.Tx) { f.wantChange(tx.ConfirmFactor(ctx, owner.ID, totp.ID, 1)) })
	equal(f, count(), 1)
	f.write(func(tx *store.Tx) { f.wantChange(tx.DisableFactor(ctx, totp.ID)) })
	equal(f, count(), 0)
	f.passkey(owner)
	equal(f, count(), 1)
	for _, not := range []string{
		"UPDATE users SET managed_by = '" + acme.ID + "'", "UPDATE users SET managed_by = '', managed_until_sign_on = '" + acme.ID + "'",
		"UPDATE users SET managed_until_sign_on = ''; UPDATE memberships SET role = 'ADMIN'", "UPDATE memberships SET role = 'OWNER', status = 'suspended'",
	} {
		f.write(func(tx *store.Tx) {
			for statement := range strings.SplitSeq(not, ";") {
				_, err := rows.Exec(ctx, tx.Conn, statement)
				noError(f, err)
			}
		})
		equal(f, count(), 0)
	}
}

// shutOutSessions: which sessions end by a mode of off, and by a demand.
func shutOutSessions(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	con := f.active(acme, "Okta")
	f.verified(acme, "acme.example", con.ID)
	covered, joined, guest := f.member(acme, "ann@acme.example", doorward.RoleUser), f.member(acme, "b@b.example", doorward.RoleUser), f.member(acme, "c@c.example", doorward.RoleUser)
	f.identity(con, joined)
	elsewhere := f.session(f.join(zeta, doorward.Account{ID: covered.ID, Email: covered.Email}, doorward.RoleUser))
	life := store.SessionLifetime{SessionLimits: doorward.SessionLimits{Idle: time.Hour, Absolute: day}}
	byCon := doorward.Session{
		ID: f.id("ses_"), UserID: covered.ID, TenantID: acme.ID, CreatedAt: f.clock.read(), LastSeenAt: f.clock.read(), Role: covered.Role, JoinedAt: covered.CreatedAt,
		Assurance: doorward.Assurance{Issuer: doorward.Issuer(con.ID), AAL: 1, AMR: []string{"fed"}, ProvedAt: f.clock.read()},
	}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertSession(ctx, byCon, hashOf(byCon))) })
	all := []doorward.Session{f.session(covered), f.session(joined), f.session(guest), byCon, elsewhere}
	changed := f.changesOf(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteShutOutSessions(ctx, life, acme.ID, false)), int64(2))
	})
	equal(f, changed, []store.Change{{Kind: store.ChangeTenant, Subject: acme.ID}})
	equal(f, f.live(all...), []string{all[2].ID, byCon.ID, elsewhere.ID})
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteShutOutSessions(ctx, life, acme.ID, true)), int64(1)) })
	equal(f, f.live(all...), []string{byCon.ID, elsewhere.ID})
	changed = f.changesOf(func(tx *store.Tx) { equal(f, f.value(tx.DeleteSignOnSessions(ctx, life, acme.ID)), int64(1)) })
	equal(f, changed, []store.Change{{Kind: store.ChangeTenant, Subject: acme.ID}})
	equal(f, f.live(all...), []string{elsewhere.ID})
}

// effectsOnSignOn: what the statements note for the judgement of an action.
func effectsOnSignOn(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	con, idle := f.active(acme, "Okta"), f.active(acme, "Idle")
	domain, pending := f.verified(acme, "acme.example", con.ID), f.domain(acme.ID, "b.example")
	owner := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	f.join(zeta, doorward.Account{ID: owner.ID, Email: owner.Email}, doorward.RoleOwner)
	key := f.passkey(owner)
	want := func(want doorward.Effects, fn func(tx *store.Tx)) {
		f.Helper()
		f.write(func(tx *store.Tx) {
			noError(f, tx.LockTenantOfSignOn(ctx, acme.ID))
			fn(tx)
			tx.Effects.Roles = nil
			equal(f, tx.Effects, want)
		})
	}
	want(doorward.Effects{}, func(tx *store.Tx) {
		f.wantChange(tx.SetConnectionStatus(ctx, idle.ID, doorward.ConnectionDisabled))
		f.wantNoChange(tx.SetConnectionStatus(ctx, con.ID, doorward.ConnectionActive))
		f.wantChange(tx.DeleteConnection(ctx, idle.ID))
		noError(f, tx.SetDomainConnection(ctx, pending.ID, con.ID))
		noError(f, tx.DeleteDomain(ctx, pending.ID))
	})
	want(doorward.Effects{WaysBack: []string{acme.ID}}, func(tx *store.Tx) { f.wantChange(tx.DeleteFactor(ctx, owner.ID, key.ID)) })
	want(doorward.Effects{WaysBack: []string{acme.ID}}, func(tx *store.Tx) { noError(f, tx.DeleteFactors(ctx, owner.ID)) })
	want(doorward.Effects{WaysBack: []string{acme.ID}}, func(tx *store.Tx) {
		f.wantChange(tx.SetUserStatus(ctx, acme.ID, owner.ID, doorward.UserSuspended))
		f.wantChange(tx.SetUserRole(ctx, acme.ID, owner.ID, doorward.RoleUser))
	})
	want(doorward.Effects{WaysBack: []string{zeta.ID}}, func(tx *store.Tx) { f.wantChange(tx.DeleteMembership(ctx, zeta.ID, owner.ID)) })
	want(doorward.Effects{SignOn: []string{acme.ID}}, func(tx *store.Tx) { noError(f, tx.SetDomainConnection(ctx, domain.ID, con.ID)) })
	want(doorward.Effects{HomesLost: []string{acme.ID}}, func(tx *store.Tx) { f.wantChange(tx.SetConnectionStatus(ctx, con.ID, doorward.ConnectionDisabled)) })
	want(doorward.Effects{SignOn: []string{acme.ID}}, func(tx *store.Tx) { noError(f, tx.DeleteDomain(ctx, domain.ID)) })
}
