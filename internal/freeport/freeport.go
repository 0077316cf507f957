// Package freeport finds addresses for servers that tests start.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// The ports are below those that systems take for outgoing connections (32768 and
// up on Linux), so that none of these takes one before the server does, or while
// the server is dead; and above those of pgtest.
const first, many = 20_000, 12_000

// next is shared by a process and begins anywhere. Random ports could be given to
// two servers that have not begun to listen.
var next atomic.Uint32

func init() { next.Store(rand.Uint32N(many)) }

// On returns HOST:PORT of loopback, on which nobody listens. No other call in this
// process returns it again.
func On(host string) string {
	for {
		address := net.JoinHostPort(host, strconv.Itoa(first+int(next.Add(1)%many)))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
}
