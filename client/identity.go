package client

import (
	"context"
	"net/http"
	"strings"
)

// Role is a person's role in a tenant. Check actions rather than compare roles:
// Doorward decides which role may do what.
type Role string

// The roles, the highest first.
const (
	Owner  Role = "OWNER"  // everything in the tenant, including billing and destroying data
	Admin  Role = "ADMIN"  // people and settings
	User   Role = "USER"   // sends messages, reads reports
	Viewer Role = "VIEWER" // reads messages and reports
)

// Identity is who is calling: a person with a session, or a server with an API key. For a
// person every field but KeyID is set (AAL only if the gateway passes it on), for a server
// only TenantID, Role and KeyID.
type Identity struct {
	UserID    string // usr_…
	TenantID  string // tnt_…; the tenant whose data the caller may see, and no other
	Role      Role   // in that tenant
	Email     string // the canonical address: lower case, at most 254 bytes
	SessionID string // ses_…; the id for logs, not a credential
	KeyID     string // key_…; the id for logs, not a credential
	AAL       int    // of the session: 2 after a second factor or a passkey, else 1; 0 for a server, or if unknown
}

type identityKey struct{}

// From returns the caller that [Client.Require] has found; false in a request that
// did not come through it. Handlers behind Require may ignore the second result.
func From(ctx context.Context) (Identity, bool) {
	id, ok := ctx.Value(identityKey{}).(Identity)
	return id, ok
}

// NewContext returns a context in which [From] finds id: for tests of handlers, and
// for services that use [FromGateway].
func NewContext(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// FromGateway returns the identity in the headers that a gateway sets: X-Auth-User,
// X-Auth-Tenant, X-Auth-Role, X-Auth-Email, X-Auth-Session, X-Auth-Key and X-Auth-AAL. It
// returns false if one is repeated, or if together they are those of neither a person nor
// a server. It doesn't ask Doorward.
//
// DANGER. A client that bypasses the gateway, or a gateway that forwards these
// headers from outside, can claim any identity. Use it only if both hold, and test
// both:
//
//   - the gateway sets or removes these headers and X-Auth-Assertion on every request that
//     it passes on, also those that need no sign-in;
//   - nobody else reaches the service: it listens on loopback, on a Unix socket or in a
//     network with only the gateway.
//
// It also doesn't check that the gateway asked for the right action.
// [Client.Require] behind the gateway is safe without either condition, at the cost
// of one call to Doorward.
func FromGateway(r *http.Request) (Identity, bool) { return identityOf(r.Header) }

// identityOf reads the headers that Doorward and gateways use.
func identityOf(h http.Header) (Identity, bool) {
	var role, aal string
	var id Identity
	for name, field := range map[string]*string{
		"X-Auth-User": &id.UserID, "X-Auth-Tenant": &id.TenantID, "X-Auth-Role": &role,
		"X-Auth-Email": &id.Email, "X-Auth-Session": &id.SessionID, "X-Auth-Key": &id.KeyID, "X-Auth-Aal": &aal,
	} {
		switch values := h[name]; len(values) {
		case 0:
		case 1:
			*field = values[0]
		default:
			return Identity{}, false
		}
	}
	id.Role, id.AAL = Role(role), levels[aal]
	if !id.isPerson() && !id.isServer() {
		return Identity{}, false
	}
	return id, true
}

// levels are the values of X-Auth-AAL.
var levels = map[string]int{"1": 1, "2": 2}

func (id Identity) isPerson() bool {
	return id.UserID != "" && id.TenantID != "" && id.Role != "" && id.Email != "" && id.SessionID != "" && id.KeyID == ""
}

func (id Identity) isServer() bool {
	return id.KeyID != "" && id.TenantID != "" && id.Role != "" && id.UserID == "" && id.Email == "" && id.SessionID == ""
}

// withoutIdentity returns h without identity headers, in every spelling that a
// program may treat as equal (CGI maps "-" to "_"). It copies h only if it has one.
func withoutIdentity(h http.Header) http.Header {
	clean := h
	for name := range h {
		if !isIdentityHeader(name) {
			continue
		}
		if len(clean) == len(h) { // the first one: clean is h itself
			clean = h.Clone()
		}
		delete(clean, name)
	}
	return clean
}

func isIdentityHeader(name string) bool {
	switch strings.ToLower(strings.ReplaceAll(name, "_", "-")) {
	case "x-auth-user", "x-auth-tenant", "x-auth-role", "x-auth-email", "x-auth-session", "x-auth-key", "x-auth-assertion", "x-auth-aal":
		return true
	}
	return false
}
