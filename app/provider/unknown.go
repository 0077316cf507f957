package provider

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/samlprovider"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/store"
)

const (
	// AgainSoon is the pause between two readings for unknown certificates, whichever they are.
	AgainSoon = 3 * time.Second
	// againLate is how late metadata may have a certificate that signs already: a response waits that long for them. With
	// the readings it takes less than the 12 s that acs has.
	againLate = 2 * AgainSoon
	// After againFew readings for the same certificate the pause is againSame: a provider whose metadata lack its
	// certificate isn't asked for each sign-in.
	againFew  = 3
	againSame = time.Minute
	// againPoll is the pause between two looks at whether another node has read them.
	againPoll = 200 * time.Millisecond
	// againWaiting is how many responses wait on a node; of one connection, and of one client address, fewer: see waiting.
	againWaiting = 256
)

// errUnread is the cause while metadata couldn't be read.
var errUnread = errors.New("provider: the last reading of the metadata has failed")

// errWaiting is the cause where a response can't wait for a reading, or not for long enough.
var errWaiting = errors.New("provider: too many responses by unknown certificates wait for metadata, or for too long")

// Unknown is a response that none of the connection's certificates has signed.
type Unknown struct {
	ConnectionID string
	Pending      bool
	Signer       string // the fingerprint of the certificate that it names; empty: none
	Client       string // the network of the client that has sent it
	Arrived      time.Time
	Judged       time.Time // when it was judged last
}

// ReadMetadataAgain reads a provider's metadata because of such a response, where they have an address, and reports
// whether others may be kept than it was judged by: let ReadySAML return them again. Readings for anything else, such as
// tests, don't count here. Over all nodes there are AgainSoon between two such readings, and a response waits for the next,
// until one has begun againLate after it came. But after three for the same certificate the next comes no sooner than
// after a minute, and false comes at once until then.
// A provider that can't be read changes nothing, and is in the protocol: nobody knows whether the response is right.
// Errors: provider_unavailable then, at once while that is what the last reading said, and where too many wait; unavailable.
func (c *Client) ReadMetadataAgain(ctx context.Context, u Unknown) (changed bool, err error) {
	leave, ok := c.waiting.enter(u.ConnectionID, u.Client)
	if !ok {
		return false, unreadable(errWaiting)
	}
	defer leave()
	changed, err = c.readings.do(ctx, readingOf{u.ConnectionID, u.Pending, u.Signer}, func() (bool, error) { return c.readFor(ctx, u) })
	if errors.Is(err, context.DeadlineExceeded) {
		err = unreadable(errWaiting)
	}
	return changed, err
}

func unreadable(why error) error {
	return &doorward.Error{Code: doorward.CodeProviderUnavailable, RetryAfter: retryAfter, Err: why}
}

func (c *Client) readFor(ctx context.Context, u Unknown) (bool, error) {
	for {
		kept, err := c.db.Read().KeptDiscovery(ctx, u.ConnectionID, u.Pending)
		if errors.Is(err, store.ErrNone) || err == nil && kept.MetadataURL == "" {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if isNew, err := u.isAnsweredBy(kept); isNew || err != nil {
			return isNew, err
		}
		now, due := c.db.Now(), nextFor(kept.Unknown, u.Signer)
		hasFailed := kept.FailedAt.After(kept.At)
		isOver := true
		switch {
		case hasFailed && (!kept.FailedAt.Before(u.Judged) || now.Before(due)):
			return false, unreadable(errUnread)
		case isBeingRead(kept, now):
			err = pause(ctx)
		case !kept.Unknown.At.Before(u.Arrived.Add(againLate)):
			return false, nil
		case !now.Before(due):
			if isMine, changed, err := c.readOnce(ctx, kept, u.Signer); isMine || err != nil {
				return changed, err
			}
			err = pause(ctx)
		case due.Sub(now) > AgainSoon:
			return false, nil // it was read for the same certificate, often enough
		default:
			isOver, err = c.waitUntil(ctx, due)
		}
		if !isOver || err != nil {
			return false, err
		}
	}
}

// isAnsweredBy reports whether what is kept may be newer than what the response was judged by: it was kept since, or has
// the certificate.
func (u Unknown) isAnsweredBy(kept store.KeptDiscovery) (bool, error) {
	said, err := samlprovider.Read(kept.Text)
	has := slices.ContainsFunc(said.Certificates, func(c metadata.Certificate) bool { return c.Fingerprint == u.Signer })
	return has || !kept.At.Before(u.Judged), err
}

// nextFor returns when metadata may be read because of a response that names the signer.
func nextFor(last store.UnknownReading, signer string) time.Time {
	switch {
	case last.At.IsZero():
		return last.At
	case signer != "" && signer == last.Signer && last.Count >= againFew:
		return last.At.Add(againSame)
	}
	return last.At.Add(AgainSoon)
}

// isBeingRead reports whether a node reads it for an unknown certificate now, as far as is known.
func isBeingRead(kept store.KeptDiscovery, now time.Time) bool {
	since := kept.Unknown.At
	return kept.At.Before(since) && kept.FailedAt.Before(since) && now.Sub(since) < askWithin
}

// readOnce reads the metadata unless another node does, which isMine says. Who has asked may go away meanwhile: others wait
// for it.
func (c *Client) readOnce(ctx context.Context, kept store.KeptDiscovery, signer string) (isMine, changed bool, err error) {
	err = c.writer.Upkeep(ctx, func(tx *store.Tx) error {
		isMine, err = tx.AskForUnknown(ctx, kept, signer)
		return err
	})
	if err != nil || !isMine {
		return false, false, err
	}
	reading := context.WithoutCancel(ctx)
	if end, isBounded := ctx.Deadline(); isBounded {
		until, cancel := context.WithDeadline(reading, end)
		defer cancel()
		reading = until
	}
	_, err = c.read(reading, access.System, kept)
	return true, err == nil, Unavailable(err)
}

// waitUntil waits for an instant of the database's clock, and reports whether it has come: not if that clock stands still.
func (c *Client) waitUntil(ctx context.Context, due time.Time) (bool, error) {
	for most := time.Now().Add(AgainSoon + againPoll); c.db.Now().Before(due); {
		if err := pause(ctx); err != nil || time.Now().After(most) {
			return false, err
		}
	}
	return true, nil
}

// pause waits for againPoll. Errors: those of ctx.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return doorward.Unavailable(ctx.Err())
	case <-time.After(againPoll):
		return nil
	}
}
