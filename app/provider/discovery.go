package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/samlprovider"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/store"
)

const (
	// askWithin bounds the wait for a provider, so that a request that makes or tests a connection has time
	// left for its answer, which comes within 12 s.
	askWithin = 10 * time.Second
	// discoveryAge is when what a provider has said of itself is read again.
	discoveryAge = 24 * time.Hour
	// keepWithin bounds what is written after a reading.
	keepWithin = 5 * time.Second
	// discoveryRetry is the pause after a fault, while what is kept still serves.
	discoveryRetry = 10 * time.Minute
	// discoveriesAtOnce bounds the requests of the daily reading.
	discoveriesAtOnce = 8
	// dueEvery is the pause between two looks at what is due.
	dueEvery = time.Minute
	// A tenant's OWNERs have providers asked maxAsked times within askedWindow, over all nodes, by making,
	// changing and testing connections, so that nobody searches the network by them, or floods somebody.
	maxAsked    = 300
	askedWindow = time.Minute
)

// countAsked counts a request to a provider for the tenant. Errors: too_many_attempts, unavailable.
func (c *Client) countAsked(ctx context.Context, tenantID string) error {
	return c.writer.CountWithin(ctx, []access.Counter{{Bucket: "discover:" + tenantID, Limit: maxAsked, Window: askedWindow}})
}

// Look asks an issuer for the tenant what it says of itself, unless there are faults already, or the issuer
// isn't known yet. It returns the faults of the field /issuer. Errors: too_many_attempts, those of ctx.
func (c *Client) Look(ctx context.Context, tenantID, issuer string, faults []doorward.FieldError) (*oidcrp.Discovery, []doorward.FieldError, error) {
	if issuer == "" || len(faults) > 0 {
		return nil, nil, nil
	}
	if err := c.countAsked(ctx, tenantID); err != nil {
		return nil, nil, err
	}
	said, err := c.discover(ctx, issuer)
	var f *oidcrp.Fault
	switch {
	case err == nil:
		return &said, nil, nil
	case ctx.Err() != nil:
		return nil, nil, doorward.Unavailable(ctx.Err())
	case errors.As(err, &f):
		return nil, []doorward.FieldError{IssuerFault(f)}, nil
	}
	return nil, nil, err
}

// discover asks the issuer, within askWithin. Errors: *oidcrp.Fault.
func (c *Client) discover(ctx context.Context, issuer string) (oidcrp.Discovery, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return c.rp.Discover(ctx, issuer)
}

// LookSAML is Look for metadata: it reads those at an address, or, where there is none, in the text, of the provider with
// the entityID; empty: the only one there. It returns the faults of the fields /metadataUrl or /metadata, and /entityId.
// Errors: too_many_attempts, those of ctx.
func (c *Client) LookSAML(ctx context.Context, tenantID, address, text, entityID string) (*metadata.Provider, []doorward.FieldError, error) {
	read := func() (metadata.Provider, error) { return c.SAML.Parse(text, entityID) }
	if address != "" {
		if err := c.countAsked(ctx, tenantID); err != nil {
			return nil, nil, err
		}
		read = func() (metadata.Provider, error) { return c.fetch(ctx, address, entityID) }
	}
	said, err := read()
	if err == nil {
		return &said, nil, nil
	}
	f, isFault := errors.AsType[*fault.Fault](err)
	switch {
	case ctx.Err() != nil:
		return nil, nil, doorward.Unavailable(ctx.Err())
	case isFault:
		return nil, []doorward.FieldError{samlprovider.FieldFault(f, address != "")}, nil
	}
	return nil, nil, err
}

// fetch reads metadata at an address, within askWithin. Errors: *fault.Fault.
func (c *Client) fetch(ctx context.Context, address, entityID string) (metadata.Provider, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return c.SAML.Fetch(ctx, address, entityID)
}

// Keep keeps what the issuer has said, if it is still that of the connection.
func Keep(ctx context.Context, tx *store.Tx, id string, isPending bool, issuer string, said oidcrp.Discovery) error {
	text, err := json.Marshal(said)
	if err != nil {
		return err
	}
	_, err = tx.KeepDiscovery(ctx, id, isPending, issuer, string(text))
	return err
}

// said is what a provider says of itself, by the protocol of its connection.
type said struct {
	oidc oidcrp.Discovery
	saml metadata.Provider
}

// read asks what the provider says of itself now, keeps it, and lists that in the protocol. The trail and the protocol name
// the caller and the request, of which there are none where Doorward reads it by itself. A fault changes nothing. Errors:
// *oidcrp.Fault, *fault.Fault, unavailable; those of access.Do for a caller who may not change the connection.
func (c *Client) read(ctx context.Context, by doorward.Caller, kept store.KeptDiscovery) (s said, err error) {
	entry := doorward.Attempt{ConnectionID: kept.ConnectionID, Kind: doorward.AttemptMetadata, Outcome: doorward.AttemptDone}
	if by.RequestID != "" {
		entry.RequestIDs = []string{by.RequestID}
	}
	if kept.Type == doorward.SAML {
		s.saml, err = c.fetch(ctx, kept.MetadataURL, kept.Issuer)
	} else {
		s.oidc, err = c.discover(ctx, kept.Issuer)
	}
	// What was read is kept, also if the person for whom it was has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepWithin)
	defer cancel()
	if isFault(err) {
		entry.Outcome = doorward.AttemptUnavailable
		entry.Seen, entry.Advice = faultSeen(err)
		c.Record(ctx, entry)
		return s, cmp.Or(c.unread(ctx, kept), err)
	}
	switch {
	case err != nil:
		return s, err
	case kept.Type == doorward.SAML:
		err = c.keepSAML(ctx, by, kept, s.saml, &entry)
	default:
		err = c.writer.Upkeep(ctx, func(tx *store.Tx) error {
			return Keep(ctx, tx, kept.ConnectionID, kept.Pending, kept.Issuer, s.oidc)
		})
	}
	if err == nil {
		c.Record(ctx, entry)
	}
	return s, err
}

// discovered returns what the provider says of itself: as it is kept, or read again once that is a day old.
// While it can't be read, what is kept serves. Errors: provider_unavailable if nothing is kept.
func (c *Client) discovered(ctx context.Context, id string, isPending bool) (said oidcrp.Discovery, err error) {
	kept, err := c.db.Read().KeptDiscovery(ctx, id, isPending)
	if err != nil {
		return said, err
	}
	if kept.Text == "" {
		fresh, err := c.read(ctx, access.System, kept)
		return fresh.oidc, Unavailable(err)
	}
	now := c.db.Now()
	if now.Sub(kept.At) >= discoveryAge && now.Sub(kept.AskedAt) >= discoveryRetry {
		if mine, err := c.claim(ctx, kept); err == nil && mine {
			if fresh, err := c.read(ctx, access.System, kept); err == nil {
				return fresh.oidc, nil
			}
		}
	}
	if err := json.Unmarshal([]byte(kept.Text), &said); err != nil {
		return said, doorward.Unavailable(err)
	}
	return said, nil
}

// Discovery is discovered for what is in force.
func (c *Client) Discovery(ctx context.Context, id string) (oidcrp.Discovery, error) {
	return c.discovered(ctx, id, false)
}

// claim reports whether nobody else has begun to read it since it was due.
func (c *Client) claim(ctx context.Context, kept store.KeptDiscovery) (mine bool, err error) {
	err = c.writer.Upkeep(ctx, func(tx *store.Tx) error {
		mine, err = tx.AskDiscovery(ctx, kept)
		return err
	})
	return mine, err
}

// retryAfter is how long a browser waits before it asks a provider again that was out of reach.
const retryAfter = time.Minute

// Unavailable turns a fault of the provider into provider_unavailable: a fault is no refusal.
func Unavailable(err error) error {
	if !isFault(err) {
		return err
	}
	return &doorward.Error{Code: doorward.CodeProviderUnavailable, RetryAfter: retryAfter, Err: err}
}

// unavailableTo is Unavailable for those who look after the connection: it says what was seen.
func unavailableTo(err error) error {
	if !isFault(err) {
		return err
	}
	seen := fieldFault(err)
	return &doorward.Error{
		Code: doorward.CodeProviderUnavailable, Detail: seen.Message, Fields: []doorward.FieldError{seen}, RetryAfter: retryAfter, Err: err,
	}
}

// Run reads daily what the providers of active connections say of themselves, until ctx ends. Of several
// nodes one reads each.
func (c *Client) Run(ctx context.Context) {
	tick := time.NewTicker(dueEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := c.ReadDue(ctx); err != nil && ctx.Err() == nil {
			c.warn(err)
		}
	}
}

// ReadDue reads what is due once, discoveriesAtOnce at a time. Faults of providers are in their protocols;
// errors are those of the database.
func (c *Client) ReadDue(ctx context.Context) error {
	if c.db.Clock().Wrong() {
		return nil
	}
	for {
		due, err := c.due(ctx)
		if err != nil || len(due) == 0 {
			return err
		}
		if err := c.readAll(ctx, due); err != nil {
			return err
		}
	}
}

// due returns what is to be read by now: each day, and sooner after a reading that has failed.
func (c *Client) due(ctx context.Context) ([]store.KeptDiscovery, error) {
	now := c.db.Now()
	daily, err := c.db.Read().DiscoveryDue(ctx, now.Add(-discoveryAge), discoveriesAtOnce)
	if err != nil || len(daily) > 0 {
		return daily, err
	}
	return c.db.Read().DiscoveryRetriesDue(ctx, now, discoveriesAtOnce)
}

func (c *Client) readAll(ctx context.Context, due []store.KeptDiscovery) error {
	errs := make([]error, len(due))
	var reading sync.WaitGroup
	for i, kept := range due {
		reading.Go(func() {
			mine, err := c.claim(ctx, kept)
			if err == nil && mine {
				_, err = c.read(ctx, access.System, kept)
			}
			if !isFault(err) {
				errs[i] = err
			}
		})
	}
	reading.Wait()
	return errors.Join(errs...)
}
