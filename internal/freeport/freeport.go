// Package freeport finds addresses for servers that tests start.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// The ports are below those of outgoing connections (32768 and up on Linux), which could
// otherwise take one before the server starts or while it is down; and above those of
// pgtest.
const first, count = 20_000, 12_000

// next is shared by the process and starts at random. Purely random ports could be
// given to two servers that don't listen yet.
var next atomic.Uint32

func init() { next.Store(rand.Uint32N(count)) }

// AddressOn returns HOST:PORT with an unused port of the host, which is a loopback address. The
// process gets the same port again only after all 12,000.
func AddressOn(host string) string {
	for {
		address := net.JoinHostPort(host, strconv.Itoa(first+int(next.Add(1)%count)))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
}
