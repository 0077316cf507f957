package signoff

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/oidcrp/endtoken"
	"github.com/doorward/doorward/store"
)

// Logout ends sessions that the connection has vouched for, on every node before it returns: with a session of the
// provider (sid) those that were opened by it, else all of the person's. That nobody is found is no error. Errors: not_found for a
// connection that isn't there; sign_on_refused with the check for a token that is refused, or a connection that isn't
// active; too_many_attempts, provider_unavailable, unavailable.
func (s *SignOff) Logout(ctx context.Context, by doorward.Caller, conID, token string) (doorward.Revocation, error) {
	r, err := s.begin(ctx, by, Logout, conID)
	if err != nil {
		return doorward.Revocation{}, err
	}
	err = r.verify(ctx, func(ctx context.Context, d oidcrp.Discovery) (endtoken.Token, error) {
		return endtoken.Logout(ctx, s.providers.Provider(), d, r.connection.InForce.ClientID, token, s.db.Now())
	})
	if err != nil {
		return doorward.Revocation{}, err
	}
	r.subject = r.token.Subject
	named := "sub\x00" + r.token.Subject + "\x00sid\x00" + r.token.Session
	revocation, err := r.end(ctx, named, func(tx *access.Tx) (bool, error) { return true, r.logOut(ctx, tx) })
	if err == nil {
		r.done(ctx)
	}
	return revocation, err
}

func (r *request) logOut(ctx context.Context, tx *access.Tx) error {
	identity, err := tx.Identity(ctx, r.connection.ID, r.connection.InForce.Issuer, r.token.Subject)
	if err != nil && !errors.Is(err, store.ErrNone) {
		return err
	}
	r.userID = identity.UserID
	var ended map[string]int64
	if r.token.Session == "" {
		ended, err = r.logOutSubject(ctx, tx)
	} else {
		ended, err = r.logOutSession(ctx, tx)
	}
	if err != nil {
		return err
	}
	return r.recordEnds(ctx, tx, ended)
}

// logOutSubject ends all that the connection has vouched for of the person.
func (r *request) logOutSubject(ctx context.Context, tx *access.Tx) (map[string]int64, error) {
	all := []string{doorward.EndedSubject(r.connection.InForce.Issuer, r.token.Subject)}
	if r.userID != "" {
		all = append(all, doorward.EndedUser(r.userID))
	}
	for _, who := range all {
		if err := tx.EndSignIns(ctx, r.connection.ID, who); err != nil {
			return nil, err
		}
	}
	if r.userID == "" {
		return nil, nil
	}
	n, err := r.endVouched(ctx, tx, r.userID)
	return map[string]int64{r.userID: n}, err
}

// logOutSession ends the sessions of the provider's session. Of a person who is named, too, it also ends those for
// which the provider named no session: they may be of this one.
func (r *request) logOutSession(ctx context.Context, tx *access.Tx) (map[string]int64, error) {
	session := provider.SessionOf(r.token.Session)
	if err := tx.EndSignIns(ctx, r.connection.ID, doorward.EndedSession(session)); err != nil {
		return nil, err
	}
	ended, err := tx.EndProviderSession(ctx, r.s.life, r.connection, session)
	if err != nil || r.userID == "" {
		return ended, err
	}
	unnamed, err := tx.EndUnnamedSessions(ctx, r.s.life, r.connection, r.userID)
	for id, n := range unnamed {
		ended[id] += n
	}
	return ended, err
}

// recordEnds makes an event for each person of whom sessions have ended.
func (r *request) recordEnds(ctx context.Context, tx *access.Tx, ended map[string]int64) error {
	maps.DeleteFunc(ended, func(_ string, n int64) bool { return n == 0 })
	if len(ended) == 0 {
		tx.SkipEvent()
		return nil
	}
	for i, id := range slices.Sorted(maps.Keys(ended)) {
		on, counts := doorward.Object{Type: "user", ID: id, TenantID: r.connection.TenantID}, doorward.Ended{Sessions: ended[id]}
		if i == 0 {
			r.userID = id
			r.recordEnd(tx, on, counts)
			continue
		}
		changes := append([]doorward.Change{{Field: doorward.FieldConnection, To: r.connection.ID}}, access.EndedChanges(counts)...)
		if err := tx.RecordAlso(ctx, doorward.SessionEnd, on, changes...); err != nil {
			return err
		}
	}
	return nil
}
