package provider

import (
	"context"
	"errors"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/samlprovider"
	"github.com/doorward/doorward/internal/samlsp"
	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/store"
)

// ReadySAML returns what it takes to sign in by what is in force of a connection of type saml, or to test what is
// pending, whatever the connection's status. It is read from the database each time: a certificate that was taken away
// is gone on every node. Errors: not_found; validation_failed with required for what the connection doesn't have yet;
// master_key_missing; unavailable.
func (c *Client) ReadySAML(ctx context.Context, conID string, isPending bool) (config samlsp.Config, p doorward.ConnectionParameters, err error) {
	con, p, err := c.parameters(ctx, conID, isPending)
	if err == nil && con.Type != doorward.SAML {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	if err != nil {
		return config, p, err
	}
	kept, err := c.db.Read().KeptDiscovery(ctx, conID, isPending)
	if errors.Is(err, store.ErrNone) { // switched or deleted since
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	if err != nil {
		return config, p, err
	}
	config, err = c.SAML.Config(ctx, con, p, kept.Text)
	return config, p, err
}

// keepSAML keeps metadata that were read, if they are still of the connection's provider. The trail says how that changes
// people are signed in: by which certificates, and where; it was the caller who has asked for the reading.
func (c *Client) keepSAML(ctx context.Context, by doorward.Caller, kept store.KeptDiscovery, said metadata.Provider, entry *doorward.Attempt) error {
	found, err := c.db.Read().Connection(ctx, kept.ConnectionID)
	if errors.Is(err, store.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = c.writer.Do(ctx, by, doorward.ConnectionUpdate, Object(found), func(tx *access.Tx) error {
		before, err := trusted(ctx, tx, found.ID)
		if err == nil {
			_, err = samlprovider.Keep(ctx, tx.Tx, found.ID, kept.Pending, kept.MetadataURL, said)
		}
		if err != nil {
			return err
		}
		after, err := trusted(ctx, tx, found.ID)
		if after[0] == "" { // all of them were taken away by hand
			entry.Outcome, entry.Check, entry.Seen, entry.Advice = doorward.AttemptRefused, fault.CheckCertificate, fault.CodeNoCertificate, fault.AdviceTakenAway
		}
		if err == nil && before == after {
			tx.SkipEvent()
		}
		for i, field := range trustedFields {
			if before[i] != after[i] {
				tx.Changed(field, before[i], after[i])
			}
		}
		if err == nil && before[0] != "" && after[0] == "" && found.Status == doorward.ConnectionActive {
			err = tx.NotifyHolders(ctx, store.MailCertificatesGone, found.TenantID, doorward.RoleOwner)
		}
		return err
	})
	return err
}

// trustedFields are the fields of what trusted returns.
var trustedFields = [...]string{"certificates", "ssoUrl"}

// trusted returns by which certificates people are signed in by what is in force, and where.
func trusted(ctx context.Context, tx *access.Tx, conID string) (values [len(trustedFields)]string, err error) {
	is, err := tx.Connection(ctx, conID)
	if errors.Is(err, store.ErrNone) {
		return values, nil
	}
	if err != nil {
		return values, err
	}
	said, err := samlprovider.Kept(ctx, tx.Reader, conID, false, is.InForce)
	return [...]string{strings.Join(samlprovider.Fingerprints(said), " "), said.SSOURL}, err
}
