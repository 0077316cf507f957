package store

import (
	"context"
	"time"
)

// SAMLAssertion is an assertion that was accepted, and what waits for the browser.
type SAMLAssertion struct {
	Hash         []byte // of the connection and the assertion's id
	ConnectionID string
	Said         []byte    // sealed
	WaitsUntil   time.Time // when it can't be used any more
	EndsAt       time.Time // when the assertion wouldn't be accepted any more
}

const (
	sqlInsertSAMLAssertion = `INSERT INTO saml_assertions (hash, connection_id, said, waits_until, ends_at)
SELECT $1, $2, $3, $4, $5 WHERE EXISTS (SELECT 1 FROM connections c WHERE c.id = $2) ON CONFLICT (hash) DO NOTHING`
	sqlSAMLAssertion        = `SELECT said FROM saml_assertions WHERE hash = $1 AND connection_id = $2 AND said IS NOT NULL AND waits_until > $3`
	sqlUseSAMLAssertion     = `UPDATE saml_assertions SET said = NULL WHERE hash = $1 AND connection_id = $2 AND said IS NOT NULL AND waits_until > $3`
	sqlDeleteSAMLAssertions = `DELETE FROM saml_assertions WHERE hash IN (SELECT hash FROM saml_assertions WHERE ends_at <= $1 ORDER BY ends_at LIMIT $2)`
)

// InsertSAMLAssertion adds an assertion, and reports whether it is new, on all nodes, and its connection exists.
func (tx *Tx) InsertSAMLAssertion(ctx context.Context, a SAMLAssertion) (bool, error) {
	return tx.affected(ctx, sqlInsertSAMLAssertion, a.Hash, a.ConnectionID, a.Said, micros(a.WaitsUntil), micros(a.EndsAt))
}

// SAMLAssertion returns what the connection's assertion says while that waits to be used, or ErrNone.
func (tx *Tx) SAMLAssertion(ctx context.Context, connectionID string, hash []byte) ([]byte, error) {
	return one(ctx, tx.Reader, bytesColumn, sqlSAMLAssertion, hash, connectionID, micros(tx.Now))
}

// UseSAMLAssertion uses up what the connection's assertion says, and returns it; or ErrNone: it was used before, on any
// node, or has waited too long.
func (tx *Tx) UseSAMLAssertion(ctx context.Context, connectionID string, hash []byte) ([]byte, error) {
	said, err := tx.SAMLAssertion(ctx, connectionID, hash)
	if err != nil {
		return nil, err
	}
	isMine, err := tx.affected(ctx, sqlUseSAMLAssertion, hash, connectionID, micros(tx.Now))
	if err == nil && !isMine {
		err = ErrNone
	}
	if err != nil {
		return nil, err
	}
	return said, nil
}

// DeleteSAMLAssertions deletes assertions that wouldn't be accepted any more, at most limit, and returns how many.
func (tx *Tx) DeleteSAMLAssertions(ctx context.Context, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteSAMLAssertions, micros(tx.Now), limit)
}
