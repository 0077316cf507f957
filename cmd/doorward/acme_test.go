package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/installed"
	"github.com/doorward/doorward/internal/tlscert/certtest"
)

// authority is pebble, Let's Encrypt's own ACME server for tests, on loopback with a
// DNS server that resolves every name to 127.0.0.1.
type authority struct {
	url   string // of its directory
	admin string // URL of its management API
	trust string // file with the certificate that the directory is served with
}

// needPebble returns the paths of pebble and its DNS server. Where programs are required it
// builds both; elsewhere it skips the test unless they are built.
func needPebble(t *testing.T) (pebble, dns string) {
	t.Helper()
	if testing.Short() {
		t.Skip("no ACME under -short; make test runs everything")
	}
	for _, file := range []string{"go.mod", "go.sum"} { // so that go test reruns this test when they change
		read(t, "tools/"+file)
	}
	if installed.Required() {
		if out, err := exec.Command("../../scripts/tool.sh", "pebble", "-version").CombinedOutput(); err != nil {
			t.Fatalf("build pebble: %v\n%s", err, out)
		}
	}
	pebble, dns = needTool(t, "pebble"), needTool(t, "pebble-challtestsrv")
	return pebble, dns
}

// needTool returns the path of a program that scripts/tool.sh builds, or skips the test if it
// isn't there. Where programs are required it has just been built, so the test doesn't stat it:
// go test doesn't reuse a result if a file that the test looked at has changed, and each build
// changes the modification time of the tools.
func needTool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/tools/" + name)
	if err == nil && !installed.Required() {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skipf("no %s here; scripts/tool.sh builds it: %v", name, err)
	}
	return path
}

// startAuthority starts an authority that validates names at this port of loopback. Its
// certificates have this lifetime.
func startAuthority(t *testing.T, port string, life time.Duration) authority {
	t.Helper()
	pebble, dns := needPebble(t)
	folder, listen, admin, resolver := t.TempDir(), freeport.AddressOn("localhost"), freeport.AddressOn("localhost"), freeport.AddressOn("localhost")
	cert, key := certtest.NewAuthority(t).WriteChain(t, folder)
	// The challenge is TLS-ALPN-01, so the port for HTTP-01 is never used.
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": listen, "managementListenAddress": admin, "certificate": cert, "privateKey": key,
		"httpPort": 1, "tlsPort": json.Number(port), "profiles": map[string]any{"default": map[string]any{"description": life.String(), "validityPeriod": int(life.Seconds())}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "pebble.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	// Started by env, because starting it directly would look at its file (see needTool).
	runUntilEnd(t, exec.Command("env", dns, "-dnsserver", resolver, "-defaultIPv4", "127.0.0.1", "-defaultIPv6", "",
		"-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-management", freeport.AddressOn("localhost")))
	cmd := exec.Command("env", pebble, "-config", file, "-dnsserver", resolver)
	cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0")
	runUntilEnd(t, cmd)
	return authority{url: "https://" + listen + "/dir", admin: "https://" + admin, trust: cert}
}

// runUntilEnd starts the program and ends it with the test, and logs its output if the test
// has failed.
func runUntilEnd(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if t.Failed() {
			t.Logf("output of %s:\n%s", strings.Join(cmd.Args, " "), out.String())
		}
	})
}

// roots returns the root certificates of this authority, which makes new ones at each start.
func (a authority) roots(t *testing.T) *x509.CertPool {
	t.Helper()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	pool := x509.NewCertPool()
	retry(t, "the authority's root", func() error {
		res, err := client.Get(a.admin + "/roots/0")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err == nil && !pool.AppendCertsFromPEM(text) {
			err = fmt.Errorf("no certificate: %s", text)
		}
		return err
	})
	return pool
}

// retry calls try until it succeeds, for waitTimeout at most.
func retry(t *testing.T, description string, try func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	err := try()
	for end := time.Now().Add(waitTimeout); err != nil; err = try() {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v: %v", description, waitTimeout, err)
		}
		<-tick.C
	}
}

// TestACME: a server gets a certificate for its name from the authority, serves it, and
// keeps it over a restart.
func TestACME(t *testing.T) {
	t.Parallel()
	addr, dir := freeport.AddressOn("localhost"), t.TempDir()
	_, port, _ := net.SplitHostPort(addr)
	ca := startAuthority(t, port, 24*time.Hour)
	clientTLS := &tls.Config{RootCAs: ca.roots(t), ServerName: "door.test.example", NextProtos: []string{"h2"}}
	serials := map[string]bool{}
	for range 2 {
		stop := ca.serve(t, addr, dir)
		retry(t, "a handshake", func() error {
			c, err := tls.Dial("tcp", addr, clientTLS)
			if err != nil {
				return err
			}
			defer c.Close()
			serials[c.ConnectionState().PeerCertificates[0].SerialNumber.String()] = true
			if got := c.ConnectionState().NegotiatedProtocol; got != "h2" {
				t.Errorf("the protocol is %q, want h2", got)
			}
			return nil
		})
		if out, err := exec.Command("doorward", "healthcheck", "--ready", "--listen", addr, "--base-url", "https://door.test.example", "--acme-dir", dir).CombinedOutput(); err != nil {
			t.Errorf("healthcheck: %v\n%s", err, out)
		}
		if log := stop(); !strings.Contains(log, "certificate from the ACME authority is in use") {
			t.Errorf("the log doesn't mention the certificate:\n%s", log)
		}
	}
	if len(serials) != 1 {
		t.Errorf("%d certificates were seen, want one for both starts", len(serials))
	}
}

// TestACMERenews: a running server replaces its certificate before it expires, and
// never serves an expired one.
func TestACMERenews(t *testing.T) {
	t.Parallel()
	addr, dir := freeport.AddressOn("localhost"), t.TempDir()
	_, port, _ := net.SplitHostPort(addr)
	ca := startAuthority(t, port, 30*time.Second)
	clientTLS := &tls.Config{RootCAs: ca.roots(t), ServerName: "door.test.example"}
	serials := map[string]bool{}
	visit := func() error {
		c, err := tls.Dial("tcp", addr, clientTLS) // checks the dates
		if err == nil {
			defer c.Close()
			serials[c.ConnectionState().PeerCertificates[0].SerialNumber.String()] = true
		}
		return err
	}
	stop := ca.serve(t, addr, dir)
	retry(t, "the first certificate", visit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for len(serials) < 2 { // visit fails if the first one expires before it is replaced
		if err := visit(); err != nil {
			t.Fatalf("a handshake failed: %v", err)
		}
		<-tick.C
	}
	if log := stop(); strings.Count(log, "certificate from the ACME authority is in use") != 2 || strings.Contains(log, "ERROR") {
		t.Errorf("want two certificates and no error in the log:\n%s", log)
	}
}

// serve starts a server that gets its certificate from the authority; stop ends it and
// returns its log.
func (a authority) serve(t *testing.T, addr, dir string) (stop func() string) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command("doorward", "serve", "--listen", addr, "--base-url", "https://door.test.example",
		"--acme-dir", "certificates", "--acme-url", a.url, "--acme-email", "operator@test.example")
	cmd.Dir, cmd.Stderr = dir, &log
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+a.trust)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return func() string {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve: %v\n%s", err, log.String())
		}
		return log.String()
	}
}
