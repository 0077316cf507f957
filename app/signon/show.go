package signon

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// Shown is a connection as the page shows it at which a sign-in begins.
type Shown struct {
	Connection doorward.Connection
	Tenant     doorward.Tenant
}

// Show returns a connection that signs people in. Errors: not_found for every other, unavailable.
func (s *SignOn) Show(ctx context.Context, conID string) (Shown, error) {
	c, err := s.connection(ctx, conID)
	if err != nil {
		return Shown{}, err
	}
	signsIn, err := s.signsIn(ctx, s.db.Read(), c)
	if err == nil && !signsIn {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	if err != nil {
		return Shown{}, err
	}
	tenant, err := s.db.Read().Tenant(ctx, c.TenantID)
	return Shown{c, tenant}, err
}

// SignsIn reports whether the connection signs people in now: it is active, and so is its tenant's policy. Errors:
// unavailable.
func (s *SignOn) SignsIn(ctx context.Context, of doorward.Connection) (bool, error) {
	return s.signsIn(ctx, s.db.Read(), of)
}

// Names returns the names of the connections that vouch for the sessions, by their ids. Errors: unavailable.
func (s *SignOn) Names(ctx context.Context, sessions []doorward.Session) (map[doorward.Issuer]string, error) {
	names := map[doorward.Issuer]string{}
	for _, session := range sessions {
		if _, isKnown := names[session.Issuer]; isKnown || session.Issuer == doorward.OwnIssuer {
			continue
		}
		c, err := s.db.Read().Connection(ctx, string(session.Issuer))
		if err != nil && !errors.Is(err, store.ErrNone) { // deleted since, with the session
			return nil, err
		}
		names[session.Issuer] = c.Name
	}
	return names, nil
}
