package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/installation"
	"github.com/doorward/doorward/client"
	"github.com/doorward/doorward/doorwardtest"
)

var errEnough = errors.New("enough")

var keepAll = installation.Keep{Sessions: true, Links: true, Keys: true}

// Follow continues at the position where it stopped, waits while Doorward doesn't answer,
// and returns ErrEventsGone when events are no longer kept.
func TestFollow(t *testing.T) {
	server := doorwardtest.Start(t)
	acme := server.Tenant("Acme")
	target, _ := url.Parse(server.URL)
	var toRefuse atomic.Int64 // requests that the proxy still answers 503
	proxy := httputil.NewSingleHostReverseProxy(target)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if toRefuse.Add(-1) >= 0 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(between.Close)
	c := newClient(t, between.URL, client.OperatorKey(server.CreateServiceKey("events.read")))

	seen, position := map[string]bool{}, ""
	follow := func(types ...string) (actions []string) {
		t.Helper()
		err := c.Follow(t.Context(), position, types, func(events []client.Event, next string) error {
			position = next
			for _, e := range events {
				if seen[e.ID] || e.TenantID != acme.ID || e.Seq == 0 {
					t.Errorf("%+v comes again, or is of another tenant", e)
				}
				seen[e.ID] = true
				actions = append(actions, e.Action)
			}
			return errEnough
		})
		if !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		return actions
	}
	if all := follow(); len(all) < 2 || all[0] != "tenant.create" {
		t.Errorf("the first events are %q", all)
	}
	acme.Join("ann@acme.example", "USER")
	toRefuse.Store(4) // more than the tries of one call
	if got := follow("user.invite"); fmt.Sprint(got) != "[user.invite]" {
		t.Errorf("then comes %q", got)
	}
	if err := c.Follow(t.Context(), "nonsense", nil, nil); errors.Is(err, client.ErrUnavailable) || err == nil {
		t.Errorf("a malformed position: %v", err)
	}
	if _, err := server.Node.App.Installation.Restored(t.Context(), doorward.OperatorAtTerminal(), keepAll); err != nil {
		t.Fatal(err)
	}
	if err := c.Follow(t.Context(), position, nil, nil); !errors.Is(err, client.ErrEventsGone) {
		t.Errorf("after a restore: %v", err)
	}
}
