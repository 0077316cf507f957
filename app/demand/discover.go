package demand

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// Home is how people with an address in a domain sign in. The zero Home stands for those of no tenant's domain.
type Home struct {
	ConnectionID   string // empty: by a password or a passkey alone
	ConnectionName string
	// IsRequired reports whether they sign in by the connection alone.
	IsRequired bool
}

// discoveriesPerMinute is how often one client address may ask.
const discoveriesPerMinute = 60

// Discover returns how somebody with the address signs in: by the domain alone, so that it says nothing of
// accounts. It does the same for each address, also for what is none. Errors: too_many_attempts after 60 a
// minute and client address, unavailable.
func (d *Demands) Discover(ctx context.Context, by doorward.Caller, address string) (Home, error) {
	if err := d.writer.CountWithin(ctx, access.ClientCounters("discover", by, discoveriesPerMinute, time.Minute)); err != nil {
		return Home{}, err
	}
	return d.HomeOf(ctx, address)
}

// HomeOf is Discover without a limit, for a page whose form is limited otherwise.
func (d *Demands) HomeOf(ctx context.Context, address string) (Home, error) {
	email, _ := mailaddr.Parse(address)
	_, domain, _ := strings.Cut(email, "@")
	found, err := d.db.Read().SSOHome(ctx, domain, d.db.Now())
	if errors.Is(err, store.ErrNone) || err == nil && !found.Policy.SignsIn() {
		return Home{}, nil
	}
	return Home{found.ConnectionID, found.ConnectionName, found.Policy.Mode == doorward.SSORequired}, err
}

// IsUsed reports whether connections of any tenant sign people in, so that pages speak of it.
func (d *Demands) IsUsed(ctx context.Context) (bool, error) { return d.db.Read().SSOIsUsed(ctx) }
