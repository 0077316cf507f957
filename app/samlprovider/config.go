package samlprovider

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/samlsp"
	"github.com/doorward/doorward/store"
)

// Config returns what it takes to sign in by a connection with the parameters, whose provider is kept as the text.
// Errors: validation_failed with required where the metadata aren't known yet; master_key_missing; unavailable.
func (c *Client) Config(ctx context.Context, con doorward.Connection, p doorward.ConnectionParameters, kept string) (samlsp.Config, error) {
	if p.Issuer == "" || kept == "" {
		return samlsp.Config{}, doorward.Invalid("/metadataUrl", "required", "Enter the address of the provider's metadata first, or the metadata themselves.")
	}
	said, err := Read(kept)
	if err != nil {
		return samlsp.Config{}, err
	}
	config, err := c.ours(ctx, con)
	if err != nil {
		return samlsp.Config{}, err
	}
	config.Provider = Without(said, p.RemovedCertificates)
	config.SubjectFrom, config.AddressFrom, config.GroupsFrom = p.SubjectFrom, p.EmailFrom, con.GroupsFrom
	config.MACKey, err = c.secret(ctx)
	return config, err
}

// ours returns what our own metadata say. Errors: master_key_missing, unavailable.
func (c *Client) ours(ctx context.Context, con doorward.Connection) (config samlsp.Config, err error) {
	config = samlsp.Config{ConnectionID: con.ID, EntityID: c.MetadataURL(con.ID), ACSURL: c.ACSURL(con.ID)}
	if con.SignRequests {
		config.Sign, err = c.key(ctx, con.ID, store.SAMLSign)
	}
	if err == nil && con.Encrypt {
		config.Decrypt, err = c.key(ctx, con.ID, store.SAMLDecrypt)
	}
	return config, err
}

// Metadata returns our metadata for the connection. Errors: not_found, also for one of another type and one of a tenant
// that is closed; master_key_missing; unavailable.
func (c *Client) Metadata(ctx context.Context, id string) ([]byte, error) {
	read := c.db.Read()
	con, err := read.Connection(ctx, id)
	if errors.Is(err, store.ErrNone) || err == nil && con.Type != doorward.SAML {
		return nil, doorward.Fail(doorward.CodeNotFound, "")
	}
	if err != nil {
		return nil, err
	}
	tenant, err := read.Tenant(ctx, con.TenantID)
	if errors.Is(err, store.ErrNone) || err == nil && tenant.ClosedAt != nil {
		return nil, doorward.Fail(doorward.CodeNotFound, "")
	}
	if err != nil {
		return nil, err
	}
	config, err := c.ours(ctx, con)
	if err != nil {
		return nil, err
	}
	return samlsp.Metadata(config), nil
}

// secretName is the name of the secret from which the key of request ids is made.
const secretName = "saml"

// secret returns the key of the MAC in ids of requests: the same on all nodes and after a restart. The first use in an
// installation makes it.
func (c *Client) secret(ctx context.Context) ([]byte, error) {
	if key := c.macKey.Load(); key != nil {
		return *key, nil
	}
	shared, err := c.db.Read().SharedSecret(ctx, secretName)
	if errors.Is(err, store.ErrNone) {
		fresh := []byte(rand.Text())
		err = c.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
			shared, err = tx.MakeSharedSecret(ctx, secretName, fresh)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte("ids of requests\x00"), shared...))
	key := sum[:]
	c.macKey.Store(&key)
	return key, nil
}
