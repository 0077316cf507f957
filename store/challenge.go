package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

// Challenge is a pending proof of identity or setup of a factor, or a link or page of an operator.
type Challenge struct {
	Purpose    string
	UserID     string          // empty: the passkey will show whose it is, or an operator
	TenantID   string          // to sign in to; may be empty
	SessionID  string          // in which it began; empty without a session
	Generation int64           // of the account's credentials
	Issuer     doorward.Issuer // who vouches for what was proved before
	Methods    []string
	State      []byte // what the purpose is about, such as the id of an invitation; may be nil
	EndsAt     time.Time
}

func challengeFields(c *Challenge) []any {
	return []any{
		&c.Purpose, nullableText{&c.UserID}, &c.TenantID, &c.SessionID, &c.Generation, &c.Issuer, (*words)(&c.Methods), &c.State, (*storedTime)(&c.EndsAt),
	}
}

const sqlInsertChallenge = `INSERT INTO challenges (hash, purpose, user_id, tenant_id, session_id, generation, issuer, methods, state, tries, ends_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10)`

// InsertChallenge adds a challenge under the hash of its token.
func (tx *Tx) InsertChallenge(ctx context.Context, hash []byte, c Challenge) error {
	return tx.run(ctx, sqlInsertChallenge, hash, c.Purpose, nullable(c.UserID), c.TenantID, c.SessionID, c.Generation, c.Issuer, strings.Join(c.Methods, " "), c.State, micros(c.EndsAt))
}

const sqlChallenge = `SELECT purpose, user_id, tenant_id, session_id, generation, issuer, methods, state, ends_at FROM challenges
WHERE hash = $1 AND purpose = $2 AND tries < $3 AND ends_at > $4`

// Challenge returns the challenge with the hash if it has the purpose, has not ended at now
// and has had fewer than maxTries tries; else ErrNone.
func (r Reader) Challenge(ctx context.Context, hash []byte, purpose string, maxTries int, now time.Time) (Challenge, error) {
	return one(ctx, r, challengeFields, sqlChallenge, hash, purpose, maxTries, micros(now))
}

const sqlTryChallenge = `UPDATE challenges SET tries = tries + 1 WHERE hash = $1 AND tries < $2 AND ends_at > $3`

// TryChallenge counts a try before its answer is verified, and reports whether a try was left.
func (tx *Tx) TryChallenge(ctx context.Context, hash []byte, maxTries int) (bool, error) {
	return tx.affected(ctx, sqlTryChallenge, hash, maxTries, micros(tx.Now))
}

const sqlHoldChallenge = `UPDATE challenges SET tries = tries WHERE hash = $1 AND ends_at > $2`

// HoldChallenge locks the challenge until the transaction ends, so that nobody ends it before, and reports whether it
// is there and has not ended.
func (tx *Tx) HoldChallenge(ctx context.Context, hash []byte) (bool, error) {
	return tx.affected(ctx, sqlHoldChallenge, hash, micros(tx.Now))
}

const sqlTakeChallenge = `DELETE FROM challenges WHERE hash = $1`

// TakeChallenge deletes the challenge, which can be used once, and reports whether it was
// there.
func (tx *Tx) TakeChallenge(ctx context.Context, hash []byte) (bool, error) {
	return tx.affected(ctx, sqlTakeChallenge, hash)
}

const sqlEndChallenges = `DELETE FROM challenges WHERE user_id = $1`

// EndChallenges ends all challenges of the account.
func (tx *Tx) EndChallenges(ctx context.Context, userID string) error {
	return tx.run(ctx, sqlEndChallenges, userID)
}

const sqlEndChallengesOfTenant = `DELETE FROM challenges WHERE tenant_id = $1`

// EndChallengesOfTenant ends all challenges to sign in to the tenant.
func (tx *Tx) EndChallengesOfTenant(ctx context.Context, tenantID string) error {
	return tx.run(ctx, sqlEndChallengesOfTenant, tenantID)
}

const sqlEndChallengesFor = `DELETE FROM challenges WHERE purpose = $1 OR purpose = $2`

// EndChallengesFor ends all challenges with one of the purposes, and returns how many.
func (tx *Tx) EndChallengesFor(ctx context.Context, purpose, other string) (int64, error) {
	return tx.exec(ctx, sqlEndChallengesFor, purpose, other)
}

const sqlDeleteEndedChallenges = `DELETE FROM challenges WHERE hash IN (
  SELECT hash FROM challenges WHERE ends_at <= $1 ORDER BY ends_at LIMIT $2)`

// DeleteEndedChallenges deletes challenges whose time has passed, and returns how many, at most
// limit.
func (tx *Tx) DeleteEndedChallenges(ctx context.Context, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteEndedChallenges, micros(tx.Now), limit)
}

const (
	sqlTokenOfSession = `SELECT token_hash FROM sessions WHERE id = $1`
	sqlRenewSession   = `UPDATE sessions SET token_hash = $2, last_seen_at = $3, aal = $4, amr = $5, provider_amr = $6, proved_at = $7, factor_at = $8, password_at = $9,
  provider_session = CASE WHEN $10 = '' THEN provider_session ELSE $10 END WHERE id = $1 AND token_hash = $11`
	sqlKeepProviderSession = `INSERT INTO former_provider_sessions (session_id, provider_session)
SELECT s.id, s.provider_session FROM sessions s WHERE s.id = $1 AND s.provider_session <> '' AND s.provider_session <> $2
ON CONFLICT (session_id, provider_session) DO NOTHING`
)

// RenewSession records the proofs of identity in s.Assurance, and the provider's session if that names one, sets the last use to s.LastSeenAt, and
// replaces the session's token by the one with the hash. EndProviderSession ends it by the earlier sessions of the provider, too. It reports whether the session is there, and its
// token wasn't replaced at the same time.
func (tx *Tx) RenewSession(ctx context.Context, s doorward.Session, hash []byte) (bool, error) {
	old, err := one(ctx, tx.Reader, bytesColumn, sqlTokenOfSession, s.ID)
	if errors.Is(err, ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	tx.announce(ChangeSession, SessionSubject(old))
	a := s.Assurance
	if a.ProviderSession != "" {
		if err := tx.run(ctx, sqlKeepProviderSession, s.ID, a.ProviderSession); err != nil {
			return false, err
		}
	}
	return tx.affected(ctx, sqlRenewSession, s.ID, hash, micros(s.LastSeenAt), a.AAL, strings.Join(a.AMR, " "), strings.Join(a.ProviderAMR, " "),
		micros(a.ProvedAt), microsOrZero(a.FactorAt), microsOrZero(a.PasswordAt), a.ProviderSession, old)
}

const (
	sqlRememberBrowser    = `UPDATE devices SET second_at = $2, ip = $3, user_agent = $4 WHERE hash = $1`
	sqlForgetBrowsers     = `UPDATE devices SET second_at = 0, ip = '', user_agent = '' WHERE user_id = $1`
	sqlForgetBrowser      = `UPDATE devices SET second_at = 0, ip = '', user_agent = '' WHERE user_id = $1 AND hash = $2 AND second_at <> 0`
	sqlRememberedBrowsers = `SELECT d.hash, d.second_at, d.ip, d.user_agent
FROM users u JOIN devices d ON d.user_id = u.id AND d.credential_generation = u.credential_generation
WHERE u.id = $1 AND d.second_at <> 0 AND d.second_at > $2 ORDER BY d.second_at DESC`
)

// RememberBrowser makes the known browser with the hash stand in for the second factor, which
// has just been proved in it.
func (tx *Tx) RememberBrowser(ctx context.Context, hash []byte, ip, userAgent string) error {
	return tx.run(ctx, sqlRememberBrowser, hash, micros(tx.Now), ip, userAgent)
}

// RememberedBrowser is a known browser that stands in for the second factor.
type RememberedBrowser struct {
	Hash      []byte // of its cookie
	ProvedAt  time.Time
	IP        string // at ProvedAt, as is UserAgent
	UserAgent string
}

func rememberedFields(s *RememberedBrowser) []any {
	return []any{&s.Hash, (*storedTime)(&s.ProvedAt), &s.IP, &s.UserAgent}
}

// RememberedBrowsers returns the browsers of the account that stand in for the second factor
// because it was proved in them after an instant, the latest proof first.
func (r Reader) RememberedBrowsers(ctx context.Context, userID string, since time.Time) ([]RememberedBrowser, error) {
	return list(ctx, r, rememberedFields, sqlRememberedBrowsers, userID, micros(since))
}

// ForgetBrowsers forgets the account's remembered browsers: none stands in for the second
// factor any more.
func (tx *Tx) ForgetBrowsers(ctx context.Context, userID string) error {
	return tx.run(ctx, sqlForgetBrowsers, userID)
}

// ForgetBrowser is ForgetBrowsers for the browser with the hash. It reports whether it stood in
// for the factor.
func (tx *Tx) ForgetBrowser(ctx context.Context, userID string, hash []byte) (bool, error) {
	return tx.affected(ctx, sqlForgetBrowser, userID, hash)
}

const sqlForgetBrowsersProvedBefore = `UPDATE devices SET second_at = 0, ip = '', user_agent = '' WHERE second_at <> 0 AND second_at <= $1
AND hash IN (SELECT hash FROM devices WHERE second_at <> 0 AND second_at <= $1 ORDER BY second_at LIMIT $2)`

// ForgetBrowsersProvedBefore is ForgetBrowsers for browsers of any account in which the
// factor was last proved at an instant or before, so that IP addresses are not kept longer
// than they are of use. It returns how many, at most limit.
func (tx *Tx) ForgetBrowsersProvedBefore(ctx context.Context, until time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlForgetBrowsersProvedBefore, micros(until), limit)
}

const (
	sqlEndChallengesIn   = `DELETE FROM challenges WHERE user_id = $1 AND tenant_id = $2`
	sqlForgetBrowsersIn  = `UPDATE memberships SET forgotten_at = $3 WHERE user_id = $1 AND tenant_id = $2`
	sqlBrowsersForgotten = `SELECT forgotten_at FROM memberships WHERE user_id = $1 AND tenant_id = $2`
)

// ForgetProofsIn ends the account's challenges in the tenant. No browser in which a second factor was
// proved until now stands in for it there any more. Other tenants are not affected.
func (tx *Tx) ForgetProofsIn(ctx context.Context, tenantID, userID string) error {
	if err := tx.run(ctx, sqlEndChallengesIn, userID, tenantID); err != nil {
		return err
	}
	return tx.run(ctx, sqlForgetBrowsersIn, userID, tenantID, micros(tx.Now))
}

// BrowsersForgotten returns when the tenant has last forgotten the member's browsers: only a proof of a
// second factor after that counts there. ErrNone without a membership.
func (r Reader) BrowsersForgotten(ctx context.Context, tenantID, userID string) (time.Time, error) {
	at, err := one(ctx, r, instantColumn, sqlBrowsersForgotten, userID, tenantID)
	return time.Time(at), err
}
