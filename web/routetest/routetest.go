// Package routetest has a sample request for each route of the API. Tests that are about every
// route run over this table: a new route is one row in table.go.
//
// A route's first row is its sample: a well-formed request that only the database can answer, and
// that changes nothing that another test needs. It names absent objects, or makes something. More
// rows of the same route are requests that it refuses for reasons of its own. What follows from
// the guard and the body is no row: TestEachRouteRefuses and the tests of web derive it from the
// server's routes and its OpenAPI document.
package routetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Object is a JSON object.
type Object = map[string]any

// Callers besides the roles of a session: "OWNER", "ADMIN", "USER" and "VIEWER".
const (
	Nobody   = ""
	Operator = "operator" // an operator key
	Key      = "key"      // an API key
)

// Absent has the form of a token, and none has this value.
const Absent = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// Password is the password in the bodies of the samples.
const Password = "four quiet mice"

// Sample is a request and its answer. The tenant is Acme, with a person of each role, such as
// admin@acme.example.
type Sample struct {
	Request string // method, path and query
	Who     string // the caller
	Body    any    // an Object, or a string that is sent unchanged; nil: none
	Header  string // one more header, such as "If-Match: *"; may be empty
	Want    string // the status, and the code of a refusal: "404 not_found"
	// Twice says why a POST by a known caller takes no Idempotency-Key: what a repetition does.
	Twice string
}

// Method returns the method of the request.
func (s Sample) Method() string {
	method, _, _ := strings.Cut(s.Request, " ")
	return method
}

// Path returns the path of the request, without the query.
func (s Sample) Path() string {
	_, target, _ := strings.Cut(s.Request, " ")
	path, _, _ := strings.Cut(target, "?")
	return path
}

// Text returns the body as it is sent.
func (s Sample) Text() string {
	switch body := s.Body.(type) {
	case nil:
		return ""
	case string:
		return body
	default:
		text, err := json.Marshal(body)
		if err != nil {
			panic(err) // the table holds nothing that JSON hasn't
		}
		return string(text)
	}
}

// NamesAbsent reports whether the request names something that doesn't exist.
func (s Sample) NamesAbsent() bool {
	sent := s.Request + s.Text()
	return strings.Contains(sent, "_absent") || strings.Contains(sent, Absent)
}

// SetHeader adds the sample's own header to a request.
func (s Sample) SetHeader(h http.Header) {
	if name, value, has := strings.Cut(s.Header, ": "); has {
		h.Set(name, value)
	}
}

// Paths returns the paths of all rows, each once and sorted, except one.
func Paths(except string) (all []string) {
	for _, s := range Samples {
		if s.Path() != except {
			all = append(all, s.Path())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ByRoute returns the rows of each of the routes, which are given as "GET /users/{id}". faults
// says which rows to add and which to remove.
func ByRoute(routes []string) (rows map[string][]Sample, faults []string) {
	return group(Samples, routes)
}

func group(samples []Sample, routes []string) (rows map[string][]Sample, faults []string) {
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.HandleFunc(route, func(http.ResponseWriter, *http.Request) {})
	}
	rows = map[string][]Sample{}
	for _, s := range samples {
		req, err := http.NewRequest(s.Method(), s.Path(), nil)
		if err != nil {
			return nil, []string{err.Error()}
		}
		_, route := mux.Handler(req)
		if route == "" {
			faults = append(faults, fmt.Sprintf("%s: the server has no such route: remove the row from web/routetest/table.go", s.Request))
			continue
		}
		rows[route] = append(rows[route], s)
	}
	for _, route := range routes {
		if len(rows[route]) == 0 {
			faults = append(faults, fmt.Sprintf("%s has no row: add {Request: %q, with ids of what doesn't exist, Who: …, Body: …, Want: …} to web/routetest/table.go", route, route))
		}
	}
	return rows, faults
}
