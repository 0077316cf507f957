// Package web joins the tables of routes of all protocols on one handler.
package web

import (
	"net/http"
	"slices"

	"github.com/doorward/doorward/web/api"
	"github.com/doorward/doorward/web/edge"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/pages"
)

// Handler returns everything that Doorward answers on its main address, with
// the extra routes given.
func Handler(s *front.Site, version string, extra []front.Route) (http.Handler, error) {
	routes := append(api.Routes(s.App), edge.Routes(s.App)...)
	doc, err := api.Document(routes, s.BaseURL(), version)
	if err != nil {
		return nil, err
	}
	own, err := pages.Routes(s, doc)
	if err != nil {
		return nil, err
	}
	return edge.Check(s, s.Handler(slices.Concat(routes, own, extra))), nil
}

// Document returns the OpenAPI description without a server.
func Document(baseURL, version string) ([]byte, error) {
	return api.Document(append(api.Routes(nil), edge.Routes(nil)...), baseURL, version)
}
