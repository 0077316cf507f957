// Package freeport finds addresses for servers that tests start.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// The ports are below those for outgoing connections (32768 and up on Linux), so
// that none of these takes one before the server starts or while it is down; and
// above those of pgtest.
const first, count = 20_000, 12_000

// next is shared by the process and starts at random. Purely random ports could be
// given to two servers that don't listen yet.
var next atomic.Uint32

func init() { next.Store(rand.Uint32N(count)) }

// On returns an unused HOST:PORT of loopback. No other call in this process returns
// it again.
func On(host string) string {
	for {
		address := net.JoinHostPort(host, strconv.Itoa(first+int(next.Add(1)%count)))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
}
