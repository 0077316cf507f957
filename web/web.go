// Package web joins the routes of all protocols on one handler.
package web

import (
	"io/fs"
	"net/http"
	"slices"

	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/web/api"
	"github.com/doorward/doorward/web/authzen"
	"github.com/doorward/doorward/web/console"
	"github.com/doorward/doorward/web/edge"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/hosted"
	"github.com/doorward/doorward/web/pages"
	"github.com/doorward/doorward/web/scim"
	"github.com/doorward/doorward/web/ui"
)

// Handler answers all requests to the main address, those of the extra routes included. It
// sets s.ErrorPage, s.Unsolicited and s.Foreign. docs has the pages of the documentation.
func Handler(s *front.Site, version string, docs fs.FS, extra []front.Route) http.Handler {
	s.ErrorPage, s.Unsolicited, s.Foreign = console.ErrorPage, hosted.Unsolicited, scim.Fail
	routes := slices.Concat(api.Routes(s.App), edge.Routes(s.App), authzen.Routes(s.App), authzen.WellKnown(s.BasePath()), scim.Routes(s.App))
	document := func() ([]byte, error) { return api.Document(documentedRoutes(s.App), s.BaseURL(), s.Cookie, version) }
	return edge.Check(s, s.Handler(slices.Concat(routes, pages.Routes(s, version, docs, document), ui.Routes(), hosted.Routes(s.App), console.Routes(s.App), extra)))
}

// Document returns the OpenAPI description without a server. cookie is the name of
// the session cookie.
func Document(baseURL, cookie, version string) ([]byte, error) {
	return api.Document(documentedRoutes(nil), baseURL, cookie, version)
}

func documentedRoutes(a *app.App) []front.Route {
	return slices.Concat(api.Routes(a), edge.Documented(a), authzen.Routes(a))
}
