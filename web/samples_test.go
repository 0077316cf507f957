package web_test

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/web/api"
	"github.com/doorward/doorward/web/authzen"
	"github.com/doorward/doorward/web/edge"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/routetest"
)

// operation is a route of the API with its sample and its part of the OpenAPI document.
type operation struct {
	routetest.Sample
	route front.Route
	op    *openapi3.Operation
}

// operations returns the documented routes, except those with one of these beginnings of their
// path.
func (s *server) operations(t *testing.T, except ...string) (all []operation) {
	t.Helper()
	routes := slices.Concat(api.Routes(nil), edge.Documented(nil), authzen.Routes(nil))
	var patterns []string
	for _, r := range routes {
		patterns = append(patterns, r.Method+" "+r.Path)
	}
	rows, faults := routetest.ByRoute(patterns)
	if len(faults) > 0 {
		t.Fatal(strings.Join(faults, "\n"))
	}
	for i, r := range routes {
		e := operation{rows[patterns[i]][0], r, s.spec.doc.Paths.Value(r.Path).GetOperation(r.Method)}
		if !slices.ContainsFunc(except, func(path string) bool { return strings.HasPrefix(e.Path(), path) }) {
			all = append(all, e)
		}
	}
	return all
}

// checkPath answers any method from memory, without the steps of other routes: see web/edge.
const checkPath = "/api/v2/access/check"

// takesJSON reports whether the operation takes a JSON body that Doorward defines; AuthZEN defines
// others.
func (e operation) takesJSON() bool { return e.route.Endpoint.In != nil && !e.route.Endpoint.Foreign }

// isPublic reports whether the operation answers callers without a credential.
func (e operation) isPublic() bool {
	name := e.route.Guard.Name()
	return name == front.Public().Name() || name == front.Optional().Name()
}

// maxBody is the size of the largest body, in bytes.
func (e operation) maxBody() int { return cmp.Or(e.route.Endpoint.MaxBody, front.MaxBody) }

// schema describes the JSON body.
func (e operation) schema() *openapi3.Schema {
	return e.op.RequestBody.Value.Content["application/json"].Schema.Value
}

// mayBeEmpty reports whether the body may be absent.
func (e operation) mayBeEmpty() bool { return !e.op.RequestBody.Value.Required }

// replace returns the body of the sample with another JSON value for a member.
func (e operation) replace(name, value string) string {
	rest := maps.Clone(e.Body.(m))
	delete(rest, name)
	text := "{" + quoted(name) + ":" + value
	if len(rest) > 0 {
		text += "," + unwrapped(routetest.Sample{Body: rest}.Text())
	}
	return text + "}"
}

// documents reports whether the answer is in the OpenAPI document.
func (e operation) documents(status int, code string) bool {
	response := e.op.Responses.Status(status)
	return response != nil && slices.Contains(codes(response.Value), code)
}

// callers returns the credential of each caller of a sample, the session of this OWNER among them.
func (s *server) callers(t *testing.T, owner *doorwardtest.Person) map[string]opt {
	t.Helper()
	_, key := s.newKey(t, owner, nil)
	return map[string]opt{
		"OWNER": as(owner.Token()), routetest.Key: bearer(key), routetest.Operator: bearer(s.operatorKey(t)), routetest.Nobody: anonymous,
	}
}

// try sends the sample with this body.
func (s *server) try(t *testing.T, e operation, body any, opts ...opt) answer {
	t.Helper()
	own := func(r *http.Request) { e.SetHeader(r.Header) }
	return s.send(t, e.Request, body, append([]opt{own}, opts...)...)
}
