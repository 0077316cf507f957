package doorward_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/goldentest"
	"github.com/doorward/doorward/web/api"
	"github.com/doorward/doorward/web/authzen"
	"github.com/doorward/doorward/web/edge"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/routetest"
)

// These tests show that each route refuses the requests that it must refuse. derived returns
// the refusals that follow from the route's line in web/api/routes.go (its guard, whether it
// takes a body). The table in web/routetest has those of the endpoint itself.

// refusal is a request that a route refuses.
type refusal struct {
	why    string
	who    string // the caller, as in routetest.Sample, or "ended" for a session that has ended
	body   string
	header [2]string // name and value, besides the usual ones
	status int
	code   doorward.Code
}

func pattern(r front.Route) string { return r.Method + " " + r.Path }

// derived returns the refusals that follow from a route's line in the table.
func derived(r front.Route) []refusal {
	var all []refusal
	add := func(why, who, body string, status int, code doorward.Code) {
		all = append(all, refusal{why: why, who: who, body: body, status: status, code: code})
	}
	caller := ""
	if guard := r.Guard.Name(); guard != front.Public().Name() && guard != front.Optional().Name() {
		add("not signed in", "", "{}", 401, doorward.CodeUnauthenticated)
		add("a session that is over", "ended", "{}", 401, doorward.CodeUnauthenticated)
		caller = "OWNER"
		if guard == front.Operated().Name() {
			caller = "operator"
		}
		for _, who := range refusedCallers(guard) {
			if who == "operator" && r.Guard.TakesOperatorKeys() {
				continue
			}
			add("not allowed", who, "{}", 403, doorward.CodeForbidden)
		}
	}
	if r.Method != http.MethodGet && !r.IsFromAnyOrigin() {
		all = append(all, refusal{why: "another origin", header: [2]string{"Origin", "https://evil.example"}, status: 403, code: doorward.CodeCrossOrigin})
	}
	if len(r.Endpoint.Media) > 0 {
		add("a body over the limit", caller, strings.Repeat(" ", max(doorward.MaxLogoSent, r.Endpoint.MaxBody)+1), 413, doorward.CodeBodyTooLarge)
		add("JSON", caller, "{}", 415, doorward.CodeUnsupportedMediaType)
	}
	if r.Endpoint.In != nil {
		add("half a body", caller, "{", 400, doorward.CodeInvalidBody)
		add("an unknown name", caller, `{"unknown":1}`, 400, doorward.CodeInvalidBody)
		add("a list", caller, `[]`, 400, doorward.CodeInvalidBody)
		add("a body over the limit", caller, strings.Repeat(" ", cmp.Or(r.Endpoint.MaxBody, front.MaxBody)+1), 413, doorward.CodeBodyTooLarge)
		all = append(all, refusal{why: "another media type", who: caller, body: "{}", header: [2]string{"Content-Type", "text/plain"}, status: 415, code: doorward.CodeUnsupportedMediaType})
	}
	return all
}

// refusedCallers returns the callers with a credential that a guard refuses.
func refusedCallers(guard string) []string {
	if guard == front.Operated().Name() {
		return []string{"VIEWER", "USER", "ADMIN", "OWNER"}
	}
	all := []string{"operator"}
	for _, role := range doorward.Roles {
		if guard != front.SignedIn().Name() && !slices.Contains(doorward.User{Role: role}.Permissions(), doorward.Action(guard)) {
			all = append(all, string(role))
		}
	}
	return all
}

func TestEachRouteHasASample(t *testing.T) {
	routes := slices.Concat(api.Routes(nil), edge.Documented(nil), authzen.Routes(nil))
	rows, faults := routetest.ByRoute(patterns(routes))
	for _, fault := range append(faults, wrongCallers(routes, rows)...) {
		t.Error(fault)
	}
}

// wrongCallers returns a line for each route whose guard is for others than the sample's caller.
func wrongCallers(routes []front.Route, rows map[string][]routetest.Sample) (all []string) {
	callers := map[string]string{
		front.Public().Name(): routetest.Nobody, front.Optional().Name(): routetest.Nobody,
		front.KeyOnly().Name(): routetest.Key, front.Operated().Name(): routetest.Operator,
	}
	for _, r := range routes {
		want, has := callers[r.Guard.Name()]
		if !has {
			want = "OWNER"
		}
		for _, sample := range rows[pattern(r)][:min(1, len(rows[pattern(r)]))] {
			if sample.Who != want {
				all = append(all, fmt.Sprintf("%s: the first row is sent by %q, and the guard %s is for %q: change web/routetest/table.go, or the guard", pattern(r), sample.Who, r.Guard.Name(), want))
			}
		}
	}
	return all
}

func TestWrongCallersAreNoticed(t *testing.T) {
	opened := []front.Route{
		front.On("GET /api/v2/users", front.Public(), front.Endpoint{}, front.Doc{}),
		front.On("GET /api/v2/tenants", front.SignedIn(), front.Endpoint{}, front.Doc{}),
	}
	rows, _ := routetest.ByRoute(patterns(opened))
	if got := wrongCallers(opened, rows); len(got) != 2 {
		t.Errorf("of two wrong guards these are noticed: %q", got)
	}
}

func patterns(routes []front.Route) (all []string) {
	for _, r := range routes {
		all = append(all, pattern(r))
	}
	return all
}

// keyFaults returns a line for each route that should take an Idempotency-Key and doesn't, or
// takes one and shouldn't. A route should if it is a POST and requires a credential, unless its
// sample says why not.
func keyFaults(routes []front.Route) (all []string) {
	samples, _ := routetest.ByRoute(patterns(routes))
	for _, r := range routes {
		guard := r.Guard.Name()
		open := guard == front.Public().Name() || guard == front.Optional().Name()
		rows := samples[pattern(r)]
		harmless := len(rows) > 0 && rows[0].Twice != ""
		if creates := r.Method == http.MethodPost && !open && !harmless; creates != r.Endpoint.Creates {
			all = append(all, fmt.Sprintf("%s takes an Idempotency-Key: %v, want %v: use front.Create for what makes something, or say in Twice of web/routetest/table.go what a repetition does", pattern(r), r.Endpoint.Creates, creates))
		}
	}
	return all
}

func TestEachCreationIsRepeatable(t *testing.T) {
	routes := slices.Concat(api.Routes(nil), edge.Routes(nil), authzen.Routes(nil))
	for _, fault := range keyFaults(routes) {
		t.Error(fault)
	}
	none := func(context.Context, *front.Call, front.None) (front.None, error) { return front.None{}, nil }
	view := func(_ *front.Call, made front.None) front.None { return made }
	planted := []front.Route{
		front.On("POST /api/v2/planted", front.SignedIn(), front.JSON(http.StatusCreated, none), front.Doc{}),
		front.On("POST /api/v2/planted/open", front.Public(), front.Create(http.StatusCreated, none, view), front.Doc{}),
	}
	if got := keyFaults(planted); len(got) != 2 {
		t.Errorf("of two wrong routes these are noticed: %q", got)
	}
}

// Each route answers the requests of its rows as they say, and the derived ones with a refusal.
func TestEachRouteRefuses(t *testing.T) {
	server := doorwardtest.Start(t)
	credentials := newCredentials(t, server)
	samples, _ := routetest.ByRoute(patterns(api.Routes(nil)))
	for _, r := range api.Routes(nil) {
		rows := samples[pattern(r)]
		for _, want := range derived(r) {
			t.Run(pattern(r)+" "+want.why+" "+want.who, func(t *testing.T) {
				status, body := send(t, server, r.Method, rows[0].Path(), want, credentials)
				if status != want.status || !strings.Contains(body, fmt.Sprintf("%q:%q", "code", want.code)) {
					t.Errorf("answered %d %s\nwant %d %s", status, body, want.status, want.code)
				}
			})
		}
	}
	for _, s := range routetest.Samples {
		t.Run(s.Request+" "+s.Who+" "+s.Want, func(t *testing.T) {
			name, value, _ := strings.Cut(s.Header, ": ")
			status, body := send(t, server, s.Method(), strings.TrimPrefix(s.Request, s.Method()+" "), refusal{who: s.Who, body: s.Text(), header: [2]string{name, value}}, credentials)
			if got := strings.TrimSpace(fmt.Sprint(status, " ", codeIn(status, body))); got != s.Want {
				t.Errorf("answered %d %s\nwant %s", status, body, s.Want)
			}
		})
	}
}

// codeIn returns the code of a problem.
func codeIn(status int, body string) string {
	var problem struct{ Code string }
	if status < 400 || json.Unmarshal([]byte(body), &problem) != nil {
		return ""
	}
	return problem.Code
}

// newCredentials creates the tenant Acme and returns the credential of each caller.
func newCredentials(t *testing.T, server *doorwardtest.Server) map[string][2]string {
	t.Helper()
	acme := server.Tenant("Acme")
	cookie := func(token string) [2]string { return [2]string{"Cookie", "JSESSIONID=" + token} }
	all := map[string][2]string{"OWNER": cookie(acme.Owner.Token()), routetest.Operator: {"Authorization", operatorKey(t, server)}}
	for _, role := range []string{"ADMIN", "USER", "VIEWER"} {
		all[role] = cookie(acme.Join(strings.ToLower(role)+"@acme.example", role).Token())
	}
	all["ended"] = cookie(acme.Join("gone@acme.example", "OWNER").Token())
	send(t, server, "POST", "/api/v2/auth/logout", refusal{who: "ended"}, all)
	var made struct{ Key string }
	_, answer := send(t, server, "POST", "/api/v2/api-keys", refusal{who: "OWNER", body: `{"name":"x","permissions":["user.read"]}`}, all)
	if err := json.Unmarshal([]byte(answer), &made); err != nil || made.Key == "" {
		t.Fatalf("no API key: %s", answer)
	}
	all[routetest.Key] = [2]string{"Authorization", "Bearer " + made.Key}
	return all
}

func operatorKey(t *testing.T, server *doorwardtest.Server) string {
	t.Helper()
	key, err := server.Node.App.Keys.CreateOperator(t.Context(), doorward.OperatorAtTerminal(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return "Bearer " + key
}

// send sends the refusal's request with the credential of its caller.
func send(t *testing.T, server *doorwardtest.Server, method, target string, r refusal, credentials map[string][2]string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL+target, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for _, h := range [][2]string{credentials[r.who], r.header} {
		if h[0] != "" {
			req.Header.Set(h[0], h[1])
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// callers are the columns of who-may-what.txt.
var callers = []struct {
	name string
	by   doorward.Caller
}{
	{"anonymous", doorward.Caller{Principal: doorward.Principal{Kind: doorward.Anonymous}}},
	{"VIEWER", member(doorward.RoleViewer, doorward.UserActive)},
	{"USER", member(doorward.RoleUser, doorward.UserActive)},
	{"ADMIN", member(doorward.RoleAdmin, doorward.UserActive)},
	{"OWNER", member(doorward.RoleOwner, doorward.UserActive)},
	{"suspended", member(doorward.RoleOwner, doorward.UserSuspended)},
	{"operator", doorward.OperatorAtTerminal()},
	{"service", service()},
}

// service returns a service with every permission, in the tenant tnt_own.
func service() doorward.Caller {
	key := doorward.ServiceKey{ID: "key_own", May: doorward.ServicePermissions()}
	return doorward.Caller{Principal: doorward.PrincipalOfService(key).InTenant(doorward.Tenant{ID: "tnt_own", Status: doorward.TenantActive})}
}

func member(role doorward.Role, status doorward.UserStatus) doorward.Caller {
	return doorward.Caller{}.As(doorward.User{ID: "usr_own", TenantID: "tnt_own", Role: role, Status: status})
}

const legend = `# Who may do what, as decide.May has it. Written by
#   go test -run TestWhoMayWhat -update .
#
# own     an object of the caller's tenant that holds no role
# higher  one that holds, or is given, the role above the caller's; the role
#         VIEWER for callers without one, and nothing for an OWNER
# other   an object of another tenant
#
# yes, or the status of the refusal: 401 no credential, 403 refused, 404 as if
# it weren't there. "suspended" is a suspended OWNER. Actions that everybody may
# do need a proof instead: a password, a code from a mail, the session itself.

`

func TestWhoMayWhat(t *testing.T) {
	var out strings.Builder
	out.WriteString(legend)
	row(&out, "action", "object", func(name string, _ doorward.Caller) string { return name })
	for _, verb := range doorward.Verbs() {
		for _, kind := range []string{"own", "higher", "other"} {
			row(&out, string(verb.Action), kind, func(_ string, by doorward.Caller) string {
				on, exists := object(verb.Action, kind, by.Role)
				if !exists {
					return "-"
				}
				return verdict(t, by, verb.Action, on)
			})
		}
	}
	out.WriteString("\n# People by the role that they hold, and by the role that they are given.\n\n")
	for _, verb := range doorward.Verbs() {
		for _, role := range slices.Backward(doorward.Roles) {
			if verb.Permission == doorward.UserManage {
				decisionRow(t, &out, verb.Action, "is "+string(role), doorward.Object{TenantID: "tnt_own", Held: role})
			}
			if grants(verb.Action) {
				decisionRow(t, &out, verb.Action, "to "+string(role), doorward.Object{TenantID: "tnt_own", Granted: role})
			}
		}
	}
	out.WriteString(whoMayWhatWithOwnRoles(t))
	out.WriteString(whoMayWhatByLinks(t))
	goldentest.File(t, "testdata/who-may-what.txt", out.String())
}

// object returns an object of the kind for a caller with the role, and whether there is one.
func object(action doorward.Action, kind string, role doorward.Role) (doorward.Object, bool) {
	on := doorward.Object{TenantID: "tnt_own"}
	switch above := slices.Index(doorward.Roles, role) + 1; {
	case kind == "other":
		on.TenantID = "tnt_other"
	case kind == "higher" && above == len(doorward.Roles):
		return on, false
	case kind == "higher":
		on.Held = doorward.Roles[above]
		if grants(action) {
			on.Granted = on.Held
		}
	}
	return on, true
}

// grants reports whether the action gives somebody a role: at once, or by an
// invitation.
func grants(action doorward.Action) bool {
	verb, _ := doorward.Lookup(action)
	return action == doorward.UserRole || verb.Permission == doorward.UserInvite
}

func decisionRow(t *testing.T, out *strings.Builder, action doorward.Action, object string, on doorward.Object) {
	t.Helper()
	row(out, string(action), object, func(_ string, by doorward.Caller) string { return verdict(t, by, action, on) })
}

func row(out *strings.Builder, action, object string, cell func(name string, by doorward.Caller) string) {
	line := fmt.Sprintf("%-18s %-10s", action, object)
	for _, who := range callers {
		line += fmt.Sprintf(" %-10s", cell(who.name, who.by))
	}
	fmt.Fprintln(out, strings.TrimRight(line, " "))
}

func verdict(t *testing.T, by doorward.Caller, action doorward.Action, on doorward.Object) string {
	t.Helper()
	err := decide.May(&by.Principal, &decide.Question{Action: action, On: on}).Err()
	if err == nil {
		return "yes"
	}
	var refused *doorward.Error
	if !errors.As(err, &refused) {
		t.Fatalf("%s: %v is no *doorward.Error", action, err)
	}
	return fmt.Sprint(front.Status(refused.Code))
}
