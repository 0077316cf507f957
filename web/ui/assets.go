package ui

import (
	"context"
	"io/fs"
	"strconv"

	"github.com/doorward/doorward/web/front"
)

// Routes returns the routes of files that all pages load. Only logos may be cached. The
// others are small and no-store, so that after an upgrade no browser combines an old
// script with a new page.
func Routes() []front.Route {
	return append(brandRoutes(),
		Asset("/assets/ui.css", "text/css; charset=utf-8", assets, "assets/ui.css"),
		Asset("/assets/ui.js", "text/javascript; charset=utf-8", assets, "assets/ui.js"),
		Asset("/assets/icon.svg", "image/svg+xml", assets, "assets/icon.svg"),
	)
}

// Asset returns the route of a file.
func Asset(path, mediaType string, from fs.FS, name string) front.Route {
	return front.On("GET "+path, front.Public(), front.Raw(func(_ context.Context, c *front.Call) error {
		body, err := fs.ReadFile(from, name)
		if err == nil {
			send(c, mediaType, body)
		}
		return err
	}), front.Doc{})
}

func send(c *front.Call, mediaType string, body []byte) {
	h := c.W.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = c.W.Write(body) // a client that is gone needs no answer
}
