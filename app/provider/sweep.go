package provider

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// attemptsKept is how long entries of protocols are kept.
const attemptsKept = 30 * day

// Sweep makes the next keys, tells OWNERs of client secrets, and of certificates of providers, that end soon, and of
// providers that were out of reach for long, and deletes old entries of protocols, tests, used states and assertions.
// Several nodes may sweep at the same time. Errors: unavailable.
func (c *Client) Sweep(ctx context.Context) error {
	return errors.Join(
		c.sweepKeys(ctx),
		c.sweepSecrets(ctx),
		c.sweepCertificates(ctx),
		c.sweepUnread(ctx),
		c.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
			return tx.DeleteOldAttempts(ctx, tx.Now.Add(-attemptsKept), limit)
		}),
		c.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
			return tx.DeleteOldTests(ctx, tx.Now.Add(-doorward.TestsKept), limit)
		}),
		c.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) { return tx.DeleteUsedStates(ctx, limit) }),
		c.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) { return tx.DeleteSAMLAssertions(ctx, limit) }),
	)
}
