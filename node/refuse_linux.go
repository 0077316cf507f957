package node

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// refuseNew lets nobody new in while those who have knocked can still be taken in.
// Closing a listener at once would reset connections that the kernel has set up
// and Accept has not returned yet, with the requests that are in them.
//
// The program is run by the kernel on each segment to the listening socket,
// from the TCP header on, and drops what opens a connection (RFC 9293, section
// 3.1: byte 13 holds the flags, bit 1 is SYN). Such a client tries again a
// second later and then hears that nobody listens.
func (l *listener) refuseNew() error {
	tcp, ok := l.Listener.(*net.TCPListener)
	if !ok {
		return errors.New("node: no TCP listener")
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 13},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: 0x02, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: 1 << 16},
	}
	filter := &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, filter)
	})
	return errors.Join(err, failed)
}
