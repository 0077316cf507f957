package session

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Renewal returns a draft for Raise, with the new token of a session.
func (s *Sessions) Renewal() Opened { return Opened{Token: secret.New(), mark: s.registry.Mark()} }

// Raise gives the session with the id the token of the draft after another proof of identity, as OWASP's
// Session Management Cheat Sheet asks ("Renew the Session ID After Any Privilege Level Change"):
// somebody else may know the old token, which proved less. The old one ends on all nodes; the limits
// stay. assure returns the assurance of the old session after the proof. Errors: unauthenticated if the
// session has ended.
func Raise(ctx context.Context, tx *access.Tx, o *Opened, id string, assure func(store.Credential) doorward.Assurance) error {
	old, err := tx.Session(ctx, id)
	if errors.Is(err, store.ErrNone) {
		return Ended()
	}
	if err != nil {
		return err
	}
	o.Session, o.User = old.Session, old.User
	o.Session.Assurance, o.Session.LastSeenAt = assure(old), tx.Now
	hash := o.Token.Hash()
	existed, err := tx.RenewSession(ctx, o.Session, hash[:])
	if err == nil && !existed {
		err = Ended()
	}
	return err
}

// ProvedByFactor returns the assurance of a session after a proof by a factor of its account. Where a
// connection vouches for the session, that is a new proof of it only if its tenant manages the account.
func ProvedByFactor(old store.Credential, now time.Time, methods ...string) doorward.Assurance {
	if p := doorward.PrincipalOf(old.User, old.Session); p.Issuer != doorward.OwnIssuer && !p.IsManaged {
		return old.Session.WithFactor(now, methods...)
	}
	return old.Session.WithProof(now, methods...)
}

// ProvedByPassword is ProvedByFactor for the password of the account.
func ProvedByPassword(old store.Credential, now time.Time) doorward.Assurance {
	a := old.Session.Assurance
	if a.Issuer != doorward.OwnIssuer {
		a.PasswordAt = now
		return a
	}
	a.ProvedAt = now
	return a
}
