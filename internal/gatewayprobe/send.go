package gatewayprobe

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// answer is what the gateway answered.
type answer struct {
	status int
	header http.Header
	body   string
	echo   *echo // the request as the service got it; nil: it got none
}

// echo is the answer of examples/upstream.
type echo struct {
	Method, Path string
	Headers      http.Header
}

func (e *echo) identity() string { return e.Headers.Get("X-Auth-User") }

// headerWith returns the name of the first header whose value contains one of the texts; empty
// for none.
func (e *echo) headerWith(texts ...string) string {
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		for _, value := range e.Headers[name] {
			if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(value, text) }) {
				return name
			}
		}
	}
	return ""
}

const (
	timeout = 10 * time.Second // of one request
	maxBody = 1 << 20          // bytes that are read of an answer
)

// get asks for the URL with the query, which is empty or begins with "?".
func (p Probe) get(ctx context.Context, query string, headers ...string) (answer, error) {
	return p.send(ctx, http.MethodGet, p.URL.EscapedPath()+query, headers...)
}

// send writes a request as it is, unlike net/http's client, which changes some: headers are
// "Name: value", and the target may be any text.
func (p Probe) send(ctx context.Context, method, target string, headers ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := p.dial(ctx)
	if err != nil {
		return answer{}, err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return answer{}, err
	}
	if !slices.ContainsFunc(headers, func(h string) bool { return strings.HasPrefix(h, "Connection:") }) {
		headers = append(slices.Clone(headers), "Connection: close")
	}
	head := method + " " + target + " HTTP/1.1\r\nHost: " + p.URL.Host + "\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
	_, _ = io.WriteString(conn, head) // a gateway may answer and close after the first bytes
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	a := answer{status: res.StatusCode, header: res.Header}
	if a.status == http.StatusSwitchingProtocols {
		return a, nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	a.body, a.echo = string(body), parseEcho(body)
	return a, err
}

// parseEcho returns nil if the body isn't from examples/upstream.
func parseEcho(body []byte) *echo {
	var e echo
	if json.Unmarshal(body, &e) != nil || e.Method == "" || e.Headers == nil {
		return nil
	}
	return &e
}

func (p Probe) dial(ctx context.Context) (net.Conn, error) {
	address := p.URL.Host
	if p.URL.Port() == "" {
		address = net.JoinHostPort(p.URL.Hostname(), map[string]string{"http": "80", "https": "443"}[p.URL.Scheme])
	}
	if p.URL.Scheme == "https" {
		return (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}
