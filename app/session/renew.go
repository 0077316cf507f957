package session

import (
	"context"
	"errors"

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
// stay. assure returns the assurance after the proof. Errors: unauthenticated if the session has ended.
func Raise(ctx context.Context, tx *access.Tx, o *Opened, id string, assure func(doorward.Assurance) doorward.Assurance) error {
	old, err := tx.Session(ctx, id)
	if errors.Is(err, store.ErrNone) {
		return Ended()
	}
	if err != nil {
		return err
	}
	o.Session, o.User = old.Session, old.User
	o.Session.Assurance, o.Session.LastSeenAt = assure(old.Session.Assurance), tx.Now
	hash := o.Token.Hash()
	existed, err := tx.RenewSession(ctx, o.Session, hash[:])
	if err == nil && !existed {
		err = Ended()
	}
	return err
}
