// Package doorward has the shared types of Doorward, the authentication and access
// service of a multi-tenant platform: tenants and their users, roles and actions,
// invitations, sessions, and the one error type.
//
// It imports the standard library only and does no I/O, so that all other floors
// (store, app, web, cmd) can use these types without importing each other. Rules
// that need a database are in app; this package has only rules about the types
// themselves, such as which role may do which action.
package doorward

import "time"

// Clock returns the current time. It is a parameter everywhere, so that tests of
// expiry move a clock instead of sleeping.
type Clock func() time.Time

// Instant returns t in UTC at the precision that is stored: microseconds.
func Instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
