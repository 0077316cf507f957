package gatewayprobe

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUpstreamOnOneMachine: a service on loopback answers the doctor, as it should; one that listens on all
// addresses is named with the address by which others reach it.
func TestUpstreamOnOneMachine(t *testing.T) {
	for _, c := range []struct {
		listen string
		wrong  bool
	}{{"127.0.0.1:0", false}, {":0", len(otherAddresses("1")) > 0}} {
		listener, err := net.Listen("tcp", c.listen)
		if err != nil {
			t.Fatal(err)
		}
		service := httptest.NewUnstartedServer(http.NotFoundHandler())
		service.Listener.Close()
		service.Listener = listener
		service.Start()
		defer service.Close()
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"127.0.0.1", "localhost"} {
			f := Probe{Upstream: net.JoinHostPort(host, port)}.upstream(t.Context())
			if (f.Wrong != "") != c.wrong || strings.HasPrefix(f.Wrong, host) {
				t.Errorf("listening on %s, asked by %s: %+v", c.listen, host, f)
			}
		}
	}
}
