package store

import (
	"context"
	"time"
)

// Vitals are figures of the installation, for metrics and health.
type Vitals struct {
	Position    int64 // the number of the newest change
	Nodes       int   // registered, including killed ones for a while
	MailsQueued int
	OldestMail  time.Time // when the oldest queued mail was queued; the Unix epoch without any
	InboxRows   int       // all, due or not
	InboxDue    time.Time // when the first row is or was due; the Unix epoch without any
	InboxAside  int       // rows that could not be recorded and are retried later
	LastBackup  time.Time // when the newest backup was completed; the Unix epoch without any
	Deliveries  int64     // pending deliveries to webhooks
	// OldestDelivery is when the oldest pending delivery was queued, DeliveryDue when the first one is or was due;
	// the Unix epoch without any.
	OldestDelivery, DeliveryDue time.Time
	Paused                      int // 1 while changes are paused, else 0
	MailPauses, WebhookPauses   int // how many pauses of the queues there are
	// Of active connections: how many providers of SAML have a last certificate that ends within a week, or has ended; and how
	// many couldn't be read for a day.
	CertificatesEnd, ProvidersUnread int
}

func vitalsFields(v *Vitals) []any {
	return []any{
		&v.Position, &v.Nodes, &v.MailsQueued, (*storedTime)(&v.OldestMail),
		&v.InboxRows, (*storedTime)(&v.InboxDue), &v.InboxAside, (*storedTime)(&v.LastBackup), &v.Deliveries,
		(*storedTime)(&v.OldestDelivery), (*storedTime)(&v.DeliveryDue), &v.Paused, &v.MailPauses, &v.WebhookPauses,
		&v.CertificatesEnd, &v.ProvidersUnread,
	}
}

// A digest waits for the end of its hour (app/mail, noticeWindow) before it is to be sent. $1 is now.
const (
	toBeSent   = `state = 'queued' AND (kind <> 'digest' OR tries > 0 OR next_at <= $1)`
	waitsSince = `created_at + CASE kind WHEN 'digest' THEN 3600000000 ELSE 0 END`
)

const sqlVitals = `SELECT (SELECT last FROM change_position WHERE id = 1), (SELECT count(*) FROM nodes),
  (SELECT count(*) FROM mails WHERE ` + toBeSent + `), (SELECT coalesce(min(` + waitsSince + `), 0) FROM mails WHERE ` + toBeSent + `),
  (SELECT count(*) FROM inbox), (SELECT coalesce(min(due_at), 0) FROM inbox), (SELECT count(*) FROM inbox WHERE aside > 0),
  (SELECT coalesce(max(completed_at), 0) FROM backups),
  (SELECT count(*) FROM webhook_deliveries WHERE state = 'pending'),
  (SELECT coalesce(min((SELECT min(d.created_at) FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.state = 'pending')), 0) FROM webhooks w),
  (SELECT coalesce(min(next_at), 0) FROM webhook_deliveries WHERE state = 'pending'), (SELECT count(*) FROM maintenance),
  (SELECT count(*) FROM queue_pauses WHERE queue = 'mail'), (SELECT count(*) FROM queue_pauses WHERE queue = 'webhook'),
  (SELECT count(*) FROM connection_parameters p WHERE NOT p.pending AND p.certificates_until > 0 AND p.certificates_until <= $1 + CAST(604800000000 AS BIGINT)
    AND (SELECT c.status FROM connections c WHERE c.id = p.connection_id) = 'active'),
  (SELECT count(*) FROM connection_parameters p WHERE p.retry_at > 0 AND NOT p.pending AND p.failing_since > 0 AND p.failing_since <= $1 - CAST(86400000000 AS BIGINT)
    AND (SELECT c.status FROM connections c WHERE c.id = p.connection_id) = 'active')`

// Vitals returns the figures at now.
func (r Reader) Vitals(ctx context.Context, now time.Time) (Vitals, error) {
	return one(ctx, r, vitalsFields, sqlVitals, micros(now))
}

// Pool has the statistics of a connection pool.
type Pool struct {
	Name       string // read and write, or shared where both are one
	Max        int
	Busy, Idle int
	Waits      int64 // callers that found no free connection, since the start
	Waited     time.Duration
}

// Pools returns the pools of connections to the database.
func (db *DB) Pools() []Pool { return db.pools() }
