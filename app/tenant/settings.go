package tenant

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/mailaddr"
)

// Get returns the tenant with the id; errors: not_found.
func (t *Tenants) Get(ctx context.Context, id string) (doorward.Tenant, error) {
	return existing(ctx, t.db.Read(), id)
}

// Limits are the limits of sessions in the tenant.
func (t *Tenants) Limits(of doorward.Tenant) doorward.SessionLimits {
	return of.Settings.Tighten(t.sessions.SessionLimits)
}

// Edit is what is to be changed of a tenant; what is nil stays.
type Edit struct {
	Name                   *string
	SessionIdleMinutes     *int64
	SessionAbsoluteMinutes *int64
	InvitationDays         *int64
	AllowedEmailDomains    *[]string // empty: all
	Accent                 *string   // a colour like "#3b4ccf"; empty: that of the installation
	// Versions, when there are any, are those that the edit was made on; see
	// doorward.Tenant.Version.
	Versions []string
}

// Changed is a tenant after a change, and how that was made to hold.
type Changed struct {
	doorward.Tenant
	Revocation doorward.Revocation
}

// maxDomains is how many domains a tenant can allow.
const maxDomains = 100

// Edit changes the caller's tenant and returns it as it is then. Limits that
// have become tighter end sessions that are beyond them. Errors:
// validation_failed, forbidden, precondition_failed.
func (t *Tenants) Edit(ctx context.Context, by doorward.Caller, e Edit) (Changed, error) {
	faults := t.check(&e)
	var after doorward.Tenant
	held, err := t.door.Do(ctx, by, doorward.TenantUpdate, object(by.TenantID), func(tx *access.Tx) error {
		if len(faults) > 0 {
			return doorward.InvalidFields(faults...)
		}
		was, err := existing(ctx, tx.Reader, by.TenantID)
		if err != nil {
			return err
		}
		if err := unchanged(was, e.Versions); err != nil {
			return err
		}
		after = e.apply(was)
		if err := t.inOrder(e, after); err != nil {
			return err
		}
		if !noteChanges(tx, was, after) {
			tx.SkipEvent()
			return nil
		}
		return t.replace(ctx, tx, was, after)
	})
	return Changed{after, held}, err
}

// inOrder refuses an idle limit that no session can reach. To lower the absolute
// limit alone stays possible, in a hurry too: it cuts the other one short.
func (t *Tenants) inOrder(e Edit, after doorward.Tenant) error {
	limits := t.Limits(after)
	if e.SessionIdleMinutes == nil || limits.Idle <= limits.Absolute {
		return nil
	}
	return doorward.Invalid("/settings/sessionIdleMinutes", "out_of_range",
		fmt.Sprintf("A session ends after %d minutes in any case: without use it can't end later.", Minutes(limits.Absolute)))
}

// unchanged is precondition_failed unless the tenant is one of the versions, or
// there are none.
func unchanged(now doorward.Tenant, versions []string) error {
	if len(versions) > 0 && !slices.Contains(versions, now.Version()) {
		return doorward.Fail(doorward.CodePreconditionFailed, "")
	}
	return nil
}

// replace ends the sessions that are too old by either of the limits, so that
// none of them comes back when the limit is loosened. One that was idle too long
// is ended when somebody asks for it, see package session.
func (t *Tenants) replace(ctx context.Context, tx *access.Tx, was, is doorward.Tenant) error {
	if err := tx.EditTenant(ctx, is); err != nil {
		return err
	}
	limit := min(t.Limits(was).Absolute, t.Limits(is).Absolute)
	return tx.DeleteAgedSessions(ctx, is.ID, tx.Now.Add(-limit))
}

// check puts domains and accent into canonical form and returns all that is
// wrong.
func (t *Tenants) check(e *Edit) (faults []doorward.FieldError) {
	if e.Name != nil {
		faults = append(faults, doorward.NeedName("/name", *e.Name, "Give the tenant a name.")...)
	}
	between := func(name string, n *int64, most int64, unit string) {
		if n != nil && (*n < 1 || *n > most) {
			faults = append(faults, doorward.FieldError{
				Pointer: "/settings/" + name, Code: "out_of_range",
				Message: fmt.Sprintf("A tenant can only be stricter than the installation: 1 to %d %s.", most, unit),
			})
		}
	}
	between("sessionIdleMinutes", e.SessionIdleMinutes, Minutes(t.sessions.Idle), "minutes")
	between("sessionAbsoluteMinutes", e.SessionAbsoluteMinutes, Minutes(t.sessions.Absolute), "minutes")
	between("invitationDays", e.InvitationDays, doorward.InvitationDaysMax, "days")
	if e.AllowedEmailDomains != nil {
		domains, more := checkDomains(*e.AllowedEmailDomains)
		e.AllowedEmailDomains = &domains
		faults = append(faults, more...)
	}
	if e.Accent != nil {
		accent, more := checkAccent(*e.Accent)
		e.Accent = &accent
		faults = append(faults, more...)
	}
	return faults
}

// Minutes are the whole minutes that a limit shows as, rounded up.
func Minutes(d time.Duration) int64 { return int64((d + time.Minute - 1) / time.Minute) }

func checkDomains(typed []string) (domains []string, faults []doorward.FieldError) {
	const at = "/settings/allowedEmailDomains"
	if len(typed) > maxDomains {
		return nil, []doorward.FieldError{{Pointer: at, Code: "out_of_range", Message: "List 100 domains at most."}}
	}
	for i, d := range typed {
		address, err := mailaddr.Parse("x@" + d)
		if err != nil {
			faults = append(faults, doorward.FieldError{Pointer: fmt.Sprintf("%s/%d", at, i), Code: "invalid", Message: "Write a domain as in \"acme.example\"."})
			continue
		}
		domains = append(domains, strings.TrimPrefix(address, "x@"))
	}
	slices.Sort(domains)
	return slices.Compact(domains), faults
}

func (e Edit) apply(t doorward.Tenant) doorward.Tenant {
	s := &t.Settings
	if e.Name != nil {
		t.Name = *e.Name
	}
	if e.SessionIdleMinutes != nil {
		s.SessionIdle = time.Duration(*e.SessionIdleMinutes) * time.Minute
	}
	if e.SessionAbsoluteMinutes != nil {
		s.SessionAbsolute = time.Duration(*e.SessionAbsoluteMinutes) * time.Minute
	}
	if e.InvitationDays != nil {
		s.InvitationDays = int(*e.InvitationDays)
	}
	if e.AllowedEmailDomains != nil {
		s.AllowedDomains = *e.AllowedEmailDomains
	}
	if e.Accent != nil {
		t.Brand.Accent = *e.Accent
	}
	return t
}

// noteChanges reports whether there are any.
func noteChanges(tx *access.Tx, was, is doorward.Tenant) bool {
	some := false
	note := func(field, from, to string) {
		if from != to {
			tx.Changed(field, from, to)
			some = true
		}
	}
	note("name", was.Name, is.Name)
	note("sessionIdle", was.Settings.SessionIdle.String(), is.Settings.SessionIdle.String())
	note("sessionAbsolute", was.Settings.SessionAbsolute.String(), is.Settings.SessionAbsolute.String())
	note("invitationDays", fmt.Sprint(was.Settings.MaxInvitationDays()), fmt.Sprint(is.Settings.MaxInvitationDays()))
	note("allowedEmailDomains", strings.Join(was.Settings.AllowedDomains, " "), strings.Join(is.Settings.AllowedDomains, " "))
	note("accent", was.Brand.Accent, is.Brand.Accent)
	return some
}
