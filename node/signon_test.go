package node_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
)

// signOnNodes are three nodes with a tenant whose connection signs people in.
type signOnNodes struct {
	*testing.T
	nodes    []*doorwardtest.Server
	owner    string // token of the OWNER's session
	tenantID string
	tenant   *doorwardtest.Tenant
	con      string // id of the connection
	path     string // of the connection
	provider *oidctest.Provider
}

// newSignOnNodes makes a tenant, and a connection that makes members of the people of the domain acme.example.
func newSignOnNodes(t *testing.T) *signOnNodes {
	t.Helper()
	return signOnNodesOf(t, func(t *testing.T, options ...doorwardtest.Option) []*doorwardtest.Server {
		t.Helper()
		return doorwardtest.StartNodes(t, 3, pgtest.DSN(t), options...)
	})
}

// signOnNodesOf is newSignOnNodes with nodes of another kind.
func signOnNodesOf(t *testing.T, start func(t *testing.T, options ...doorwardtest.Option) []*doorwardtest.Server) *signOnNodes {
	t.Helper()
	reachProviders := func(c *node.Config) {
		c.Connections.Allow, c.Connections.Authorities = oidctest.Addresses(), oidctest.Authorities()
	}
	key := filepath.Join(t.TempDir(), "master.key")
	if _, err := seal.Create(key); err != nil {
		t.Fatal(err)
	}
	masterKey := func(c *node.Config) { c.MasterKeyFile = key }
	f := &signOnNodes{T: t, nodes: start(t, doorwardtest.BaseURL("http://localhost"), reachProviders, masterKey), provider: oidctest.New("")}
	t.Cleanup(f.provider.Close)
	f.provider.Change(func(s *oidctest.Settings) {
		s.Apps = []oidctest.App{{ID: "doorward", Secrets: []string{"a secret of the provider"}}}
		s.Person = oidctest.Person{Subject: "1", Email: "ann@acme.example", IsVerified: true, Claims: map[string]any{"sid": "at the provider"}}
	})
	f.tenant = f.nodes[0].Tenant("Acme")
	f.owner, f.tenantID = f.tenant.Owner.Token(), f.tenant.ID
	made := f.ask(0, "POST /api/v2/sso/connections", map[string]any{
		"type": "oidc", "name": "Okta", "issuer": f.provider.Issuer(), "clientId": "doorward", "clientAuth": "secret_basic", "jit": "domains",
	})
	f.con = made.member("id")
	f.path = "/api/v2/sso/connections/" + f.con
	f.ask(0, "POST "+f.path+"/secrets", map[string]any{"clientSecret": "a secret of the provider"})
	f.prove()
	f.ask(0, "PATCH "+f.path, map[string]any{"status": "active"})
	f.setMode(0, "optional")
	return f
}

// prove makes the domain one that is proved for the connection, and the connection one that is tested.
func (f *signOnNodes) prove() {
	f.Helper()
	id := doorward.NewID(doorward.PrefixDomain)
	_, err := f.nodes[0].Node.DB.Write(f.Context(), func(tx *store.Tx) error {
		_, made := tx.InsertDomain(f.Context(), doorward.Domain{ID: id, TenantID: f.tenantID, Name: "acme.example", Token: id, CreatedAt: tx.Now})
		found, err := tx.Connection(f.Context(), f.con)
		if err != nil {
			return err
		}
		_, tested := tx.MarkConnectionTested(f.Context(), f.con, false, found.InForce.Revision)
		return errors.Join(made, tested, tx.VerifyDomain(f.Context(), id, tx.Now), tx.SetDomainConnection(f.Context(), id, f.con))
	})
	if err != nil {
		f.Fatal(err)
	}
}

// nodeAnswer is the answer of a node.
type nodeAnswer struct {
	*http.Response
	members map[string]any
}

// member returns a text in the body; empty: there is none.
func (a nodeAnswer) member(name string) string {
	text, _ := a.members[name].(string)
	return text
}

// raw is a body that is sent as it is.
type raw string

// send sends a request with cookies.
func (f *signOnNodes) send(i int, route string, body any, cookies string) (a nodeAnswer) {
	f.Helper()
	return f.sendWith(i, route, body, http.Header{"Content-Type": {"application/json"}, "If-Match": {"*"}, "Cookie": {cookies}})
}

// sendWith sends a request, and again while the node is short of CPU.
func (f *signOnNodes) sendWith(i int, route string, body any, headers http.Header) (a nodeAnswer) {
	f.Helper()
	f.nodes[i].Repeat(func() int {
		a = f.once(i, route, body, headers)
		return a.StatusCode
	})
	return a
}

// once sends a request.
func (f *signOnNodes) once(i int, route string, body any, headers http.Header) nodeAnswer {
	f.Helper()
	method, path, _ := strings.Cut(route, " ")
	text, err := json.Marshal(body)
	if err != nil {
		f.Fatal(err)
	}
	if as, is := body.(raw); is {
		text = []byte(as)
	}
	req, err := http.NewRequestWithContext(f.Context(), method, f.nodes[i].URL+path, strings.NewReader(string(text)))
	if err != nil {
		f.Fatal(err)
	}
	if body == nil {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	req.Header = headers.Clone()
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		f.Fatal(err)
	}
	defer res.Body.Close()
	a := nodeAnswer{Response: res}
	_ = json.NewDecoder(res.Body).Decode(&a.members)
	return a
}

// ask sends a request of the OWNER, which must not be refused.
func (f *signOnNodes) ask(i int, route string, body any) nodeAnswer {
	f.Helper()
	a := f.send(i, route, body, "JSESSIONID="+f.owner)
	if a.StatusCode >= http.StatusBadRequest {
		f.Fatalf("%s: %s %v", route, a.Status, a.members)
	}
	return a
}

func (f *signOnNodes) setMode(i int, mode string) nodeAnswer {
	f.Helper()
	return f.ask(i, "PUT /api/v2/sso/policy", map[string]any{"mode": mode, "guests": "allowed"})
}

// begin begins a sign-in on a node, goes through the provider, and returns what opens the callback on a node.
func (f *signOnNodes) begin(i int) (callback func(i int) nodeAnswer) {
	f.Helper()
	begun := f.send(i, "GET /api/v2/auth/sso/"+f.con+"/start", nil, "")
	back, err := f.provider.SignIn(begun.Header.Get("Location"))
	if err != nil {
		f.Fatal(err)
	}
	return func(i int) nodeAnswer {
		f.Helper()
		return f.send(i, "GET "+(&url.URL{Path: back.Path, RawQuery: back.RawQuery}).String(), nil, cookiesOf(begun))
	}
}

// cookiesOf returns what the browser sends after the answer.
func cookiesOf(a nodeAnswer) string {
	var all []string
	for _, c := range a.Cookies() {
		if c.Value != "" {
			all = append(all, c.Name+"="+c.Value)
		}
	}
	return strings.Join(all, "; ")
}

// signIn signs in on two nodes, and returns the token of the session, which all nodes have in memory by then.
func (f *signOnNodes) signIn(i int) string {
	f.Helper()
	done := f.begin(i)((i + 1) % len(f.nodes))
	token := ""
	for _, c := range done.Cookies() {
		if c.Name == "JSESSIONID" {
			token = c.Value
		}
	}
	if token == "" {
		f.Fatalf("the sign-in opens no session: %s %v", done.Status, done.members)
	}
	for range 2 {
		f.checkAll(token, http.StatusOK)
	}
	return token
}

// checkAll wants the status for the session from each node.
func (f *signOnNodes) checkAll(token string, want int) {
	f.Helper()
	for i, n := range f.nodes {
		if res := check(f.T, n, token); res.StatusCode != want {
			f.Fatalf("node %d answers the session %s, want %d", i, res.Status, want)
		}
	}
}

// identity returns the path of the one identity of the connection.
func (f *signOnNodes) identity(i int) string {
	f.Helper()
	items, _ := f.ask(i, "GET "+f.path+"/identities", nil).members["items"].([]any)
	if len(items) != 1 {
		f.Fatalf("the connection has the identities %v", items)
	}
	return "/api/v2/sso/identities/" + items[0].(map[string]any)["id"].(string)
}

// TestSignOnOffOnEveryNode: by each door that turns a tenant's sign-on off, or one person's, the answer comes when
// no node accepts a session of the connection any more. A sign-in that is at the provider then is refused.
func TestSignOnOffOnEveryNode(t *testing.T) {
	t.Parallel()
	f := newSignOnNodes(t)
	for i, door := range []struct {
		name  string
		close func(i int) nodeAnswer
		// open undoes it; nil: nothing does.
		open func(i int)
		// status and check are what a sign-in under way ends with.
		status int
		check  string
	}{
		{"unlink", func(i int) nodeAnswer { return f.ask(i, "DELETE "+f.identity(i), nil) }, func(int) {}, http.StatusSeeOther, ""},
		{"policy", func(i int) nodeAnswer { return f.setMode(i, "off") }, func(i int) { f.setMode(i, "optional") }, http.StatusForbidden, "state"},
		{
			"disable", func(i int) nodeAnswer { return f.ask(i, "PATCH "+f.path, map[string]any{"status": "disabled"}) },
			func(i int) { f.ask(i, "PATCH "+f.path, map[string]any{"status": "active"}) },
			http.StatusForbidden, "state",
		},
		{"command", func(int) nodeAnswer { f.turnOff(); return nodeAnswer{} }, func(i int) { f.setMode(i, "optional") }, http.StatusForbidden, "state"},
		{"delete", func(i int) nodeAnswer { return f.ask(i, "DELETE "+f.path, nil) }, nil, http.StatusNotFound, ""},
	} {
		for at := range f.nodes { // where it is turned off
			token, callback, shortages := f.signIn((at+i)%len(f.nodes)), f.begin(at), countShortages(f.nodes)
			closed := door.close(at)
			f.checkAll(token, http.StatusUnauthorized)
			if closed.Response != nil && closed.Header.Get("X-Revocation-Nodes") != "3" && countShortages(f.nodes) == shortages {
				t.Errorf("%s: X-Revocation-Nodes = %q, want 3", door.name, closed.Header.Get("X-Revocation-Nodes"))
			}
			if a := callback((at + 1) % len(f.nodes)); a.StatusCode != door.status || a.member("check") != door.check {
				t.Errorf("%s: the sign-in under way ends with %s %v", door.name, a.Status, a.members)
			}
			if door.open == nil {
				break
			}
			door.open((at + 2) % len(f.nodes))
		}
	}
}

// turnOff turns the tenant's sign-on off as "doorward sso off" does.
func (f *signOnNodes) turnOff() {
	f.Helper()
	if _, err := f.nodes[0].Node.App.Demands.Off(f.Context(), doorward.OperatorAtTerminal(), f.tenantID); err != nil {
		f.Fatal(err)
	}
}
