package store

import (
	"context"
	"errors"
	"time"
)

// Maintenance says whether changes are paused.
type Maintenance struct {
	On     bool
	Since  time.Time
	Reason string // may be empty
}

func maintenanceFields(m *Maintenance) []any {
	m.On = true
	return []any{(*storedTime)(&m.Since), &m.Reason}
}

const sqlMaintenance = `SELECT since, reason FROM maintenance WHERE id = 1`

// Maintenance returns the current state.
func (r Reader) Maintenance(ctx context.Context) (Maintenance, error) {
	m, err := one(ctx, r, maintenanceFields, sqlMaintenance)
	if errors.Is(err, ErrNone) {
		return Maintenance{}, nil
	}
	return m, err
}

const sqlStartMaintenance = `INSERT INTO maintenance (id, since, reason) VALUES (1, $1, $2)
ON CONFLICT (id) DO UPDATE SET reason = excluded.reason`

// StartMaintenance pauses changes; while they are paused, it replaces the reason.
func (tx *Tx) StartMaintenance(ctx context.Context, reason string) error {
	tx.announce(ChangeMaintenance, "")
	return tx.run(ctx, sqlStartMaintenance, micros(tx.Now), reason)
}

const sqlEndMaintenance = `DELETE FROM maintenance WHERE id = 1`

// EndMaintenance resumes changes, and reports whether they were paused.
func (tx *Tx) EndMaintenance(ctx context.Context) (bool, error) {
	tx.announce(ChangeMaintenance, "")
	return tx.affected(ctx, sqlEndMaintenance)
}
