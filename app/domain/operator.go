package domain

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Held returns the verified and lapsed domains of all tenants, by name, for the operator. Errors: unavailable.
func (d *Domains) Held(ctx context.Context) ([]store.HeldDomain, error) {
	return d.db.Read().HeldDomains(ctx)
}

// Release makes a domain lapse at once, and free for the next tenant that proves it, its present holder included. The
// OWNERs of the holder get a mail. To release it again changes nothing. Errors: not_found if no tenant holds the
// domain, validation_failed, those of the decision.
func (d *Domains) Release(ctx context.Context, by doorward.Caller, name string) (doorward.Domain, error) {
	name, err := checkName(name)
	if err != nil {
		return doorward.Domain{}, err
	}
	holder, err := d.db.Read().DomainHolder(ctx, name)
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	if err != nil {
		return holder, err
	}
	return holder, d.change(ctx, by, doorward.DomainRelease, holder, func(tx *access.Tx, was doorward.Domain) error {
		released, err := tx.ReleaseDomain(ctx, was.ID)
		if err != nil || !released {
			tx.SkipEvent()
			return err
		}
		return noticeLapse(ctx, tx, was)
	})
}
