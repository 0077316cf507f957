package node

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/tlscert/certtest"
	"github.com/doorward/doorward/internal/waittest"
)

// trackingListener adds each connection to the open ones.
type trackingListener struct {
	net.Listener
	open *openConns
}

func (l trackingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.open.add(conn.(*net.TCPConn), func() {}), nil
}

// Types and flags of frames (RFC 9113, section 6).
const (
	headersFrame, settingsFrame = 0x1, 0x4
	ack, endStream, endHeaders  = 0x1, 0x1, 0x4
)

func sendFrame(t *testing.T, w io.Writer, kind, flags byte, stream uint32, payload []byte) {
	t.Helper()
	frame := []byte{0, 0, byte(len(payload)), kind, flags}
	_, err := w.Write(append(binary.BigEndian.AppendUint32(frame, stream), payload...))
	requireNoError(t, err)
}

// receiveFrame reads frames up to the first that is wanted.
func receiveFrame(t *testing.T, r io.Reader, isWanted func(kind, flags byte) bool) {
	t.Helper()
	for {
		var header [9]byte
		_, err := io.ReadFull(r, header[:])
		requireNoError(t, err)
		_, err = io.CopyN(io.Discard, r, int64(header[0])<<16|int64(header[1])<<8|int64(header[2]))
		requireNoError(t, err)
		if isWanted(header[3], header[4]) {
			return
		}
	}
}

// TestRaceDrainWaitsForTheFirstRequestOverHTTP2: a drain waits for the first request of a connection
// that has only said so far that it speaks HTTP/2, and for no later request.
func TestRaceDrainWaitsForTheFirstRequestOverHTTP2(t *testing.T) {
	t.Parallel()
	open, authority := newOpenConns(), certtest.NewAuthority(t)
	l, err := net.Listen("tcp", "localhost:0")
	requireNoError(t, err)
	cert, key := authority.Pair(time.Now().Add(time.Hour)).WriteFiles(t, t.TempDir())
	server := http.Server{Handler: http.NotFoundHandler(), ConnState: open.connState}
	go server.ServeTLS(trackingListener{l, open}, cert, key)
	t.Cleanup(func() { server.Close() })

	client, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: authority.Pool, NextProtos: []string{"h2"}, ServerName: "localhost"})
	requireNoError(t, err)
	defer client.Close()
	_, err = io.WriteString(client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	requireNoError(t, err)
	sendFrame(t, client, settingsFrame, 0, 0, nil)
	receiveFrame(t, client, func(kind, flags byte) bool { return kind == settingsFrame && flags&ack != 0 })
	open.mu.Lock()
	for c := range open.all {
		if until := c.pendingUntil.Load(); until == waitsForNothing || until == waitsForAnswer {
			t.Errorf("before its first request a connection is pending until %d, want an instant", until)
		}
	}
	open.mu.Unlock()

	get := append([]byte{0x82, 0x87, 0x84, 0x41, 9}, "localhost"...) // :method GET, :scheme https, :path /, :authority (RFC 7541, appendix A)
	sendFrame(t, client, headersFrame, endStream|endHeaders, 1, get)
	receiveFrame(t, client, func(kind, flags byte) bool { return kind != settingsFrame && flags&endStream != 0 })
	if n := waitUntilNone(waittest.Limit, open.countPending); n != 0 {
		t.Errorf("%d connections are pending after the answer", n)
	}
}
