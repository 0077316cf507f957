package demand

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/store"
)

// Readiness says whom a demand for sign-on would shut out.
type Readiness struct {
	Members  int // active ones
	Recently int // of these, who have signed in by an active connection within 30 days
	Guests   int // whom the demand doesn't cover
	// Never are those who would be shut out and have never signed in by an active connection, in the order of
	// their ids, at most 100. NeverCount is how many there are.
	Never      []Unready
	NeverCount int
	Owners     []Owner // at most 100
}

// Unready is a member who would be shut out, unless the sign-on works for them.
type Unready struct {
	UserID, Email string
	Why           Why
}

// Why says what is known of how an Unready member could sign in.
type Why string

// The reasons.
const (
	NotYet       Why = "not_yet"       // they can by the connection of their domain, and have not done so
	DomainLapsed Why = "domain_lapsed" // the domain has lapsed, so nobody is joined by it
	NoConnection Why = "no_connection" // the domain has no active connection
	Guest        Why = "guest"         // guests are refused
)

// Owner is an OWNER, and whether they get in without the sign-on.
type Owner struct {
	UserID     string
	HasWayBack bool
}

// Limits of Readiness.
const (
	shownMembers = 100
	recently     = 30 * 24 * time.Hour
	readAtOnce   = 500
)

// Readiness returns whom a demand in the caller's tenant would shut out, with its present word on guests. It
// asks decide.SignOn, as a sign-in by a password does, and writes nothing. It reads all members. Errors:
// unavailable.
func (d *Demands) Readiness(ctx context.Context, by doorward.Caller) (r Readiness, err error) {
	now := d.db.Now()
	err = d.db.Snapshot(ctx, func(read store.Reader) error {
		policy, err := read.SSOPolicy(ctx, by.TenantID, now)
		if err != nil {
			return err
		}
		policy.Mode = doorward.SSORequired
		return eachMember(ctx, read, by.TenantID, func(m doorward.SSOMember) { r.add(policy, m, now) })
	})
	return r, err
}

func eachMember(ctx context.Context, read store.Reader, tenantID string, fn func(doorward.SSOMember)) error {
	for after := ""; ; {
		members, err := read.SSOMembers(ctx, tenantID, after, readAtOnce)
		if err != nil {
			return err
		}
		for _, m := range members {
			fn(m)
		}
		if len(members) < readAtOnce {
			return nil
		}
		after = members[len(members)-1].UserID
	}
}

// add counts a member.
func (r *Readiness) add(policy doorward.SSOPolicy, m doorward.SSOMember, now time.Time) {
	r.Members++
	if !m.IdentityUsedAt.IsZero() && now.Sub(m.IdentityUsedAt) <= recently {
		r.Recently++
	}
	if !m.IsCovered() {
		r.Guests++
	}
	if m.Role == doorward.RoleOwner && len(r.Owners) < shownMembers {
		r.Owners = append(r.Owners, Owner{m.UserID, m.HasWayBack})
	}
	byPassword := doorward.Assurance{Issuer: doorward.OwnIssuer, AAL: 1}
	if decide.SignOn(policy, m, byPassword).Err("") == nil || m.IdentityID != "" {
		return
	}
	if r.NeverCount++; len(r.Never) < shownMembers {
		r.Never = append(r.Never, Unready{m.UserID, m.Email, whyUnready(m)})
	}
}

func whyUnready(m doorward.SSOMember) Why {
	switch {
	case !m.IsCovered():
		return Guest
	case m.Domain == doorward.DomainLapsed:
		return DomainLapsed
	case m.HomeID == "":
		return NoConnection
	}
	return NotYet
}
