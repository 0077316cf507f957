package store

import (
	"context"
	"errors"
	"slices"
)

// What the operator does when hashes of passwords were stolen.

const (
	sqlWithPassword   = `SELECT id FROM users WHERE id > $1 AND password_hash <> '' ORDER BY id LIMIT $2`
	sqlWithPasswordIn = `SELECT id FROM users WHERE id IN (SELECT user_id FROM memberships WHERE tenant_id = $3 AND user_id > $1)
  AND id > $1 AND password_hash <> '' ORDER BY id LIMIT $2`
)

// AccountsWithPassword returns the ids of up to limit accounts that have a password, in order, that are greater than
// after: those of the members of a tenant, or without one all.
func (r Reader) AccountsWithPassword(ctx context.Context, tenantID, after string, limit int) ([]string, error) {
	if tenantID == "" {
		return list(ctx, r, textField, sqlWithPassword, after, limit)
	}
	return list(ctx, r, textField, sqlWithPasswordIn, after, limit, tenantID)
}

const (
	sqlCountWithPassword   = `SELECT count(*) FROM users WHERE password_hash <> ''`
	sqlCountWithPasswordIn = `SELECT count(*) FROM users WHERE id IN (SELECT user_id FROM memberships WHERE tenant_id = $1) AND password_hash <> ''`
)

// CountWithPassword returns how many accounts AccountsWithPassword returns in all.
func (r Reader) CountWithPassword(ctx context.Context, tenantID string) (int, error) {
	if tenantID == "" {
		return one(ctx, r, countColumn, sqlCountWithPassword)
	}
	return one(ctx, r, countColumn, sqlCountWithPasswordIn, tenantID)
}

// Each has the ids of eight accounts, see padded.
const (
	sqlForgetPasswords = `UPDATE users SET password_hash = '', credential_generation = credential_generation + 1, revision = revision + 1
WHERE id IN ($1, $2, $3, $4, $5, $6, $7, $8) AND password_hash <> '' RETURNING id`
	sqlInsertForgotten = `INSERT INTO forgotten_passwords (user_id) SELECT id FROM users WHERE id IN ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (user_id) DO NOTHING`
	sqlEndDevicesOf        = `DELETE FROM devices WHERE user_id IN ($1, $2, $3, $4, $5, $6, $7, $8)`
	sqlEndDeviceCountersOf = `DELETE FROM throttles WHERE bucket IN ('devices:' || $1, 'devices:' || $2, 'devices:' || $3, 'devices:' || $4,
  'devices:' || $5, 'devices:' || $6, 'devices:' || $7, 'devices:' || $8)`
	sqlDeleteUnconfirmedOf = `DELETE FROM factors WHERE user_id IN ($1, $2, $3, $4, $5, $6, $7, $8) AND confirmed_at IS NULL`
	sqlExpireResetsOf      = `UPDATE resets SET expires_at = created_at WHERE user_id IN ($1, $2, $3, $4, $5, $6, $7, $8) AND used_at IS NULL AND expires_at > $9`
	sqlDeleteSessionsOf    = `DELETE FROM sessions WHERE user_id IN ($5, $6, $7, $8, $9, $10, $11, $12) RETURNING user_id, tenant_id, NOT ` + expired
)

// Forgotten says whose passwords ForgetPasswords has removed, and whose sessions.
type Forgotten struct {
	UserIDs  []string                    // in order
	Sessions map[string]map[string]int64 // that had not expired, by account and tenant
}

// ForgetPasswords removes the password hashes of accounts, imported ones too, and with them what was opened by a
// password: sessions, known browsers, resets, factors that are being set up, and sign-ins under way. Accounts
// without a password are left out. No account becomes managed: a reset sets the next password. It locks the
// accounts in order, and remembers them for TakeForgotten.
func (tx *Tx) ForgetPasswords(ctx context.Context, life SessionLifetime, ids []string) (Forgotten, error) {
	done := Forgotten{Sessions: map[string]map[string]int64{}}
	ids = slices.Sorted(slices.Values(ids))
	for chunk := range slices.Chunk(ids, sessionsAtOnce) {
		changed, err := list(ctx, tx.Reader, textField, sqlForgetPasswords, padded(chunk)...)
		if err != nil {
			return done, err
		}
		if len(changed) == 0 {
			continue
		}
		slices.Sort(changed)
		done.UserIDs = append(done.UserIDs, changed...)
		if err := tx.endOpened(ctx, life, changed, done.Sessions); err != nil {
			return done, err
		}
	}
	return done, nil
}

// endOpened ends what was opened by the passwords of up to eight accounts, and notes the sessions.
func (tx *Tx) endOpened(ctx context.Context, life SessionLifetime, ids []string, sessions map[string]map[string]int64) error {
	type ended struct {
		userID, tenantID string
		live             bool
	}
	count := func(e ended) error {
		if e.live {
			if sessions[e.userID] == nil {
				sessions[e.userID] = map[string]int64{}
			}
			sessions[e.userID][e.tenantID]++
		}
		return nil
	}
	for _, id := range ids {
		tx.announce(ChangeUser, id) // what sessions of the account must prove has changed, too
	}
	fields := func(e *ended) []any { return []any{&e.userID, &e.tenantID, &e.live} }
	of := padded(ids)
	return errors.Join(
		tx.run(ctx, sqlInsertForgotten, of...),
		tx.run(ctx, sqlEndDevicesOf, of...),
		tx.run(ctx, sqlEndDeviceCountersOf, of...),
		tx.run(ctx, sqlDeleteUnconfirmedOf, of...),
		tx.run(ctx, sqlExpireResetsOf, append(slices.Clone(of), micros(tx.Now))...),
		each(ctx, tx.Reader, fields, count, sqlDeleteSessionsOf, life.args(tx.Now, of...)...),
	)
}

const (
	sqlCountForgotten = `SELECT count(*) FROM forgotten_passwords`
	sqlTakeForgotten  = `DELETE FROM forgotten_passwords WHERE user_id IN (SELECT user_id FROM forgotten_passwords ORDER BY user_id LIMIT $1) RETURNING user_id`
	sqlTakeOne        = `DELETE FROM forgotten_passwords WHERE user_id = $1`
)

// CountForgotten returns how many accounts TakeForgotten would return in all.
func (r Reader) CountForgotten(ctx context.Context) (int, error) {
	return one(ctx, r, countColumn, sqlCountForgotten)
}

// TakeForgotten returns up to limit accounts of ForgetPasswords, in order; none is returned again after the commit.
// While another transaction takes the same ones, it may return fewer although others are left.
func (tx *Tx) TakeForgotten(ctx context.Context, limit int) ([]string, error) {
	ids, err := list(ctx, tx.Reader, textField, sqlTakeForgotten, limit)
	slices.Sort(ids)
	return ids, err
}

// TakeForgottenAccount is TakeForgotten for one account. It reports whether the account was there.
func (tx *Tx) TakeForgottenAccount(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlTakeOne, id)
}
