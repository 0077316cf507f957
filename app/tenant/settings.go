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

// Get returns the tenant with the id. Errors: not_found.
func (t *Tenants) Get(ctx context.Context, id string) (doorward.Tenant, error) {
	return find(ctx, t.db.Read(), id)
}

// Limits returns the limits of sessions in the tenant.
func (t *Tenants) Limits(tenant doorward.Tenant) doorward.SessionLimits {
	return tenant.Settings.Tighten(t.sessions.SessionLimits)
}

// Edit has the changes to a tenant; nil fields stay unchanged.
type Edit struct {
	Name                   *string
	SessionIdleMinutes     *int64
	SessionAbsoluteMinutes *int64
	InvitationDays         *int64
	AllowedEmailDomains    *[]string // empty: all
	MFA                    *string   // of second factors: optional or required
	MFARoles               *[]string // that the demand covers; empty: all
	MFAGraceDays           *int64    // until sessions without a factor end
	MFARememberDays        *int64    // for which a browser stands in for the factor; 0: it doesn't
	StepUpMinutes          *int64    // the longest age of a proof for sensitive actions
	Accent                 *string   // a colour like "#3b4ccf"; empty: that of the installation
	// KeepEffective ignores numbers that equal those in force: a form sends all fields,
	// and must not turn the installation's values into the tenant's own.
	KeepEffective bool
	// Versions, unless empty, are the versions that the edit is based on; see
	// doorward.Tenant.Version.
	Versions []string
}

// Number is a setting of a tenant that is a number.
type Number struct {
	Name      string  // in the API and in forms
	Section   string  // of the settings, for pages: sessions, invitations or factors
	Effective int64   // the tenant's own, or else the installation's
	Min, Max  int64   // the installation's limits
	Edit      **int64 // the field of the Edit

	unit  string      // in messages
	event string      // the field of the event
	own   string      // the value as events show it
	set   func(int64) // sets the tenant's own
}

// Numbers describes the settings of the tenant that are numbers, and points to the fields of e
// that change them. A new one is an entry here, and a field of Edit.
func (t *Tenants) Numbers(e *Edit, tenant *doorward.Tenant) []Number {
	return append(t.limitNumbers(e, tenant), factorNumbers(e, tenant)...)
}

func (t *Tenants) limitNumbers(e *Edit, tenant *doorward.Tenant) []Number {
	s, limits := &tenant.Settings, t.Limits(*tenant)
	return []Number{
		{
			Name: "sessionIdleMinutes", Section: "sessions", Edit: &e.SessionIdleMinutes, unit: "minutes",
			Effective: Minutes(limits.Idle), Min: 1, Max: Minutes(t.sessions.Idle),
			event: "sessionIdle", own: s.SessionIdle.String(), set: func(n int64) { s.SessionIdle = time.Duration(n) * time.Minute },
		},
		{
			Name: "sessionAbsoluteMinutes", Section: "sessions", Edit: &e.SessionAbsoluteMinutes, unit: "minutes",
			Effective: Minutes(limits.Absolute), Min: 1, Max: Minutes(t.sessions.Absolute),
			event: "sessionAbsolute", own: s.SessionAbsolute.String(), set: func(n int64) { s.SessionAbsolute = time.Duration(n) * time.Minute },
		},
		{
			Name: "invitationDays", Section: "invitations", Edit: &e.InvitationDays, unit: "days",
			Effective: int64(s.MaxInvitationDays()), Min: 1, Max: doorward.InvitationDaysMax,
			event: "invitationDays", own: fmt.Sprint(s.MaxInvitationDays()), set: func(n int64) { s.InvitationDays = int(n) },
		},
	}
}

func factorNumbers(e *Edit, tenant *doorward.Tenant) []Number {
	s := &tenant.Settings
	f := &s.SecondFactor
	return []Number{
		{
			Name: "mfaGraceDays", Section: "factors", Edit: &e.MFAGraceDays, unit: "days",
			Effective: int64(f.GraceDays), Max: doorward.MaxGraceDays,
			event: "mfaGraceDays", own: fmt.Sprint(f.GraceDays), set: func(n int64) { f.GraceDays = int(n) },
		},
		{
			Name: "mfaRememberDays", Section: "factors", Edit: &e.MFARememberDays, unit: "days",
			Effective: int64(f.RememberDays), Max: doorward.MaxRememberDays,
			event: "mfaRememberDays", own: fmt.Sprint(f.RememberDays), set: func(n int64) { f.RememberDays = int(n) },
		},
		{
			Name: "stepUpMinutes", Section: "factors", Edit: &e.StepUpMinutes, unit: "minutes",
			Effective: Minutes(s.MaxProofAge()), Min: 1, Max: Minutes(doorward.MaxStepUp),
			event: "stepUp", own: s.MaxProofAge().String(), set: func(n int64) { s.StepUp = time.Duration(n) * time.Minute },
		},
	}
}

// Changed is a tenant after a change, and how it was confirmed on all nodes.
type Changed struct {
	doorward.Tenant
	Revocation doorward.Revocation
}

// maxDomains is how many domains a tenant can allow.
const maxDomains = 100

// Edit changes the caller's tenant and returns it. Tighter limits end the sessions
// beyond them. Errors: validation_failed, forbidden, step_up_required, precondition_failed,
// master_key_missing.
func (t *Tenants) Edit(ctx context.Context, by doorward.Caller, e Edit) (Changed, error) {
	faults := t.check(&e)
	var after doorward.Tenant
	revocation, err := t.writer.Do(ctx, by, doorward.TenantUpdate, object(by.TenantID), func(tx *access.Tx) error {
		if len(faults) > 0 {
			return doorward.InvalidFields(faults...)
		}
		before, err := find(ctx, tx.Reader, by.TenantID)
		if err != nil {
			return err
		}
		if err := doorward.CheckVersion(before.Version(), e.Versions); err != nil {
			return err
		}
		edit := e
		if e.KeepEffective {
			edit = t.withoutEffective(e, before)
		}
		after = t.apply(edit, before)
		if err := t.applyDemand(edit, before, &after, tx.Now); err != nil {
			return err
		}
		if err := t.checkIdle(edit, after); err != nil {
			return err
		}
		if !t.recordChanges(tx, before, after) {
			tx.SkipEvent()
			return nil
		}
		return t.replace(ctx, tx, before, after)
	})
	return Changed{after, revocation}, err
}

// checkIdle rejects an idle limit longer than the absolute one. Lowering only the
// absolute limit stays possible, as an emergency measure; it limits the idle time
// as well.
func (t *Tenants) checkIdle(e Edit, after doorward.Tenant) error {
	limits := t.Limits(after)
	if e.SessionIdleMinutes == nil || limits.Idle <= limits.Absolute {
		return nil
	}
	return doorward.Invalid("/settings/sessionIdleMinutes", "out_of_range",
		fmt.Sprintf("A session ends after %d minutes in any case, so the idle limit can't be longer.", Minutes(limits.Absolute)))
}

// replace stores the settings. It ends the sessions beyond the tighter absolute limit, and
// those that lack a second factor which the old or the new settings demand: otherwise they
// would be valid again once the demand is lifted. Idle sessions are ended when they are
// used, see package session.
func (t *Tenants) replace(ctx context.Context, tx *access.Tx, before, after doorward.Tenant) error {
	if err := tx.EditTenant(ctx, after); err != nil {
		return err
	}
	limit := min(t.Limits(before).Absolute, t.Limits(after).Absolute)
	for _, settings := range []doorward.TenantSettings{before.Settings, after.Settings} {
		if err := endUnproved(ctx, tx, after.ID, settings.SecondFactor); err != nil {
			return err
		}
	}
	return tx.DeleteAgedSessions(ctx, after.ID, tx.Now.Add(-limit))
}

// check normalizes domains and accent, and returns the faults that can be found without the
// tenant.
func (t *Tenants) check(e *Edit) (faults []doorward.FieldError) {
	if e.Name != nil {
		faults = append(faults, doorward.RequireName("/name", *e.Name, "Give the tenant a name.")...)
	}
	for _, n := range t.Numbers(e, &doorward.Tenant{}) { // their limits are those of the installation
		if typed := *n.Edit; typed != nil && (*typed < n.Min || *typed > n.Max) {
			faults = append(faults, doorward.FieldError{
				Pointer: "/settings/" + n.Name, Code: "out_of_range",
				Message: fmt.Sprintf("A tenant can only be stricter than the installation: %d to %d %s.", n.Min, n.Max, n.unit),
			})
		}
	}
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

// Minutes returns a limit in minutes, rounded up.
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

// apply returns the tenant with what the edit changes.
func (t *Tenants) apply(e Edit, tenant doorward.Tenant) doorward.Tenant {
	for _, n := range t.Numbers(&e, &tenant) {
		if *n.Edit != nil {
			n.set(**n.Edit)
		}
	}
	if e.Name != nil {
		tenant.Name = *e.Name
	}
	if e.AllowedEmailDomains != nil {
		tenant.Settings.AllowedDomains = *e.AllowedEmailDomains
	}
	if e.Accent != nil {
		tenant.Brand.Accent = *e.Accent
	}
	return tenant
}

// withoutEffective returns the edit without numbers that are in force already.
func (t *Tenants) withoutEffective(e Edit, tenant doorward.Tenant) Edit {
	for _, n := range t.Numbers(&e, &tenant) {
		if *n.Edit != nil && **n.Edit == n.Effective {
			*n.Edit = nil
		}
	}
	return e
}

// recordChanges adds the changes to the event, and reports whether there are any.
func (t *Tenants) recordChanges(tx *access.Tx, before, after doorward.Tenant) bool {
	changed := false
	record := func(field, from, to string) {
		if from != to {
			tx.Changed(field, from, to)
			changed = true
		}
	}
	record("name", before.Name, after.Name)
	oldNumbers := t.Numbers(&Edit{}, &before)
	for i, number := range t.Numbers(&Edit{}, &after) {
		record(number.event, oldNumbers[i].own, number.own)
	}
	record("allowedEmailDomains", strings.Join(before.Settings.AllowedDomains, " "), strings.Join(after.Settings.AllowedDomains, " "))
	record("mfa", Demand(before.Settings.SecondFactor), Demand(after.Settings.SecondFactor))
	record("mfaRoles", before.Settings.SecondFactor.RoleNames(), after.Settings.SecondFactor.RoleNames())
	record("accent", before.Brand.Accent, after.Brand.Accent)
	return changed
}
