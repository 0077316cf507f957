package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
)

const introduction = `Doorward's HTTP API: invitations, registration, login and sessions.

Sign in with ` + "`POST /api/v2/auth/login`" + `; send the token of the answer as the session cookie with every later request, or from a program that is no browser as ` + "`Authorization: Bearer <token>`" + `; a request with both is 401. Errors are RFC 9457 problems, each with a stable ` + "`code`" + ` and a page at ` + "`/problems/{code}`" + `.

401 means that there is no valid credential. 503 means that the server can't decide now, and says nothing about the credential: keep the session and try again after ` + "`Retry-After`" + ` seconds.

An endpoint that makes something takes an ` + "`Idempotency-Key`" + `: a repetition of the request with the same key gets the first answer again, and nothing is made twice.`

// Document returns the OpenAPI 3.1 description of the routes, made from the table
// of routes and the Go types of the handlers. cookie is the session cookie's name.
func Document(routes []front.Route, baseURL, cookie, version string) ([]byte, error) {
	d := newDocument(baseURL, cookie, version)
	for _, r := range routes {
		if r.Doc.ID != "" {
			d.add(r)
		}
	}
	d.openAnswers()
	return json.MarshalIndent(d.spec, "", "  ")
}

// The names of the kinds of credentials.
const (
	sessionCookie = "sessionCookie"
	sessionToken  = "sessionToken"
	operatorKey   = "operatorKey"
	serviceKey    = "serviceKey"
	tenantKey     = "tenantKey"
)

type document struct {
	cookie  string // name of the session cookie
	spec    *huma.OpenAPI
	schemas huma.Registry
}

// Lists are never null. The library keeps this choice in a global variable, set
// once here because servers may start side by side.
func init() { huma.DefaultArrayNullable = false }

func newDocument(baseURL, cookie, version string) document {
	schemas := huma.NewMapRegistry("#/components/schemas/", schemaName)
	return document{cookie: cookie, schemas: schemas, spec: &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Doorward", Version: version, Description: introduction,
			License: &huma.License{Name: "Apache-2.0", URL: "https://www.apache.org/licenses/LICENSE-2.0"},
		},
		Servers: []*huma.Server{{URL: baseURL}},
		Tags: []*huma.Tag{
			{Name: "Invitations", Description: "From inviting to a membership."},
			{Name: "Sessions", Description: "Signing in and out, sessions and memberships."},
			{Name: "People", Description: "The members of a tenant and their roles."},
			{Name: "Roles", Description: "The built-in roles, and those that a tenant has made."},
			{Name: "API keys", Description: "Credentials of servers that belong to a tenant."},
			{Name: "Sign-on", Description: "Sign-on of a tenant's own: how its people sign in by the provider of their organisation, and whether they have to."},
			{Name: "Webhooks", Description: "Endpoints of a tenant or of the platform that events are sent to, signed."},
			{Name: "Domains", Description: "DNS domains that a tenant has proved, by which its people find its sign-on."},
			{Name: "Audit", Description: "Who did what, and what was refused."},
			{Name: "Tenants", Description: "One's own tenant; for the operator, all tenants."},
			{Name: "Policies", Description: "What a tenant refuses although a role allows it."},
			{Name: "Model", Description: "The platform's own actions, for the operator."},
			{Name: "Second factors", Description: "Authenticator apps, passkeys and recovery codes: one's own, and those that a login asks for."},
			{Name: "Passwords", Description: "Forgotten and changed passwords."},
			{Name: "Account", Description: "One's own account: its address, what is held about it, and its end."},
			{Name: "Access", Description: "Checks for the other services of the platform."},
		},
		Components: &huma.Components{
			Schemas:  schemas,
			Headers:  headers,
			Examples: map[string]*huma.Example{},
			// Generators make types of these names, too, so none may be the name of a schema.
			SecuritySchemes: map[string]*huma.SecurityScheme{
				sessionCookie: {Type: "apiKey", In: "cookie", Name: cookie, Description: "The token of a login."},
				sessionToken:  {Type: "http", Scheme: "bearer", Description: "The token of a login, in place of the cookie, from callers that are no browsers."},
				operatorKey:   {Type: "http", Scheme: "bearer", Description: "An operator key, dwo_…"},
				serviceKey:    {Type: "http", Scheme: "bearer", Description: "A key of one of the platform's own services, dws_…, that has the permission. Inside a tenant the header Doorward-Tenant names it."},
				tenantKey:     {Type: "http", Scheme: "bearer", Description: "An API key of a tenant, dwk_…, as far as its permissions go."},
			},
		},
	}}
}

// visibleRequestID is the component for X-Request-Id at AuthZEN's endpoints, which keep any
// visible value.
const visibleRequestID = "X-Request-Id-Visible"

// headers are the headers that several answers share.
var headers = map[string]*huma.Header{
	"X-Request-Id": {
		Description: "Identifies this request in the log. A request's own value is kept if it has 1 to 128 letters, digits, dots, hyphens or underscores.",
		Required:    true, Schema: &huma.Schema{Type: "string", Pattern: "^[A-Za-z0-9._-]{1,128}$"},
	},
	visibleRequestID: {
		Description: "Identifies this request in the log. A request's own value of visible ASCII characters is kept; the log has it up to 128 characters.",
		Required:    true, Schema: &huma.Schema{Type: "string", Pattern: "^[!-~]+$"},
	},
	"WWW-Authenticate": {
		Description: "How to authenticate (RFC 9110, section 11.6.1)",
		Required:    true, Schema: &huma.Schema{Type: "string", Pattern: `^Bearer realm="doorward"`},
	},
	// Not required, though 429 and 503 always have it: ogen generates code that doesn't compile if
	// two sets of headers differ only in whether one is required. The tests of web require it.
	"Retry-After": {
		Description: "Seconds to wait before the next attempt",
		Schema:      &huma.Schema{Type: "integer", Minimum: new(1.0)},
	},
}

// headersOf are the headers of all answers with the status.
func headersOf(status int) map[string]*huma.Header {
	all := map[string]*huma.Header{"X-Request-Id": headerRef("X-Request-Id")}
	switch status {
	case http.StatusUnauthorized:
		all["WWW-Authenticate"] = headerRef("WWW-Authenticate")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		all["Retry-After"] = headerRef("Retry-After")
	}
	return all
}

func headerRef(header string) *huma.Header {
	return &huma.Header{Ref: "#/components/headers/" + header}
}

// schemaName names a schema after its Go type, without the suffix that
// distinguishes it from the type in the root package.
func schemaName(t reflect.Type, hint string) string {
	name := strings.TrimSuffix(huma.DefaultSchemaNamer(t, hint), "View")
	return strings.ToUpper(name[:1]) + name[1:]
}

func (d document) add(r front.Route) {
	op := &huma.Operation{
		OperationID: r.Doc.ID, Method: r.Method, Path: r.Path, Tags: []string{r.Doc.Tag},
		Summary: r.Doc.Summary, Description: r.Doc.Description,
		Security:   security(r.Guard),
		Parameters: append(pathParameters(r.Path), parameters(r)...),
		Responses:  map[string]*huma.Response{strconv.Itoa(r.Endpoint.Status): d.success(r)},
		Extensions: map[string]any{"x-action": r.Guard.Name()},
	}
	if r.Endpoint.DryRun {
		dry := r
		dry.Endpoint.Status = http.StatusOK
		op.Responses["200"] = d.success(dry)
	}
	if r.Endpoint.Return {
		op.Responses["303"] = d.redirect(r)
	}
	if r.Endpoint.Page {
		page := front.Route{Endpoint: front.Endpoint{Status: http.StatusOK, OutMedia: "text/html"}}
		op.Responses["200"] = d.success(page)
	}
	if in := r.Endpoint.In; in != nil {
		optional := in.Implements(reflect.TypeFor[front.OptionalBody]())
		op.RequestBody = &huma.RequestBody{Required: !optional, Content: d.content("application/json", in)}
	}
	if len(r.Endpoint.Media) > 0 {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{}}
		for _, mediaType := range r.Endpoint.Media {
			op.RequestBody.Content[mediaType] = &huma.MediaType{Schema: rawBody(r.Endpoint.Fields)}
		}
	}
	d.addErrors(op, append(impliedErrors(r), r.Doc.Errors...))
	if fault := r.Endpoint.Fault; fault != nil {
		op.Responses["400"] = &huma.Response{Description: "In the form of OAuth: `invalid_body`", Headers: headersOf(http.StatusBadRequest), Content: d.content("application/json", fault)}
	}
	for _, res := range op.Responses {
		if r.Endpoint.Foreign {
			res.Headers["X-Request-Id"] = headerRef(visibleRequestID)
		}
	}
	d.spec.AddOperation(op)
}

// security returns an empty requirement for public routes: an empty list would be dropped
// on encoding.
func security(g front.Guard) []map[string][]string {
	session, bearer, none := map[string][]string{sessionCookie: {}}, map[string][]string{sessionToken: {}}, map[string][]string{}
	switch g.Name() {
	case front.Public().Name():
		return []map[string][]string{none}
	case front.Optional().Name():
		return []map[string][]string{session, bearer, none}
	case front.Operated().Name():
		return append([]map[string][]string{{operatorKey: {}}}, serviceSecurity(g)...)
	case front.KeyOnly().Name():
		return []map[string][]string{{tenantKey: {}}}
	}
	all := []map[string][]string{session, bearer}
	if g.TakesKeys() {
		all = append(all, map[string][]string{tenantKey: {}})
	}
	if g.TakesOperatorKeys() {
		all = append(all, map[string][]string{operatorKey: {}})
	}
	return append(all, serviceSecurity(g)...)
}

func serviceSecurity(g front.Guard) []map[string][]string {
	if g.Service() == "" {
		return nil
	}
	return []map[string][]string{{serviceKey: {}}}
}

func pathParameters(path string) []*huma.Param {
	var all []*huma.Param
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			all = append(all, &huma.Param{
				Name: strings.TrimSuffix(name, "}"), In: "path", Required: true, Schema: &huma.Schema{Type: "string"},
				Description: "Id of the object",
			})
		}
	}
	return all
}

// rawBody returns the schema of a raw body, or of a form with the fields.
func rawBody(fields []front.Parameter) *huma.Schema {
	if fields == nil {
		return &huma.Schema{Type: "string", Format: "binary"}
	}
	form := &huma.Schema{Type: "object", Properties: map[string]*huma.Schema{}}
	for _, f := range fields {
		form.Properties[f.Name] = &huma.Schema{Type: "string", Description: f.Description}
		form.Required = append(form.Required, f.Name)
	}
	return form
}

// parameters returns the query parameters and If-Match.
func parameters(r front.Route) []*huma.Param {
	var all []*huma.Param
	for _, q := range r.Doc.Query {
		schema := &huma.Schema{Type: "string"}
		for _, v := range q.Enum {
			schema.Enum = append(schema.Enum, v)
		}
		if q.Example != "" {
			schema.Examples = []any{q.Example}
		}
		all = append(all, &huma.Param{Name: q.Name, In: "query", Description: q.Description, Schema: schema})
	}
	if r.Doc.Sort != nil {
		schema := &huma.Schema{Type: "string"}
		for _, name := range r.Doc.Sort {
			schema.Enum = append(schema.Enum, name, "-"+name)
		}
		all = append(all, &huma.Param{Name: "sort", In: "query", Description: "What the list is sorted by; with - before it in reverse. Names and addresses are compared without regard to case and accents", Schema: schema})
	}
	if r.Doc.List {
		all = append(all, limit(r),
			&huma.Param{Name: "cursor", In: "query", Description: "The nextCursor of the previous page", Schema: &huma.Schema{Type: "string"}})
	}
	if r.Doc.Conditional || r.Doc.Versioned && r.Endpoint.In != nil {
		all = append(all, &huma.Param{Name: "If-Match", In: "header", Required: r.Doc.MustMatch, Description: "The ETag of the version to change", Schema: &huma.Schema{Type: "string"}})
	}
	if r.Guard.InTenant() {
		description := "Id of the tenant; needed with a service key, without effect otherwise"
		if r.Guard.AcrossTenants() != "" {
			description = "Id of the tenant, for a service key; absent: all tenants, which needs " + string(r.Guard.AcrossTenants()) + ". Without effect otherwise"
		}
		all = append(all, &huma.Param{Name: front.TenantHeader, In: "header", Description: description, Schema: &huma.Schema{Type: "string"}})
	}
	if r.Endpoint.Creates {
		all = append(all, &huma.Param{
			Name: front.IdempotencyKey, In: "header",
			Description: "Makes it safe to repeat the request: for 24 hours the same key with the same credential and body gets the first answer again, if that was a success",
			Schema:      &huma.Schema{Type: "string", MinLength: new(1), MaxLength: new(front.MaxIdempotencyKey), Pattern: "^[!-~]+$"},
		})
	}
	return all
}

func limit(r front.Route) *huma.Param {
	p := &huma.Param{Name: "limit", In: "query", Description: "Rows at most", Schema: &huma.Schema{Type: "integer", Minimum: new(1.0), Maximum: new(200.0), Default: 50}}
	if r.Endpoint.CSV {
		p.Description = "Rows at most: 1 to 200 and usually 50, with format=csv 1 to 10,000 and usually 10,000"
		p.Schema.Maximum, p.Schema.Default = new(10_000.0), nil
	}
	return p
}

func (d document) content(mediaType string, t reflect.Type) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{mediaType: {Schema: d.schemas.Schema(t, true, "")}}
}

func (d document) success(r front.Route) *huma.Response {
	res := &huma.Response{Description: http.StatusText(r.Endpoint.Status), Headers: headersOf(r.Endpoint.Status)}
	if r.Endpoint.Out != nil {
		res.Content = d.content("application/json", r.Endpoint.Out)
	}
	if r.Endpoint.OutMedia != "" {
		res.Content = map[string]*huma.MediaType{r.Endpoint.OutMedia: {Schema: &huma.Schema{Type: "string"}}}
	}
	if r.Endpoint.CSV {
		res.Content["text/csv"] = &huma.MediaType{Schema: &huma.Schema{Type: "string"}}
		res.Headers["Link"] = &huma.Header{Description: "With format=csv, the next part of the list (RFC 8288, rel=\"next\"); absent at its end", Schema: &huma.Schema{Type: "string"}}
	}
	if r.Doc.Versioned {
		res.Headers["ETag"] = &huma.Header{Description: "Version of the object, for If-Match", Schema: &huma.Schema{Type: "string"}}
	}
	if r.Endpoint.Creates {
		res.Headers[front.IdempotencyReplayed] = &huma.Header{
			Description: "`true` if this answer was given to an earlier request with the same Idempotency-Key; else absent",
			Schema:      &huma.Schema{Type: "string", Examples: []any{"true"}},
		}
	}
	for _, h := range r.Doc.Headers {
		res.Headers[h.Name] = &huma.Header{Description: h.Description, Required: true, Schema: &huma.Schema{Type: "string"}}
	}
	if r.Endpoint.Cookie != "" {
		res.Headers["Set-Cookie"] = &huma.Header{Description: "`" + d.cookie + r.Endpoint.Cookie, Schema: &huma.Schema{Type: "string"}}
	}
	return res
}

// redirect is the answer of an endpoint that redirects to the parameter return.
func (d document) redirect(r front.Route) *huma.Response {
	res := d.success(r)
	res.Description = http.StatusText(http.StatusSeeOther)
	res.Headers["Location"] = &huma.Header{Description: "The parameter `return`", Required: true, Schema: &huma.Schema{Type: "string"}}
	return res
}

// keyErrors are the errors that an API key can get at any endpoint that isn't public, even
// at one that takes no key.
var keyErrors = []doorward.Code{doorward.CodeRateLimited, doorward.CodeIPNotAllowed, doorward.CodeTooManyAttempts}

// impliedErrors returns the errors that follow from the guard, the body and the kind of route.
func impliedErrors(r front.Route) []doorward.Code {
	codes := []doorward.Code{doorward.CodeUnavailable, doorward.CodeInternal}
	if r.Method != http.MethodGet {
		if !r.IsFromAnyOrigin() {
			codes = append(codes, doorward.CodeCrossOrigin)
		}
		if !r.Doc.WhilePaused {
			codes = append(codes, doorward.CodeMaintenance)
		}
	}
	switch r.Guard.Name() {
	case front.Public().Name():
	case front.Optional().Name():
		codes = append(codes, keyErrors...)
		if r.Guard.PeopleOnly() {
			codes = append(codes, doorward.CodeNotForKeys, doorward.CodeForbidden)
		}
	case front.SignedIn().Name():
		codes = append(codes, doorward.CodeNotForKeys)
		fallthrough
	default:
		codes = append(codes, doorward.CodeUnauthenticated, doorward.CodeForbidden)
		codes = append(codes, keyErrors...)
		if r.Guard.PeopleOnly() {
			codes = append(codes, doorward.CodeNotForKeys)
		}
		// Keys get these even where a route stays open while a tenant is closing: it is open to
		// OWNERs, and no key has that role.
		if r.Guard.TakesKeys() {
			codes = append(codes, doorward.CodeTenantFrozen, doorward.CodeTenantClosing)
		}
	}
	if r.Guard.InTenant() {
		codes = append(codes, doorward.CodeTenantRequired, doorward.CodeNotFound, doorward.CodeTenantFrozen, doorward.CodeTenantClosing)
	}
	if r.Guard.CanBeDeniedByPolicy() {
		codes = append(codes, doorward.CodeDeniedByPolicy)
	}
	if r.Guard.RefusesWhileClosing() {
		codes = append(codes, doorward.CodeTenantClosing)
	}
	if r.Doc.MustMatch {
		codes = append(codes, doorward.CodePreconditionRequired, doorward.CodePreconditionFailed)
	}
	if r.RefusesUnknownParameters() {
		codes = append(codes, doorward.CodeInvalidQuery)
	}
	if r.Doc.List || r.Doc.Sort != nil {
		codes = append(codes, doorward.CodeValidationFailed)
	}
	if r.Doc.List {
		codes = append(codes, doorward.CodeInvalidCursor)
	}
	if r.Endpoint.Creates {
		codes = append(codes, doorward.CodeInvalidIdempotencyKey, doorward.CodeIdempotencyInProgress)
	}
	if r.Endpoint.Creates && r.Endpoint.In != nil { // without a body there is no other body
		codes = append(codes, doorward.CodeIdempotencyKeyReused)
	}
	if len(r.Endpoint.Media) > 0 {
		codes = append(codes, doorward.CodeBodyTooLarge, doorward.CodeUnsupportedMediaType, doorward.CodeInvalidBody)
	}
	if r.Endpoint.In != nil && !r.Endpoint.Foreign {
		codes = append(codes, doorward.CodeBodyTooLarge, doorward.CodeUnsupportedMediaType, doorward.CodeInvalidBody, doorward.CodeValidationFailed)
	}
	return codes
}

// addErrors lists the codes by status.
func (d document) addErrors(op *huma.Operation, codes []doorward.Code) {
	slices.Sort(codes)
	byStatus := map[int][]doorward.Code{}
	for _, c := range slices.Compact(codes) {
		byStatus[front.Status(c)] = append(byStatus[front.Status(c)], c)
	}
	for status, codes := range byStatus {
		op.Responses[strconv.Itoa(status)] = d.failure(status, codes)
	}
}

// failure describes the answers with the status: a problem with one of the codes. Each code has
// an example and is named in the description. The codes aren't an enum: later versions may add
// codes, which a client must treat by their status.
func (d document) failure(status int, codes []doorward.Code) *huma.Response {
	var names []string
	examples := map[string]*huma.Example{}
	for _, c := range codes {
		names = append(names, fmt.Sprintf("`%s`", c))
		examples[string(c)] = d.addExample(c)
	}
	own := headersOf(status)
	if slices.Contains(codes, doorward.CodeIdempotencyInProgress) {
		own["Retry-After"] = headerRef("Retry-After")
	}
	return &huma.Response{
		Description: strings.Join(names, ", "), Headers: own,
		Content: map[string]*huma.MediaType{problemType: {Schema: d.schemas.Schema(reflect.TypeFor[front.Problem](), true, ""), Examples: examples}},
	}
}
