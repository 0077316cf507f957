package session

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Renew gives the caller's session a new token after another proof of identity, as OWASP's
// Session Management Cheat Sheet asks. The old token ends on all nodes; the limits stay.
// assure returns the assurance after the proof; prepare is as with Open. Errors: unauthenticated
// if the session has ended or the password has changed.
func (s *Sessions) Renew(ctx context.Context, by doorward.Caller, account doorward.Account, assure func(doorward.Assurance, *access.Tx) doorward.Assurance, prepare func(*access.Tx) error) (Opened, error) {
	mark := s.registry.Mark()
	opened := Opened{Token: secret.New()}
	hash := opened.Token.Hash()
	on := doorward.Object{Type: "session", ID: by.SessionID, TenantID: by.TenantID}
	revocation, err := s.writer.Do(ctx, by, doorward.SessionStepUp, on, func(tx *access.Tx) error {
		if err := lockUnchanged(ctx, tx, account, endedError()); err != nil {
			return err
		}
		if err := prepare(tx); err != nil {
			return err
		}
		old, err := tx.Session(ctx, by.SessionID)
		if errors.Is(err, store.ErrNone) {
			return endedError()
		}
		if err != nil {
			return err
		}
		tx.RecordUserAgent()
		opened.Session, opened.User = old.Session, old.User
		opened.Session.Assurance, opened.Session.LastSeenAt = assure(old.Session.Assurance, tx), tx.Now
		existed, err := tx.RenewSession(ctx, opened.Session, hash[:])
		if err == nil && !existed {
			err = endedError()
		}
		return err
	})
	opened.Revocation = revocation
	return opened, s.keep(opened, hash, mark, err)
}
