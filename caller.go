package doorward

import (
	"net/netip"
	"time"
)

// Caller is who asks, and from where. It goes down from the protocol floor to
// the decision and ends in the audit event.
type Caller struct {
	Principal

	// Devices are the hashes of the cookies of a browser that says it has signed in
	// before, MaxDevices at most. It holds several when more than one account signs
	// in with it, or when another host of the domain has set one.
	Devices [][]byte
	// Replaced are the hashes of the tokens that a browser holds and will have
	// replaced once it has signed in. Those of sessions of the same person end with
	// that, since nobody could use them any more.
	Replaced [][]byte

	// Looking says that the caller only looks at a page: to be refused that is not
	// recorded.
	Looking bool

	IP        string // the client's address, after trusted proxies
	UserAgent string
	RequestID string
}

// Allowance is what is left of a number of tries within a time.
type Allowance struct {
	Name      string
	Quota     int
	Window    time.Duration
	Remaining int
	Reset     time.Duration // until the quota is whole again
}

// As returns the caller as the user, who has just proved to be that one, with
// what belongs to the request kept.
func (c Caller) As(u User) Caller {
	c.Principal = PrincipalOf(u, Session{})
	return c
}

// OperatorAtTerminal is the caller of every command.
func OperatorAtTerminal() Caller {
	return Caller{Principal: Principal{Kind: Operator}, UserAgent: "doorward command line"}
}

// Network is what counts as one client: an IPv4 address, or the /64 that one
// IPv6 customer has.
func Network(ip string) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return ip
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	prefix, _ := addr.Prefix(64)
	return prefix.String()
}
