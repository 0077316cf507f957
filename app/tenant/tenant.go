// Package tenant manages tenants: the operator creates, freezes and thaws a
// tenant, its OWNER closes and restores it, and after a hold its data is
// destroyed. Its administrators name it, tighten the installation's limits for it,
// and set an accent colour and a logo.
package tenant

import (
	"context"
	"log/slog"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Tenants is the feature. Make it with New.
type Tenants struct {
	writer         *access.Writer
	db             *store.DB
	sessions       store.SessionLifetime
	hold           time.Duration
	keepEvents     time.Duration
	masterKeyReady func() error
	log            *slog.Logger
	logoSlot       chan struct{} // one image is decoded at a time
}

// Times are how long the installation keeps something.
type Times struct {
	Hold       time.Duration // the data of a tenant that is closed from now on
	KeepEvents time.Duration // events of trails, where the tenant doesn't keep them for a shorter time; 0: for ever
}

// New returns the feature. Tenants may tighten the limits of sessions. masterKeyReady returns nil if people can
// set up second factors; only then may a tenant demand them.
func New(writer *access.Writer, db *store.DB, sessions store.SessionLifetime, times Times, masterKeyReady func() error, log *slog.Logger) *Tenants {
	return &Tenants{writer, db, sessions, times.Hold, times.KeepEvents, masterKeyReady, log, make(chan struct{}, 1)}
}

// Created is a new tenant with the invitation of its first OWNER. Token is a token of the
// invitation; the mail will have another one.
type Created struct {
	Tenant     doorward.Tenant
	Invitation doorward.Invitation
	Token      secret.Token
}

// Draft describes a new tenant.
type Draft struct {
	Name       string
	OwnerEmail string
	Locale     string // of the mails to the first OWNER, BCP 47; empty: English
}

// Create makes a tenant and invites its first OWNER. Errors:
// validation_failed, forbidden.
func (t *Tenants) Create(ctx context.Context, by doorward.Caller, d Draft) (Created, error) {
	email, faults := check(&d)
	if len(faults) > 0 {
		return Created{}, doorward.InvalidFields(faults...)
	}
	c := Created{Token: secret.New()}
	c.Tenant = doorward.Tenant{ID: doorward.NewID(doorward.PrefixTenant), Name: d.Name, Status: doorward.TenantActive}
	c.Invitation = doorward.Invitation{
		ID: doorward.NewID(doorward.PrefixInvitation), TenantID: c.Tenant.ID, Email: email, Role: doorward.RoleOwner,
		State: doorward.InvitationPending, Delivery: doorward.DeliveryQueued, Days: doorward.InvitationDaysDefault, Locale: d.Locale,
	}
	if by.Kind == doorward.ByService {
		c.Invitation.ServiceKeyID = by.ID
	}
	on := doorward.Object{Type: "tenant", ID: c.Tenant.ID, TenantID: c.Tenant.ID}
	_, err := t.writer.Do(ctx, by, doorward.TenantCreate, on, func(tx *access.Tx) error { return insert(ctx, tx, &c) })
	return c, err
}

// Check cleans the name of the draft, and returns validation_failed unless the draft is valid.
func Check(d *Draft) error {
	if _, faults := check(d); len(faults) > 0 {
		return doorward.InvalidFields(faults...)
	}
	return nil
}

func check(d *Draft) (ownerEmail string, faults []doorward.FieldError) {
	faults = doorward.RequireName("/name", &d.Name, "Give the tenant a name.")
	email, err := mailaddr.Parse(d.OwnerEmail)
	switch {
	case d.OwnerEmail == "":
		faults = append(faults, doorward.FieldError{Pointer: "/ownerEmail", Code: "required", Message: "Say who will be the first OWNER."})
	case err != nil:
		faults = append(faults, doorward.FieldError{Pointer: "/ownerEmail", Code: "invalid", Message: "This is " + err.Error() + "."})
	}
	return email, append(faults, doorward.CheckLocale("/locale", d.Locale)...)
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
	tx.Changed(doorward.FieldName, "", c.Tenant.Name)
	tx.Changed("ownerEmail", "", c.Invitation.Email)
	if err := tx.QueueMail(ctx, store.MailInvitation, c.Invitation.Email, c.Invitation.ID); err != nil {
		return err
	}
	return tx.KeepAnswer(ctx, *c)
}
