package node_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/pgtest"
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

// load makes people and groups by several connections of a directory, as fast as they are answered. A write that isn't
// confirmed because the node was short of CPU is left out.
func (f *signOnNodes) load(secret string, people, groups int) {
	f.Helper()
	made := make([]string, people)
	each := func(n int, request func(i int) (route string, body any), done func(i int, id string)) {
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				for i := w; i < n; i += 4 {
					route, body := request(i)
					shortages := countShortages(f.nodes)
					a := f.once(i%len(f.nodes), route, body, http.Header{"Authorization": {"Bearer " + secret}})
					if a.StatusCode != http.StatusCreated && (a.StatusCode != http.StatusServiceUnavailable || countShortages(f.nodes) == shortages) {
						f.Errorf("%s: %s %v", route, a.Status, a.members)
						return
					}
					done(i, a.member("id"))
				}
			})
		}
		writers.Wait()
	}
	each(people, func(i int) (string, any) {
		return "POST /scim/v2/Users", map[string]any{"userName": fmt.Sprintf("p%d@acme.example", i), "externalId": strconv.Itoa(i), "active": true}
	}, func(i int, id string) { made[i] = id })
	each(groups, func(i int) (string, any) {
		var members []any
		for k := range people * 2 / groups { // each person is in two groups
			if id := made[(i*people/groups+k)%people]; id != "" {
				members = append(members, map[string]any{"value": id})
			}
		}
		return "POST /scim/v2/Groups", map[string]any{"displayName": fmt.Sprintf("Group %d", i), "members": members}
	}, func(int, string) {})
}

// While a directory makes people and groups, an access check is refused on no node whose lease holds.
func TestRaceDirectoryBesideChecks(t *testing.T) {
	people, groups := 60, 6
	if fulltest.On() {
		people, groups = 10_000, 500
	}
	for engine, start := range map[string]func(*testing.T, ...doorwardtest.Option) []*doorwardtest.Server{
		"sqlite": func(t *testing.T, options ...doorwardtest.Option) []*doorwardtest.Server {
			return []*doorwardtest.Server{doorwardtest.Start(t, options...)}
		},
		"postgres": func(t *testing.T, options ...doorwardtest.Option) []*doorwardtest.Server {
			return doorwardtest.StartNodes(t, 3, pgtest.DSN(t), options...)
		},
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			f := signOnNodesOf(t, start)
			f.ask(0, "PATCH "+f.path, map[string]any{"mappings": []any{map[string]any{"group": "Group 0", "role": "VIEWER"}}})
			secret := f.ask(0, "POST "+f.path+"/scim-secrets", nil).member("secret")
			ann := f.tenant.Join("ann@other.example", "USER")
			isOver := make(chan struct{})
			var checkers sync.WaitGroup
			for i, n := range f.nodes {
				checkers.Go(func() {
					for {
						select {
						case <-isOver:
							return
						case <-time.After(time.Millisecond):
						}
						shortages := n.Shortages()
						if res := checkOnce(t, n, ann.Token()); res.StatusCode != http.StatusOK && (res.StatusCode != http.StatusServiceUnavailable || n.Shortages() == shortages) {
							t.Errorf("node %d answers a check with %s", i, res.Status)
						}
					}
				})
			}
			f.load(secret, people, groups)
			close(isOver)
			checkers.Wait()
		})
	}
}
