// Package demand is about the demand of a tenant that its people sign in by its own connections.
//
// A tenant's policy has a mode: off (no connection signs anybody in), optional, or required. While it is
// required, members whom it covers sign in by a connection alone, and guests may be refused; decide.SignOn
// says so, and login asks it under the lock on the tenant that Put takes. OWNERs with a way back, which is
// a password and a second factor, or a passkey, always get in.
//
// A demand is provisional until somebody has shown that the sign-on works, by confirming it in a session
// that a connection vouches for. Else it returns to what was before: by itself, since a policy is always
// read as of an instant (doorward.SSOPolicy.At), and Sweep records that. Sessions end at the confirmation.
//
//	demand.go     reading and changing
//	draft.go      what is typed, and what a change leads to
//	sweep.go      the return of what wasn't confirmed
//	readiness.go  who would be shut out
//	discover.go   how somebody with an address signs in
package demand

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Demands is the feature. Make it with New.
type Demands struct {
	writer *access.Writer
	db     *store.DB
	life   store.SessionLifetime
}

// New returns the feature.
func New(writer *access.Writer, db *store.DB, life store.SessionLifetime) *Demands {
	return &Demands{writer, db, life}
}

// Get returns the policy of the caller's tenant. Errors: unavailable.
func (d *Demands) Get(ctx context.Context, by doorward.Caller) (doorward.SSOPolicy, error) {
	return d.db.Read().SSOPolicy(ctx, by.TenantID, d.db.Now())
}

// Changed is a policy after a change, with what that has ended.
type Changed struct {
	doorward.SSOPolicy
	Ended doorward.Ended
}

// Put changes the policy of the caller's tenant; versions are those that the change is based on. With the
// mode off the sessions of the tenant's connections end, before it returns. Errors: validation_failed,
// precondition_failed, connection_needed, domain_needed, no_way_back, step_up_required, forbidden.
func (d *Demands) Put(ctx context.Context, by doorward.Caller, draft Draft, versions []string) (Changed, error) {
	return d.put(ctx, by, by.TenantID, draft, versions)
}

// Off sets the mode of a tenant to off, for the operator. Errors: not_found.
func (d *Demands) Off(ctx context.Context, by doorward.Caller, tenantID string) (Changed, error) {
	if _, err := d.db.Read().Tenant(ctx, tenantID); err != nil {
		if errors.Is(err, store.ErrNone) {
			err = doorward.Fail(doorward.CodeNotFound, "No tenant has the id %s. \"doorward tenant list\" shows all.", tenantID)
		}
		return Changed{}, err
	}
	policy, err := d.db.Read().SSOPolicy(ctx, tenantID, d.db.Now())
	if err != nil {
		return Changed{}, err
	}
	return d.put(ctx, by, tenantID, Draft{Mode: string(doorward.SSOOff), Guests: policy.Guests()}, nil)
}

func (d *Demands) put(ctx context.Context, by doorward.Caller, tenantID string, draft Draft, versions []string) (Changed, error) {
	var changed Changed
	faults := draft.check()
	if err := d.settle(ctx, tenantID); err != nil {
		return changed, err
	}
	revocation, err := d.writer.Do(ctx, by, doorward.SSOPolicyChange, object(tenantID), func(tx *access.Tx) error {
		if len(faults) > 0 {
			return doorward.InvalidFields(faults...)
		}
		was, err := tx.SSOPolicy(ctx, tenantID, tx.Now)
		if err != nil {
			return err
		}
		if err := doorward.CheckVersion(was.Version(), versions); err != nil {
			return err
		}
		next := draft.apply(was, tx.Now)
		changed = Changed{SSOPolicy: next}
		if next.Revision == was.Revision {
			tx.SkipEvent()
			return nil
		}
		changed.Ended.Sessions, err = d.replace(ctx, tx, was, next)
		return err
	})
	changed.Ended.Revocation = revocation
	return changed, err
}

// settle writes the return of a demand that wasn't confirmed in time, so that the trail has it before the
// change that follows.
func (d *Demands) settle(ctx context.Context, tenantID string) error {
	_, err := d.db.Read().OverdueSSOPolicy(ctx, tenantID, d.db.Now())
	if errors.Is(err, store.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.revert(ctx, tenantID)
}

// replace writes a changed policy and ends what its mode doesn't allow. It returns how many sessions.
func (d *Demands) replace(ctx context.Context, tx *access.Tx, was, next doorward.SSOPolicy) (int64, error) {
	if next.Mode == doorward.SSORequired {
		if err := checkBasis(ctx, tx, next.TenantID); err != nil {
			return 0, err
		}
	}
	record(tx, was, next)
	if err := tx.SetSSOPolicy(ctx, next); err != nil || next.SignsIn() {
		return 0, err
	}
	return d.endSignOn(ctx, tx, next.TenantID)
}

// checkBasis returns what a demand lacks. The caller has locked the tenant.
func checkBasis(ctx context.Context, tx *access.Tx, tenantID string) error {
	basis, err := tx.SSOBasis(ctx, tenantID)
	switch {
	case err != nil:
		return err
	case basis.Connections == 0:
		return doorward.Fail(doorward.CodeConnectionNeeded, "")
	case basis.Proved == 0:
		return doorward.Fail(doorward.CodeDomainNeeded, "")
	case basis.WaysBack == 0:
		return doorward.Fail(doorward.CodeNoWayBack, "")
	}
	return nil
}

// endSignOn ends the sessions that connections of the tenant vouch for, and the sign-ins on their way to one. It returns
// how many sessions.
func (d *Demands) endSignOn(ctx context.Context, tx *access.Tx, tenantID string) (int64, error) {
	all, err := tx.ConnectionsOf(ctx, tenantID)
	if err != nil {
		return 0, err
	}
	for _, c := range all {
		if err := tx.EndSignIns(ctx, c.ID, doorward.EndedEverybody); err != nil {
			return 0, err
		}
	}
	n, err := tx.DeleteSignOnSessions(ctx, d.life, tenantID)
	tx.RecordEnded(doorward.Ended{Sessions: n})
	return n, err
}

// Confirm makes the provisional policy of the caller's tenant hold for good, and ends the sessions that it
// shuts out. The caller's session must be one that an active connection of the tenant vouches for, opened
// after the change: so its sign-on works. Errors: nothing_to_confirm, sign_in_required, precondition_failed.
func (d *Demands) Confirm(ctx context.Context, by doorward.Caller, versions []string) (Changed, error) {
	var changed Changed
	revocation, err := d.writer.Do(ctx, by, doorward.SSOConfirm, object(by.TenantID), func(tx *access.Tx) error {
		policy, err := tx.SSOPolicy(ctx, by.TenantID, tx.Now)
		if err != nil {
			return err
		}
		if err := doorward.CheckVersion(policy.Version(), versions); err != nil {
			return err
		}
		if policy.ConfirmBy == nil {
			return doorward.Fail(doorward.CodeNothingToConfirm, "")
		}
		if err := checkSession(ctx, tx, policy.ChangedAt); err != nil {
			return err
		}
		confirmed := doorward.SSOPolicy{TenantID: policy.TenantID, Mode: policy.Mode, GuestsRefused: policy.GuestsRefused, Revision: policy.Revision + 1, ChangedAt: tx.Now}
		changed = Changed{SSOPolicy: confirmed}
		record(tx, doorward.SSOPolicy{Mode: policy.BeforeMode, GuestsRefused: policy.BeforeGuestsRefused}, confirmed)
		if err := tx.SetSSOPolicy(ctx, confirmed); err != nil {
			return err
		}
		changed.Ended.Sessions, err = tx.DeleteShutOutSessions(ctx, d.life, policy.TenantID, policy.GuestsRefused)
		tx.RecordEnded(changed.Ended)
		return err
	})
	changed.Ended.Revocation = revocation
	return changed, err
}

// checkSession returns sign_in_required unless the caller's session shows that the sign-on works since.
func checkSession(ctx context.Context, tx *access.Tx, since time.Time) error {
	if tx.By.Issuer != doorward.OwnIssuer {
		current, err := tx.Session(ctx, tx.By.SessionID)
		if err != nil {
			return err
		}
		isActive, err := tx.ConnectionIsActive(ctx, string(tx.By.Issuer), tx.By.TenantID)
		if err != nil || isActive && current.Session.CreatedAt.After(since) {
			return err
		}
	}
	return doorward.Fail(doorward.CodeSignInRequired, "Sign in by the organisation's own sign-on, now that it is demanded, and confirm it in that session.")
}

// record adds to the event what a change of the policy has changed.
func record(tx *access.Tx, was, next doorward.SSOPolicy) {
	if was.Mode != next.Mode {
		tx.Changed(doorward.FieldSSOMode, string(was.Mode), string(next.Mode))
	}
	if was.GuestsRefused != next.GuestsRefused {
		tx.Changed(doorward.FieldSSOGuests, was.Guests(), next.Guests())
	}
	if next.ConfirmBy != nil {
		tx.Changed(doorward.FieldConfirmBy, "", next.ConfirmBy.UTC().Format(time.RFC3339))
	}
}

func object(tenantID string) doorward.Object {
	return doorward.Object{Type: "tenant", ID: tenantID, TenantID: tenantID}
}
