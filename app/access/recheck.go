package access

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/store"
)

// decideAgain reads the caller's membership or key, and the object, in the transaction and decides
// again. It returns the caller as it is now.
func decideAgain(ctx context.Context, tx *store.Tx, by doorward.Caller, op Operation) (doorward.Caller, error) {
	// The key of an operator, or of a service that acts on no tenant, is read again and decided on
	// before any tenant is locked. For an operator who acts on a tenant, both follow once more below.
	if by.Kind == doorward.Operator || by.Kind == doorward.ByService && op.On.TenantID == "" {
		current, err := rereadCaller(ctx, tx, by)
		if err == nil {
			err = may(&current, tx.Now, op.Action, op.On, nil).Err()
		}
		if err != nil || op.On.TenantID == "" {
			return current, err
		}
	}
	verb, _ := doorward.Lookup(op.Action)
	// Of the other callers' actions, two kinds are decided only once: those on no tenant, and
	// ByProof actions, unless they also need a recent proof of identity.
	if verb.By == doorward.ByProof && verb.Proof == doorward.NoProof && !by.HasNoOwnSession || op.On.TenantID == "" {
		return by, nil
	}
	if err := tx.LockTenant(ctx, op.On.TenantID); err != nil {
		return by, err
	}
	by, err := rereadCaller(ctx, tx, by)
	if err != nil {
		return by, err
	}
	if isOnAccount(verb) {
		if by, err = lockedStrictest(ctx, tx, by); err != nil {
			return by, err
		}
	}
	on := op.On
	if op.ReadObject != nil {
		if on, err = op.ReadObject(tx); err != nil {
			return by, err
		}
	}
	now := func() time.Time { return tx.Now }
	by, d, err := mayByConnection(ctx, tx.Reader, by, tx.Now, op.Action, on, op.judgedAt(now))
	if err == nil {
		err = d.Err()
	}
	return by, err
}

// isOnAccount reports whether the owner of an account does the action to it.
func isOnAccount(verb *doorward.Verb) bool {
	return verb.By == doorward.ByProof && verb.Scope == doorward.OfAccount
}

// asStrictest returns the caller with the demand of the strictest of their active tenants: what belongs
// to the account must not depend on the tenant in which its session happens to be.
func asStrictest(ctx context.Context, read store.Reader, by doorward.Caller) (doorward.Caller, error) {
	if by.Kind != doorward.ByUser || by.SessionID == "" {
		return by, nil
	}
	strictest, err := read.StrictestProofAge(ctx, by.ID)
	by.MaxProofAge = min(by.MaxProofAge, strictest)
	return by, err
}

// lockedStrictest is asStrictest after locking the account, as joining a tenant does.
func lockedStrictest(ctx context.Context, tx *store.Tx, by doorward.Caller) (doorward.Caller, error) {
	if by.Kind == doorward.ByUser && by.SessionID != "" {
		if _, err := tx.LockAccount(ctx, by.ID); err != nil {
			return by, err
		}
	}
	return asStrictest(ctx, tx.Reader, by)
}

// rereadCaller reads the caller's session or key, and its membership, again. Errors:
// unauthenticated if the session or key has ended, not_found if a service's tenant is gone,
// unavailable.
func rereadCaller(ctx context.Context, tx *store.Tx, by doorward.Caller) (doorward.Caller, error) {
	switch by.Kind {
	case doorward.ByUser:
	case doorward.ByKey:
		return rereadKey(ctx, tx, by)
	case doorward.BySetupLink:
		return rereadSetupLink(ctx, tx, by)
	case doorward.ByDirectory:
		return rereadDirectory(ctx, tx, by)
	case doorward.ByService:
		return rereadService(ctx, tx, by)
	case doorward.Operator:
		return rereadOperator(ctx, tx, by)
	default:
		return by, nil
	}
	current, err := tx.Session(ctx, by.SessionID)
	if errors.Is(err, store.ErrNone) {
		return by, doorward.Fail(doorward.CodeUnauthenticated, "The session has since ended.")
	}
	if err != nil {
		return by, err
	}
	by.Principal = doorward.PrincipalOf(current.User, current.Session)
	return by, nil
}

// OwnAccount returns the account of the caller's session. Errors: unauthenticated if it has
// been erased since the request began, unavailable.
func OwnAccount(ctx context.Context, read store.Reader, by doorward.Caller) (doorward.Account, error) {
	account, err := read.Account(ctx, by.ID)
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeUnauthenticated, "The session has since ended.")
	}
	return account, err
}

// NeedProofNow decides on the transaction's action once more, with the session read again, by the
// strictest of the user's active tenants. It refuses if the session has since ended, or if its proof of
// identity is now too old. It is for sensitive actions on no tenant, which are decided only once.
func (tx *Tx) NeedProofNow(ctx context.Context) error {
	by, err := tx.DecideNow(ctx, tx.By, tx.event.Action, tx.event.Target)
	tx.By = by
	return err
}

// DecideNow decides on an action of the caller, whose session it reads again, by the strictest of the user's
// active tenants. It locks the account. It returns the caller as it is now. Errors: those of the decision,
// unauthenticated if the session has ended, unavailable.
func (tx *Tx) DecideNow(ctx context.Context, by doorward.Caller, action doorward.Action, on doorward.Object) (doorward.Caller, error) {
	by, err := rereadCaller(ctx, tx.Tx, by)
	if err == nil {
		by, err = lockedStrictest(ctx, tx.Tx, by)
	}
	if err != nil {
		return by, err
	}
	by, d, err := mayByConnection(ctx, tx.Reader, by, tx.Now, action, on, func() time.Time { return tx.Now })
	if err == nil {
		err = d.Err()
	}
	return by, err
}

// NeedFactorNow returns step_up_required unless the caller's session, read again, includes a second
// factor, proved at any time. Errors: unauthenticated, unavailable.
func (tx *Tx) NeedFactorNow(ctx context.Context) error {
	by, err := rereadCaller(ctx, tx.Tx, tx.By)
	if err == nil && by.AAL < 2 {
		err = decide.NeedFactor(&by.Principal).Err()
	}
	return err
}

func rereadKey(ctx context.Context, tx *store.Tx, by doorward.Caller) (doorward.Caller, error) {
	current, err := tx.APIKeyBySecret(ctx, by.KeyHash, tx.Now)
	if errors.Is(err, store.ErrNone) || err == nil && decide.KeyRefusal(&current.Key, current.SecretEndsAt, tx.Now) != "" {
		return by, doorward.Fail(doorward.CodeUnauthenticated, "The API key has since ended.")
	}
	if err == nil {
		by.Principal = doorward.PrincipalOfKey(current.Key, current.Tenant)
	}
	return by, err
}

func rereadSetupLink(ctx context.Context, tx *store.Tx, by doorward.Caller) (doorward.Caller, error) {
	link, err := tx.SetupLink(ctx, by.ID)
	if err == nil {
		by.Principal, err = SetupLinkPrincipal(ctx, tx.Reader, link, tx.Now)
	}
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeSetupLinkOver, "")
	}
	return by, err
}

// rereadDirectory reads the secret and its connection again: one that was deleted, or a connection that was disabled,
// since the request began writes nothing after the answer to that.
func rereadDirectory(ctx context.Context, tx *store.Tx, by doorward.Caller) (doorward.Caller, error) {
	current, err := tx.SCIMSecretByHash(ctx, by.KeyHash)
	if errors.Is(err, store.ErrNone) || err == nil && (current.Secret.IsOver(tx.Now) || current.Connection.Status == doorward.ConnectionDisabled) {
		return by, doorward.Fail(doorward.CodeUnauthenticated, "The secret has since ended.")
	}
	if err != nil {
		return by, err
	}
	by.Principal = doorward.PrincipalOfDirectory(current.Secret, current.Connection, current.Tenant)
	by.Rules, err = tx.Rules(ctx, by.TenantID)
	return by, err
}

// SetupLinkPrincipal returns the principal of a set-up link, as far as its maker may now. Errors:
// setup_link_over, unavailable.
func SetupLinkPrincipal(ctx context.Context, read store.Reader, link doorward.SetupLink, now time.Time) (p doorward.Principal, err error) {
	maker, err := read.User(ctx, link.TenantID, link.MakerID)
	if err == nil {
		p = doorward.PrincipalOfSetupLink(link, maker)
	}
	if errors.Is(err, store.ErrNone) || err == nil && (!now.Before(link.EndsAt) || decide.IsSetupLinkOver(&p)) {
		err = doorward.Fail(doorward.CodeSetupLinkOver, "")
	}
	return p, err
}

// rereadOperator locks the key, so that a revoked key can't write anything after the answer to the
// revocation. The operator at the terminal has no key.
func rereadOperator(ctx context.Context, tx *store.Tx, by doorward.Caller) (doorward.Caller, error) {
	if by.IsPage {
		return by, holdPage(ctx, tx, by)
	}
	if by.ID == "" {
		return by, nil
	}
	key, err := tx.LockOperatorKey(ctx, by.ID)
	if errors.Is(err, store.ErrNone) || err == nil && key.ExpiresAt != nil && !tx.Now.Before(*key.ExpiresAt) {
		return by, doorward.Fail(doorward.CodeUnauthenticated, "The operator key has since ended.")
	}
	by.Limits = key.May
	return by, err
}

// holdPage locks the row of an operator's page, so that a page that was ended can't write anything after the answer
// to that. Errors: unauthenticated, unavailable.
func holdPage(ctx context.Context, tx *store.Tx, by doorward.Caller) error {
	isOpen, err := tx.HoldChallenge(ctx, by.KeyHash)
	if err == nil && !isOpen {
		err = doorward.Fail(doorward.CodeUnauthenticated, "The operator's page has since ended.")
	}
	return err
}

func rereadService(ctx context.Context, tx *store.Tx, by doorward.Caller) (doorward.Caller, error) {
	key, err := tx.ServiceKey(ctx, by.ID)
	if errors.Is(err, store.ErrNone) || err == nil && key.Disabled {
		return by, doorward.Fail(doorward.CodeUnauthenticated, "The key has since been revoked.")
	}
	if err != nil {
		return by, err
	}
	principal := doorward.PrincipalOfService(key)
	if by.TenantID != "" {
		tenant, err := tx.Tenant(ctx, by.TenantID)
		if errors.Is(err, store.ErrNone) {
			return by, doorward.Fail(doorward.CodeNotFound, "")
		}
		if err != nil {
			return by, err
		}
		principal = principal.InTenant(tenant)
	}
	by.Principal = principal
	return by, nil
}
