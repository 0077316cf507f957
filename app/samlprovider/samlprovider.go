// Package samlprovider is what Doorward is to providers of SAML: it reads their metadata, keeps the keys by which it
// signs requests and decrypts assertions, and says what the protocol needs (samlsp.Config). Package provider, which has
// the protocols of connections, calls it; package connection writes what it has read.
//
//	said, err := providers.Fetch(ctx, address, entityID)            // or Parse; kept as Text(said)
//	config, err := providers.Config(ctx, connection, parameters, kept)
//
// A certificate that was taken away by hand is in no Config, whatever the metadata say.
//
//	samlprovider.go  metadata, addresses
//	kept.go          what is kept of them, certificates that are taken away by hand
//	fault.go         what is wrong with metadata, and what to do
//	config.go        what the protocol needs
//	key.go           our keys
package samlprovider

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/internal/guard"
	"github.com/doorward/doorward/internal/oidcrp/cause"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/store"
)

// Client is what Doorward is to the providers. Make it with New. It is safe for use by several goroutines.
type Client struct {
	writer *access.Writer
	db     *store.DB
	master *masterkey.Keys
	base   string
	reader *metadata.Client

	macKey atomic.Pointer[[]byte]
}

// New returns the client, which makes its requests by guarded. base is the address of Doorward, without a slash at its
// end.
func New(writer *access.Writer, db *store.DB, master *masterkey.Keys, base string, guarded *http.Client) *Client {
	why := func(err error) (string, string) {
		of, seen := cause.Of(err)
		return string(of), seen
	}
	return &Client{
		writer: writer, db: db, master: master, base: base,
		reader: metadata.New(guarded, db.Now, metadata.WithRefused(guard.IsRefused), metadata.WithCause(why)),
	}
}

// MetadataURL is where the provider reads our metadata for the connection. It is our entityID there, too.
func (c *Client) MetadataURL(id string) string { return c.address(id, "metadata") }

// ACSURL is where the provider has browsers send its responses.
func (c *Client) ACSURL(id string) string { return c.address(id, "acs") }

func (c *Client) address(id, what string) string {
	return c.base + "/api/v2/auth/sso/" + id + "/" + what
}

// Fetch reads the metadata at an address, of the provider with the entityID; empty: the only one there. The context
// bounds the time. Errors: *fault.Fault.
func (c *Client) Fetch(ctx context.Context, address, entityID string) (metadata.Provider, error) {
	return c.reader.Fetch(ctx, address, entityID)
}

// Parse is Fetch for a text.
func (c *Client) Parse(text, entityID string) (metadata.Provider, error) {
	return metadata.Parse([]byte(text), entityID, c.db.Now())
}

// Text returns what was read as it is kept.
func Text(p metadata.Provider) (string, error) {
	text, err := json.Marshal(p)
	return string(text), err
}

// Read returns what is kept as Text; the zero Provider where nothing is. Errors: unavailable.
func Read(text string) (p metadata.Provider, err error) {
	if text == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, doorward.Unavailable(err)
	}
	return p, nil
}

// Without returns the provider without the certificates that were taken away by hand.
func Without(p metadata.Provider, removed []string) metadata.Provider {
	p.Certificates = slices.DeleteFunc(slices.Clone(p.Certificates), func(c metadata.Certificate) bool {
		return slices.Contains(removed, c.Fingerprint)
	})
	return p
}

// Until returns when the last of the provider's certificates ends; the zero Time: it has none.
func Until(p metadata.Provider) (until time.Time) {
	for _, c := range p.Certificates {
		if c.Until.After(until) {
			until = c.Until
		}
	}
	return until
}

// Keep keeps what was read of a connection's provider, at an address or, where that is empty, as a text: for what is
// pending or in force, and for both where both have the address. It reports whether the entityID is still that of the
// connection.
func Keep(ctx context.Context, tx *store.Tx, id string, isPending bool, address string, said metadata.Provider) (bool, error) {
	text, err := Text(said)
	if err != nil {
		return false, err
	}
	all, err := tx.KeepMetadata(ctx, id, isPending, said.EntityID, address, text)
	for _, kept := range all {
		if err == nil {
			err = tx.SetCertificatesEnd(ctx, id, kept.Pending, Until(Without(said, kept.Removed)))
		}
	}
	return len(all) > 0, err
}
