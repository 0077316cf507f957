package web_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/doorward/doorward/web"
	"github.com/doorward/doorward/web/front"
)

func init() {
	openapi3filter.RegisterBodyDecoder("application/samlmetadata+xml", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.PlainBodyDecoder) // pages, of some endpoints for browsers
}

// spec is an OpenAPI document that answers are checked against.
type spec struct {
	doc     *openapi3.T
	problem *openapi3.SchemaRef

	mu     sync.Mutex
	passed map[[sha256.Size]byte]bool // hashes of checked answers, without ids and times
}

// readSpec gets the document from the server, or reuses one that differs only in the
// port: it depends on the routes and the base URL only, and making it is a tenth of
// this package's work.
func readSpec(t *testing.T, d *server) *spec {
	t.Helper()
	base := port.ReplaceAllString(d.base, "")
	if s, ok := specs.Load(base); ok {
		return s.(*spec)
	}
	res, err := d.client.Get(d.URL + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("GET /openapi.json: %d %v", res.StatusCode, err)
	}
	s, err := parseSpec(bytes.ReplaceAll(text, []byte(d.base), []byte("http://localhost:8080")))
	if err != nil {
		t.Fatal(err)
	}
	specs.Store(base, s)
	return s
}

var port = regexp.MustCompile(`:[0-9]+`)

// specs holds parsed documents by their base URL without the port, and by the hash of their text.
var specs sync.Map

func parseSpec(text []byte) (*spec, error) {
	key := sha256.Sum256(text)
	if s, ok := specs.Load(key); ok {
		return s.(*spec), nil
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, fmt.Errorf("the OpenAPI document: %w", err)
	}
	// TestDocumentIsValid looks at the examples, once: that takes a second.
	if err := doc.Validate(context.Background(), openapi3.DisableExamplesValidation()); err != nil {
		return nil, fmt.Errorf("the OpenAPI document: %w", err)
	}
	if keyword := beyond30.Find(text); keyword != nil {
		return nil, fmt.Errorf("the OpenAPI document: the validator of version 3.0 doesn't know %s: see asVersion30", keyword)
	}
	closeAnswers(doc)
	s, _ := specs.LoadOrStore(key, &spec{doc: doc, problem: doc.Components.Schemas["Problem"], passed: map[[sha256.Size]byte]bool{}})
	return s.(*spec), nil
}

// asVersion30 makes kin-openapi validate answers by its rules for OpenAPI 3.0. For 3.1 it
// compiles schemas at each use, which took a sixth of this package's CPU time. Requests that are
// refused by 3.0 are validated as 3.1, too: some hold a null, which only 3.1 knows.
var asVersion30 = &openapi3.T{OpenAPI: "3.0.4"}

// beyond30 finds the keywords that the validator of version 3.0 ignores.
var beyond30 = regexp.MustCompile(`"(const|contains|prefixItems|patternProperties|propertyNames|dependent\w+|unevaluated\w+|if|\$defs|exclusive\w+)": `)

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	text, err := web.Document("http://localhost:8080", front.SessionCookie, "test")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
}

// A document with a keyword that the validator would ignore is refused.
func TestKeywordsBeyondTheValidatorAreNoticed(t *testing.T) {
	t.Parallel()
	text, err := web.Document("http://localhost:8080", front.SessionCookie, "test")
	if err != nil {
		t.Fatal(err)
	}
	wrong := bytes.Replace(text, []byte(`"type": "string"`), []byte(`"const": "x"`), 1)
	if _, err := parseSpec(wrong); err == nil || !strings.Contains(err.Error(), `"const"`) {
		t.Errorf("a document with const: %v", err)
	}
}

// closeAnswers makes the document as strict as this version of the server is. As published, it
// leaves open what later versions may add: members of answers, and codes of problems.
func closeAnswers(doc *openapi3.T) {
	closed := map[string]bool{}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			for status, res := range op.Responses.Map() {
				if status == "429" || status == "503" {
					requireHeader(res.Value, "Retry-After")
				}
				for mediaType, media := range res.Value.Content {
					closeSchema(closed, media.Schema)
					if mediaType == "application/problem+json" {
						media.Schema = &openapi3.SchemaRef{Value: &openapi3.Schema{AllOf: openapi3.SchemaRefs{media.Schema, codeOf(media.Examples)}}}
					}
				}
			}
		}
	}
}

// requireHeader makes a header required in this response. Others that share its definition keep it.
func requireHeader(res *openapi3.Response, name string) {
	h := *res.Headers[name].Value
	h.Required = true
	res.Headers[name] = &openapi3.HeaderRef{Value: &h}
}

func closeSchema(closed map[string]bool, ref *openapi3.SchemaRef) {
	if ref == nil || ref.Ref != "" && closed[ref.Ref] {
		return
	}
	closed[ref.Ref] = true
	sc := ref.Value
	if len(sc.Properties) > 0 && sc.AdditionalProperties.Has == nil && sc.AdditionalProperties.Schema == nil {
		sc.AdditionalProperties.Has = new(bool)
	}
	closeSchema(closed, sc.Items)
	closeSchema(closed, sc.AdditionalProperties.Schema)
	for _, member := range sc.Properties {
		closeSchema(closed, member)
	}
}

// codeOf restricts the code of a problem to those of the examples.
func codeOf(examples openapi3.Examples) *openapi3.SchemaRef {
	code := &openapi3.Schema{}
	for name := range examples {
		code.Enum = append(code.Enum, name)
	}
	return &openapi3.SchemaRef{Value: &openapi3.Schema{Properties: openapi3.Schemas{"code": {Value: code}}}}
}

// route finds the operation of a request below a base path. A HEAD has the operation of GET.
func (s *spec) route(req *http.Request, base string) (route *routers.Route, ok bool) {
	method := req.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	sent := req.URL.EscapedPath()
	for _, path := range []string{strings.TrimPrefix(sent, base), sent} {
		exact := s.doc.Paths.Value(path) != nil // it goes before templates (OpenAPI 3.1, section 4.8.8.2)
		for template, item := range s.doc.Paths.Map() {
			if exact && template != path {
				continue
			}
			if op := item.GetOperation(method); op != nil && matches(template, path) {
				return &routers.Route{Spec: s.doc, Path: template, PathItem: item, Method: method, Operation: op}, true
			}
		}
	}
	return nil, false
}

func matches(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, got, func(want, got string) bool {
		return want == got || strings.HasPrefix(want, "{") && got != ""
	})
}

// check returns an error unless the answer is as documented for the request. An error answer
// must be a problem even if the document has no such operation.
func (s *spec) check(req *http.Request, base string, a answer) error {
	route, known := s.route(req, base)
	if !known {
		return s.checkProblem(a)
	}
	recordAnswer(route, a)
	if s.seenBefore(route, a) {
		return nil
	}
	route30 := *route
	route30.Spec = asVersion30
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, Route: &route30},
		Status:                 a.status, Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}
	return errors.Join(openapi3filter.ValidateResponse(req.Context(), input), checkNoBody(route, req, a), s.checkRequest(req, route, a))
}

// seenBefore reports whether an answer that differs only in ids and times was checked before.
func (s *spec) seenBefore(route *routers.Route, a answer) bool {
	h := sha256.New()
	fmt.Fprintln(h, route.Method, route.Path, a.status, shape(string(a.body)), len(a.cookies()))
	for _, name := range []string{"X-Request-Id", "Content-Type", "Retry-After", "Www-Authenticate"} {
		fmt.Fprintln(h, shape(strings.Join(a.header.Values(name), ",")))
	}
	if a.status < 300 {
		fmt.Fprintln(h, shape(a.sent))
	}
	key := [sha256.Size]byte(h.Sum(nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.passed[key]
	s.passed[key] = true
	return seen
}

// shape removes the values with a fixed format that differ in each answer.
func shape(text string) string {
	for _, v := range variable {
		text = v.ReplaceAllString(text, "$1")
	}
	return text
}

var variable = []*regexp.Regexp{
	regexp.MustCompile(`\b([a-z]{3}_)[a-z2-7]{26}\b`),
	regexp.MustCompile(`"()\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z"`),
	regexp.MustCompile(`"()[A-Za-z0-9_-]{43}"`),
	regexp.MustCompile(`(http://localhost:)\d+`),
}

// checkNoBody rejects undocumented bodies, which the validator ignores.
func checkNoBody(route *routers.Route, req *http.Request, a answer) error {
	described := route.Operation.Responses.Status(a.status)
	if described == nil || len(described.Value.Content) > 0 || req.Method == http.MethodHead {
		return nil
	}
	if len(a.body) > 0 || a.header.Get("Content-Type") != "" {
		return errors.New("the document has no body here")
	}
	return nil
}

// checkRequest returns an error if a request succeeded that the document doesn't
// allow.
func (s *spec) checkRequest(req *http.Request, route *routers.Route, a answer) error {
	if a.status >= 300 || route.Operation.RequestBody == nil {
		return nil
	}
	route30 := *route
	route30.Spec = asVersion30
	if validateBody(req, &route30, a.sent) == nil {
		return nil
	}
	return validateBody(req, route, a.sent)
}

func validateBody(req *http.Request, route *routers.Route, sent string) error {
	copied := req.Clone(req.Context())
	copied.Body = io.NopCloser(strings.NewReader(sent))
	return openapi3filter.ValidateRequestBody(req.Context(), &openapi3filter.RequestValidationInput{Request: copied, Route: route}, route.Operation.RequestBody.Value)
}

func (s *spec) checkProblem(a answer) error {
	if a.status < 400 || len(a.body) == 0 {
		return nil
	}
	return s.problem.Value.VisitJSON(a.at(""), openapi3.VisitAsResponse())
}

// seenAnswers holds, as "METHOD path status code", every answer that a test has got.
var seenAnswers sync.Map

func recordAnswer(route *routers.Route, a answer) {
	seenAnswers.Store(fmt.Sprint(route.Method, " ", route.Path, " ", a.status, " ", a.text("code")), true)
}

// untested are documented answers, or parts of their text, that the tests here needn't see.
var untested = []string{
	" 500 internal_error",                // a defect; none is known
	"/api/v2/access/",                    // checks have tests of their own, in web/edge
	"/access/v1/",                        // authzen_test.go tests them; the guard is that of introspection
	"/.well-known/authzen-configuration", // needs no database
	// The pending invitation is used up in the transaction that adds the
	// membership; only the primary key of memberships could still refuse it.
	"POST /api/v2/auth/accept-invitation 409 already_member",
	"POST /api/v2/auth/accept-invitation/second 409 already_member",
	// One place refuses all changes that are paused, most of them once their object is
	// found. TestEveryChangeIsPaused tests those that need no object.
	" 503 maintenance",
	// A webhook can't be created without a master key.
	"POST /api/v2/webhooks/{id}/rotate-secret 409 master_key_missing",
	"POST /api/v2/webhooks/{id}/test 409 master_key_missing",
	// The body has no member that can be missing or wrong.
	"POST /api/v2/auth/factors/passkey/begin 422 validation_failed",
	"POST /api/v2/sso/connections/{id}/switch 422 validation_failed",
	"POST /api/v2/sso/connections/{id}/runs/{runId}/undo 422 validation_failed",
	// A body of any bytes is malformed only if it is incomplete, which TestBodyCutOff
	// tests on its own connection.
	"PUT /api/v2/tenant/logo 400 invalid_body",
}

// documentedAnswers returns the answers in the document, in the format of seenAnswers.
func documentedAnswers(doc *openapi3.T) (all []string) {
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for status, response := range op.Responses.Map() {
				for _, code := range codes(response.Value) {
					all = append(all, fmt.Sprint(method, " ", path, " ", status, " ", code))
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// codes returns the problem codes of a response, or one empty code if it isn't a problem.
func codes(r *openapi3.Response) []string {
	problem := r.Content["application/problem+json"]
	if problem == nil {
		return []string{""}
	}
	var all []string
	for _, restriction := range append(problem.Schema.Value.AllOf, problem.Schema) {
		if code := restriction.Value.Properties["code"]; code != nil {
			for _, c := range code.Value.Enum {
				all = append(all, fmt.Sprint(c))
			}
		}
	}
	return all
}

// TestMain fails a full run in which a documented answer wasn't seen.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && runsAllTests() {
		code = reportUntested()
	}
	os.Exit(code)
}

// runsAllTests reports whether all tests of the package run. Those on PostgreSQL don't under
// -short.
func runsAllTests() bool {
	if testing.Short() {
		return false
	}
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return true
}

// reportUntested prints the documented answers that no test has seen, and returns the exit code.
func reportUntested() (code int) {
	text, err := web.Document("http://localhost:8080", front.SessionCookie, "test")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	s, err := parseSpec(text)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for _, promise := range documentedAnswers(s.doc) {
		_, has := seenAnswers.Load(promise)
		excused := slices.ContainsFunc(untested, func(excuse string) bool { return strings.Contains(promise, excuse) })
		if !has && !excused {
			fmt.Printf("FAIL: the document promises %q, and no test has seen it: add a test, or take it out of web/api\n", promise)
			code = 1
		}
	}
	return code
}

// A validator that accepts everything would go unnoticed: each of these documents but the first
// has one error, which an answer must reveal.
func TestWrongDocumentsAreNoticed(t *testing.T) {
	t.Parallel()
	d := start(t)
	acme := d.Tenant("Acme")
	right, err := web.Document(d.base, front.SessionCookie, "test")
	if err != nil {
		t.Fatal(err)
	}
	right = onlyLogin(t, right) // a tenth as long, and read once for each error
	wrongs := []struct{ name, from, to string }{
		{"nothing", `"title": "Doorward"`, `"title": "Backward"`},
		{"a member that isn't described", `"idleExpiresAt": {`, `"elsewhere": {`},
		{"the type of a member", "\"tenantName\": {\n            \"type\": \"string\"", "\"tenantName\": {\n            \"type\": \"integer\""},
		{"a value outside the set", `"active",`, `"alive",`},
		{"a member that is missing", "\"required\": [\n          \"token\",", "\"required\": [\n          \"tokens\","},
		{"the status", "\"200\": {", "\"201\": {"},
		{"the media type", `"application/json": {`, `"application/jsons": {`},
		{"a header that is missing", `"#/components/headers/X-Request-Id"`, `"#/components/headers/Retry-After"`},
		{"a code that isn't listed", "\"invalid_credentials\": {\n                    \"$ref\"", "\"valid_credentials\": {\n                    \"$ref\""},
		{"the form of a header", `"^Bearer realm=\"doorward\""`, `"^Basic"`},
	}
	for i, w := range wrongs {
		text := bytes.ReplaceAll(right, []byte(w.from), []byte(w.to))
		if bytes.Equal(text, right) {
			t.Errorf("%s: the document doesn't contain %q", w.name, w.from)
			continue
		}
		s, err := parseSpec(text)
		if err != nil {
			t.Errorf("%s: %v", w.name, err)
			continue
		}
		if noticed := revealsError(t, s, d, acme.Owner.Email); noticed != (i > 0) { // the first document is right about answers
			t.Errorf("a document that is wrong about %s: noticed is %v", w.name, noticed)
		}
	}
}

// onlyLogin returns the part of a document that describes a login, in the same layout.
func onlyLogin(t *testing.T, text []byte) []byte {
	t.Helper()
	const path = "/api/v2/auth/login"
	var doc, paths map[string]json.RawMessage
	var components map[string]map[string]json.RawMessage
	read := func(text []byte, into any) {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	read(text, &doc)
	read(doc["paths"], &paths)
	read(doc["components"], &components)
	needed := map[string]map[string]json.RawMessage{"securitySchemes": components["securitySchemes"]}
	addReferred(needed, components, paths[path])
	for member, value := range map[string]any{"paths": map[string]json.RawMessage{path: paths[path]}, "components": needed} {
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		doc[member] = encoded
	}
	short, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return short
}

var reference = regexp.MustCompile(`"#/components/(\w+)/([^"]+)"`)

// addReferred adds to needed the components that text refers to, and those that these refer to.
func addReferred(needed, components map[string]map[string]json.RawMessage, text []byte) {
	for _, ref := range reference.FindAllSubmatch(text, -1) {
		kind, name := string(ref[1]), string(ref[2])
		if _, has := needed[kind][name]; has {
			continue
		}
		if needed[kind] == nil {
			needed[kind] = map[string]json.RawMessage{}
		}
		needed[kind][name] = components[kind][name]
		addReferred(needed, components, components[kind][name])
	}
}

// revealsError reports whether a good or a bad login reveals the error of the document.
func revealsError(t *testing.T, s *spec, d *server, email string) bool {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, d.URL+"/api/v2/auth/login", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	good := s.check(req, "", d.login(t, email, password).ok(http.StatusOK))
	bad := s.check(req, "", d.login(t, email, "wrong password").fails(http.StatusUnauthorized, "invalid_credentials"))
	return good != nil || bad != nil
}
