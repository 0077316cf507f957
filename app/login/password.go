package login

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/internal/secret"
)

// WithPassword signs in by an address and its password, to the tenant with the id. If tenantID
// is empty, it signs in to the tenant used last, or else to that of the oldest membership that
// can be used. Errors: invalid_credentials, too_many_attempts; only after a correct password
// membership_suspended, tenant_frozen, tenant_closing.
func (l *Login) WithPassword(ctx context.Context, by doorward.Caller, email, password, tenantID string) (Outcome, error) {
	proved, err := l.verifier.Check(ctx, by, email, password)
	if err != nil {
		return nil, err
	}
	choice, err := l.chooseTenant(ctx, proved, tenantID)
	if err != nil {
		return nil, err
	}
	outcome, err := l.enter(ctx, entry{
		by: by, proof: proved, tenantID: choice.tenantID, memberships: choice.memberships, changed: doorward.Fail(doorward.CodeInvalidCredentials, ""),
	})
	return outcome, proved.FailIfRefused(ctx, err)
}

// tenantChoice is the tenant to sign in to, and all memberships of the account.
type tenantChoice struct {
	tenantID    string
	memberships []doorward.User
}

// chooseTenant returns the tenant to sign in to. When it returns an error, it has ended the
// attempt.
func (l *Login) chooseTenant(ctx context.Context, proved proof.Proof, tenantID string) (tenantChoice, error) {
	memberships, err := l.db.Read().Memberships(ctx, proved.Account.ID)
	if err != nil {
		return tenantChoice{}, proved.FailIfRefused(ctx, err)
	}
	user, reason, err := l.choose(ctx, proved, memberships, tenantID)
	if err != nil {
		return tenantChoice{}, proved.FailIfRefused(ctx, err)
	}
	if reason == nil {
		return tenantChoice{user.TenantID, memberships}, nil
	}
	return tenantChoice{}, proved.Refuse(ctx, doorward.SessionRefuse, doorward.Object{Type: "user", ID: proved.Account.ID, TenantID: user.TenantID}, reason)
}

// hasOther reports whether a session can be opened in a tenant other than this one.
func hasOther(memberships []doorward.User, tenantID string) bool {
	return slices.ContainsFunc(memberships, func(m doorward.User) bool {
		return m.TenantID != tenantID && session.CheckUsable(m) == nil
	})
}

// choose returns the membership to sign in to, or the reason why there is none. It passes over tenants that
// demand another sign-on of the person, and takes an OWNER's way back only where nothing else is left. The
// error is unavailable.
func (l *Login) choose(ctx context.Context, proved proof.Proof, memberships []doorward.User, tenantID string) (doorward.User, *doorward.Error, error) {
	best := option{reason: doorward.Fail(doorward.CodeInvalidCredentials, "")} // as for a wrong password
	isOnly := len(memberships) == 1 || tenantID != ""
	for _, m := range preferred(memberships, tenantID) {
		o, err := l.weigh(ctx, proved, m, isOnly)
		if err != nil {
			return m, nil, err
		}
		if o.rank > best.rank {
			best = o
		}
		if best.rank == usable {
			break
		}
	}
	return best.user, best.reason, nil
}

// option is a membership that somebody could sign in to, or the reason why they can't.
type option struct {
	user   doorward.User
	reason *doorward.Error // nil: they can
	rank   int
}

// The ranks of options; 0 is none.
const (
	unusable  = iota + 1 // suspended, or the tenant is frozen
	elsewhere            // by another sign-on
	byWayBack            // by an OWNER's way back
	usable
)

// weigh returns the option of a membership. Where there is no other, Next says what its tenant demands. The
// error is unavailable.
func (l *Login) weigh(ctx context.Context, proved proof.Proof, m doorward.User, isOnly bool) (option, error) {
	o := option{user: m, rank: usable}
	switch {
	case errors.As(session.CheckUsable(m), &o.reason):
		o.rank = unusable
		return o, nil
	case isOnly:
		return o, nil
	}
	if err := access.RequireOwnSession(ctx, l.db.Read(), m); err != nil {
		return o.refusedBy(err)
	}
	admission, err := judgeSignOn(ctx, l.db.Read(), l.db.Now(), m, doorward.Assurance{Issuer: proved.Issuer, AAL: 1})
	if err != nil {
		return o.refusedBy(err)
	}
	if admission == decide.AskFactor {
		o.rank = byWayBack
	}
	return o, nil
}

// refusedBy returns the option as one that takes another sign-on, unless the error is a fault.
func (o option) refusedBy(err error) (option, error) {
	if !errors.As(err, &o.reason) || o.reason.Kind() == doorward.KindUnavailable {
		return o, err
	}
	o.rank = elsewhere
	return o, nil
}

// preferred returns the memberships in the order in which to try them: only that in the named
// tenant, or, if none is named, the one used last and then all, the oldest first.
func preferred(memberships []doorward.User, tenantID string) []doorward.User {
	var last *doorward.User
	var all []doorward.User
	for _, m := range memberships {
		if tenantID != "" && m.TenantID != tenantID {
			continue
		}
		all = append(all, m)
		if m.LastLoginAt != nil && (last == nil || m.LastLoginAt.After(*last.LastLoginAt)) {
			last = &m
		}
	}
	if last != nil {
		all = append([]doorward.User{*last}, all...)
	}
	return all
}

// devicesPerUser bounds the rows of one account.
const devicesPerUser = 20

// browser is the browser of a login, once the login is recorded.
type browser struct {
	device   []byte // the hash by which it is known; nil if it isn't, as beyond devicesPerUser
	isStored bool   // under a new hash, that of the cookie to be set
	isNew    bool   // see notifyNewBrowser
}

// rememberBrowser records the use of a known browser, or else stores the browser under hash
// and notifies the owner of the account.
func rememberBrowser(ctx context.Context, tx *access.Tx, by doorward.Caller, account doorward.Account, hash secret.Hash) (b browser, err error) {
	known, err := proof.KnownDevices(ctx, tx.Reader, by, account.Email, tx.Now)
	if err != nil {
		return b, err
	}
	if len(known) > 0 {
		b.device = known[0].Hash
		return b, tx.UseDevice(ctx, b.device)
	}
	if b.isNew, err = notifyNewBrowser(ctx, tx, account); err != nil {
		return b, err
	}
	if b.isStored, err = tx.InsertDevice(ctx, hash[:], account.ID, devicesPerUser, tx.Now.Add(-doorward.DeviceLife)); b.isStored {
		b.device = hash[:]
	}
	return b, err
}
