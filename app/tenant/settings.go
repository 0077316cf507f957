package tenant

import (
	"context"
	"fmt"
	"maps"
	"slices"
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

// Edit has the changes to a tenant.
type Edit struct {
	Name *string // nil: unchanged
	// Settings are new values by the names of doorward.Settings, of the types of Setting.Effective.
	Settings map[string]any
	// KeepEffective ignores numbers that equal those in force: a form sends all fields,
	// and must not turn the installation's values into the tenant's own.
	KeepEffective bool
	// Versions, unless empty, are the versions that the edit is based on; see
	// doorward.Tenant.Version.
	Versions []string
}

// Settings returns the settings that a tenant can change, with the limits of the installation.
func (t *Tenants) Settings() []doorward.Setting {
	return doorward.Settings(t.sessions.SessionLimits, t.keepEvents)
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
		if after, err = t.apply(edit, before, tx.Now); err != nil {
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
	if e.Settings[doorward.SettingIdle] == nil || limits.Idle <= limits.Absolute {
		return nil
	}
	return doorward.Invalid("/settings/"+doorward.SettingIdle, "out_of_range",
		fmt.Sprintf("A session ends after %d minutes in any case, so the idle limit can't be longer.", doorward.Minutes(limits.Absolute)))
}

// replace stores the settings, and notes whom to notify of a new demand for second factors. It
// ends the sessions beyond the tighter absolute limit, and those that lack a second factor which
// the old or the new settings demand: otherwise they would be valid again once the demand is
// lifted. Idle sessions are ended when they are used, see package session.
func (t *Tenants) replace(ctx context.Context, tx *access.Tx, before, after doorward.Tenant) error {
	if err := tx.EditTenant(ctx, after); err != nil {
		return err
	}
	if err := notifyConcerned(ctx, tx, before, after); err != nil {
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
		faults = append(faults, doorward.RequireName("/name", e.Name, "Give the tenant a name.")...)
	}
	e.Settings = maps.Clone(e.Settings)
	for _, s := range t.Settings() {
		if value := e.Settings[s.Name]; value != nil {
			canonical, more := checkSetting(s, value)
			e.Settings[s.Name] = canonical
			faults = append(faults, more...)
		}
	}
	return faults
}

// checkSetting returns the value in canonical form, and its faults.
func checkSetting(s doorward.Setting, value any) (any, []doorward.FieldError) {
	switch s.Name {
	case doorward.SettingDomains:
		return checkDomains(value.([]string))
	case doorward.SettingAccent:
		return checkAccent(value.(string))
	case doorward.SettingMFA:
		return value, checkMFA(value.(string))
	}
	if n, isNumber := value.(int64); isNumber && !isWithin(s, n) {
		return value, []doorward.FieldError{{Pointer: "/settings/" + s.Name, Code: "out_of_range", Message: bounds(s)}}
	}
	return value, nil
}

func isWithin(s doorward.Setting, n int64) bool {
	return n >= s.Min && n <= s.Max && (s.Name != doorward.SettingKeepEvents || n == 0 || n >= doorward.MinKeepEventsDays)
}

// bounds says which numbers the setting can have.
func bounds(s doorward.Setting) string {
	switch {
	case s.Name != doorward.SettingKeepEvents:
		return fmt.Sprintf("A tenant can only be stricter than the installation: %d to %d %s.", s.Min, s.Max, s.Unit)
	case s.Max < doorward.MinKeepEventsDays:
		return fmt.Sprintf("The installation keeps events for %d days, and no tenant can change that: send 0.", s.Max)
	}
	return fmt.Sprintf("Send 0, to keep events as long as the installation does, or %d to %d days.", doorward.MinKeepEventsDays, s.Max)
}

func checkDomains(typed []string) (domains []string, faults []doorward.FieldError) {
	const at = "/settings/allowedEmailDomains"
	if len(typed) > maxDomains {
		return nil, []doorward.FieldError{{Pointer: at, Code: "out_of_range", Message: "List 100 domains at most."}}
	}
	for i, d := range typed {
		domain, err := mailaddr.ParseDomain(d)
		if err != nil {
			faults = append(faults, doorward.FieldError{Pointer: fmt.Sprintf("%s/%d", at, i), Code: "invalid", Message: "Write a domain as in \"acme.example\"."})
			continue
		}
		domains = append(domains, domain)
	}
	slices.Sort(domains)
	return slices.Compact(domains), faults
}

// apply returns the tenant with what the edit changes. The days of grace begin with a demand for second
// factors, and again when it covers a role that it did not cover before. Errors: validation_failed,
// master_key_missing when people could set up no factor.
func (t *Tenants) apply(e Edit, before doorward.Tenant, now time.Time) (doorward.Tenant, error) {
	after := before
	if e.Name != nil {
		after.Name = *e.Name
	}
	for _, s := range t.Settings() {
		if value := e.Settings[s.Name]; value != nil {
			s.Set(&after, value, now)
		}
	}
	old, demand := before.Settings.SecondFactor, &after.Settings.SecondFactor
	if faults := checkRoles(demand, before.Rules); e.Settings[doorward.SettingMFARoles] != nil && len(faults) > 0 {
		return after, doorward.InvalidFields(faults...)
	}
	if demand.Since.IsZero() || !old.Since.IsZero() && old.CoversAll(*demand) {
		return after, nil
	}
	demand.Since = now
	return after, t.masterKeyReady()
}

// withoutEffective returns the edit without numbers that are in force already.
func (t *Tenants) withoutEffective(e Edit, tenant doorward.Tenant) Edit {
	e.Settings = maps.Clone(e.Settings)
	for _, s := range t.Settings() {
		if s.Unit != "" && e.Settings[s.Name] == s.Effective(tenant) {
			delete(e.Settings, s.Name)
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
	record(doorward.FieldName, before.Name, after.Name)
	for _, s := range t.Settings() {
		record(s.Event, s.Text(before), s.Text(after))
	}
	return changed
}
