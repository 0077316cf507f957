package node

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// refuseNew drops new connections, while those that the kernel has set up can still be
// accepted; closing the listener would reset these. The kernel runs the program on each
// segment from its TCP header on, and drops those with SYN set (RFC 9293, section 3.1: byte
// 13, bit 1). Such a client retries a second later and is then refused.
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
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},       // drop the segment
		{Code: unix.BPF_RET | unix.BPF_K, K: 1 << 16}, // keep 64 KiB: more than any segment has
	}
	filter := &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, filter)
	})
	return errors.Join(err, failed)
}

// unaccepted returns how many connections the kernel has set up that Accept has not returned
// yet; 0 if that can't be found out. For a listening socket it is the field tcpi_unacked
// (tcp_get_info in Linux's net/ipv4/tcp.c).
func (l *listener) unaccepted() int {
	tcp, ok := l.Listener.(*net.TCPListener)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	waiting := 0
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			waiting = int(info.Unacked)
		}
	})
	return waiting
}
