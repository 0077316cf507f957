package connection

import (
	"context"
	"errors"

	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/member"
)

// Sweep gives the roles that edits of mappings have left due, and sweeps what is kept of providers. Several nodes may
// sweep at the same time. Errors: unavailable.
func (c *Connections) Sweep(ctx context.Context) error {
	return errors.Join(c.sweepMappings(ctx), c.Client.Sweep(ctx))
}

func (c *Connections) sweepMappings(ctx context.Context) error {
	due, err := c.db.Read().DueConnections(ctx, false)
	for _, one := range due {
		err = errors.Join(err, member.FinishMappings(ctx, c.db, c.writer, access.System, one))
	}
	return err
}
