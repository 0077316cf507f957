package demand

import (
	"time"

	"github.com/doorward/doorward"
)

// Draft is a policy as it is typed.
type Draft struct {
	Mode           string
	Guests         string
	ConfirmMinutes int // 0: the default
}

// check returns the faults of the draft.
func (d Draft) check() (faults []doorward.FieldError) {
	switch doorward.SSOMode(d.Mode) {
	case doorward.SSOOff, doorward.SSOOptional, doorward.SSORequired:
	default:
		faults = append(faults, doorward.FieldError{Pointer: "/mode", Code: "invalid", Message: "The mode is off, optional or required."})
	}
	if d.Guests != doorward.GuestsAllowed && d.Guests != doorward.GuestsRefused {
		faults = append(faults, doorward.FieldError{Pointer: "/guests", Code: "invalid", Message: "Guests are allowed or refused."})
	}
	if n := d.ConfirmMinutes; n != 0 && (n < doorward.SSOConfirmMinutesMin || n > doorward.SSOConfirmMinutesMax) {
		faults = append(faults, doorward.FieldError{Pointer: "/confirmMinutes", Code: "out_of_range", Message: "Give 5 to 60 minutes to confirm, or leave it out."})
	}
	return faults
}

func (d Draft) confirmBy(now time.Time) *time.Time {
	minutes := d.ConfirmMinutes
	if minutes == 0 {
		minutes = doorward.SSOConfirmMinutes
	}
	at := now.Add(time.Duration(minutes) * time.Minute)
	return &at
}

// apply returns what the policy becomes; with the same revision if nothing changes. The demand itself, and
// who its guests are, is provisional, unless it is what holds anyway. What it returns to is always
// something that was confirmed, or needed no confirmation. The same demand again changes nothing, and keeps its
// end: else it could be put off for good, unconfirmed.
func (d Draft) apply(was doorward.SSOPolicy, now time.Time) doorward.SSOPolicy {
	mode, refused := doorward.SSOMode(d.Mode), d.Guests == doorward.GuestsRefused
	if mode == was.Mode && refused == was.GuestsRefused {
		return was
	}
	next := doorward.SSOPolicy{TenantID: was.TenantID, Mode: mode, GuestsRefused: refused, Revision: was.Revision + 1, ChangedAt: now}
	beforeMode, beforeRefused := was.Settled()
	if mode != doorward.SSORequired || mode == beforeMode && refused == beforeRefused {
		return next
	}
	next.ConfirmBy, next.BeforeMode, next.BeforeGuestsRefused = d.confirmBy(now), beforeMode, beforeRefused
	return next
}
