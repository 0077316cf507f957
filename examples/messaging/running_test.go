package main_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/installed"
)

// roles are the roles of a tenant, with the status that the service answers to each.
var roles = []struct {
	role         string
	send, report int
}{
	{"OWNER", 201, 200},
	{"ADMIN", 201, 200},
	{"USER", 201, 200},
	{"VIEWER", 403, 200},
}

// peopleByRole creates a tenant with one person for each role.
func peopleByRole(server *doorwardtest.Server) map[string]*doorwardtest.Person {
	acme := server.Tenant("Acme")
	people := map[string]*doorwardtest.Person{"OWNER": acme.Owner}
	for _, role := range []string{"ADMIN", "USER", "VIEWER"} {
		people[role] = acme.Join(strings.ToLower(role)+"@acme.example", role)
	}
	return people
}

// wantStatus sends a request and compares the status; a refusal must be a problem (RFC 9457).
func wantStatus(t *testing.T, status int, r request) (*http.Response, string) {
	t.Helper()
	res, body := r.send(t)
	if res.StatusCode != status {
		t.Errorf("%s is answered %d %s, want %d", r, res.StatusCode, body, status)
	}
	kind := res.Header.Values("Content-Type")
	if refused := status == 401 || status == 403 || status == 503; refused && (len(kind) != 1 || kind[0] != "application/problem+json") {
		t.Errorf("%s is refused as %q: %s", r, kind, body)
	}
	if challenges := res.Header.Values("WWW-Authenticate"); (status == 401) != (len(challenges) == 1) {
		t.Errorf("%s is answered %d with WWW-Authenticate %q", r, status, challenges)
	}
	if again := res.Header.Values("Retry-After"); (status == 503) != (len(again) == 1) {
		t.Errorf("%s is answered %d with Retry-After %q", r, status, again)
	}
	for name := range res.Header {
		if strings.HasPrefix(name, "X-Auth-") {
			t.Errorf("%s: the answer has the header %s", r, name)
		}
	}
	return res, body
}

func messageRequest(base, token string) request {
	return request{method: "POST", url: base + "/messages", token: token, body: `{"to":"bob@acme.example","text":"hi"}`}
}

func reportRequest(base, token string) request {
	return request{method: "GET", url: base + "/reports", token: token}
}

// checkService checks the service at base, whether it asks Doorward itself or a gateway does.
func checkService(t *testing.T, base string, people map[string]*doorwardtest.Person) {
	t.Helper()
	wantStatus(t, 401, messageRequest(base, ""))
	wantStatus(t, 401, reportRequest(base, strings.Repeat("A", 43)))
	for _, r := range roles {
		wantStatus(t, r.send, messageRequest(base, people[r.role].Token()))
		wantStatus(t, r.report, reportRequest(base, people[r.role].Token()))
	}
	token := people["VIEWER"].Token()
	if _, body := wantStatus(t, 200, reportRequest(base, token)); body != `{"sent":{"admin@acme.example":1,"owner@acme.example":1,"user@acme.example":1}}`+"\n" {
		t.Errorf("the report is %s", body)
	}

	crossOrigin := messageRequest(base, people["USER"].Token())
	crossOrigin.header = http.Header{"Origin": {"https://evil.example"}, "X-Forwarded-Method": {"GET"}, "X-Original-Method": {"GET"}}
	if _, body := wantStatus(t, 403, crossOrigin); !strings.Contains(body, `"code":"cross_origin"`) {
		t.Errorf("a page of another origin: %s", body)
	}

	// A client can't change its identity: it stays a VIEWER.
	spoof := messageRequest(base, token)
	spoof.header = http.Header{
		"X-Auth-User": {people["OWNER"].ID}, "X-Auth-Role": {"OWNER"}, "x-auth-email": {"root@acme.example"}, "X_Auth_Role": {"OWNER"},
		"Connection": {"X-Auth-Role"},
	}
	wantStatus(t, 403, spoof)
	spoof.token = ""
	wantStatus(t, 401, spoof)
	spoof.token = people["USER"].Token()
	if _, body := wantStatus(t, 201, spoof); !strings.Contains(body, `"from":"user@acme.example"`) {
		t.Errorf("sent under another name: %s", body)
	}

	if status, body := people["USER"].Post("/api/v2/auth/logout", nil); status != http.StatusNoContent {
		t.Fatalf("logout: %d %s", status, body)
	}
	wantStatus(t, 401, reportRequest(base, people["USER"].Token()))
	wantStatus(t, 401, messageRequest(base, people["USER"].Token()))
}

// checkOutage checks the service after Doorward has stopped.
func checkOutage(t *testing.T, base string, viewer *doorwardtest.Person) {
	t.Helper()
	wantStatus(t, 503, reportRequest(base, viewer.Token()))
	wantStatus(t, 503, messageRequest(base, viewer.Token()))
}

func TestAskingDoorward(t *testing.T) {
	server := doorwardtest.Start(t)
	people := peopleByRole(server)
	base := "http://" + startMessaging(t, "--doorward", server.URL)
	checkService(t, base, people)
	server.Stop()
	checkOutage(t, base, people["VIEWER"])
}

func TestBehindNginx(t *testing.T) {
	front := freeport.AddressOn("127.0.0.1")
	base := "http://" + front
	server := doorwardtest.Start(t, doorwardtest.BaseURL(base))
	people := peopleByRole(server)
	service := startMessaging(t, "--behind-gateway")
	startNginx(t, front, strings.TrimPrefix(server.URL, "http://"), service)
	checkService(t, base, people)

	// Doorward itself is at the same address.
	login := request{method: "POST", url: base + "/api/v2/auth/login", body: `{"email":"viewer@acme.example","password":"` + doorwardtest.Password + `"}`}
	login.header = http.Header{"Content-Type": {"application/json"}, "Origin": {base}}
	if res, body := wantStatus(t, 200, login); len(res.Header.Values("Set-Cookie")) == 0 {
		t.Errorf("login through nginx sets no cookie: %s", body)
	}
	for _, r := range roles {
		people[r.role].Login()
	}
	odd := map[string]int{
		"/reports/": 404, "/reports/x": 404, "//reports": 200, "/x/../reports": 200, "/%72eports": 200, "/reports;x": 404,
		"/messages/../reports": 200, "/reports%2f..%2fmessages": 403, "/_doorward": 404, "/reports%00": 400, "/REPORTS": 404,
	}
	for path, want := range odd {
		r := reportRequest(base, people["VIEWER"].Token())
		r.url = base + path
		if res, body := r.send(t); res.StatusCode != want {
			t.Errorf("GET %s is answered %d %s, want %d", path, res.StatusCode, body, want)
		}
	}
	// Without nginx there is no identity, which is not the caller's fault.
	wantStatus(t, 503, reportRequest("http://"+service, people["OWNER"].Token()))

	server.Stop()
	checkOutage(t, base, people["VIEWER"])
}

// TestNginxForwardsIdentity: nginx passes the headers about the caller on to the service, but
// not the credential.
func TestNginxForwardsIdentity(t *testing.T) {
	installed.Program(t, "nginx", "nginx")
	received := make(chan http.Header, 1)
	echo := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received <- r.Header }))
	t.Cleanup(echo.Close)
	front := freeport.AddressOn("127.0.0.1")
	server := doorwardtest.Start(t)
	acme := server.Tenant("Acme")
	startNginx(t, front, strings.TrimPrefix(server.URL, "http://"), strings.TrimPrefix(echo.URL, "http://"))

	r := reportRequest("http://"+front, acme.Owner.Token())
	r.header = http.Header{"Authorization": {"Basic YTpi"}, "X_Auth_User": {"usr_root"}, "Connection": {"X-Auth-User, X-Auth-Role"}}
	names := []string{"User", "Tenant", "Role", "Email", "Session", "Key"}
	for _, name := range names {
		r.header["X-Auth-"+name] = []string{"forged", "twice"}
		r.header["x-auth-"+strings.ToLower(name)] = []string{"forged"}
	}
	wantStatus(t, 200, r)
	got := <-received
	want := map[string]string{"User": acme.Owner.ID, "Tenant": acme.ID, "Role": "OWNER", "Email": "owner@acme.example", "Key": ""}
	for _, name := range names {
		values := got["X-Auth-"+name]
		if name == "Session" && len(values) == 1 && strings.HasPrefix(values[0], "ses_") {
			continue
		}
		if len(values) > 1 || got.Get("X-Auth-"+name) != want[name] {
			t.Errorf("X-Auth-%s is %q, want %q", name, values, want[name])
		}
	}
	for _, name := range []string{"Cookie", "Authorization", "X_auth_user"} {
		if values := got[name]; len(values) > 0 {
			t.Errorf("the service gets %s %q", name, values)
		}
	}
}

// TestNginxStatesTheRequest: Doorward records the address, method, host and path that nginx saw,
// whatever the client claims.
func TestNginxStatesTheRequest(t *testing.T) {
	installed.Program(t, "nginx", "nginx")
	front := freeport.AddressOn("127.0.0.1")
	server := doorwardtest.Start(t, doorwardtest.TrustLoopback())
	viewer := server.Tenant("Acme").Join("viewer@acme.example", "VIEWER")
	startNginx(t, front, strings.TrimPrefix(server.URL, "http://"), freeport.AddressOn("127.0.0.1"))

	r := messageRequest("http://"+front, viewer.Token())
	r.header = http.Header{
		"X-Forwarded-For": {"192.0.2.66"}, "X-Forwarded-Host": {"evil.example"}, "X-Forwarded-Uri": {"/evil"}, "X-Forwarded-Method": {"PUT"},
		"X-Original-Uri": {"/evil"}, "X-Original-Method": {"PUT"},
	}
	wantStatus(t, 403, r)
	if err := server.Node.App.Access.Decisions().Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	recorded, err := server.Node.DB.Read().DecisionsBy(t.Context(), viewer.ID, 10)
	if err != nil || len(recorded) == 0 {
		t.Fatalf("recorded: %v, %v", recorded, err)
	}
	for _, d := range recorded {
		if got := d.Request; got.IP.String() != "127.0.0.1" || got.Method != "POST" || got.Host != "127.0.0.1" || got.Path != "/messages" || got.Unreadable != nil {
			t.Errorf("recorded: %+v", got)
		}
	}
}

func TestBehindAGatewayOnLoopbackOnly(t *testing.T) {
	program := exec.Command(os.Args[0], "--behind-gateway", "--listen", ":0")
	program.Env = append(os.Environ(), "MESSAGING_TEST_AS_MAIN=yes")
	output, err := program.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "loopback only") {
		t.Errorf("it listens everywhere: %v %s", err, output)
	}
}
