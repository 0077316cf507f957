package provider

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/samlprovider"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/internal/samlsp/metadata"
)

// Examined is what a connection's provider answers now.
type Examined struct {
	// Document and Keys are the faults of the provider's document and of its keys; nil: in order. Of keys
	// there is no word while the document has a fault.
	Document, Keys *oidcrp.Fault
	KeyCount       int // of keys that verify signatures

	// Of type saml: the fault of the metadata at their address, or the provider that they describe, or, where there is no
	// address, the one that is kept; without the certificates that were taken away by hand.
	Metadata *fault.Fault
	SAML     metadata.Provider
	Removed  int // certificates that were taken away
}

// Advice returns a sentence on the fault of a provider's document or metadata, for operators.
func (e Examined) Advice() string {
	switch {
	case e.Document != nil:
		return IssuerFault(e.Document).Message
	case e.Metadata != nil:
		return samlprovider.FieldFault(e.Metadata, true).Message
	}
	return ""
}

// Examine asks the provider of the connection, and writes nothing, neither to what is kept of it nor to the
// protocol. Errors: those of ctx, unavailable.
func (c *Client) Examine(ctx context.Context, of doorward.Connection) (e Examined, err error) {
	if of.Type == doorward.SAML {
		return c.examineSAML(ctx, of)
	}
	said, err := c.discover(ctx, of.InForce.Issuer)
	if e.Document, err = faultOf(ctx, err); e.Document != nil || err != nil {
		return e, err
	}
	e.KeyCount, err = c.rp.CountKeys(ctx, said)
	e.Keys, err = faultOf(ctx, err)
	return e, err
}

func (c *Client) examineSAML(ctx context.Context, of doorward.Connection) (e Examined, err error) {
	if of.InForce.MetadataURL == "" {
		kept, unread := c.db.Read().KeptDiscovery(ctx, of.ID, false)
		if unread != nil {
			return e, unread
		}
		e.SAML, err = samlprovider.Read(kept.Text)
	} else {
		e.SAML, err = c.fetch(ctx, of.InForce.MetadataURL, of.InForce.Issuer)
	}
	if f, isFault := errors.AsType[*fault.Fault](err); isFault && ctx.Err() == nil {
		e.Metadata, err = f, nil
	}
	all := len(e.SAML.Certificates)
	e.SAML = samlprovider.Without(e.SAML, of.InForce.RemovedCertificates)
	e.Removed = all - len(e.SAML.Certificates)
	return e, err
}

// faultOf splits what oidcrp returns: a fault of the provider, or that the time is over.
func faultOf(ctx context.Context, err error) (*oidcrp.Fault, error) {
	if fault, isFault := errors.AsType[*oidcrp.Fault](err); isFault && ctx.Err() == nil {
		return fault, nil
	}
	return nil, err
}

// Secrets returns the client secrets of the tenant's connections by connection, the newest first.
func (c *Client) Secrets(ctx context.Context, tenantID string) (map[string][]doorward.ConnectionSecret, error) {
	all, err := c.db.Read().ConnectionSecretsOf(ctx, tenantID)
	of := map[string][]doorward.ConnectionSecret{}
	for _, one := range all {
		of[one.ConnectionID] = append(of[one.ConnectionID], one.ConnectionSecret)
	}
	return of, err
}
