// Package dnstest is a name server for tests, which answers over UDP and TCP.
//
//	server := dnstest.New(t)
//	server.TXT("_doorward.acme.example", "doorward-verification=…")
//	resolver := … // that asks server.Addr
//
// Like a resolver it follows its own CNAMEs. It can also fail and be silent. Names are without the dot at the
// end, in lower case.
package dnstest

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Server is a name server. Make it with New.
type Server struct {
	Addr string // HOST:PORT, for UDP and TCP

	mu       sync.Mutex
	texts    map[string][][]string // of each name the records, each of several strings
	cnames   map[string]string
	failing  map[string]bool
	silent   map[string]bool
	asked    map[string]int
	streamed int
}

// maxUDP is the longest answer by UDP; a longer one is cut off, so that the client asks again by TCP.
const maxUDP = 512

// New starts a server that runs until the test ends. It knows no name.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{texts: map[string][][]string{}, cnames: map[string]string{}, failing: map[string]bool{}, silent: map[string]bool{}, asked: map[string]int{}}
	packets, streams, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	s.Addr = streams.Addr().String()
	var running sync.WaitGroup
	running.Go(func() { s.servePackets(packets) })
	running.Go(func() { s.serveStreams(streams) })
	t.Cleanup(func() {
		_, _ = packets.Close(), streams.Close()
		running.Wait()
	})
	return s
}

// listen returns listeners on one port, which it looks for several times: that of UDP may be in use by TCP.
func listen() (packets net.PacketConn, streams net.Listener, err error) {
	for range 20 {
		if packets, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
			return nil, nil, err
		}
		if streams, err = net.Listen("tcp", packets.LocalAddr().String()); err == nil {
			return packets, streams, nil
		}
		_ = packets.Close()
	}
	return nil, nil, err
}

// TXT sets the records of the name; none: the name doesn't exist. A text of more than 255 bytes is sent as
// several strings.
func (s *Server) TXT(name string, texts ...string) {
	s.set(func() {
		delete(s.texts, name)
		for _, text := range texts {
			var record []string
			for len(text) > 255 {
				record, text = append(record, text[:255]), text[255:]
			}
			s.texts[name] = append(s.texts[name], append(record, text))
		}
	})
}

// Strings sets one record of the name, of these strings.
func (s *Server) Strings(name string, record ...string) {
	s.set(func() { s.texts[name] = [][]string{record} })
}

// CNAME makes the name an alias of the target.
func (s *Server) CNAME(name, target string) { s.set(func() { s.cnames[name] = target }) }

// Fail makes the server answer SERVFAIL for the name, or no longer.
func (s *Server) Fail(name string, fails bool) { s.set(func() { s.failing[name] = fails }) }

// Silence makes the server leave questions for the name without an answer, or no longer.
func (s *Server) Silence(name string, silent bool) { s.set(func() { s.silent[name] = silent }) }

func (s *Server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Asked returns how many questions there were for the name.
func (s *Server) Asked(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name]
}

// Streamed returns how many questions came by TCP.
func (s *Server) Streamed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streamed
}

func (s *Server) servePackets(conn net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if out := s.answer(buffer[:n], maxUDP); out != nil {
			_, _ = conn.WriteTo(out, from)
		}
	}
}

func (s *Server) serveStreams(l net.Listener) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		running.Go(func() { s.serveStream(conn) })
	}
}

// serveStream answers one question; the client closes the connection.
func (s *Server) serveStream(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // the client has the answer
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return
	}
	question := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, question); err != nil {
		return
	}
	s.set(func() { s.streamed++ })
	if out := s.answer(question, 1<<16-1); out != nil {
		_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)) //nolint:gosec // answer has kept to the limit
	}
}

// answer returns the answer to a question, in at most limit bytes; nil for none.
func (s *Server) answer(question []byte, limit int) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := strings.TrimSuffix(strings.ToLower(m.Questions[0].Name.String()), ".")
	s.asked[name]++
	if s.silent[name] {
		return nil
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	s.fill(&m, name)
	out, err := m.Pack()
	if err != nil || len(out) <= limit {
		return out
	}
	m.Truncated, m.Answers = true, nil
	out, _ = m.Pack()
	return out
}

// fill adds the records of the name, after the aliases that lead to them.
func (s *Server) fill(m *dnsmessage.Message, name string) {
	header := func(of string, kind dnsmessage.Type) dnsmessage.ResourceHeader {
		return dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(of + "."), Type: kind, Class: dnsmessage.ClassINET, TTL: 60}
	}
	for target, isAlias := s.cnames[name]; isAlias && len(m.Answers) < 8; target, isAlias = s.cnames[name] {
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: header(name, dnsmessage.TypeCNAME), Body: &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(target + ".")}})
		name = target
	}
	switch records, exists := s.texts[name]; {
	case s.failing[name]:
		m.RCode, m.Answers = dnsmessage.RCodeServerFailure, nil
	case !exists:
		m.RCode = dnsmessage.RCodeNameError
	case m.Questions[0].Type == dnsmessage.TypeTXT:
		for _, record := range records {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header(name, dnsmessage.TypeTXT), Body: &dnsmessage.TXTResource{TXT: record}})
		}
	}
}
