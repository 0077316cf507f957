package examples_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

const extAuthz = "envoy.filters.http.ext_authz"

// TestEnvoy simulates what Envoy documents of ext_authz with an HTTP service:
// https://www.envoyproxy.io/docs/envoy/v1.40.0/api-v3/extensions/filters/http/ext_authz/v3/ext_authz.proto
func TestEnvoy(t *testing.T) {
	manager := connectionManager(t)
	t.Parallel()
	testSimulated(t, simulatedGateway{
		authRequest: func(t *testing.T, server, action string, r *http.Request) *http.Request {
			t.Helper()
			service := httpServiceFor(t, manager, action)
			return envoyAsks(t, "http://"+server+service.at("path_override").text(), manager, r)
		},
		pass: func(r *http.Request, answer http.Header) http.Header { return envoyPasses(t, manager, r, answer) },
	})
}

// TestEnvoyBeforePathOverride simulates the same with path_prefix, which is what
// Envoy before 1.38 and Istio have: they write it in front of the client's own
// path and query, which they don't change.
func TestEnvoyBeforePathOverride(t *testing.T) {
	manager := connectionManager(t)
	t.Parallel()
	testSimulated(t, simulatedGateway{
		authRequest: func(t *testing.T, server, action string, r *http.Request) *http.Request {
			t.Helper()
			prefix := "/api/v2/access/check?action=" + action + "&original="
			q := envoyAsks(t, "http://"+server+"/", manager, r)
			q.URL.Opaque = "//" + server + prefix + r.URL.RequestURI() // not even escaped
			return q
		},
		pass: func(r *http.Request, answer http.Header) http.Header { return envoyPasses(t, manager, r, answer) },
	})
}

func connectionManager(t *testing.T) settings {
	t.Helper()
	listeners := readSettings(t, "envoy/envoy.yaml").at("static_resources", "listeners").list()
	return listeners[0].at("filter_chains").list()[0].at("filters").list()[0].at("typed_config")
}

func filter(manager settings, name string) settings {
	for _, f := range manager.at("http_filters").list() {
		if f.at("name").text() == name {
			return f.at("typed_config")
		}
	}
	return settings{}
}

// httpServiceFor returns the http_service of the route that needs the action, or that of the
// filter if no route does.
func httpServiceFor(t *testing.T, manager settings, action string) settings {
	t.Helper()
	service := filter(manager, extAuthz).at("http_service")
	for _, r := range routesOf(manager) {
		if r.at("name").text() == action {
			service = r.at("typed_per_filter_config", extAuthz, "check_settings", "http_service")
		}
	}
	if service.at("path_override").text() != "/api/v2/access/check?action="+action {
		t.Fatalf("neither a route nor the filter asks for %s", action)
	}
	return service
}

func routesOf(manager settings) []settings {
	return manager.at("route_config", "virtual_hosts").list()[0].at("routes").list()
}

// envoyAsks returns the check that Envoy sends for a request: with the request's method, and
// with the headers, after header_mutation, that Envoy forwards: Authorization and the allowed ones.
func envoyAsks(t *testing.T, address string, manager settings, r *http.Request) *http.Request {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), r.Method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	mutated := envoyMutates(manager, r)
	names := []string{"authorization"}
	for _, p := range filter(manager, extAuthz).at("allowed_headers", "patterns").list() {
		names = append(names, p.at("exact").text())
	}
	for _, name := range names {
		for _, value := range mutated.Values(name) {
			q.Header.Add(name, value)
		}
	}
	return q
}

// envoyMutates appends the client's address to X-Forwarded-For, as use_remote_address does, and
// applies the filter header_mutation.
func envoyMutates(manager settings, r *http.Request) http.Header {
	h := r.Header.Clone()
	ip, _, _ := strings.Cut(r.RemoteAddr, ":")
	h.Set("X-Forwarded-For", strings.Join(append(h.Values("X-Forwarded-For"), ip), ","))
	values := strings.NewReplacer(
		"%REQ(:METHOD)%", r.Method, "%REQ(:AUTHORITY)%", r.Host, "%REQ(:PATH)%", r.URL.RequestURI(),
		"%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%", ip,
	)
	for _, m := range filter(manager, "envoy.filters.http.header_mutation").at("mutations", "request_mutations").list() {
		h.Del(m.at("remove").text())
		if set := m.at("append", "header"); set.node != nil {
			h.Set(set.at("key").text(), values.Replace(set.at("value").text()))
		}
	}
	return h
}

func envoyPasses(t *testing.T, manager settings, r *http.Request, answer http.Header) http.Header {
	t.Helper()
	h := envoyMutates(manager, r)
	for _, p := range httpServiceFor(t, manager, "message.send").at("authorization_response", "allowed_upstream_headers", "patterns").list() {
		if name := http.CanonicalHeaderKey(p.at("exact").text()); answer[name] != nil {
			h[name] = slices.Clone(answer[name])
		}
	}
	for _, r := range routesOf(manager) {
		for _, name := range r.at("request_headers_to_remove").texts() {
			h.Del(name)
		}
	}
	return h
}

// TestEnvoyRoutes: no route reaches the service without Doorward, and every fault of
// the check is 503.
func TestEnvoyRoutes(t *testing.T) {
	manager := connectionManager(t)
	asked := 0
	for _, r := range routesOf(manager) {
		if r.at("route", "cluster").text() != "service" {
			continue
		}
		action := r.at("name").text()
		var names []string
		for _, p := range httpServiceFor(t, manager, action).at("authorization_response", "allowed_upstream_headers", "patterns").list() {
			names = append(names, http.CanonicalHeaderKey(p.at("exact").text()))
		}
		if slices.Sort(names); !slices.Equal(names, identityHeaders()) {
			t.Errorf("%s copies %q", action, names)
		}
		if r.at("typed_per_filter_config", extAuthz, "disabled").node != nil {
			t.Errorf("%s asks nothing", action)
		}
		if !slices.Contains(r.at("response_headers_to_remove").texts(), "set-cookie") || !slices.Contains(r.at("request_headers_to_remove").texts(), "authorization") {
			t.Errorf("%s passes the credential on, or the service's cookies", action)
		}
		asked++
	}
	if asked != 4 {
		t.Errorf("%d routes to the service, want the four of the table", asked)
	}
	authz := filter(manager, extAuthz)
	if authz.at("status_on_error", "code").text() != "ServiceUnavailable" || authz.at("failure_mode_allow").node != false {
		t.Errorf("without Doorward: %v, allowed %v", authz.at("status_on_error").node, authz.at("failure_mode_allow").node)
	}
	httpServiceFor(t, manager, "none") // what a route without an action of its own asks for
	if s := manager.at("common_http_protocol_options", "headers_with_underscores_action").text(); s != "REJECT_REQUEST" {
		t.Errorf("underscores in headers: %q", s)
	}
}
