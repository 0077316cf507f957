package doorward

import (
	"net/netip"
	"time"
	"unicode/utf8"
)

// Caller is the principal of a request, and where it comes from. It is passed from
// the web floor to the decision and recorded in the audit event.
type Caller struct {
	Principal

	// Devices are the hashes of a browser's device cookies, MaxDevices at most. There
	// are several when more than one account signs in with it, or when another host of
	// the domain has set one.
	Devices [][]byte
	// Replaced are the hashes of the session tokens that a browser holds and that a
	// sign-in replaces. Those sessions of the same user end at the sign-in, since no
	// client holds their tokens any more.
	Replaced [][]byte

	// KeyHash is the hash of the secret by which an API key, a directory or an operator's page was authenticated; nil
	// for others.
	KeyHash []byte

	// ViewOnly reports whether the caller only views a page; then a refusal is not recorded.
	ViewOnly bool

	// Decided is the action of the route, which was decided before the body was read; empty for
	// none. Refusals of it by policies in mode observe are not counted again.
	Decided Action

	// Idempotent is set for a call with an Idempotency-Key whose answer is kept.
	Idempotent *IdempotentCall

	IP        string // the client's address, after trusted proxies
	UserAgent string
	RequestID string

	// Terminal says who runs a command, and why. For an operator's page it says that of the command that has made its
	// link. Zero for other requests.
	Terminal Terminal
}

// Terminal says who runs a command, and why. Every event that the command writes has it, and every event of an
// operator's page whose link the command has made.
type Terminal struct {
	SystemUser string // as in root@db1
	Reason     string // as typed; may be empty. See CheckOperatorReason
}

// changes returns the fields of an event that say who ran the command.
func (t Terminal) changes() (all []Change) {
	for _, c := range []Change{{Field: FieldOperatorReason, To: t.Reason}, {Field: FieldSystemUser, To: t.SystemUser}} {
		if c.To != "" {
			all = append(all, c)
		}
	}
	return all
}

// MaxOperatorReason is how many code points the reason of a command may have.
const MaxOperatorReason = 500

// CheckOperatorReason returns validation_failed unless the text may be the reason of a command: at most
// MaxOperatorReason code points in one line, as the trail shows it.
func CheckOperatorReason(text string) error {
	switch {
	case utf8.RuneCountInString(text) > MaxOperatorReason:
		return Invalid("/reason", "out_of_range", "The reason may have 500 characters at most.")
	case !utf8.ValidString(text) || hasControl(text):
		return Invalid("/reason", "invalid", "The reason may not contain control characters or change the direction of text. Write it in one line.")
	}
	return nil
}

// IdempotentCall is an attempt at a call with an Idempotency-Key. ID and Body are
// hashes: nothing here reveals the credential or the Idempotency-Key.
type IdempotentCall struct {
	ID       []byte // of the credential, the Idempotency-Key, the tenant and the path
	TenantID string // of the caller; may be empty
	UserID   string // the caller, if it is a user
	Body     []byte // of the request's body
	Attempt  string // distinguishes this attempt from others at the same call
	// NeededProof is set by access if the call needed a recent proof of identity: a replay needs one, too.
	NeededProof bool
	// Answer returns the sealed answer that says what the call has made. It may run
	// more than once; the last answer is the one that is sent.
	Answer func(made any) ([]byte, error)
}

// Allowance is what remains of a quota of attempts in a time window.
type Allowance struct {
	Name      string
	Quota     int
	Window    time.Duration
	Remaining int
	Reset     time.Duration // until the full quota is available again
}

// As returns the caller with the principal of the user, who has just been authenticated. The
// properties of the request stay unchanged.
func (c Caller) As(u User) Caller {
	c.Principal = PrincipalOf(u, Session{})
	return c
}

// OperatorAtTerminal is the caller of every command. The terminal says who runs it; tests leave it out.
func OperatorAtTerminal(at ...Terminal) Caller {
	c := Caller{Principal: Principal{Kind: Operator}, UserAgent: "doorward command line"}
	for _, t := range at {
		c.Terminal = t
	}
	return c
}

// siteShare is how many times the limit of one client all clients of an IPv6 /48 may have together.
const siteShare = 10

// Network returns the address range of one client: an IPv4 address, or the /64 that one IPv6
// customer has. It returns a text that isn't an address unchanged.
func Network(ip string) string {
	limits := NetworkLimits(ip, 0)
	return limits[len(limits)-1].Network
}

// Site returns the widest address range that one customer usually has: an IPv4 address, or a /48 of
// IPv6 (RFC 6177), which is 65,536 clients. It returns a text that isn't an address unchanged.
func Site(ip string) string { return NetworkLimits(ip, 0)[0].Network }

// NetworkLimit is how much a network may have of something that is counted by client address.
type NetworkLimit struct {
	Network string
	Limit   int
}

// NetworkLimits returns all networks in which something from an address counts, if one client may have
// limit of it, in the order in which to lock their counters. With IPv4, and for a text that isn't an
// address, that is the client alone. With IPv6 it is the /48, which may have ten times as much, then
// the client's /64. An IPv4-mapped address is IPv4. Those of 6to4 and NAT64 are IPv6 like any other.
func NetworkLimits(ip string, limit int) []NetworkLimit {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return []NetworkLimit{{ip, limit}}
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return []NetworkLimit{{addr.String(), limit}}
	}
	site, _ := addr.Prefix(48)
	client, _ := addr.Prefix(64)
	return []NetworkLimit{{site.String(), siteShare * limit}, {client.String(), limit}}
}
