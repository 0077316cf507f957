package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/doorward/doorward"
)

// The audit trail of a tenant is a hash chain (docs/audit.md). What can be erased is covered
// through digests with random salts: when data and salt are erased, the digest stays, the chain
// remains valid, and nobody can find the data by guessing. What is about the actor (address, IP,
// browser) and the values, which are about the target, have a digest each, so that the erasure of
// an account leaves what it has changed. Older events have one digest for both.

// saltSize is in bytes: 128 random bits, as for a salt of a password (NIST SP
// 800-132, section 5.1).
const saltSize = 16

// Chain is the state of a trail.
type Chain struct {
	TenantID string // empty: the installation
	Last     int64  // number of the last event
	Head     []byte // its hash

	Anchor     int64  // number of the last event that was deleted for its age; 0 for none
	AnchorHash []byte // its hash
}

func chainFields(c *Chain) []any { return []any{&c.TenantID, &c.Last, &c.Head} }

// Genesis is the initial hash, which the first event of a chain covers. The zero is part of the
// format.
func (c Chain) Genesis() []byte {
	return hashOf([]byte("doorward audit chain 1"), []byte(c.TenantID), bigEndian(0))
}

// Start returns where a verification starts: the number before the first kept event, and the hash
// that this event covers.
func (c Chain) Start() (seq int64, hash []byte) {
	if c.Anchor > 0 {
		return c.Anchor, c.AnchorHash
	}
	return 0, c.Genesis()
}

// Link is an event with its place in the chain. Its changes are not decoded:
// someone may have tampered with them.
type Link struct {
	doorward.Event
	Hash    []byte
	salt    []byte
	digest  []byte
	changes string

	personal     string // the changes about the actor, which salt and digest cover
	valuesSalt   []byte
	valuesDigest []byte // covers changes; nil: an older event, whose digest covers changes
}

func linkFields(l *Link) []any {
	e := &l.Event
	return []any{
		&e.ID, (*storedTime)(&e.At), &e.Action, &e.Outcome, &e.ActorType, &e.ActorID, &e.ActorEmail,
		&e.Target.Type, &e.Target.ID, &e.Target.TenantID, &e.IP, &e.RequestID, &l.changes,
		nullableText{&l.personal},
		&e.Seq, &l.salt, &l.digest, &l.valuesSalt, &l.valuesDigest, &l.Hash,
	}
}

// HasOneDigest reports whether the event is an older one, which is blanked as a whole.
func (l Link) HasOneDigest() bool { return l.valuesDigest == nil }

// IsActorBlank reports whether what is about the actor was removed.
func (l Link) IsActorBlank() bool {
	return l.salt == nil && l.ActorEmail == "" && l.IP == "" && l.personal == "" && (!l.HasOneDigest() || l.changes == "")
}

// AreValuesBlank reports whether the values were removed.
func (l Link) AreValuesBlank() bool {
	if l.HasOneDigest() {
		return l.IsActorBlank()
	}
	return l.valuesSalt == nil && l.changes == ""
}

// Intact reports whether what is about the actor, and the values, are each as written, or blank.
func (l Link) Intact() bool {
	return (l.IsActorBlank() || bytes.Equal(l.digest, l.actorDigest())) && (l.AreValuesBlank() || l.HasOneDigest() || bytes.Equal(l.valuesDigest, l.digestOfValues()))
}

// actorDigest is what digest must be for the data as it is now.
func (l Link) actorDigest() []byte {
	changes := l.personal
	if l.HasOneDigest() {
		changes = l.changes
	}
	return hashOf(l.salt, []byte(l.ActorEmail), []byte(l.IP), []byte(changes))
}

// digestOfValues is what valuesDigest must be for the values as they are now.
func (l Link) digestOfValues() []byte { return hashOf(l.valuesSalt, []byte(l.changes)) }

// Follows reports whether the link's hash is that of an event with the number seq after the
// previous hash.
func (l Link) Follows(previous []byte, seq int64) bool {
	l.Seq = seq
	return bytes.Equal(l.Hash, l.Sum(previous))
}

// Sum computes the hash of the link after the previous hash.
func (l Link) Sum(previous []byte) []byte {
	e := l.Event
	parts := [][]byte{previous, bigEndian(l.Seq), []byte(e.ID), bigEndian(micros(e.At))}
	for _, text := range []string{
		string(e.Action), string(e.Outcome), string(e.ActorType), e.ActorID, e.Target.Type, e.Target.ID, e.Target.TenantID, e.RequestID,
	} {
		parts = append(parts, []byte(text))
	}
	parts = append(parts, l.digest)
	if !l.HasOneDigest() {
		parts = append(parts, l.valuesDigest)
	}
	return hashOf(parts...)
}

// hashOf is SHA-256 over the parts, each prefixed with its length, so that
// different parts can't give the same input.
func hashOf(parts ...[]byte) []byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write(bigEndian(int64(len(p))))
		h.Write(p)
	}
	return h.Sum(nil)
}

func bigEndian(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// appendLink makes the event the next link of the chain.
func (c *Chain) appendLink(e doorward.Event, personal, values []byte) Link {
	e.Seq = c.Last + 1
	salts := make([]byte, 2*saltSize)
	_, _ = rand.Read(salts) // never fails
	l := Link{Event: e, personal: string(personal), changes: string(values), salt: salts[:saltSize], valuesSalt: salts[saltSize:]}
	l.valuesDigest = l.digestOfValues()
	l.digest = l.actorDigest()
	l.Hash = l.Sum(c.Head)
	c.Last, c.Head = l.Seq, l.Hash
	return l
}

// writeEvents writes the events at the end of the transaction, tenant by tenant in a fixed
// order. Locks on chains are taken after all other locks, and only the lock on
// change_position follows, so no two transactions deadlock.
func (tx *Tx) writeEvents(ctx context.Context) error {
	slices.SortStableFunc(tx.events, func(a, b doorward.Event) int { return strings.Compare(a.Target.TenantID, b.Target.TenantID) })
	for rest := tx.events; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Target.TenantID == rest[0].Target.TenantID {
			n++
		}
		if err := tx.appendEvents(ctx, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

const (
	// sqlLockChain locks the chain, which it creates if there is none, and advances the
	// number of the last event by $2. SQL can't compute hashes, so sqlSetHead sets the head.
	sqlLockChain = `INSERT INTO audit_chains (tenant_id, origin, last, counted_day, counted) VALUES ($1, 0, $2, $3, $4)
ON CONFLICT (tenant_id) DO UPDATE SET last = audit_chains.last + $2, ` + countEvents + `
RETURNING tenant_id, last, head, timed, latest_at, disorder, ` + subscribed + `, counted, CASE WHEN $4 > 0 THEN ` + eventsAllowed + ` END`
	sqlInsertLink = `INSERT INTO events (` + eventColumns + `, seq, salt, digest, values_salt, values_digest, hash, times)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`
	sqlSetHead = `UPDATE audit_chains SET head = $1, timed = $3, latest_at = $4, disorder = $5 WHERE tenant_id = $2`
)

// lockedChain is a chain whose lock the transaction holds.
type lockedChain struct {
	Chain
	times      chainTimes
	subscribed bool            // a webhook may get its events
	counted    int64           // events of today that count for the quota
	quotas     doorward.Quotas // EventsPerDay alone
}

func lockedChainFields(t *lockedChain) []any {
	return append(append(chainFields(&t.Chain), timesFields(&t.times)...), &t.subscribed, &t.counted, &t.quotas.EventsPerDay)
}

// appendEvents adds the events, all of one tenant, to its chain, and queues them for
// webhooks. Errors: quota_exceeded.
func (tx *Tx) appendEvents(ctx context.Context, events []doorward.Event) error {
	tenantID := events[0].Target.TenantID
	counts := tx.counts[tenantID]
	chain, err := one(ctx, tx.Reader, lockedChainFields, sqlLockChain, tenantID, len(events), doorward.DayOf(tx.Now), counts)
	if err != nil {
		return err
	}
	if counts > 0 {
		if err := chain.quotas.CheckEvents(chain.counted, tx.Now); err != nil {
			return err
		}
	}
	chain.Last -= int64(len(events)) // back to the last event before these: sqlLockChain has advanced it
	if chain.Head == nil {
		chain.Head = chain.Genesis()
	}
	for _, e := range events {
		if err := tx.insertLink(ctx, &chain.Chain, e); err != nil {
			return err
		}
		chain.times.include(chain.Last, micros(e.At))
	}
	if chain.subscribed {
		if err := tx.queueDeliveries(ctx, chain.TenantID, events); err != nil {
			return err
		}
	}
	return tx.run(ctx, sqlSetHead, chain.Head, chain.TenantID, chain.times.upTo, chain.times.latest, chain.times.disorder)
}

func (tx *Tx) insertLink(ctx context.Context, chain *Chain, e doorward.Event) error {
	ofActor, ofTarget := e.SplitChanges()
	personal, err := json.Marshal(ofActor)
	if err != nil {
		return err
	}
	values, err := json.Marshal(ofTarget)
	if err != nil {
		return err
	}
	l := chain.appendLink(e, personal, values)
	return tx.run(ctx, sqlInsertLink, e.ID, micros(e.At), e.Action, e.Outcome, e.ActorType, e.ActorID, e.ActorEmail,
		e.Target.Type, e.Target.ID, e.Target.TenantID, e.IP, e.RequestID, l.changes, l.personal,
		l.Seq, l.salt, l.digest, l.valuesSalt, l.valuesDigest, l.Hash, e.RefusalCount())
}

func anchoredFields(c *Chain) []any { return append(chainFields(c), &c.Anchor, &c.AnchorHash) }

const selectChain = `SELECT tenant_id, last, head, anchor, anchor_hash FROM audit_chains `

const sqlChain = selectChain + `WHERE tenant_id = $1`

// Chain returns the state of the tenant's chain, or ErrNone.
func (r Reader) Chain(ctx context.Context, tenantID string) (Chain, error) {
	c, err := one(ctx, r, anchoredFields, sqlChain, tenantID)
	if err == nil && c.Head == nil {
		c.Head = c.Genesis()
	}
	return c, err
}

const sqlCountChained = `SELECT CAST(COALESCE(sum(last - anchor), 0) AS BIGINT) FROM audit_chains WHERE $1 OR tenant_id = $2`

// CountChained returns how many events are kept in the trail of a tenant, or with all in all trails. It trusts the
// recorded ends of the trails, and reads no event.
func (r Reader) CountChained(ctx context.Context, all bool, tenantID string) (int64, error) {
	return one(ctx, r, int64Column, sqlCountChained, all, tenantID)
}

const sqlChainIDs = `SELECT tenant_id AS id FROM audit_chains UNION SELECT tenant_id FROM events ORDER BY id`

// ChainIDs returns the tenants that have a chain or events, in order; the empty id
// is the installation.
func (r Reader) ChainIDs(ctx context.Context) ([]string, error) {
	return list(ctx, r, textField, sqlChainIDs)
}

const sqlLinks = `SELECT ` + eventColumns + `, seq, salt, digest, values_salt, values_digest, hash FROM events
WHERE tenant_id = $1 AND (seq, id) > ($2, $3) ORDER BY seq, id LIMIT $4`

// Links returns at most limit events of the tenant in the order of the chain.
// after is the number and the id of the event before; the zero Position is the
// start.
func (r Reader) Links(ctx context.Context, tenantID string, after doorward.Position, limit int) ([]Link, error) {
	if after == (doorward.Position{}) {
		after.At = math.MinInt64
	}
	return list(ctx, r, linkFields, sqlLinks, tenantID, after.At, after.ID, limit)
}
