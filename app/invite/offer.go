package invite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/mailaddr"
)

// Offer is an invitation as an administrator has typed it.
type Offer struct {
	Email  string
	Role   string
	Name   string // may be empty
	Days   *int64 // nil: doorward.InvitationDaysDefault, or fewer where the tenant says so
	Locale string // of mails to the person (BCP 47); empty: that of the account if there is one, else English

	backdatedBy time.Duration // by how much it is dated before the last of several offers
}

// invitation returns the invitation that the offer describes, and the faults of the offer.
// An invalid address or role stays empty, so that no decision depends on it.
func (o Offer) invitation(by doorward.Caller) (doorward.Invitation, []doorward.FieldError) {
	inv := doorward.Invitation{
		ID: doorward.NewID(doorward.PrefixInvitation), TenantID: by.TenantID,
		Name: o.Name, Locale: o.Locale, State: doorward.InvitationPending, Delivery: doorward.DeliveryQueued,
	}
	setInviter(&inv, by)
	var faults []doorward.FieldError
	fault := func(pointer, code, message string) {
		faults = append(faults, doorward.FieldError{Pointer: pointer, Code: code, Message: message})
	}
	email, err := mailaddr.Parse(o.Email)
	switch inv.Email = email; {
	case o.Email == "":
		fault("/email", "required", "Enter the address to invite.")
	case err != nil:
		fault("/email", "invalid", "This is "+err.Error()+".")
	}
	switch role := doorward.Role(o.Role); {
	case o.Role == "":
		fault("/role", "required", "Choose a role. "+by.Rules.RolesHelp())
	case !by.Rules.Has(role):
		fault("/role", "invalid", by.Rules.RolesHelp())
	default:
		inv.Role = role
	}
	faults = append(faults, doorward.CheckName("/name", &inv.Name)...)
	if o.Days != nil && (*o.Days < 1 || *o.Days > doorward.InvitationDaysMax) {
		fault("/expiresInDays", "out_of_range", "An invitation is valid for 1 to 30 days.")
	}
	return inv, append(faults, doorward.CheckLocale("/locale", o.Locale)...)
}

// violations returns what the settings of the tenant don't allow.
func (o Offer) violations(s doorward.TenantSettings, email string) (faults []doorward.FieldError) {
	if email != "" && !IsAllowed(s, email) {
		faults = append(faults, doorward.FieldError{
			Pointer: "/email", Code: "domain_not_allowed",
			Message: "The settings of the tenant allow addresses at " + strings.Join(s.AllowedDomains, ", ") + " only.",
		})
	}
	if o.Days != nil && *o.Days <= doorward.InvitationDaysMax && *o.Days > int64(s.MaxInvitationDays()) {
		faults = append(faults, doorward.FieldError{
			Pointer: "/expiresInDays", Code: "out_of_range",
			Message: fmt.Sprintf("The settings of the tenant allow %d days at most.", s.MaxInvitationDays()),
		})
	}
	return faults
}

// IsAllowed reports whether the tenant takes people with the canonical address.
func IsAllowed(s doorward.TenantSettings, email string) bool {
	domain := mailaddr.Domain(email)
	return len(s.AllowedDomains) == 0 || slices.Contains(s.AllowedDomains, domain)
}

func (o Offer) days(s doorward.TenantSettings) int {
	if o.Days != nil {
		return int(*o.Days)
	}
	return min(doorward.InvitationDaysDefault, s.MaxInvitationDays())
}
