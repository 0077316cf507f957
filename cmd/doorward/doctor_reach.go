package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web/front"
)

// certificateSoon is how long before its end a certificate is reported, as by the alert DoorwardCertificateEnds.
const certificateSoon = 7 * 24 * time.Hour

// checkCertificate checks the certificate in --tls-cert. Without one it returns no finding; one that an ACME authority
// issues is checked at the base URL.
func checkCertificate(s *settings, cfg node.Config) []finding {
	if cfg.TLS == nil || cfg.TLS.Expires().IsZero() {
		return nil
	}
	f := finding{check: "certificate"}
	f.judgeEnd(cfg.TLS.Expires(), "the certificate in "+s.origins.place("tls-cert"))
	if f.wrong != "" {
		f.remedy = "Renew it, and replace both files: a running server takes the new ones within seconds. docs/install.md says what can renew it."
	}
	return []finding{f}
}

// judgeEnd fills in the finding about a certificate that ends at an instant.
func (f *finding) judgeEnd(end time.Time, what string) {
	date := end.UTC().Format(time.RFC3339)
	switch left := time.Until(end); {
	case left <= 0:
		f.wrong, f.code = what+" ended at "+date+": browsers refuse it", exitFailed
	case left < certificateSoon:
		f.wrong, f.code = fmt.Sprintf("%s ends in %d days, at %s", what, int(left/(24*time.Hour)), date), exitFailed
	default:
		f.fine = what + " is valid until " + date
	}
}

// reachTimeout is how long the host of the base URL has for a connection and a handshake.
const reachTimeout = 5 * time.Second

// checkReach connects to the base URL, as browsers do. A name of this machine is checked only if something listens
// there: the server needn't run.
func checkReach(ctx context.Context, s *settings, cfg node.Config) []finding {
	u := cfg.PublicURL()
	f := finding{check: "base URL host", fine: u.Host + " answers"}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	cert, err := shake(ctx, u)
	place := s.origins.place("base-url")
	var unknown *net.DNSError
	switch {
	case err != nil && front.IsLoopback(u.Hostname()):
		return nil
	case errors.As(err, &unknown):
		f.wrong, f.code = fmt.Sprintf("the name %s doesn't resolve: %s", u.Hostname(), unknown.Err), exitFailed
		f.remedy = "Correct " + place + ", or the DNS record. Until then links in mails lead nowhere."
	case err != nil:
		f.wrong, f.code = fmt.Sprintf("%s can't be reached: %s", u, cause(err)), exitFailed
		f.remedy = "Check that the gateway in front runs, that the record of " + u.Hostname() + " names it, and " + place + ". If only this machine can't reach its own public address, run doctor with that name in /etc/hosts."
	case cert != nil:
		f.judgeEnd(cert.NotAfter, "its certificate")
		if bad := cert.VerifyHostname(u.Hostname()); bad != nil && f.wrong == "" {
			f.wrong, f.code = "browsers refuse its certificate: "+strings.TrimPrefix(bad.Error(), "x509: "), exitFailed
		}
		if f.wrong != "" {
			f.remedy = "Renew the certificate of " + u.Host + " where TLS ends: at the gateway, or at Doorward (docs/install.md)."
		}
	}
	return []finding{f}
}

// shake connects to a URL. For https it returns the certificate of the server, which any authority may have issued.
func shake(ctx context.Context, u *url.URL) (*x509.Certificate, error) {
	ports := map[string]string{"http": "80", "https": "443"}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), ports[u.Scheme]))
	if u.Scheme != "https" {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return nil, err
	}
	d := tls.Dialer{Config: &tls.Config{ServerName: u.Hostname(), InsecureSkipVerify: true}} // an authority may be private; nothing is sent
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// checkLimits reports limits that are off and shouldn't be.
func checkLimits(s *settings, cfg node.Config) []finding {
	if cfg.Attempts.PerAccount != 0 {
		return nil
	}
	return []finding{{
		check: "limits", code: exitFailed,
		wrong:  s.origins.place("limit-login-account") + " is 0: nothing slows down guesses of a person's password from many addresses",
		remedy: "Leave it out, for five wrong passwords before a delay.",
	}}
}

// metrics are the values of a server's metrics, by name and labels as in the text format.
type metrics map[string]float64

// sum adds the values of a metric over all of its labels, except those that contain without; "" leaves out none.
func (m metrics) sum(name, without string) (all float64) {
	for series, value := range m {
		if base, labels, _ := strings.Cut(series, "{"); base == name && (without == "" || !strings.Contains(labels, without)) {
			all += value
		}
	}
	return all
}

// readMetrics asks the server on this machine. It returns nil if none answers.
func readMetrics(ctx context.Context, cfg node.Config) metrics {
	address, err := adminURL(cfg, "/metrics")
	if err != nil {
		return nil
	}
	var res *http.Response
	if res, err = askLoopback(ctx, address); err != nil {
		return nil
	}
	defer res.Body.Close()
	all := metrics{}
	lines := bufio.NewScanner(io.LimitReader(res.Body, 8<<20))
	for lines.Scan() {
		if at := strings.LastIndexByte(lines.Text(), ' '); at > 0 && lines.Text()[0] != '#' {
			if value, err := strconv.ParseFloat(lines.Text()[at+1:], 64); err == nil {
				all[lines.Text()[:at]] = value
			}
		}
	}
	return all
}

// serverTimeout bounds all questions to the server on this machine.
const serverTimeout = 5 * time.Second

// checkServer asks the server on this machine for its metrics. If none runs here, there is no finding.
func checkServer(ctx context.Context, s *settings, cfg node.Config) (all []finding) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	m := readMetrics(ctx, cfg)
	if m == nil {
		return nil
	}
	return append(checkForwarders(m, s), checkHashing(ctx, m, cfg)...)
}

// forwardedFor is how long ago a request by a proxy that isn't trusted may have been to be reported.
const forwardedFor = 10 * time.Minute

// checkForwarders reports a proxy that isn't trusted. A client may send X-Forwarded-For itself: from a public address
// it is taken for a proxy only if most requests came so.
func checkForwarders(m metrics, s *settings) []finding {
	isRecent := func(from string) bool {
		at := m[`doorward_untrusted_proxy_last_timestamp_seconds{from="`+from+`"}`]
		return at > 0 && time.Since(time.Unix(int64(at), 0)) < forwardedFor
	}
	all := m.sum("doorward_http_requests_total", `route="/metrics"`)
	public := m[`doorward_untrusted_proxy_requests_total{from="public"}`]
	if !isRecent("private") && (!isRecent("public") || 2*public < all) {
		return nil
	}
	return []finding{{
		check: "proxies", code: exitFailed,
		wrong:  "requests with X-Forwarded-For come from an address that is not in " + s.origins.place("trusted-proxies") + ": to Doorward all people behind that proxy are one client, and 30 wrong passwords by anybody are 429 for all",
		remedy: "Add the proxy's address, which the server's log names: \"request with X-Forwarded-For from an address that is no trusted proxy\".",
	}}
}

const (
	// fullSamples is how often in a row the pool must be full to be reported, and fullPause the time between: somebody
	// who waits for a moment is no fault.
	fullSamples = 3
	fullPause   = 300 * time.Millisecond
)

// checkHashing reports a pool of password hashes in which callers wait.
func checkHashing(ctx context.Context, m metrics, cfg node.Config) []finding {
	f := finding{check: "hashing", fine: "nobody waits for a password hash"}
	for i := 0; m != nil && m["doorward_password_hashes_queued"] > 0 && m["doorward_password_hashes_running"] >= m["doorward_password_hash_workers"]; i++ {
		if i == fullSamples-1 {
			f.wrong, f.code = fmt.Sprintf("all %.0f password hashes that this machine can make at once are being made, and %.0f callers wait; %.0f were turned away since the start, with 503",
				m["doorward_password_hash_workers"], m["doorward_password_hashes_queued"], m["doorward_password_hashes_refused_total"]), exitFailed
			f.remedy = "Many people sign in at once, or somebody guesses: \"doorward audit search --action session.open --outcome refused --since 10m\" shows from where. Stop that at the gateway, or give the server more cores."
			break
		}
		select {
		case <-ctx.Done():
			return []finding{f}
		case <-time.After(fullPause):
			m = readMetrics(ctx, cfg)
		}
	}
	return []finding{f}
}
