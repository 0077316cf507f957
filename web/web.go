// Package web joins the tables of routes of all protocols on one handler.
package web

import (
	"net/http"

	"github.com/doorward/doorward/web/api"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/pages"
)

// Handler returns everything that Doorward answers on its main address.
func Handler(s *front.Site, version string) (http.Handler, error) {
	routes := api.Routes(s.App)
	doc, err := api.Document(routes, s.BaseURL(), version)
	if err != nil {
		return nil, err
	}
	own, err := pages.Routes(s, doc)
	if err != nil {
		return nil, err
	}
	return s.Handler(append(routes, own...)), nil
}
