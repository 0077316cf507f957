package store

import (
	"context"
	"strings"
	"time"
)

// Challenge is a proof that was begun.
type Challenge struct {
	Purpose    string
	UserID     string // empty: anybody's, with a passkey
	TenantID   string // to sign in to; may be empty
	SessionID  string // of who began it; empty without a session
	Generation int64  // of the account's credentials
	Methods    []string
	State      []byte // of the verifier of passkeys
	EndsAt     time.Time
}

func challengeColumns(c *Challenge) []any {
	return []any{
		&c.Purpose, nullableText{&c.UserID}, &c.TenantID, &c.SessionID, &c.Generation, (*words)(&c.Methods), &c.State, (*storedTime)(&c.EndsAt),
	}
}

const sqlInsertChallenge = `INSERT INTO challenges (hash, purpose, user_id, tenant_id, session_id, generation, methods, state, tries, ends_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9)`

// InsertChallenge adds a challenge under the hash of its token.
func (tx *Tx) InsertChallenge(ctx context.Context, hash []byte, c Challenge) error {
	return tx.run(ctx, sqlInsertChallenge, hash, c.Purpose, nullable(c.UserID), c.TenantID, c.SessionID, c.Generation, strings.Join(c.Methods, " "), c.State, micros(c.EndsAt))
}

const sqlChallenge = `SELECT purpose, user_id, tenant_id, session_id, generation, methods, state, ends_at FROM challenges
WHERE hash = $1 AND purpose = $2 AND tries < $3 AND ends_at > $4`

// Challenge returns what the hash stands for if it is good for the purpose, and has had
// fewer than maxTries tries; else ErrNone.
func (r Reader) Challenge(ctx context.Context, hash []byte, purpose string, maxTries int, now time.Time) (Challenge, error) {
	return one(ctx, r, challengeColumns, sqlChallenge, hash, purpose, maxTries, micros(now))
}

const sqlTryChallenge = `UPDATE challenges SET tries = tries + 1 WHERE hash = $1 AND tries < $2 AND ends_at > $3`

// TryChallenge counts a try before it is judged, and reports whether there was one left.
func (tx *Tx) TryChallenge(ctx context.Context, hash []byte, maxTries int) (bool, error) {
	return tx.affected(ctx, sqlTryChallenge, hash, maxTries, micros(tx.Now))
}

const sqlTakeChallenge = `DELETE FROM challenges WHERE hash = $1`

// TakeChallenge uses the challenge up, and reports whether it was there.
func (tx *Tx) TakeChallenge(ctx context.Context, hash []byte) (bool, error) {
	return tx.affected(ctx, sqlTakeChallenge, hash)
}

const sqlEndChallenges = `DELETE FROM challenges WHERE user_id = $1`

// EndChallenges ends all challenges of the account.
func (tx *Tx) EndChallenges(ctx context.Context, userID string) error {
	return tx.run(ctx, sqlEndChallenges, userID)
}

const sqlDeleteEndedChallenges = `DELETE FROM challenges WHERE ends_at <= $1`

// DeleteEndedChallenges deletes those whose time has passed.
func (tx *Tx) DeleteEndedChallenges(ctx context.Context) error {
	return tx.run(ctx, sqlDeleteEndedChallenges, micros(tx.Now))
}

const sqlProveSession = `UPDATE sessions SET aal = $2, amr = $3, proved_at = $4, factor_at = $5 WHERE id = $1`

// ProveSession records new proofs of a session's user, and reports whether the session is
// there.
func (tx *Tx) ProveSession(ctx context.Context, s StoredSession) (bool, error) {
	tx.announce(ChangeSession, SessionSubject(s.Hash))
	a := s.Session.Assurance
	return tx.affected(ctx, sqlProveSession, s.Session.ID, a.AAL, strings.Join(a.AMR, " "), micros(a.ProvedAt), microsOrZero(a.FactorAt))
}

const (
	sqlRememberSecond = `UPDATE devices SET second_until = $2 WHERE hash = $1`
	sqlForgetSeconds  = `UPDATE devices SET second_until = 0 WHERE user_id = $1`
)

// RememberSecond makes a known browser stand in for the second factor until an instant.
func (tx *Tx) RememberSecond(ctx context.Context, device []byte, until time.Time) error {
	return tx.run(ctx, sqlRememberSecond, device, micros(until))
}

// ForgetSeconds ends that for all browsers of the account.
func (tx *Tx) ForgetSeconds(ctx context.Context, userID string) error {
	return tx.run(ctx, sqlForgetSeconds, userID)
}
