package ui

import (
	"io/fs"
	"strconv"

	"github.com/doorward/doorward/web/front"
)

// Routes returns the routes of files that all pages load. Pages link to names with a hash,
// which may be cached for ever: after an upgrade no browser combines an old script with a
// new page.
func Routes() []front.Route {
	return append(append(brandRoutes(), Sheets("ui.css", assets)...),
		front.HashedFiles(),
		Asset("ui.js", "text/javascript; charset=utf-8", assets),
		Asset("fragment.js", "text/javascript; charset=utf-8", assets),
		Asset("secret.js", "text/javascript; charset=utf-8", assets),
		Asset("icon.svg", "image/svg+xml", assets),
	)
}

// Asset returns the route of an embedded file in the folder assets. It panics if the file
// isn't there.
func Asset(name, mediaType string, from fs.FS) front.Route {
	body, err := fs.ReadFile(from, "assets/"+name)
	if err != nil {
		panic(err)
	}
	return front.File(name, mediaType, body)
}

func send(c *front.Call, mediaType string, body []byte) {
	h := c.W.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = c.W.Write(body) // fails if the client has disconnected
}
