package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

const (
	sqlEndSignIns = `INSERT INTO ended_sign_ins (connection_id, who_hash, ended_at) VALUES ($1, $2, $3)
ON CONFLICT (connection_id, who_hash) DO UPDATE SET ended_at = $3 WHERE ended_sign_ins.ended_at < $3`
	sqlSignInsEnded       = `SELECT count(*) FROM ended_sign_ins WHERE connection_id = $1 AND who_hash = $2 AND ended_at >= $3`
	sqlDeleteEndedSignIns = `DELETE FROM ended_sign_ins WHERE who_hash IN (
  SELECT who_hash FROM ended_sign_ins WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2) AND ended_at <= $1`
	sqlReleaseState = `DELETE FROM used_states WHERE state_hash = $1`
)

// EndSignIns records that somebody's sign-ins by the connection that began by now have ended. who is one of
// doorward.EndedUser, EndedSubject, EndedAddress, EndedSession and EndedEverybody.
func (tx *Tx) EndSignIns(ctx context.Context, connectionID, who string) error {
	return tx.run(ctx, sqlEndSignIns, connectionID, addressHash(who), micros(tx.Now))
}

// SignInsEnded reports whether the sign-ins of who were ended at begun or later: one that began then
// opens no session.
func (r Reader) SignInsEnded(ctx context.Context, connectionID, who string, begun time.Time) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlSignInsEnded, connectionID, addressHash(who), microsOrZero(begun))
	return n > 0, err
}

// DeleteEndedSignIns deletes what EndSignIns has recorded until an instant, at most about limit rows, and returns how
// many.
func (tx *Tx) DeleteEndedSignIns(ctx context.Context, until time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteEndedSignIns, micros(until), limit)
}

// ReleaseState makes a state that UseState has used up good again.
func (tx *Tx) ReleaseState(ctx context.Context, hash []byte) error {
	return tx.run(ctx, sqlReleaseState, hash)
}

const (
	sqlEndProviderSession = `DELETE FROM sessions WHERE issuer = $5 AND id IN (
SELECT s.id FROM sessions s WHERE s.issuer = $5 AND s.provider_session = $6 AND s.provider_session <> ''
UNION SELECT f.session_id FROM former_provider_sessions f WHERE f.provider_session = $6) RETURNING user_id, token_hash, NOT ` + expired
	sqlEndUnnamedSessions = `DELETE FROM sessions WHERE issuer = $5 AND user_id = $6 AND provider_session = '' RETURNING user_id, token_hash, NOT ` + expired
)

// announcedMax is how many ended sessions are announced one by one. Beyond it, all of the tenant's are read again.
const announcedMax = 100

// EndProviderSession ends the sessions that the connection has vouched for with the provider's session, at the sign-in or at a
// step-up, and returns how many of each person had not expired. The one who calls it has locked the tenant of the connection.
func (tx *Tx) EndProviderSession(ctx context.Context, life SessionLifetime, c doorward.Connection, providerSession string) (map[string]int64, error) {
	return tx.endVouched(ctx, life, c, sqlEndProviderSession, providerSession)
}

// EndUnnamedSessions is EndProviderSession for the person's sessions of which the provider named no session.
func (tx *Tx) EndUnnamedSessions(ctx context.Context, life SessionLifetime, c doorward.Connection, userID string) (map[string]int64, error) {
	return tx.endVouched(ctx, life, c, sqlEndUnnamedSessions, userID)
}

func (tx *Tx) endVouched(ctx context.Context, life SessionLifetime, c doorward.Connection, query, arg string) (map[string]int64, error) {
	type row struct {
		userID string
		hash   []byte
		live   bool
	}
	ended := map[string]int64{}
	var hashes [][]byte
	note := func(r row) error {
		if ended[r.userID] += 0; r.live {
			ended[r.userID]++
		}
		hashes = append(hashes, r.hash)
		return nil
	}
	fields := func(r *row) []any { return []any{&r.userID, &r.hash, &r.live} }
	if err := each(ctx, tx.Reader, fields, note, query, life.args(tx.Now, c.ID, arg)...); err != nil {
		return nil, err
	}
	if len(hashes) > announcedMax {
		tx.announce(ChangeTenant, c.TenantID)
		return ended, nil
	}
	for _, hash := range hashes {
		tx.announce(ChangeSession, SessionSubject(hash))
	}
	return ended, nil
}
