package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/internal/rows"
)

// exec runs statements that other features will have.
func (f *fixture) exec(query string, args ...any) {
	f.Helper()
	f.write(func(tx *store.Tx) { noError(f, value2(rows.Exec(f.Context(), tx.Conn, query, args...))) })
}

func value2[T any](_ T, err error) error { return err }

// connection adds a connection of the tenant.
func (f *fixture) connectionIn(t doorward.Tenant, status doorward.ConnectionStatus) string {
	f.Helper()
	id := f.id("con_")
	f.exec(`INSERT INTO connections (id, tenant_id, type, name, product, status, created_at, jit, jit_role) VALUES ($1, $2, 'oidc', 'Okta', 'okta', $3, 0, 'off', 'USER')`, id, t.ID, status)
	return id
}

// signOn sets what the tenant demands of sign-on.
func (f *fixture) signOn(t doorward.Tenant, mode doorward.SSOMode, guests string) {
	f.Helper()
	f.exec(`DELETE FROM sso_policies WHERE tenant_id = $1`, t.ID)
	f.exec(`INSERT INTO sso_policies (tenant_id, mode, guests, revision, changed_at) VALUES ($1, $2, $3, 1, 0)`, t.ID, mode, guests)
}

// managedAccounts: the first password ends the management, for good, and the sign-on that is missing then is
// made up once.
func managedAccounts(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	account := doorward.Account{ID: "usr_managed", Email: "ann@acme.example", CreatedAt: f.clock.read(), ManagedBy: acme.ID}
	f.write(func(tx *store.Tx) { f.wantChange(tx.InsertAccount(ctx, account)) })
	ann := f.join(acme, account, doorward.RoleUser)
	equal(f, f.value(f.Read().Account(ctx, account.ID)), account)
	equal(f, f.value(f.Read().User(ctx, acme.ID, ann.ID)), ann)
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.SetPassword(ctx, ann.ID, "another", "hash"))
		f.wantNoChange(tx.EndManagedUntil(ctx, ann.ID, acme.ID))
	})
	equal(f, f.value(f.Read().User(ctx, acme.ID, ann.ID)), ann)
	f.write(func(tx *store.Tx) { f.wantChange(tx.SetPassword(ctx, ann.ID, "", "hash")) })
	ann.HasPassword, ann.ManagedBy, ann.ManagedUntil = true, "", acme.ID
	equal(f, f.value(f.Read().User(ctx, acme.ID, ann.ID)), ann)
	f.write(func(tx *store.Tx) { f.wantChange(tx.SetPassword(ctx, ann.ID, "hash", "another")) })
	equal(f, f.value(f.Read().User(ctx, acme.ID, ann.ID)), ann)
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.EndManagedUntil(ctx, ann.ID, zeta.ID))
		f.wantChange(tx.EndManagedUntil(ctx, ann.ID, acme.ID))
		f.wantNoChange(tx.EndManagedUntil(ctx, ann.ID, acme.ID))
	})
	ann.ManagedUntil = ""
	equal(f, f.value(f.Read().User(ctx, acme.ID, ann.ID)), ann)
}

// signingConnections: only an active connection of a tenant whose mode isn't off signs people in; one that
// knows the person comes first.
func signingConnections(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann := f.member(acme, "ann@acme.example", doorward.RoleUser)
	want := func(tenant doorward.Tenant, id string) {
		f.Helper()
		equal(f, f.value(f.Read().SigningConnection(ctx, tenant.ID, ann.ID)), id)
	}
	f.connectionIn(acme, doorward.ConnectionDraft)
	f.connectionIn(acme, doorward.ConnectionDisabled)
	f.signOn(acme, doorward.SSORequired, "allowed")
	want(acme, "")
	first, second := f.connectionIn(acme, doorward.ConnectionActive), f.connectionIn(acme, doorward.ConnectionActive)
	want(acme, first)
	f.identityIn(acme, second, ann)
	want(acme, second)
	want(zeta, "")
	f.signOn(acme, doorward.SSOOff, "allowed")
	want(acme, "")
	f.exec(`DELETE FROM sso_policies`)
	want(acme, "")
}

// identity adds an identity of the user.
func (f *fixture) identityIn(t doorward.Tenant, connection string, u doorward.User) {
	f.Helper()
	id := f.id("idn_")
	f.exec(`INSERT INTO identities (id, connection_id, tenant_id, issuer, subject, user_id, created_at, last_used_at) VALUES ($1, $2, $3, 'https://idp.example', $1, $4, 0, 0)`, id, connection, t.ID, u.ID)
}

// sessionsByConnection: they keep what the provider said and when the password was proved; their limit is
// their own, and the tenant shows them alone.
func sessionsByConnection(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	account := f.account("ann@acme.example")
	ann, annZeta := f.join(acme, account, doorward.RoleUser), f.join(zeta, account, doorward.RoleUser)
	open := func(u doorward.User, issuer doorward.Issuer) doorward.Session {
		f.Helper()
		f.clock.move(time.Minute)
		s := doorward.Session{
			ID: f.id("ses_"), UserID: u.ID, TenantID: u.TenantID, CreatedAt: f.clock.read(), LastSeenAt: f.clock.read(), Role: u.Role, JoinedAt: u.CreatedAt,
			Assurance: doorward.Assurance{Issuer: issuer, AAL: 1, AMR: []string{doorward.MethodFederated}, ProviderAMR: []string{"pwd", "mfa"}, ProvedAt: f.clock.read()},
		}
		f.write(func(tx *store.Tx) { noError(f, tx.InsertSession(ctx, s, hashOf(s))) })
		return s
	}
	own, elsewhere := f.session(ann), f.session(annZeta)
	first, second, other := open(ann, "con_1"), open(ann, "con_1"), open(ann, "con_2")
	second.PasswordAt, second.ProviderAMR = f.clock.read().Add(time.Second), []string{"otp"}
	f.write(func(tx *store.Tx) { f.wantChange(tx.RenewSession(ctx, second, hashOf(second))) })
	for _, s := range []doorward.Session{first, second} {
		stored, err := f.Read().Session(ctx, s.ID)
		noError(f, err)
		equal(f, stored.Session, s)
	}

	all := []doorward.Session{own, elsewhere, first, second, other}
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteOldestSessions(ctx, ann.ID, "con_1", second.ID, 1)), map[string]int64{acme.ID: 1})
		equal(f, f.value(tx.DeleteOldestSessions(ctx, ann.ID, "", own.ID, 2)), map[string]int64{})
	})
	equal(f, f.live(all...), []string{own.ID, elsewhere.ID, second.ID, other.ID})
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteOtherMemberSessions(ctx, aDay, acme.ID, ann.ID, other.ID)), int64(2))
		equal(f, f.value(tx.DeleteOtherMemberSessions(ctx, aDay, acme.ID, ann.ID, other.ID)), int64(0))
	})
	equal(f, f.live(all...), []string{elsewhere.ID, other.ID})
}
