package doorward

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Setting is a setting of tenants: what validation, events, exports, the API, the console and the
// judgement of effects know of it.
type Setting struct {
	Name    string // in the API, in exports and forms
	Event   string // the field of events
	Section string // of the console's page, for a number: general, sessions or factors
	// Unit is that of a number; empty for a setting that is a text or a list. More is looser.
	Unit     Unit
	Min, Max int64 // of a number
	// Default is the number in force for a tenant without its own; one below Min stands for Max.
	Default int64
	// lessIsLooser: a smaller number is looser, and no number of its own is the strictest.
	lessIsLooser bool
	// at returns a pointer to the tenant's own value, of one of the types in own.
	at func(*Tenant) any
}

// Unit is what a number of a setting counts.
type Unit string

// The units.
const (
	InMinutes Unit = "minutes"
	InDays    Unit = "days"
)

// The names of the settings that have rules of their own.
const (
	SettingIdle       = "sessionIdleMinutes"
	SettingKeepEvents = "keepEventsDays"
	SettingDomains    = "allowedEmailDomains"
	SettingMFA        = "mfa"
	SettingMFARoles   = "mfaRoles"
	SettingAccent     = "accent"
)

// The values of the setting mfa.
const (
	MFAOptional = "optional"
	MFARequired = "required"
)

// Settings returns the settings of tenants in an installation with the limits of sessions, which keeps events
// for a time (0: for ever). A new setting is a row here, a field of TenantSettings, and a column in the store.
func Settings(limits SessionLimits, keepEvents time.Duration) []Setting {
	return []Setting{
		{
			Name: SettingIdle, Event: "sessionIdle", Section: "sessions", Unit: InMinutes, Min: 1, Max: Minutes(limits.Idle),
			at: func(t *Tenant) any { return &t.Settings.SessionIdle },
		},
		{
			Name: "sessionAbsoluteMinutes", Event: "sessionAbsolute", Section: "sessions", Unit: InMinutes, Min: 1, Max: Minutes(limits.Absolute),
			at: func(t *Tenant) any { return &t.Settings.SessionAbsolute },
		},
		{
			Name: "invitationDays", Event: "invitationDays", Section: "general", Unit: InDays, Min: 1, Max: InvitationDaysMax, Default: InvitationDaysMax,
			at: func(t *Tenant) any { return &t.Settings.InvitationDays },
		},
		{
			Name: SettingKeepEvents, Event: SettingKeepEvents, Section: "general", Unit: InDays, Max: cmp.Or(days(keepEvents), MaxKeepEventsDays), Default: days(keepEvents),
			lessIsLooser: true,
			at:           func(t *Tenant) any { return &t.Settings.KeepEventsDays },
		},
		{
			Name: "mfaGraceDays", Event: "mfaGraceDays", Section: "factors", Unit: InDays, Max: MaxGraceDays,
			at: func(t *Tenant) any { return &t.Settings.SecondFactor.GraceDays },
		},
		{
			Name: "mfaRememberDays", Event: "mfaRememberDays", Section: "factors", Unit: InDays, Max: MaxRememberDays,
			at: func(t *Tenant) any { return &t.Settings.SecondFactor.RememberDays },
		},
		{
			Name: "stepUpMinutes", Event: "stepUp", Section: "factors", Unit: InMinutes, Min: 1, Max: Minutes(MaxStepUp), Default: Minutes(DefaultStepUp),
			at: func(t *Tenant) any { return &t.Settings.StepUp },
		},
		{Name: SettingDomains, Event: SettingDomains, at: func(t *Tenant) any { return &t.Settings.AllowedDomains }},
		{Name: SettingMFA, Event: SettingMFA, at: func(t *Tenant) any { return &t.Settings.SecondFactor.Since }},
		{Name: SettingMFARoles, Event: SettingMFARoles, at: func(t *Tenant) any { return &t.Settings.SecondFactor.Roles }},
		{Name: SettingAccent, Event: SettingAccent, at: func(t *Tenant) any { return &t.Brand.Accent }},
	}
}

// Minutes returns a limit in minutes, rounded up.
func Minutes(d time.Duration) int64 { return int64((d + time.Minute - 1) / time.Minute) }

// days returns a time in days, rounded up.
func days(d time.Duration) int64 { return int64((d + 24*time.Hour - 1) / (24 * time.Hour)) }

// isLooser reports whether the number that is in force after a change demands or limits less than before.
func (s Setting) isLooser(before, after Tenant) bool {
	if !s.lessIsLooser {
		return s.Number(after) > s.Number(before)
	}
	n := s.own(after).(int64)
	return n != 0 && (n < s.own(before).(int64) || s.own(before).(int64) == 0)
}

// own returns the tenant's own value as in the API: an int64, a string or a []string. It is zero, or a
// list without items, if the tenant has none of its own.
func (s Setting) own(t Tenant) any {
	switch v := s.at(&t).(type) {
	case *time.Duration:
		return Minutes(*v)
	case *int:
		return int64(*v)
	case *[]string:
		return append([]string{}, *v...)
	case *[]Role:
		return strings.Fields(SecondFactor{Roles: *v}.RoleNames())
	case *string:
		return *v
	case *time.Time:
		if v.IsZero() {
			return MFAOptional
		}
		return MFARequired
	default:
		panic(fmt.Sprintf("the setting %s has the type %T", s.Name, v))
	}
}

// Own returns the tenant's own value, as Effective does; nil without one.
func (s Setting) Own(t Tenant) any {
	switch v := s.own(t).(type) {
	case int64:
		if v != 0 {
			return v
		}
	case []string:
		if len(v) > 0 {
			return v
		}
	case string:
		if v != "" && v != MFAOptional {
			return v
		}
	}
	return nil
}

// Effective returns the value in force for the tenant, as in the API: an int64, a string or a []string.
func (s Setting) Effective(t Tenant) any {
	if s.Unit != "" {
		return s.Number(t)
	}
	return s.own(t)
}

// Number returns the number in force for the tenant.
func (s Setting) Number(t Tenant) int64 {
	n := s.ownOrDefault(t)
	if n < s.Min || n > s.Max {
		return s.Max
	}
	return n
}

func (s Setting) ownOrDefault(t Tenant) int64 {
	if n := s.own(t).(int64); n != 0 {
		return n
	}
	return s.Default
}

// Text returns the value as events show it: of a duration "10m0s", or "0s" for that of the installation.
func (s Setting) Text(t Tenant) string {
	if d, isDuration := s.at(&t).(*time.Duration); isDuration && *d == 0 {
		return (time.Duration(s.Default) * time.Minute).String()
	} else if isDuration {
		return d.String()
	}
	switch v := s.own(t).(type) {
	case []string:
		return strings.Join(v, " ")
	case string:
		return v
	default:
		return fmt.Sprint(s.ownOrDefault(t))
	}
}

// Set gives the tenant its own value, of the type that Effective returns. A demand for second factors
// begins now, unless there is one already.
func (s Setting) Set(t *Tenant, value any, now time.Time) {
	switch v := s.at(t).(type) {
	case *time.Duration:
		*v = time.Duration(value.(int64)) * time.Minute
	case *int:
		*v = int(value.(int64))
	case *[]string:
		*v = value.([]string)
	case *[]Role:
		*v = nil
		for _, name := range value.([]string) {
			*v = append(*v, Role(name))
		}
	case *string:
		*v = value.(string)
	case *time.Time:
		if value != MFARequired {
			*v = time.Time{}
		} else if v.IsZero() {
			*v = now
		}
	}
}
