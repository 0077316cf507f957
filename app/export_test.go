package app

import (
	"context"
	"time"
)

// SweepNames returns the names of all sweeps.
func (a *App) SweepNames() (all []string) {
	for _, s := range a.sweeps() {
		all = append(all, s.name)
	}
	return all
}

// TakeTurn is takeTurn.
func (a *App) TakeTurn(ctx context.Context, left map[string]time.Time) bool {
	return a.takeTurn(ctx, left)
}

// SweepNode is sweepNode.
func (a *App) SweepNode(ctx context.Context) error { return a.sweepNode(ctx) }

// ForgetAddresses is forgetAddresses.
func (a *App) ForgetAddresses(ctx context.Context) error { return a.forgetAddresses(ctx) }
