package node_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/node"
)

// TestMetricsAreForThisMachineAlone: the main address doesn't serve /metrics to
// requests through a proxy on this machine, whatever headers the proxy adds.
func TestMetricsAreForThisMachineAlone(t *testing.T) {
	t.Parallel()
	server := doorwardtest.Start(t, func(c *node.Config) { c.Listen = "localhost:0" })
	address := server.Node.Address()
	port := address[strings.LastIndexByte(address, ':'):]
	for _, host := range []string{"localhost" + port, "127.0.0.1" + port, "[::1]" + port, "localhost", "[::1]", "127.8.9.10", "node1.localhost"} {
		if status := scrapeAs(t, address, "HTTP/1.1", host, ""); status != http.StatusOK {
			t.Errorf("asked for as %s: %d", host, status)
		}
	}
	for _, host := range []string{"auth.example.com", "auth.example.com" + port, "10.0.0.1", "[2001:db8::1]" + port, "localhost.example.com", "localhost:80:80", "127.0.0.1.nip.io"} {
		if status := scrapeAs(t, address, "HTTP/1.1", host, ""); status != http.StatusNotFound {
			t.Errorf("asked for as %s: %d", host, status)
		}
	}
	for _, name := range []string{
		"X-Real-IP", "Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Uri", "X-Forwarded", "True-Client-IP",
		"CF-Connecting-IP", "CF-Ray", "X-Client-IP", "X-Original-Forwarded-For", "X-Original-URI", "X-Cluster-Client-IP", "X-Envoy-External-Address", "x-real-ip", "CDN-Loop",
		"X_Forwarded_For", "Forwarded-For", "X-NginX-Proxy", "X-Varnish", "Front-End-Https", "Surrogate-Capability",
	} {
		if status := scrapeAs(t, address, "HTTP/1.1", "localhost"+port, name+": 203.0.113.9\r\n"); status != http.StatusNotFound {
			t.Errorf("with %s: %d", name, status)
		}
	}
	if status := scrapeAs(t, address, "HTTP/1.1", "localhost"+port, "Via: \r\n"); status != http.StatusNotFound {
		t.Errorf("with an empty Via: %d", status)
	}
	if status := scrapeAs(t, address, "HTTP/1.0", "localhost"+port, ""); status != http.StatusNotFound {
		t.Errorf("over HTTP/1.0: %d", status)
	}
}

// TestMetricsOnTheirOwnAddress: the admin address serves /metrics to everybody, also through a
// proxy, and then the main address serves it to nobody.
func TestMetricsOnTheirOwnAddress(t *testing.T) {
	t.Parallel()
	var admin string
	server := doorwardtest.Start(t, func(c *node.Config) {
		c.AdminListen = freeport.AddressOn("127.0.0.1")
		admin = c.AdminListen
	})
	if status := scrapeAs(t, admin, "HTTP/1.1", "node1.internal", "X-Real-IP: 10.0.0.9\r\nVia: 1.1 proxy\r\n"); status != http.StatusOK {
		t.Errorf("through a proxy: %d", status)
	}
	if status := scrapeAs(t, server.Node.Address(), "HTTP/1.1", "localhost", ""); status != http.StatusNotFound {
		t.Errorf("on the main address: %d", status)
	}
}

// scrapeAs asks for /metrics with a Host and other headers, byte for byte.
func scrapeAs(t *testing.T, address, protocol, host, headers string) int {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /metrics %s\r\nHost: %s\r\n%sConnection: close\r\n\r\n", protocol, host, headers)
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	status := 0
	if _, err := fmt.Sscanf(string(answer), "HTTP/1.1 %d", &status); err != nil {
		if _, err := fmt.Sscanf(string(answer), "HTTP/1.0 %d", &status); err != nil {
			t.Fatalf("%.200q", answer)
		}
	}
	return status
}
