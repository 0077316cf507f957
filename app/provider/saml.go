package provider

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/samlprovider"
	"github.com/doorward/doorward/internal/samlsp"
	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/store"
)

const (
	// againEvery bounds how often metadata are read because a response is signed by none of the certificates.
	againEvery = time.Minute
	// againPoll is the pause between two looks at whether another node has read them.
	againPoll = 200 * time.Millisecond
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

// ReadMetadataAgain reads a provider's metadata because a response is signed by none of its certificates
// (fault.Fault.ReadAgain): at most once a minute over all nodes, and only where they have an address. Callers that come
// while it is read wait for that. changed reports that what is kept may be another than the caller has judged by: let
// ReadySAML return it again. A provider that can't be read changes nothing, and is in the protocol: for a minute nobody
// knows whether the response is right. Errors: provider_unavailable then, unavailable.
func (c *Client) ReadMetadataAgain(ctx context.Context, conID string, isPending bool) (changed bool, err error) {
	return c.readings.do(ctx, readingOf{conID, isPending}, func() (bool, error) {
		kept, err := c.db.Read().KeptDiscovery(ctx, conID, isPending)
		if errors.Is(err, store.ErrNone) {
			return false, nil
		}
		if err != nil || kept.MetadataURL == "" {
			return false, err
		}
		now := c.db.Now()
		if now.Sub(kept.AskedAt) < againEvery {
			return c.awaitReading(ctx, kept, now)
		}
		mine, err := c.claim(ctx, kept)
		if err != nil {
			return false, err
		}
		if !mine {
			return c.awaitReading(ctx, kept, now)
		}
		_, err = c.read(ctx, kept)
		return err == nil, Unavailable(err)
	})
}

// keepSAML keeps metadata that were read, if they are still of the connection's provider. The trail says how that changes
// people are signed in: by which certificates, and where.
func (c *Client) keepSAML(ctx context.Context, kept store.KeptDiscovery, said metadata.Provider, entry *doorward.Attempt) error {
	found, err := c.db.Read().Connection(ctx, kept.ConnectionID)
	if errors.Is(err, store.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = c.writer.Do(ctx, access.System, doorward.ConnectionUpdate, Object(found), func(tx *access.Tx) error {
		before, err := trusted(ctx, tx, found.ID)
		if err == nil {
			_, err = samlprovider.Keep(ctx, tx.Tx, found.ID, kept.Pending, kept.MetadataURL, said)
		}
		if err != nil {
			return err
		}
		after, err := trusted(ctx, tx, found.ID)
		if after[0] == "" { // all of them were taken away by hand
			entry.Outcome, entry.Check, entry.Seen = doorward.AttemptRefused, fault.CheckCertificate, fault.CodeNoCertificate
		}
		if err == nil && before == after {
			tx.SkipEvent()
		}
		for i, field := range trustedFields {
			if before[i] != after[i] {
				tx.Changed(field, before[i], after[i])
			}
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

// errUnread is the cause while metadata couldn't be read.
var errUnread = errors.New("provider: the metadata could not be read within the last minute")

// awaitReading waits while another node, or a request that needs the metadata for something else, may be reading them,
// and reports whether they were read within a minute before now or since. Errors: provider_unavailable if that has failed.
func (c *Client) awaitReading(ctx context.Context, kept store.KeptDiscovery, now time.Time) (bool, error) {
	for {
		is, err := c.db.Read().KeptDiscovery(ctx, kept.ConnectionID, kept.Pending)
		if errors.Is(err, store.ErrNone) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		isOver := !is.At.Before(is.AskedAt) || c.db.Now().Sub(is.AskedAt) >= askWithin
		switch {
		case isOver && is.At.Before(is.AskedAt):
			return false, &doorward.Error{Code: doorward.CodeProviderUnavailable, RetryAfter: retryAfter, Err: errUnread}
		case isOver:
			return now.Sub(is.At) < againEvery, nil
		}
		select {
		case <-ctx.Done():
			return false, doorward.Unavailable(ctx.Err())
		case <-time.After(againPoll):
		}
	}
}
