package provider

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/oidcrp"
)

// Examined is what a connection's provider answers now.
type Examined struct {
	// Document and Keys are the faults of the provider's document and of its keys; nil: in order. Of keys
	// there is no word while the document has a fault.
	Document, Keys *oidcrp.Fault
	KeyCount       int // of keys that verify signatures
}

// Advice returns a sentence on the fault of a provider's document, for operators.
func (e Examined) Advice() string {
	if e.Document == nil {
		return ""
	}
	return IssuerFault(e.Document).Message
}

// Examine asks the provider of the connection, and writes nothing, neither to what is kept of it nor to the
// protocol. Errors: those of ctx.
func (c *Client) Examine(ctx context.Context, of doorward.Connection) (e Examined, err error) {
	said, err := c.discover(ctx, of.InForce.Issuer)
	if e.Document, err = faultOf(ctx, err); e.Document != nil || err != nil {
		return e, err
	}
	e.KeyCount, err = c.rp.CountKeys(ctx, said)
	e.Keys, err = faultOf(ctx, err)
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
