// Package pages serves what people read: the reference of the API, the pages
// behind the types of errors, and the pages that mails link to.
package pages

import (
	"context"

	"github.com/doorward/doorward/web/front"
)

// Routes returns the routes of the pages. The document is the OpenAPI
// description that is served and shown.
func Routes(s *front.Site, document []byte) ([]front.Route, error) {
	return []front.Route{
		front.On("GET /openapi.json", front.Public(), front.Raw(func(_ context.Context, c *front.Call) error {
			c.W.Header().Set("Content-Type", "application/json")
			_, err := c.W.Write(document)
			return err
		}), front.Doc{}),
	}, nil
}
