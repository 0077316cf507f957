package node_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
)

// memberAccess is somebody of the tenant with what opens access.
type memberAccess struct {
	person *doorwardtest.Person
	own    string // token of the session by password
	key    string
}

// accesses are the ways in which a node is asked whether it accepts a credential.
var accesses = []struct {
	name, route string
	body        any
}{
	{"check", "GET /api/v2/access/check?action=message.read", nil},
	{"session", "GET /api/v2/auth/session", nil},
	{"assertion", "POST /api/v2/auth/token", map[string]any{"audience": "reports"}},
}

// wantAccess fails unless each node accepts the credential in each way of asking, or in none. Where it is accepted, what it may
// have is another question.
func (f *signOnNodes) wantAccess(what string, accepted bool, cookie, key string) {
	f.Helper()
	for i := range f.nodes {
		for _, way := range accesses {
			headers := http.Header{"Content-Type": {"application/json"}, "Cookie": {"JSESSIONID=" + cookie}}
			if key != "" {
				headers = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + key}}
			}
			a := f.sendWith(i, way.route, way.body, headers)
			if (a.StatusCode != http.StatusUnauthorized) != accepted || a.StatusCode >= http.StatusInternalServerError {
				f.Fatalf("%s: node %d answers %s with %s %v, want it accepted: %v", what, i, way.name, a.Status, a.members, accepted)
			}
		}
	}
}

// scim sends a request of the directory to a node.
func (f *signOnNodes) scim(i int, secret, route string, body any) nodeAnswer {
	f.Helper()
	a := f.sendWith(i, route, body, http.Header{"Authorization": {"Bearer " + secret}, "Content-Type": {"application/scim+json"}})
	if a.StatusCode >= http.StatusBadRequest {
		f.Fatalf("%s: %s %v", route, a.Status, a.members)
	}
	return a
}

// form sends a token of the provider to a node.
func (f *signOnNodes) form(i int, path, token string) {
	f.Helper()
	headers := http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
	body := any(map[string]any{"sub_id": map[string]any{"format": "iss_sub", "iss": f.provider.Issuer(), "sub": "1"}})
	if strings.HasSuffix(path, "logout") {
		headers = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
		body = raw(url.Values{"logout_token": {token}}.Encode())
	}
	if a := f.sendWith(i, "POST "+path, body, headers); a.StatusCode >= http.StatusBadRequest {
		f.Fatalf("%s: %s %v", path, a.Status, a.members)
	}
}

// enter signs bob in by password, and gives bob a key.
func (f *signOnNodes) enter(bob *doorwardtest.Person) (in memberAccess) {
	f.Helper()
	in = memberAccess{person: bob, own: bob.Login()}
	made := f.sendWith(0, "POST /api/v2/api-keys", map[string]any{"name": "Reports", "permissions": []string{"message.read"}}, http.Header{"Cookie": {"JSESSIONID=" + in.own}, "Content-Type": {"application/json"}})
	if in.key = made.member("key"); in.key == "" {
		f.Fatalf("no key: %s %v", made.Status, made.members)
	}
	f.wantAccess("before", true, in.own, "")
	f.wantAccess("before", true, "", in.key)
	return in
}

// By each way in which a directory or a provider ends somebody, on each node, the answer comes when no node accepts what is to
// end, in whichever way it is asked.
func TestEndedByDirectoryOnEveryNode(t *testing.T) {
	t.Parallel()
	f := newSignOnNodes(t)
	f.ask(0, "PATCH "+f.path, map[string]any{"endsKeys": true, "jitRole": "ADMIN"})
	secret := f.ask(0, "POST "+f.path+"/scim-secrets", nil).member("secret")
	bob := f.tenant.Join("bob@acme.example", "ADMIN")
	patch := func(value any) map[string]any {
		return map[string]any{"Operations": []any{map[string]any{"op": "replace", "path": "active", "value": value}}}
	}
	user := "/scim/v2/Users/" + bob.ID
	again := func(i int) { f.scim(i, secret, "PATCH "+user, patch(true)) }
	sso := "/api/v2/auth/sso/" + f.con
	for _, way := range []struct {
		name  string
		end   func(i int)
		again func(i int)
		ends  []string // "own", "key", "connection": of bob, of bob, of ann
	}{
		{"PATCH", func(i int) { f.scim(i, secret, "PATCH "+user, patch("False")) }, again, []string{"own", "key"}},
		{"PUT", func(i int) {
			f.scim(i, secret, "PUT "+user, map[string]any{"userName": "bob@acme.example", "active": false})
		}, again, []string{"own", "key"}},
		{"revocation", func(i int) { f.form(i, sso+"/revoke", f.provider.Revocation("http://localhost"+sso+"/revoke", nil)) }, func(int) {}, []string{"connection"}},
		{"logout by sub", func(i int) {
			f.form(i, sso+"/backchannel-logout", f.provider.Logout("doorward", map[string]any{"sub": "1"}))
		}, func(int) {}, []string{"connection"}},
		{"logout by sid", func(i int) {
			f.form(i, sso+"/backchannel-logout", f.provider.Logout("doorward", map[string]any{"sid": "at the provider"}))
		}, func(int) {}, []string{"connection"}},
		{"DELETE", func(i int) { f.scim(i, secret, "DELETE "+user, nil) }, nil, []string{"own", "key"}},
	} {
		for at := range f.nodes {
			in, vouched := f.enter(bob), f.signIn(at)
			way.end(at)
			for name, credential := range map[string][2]string{"own": {in.own, ""}, "key": {"", in.key}, "connection": {vouched, ""}} {
				f.wantAccess(way.name+", "+name, !slices.Contains(way.ends, name), credential[0], credential[1])
			}
			if way.again == nil {
				break
			}
			way.again((at + 1) % len(f.nodes))
			for name, credential := range map[string][2]string{"own": {in.own, ""}, "key": {"", in.key}} {
				f.wantAccess(way.name+" and back, "+name, !slices.Contains(way.ends, name), credential[0], credential[1])
			}
		}
	}
}
