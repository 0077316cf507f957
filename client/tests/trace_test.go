package client_test

import (
	"net/http"
	"testing"

	"github.com/doorward/doorward/client"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/internal/trace/tracetest"
	"github.com/doorward/doorward/node"
)

// traced is a transport wrapped by a tracing library.
type traced struct{ http.RoundTripper }

const servicesTrace = "4bf92f3577b34da6a3ce929d0e0e4736"

func (t traced) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Traceparent", "00-"+servicesTrace+"-00f067aa0ba902b7-01")
	return t.RoundTripper.RoundTrip(r)
}

// A traced service has Doorward's spans in its own trace. Its callers' trace headers
// aren't forwarded.
func TestTraceOfTheService(t *testing.T) {
	collector := tracetest.Start(t)
	s := doorwardtest.Start(t, doorwardtest.TrustLoopback(), func(c *node.Config) { c.Trace = trace.Options{Collector: collector.URL} })
	ann := s.Tenant("Acme").Join("ann@acme.example", "USER")
	header := http.Header{"Cookie": {"JSESSIONID=" + ann.Token()}, "Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	for _, options := range [][]client.Option{nil, {client.HTTPClient(&http.Client{Transport: traced{&http.Transport{}}})}} {
		if _, err := newClient(t, s.URL, options...).Check(t.Context(), client.Request{Action: "message.send", Method: "GET", Header: header}); err != nil {
			t.Fatal(err)
		}
	}
	s.Stop()
	if all := collector.Spans(); len(all) != 1 || all[0].Trace != servicesTrace || all[0].Name != "GET /api/v2/access/check" {
		t.Errorf("exported: %+v", all)
	}
}
