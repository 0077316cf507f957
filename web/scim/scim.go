// Package scim serves SCIM 2.0 (RFC 7643, RFC 7644): a customer's directory reads and writes the people of its tenant, by a
// secret of its connection.
//
// Requests and answers follow those documents, also what is refused: Fail answers for every path below /scim/v2. Forms that
// directories are known to send, and that the RFCs don't have, are accepted (package internal/scim): unknown schemas and
// attributes, Content-Type application/json or none, "&" or "?" at the end of the query.
package scim

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/web/front"
)

// Base is the path below which directories find everything.
const Base = "/scim/v2"

const mediaType = "application/scim+json"

// maxBody is the largest request body, in bytes.
const maxBody = 1 << 20

// handler serves directories.
type handler struct{ app *app.App }

// Routes returns the routes for directories.
func Routes(a *app.App) []front.Route {
	h := &handler{a}
	on := func(pattern string, fn func(ctx context.Context, c *front.Call) error) front.Route {
		method, path, _ := strings.Cut(pattern, " ")
		return front.On(method+" "+Base+path, front.DirectoryOnly(), front.Raw(fn).AmendErrors(h.record), front.Doc{})
	}
	return []front.Route{
		on("GET ", h.config), on("GET /{$}", h.config), on("GET /ServiceProviderConfig", h.config),
		on("GET /ResourceTypes", h.resourceTypes), on("GET /ResourceTypes/{name}", h.resourceType),
		on("GET /Schemas", h.schemas), on("GET /Schemas/{urn}", h.schema),
		on("GET /Users", answer(h.users)), on("POST /Users", answer(h.makeUser)),
		on("GET /Users/{id}", answer(h.user)), on("PUT /Users/{id}", answer(h.replaceUser)), on("PATCH /Users/{id}", answer(h.patchUser)), on("DELETE /Users/{id}", answer(h.removeUser)),
		on("GET /Groups", answer(h.groups)), on("POST /Groups", answer(h.makeGroup)),
		on("GET /Groups/{id}", answer(h.group)), on("PUT /Groups/{id}", answer(h.replaceGroup)), on("PATCH /Groups/{id}", answer(h.patchGroup)), on("DELETE /Groups/{id}", answer(h.removeGroup)),
	}
}

// Fail answers a failed request to a path of directories in the form of SCIM, and reports whether the path is one.
func Fail(c *front.Call, path string, err error) bool {
	if path != Base && !strings.HasPrefix(path, Base+"/") {
		return false
	}
	var e *scim.Error
	if !errors.As(err, &e) {
		e = errorOf(c.Refuse(err))
	}
	c.AnswerAs(e.Status, mediaType, e)
	return true
}

// errorOf returns the problem in the form of SCIM.
func errorOf(p front.Problem) *scim.Error {
	e := &scim.Error{Status: p.Status, Detail: p.Detail}
	if e.Detail == "" {
		e.Detail = p.Title
	}
	switch {
	case p.Code == doorward.CodeUnauthenticated: // nothing but such a secret is good here
		e.Detail = "Send a secret of the directory that is alive as \"Authorization: Bearer dwc_…\". An OWNER makes one in the console, at the connection under Single sign-on, or by POST /api/v2/sso/connections/{id}/scim-secrets."
	case p.Status == http.StatusUnprocessableEntity: // SCIM has no such status
		e.Status, e.Type = http.StatusBadRequest, scim.InvalidValue
		for _, f := range p.Errors {
			e.Detail = f.Message
		}
	case p.Code == doorward.CodeInvalidBody:
		e.Type = scim.InvalidSyntax
	case p.Code == doorward.CodeAlreadyMember, p.Code == doorward.CodeAccountExists:
		e.Type = scim.Uniqueness
	}
	return e
}
