// Package doorward holds the words of Doorward, the authentication and access
// service that multi-tenant platforms put at their door: tenants and their
// users, roles and actions, invitations, sessions, and the one error type.
//
// It imports the standard library only and does no I/O, so that every other
// floor (store, app, web, cmd) can speak the same words without importing each
// other. The rules that need a database live in app; this package knows only
// what is true of the words themselves, such as which role may do which action.
package doorward

import "time"

// Clock tells the present instant. It is handed in everywhere, so that tests
// of expiry move a clock instead of sleeping.
type Clock func() time.Time

// Instant returns t in UTC at the precision that is stored: microseconds.
func Instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
