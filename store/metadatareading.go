package store

import (
	"context"
	"time"
)

// readingSucceeded are the assignments after a reading that has succeeded.
const readingSucceeded = `failed_at = 0, failing_since = 0, retry_at = 0, failing_noticed = FALSE`

// retryFirst is when a reading is tried again whose node has ended before it could say when.
const retryFirst = 15 * time.Minute

const (
	sqlFailDiscovery = `UPDATE connection_parameters SET failed_at = $5, failing_since = CASE WHEN failing_since = 0 THEN $5 ELSE failing_since END, retry_at = $6
WHERE connection_id = $1 AND pending = $2 AND issuer = $3 AND metadata_url = $4`
	sqlRetriesDue = selectDiscovery + `WHERE p.retry_at > 0 AND p.retry_at <= $1
AND (SELECT c.status FROM connections c WHERE c.id = p.connection_id AND (c.type <> 'saml' OR p.metadata_url <> '')) = 'active' ORDER BY p.retry_at LIMIT $2`
	sqlAskForUnknown = `UPDATE connection_parameters SET asked_at = $5, unknown_at = $5, unknown_signer = $4,
  unknown_readings = CASE WHEN unknown_signer = $4 THEN unknown_readings + 1 ELSE 1 END
WHERE connection_id = $1 AND pending = $2 AND unknown_at = $3`
)

// FailDiscovery records that what d was read for couldn't be read, and when to try again. It reports whether the
// connection still has that address.
func (tx *Tx) FailDiscovery(ctx context.Context, d KeptDiscovery, retryAt time.Time) (bool, error) {
	return tx.affected(ctx, sqlFailDiscovery, d.ConnectionID, d.Pending, d.Issuer, d.MetadataURL, micros(tx.Now), micros(retryAt))
}

// DiscoveryRetriesDue returns what active connections keep of what couldn't be read, and is due again now, at most limit.
func (r Reader) DiscoveryRetriesDue(ctx context.Context, now time.Time, limit int) ([]KeptDiscovery, error) {
	return list(ctx, r, discoveryFields, sqlRetriesDue, micros(now), limit)
}

// AskForUnknown reports whether nobody else has begun to read metadata for an unknown certificate since d was read: of
// all nodes one does. signer is what the response names; see UnknownReading.
func (tx *Tx) AskForUnknown(ctx context.Context, d KeptDiscovery, signer string) (bool, error) {
	return tx.affected(ctx, sqlAskForUnknown, d.ConnectionID, d.Pending, microsOrZero(d.Unknown.At), signer, micros(tx.Now))
}

// UnreadProvider is one of an active connection that couldn't be read for long, about which OWNERs are told.
type UnreadProvider struct {
	ConnectionID, TenantID string
	Since                  time.Time
}

const (
	sqlUnreadProviders = `SELECT p.connection_id, c.tenant_id, p.failing_since FROM connection_parameters p JOIN connections c ON c.id = p.connection_id
WHERE p.retry_at > 0 AND NOT p.pending AND NOT p.failing_noticed AND p.failing_since > 0 AND p.failing_since <= $1 AND c.status = 'active'
ORDER BY p.connection_id LIMIT $2`
	// Not a join, for which PostgreSQL could read all connections.
	sqlReadingsFailing = `SELECT c.id, COALESCE((SELECT p.failing_since FROM connection_parameters p WHERE p.connection_id = c.id AND NOT p.pending), 0)
FROM connections c WHERE c.tenant_id = $1`
	sqlMarkUnreadNotice = `UPDATE connection_parameters SET failing_noticed = TRUE
WHERE connection_id = $1 AND NOT pending AND failing_since > 0 AND failing_since <= $2 AND NOT failing_noticed`
)

// UnreadProviders returns those of active connections that couldn't be read since an instant or before, and about which no
// mail was sent since they could be, at most limit.
func (r Reader) UnreadProviders(ctx context.Context, since time.Time, limit int) ([]UnreadProvider, error) {
	fields := func(u *UnreadProvider) []any {
		return []any{&u.ConnectionID, &u.TenantID, (*storedTime)(&u.Since)}
	}
	return list(ctx, r, fields, sqlUnreadProviders, micros(since), limit)
}

// ReadingsFailing returns since when what the provider of each connection of the tenant says of itself, and that is in force,
// can't be read, of those of which the last reading has failed.
func (r Reader) ReadingsFailing(ctx context.Context, tenantID string) (map[string]time.Time, error) {
	type failing struct {
		connectionID string
		since        time.Time
	}
	all, err := list(ctx, r, func(f *failing) []any { return []any{&f.connectionID, optionalTime{&f.since}} }, sqlReadingsFailing, tenantID)
	since := map[string]time.Time{}
	for _, f := range all {
		if !f.since.IsZero() {
			since[f.connectionID] = f.since
		}
	}
	return since, err
}

// MarkUnreadNotice records that OWNERs are told of it, and reports whether that was still due.
func (tx *Tx) MarkUnreadNotice(ctx context.Context, connectionID string, since time.Time) (bool, error) {
	return tx.affected(ctx, sqlMarkUnreadNotice, connectionID, micros(since))
}
