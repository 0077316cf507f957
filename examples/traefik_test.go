package examples_test

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestTraefik simulates what Traefik documents of forwardAuth:
// https://doc.traefik.io/traefik/reference/routing-configuration/http/middlewares/forwardauth/
func TestTraefik(t *testing.T) {
	routes := readSettings(t, "traefik/routes.yml").at("http")
	if first := readSettings(t, "traefik/traefik.yml").at("entryPoints", "platform", "http", "middlewares").texts(); !slices.Equal(first, []string{"unclaimed@file"}) {
		t.Fatalf("in front of all routes: %q", first)
	}
	t.Parallel()
	testSimulated(t, simulatedGateway{
		authRequest: func(t *testing.T, server, action string, r *http.Request) *http.Request {
			t.Helper()
			r = r.Clone(t.Context())
			removeCustom(routes, "unclaimed", r.Header)
			return traefikAsks(t, server, forwardAuth(t, routes, action), r)
		},
		pass: func(r *http.Request, answer http.Header) http.Header {
			h := r.Header.Clone()
			removeCustom(routes, "unclaimed", h)
			for _, name := range forwardAuth(t, routes, "message.send").at("authResponseHeaders").texts() {
				name = http.CanonicalHeaderKey(name)
				h.Del(name)
				if values, there := answer[name]; there {
					h[name] = slices.Clone(values)
				}
			}
			removeCustom(routes, "stripped", h)
			removeForwarded(h)
			return h
		},
	})
}

// removeCustom removes the headers that the middleware sets to an empty text.
func removeCustom(routes settings, middleware string, h http.Header) {
	removed, _ := routes.at("middlewares", middleware, "headers", "customRequestHeaders").node.(map[string]any)
	for name, value := range removed {
		if value == "" {
			h.Del(name)
		}
	}
}

// forwardAuth returns the middleware that asks for the action.
func forwardAuth(t *testing.T, routes settings, action string) settings {
	t.Helper()
	middleware := routes.at("middlewares", strings.ReplaceAll(action, ".", "-"), "forwardAuth")
	if !strings.HasSuffix(middleware.at("address").text(), "?action="+action) {
		t.Fatalf("no middleware asks for %s", action)
	}
	return middleware
}

// traefikAsks returns the check that Traefik sends for a request: a GET with the request's
// headers, except Connection and Upgrade. X-Forwarded-* are replaced unless they are trusted.
func traefikAsks(t *testing.T, server string, middleware settings, r *http.Request) *http.Request {
	t.Helper()
	address, err := url.Parse(middleware.at("address").text())
	if err != nil {
		t.Fatal(err)
	}
	address.Host = server
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header = r.Header.Clone()
	q.Header.Del("Connection")
	q.Header.Del("Upgrade")
	if trusted, _ := middleware.at("trustForwardHeader").node.(bool); !trusted {
		removeForwarded(q.Header)
	}
	ip, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"X-Forwarded-For": ip, "X-Forwarded-Method": r.Method, "X-Forwarded-Proto": "https", "X-Forwarded-Port": "443",
		"X-Forwarded-Host": r.Host, "X-Forwarded-Uri": r.URL.RequestURI(),
	} {
		if q.Header.Get(name) == "" {
			q.Header.Set(name, value)
		}
	}
	return q
}

func removeForwarded(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "X-Forwarded-") {
			delete(h, name)
		}
	}
}

// TestTraefikRoutes: no route reaches the service without Doorward.
func TestTraefikRoutes(t *testing.T) {
	routes := readSettings(t, "traefik/routes.yml").at("http")
	routers, _ := routes.at("routers").node.(map[string]any)
	asked := 0
	for name, node := range routers {
		r := settings{node}
		if r.at("service").text() == "doorward" {
			continue
		}
		first := routes.at("middlewares", r.at("middlewares").texts()[0])
		address := first.at("forwardAuth", "address").text()
		names := first.at("forwardAuth", "authResponseHeaders").texts()
		for i, name := range names {
			names[i] = http.CanonicalHeaderKey(name)
		}
		slices.Sort(names)
		if !strings.Contains(address, "/api/v2/access/check?action=") || !slices.Equal(names, identityHeaders()) {
			t.Errorf("%s asks %q and copies %q", name, address, names)
		}
		if first.at("forwardAuth", "trustForwardHeader").node != false {
			t.Errorf("%s trusts a client's X-Forwarded-Method", name)
		}
		asked++
	}
	if asked != 6 {
		t.Errorf("%d routes to the service, want the four of the table and the two that refuse the rest and the metrics", asked)
	}
	for name, node := range routers {
		r := settings{node}
		if last := r.at("middlewares").texts(); r.at("service").text() == "service" && last[0] != "none" && last[len(last)-1] != "stripped" {
			t.Errorf("%s passes the credential on", name)
		}
	}
	if dropped, _ := routes.at("middlewares", "stripped", "headers", "customResponseHeaders").node.(map[string]any); dropped["Set-Cookie"] != "" {
		t.Errorf("the service may set the session's cookie: %v", dropped)
	}
	if s := readSettings(t, "traefik/traefik.yml").at("entryPoints", "platform", "http", "underscoreHeadersStrategy").text(); s != "reject" {
		t.Errorf("underscores in headers: %q", s)
	}
}
