package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

// Credential is a session with everything that a check needs.
type Credential struct {
	Session doorward.Session
	User    doorward.User
}

func credentialFields(c *Credential) []any {
	s := &c.Session
	return append(append(sessionFields(s), settingsFields(&s.Tenant)...), userFields(&c.User)...)
}

func sessionFields(s *doorward.Session) []any {
	return []any{
		&s.ID, &s.UserID, &s.TenantID, (*storedTime)(&s.CreatedAt), (*storedTime)(&s.LastSeenAt), &s.IP, &s.UserAgent, &s.NewBrowser,
		&s.AAL, (*words)(&s.AMR), (*words)(&s.ProviderAMR), (*storedTime)(&s.ProvedAt),
		optionalTime{&s.FactorAt},
		optionalTime{&s.PasswordAt},
		&s.Remembered, &s.Issuer, &s.Role, (*storedTime)(&s.JoinedAt),
		optionalTime{&s.SignOnUntil},
		optionalTime{&s.ProviderUntil},
	}
}

// sessionColumns are scanned into sessionFields.
const sessionColumns = `s.id, s.user_id, s.tenant_id, s.created_at, s.last_seen_at, s.ip, s.user_agent, s.new_browser,
  s.aal, s.amr, s.provider_amr, s.proved_at, s.factor_at, s.password_at, s.remembered, s.issuer, m.role, m.created_at,
  CASE WHEN s.issuer = '' THEN 0 ELSE COALESCE((SELECT p.confirm_by FROM sso_policies p WHERE p.tenant_id = s.tenant_id AND p.before_mode = 'off'), 0) END,
  s.provider_until`

// tenantOfSession joins the tenant of a session, unless the session has ended with all of the tenant's: see
// Tx.EndTenantSessions.
const tenantOfSession = `JOIN tenants t ON t.id = s.tenant_id AND t.session_epoch = s.epoch `

const selectCredential = `SELECT ` + sessionColumns + `,
  ` + settingsColumns + `, ` + userColumns + `
FROM sessions s
JOIN memberships m ON m.tenant_id = s.tenant_id AND m.user_id = s.user_id
JOIN users u ON u.id = s.user_id ` + tenantOfSession

const sqlSessionByToken = selectCredential + `WHERE s.token_hash = $1`

// SessionByToken returns the session of a token hash with its user, or
// ErrNone.
func (r Reader) SessionByToken(ctx context.Context, hash []byte) (Credential, error) {
	return one(ctx, r, credentialFields, sqlSessionByToken, hash)
}

// sessionsAtOnce is how many sessions one statement looks up or ends.
const sessionsAtOnce = 8

const sqlSessionsByTokens = selectCredential + `WHERE s.token_hash IN ($1, $2, $3, $4, $5, $6, $7, $8)`

// SessionsByTokens returns the existing sessions of token hashes, with their users.
func (r Reader) SessionsByTokens(ctx context.Context, hashes [][]byte) (all []Credential, err error) {
	for chunk := range slices.Chunk(hashes, sessionsAtOnce) {
		found, err := list(ctx, r, credentialFields, sqlSessionsByTokens, padded(chunk)...)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// padded returns sessionsAtOnce arguments, with the first value repeated, so that one
// query text serves any number.
func padded[T any](values []T) []any {
	args := make([]any, sessionsAtOnce)
	for i := range args {
		args[i] = values[0]
		if i < len(values) {
			args[i] = values[i]
		}
	}
	return args
}

const sqlSession = selectCredential + `WHERE s.id = $1`

// Session returns the session with its user, or ErrNone.
func (r Reader) Session(ctx context.Context, id string) (Credential, error) {
	return one(ctx, r, credentialFields, sqlSession, id)
}

const sqlUserSessions = `SELECT s.token_hash, ` + sessionColumns + `,
  ` + settingsColumns + `
FROM sessions s JOIN memberships m ON m.tenant_id = s.tenant_id AND m.user_id = s.user_id
` + tenantOfSession + `WHERE s.user_id = $1 ORDER BY s.created_at DESC, s.id`

// StoredSession is a session with the hash of its token.
type StoredSession struct {
	Hash    []byte
	Session doorward.Session
}

func storedSessionFields(c *StoredSession) []any {
	s := &c.Session
	return append(append([]any{&c.Hash}, sessionFields(s)...), settingsFields(&s.Tenant)...)
}

// UserSessions returns the sessions of a user in all tenants, the newest first;
// some may have expired.
func (r Reader) UserSessions(ctx context.Context, userID string) ([]StoredSession, error) {
	return list(ctx, r, storedSessionFields, sqlUserSessions, userID)
}

const sqlInsertSession = `INSERT INTO sessions (id, token_hash, user_id, tenant_id, created_at, last_seen_at, ip, user_agent,
  aal, amr, provider_amr, proved_at, factor_at, password_at, remembered, issuer, provider_session, provider_until, new_browser, epoch)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, (SELECT session_epoch FROM tenants WHERE id = $4))`

// InsertSession adds the session under the hash of its token.
func (tx *Tx) InsertSession(ctx context.Context, s doorward.Session, hash []byte) error {
	return tx.run(ctx, sqlInsertSession, s.ID, hash, s.UserID, s.TenantID,
		micros(s.CreatedAt), micros(s.LastSeenAt), s.IP, s.UserAgent,
		s.AAL, strings.Join(s.AMR, " "), strings.Join(s.ProviderAMR, " "), micros(s.ProvedAt), microsOrZero(s.FactorAt), microsOrZero(s.PasswordAt), s.Remembered, s.Issuer, s.ProviderSession, microsOrZero(s.ProviderUntil), s.NewBrowser)
}

// Use is a use of a session or of a secret of an API key.
type Use struct {
	Hash [32]byte // of the token or the secret
	At   time.Time
}

const (
	sqlTouchSession = `UPDATE sessions SET last_seen_at = $1 WHERE token_hash = $2 AND last_seen_at < $1`
	sqlIsUntouched  = `SELECT count(*) FROM sessions WHERE token_hash = $1 AND last_seen_at < $2`
)

// TouchSession records a use, unless a later one is recorded. It never restores an ended session: its row is
// gone.
func (tx *Tx) TouchSession(ctx context.Context, u Use) error {
	return tx.run(ctx, sqlTouchSession, micros(u.At), u.Hash[:])
}

// TouchSessions is TouchSession for several. It returns the uses of sessions that another transaction has
// locked, such as one that ends many: if it waited for them with the locks that it has, both could wait
// for each other.
func (tx *Tx) TouchSessions(ctx context.Context, uses []Use) (locked []Use, err error) {
	for _, u := range uses {
		free, err := tx.touchFree(ctx, u)
		if err != nil {
			return nil, err
		}
		if !free {
			locked = append(locked, u)
		}
	}
	return locked, nil
}

// touchFree records a use, and reports false if another transaction has locked the session.
func (tx *Tx) touchFree(ctx context.Context, u Use) (bool, error) {
	touched, err := tx.affected(ctx, tx.engine.touch, micros(u.At), u.Hash[:])
	if err != nil || touched {
		return true, err
	}
	untouched, err := one(ctx, tx.Reader, countColumn, sqlIsUntouched, u.Hash[:], micros(u.At))
	return untouched == 0, err
}

// SessionLifetime has the limits of the installation, and how far the recorded uses may
// lag behind the real ones. A session counts as expired only when that is certain, even if it
// was used up to Lag after its recorded use.
type SessionLifetime struct {
	doorward.SessionLimits
	Lag time.Duration
}

// Conditions for expired sessions: by the limits of the installation, and by those or the
// tighter limits of the tenant, or because all of the tenant's have ended. A limit that a tenant doesn't set is NULL, and comparisons
// with NULL are false. PostgreSQL evaluates a condition again on a row that changed while
// the statement waited for it; it wouldn't do so for a list of ids.
const (
	expiredForAll = `sessions.created_at <= $1 OR sessions.last_seen_at <= $2`

	expired = `(` + expiredForAll + ` OR sessions.provider_until <> 0 AND sessions.provider_until <= $3 OR EXISTS (SELECT 1 FROM tenants t WHERE t.id = sessions.tenant_id
  AND (sessions.epoch <> t.session_epoch OR sessions.created_at <= $3 - t.session_absolute OR sessions.last_seen_at <= $4 - t.session_idle)))`
)

// bounds returns the times of opening and of last use up to which sessions have
// expired at now.
func (l SessionLifetime) bounds(now time.Time) (created, seen int64) {
	return micros(now.Add(-l.Absolute)), micros(now.Add(-l.Lag - l.Idle))
}

// args are the arguments of a statement with expired; its own arguments begin at
// $5.
func (l SessionLifetime) args(now time.Time, own ...any) []any {
	created, seen := l.bounds(now)
	return append([]any{created, seen, micros(now), micros(now.Add(-l.Lag))}, own...)
}

const sqlDeleteSession = `DELETE FROM sessions WHERE id = $1 RETURNING token_hash`

// DeleteSession ends the session and reports whether it existed.
func (tx *Tx) DeleteSession(ctx context.Context, id string) (bool, error) {
	hash, err := one(ctx, tx.Reader, bytesColumn, sqlDeleteSession, id)
	if errors.Is(err, ErrNone) {
		return false, nil
	}
	if err == nil {
		tx.announce(ChangeSession, SessionSubject(hash))
	}
	return err == nil, err
}

const sqlDeleteSessions = `DELETE FROM sessions WHERE id IN ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id, token_hash`

// DeleteSessions ends sessions and returns the ids of those that existed.
func (tx *Tx) DeleteSessions(ctx context.Context, sessions []Credential) (map[string]bool, error) {
	ids := make([]string, len(sessions))
	for i, s := range sessions {
		ids[i] = s.Session.ID
	}
	fields := func(s *StoredSession) []any { return []any{&s.Session.ID, &s.Hash} }
	ended := map[string]bool{}
	note := func(s StoredSession) error {
		ended[s.Session.ID] = true
		tx.announce(ChangeSession, SessionSubject(s.Hash))
		return nil
	}
	for chunk := range slices.Chunk(ids, sessionsAtOnce) {
		if err := each(ctx, tx.Reader, fields, note, sqlDeleteSessions, padded(chunk)...); err != nil {
			return nil, err
		}
	}
	return ended, nil
}

func bytesColumn(b *[]byte) []any { return []any{b} }

const sqlDeleteIdleSession = `DELETE FROM sessions WHERE token_hash = $1 AND last_seen_at <= $2`

// DeleteIdleSession ends the session if it hasn't been used after seen.
func (tx *Tx) DeleteIdleSession(ctx context.Context, hash []byte, seen time.Time) error {
	ended, err := tx.affected(ctx, sqlDeleteIdleSession, hash, micros(seen))
	if ended {
		tx.announce(ChangeSession, SessionSubject(hash))
	}
	return err
}

const sqlDeleteUserSessions = `DELETE FROM sessions WHERE user_id = $5 AND id <> $6 RETURNING tenant_id, NOT ` + expired

// DeleteUserSessions ends all sessions of the user except the one named, which may
// be empty, and returns how many had not expired, by tenant.
func (tx *Tx) DeleteUserSessions(ctx context.Context, life SessionLifetime, userID, except string) (map[string]int64, error) {
	tx.announce(ChangeUser, userID)
	type ended struct {
		tenantID string
		live     bool
	}
	n := map[string]int64{}
	count := func(e ended) error {
		if e.live {
			n[e.tenantID]++
		}
		return nil
	}
	fields := func(e *ended) []any { return []any{&e.tenantID, &e.live} }
	return n, each(ctx, tx.Reader, fields, count, sqlDeleteUserSessions, life.args(tx.Now, userID, except)...)
}

const sqlDeleteMemberSessions = `DELETE FROM sessions WHERE tenant_id = $5 AND user_id = $6 AND id <> $7 RETURNING NOT ` + expired

// DeleteMemberSessions ends the user's sessions in one tenant, and returns how
// many had not expired.
func (tx *Tx) DeleteMemberSessions(ctx context.Context, life SessionLifetime, tenantID, userID string) (int64, error) {
	return tx.DeleteOtherMemberSessions(ctx, life, tenantID, userID, "")
}

// DeleteOtherMemberSessions is DeleteMemberSessions without the session with an id.
func (tx *Tx) DeleteOtherMemberSessions(ctx context.Context, life SessionLifetime, tenantID, userID, except string) (int64, error) {
	tx.announce(ChangeUser, userID)
	return tx.endSessions(ctx, life, sqlDeleteMemberSessions, tenantID, userID, except)
}

const (
	sqlEndTenantSessions = `UPDATE tenants SET session_epoch = session_epoch + 1 WHERE id = $1`
	sqlKeepSession       = `UPDATE sessions SET epoch = (SELECT session_epoch FROM tenants WHERE id = $1) WHERE id = $2 AND tenant_id = $1`
)

// EndTenantSessions ends all sessions in the tenant except the one with this id, which may be empty. It
// writes one row, however many there are: SweepEnded deletes those of the sessions. A session that a
// transaction under way opens has ended, too.
func (tx *Tx) EndTenantSessions(ctx context.Context, tenantID, except string) error {
	tx.announce(ChangeTenant, tenantID)
	if err := tx.run(ctx, sqlEndTenantSessions, tenantID); err != nil || except == "" {
		return err
	}
	return tx.run(ctx, sqlKeepSession, tenantID, except)
}

const sqlDeleteSessionsSince = `DELETE FROM sessions WHERE id IN (
  SELECT id FROM sessions WHERE tenant_id = $5 AND created_at >= $6 LIMIT $7) RETURNING NOT ` + expired

// DeleteSessionsSince ends up to limit sessions in the tenant that were opened at since or later. It returns
// how many rows it has deleted, fewer than limit if that were all, and how many of these had not expired. It
// waits for transactions under way that open sessions in the tenant, and others wait for this one.
func (tx *Tx) DeleteSessionsSince(ctx context.Context, life SessionLifetime, tenantID string, since time.Time, limit int) (deleted, live int64, err error) {
	tx.announce(ChangeTenant, tenantID)
	if tx.engine.lockTenant != "" {
		if err := tx.run(ctx, tx.engine.lockTenant, tenantID); err != nil {
			return 0, 0, err
		}
	}
	count := func(isLive bool) error {
		deleted++
		if isLive {
			live++
		}
		return nil
	}
	err = each(ctx, tx.Reader, func(live *bool) []any { return []any{live} }, count, sqlDeleteSessionsSince, life.args(tx.Now, tenantID, micros(since), limit)...)
	return deleted, live, err
}

const sqlTenantsToSweep = `SELECT id FROM tenants WHERE session_epoch > swept_epoch ORDER BY id`

// TenantsToSweep returns the ids of the tenants for SweepEnded.
func (r Reader) TenantsToSweep(ctx context.Context) ([]string, error) {
	return list(ctx, r, textField, sqlTenantsToSweep)
}

const (
	sqlDeleteEndedSessions = `DELETE FROM sessions WHERE id IN (SELECT id FROM sessions
  WHERE tenant_id = $1 AND epoch < (SELECT session_epoch FROM tenants WHERE id = $1) LIMIT $2)`
	sqlMarkSwept = `UPDATE tenants SET swept_epoch = session_epoch WHERE id = $1
  AND NOT EXISTS (SELECT 1 FROM sessions WHERE tenant_id = $1 AND epoch < session_epoch)`
)

// SweepEnded deletes up to limit rows of sessions that have ended with all of the tenant's, and returns how
// many; fewer than limit means that nothing is left.
func (tx *Tx) SweepEnded(ctx context.Context, tenantID string, limit int) (int64, error) {
	n, err := tx.exec(ctx, sqlDeleteEndedSessions, tenantID, limit)
	if err != nil || n == int64(limit) {
		return n, err
	}
	return n, tx.run(ctx, sqlMarkSwept, tenantID)
}

const sqlDeleteAllSessions = `DELETE FROM sessions RETURNING NOT ` + expired

// DeleteAllSessions ends all sessions, and returns how many had not expired.
func (tx *Tx) DeleteAllSessions(ctx context.Context, life SessionLifetime) (int64, error) {
	tx.announce(ChangeAll, "")
	return tx.endSessions(ctx, life, sqlDeleteAllSessions)
}

// endSessions deletes sessions and counts those that had not expired. Of two concurrent
// calls each counts only the rows that its own statement deleted. The caller
// announces one change for all.
func (tx *Tx) endSessions(ctx context.Context, life SessionLifetime, query string, own ...any) (n int64, err error) {
	count := func(live bool) error {
		if live {
			n++
		}
		return nil
	}
	err = each(ctx, tx.Reader, func(live *bool) []any { return []any{live} }, count, query, life.args(tx.Now, own...)...)
	return n, err
}

// As in sqlDueMails, a list contains a role if removing it makes the text shorter.
const sqlDeleteUnprovedSessions = `DELETE FROM sessions WHERE tenant_id = $1 AND aal < 2 AND NOT remembered AND user_id IN (
  SELECT user_id FROM memberships WHERE tenant_id = $1 AND created_at <= $2 AND ($3 = '' OR replace($3, ' ' || role || ' ', '') <> $3))`

// DeleteUnprovedSessions ends sessions in the tenant in which no second factor was proved and no
// remembered browser stood in for it: those of members with one of the roles (none: of all)
// who joined at joinedBy or before.
func (tx *Tx) DeleteUnprovedSessions(ctx context.Context, tenantID string, roles []doorward.Role, joinedBy time.Time) error {
	tx.announce(ChangeTenant, tenantID)
	return tx.run(ctx, sqlDeleteUnprovedSessions, tenantID, micros(joinedBy), roleList(roles))
}

// roleList is a text for statements that look for a role in it; empty: all roles.
func roleList(roles []doorward.Role) (names string) {
	for _, r := range roles {
		names += " " + string(r) + " "
	}
	return names
}

const sqlCountUnprovedSessions = `SELECT count(*) FROM sessions s JOIN memberships m ON m.tenant_id = s.tenant_id AND m.user_id = s.user_id
WHERE s.tenant_id = $1 AND s.aal < 2 AND NOT s.remembered AND ($2 = '' OR replace($2, ' ' || m.role || ' ', '') <> $2)`

// CountUnprovedSessions counts what DeleteUnprovedSessions would end, whenever the members
// joined.
func (r Reader) CountUnprovedSessions(ctx context.Context, tenantID string, roles []doorward.Role) (int, error) {
	return one(ctx, r, countColumn, sqlCountUnprovedSessions, tenantID, roleList(roles))
}

const sqlDeleteAgedSessions = `DELETE FROM sessions WHERE tenant_id = $1 AND created_at <= $2`

// DeleteAgedSessions ends the sessions in the tenant that were opened at created
// or before.
func (tx *Tx) DeleteAgedSessions(ctx context.Context, tenantID string, created time.Time) error {
	tx.announce(ChangeTenant, tenantID)
	return tx.run(ctx, sqlDeleteAgedSessions, tenantID, micros(created))
}

const sqlOverdueSessions = `SELECT id FROM sessions WHERE ` + expiredForAll + ` LIMIT $3`

// OverdueSessions returns ids of sessions that have expired by the limits of the installation.
// It reads the whole table, so it is no part of a transaction for which others wait.
func (r Reader) OverdueSessions(ctx context.Context, life SessionLifetime, now time.Time, limit int) ([]string, error) {
	created, seen := life.bounds(now)
	return list(ctx, r, textField, sqlOverdueSessions, created, seen, limit)
}

const sqlDeleteOverdueSessions = `DELETE FROM sessions WHERE (` + expiredForAll + `) AND id IN ($3, $4, $5, $6, $7, $8, $9, $10)`

// DeleteOverdueSessions deletes those of the sessions that have expired by the limits of the
// installation, and returns how many.
func (tx *Tx) DeleteOverdueSessions(ctx context.Context, life SessionLifetime, ids []string) (deleted int64, err error) {
	created, seen := life.bounds(tx.Now)
	for chunk := range slices.Chunk(ids, sessionsAtOnce) {
		n, err := tx.exec(ctx, sqlDeleteOverdueSessions, append([]any{created, seen}, padded(chunk)...)...)
		if err != nil {
			return deleted, err
		}
		deleted += n
	}
	return deleted, nil
}

const sqlDeleteOverdueUserSessions = `DELETE FROM sessions WHERE user_id = $5 AND ` + expired

// DeleteOverdueUserSessions deletes the user's expired sessions, so that they
// don't count in the limit.
func (tx *Tx) DeleteOverdueUserSessions(ctx context.Context, life SessionLifetime, userID string) error {
	return tx.run(ctx, sqlDeleteOverdueUserSessions, life.args(tx.Now, userID)...)
}

const sqlDeleteOldestSessions = `DELETE FROM sessions WHERE user_id = $1 AND issuer = $4 AND id <> $2 AND id NOT IN (
  SELECT id FROM sessions WHERE user_id = $1 AND issuer = $4 AND id <> $2 ORDER BY created_at DESC, id DESC LIMIT $3)
RETURNING tenant_id`

// DeleteOldestSessions leaves the user keep sessions of the issuer, the one being opened and the newest
// others, and ends the rest. It returns how many it has ended, by tenant. The one being opened
// needn't be the newest: it may continue an older login, and the node's clock may lag. The
// count is right only under LockAccount.
func (tx *Tx) DeleteOldestSessions(ctx context.Context, userID string, issuer doorward.Issuer, opened string, keep int) (map[string]int64, error) {
	n := map[string]int64{}
	count := func(tenantID string) error { n[tenantID]++; return nil }
	err := each(ctx, tx.Reader, textField, count, sqlDeleteOldestSessions, userID, opened, keep-1, issuer)
	if len(n) > 0 {
		tx.announce(ChangeUser, userID)
	}
	return n, err
}
