// Package tenant makes tenants and lets the operator freeze and thaw them.
package tenant

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Tenants is the feature. Make it with New.
type Tenants struct {
	door *access.Door
	db   *store.DB
}

// New returns the feature.
func New(door *access.Door, db *store.DB) *Tenants { return &Tenants{door, db} }

// Created is a new tenant with the invitation of its first OWNER. Token opens
// the invitation, besides the one that the mail will carry.
type Created struct {
	Tenant     doorward.Tenant
	Invitation doorward.Invitation
	Token      secret.Token
}

// Create makes a tenant and invites its first OWNER. Errors:
// validation_failed, forbidden.
func (t *Tenants) Create(ctx context.Context, by doorward.Caller, name, ownerEmail string) (Created, error) {
	email, faults := check(name, ownerEmail)
	if len(faults) > 0 {
		return Created{}, doorward.InvalidFields(faults...)
	}
	c := Created{Token: secret.New()}
	c.Tenant = doorward.Tenant{ID: doorward.NewID(doorward.PrefixTenant), Name: name, Status: doorward.TenantActive}
	c.Invitation = doorward.Invitation{
		ID: doorward.NewID(doorward.PrefixInvitation), TenantID: c.Tenant.ID, Email: email, Role: doorward.RoleOwner,
		State: doorward.InvitationPending, Delivery: doorward.DeliveryQueued,
	}
	on := doorward.Object{Type: "tenant", ID: c.Tenant.ID, TenantID: c.Tenant.ID}
	err := t.door.Do(ctx, by, doorward.TenantCreate, on, func(tx *access.Tx) error { return insert(ctx, tx, &c) })
	return c, err
}

func check(name, ownerEmail string) (string, []doorward.FieldError) {
	faults := doorward.CheckName("/name", name)
	if strings.TrimSpace(name) == "" {
		faults = append(faults, doorward.FieldError{Pointer: "/name", Code: "required", Message: "Give the tenant a name."})
	}
	email, err := mailaddr.Parse(ownerEmail)
	switch {
	case ownerEmail == "":
		faults = append(faults, doorward.FieldError{Pointer: "/ownerEmail", Code: "required", Message: "Say who will be the first OWNER."})
	case err != nil:
		faults = append(faults, doorward.FieldError{Pointer: "/ownerEmail", Code: "invalid", Message: "This is " + err.Error() + "."})
	}
	return email, faults
}

func insert(ctx context.Context, tx *access.Tx, c *Created) error {
	c.Tenant.CreatedAt, c.Invitation.CreatedAt = tx.Now, tx.Now
	c.Invitation.ExpiresAt = tx.Now.Add(doorward.InvitationDaysDefault * 24 * time.Hour)
	if err := tx.InsertTenant(ctx, c.Tenant); err != nil {
		return err
	}
	if _, err := tx.InsertInvitation(ctx, c.Invitation); err != nil {
		return err
	}
	hash := c.Token.Hash()
	if err := tx.InsertLinkToken(ctx, hash[:], c.Invitation.ID); err != nil {
		return err
	}
	tx.Changed("name", "", c.Tenant.Name)
	return tx.QueueMail(ctx, store.MailInvitation, c.Invitation.Email, c.Invitation.ID)
}

// All returns every tenant, the oldest first.
func (t *Tenants) All(ctx context.Context) ([]doorward.Tenant, error) {
	return t.db.Read().Tenants(ctx)
}

// Freeze keeps everybody out of the tenant and ends its sessions; it returns
// how many. Errors: not_found.
func (t *Tenants) Freeze(ctx context.Context, by doorward.Caller, id string) (sessions int64, err error) {
	err = t.setStatus(ctx, by, doorward.TenantFreeze, id, doorward.TenantFrozen, func(tx *access.Tx) error {
		sessions, err = tx.DeleteTenantSessions(ctx, id)
		return err
	})
	return sessions, err
}

// Thaw lets people in again. Sessions that slipped in while the tenant was
// being frozen end now; they never were of use. Errors: not_found.
func (t *Tenants) Thaw(ctx context.Context, by doorward.Caller, id string) error {
	return t.setStatus(ctx, by, doorward.TenantThaw, id, doorward.TenantActive, func(tx *access.Tx) error {
		_, err := tx.DeleteTenantSessions(ctx, id)
		return err
	})
}

// setStatus does nothing when the tenant has the status already.
func (t *Tenants) setStatus(ctx context.Context, by doorward.Caller, act doorward.Action, id string, to doorward.TenantStatus, also func(*access.Tx) error) error {
	on := doorward.Object{Type: "tenant", ID: id, TenantID: id}
	return t.door.Do(ctx, by, act, on, func(tx *access.Tx) error {
		was, err := tx.Tenant(ctx, id)
		if errors.Is(err, store.ErrNone) {
			return doorward.Fail(doorward.CodeNotFound, "No tenant has the id %s. \"doorward tenant list\" shows all.", id)
		}
		if err != nil {
			return err
		}
		if was.Status == doorward.TenantClosing {
			return doorward.Fail(doorward.CodeTenantClosing, "")
		}
		changed, err := tx.SetTenantStatus(ctx, id, to)
		if err != nil || !changed {
			return err
		}
		tx.Changed("status", string(was.Status), string(to))
		return also(tx)
	})
}
