package connection

import (
	"context"
	"errors"
)

// Sweep tells OWNERs of client secrets that end soon, and sweeps what is kept of providers. Several nodes may sweep at
// the same time. Errors: unavailable.
func (c *Connections) Sweep(ctx context.Context) error {
	return errors.Join(c.sweepSecrets(ctx), c.Client.Sweep(ctx))
}
