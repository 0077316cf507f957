// Command upstream is a service behind a gateway that prints the requests it
// receives.
//
// It takes the caller's identity from the eight X-Auth-* headers, as a service may that can
// be reached only through its gateway. Each answer is JSON:
//
//	{
//	  "method": "POST",
//	  "path": "/messages",
//	  "host": "platform.example",
//	  "identity": {"user": "usr_…", "tenant": "tnt_…", "role": "USER", "email": "…", "session": "ses_…", "key": "", "aal": "1", "assertion": ""},
//	  "headers": {"Accept": ["*/*"], …},
//	  "bodyBytes": 12,
//	  "trailers": {}
//	}
//
// Use:
//
//	upstream [-listen 127.0.0.1:9000]
//
// A WebSocket gets the same as one message, and is then closed.
//
// It sets the cookies of the query ("?set-cookie=a%3Db").
//
// It prints its address, and then a line for each request. The answer's status is
// 200, or the one in the query ("?status=503").
package main

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

func main() {
	address := flag.String("listen", "127.0.0.1:9000", "`host:port`; port 0 takes a free one")
	flag.Parse()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	server := &http.Server{Handler: http.HandlerFunc(echo), ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.Serve(listener))
}

// request is what reached the service.
type request struct {
	Method    string              `json:"method"`
	Path      string              `json:"path"` // as it was sent, with the query
	Host      string              `json:"host"`
	Identity  identity            `json:"identity"`
	Headers   map[string][]string `json:"headers"`
	BodyBytes int64               `json:"bodyBytes"`
	Trailers  map[string][]string `json:"trailers"` // headers after the body; never identity
}

// identity is the caller, as the gateway states it.
type identity struct {
	User    string `json:"user"`
	Tenant  string `json:"tenant"`
	Role    string `json:"role"`
	Email   string `json:"email"`
	Session string `json:"session"`
	Key     string `json:"key"`
	AAL     string `json:"aal"`
	// Assertion says the same, signed; empty without --assertion-audience.
	Assertion string `json:"assertion"`
}

func echo(w http.ResponseWriter, r *http.Request) {
	size, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		http.Error(w, "the body arrived incomplete", http.StatusBadRequest)
		return
	}
	got := request{r.Method, r.RequestURI, r.Host, identityOf(r.Header), r.Header, size, r.Trailer}
	fmt.Println(got.Method, got.Path, got.Identity.User, got.Identity.Role)
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		answerByWebSocket(w, r, got)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header()["Set-Cookie"] = r.URL.Query()["set-cookie"]
	if status, err := strconv.Atoi(r.URL.Query().Get("status")); err == nil && status >= 200 && status < 600 {
		w.WriteHeader(status)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(got) // a client that is gone needs no answer
}

// answerByWebSocket accepts the handshake (RFC 6455, section 4.2.2), sends one text message
// and closes.
func answerByWebSocket(w http.ResponseWriter, r *http.Request, got request) {
	text, err := json.Marshal(got)
	if err != nil {
		http.Error(w, "the answer can't be encoded", http.StatusInternalServerError)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "this connection can't become a WebSocket", http.StatusNotImplemented)
		return
	}
	defer conn.Close()
	accept := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	head := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + base64.StdEncoding.EncodeToString(accept[:]) + "\r\n\r\n"
	message := binary.BigEndian.AppendUint16([]byte{0x81, 126}, uint16(len(text))) // final, text, 16 bits of length
	const closing = "\x88\x00"
	_, _ = io.WriteString(conn, head+string(message)+string(text)+closing) // a client that is gone needs no answer
}

func identityOf(h http.Header) identity {
	return identity{
		User: h.Get("X-Auth-User"), Tenant: h.Get("X-Auth-Tenant"), Role: h.Get("X-Auth-Role"),
		Email: h.Get("X-Auth-Email"), Session: h.Get("X-Auth-Session"), Key: h.Get("X-Auth-Key"),
		Assertion: h.Get("X-Auth-Assertion"), AAL: h.Get("X-Auth-AAL"),
	}
}
