package store

import (
	"context"
	"strings"
	"time"
)

// wordsOrNone scans words; nil: there are none.
type wordsOrNone struct{ dest *[]string }

// Scan implements sql.Scanner.
func (w wordsOrNone) Scan(v any) error {
	var text string
	if err := (nullableText{&text}).Scan(v); err != nil {
		return err
	}
	*w.dest = nil
	if words := strings.Fields(text); len(words) > 0 {
		*w.dest = words
	}
	return nil
}

// The same metadata of an address are what every row has of that address: what the provider has taken away is gone
// from what awaits a switch, too.
const (
	sqlKeepMetadata = `UPDATE connection_parameters SET discovery = $5, discovered_at = $6, asked_at = $6, ` + readingSucceeded + `
WHERE connection_id = $1 AND issuer = $3 AND metadata_url = $4 AND (pending = $2 OR metadata_url <> '')
RETURNING pending, removed_certificates`
	sqlSetCertificatesEnd = `UPDATE connection_parameters SET certificates_until = $3,
  certificate_notices = CASE WHEN certificates_until = $3 THEN certificate_notices ELSE 0 END WHERE connection_id = $1 AND pending = $2`
	sqlRemoveCertificates = `UPDATE connection_parameters SET removed_certificates = $3 WHERE connection_id = $1 AND pending = $2`
)

// KeptMetadata says for what metadata were kept: for what is in force, or what is pending.
type KeptMetadata struct {
	Pending bool
	Removed []string // fingerprints of the certificates that were taken away by hand
}

// KeepMetadata keeps what the provider of SAML says of itself, if entityID and address are still those that were read,
// and returns for what: for what is in force and what is pending where both have the address, else for the one that
// pending says. Call SetCertificatesEnd for each.
func (tx *Tx) KeepMetadata(ctx context.Context, id string, pending bool, entityID, address, text string) ([]KeptMetadata, error) {
	fields := func(k *KeptMetadata) []any { return []any{&k.Pending, wordsOrNone{&k.Removed}} }
	return list(ctx, tx.Reader, fields, sqlKeepMetadata, id, pending, entityID, address, text, micros(tx.Now))
}

// SetCertificatesEnd records when the last of the provider's certificates ends, for notices; the zero Time: it isn't
// known. Another end than before has had no notice yet.
func (tx *Tx) SetCertificatesEnd(ctx context.Context, id string, pending bool, until time.Time) error {
	return tx.run(ctx, sqlSetCertificatesEnd, id, pending, microsOrZero(until))
}

// RemoveCertificates sets the fingerprints of the certificates that were taken away by hand.
func (tx *Tx) RemoveCertificates(ctx context.Context, id string, pending bool, fingerprints []string) error {
	return tx.run(ctx, sqlRemoveCertificates, id, pending, strings.Join(fingerprints, " "))
}

// SAMLKey is a key of a connection of type saml, sealed for its place.
type SAMLKey struct {
	ID, ConnectionID string
	Purpose          SAMLPurpose
	Sealed           []byte
	CreatedAt        time.Time
}

// SAMLPurpose is what a SAMLKey is for.
type SAMLPurpose string

// The purposes: a key that did both would let signatures be made by decrypting.
const (
	SAMLSign    SAMLPurpose = "sign"    // signs requests
	SAMLDecrypt SAMLPurpose = "decrypt" // decrypts assertions
)

func samlKeyFields(k *SAMLKey) []any {
	return []any{&k.ID, &k.ConnectionID, &k.Purpose, &k.Sealed, (*storedTime)(&k.CreatedAt)}
}

const (
	sqlSAMLKey       = `SELECT id, connection_id, purpose, private_sealed, created_at FROM connection_saml_keys WHERE connection_id = $1 AND purpose = $2`
	sqlInsertSAMLKey = `INSERT INTO connection_saml_keys (id, connection_id, purpose, private_sealed, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (connection_id, purpose) DO NOTHING`
	sqlSAMLKeyPlace = `SELECT k.connection_id, c.tenant_id, k.purpose FROM connection_saml_keys k JOIN connections c ON c.id = k.connection_id WHERE k.id = $1`
	sqlDropSAMLKey  = `DELETE FROM connection_saml_keys WHERE id = $1`
)

// SAMLKey returns the connection's key for the purpose, or ErrNone.
func (r Reader) SAMLKey(ctx context.Context, connectionID string, purpose SAMLPurpose) (SAMLKey, error) {
	return one(ctx, r, samlKeyFields, sqlSAMLKey, connectionID, string(purpose))
}

// InsertSAMLKey adds the key, and reports whether its connection had none for the purpose.
func (tx *Tx) InsertSAMLKey(ctx context.Context, k SAMLKey) (bool, error) {
	return tx.affected(ctx, sqlInsertSAMLKey, k.ID, k.ConnectionID, string(k.Purpose), k.Sealed, micros(k.CreatedAt))
}

// LoseSAMLKey deletes a key that nothing can open any more, and returns to what it belonged, with the purpose as Hint,
// or ErrNone.
func (tx *Tx) LoseSAMLKey(ctx context.Context, id string) (SecretPlace, error) {
	fields := func(p *SecretPlace) []any { return []any{&p.ConnectionID, &p.TenantID, &p.Hint} }
	place, err := one(ctx, tx.Reader, fields, sqlSAMLKeyPlace, id)
	if err != nil {
		return place, err
	}
	return place, tx.run(ctx, sqlDropSAMLKey, id)
}

// EndingCertificates are those of an active connection's provider whose last one ends, about which OWNERs are told.
type EndingCertificates struct {
	ConnectionID, TenantID, ConnectionName string
	Until                                  time.Time
	Notices                                int // mails sent about this end
}

func endingFields(e *EndingCertificates) []any {
	return []any{&e.ConnectionID, &e.TenantID, &e.ConnectionName, (*storedTime)(&e.Until), &e.Notices}
}

const (
	sqlEndingCertificates = `SELECT p.connection_id, c.tenant_id, c.name, p.certificates_until, p.certificate_notices
FROM connection_parameters p JOIN connections c ON c.id = p.connection_id
WHERE NOT p.pending AND p.certificates_until > 0 AND p.certificates_until > $1 AND p.certificates_until <= $2 AND p.certificate_notices < $3
AND c.status = 'active' ORDER BY p.certificates_until, p.connection_id LIMIT $4`
	sqlMarkCertificateNotice = `UPDATE connection_parameters SET certificate_notices = $3
WHERE connection_id = $1 AND NOT pending AND certificates_until = $2 AND certificate_notices < $3`
)

// EndingCertificates returns of which active connections the last certificate ends after now and until an instant,
// about which fewer than notices mails were sent, at most limit.
func (r Reader) EndingCertificates(ctx context.Context, now, until time.Time, notices, limit int) ([]EndingCertificates, error) {
	return list(ctx, r, endingFields, sqlEndingCertificates, micros(now), micros(until), notices, limit)
}

// MarkCertificateNotice records that the notice with this number of the end is sent, and reports whether it was still
// due: not where the provider has another certificate by now.
func (tx *Tx) MarkCertificateNotice(ctx context.Context, of EndingCertificates, notice int) (bool, error) {
	return tx.affected(ctx, sqlMarkCertificateNotice, of.ConnectionID, micros(of.Until), notice)
}
