package directory

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/mailaddr"
)

// The checks of this package in protocols, beside the scimTypes of internal/scim.
const (
	CheckSecret    = "secret"     // the secret has ended, or rests
	CheckDraft     = "draft"      // the connection is one
	CheckTenant    = "tenant"     // the tenant is frozen, or closing
	CheckUnknown   = "unknown"    // nobody has the id, or there is no such path
	CheckLastOwner = "last_owner" // the last OWNER, or the last one with a way back
	CheckRefused   = "refused"    // by a quota, a policy, or the form of the request
	CheckSuspended = "suspended"  // a reason of somebody else holds
	CheckRevoked   = "revoked"    // somebody has revoked the invitation by hand
	CheckMembers   = "groups"     // somebody was removed from a group who isn't in it
)

// What to do about them. The console has a sentence for each.
const (
	AdviceSecret    = "scim_secret"     // enter the secret that takes its place
	AdviceDisabled  = "scim_disabled"   // enable the connection
	AdviceDraft     = "scim_draft"      // enable the connection, which changes nothing until then
	AdviceTenant    = "scim_tenant"     // the tenant is frozen or closing
	AdviceUnknown   = "scim_unknown"    // assign the person or group again, so that it is made
	AdviceUnique    = "scim_uniqueness" // somebody else has the name
	AdviceOwner     = "scim_owner"      // make somebody else OWNER first
	AdviceFilter    = "scim_filter"     // filters that are understood
	AdviceSyntax    = "scim_syntax"     // the form of the request
	AdviceTarget    = "scim_target"     // the path, or what it selects
	AdviceValue     = "scim_value"      // look at the attribute mapping
	AdviceMutable   = "scim_mutability" // don't send this attribute
	AdviceSize      = "scim_size"       // send less at once
	AdviceQuota     = "scim_quota"      // more people than the tenant may have
	AdviceReinstate = "reinstate"       // as for sign-ins
	AdviceRevoked   = "scim_revoked"    // invite the person by hand
	AdviceMembers   = "scim_members"    // nothing to do
	AdviceDomain    = "scim_domain"     // prove the domain, or let the connection invite
	AdviceAllowed   = "scim_allowed"    // the tenant's settings don't allow the domain
	AdviceAddress   = "scim_address"    // map the e-mail address to userName
	AdviceMember    = "scim_member"     // provision the person before the group
	AdviceOwn       = "scim_own"        // the person's own account
)

// Advices are all of them, but AdviceReinstate, which sign-ins have, too.
var Advices = []string{
	AdviceSecret, AdviceDisabled, AdviceDraft, AdviceTenant, AdviceUnknown, AdviceUnique, AdviceOwner, AdviceFilter, AdviceSyntax, AdviceTarget,
	AdviceValue, AdviceMutable, AdviceSize, AdviceQuota, AdviceMembers, AdviceDomain, AdviceAllowed, AdviceAddress, AdviceMember, AdviceOwn, AdviceRevoked,
}

// RefusedSecret is the refusal of a secret that is known: it has ended, or its connection is disabled.
type RefusedSecret struct {
	ConnectionID string
	Hint         string // of the secret
	HasEnded     bool   // else it rests
}

// Error returns what has happened.
func (r *RefusedSecret) Error() string {
	if r.HasEnded {
		return "directory: the secret " + r.Hint + " has ended"
	}
	return "directory: the secret " + r.Hint + " rests, since its connection is disabled"
}

// Unwrap returns unauthenticated: the answer doesn't say which of both it is.
func (r *RefusedSecret) Unwrap() error { return doorward.Fail(doorward.CodeUnauthenticated, "") }

// Record adds what was refused, or was odd, to the protocol of the caller's connection. The entry names by its UserID a
// User as the directory knows it, and by its Subject an address as userName, a group, or the id in the path. The person's
// erasure finds it by the account, or by the address. Nothing depends on whether that succeeds.
func (d *Directories) Record(ctx context.Context, by doorward.Caller, a doorward.Attempt) {
	if a.ConnectionID == "" {
		a.ConnectionID = by.ConnectionID
	}
	if address, err := mailaddr.Parse(a.Subject); err == nil {
		a.Address = address
	}
	if a.UserID != "" {
		a.UserID = d.accountOf(ctx, by, a.UserID)
	}
	a.RequestIDs = []string{by.RequestID}
	d.providers.RecordDirectory(ctx, a)
}

// accountOf returns the id of the account that the User has; empty: none, or it can't be read now.
func (d *Directories) accountOf(ctx context.Context, by doorward.Caller, id string) string {
	e, err := find(ctx, d.db.Read(), by, id)
	if err != nil {
		return ""
	}
	return e.Member.ID
}

// WriteFaults writes what this node has counted of refused requests, as provider.Client.WriteDirectoryFaults. It returns
// nil.
func (d *Directories) WriteFaults(ctx context.Context) error {
	return d.providers.WriteDirectoryFaults(ctx)
}
