package examples_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/gatewayprobe"
	"github.com/doorward/doorward/internal/waittest"
)

// probe returns the probe of "doorward doctor gateway" for the gateway at an address, with a
// path that a USER may read and write.
func (s *site) probe(t *testing.T, gateway string) gatewayprobe.Probe {
	t.Helper()
	return gatewayprobe.Probe{
		URL:    &url.URL{Scheme: "http", Host: gateway, Path: "/messages"},
		Cookie: "JSESSIONID", Token: s.people["USER"].Token(), Upstream: freeAddress(t),
	}
}

// faults runs the probe and returns what is wrong, by what was checked.
func faults(t *testing.T, p gatewayprobe.Probe) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, f := range p.Run(t.Context()) {
		if f.Wrong != "" {
			if found[f.Check] = f.Wrong; f.Remedy == "" {
				t.Errorf("%s: %q, without a remedy", f.Check, f.Wrong)
			}
		}
	}
	return found
}

// testDoctor: the doctor finds nothing wrong with the examples.
func testDoctor(t *testing.T, s *site) {
	p := s.probe(t, s.gateway)
	if found := faults(t, p); len(found) > 0 {
		t.Errorf("%q", found)
	}
	if n := len(p.Run(t.Context())); n != 15 {
		t.Errorf("%d checks, want 15", n)
	}
	if p.Token = ""; len(p.Run(t.Context())) != 4 || len(faults(t, p)) > 0 {
		t.Errorf("without a session: %+v", p.Run(t.Context()))
	}
	s.reached(t)
}

// broken is nginx's example with a mistake, the doctor's check that finds it, and a part of
// what the doctor says about it.
type broken struct {
	check, says string
	edit        []string // old and new text, in turn
}

const checkProxyPass = "        proxy_pass http://doorward/api/v2/access/check?action=$action;\n"

var brokenNginx = []broken{
	{"no session", "without a session reaches the service", []string{"auth_request /_doorward;", ""}},
	{"no session", "answered 404 in place of 401", []string{"/api/v2/access/check?", "/api/v2/check?", "error_page 500 = @undecided;", "error_page 500 =404 /metrics;"}},
	{"no session", "without Doorward's body", []string{"default                            /_doorward;", "default @bare;", "location @sign_in {", "location @bare { return 401; }\n    location @sign_in {"}},
	{"sign-in", "loses a part of its address", []string{"$http_host$request_uri;", "$http_host$uri;"}},
	{"metrics", "anybody can read /metrics", []string{"        return 404;\n", "proxy_set_header Host localhost; proxy_pass http://doorward;\n"}},
	{"session", "the cookie is dropped", []string{checkProxyPass, "proxy_set_header Cookie \"\";\n" + checkProxyPass}},
	{"session", "401 as a bearer token", []string{checkProxyPass, "proxy_set_header Authorization \"\";\n" + checkProxyPass}},
	{"session", "doesn't learn who is calling", []string{"X-Auth-User    $auth_user;", "X-Auth-User \"\";"}},
	{"credential", "in Cookie", []string{"proxy_set_header Cookie \"\";", ""}},
	{"credential", "in Authorization", []string{"proxy_set_header Authorization \"\";", ""}},
	{"identity", "X-Auth-Key", []string{"proxy_set_header X-Auth-Key     $auth_key;", ""}},
	{"identity", "X-Auth-Assertion", []string{"proxy_set_header X-Auth-Assertion $auth_assertion;", ""}},
	{"identity", "X_auth_", []string{"underscores_in_headers off;", "underscores_in_headers on;"}},
	{"Connection", "gets no identity", []string{"proxy_set_header Connection $connection_header;", "proxy_set_header Connection $http_connection;"}},
	{"overrides", "X-Rewrite-Url", []string{"proxy_set_header X-Rewrite-URL \"\";", ""}},
	{"other origins", "a POST from a page of another site", []string{"proxy_set_header X-Original-Method  $original_method;", ""}},
	{"WebSockets", "a page of another site can open", []string{checkProxyPass, "proxy_set_header Origin \"\";\n" + checkProxyPass}},
	{"claims", "X-Forwarded-For: 192.0.2.66\" is believed", []string{"proxy_set_header X-Forwarded-For    $remote_addr; # needs", "#"}},
	{"claims", "isn't told the request", []string{"proxy_set_header X-Forwarded-Host   $host;", ""}},
	{"claims", "X-Original-URI", []string{"proxy_set_header X-Original-URI     \"\";", ""}},
	{"claims", "X-Forwarded-Method", []string{"proxy_set_header X-Forwarded-Method \"\";\n        proxy_set_header X-Original-Method ", "proxy_set_header X-Original-Method "}},
	{"claims", "asks Doorward's access check itself", []string{"proxy_set_header X-Original-Method \"\";\n        proxy_set_header X-Original-URI \"\";\n        proxy_set_header Traceparent", "proxy_set_header Traceparent"}},
	{"cookies", "picks one", []string{checkProxyPass, "proxy_set_header Cookie \"JSESSIONID=$cookie_JSESSIONID\";\n" + checkProxyPass}},
	{"paths", "reaches the service as", []string{"if ($request_uri ~* \"^[^?]*(", "if ($request_uri ~* \"^nothing("}},
	{"Set-Cookie", "can set JSESSIONID", []string{"proxy_hide_header Set-Cookie;", ""}},
}

// TestDoctorFindsMistakes: each check fails for an nginx with just that mistake.
func TestDoctorFindsMistakes(t *testing.T) {
	nginx := need(t, "nginx")
	t.Parallel()
	launch := func(t *testing.T, folder string) {
		write(t, filepath.Join(folder, "nginx.conf"), nginxMain)
		run(t, folder, nginx, "-p", folder, "-c", "nginx.conf", "-g", "daemon off; master_process off;")
	}
	s := open(t, "nginx", launch)
	proxy := newConnectionProxy(t, s.service.output.lines()[0])
	checked := map[string]bool{"upstream": true}
	for _, b := range brokenNginx {
		checked[b.check] = true
		t.Run(b.check+" "+b.says, func(t *testing.T) {
			p := s.probe(t, freeAddress(t))
			service := s.service.output.lines()[0]
			if b.check == "Connection" {
				service = proxy
			}
			folder := copyExample(t, "nginx", map[string]string{gatewayPort: port(p.URL.Host), doorwardPort: port(s.server.Node.Address()), servicePort: port(service)})
			damage(t, filepath.Join(folder, "doorward.conf"), b.edit)
			launch(t, folder)
			waittest.Until(t, "nginx listens", func() bool { return isListening(p.URL.Host) })
			if found := faults(t, p); !strings.Contains(found[b.check], b.says) {
				t.Errorf("found %q, want %s: %s", found, b.check, b.says)
			}
		})
	}
	p := s.probe(t, s.gateway)
	p.Upstream = s.service.output.lines()[0]
	if found := faults(t, p); found["upstream"] != "" { // internal/gatewayprobe tests one that others reach
		t.Errorf("a service on loopback: %q", found)
	}
	for _, f := range p.Run(t.Context()) {
		if !checked[f.Check] {
			t.Errorf("no mistake shows that %q finds anything", f.Check)
		}
	}
}

// damage replaces texts of the file: old and new in turn.
func damage(t *testing.T, file string, edit []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(edit); i += 2 {
		if !strings.Contains(string(text), edit[i]) {
			t.Fatalf("the example has no %q", edit[i])
		}
		text = []byte(strings.Replace(string(text), edit[i], edit[i+1], 1))
	}
	write(t, file, string(text))
}

// newConnectionProxy starts a proxy in front of the service, and returns its address. The proxy
// removes the headers that Connection names.
func newConnectionProxy(t *testing.T, service string) string {
	t.Helper()
	proxy := httptest.NewServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: service}))
	t.Cleanup(proxy.Close)
	return strings.TrimPrefix(proxy.URL, "http://")
}

// TestDoctorWithoutAGateway: no server listens, or it is another program.
func TestDoctorWithoutAGateway(t *testing.T) {
	nobody := gatewayprobe.Probe{URL: &url.URL{Scheme: "http", Host: freeAddress(t), Path: "/messages"}, Cookie: "JSESSIONID", Token: "x"}
	if found := faults(t, nobody); !strings.Contains(found["no session"], "refused") || !strings.Contains(found["session"], "refused") {
		t.Errorf("no server listens: %q", found)
	}
	page := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(page.Close)
	other := gatewayprobe.Probe{URL: &url.URL{Scheme: "http", Host: strings.TrimPrefix(page.URL, "http://"), Path: "/messages"}, Cookie: "JSESSIONID", Token: "x"}
	if found := faults(t, other); !strings.Contains(found["no session"], "404") || !strings.Contains(found["session"], "404") {
		t.Errorf("another server: %q", found)
	}
}
